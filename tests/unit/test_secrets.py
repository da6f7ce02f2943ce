"""A secret is read where its reference says, or refused in words that show nothing of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.errors import SecretUnavailableError
from shared.secrets import (
    SECRET_BYTES_MAX,
    SecretReference,
    SecretReferenceError,
    parse_reference,
    read_secret,
    read_secrets,
)

pytestmark = pytest.mark.req("E10")

VALUE = "hunter2-and-more"


def secret_file(folder: Path, data: bytes = VALUE.encode(), mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def refusal(reference: str, environ: dict[str, str] | None = None) -> SecretUnavailableError:
    with pytest.raises(SecretUnavailableError) as caught:
        read_secret(reference, environ or {}, variable="API_KEY")
    error = caught.value
    assert error.code == "run_environment_unavailable"
    assert str(error).startswith(f"secret API_KEY ({error.kind}): ")
    assert "hunter2" not in f"{error} {error.args} {error.hint}"
    assert error.__cause__ is None, "nothing of a library's error comes along"
    return error


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("file:/run/secrets/api key", SecretReference("file", "/run/secrets/api key")),
        ("file:/a:b", SecretReference("file", "/a:b")),
        ("env:API_KEY", SecretReference("env", "API_KEY")),
    ],
)
def test_a_reference_names_a_place(text: str, place: SecretReference) -> None:
    assert parse_reference(text) == place


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (VALUE, "never be the secret itself"),
        ("", "never be the secret itself"),
        ("/run/secrets/hunter2", "never be the secret itself"),
        ("File:/hunter2", "never be the secret itself"),
        ("vault:hunter2", "never be the secret itself"),
        ("file:hunter2", "names no file by its whole path"),
        ("file:~/hunter2", "names no file by its whole path"),
        ("file:/hunter2/", "names no file by its whole path"),
        ("file:/hunter2\0", "names no file by its whole path"),
        ("env:", "names no variable"),
        ("env:hunter2-and-more", "names no variable"),
        ("env:$A", "names no variable"),
        ("env:A\n", "names no variable"),
    ],
)
def test_what_is_no_reference_is_refused_and_never_shown(text: str, reason: str) -> None:
    with pytest.raises(SecretReferenceError) as caught:
        parse_reference(text)

    assert reason in caught.value.reason
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"
    assert reason in str(refusal(text)), "nor when it was stored all the same"


def test_a_secret_is_read_from_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    for mode in (0o600, 0o400):
        assert read_secret(f"file:{secret_file(tmp_path, mode=mode)}", {}) == VALUE
        (tmp_path / "key").unlink()


def test_a_link_to_such_a_file_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(secret_file(tmp_path))

    assert read_secret(f"file:{link}", {}) == VALUE


def test_a_secret_is_read_from_the_workers_environment() -> None:
    assert read_secret("env:KEY", {"KEY": VALUE}) == VALUE
    assert read_secret("env:KEY", {"KEY": VALUE + "\n"}) == VALUE + "\n", "a variable is taken as it is"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"a\n", "a"),
        (b"a\n\n", "a\n"),
        (b"a\r\n", "a\r"),
        (b"a", "a"),
        (b"\n", ""),
        (b" a ", " a "),
        (b"\xff", "\udcff"),
    ],
)
def test_only_one_newline_at_the_end_is_not_part_of_it(tmp_path: Path, data: bytes, value: str) -> None:
    assert read_secret(f"file:{secret_file(tmp_path, data)}", {}) == value


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601, 0o777])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    assert f"(mode {mode:04o})" in str(refusal(f"file:{secret_file(tmp_path, mode=mode)}"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = secret_file(tmp_path)
    os.chown(path, 65534, 65534)

    assert "belongs to another user" in str(refusal(f"file:{path}"))


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path) -> None:
    full = secret_file(tmp_path, b"x" * SECRET_BYTES_MAX)
    assert len(read_secret(f"file:{full}", {})) == SECRET_BYTES_MAX

    full.write_bytes(b"x" * (SECRET_BYTES_MAX + 1))
    assert "larger than 64 KiB" in str(refusal(f"file:{full}"))
    assert "longer than 64 KiB" in str(refusal("env:KEY", {"KEY": "x" * (SECRET_BYTES_MAX + 1)}))
    assert read_secret("env:KEY", {"KEY": "x" * SECRET_BYTES_MAX})


def test_a_nul_byte_is_refused(tmp_path: Path) -> None:
    assert "NUL byte" in str(refusal(f"file:{secret_file(tmp_path, b'hunter2' + bytes(1))}"))


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_plain_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "folder":
        path.mkdir(mode=0o700)
    if kind == "pipe":
        os.mkfifo(path, mode=0o600)

    assert "not a regular file" in str(refusal(f"file:{path}"))


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot be opened: No such file" in str(refusal(f"file:{tmp_path / 'none'}"))
    assert "not set in the worker's environment" in str(refusal("env:NONE", {"OTHER": VALUE}))


def test_the_secrets_of_a_snapshot_are_read_together_or_the_first_fault_is_named(tmp_path: Path) -> None:
    secrets = (("A", f"file:{secret_file(tmp_path)}"), ("B", "env:KEY"))

    assert read_secrets(secrets, {"KEY": "b"}) == {"A": VALUE, "B": "b"}
    with pytest.raises(SecretUnavailableError, match=r"^secret B \(env\): it is not set") as caught:
        read_secrets(secrets, {})
    assert (caught.value.variable, caught.value.kind) == ("B", "env")
