"""Secrets by reference: a configuration says where a value lies, the worker reads it at each launch, nothing stores it.

`file:/absolute/path` is a file that only its owner can read; `env:NAME` is a variable of the worker's own environment.

Rule: requirement E10; design §6 ("A job's environment").
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from shared.errors import SecretUnavailableError

SECRET_BYTES_MAX = 64 * 1024

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SecretReferenceError(ValueError):
    """The text is no reference. What it is instead is never shown: it may be the secret itself.

    Attributes:
        reason: What is wrong, to be read after the key's name.
        hint: How a reference is written; None when the reason says it.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where a secret lies. `target`: the absolute path of a file, or the name of a variable."""

    kind: Literal["file", "env"]
    target: str


def parse_reference(text: str) -> SecretReference:
    """The place that a reference names; reads nothing.

    Raises:
        SecretReferenceError: it is no reference.
    """
    kind, _, target = text.partition(":")
    if kind == "file":
        if not target.startswith("/") or target.endswith("/") or "\0" in target:
            raise SecretReferenceError("names no file by its whole path", '"file:/run/secrets/api_key"')
        return SecretReference("file", target)
    if kind == "env":
        if _ENV_NAME.fullmatch(target) is None:
            raise SecretReferenceError("names no variable of the worker's environment", '"env:API_KEY"')
        return SecretReference("env", target)
    raise SecretReferenceError(
        "must say where the secret lies, never be the secret itself", '"file:/run/secrets/api_key" or "env:API_KEY"'
    )


def read_secrets(secrets: Iterable[tuple[str, str]], environ: Mapping[str, str]) -> dict[str, str]:
    """The values of a snapshot's secrets, by the job's variable.

    Args:
        secrets: (variable, reference) pairs.
        environ: The worker's own environment.

    Raises:
        SecretUnavailableError: the first that cannot be read; the job must not be started.
    """
    return {variable: read_secret(reference, environ, variable=variable) for variable, reference in secrets}


def read_secret(reference: str, environ: Mapping[str, str], *, variable: str | None = None) -> str:
    """The value that a reference leads to now. One newline at the end of a file is not part of it.

    Blocks on the file system; for pool threads. Bytes that are no UTF-8 survive as they do in any environment.

    Args:
        environ: The worker's own environment.
        variable: The job's variable it is for, to be named in an error.

    Raises:
        SecretUnavailableError: it is not there, not a secret to others, or cannot be handed to a program.
    """
    try:
        place = parse_reference(reference)
    except SecretReferenceError as error:
        raise SecretUnavailableError(variable, "reference", f"it {error.reason}") from None
    try:
        value = _of_file(place.target) if place.kind == "file" else _of_environment(place.target, environ)
        if "\0" in value:
            raise _Unusable("it contains a NUL byte, which no environment can")
    except _Unusable as error:
        raise SecretUnavailableError(variable, place.kind, str(error)) from None
    return value


class _Unusable(Exception):
    """Why a secret cannot be used, in words that show nothing of it."""


def _of_environment(name: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if value is None:
        raise _Unusable("it is not set in the worker's environment")
    if len(os.fsencode(value)) > SECRET_BYTES_MAX:
        raise _Unusable(f"it is longer than {SECRET_BYTES_MAX // 1024} KiB")
    return value


def _of_file(path: str) -> str:
    try:
        # Without waiting: a pipe put in its place must not hold the thread before it is looked at.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise _Unusable(f"it cannot be opened: {error.strerror}") from None
    try:
        _require_owner_only(os.fstat(descriptor))
        data = _read(descriptor)
    except OSError as error:
        raise _Unusable(f"it cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if len(data) > SECRET_BYTES_MAX:
        raise _Unusable(f"it is larger than {SECRET_BYTES_MAX // 1024} KiB")
    return os.fsdecode(data.removesuffix(b"\n"))


def _require_owner_only(found: os.stat_result) -> None:
    """Refuse what others can read or replace: then it is no secret, or not the one that was meant."""
    if not stat.S_ISREG(found.st_mode):
        raise _Unusable("it is not a regular file")
    if found.st_uid not in {0, os.geteuid()}:
        raise _Unusable("the file belongs to another user")
    if found.st_mode & _OTHERS:
        raise _Unusable(f"others may use the file (mode {stat.S_IMODE(found.st_mode):04o}); chmod 600 makes it private")


def _read(descriptor: int) -> bytes:
    data = b""
    while len(data) <= SECRET_BYTES_MAX:
        part = os.read(descriptor, SECRET_BYTES_MAX + 1 - len(data))
        if not part:
            break
        data += part
    return data
