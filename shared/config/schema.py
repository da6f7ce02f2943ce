"""The shape of `tenure.toml`, strict at every depth; nothing is guessed or converted.

Each model gives the plain value of `shared/model/settings.py` that it stands for. A validator raises `fault(...)`: one
message for a person, to be read after the key's name, and a hint where one is known. `shared/config/loader.py` turns
them, and pydantic's own kinds, into one `ConfigError` with a line.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from shared.config.arguments import argument_fault, env_fault, total_fault
from shared.config.durations import DURATION_MAX_US, LEASE_MAX_US, DurationError, parse_duration_us
from shared.ids import is_work_id
from shared.model import settings as values

FAULT = "tenure"  # the kind of our own errors among pydantic's

_DELAYS_MAX = 100
_SHELL_SIGNS = re.compile(r"[|&;<>$`*?~]")


def fault(
    message: str, hint: str | None = None, *, key: str | None = None, unsupported: bool = False
) -> PydanticCustomError:
    """An error for a validator to raise.

    Args:
        message: What is wrong, to be read after the key's name.
        hint: What to do; None when the message says it all.
        key: The key below the validated table that is at fault, dotted; the message then follows the table's name and
            says which. None = the validated value itself.
        unsupported: A later version may well take it.
    """
    context = {"fault": message, "hint": hint, "key": key, "unsupported": unsupported}
    return PydanticCustomError(FAULT, "{fault}", context)


def kind_of(value: object) -> str:
    """What a person would call a TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)[:40]
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:40]}…"'
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return "a date or time"


def likely(word: str, known: Iterable[str]) -> str | None:
    """The one of `known` that `word` was probably meant to be; None when none is near."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return near[0] if near else None


def _whole(smallest: int) -> Callable[[object], int]:
    lowest = "0 (unbounded)" if smallest == 0 else str(smallest)

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise fault(f"must be a whole number, not {kind_of(value)}")
        if not smallest <= value <= values.LIMIT_MAX:
            raise fault(f"must be from {lowest} to {values.LIMIT_MAX}, not {kind_of(value)}")
        return value

    return check


def _duration(max_us: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, str):
            raise fault(f"must be a duration in quotes with its unit, e.g. {_meant(value)}, not {kind_of(value)}")
        try:
            return parse_duration_us(value, max_us=max_us)
        except DurationError as error:
            raise fault(error.reason, error.hint) from error

    return check


def _meant(value: object) -> str:
    """An example of a duration, with the number that was written where that makes one."""
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= values.LIMIT_MAX
    return f'"{value}s"' if whole else '"30s"'


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise fault(f"must be a text in quotes, not {kind_of(value)}")
    return value


def _one_of(*allowed: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        text = _text(value)
        if text not in allowed:
            near = likely(text, allowed)
            choice = " or ".join(f'"{word}"' for word in allowed)
            raise fault(f"must be {choice}, not {kind_of(text)}", near and f'did you mean "{near}"?')
        return text

    return check


def _executor(value: object) -> str:
    text = _text(value)
    if text == "agent":
        raise fault('"agent" is not supported yet', 'this version runs "shell"', unsupported=True)
    if text != "shell":
        near = likely(text, ("shell",))
        raise fault(f"is unknown: {kind_of(text)}", near and f'did you mean "{near}"?')
    return text


def _argument(value: object) -> str:
    text = _text(value)
    reason = argument_fault(text)
    if reason is not None:
        raise fault(reason)
    return text


def _command(value: object) -> object:
    if isinstance(value, str):
        raise fault("must be a list with one text per argument", _as_list(value))
    if isinstance(value, list) and not value:
        raise fault("is empty", 'a program and its arguments, as in ["df", "-h"]')
    if isinstance(value, list) and value[0] == "":
        raise fault("begins with an empty text, where the program's name must be")
    return value


def _as_list(line: str) -> str | None:
    """The list form of a command line; through `sh -c` when it has signs that only a shell reads."""
    try:
        parts = ["sh", "-c", line] if _SHELL_SIGNS.search(line) else shlex.split(line)
    except ValueError:  # an open quote
        parts = ["sh", "-c", line]
    text = json.dumps(parts, ensure_ascii=False)
    return f"command = {text}" if parts and len(text) <= 120 else None


def _cwd(value: object) -> str:
    text = _text(value)
    if not text or "\0" in text:
        raise fault("must name a folder")
    if text.startswith("~"):
        raise fault(f"{kind_of(text)}: ~ is not expanded", "write the whole path")
    return text


def _scope_name(name: str) -> str:
    if not values.is_scope_name(name):
        raise fault(
            "is no name for a scope", 'letters, digits, ".", "_" and "-", parts joined by "/", as in "ops/backup"'
        )
    return name


def _binding_name(name: str) -> str:
    if is_work_id(name):
        raise fault("is no name for a binding: it reads as the id of a work")
    if not values.is_binding_name(name):
        raise fault("is no name for a binding", 'a letter, then at most 62 letters, digits, ".", "_" and "-"')
    return name


Limit = Annotated[int, BeforeValidator(_whole(0))]
Slots = Annotated[int, BeforeValidator(_whole(1))]
Duration = Annotated[int, BeforeValidator(_duration(DURATION_MAX_US))]
LeaseDuration = Annotated[int, BeforeValidator(_duration(LEASE_MAX_US))]
Text = Annotated[str, BeforeValidator(_text)]
Cause = Annotated[str, BeforeValidator(_one_of("failure", "timeout"))]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SettingsTable(_Table):
    """`[settings]`."""

    concurrency: Limit = 4
    job_concurrency: Limit = 4
    lease: LeaseDuration = values.DEFAULT.settings.lease_us
    timeout: Duration = values.DEFAULT.settings.timeout_us
    slots: Slots = 64

    def value(self) -> values.Settings:
        return values.Settings(
            concurrency=self.concurrency,
            job_concurrency=self.job_concurrency,
            lease_us=self.lease,
            timeout_us=self.timeout,
            slots=self.slots,
        )


class ScopeTable(_Table):
    """`[scope."ops/backup"]`."""

    concurrency: Limit | None = None

    def value(self, name: str) -> values.ScopeConfig:
        return values.ScopeConfig(name=name, concurrency=self.concurrency)


class RetryTable(_Table):
    """`retry = { delays = ["5m"], on = ["failure"] }`."""

    delays: Annotated[list[Duration], Field(default_factory=lambda: list(values.RetryPolicy().delays_us))]
    on: Annotated[list[Cause], Field(default_factory=lambda: ["failure"])]

    @model_validator(mode="after")
    def _counts(self) -> RetryTable:
        if not 1 <= len(self.delays) <= _DELAYS_MAX:
            counted = f"delays must hold 1 to {_DELAYS_MAX} delays, not {len(self.delays)}"
            raise fault(counted, "leave retry out for no retry", key="delays")
        if not self.on:
            raise fault('on must name "failure", "timeout" or both', "leave retry out for no retry", key="on")
        return self

    def value(self) -> values.RetryPolicy:
        causes: tuple[values.RetryCause, ...] = ("failure", "timeout")
        return values.RetryPolicy(delays_us=tuple(self.delays), on=tuple(cause for cause in causes if cause in self.on))


class BindingTable(_Table):
    """`[binding.backup]`."""

    command: Annotated[list[Annotated[str, BeforeValidator(_argument)]], BeforeValidator(_command)]
    executor: Annotated[str, BeforeValidator(_executor)] = "shell"
    env: Annotated[dict[str, Text], Field(default_factory=dict)]
    cwd: Annotated[str, BeforeValidator(_cwd)] | None = None
    timeout: Duration | None = None
    grace: Duration = values.Binding(name="", command=()).grace_us
    retry: RetryTable | None = None
    replay: Annotated[str, BeforeValidator(_one_of("never", "safe"))] = "never"

    @model_validator(mode="after")
    def _fits_the_kernel(self) -> BindingTable:
        for name, value in self.env.items():
            reason = env_fault(name, value)
            if reason is not None:
                raise fault(reason, key=f"env.{name}")
        reason = total_fault(self.command, self.env.items())
        if reason is not None:
            raise fault(f"its command cannot be started: {reason}", key="command")
        return self

    def value(self, name: str, folder: str) -> values.Binding:
        """Args: folder: Absolute folder of the file; a relative `cwd` is meant from there."""
        return values.Binding(
            name=name,
            command=tuple(self.command),
            executor=cast("values.Executor", self.executor),
            env=tuple(sorted(self.env.items())),
            cwd=None if self.cwd is None else str(Path(folder, self.cwd)),
            timeout_us=self.timeout,
            grace_us=self.grace,
            retry=None if self.retry is None else self.retry.value(),
            replay=cast("values.Replay", self.replay),
        )


class FileTable(_Table):
    """The whole file."""

    settings: Annotated[SettingsTable, Field(default_factory=SettingsTable)]
    scope: Annotated[dict[Annotated[str, AfterValidator(_scope_name)], ScopeTable], Field(default_factory=dict)]
    binding: Annotated[dict[Annotated[str, AfterValidator(_binding_name)], BindingTable], Field(default_factory=dict)]

    def value(self, folder: str) -> values.Config:
        return values.Config(
            settings=self.settings.value(),
            scopes=tuple(table.value(name) for name, table in sorted(self.scope.items())),
            bindings=tuple(table.value(name, folder) for name, table in sorted(self.binding.items())),
        )


def table_keys() -> dict[str, tuple[str, ...]]:
    """The keys each kind of table takes; "" is the top of the file."""
    tables: dict[str, type[BaseModel]] = {
        "": FileTable,
        "settings": SettingsTable,
        "scope": ScopeTable,
        "binding": BindingTable,
        "retry": RetryTable,
    }
    return {name: tuple(table.model_fields) for name, table in tables.items()}
