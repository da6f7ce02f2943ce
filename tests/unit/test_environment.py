"""The environment a job starts from: little, the worker's, and never its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.environment import DEFAULT_PATH, job_environment

PREFIX, HOME = Path("/opt/tenure"), Path("/srv/.tenure")


def made(**own: str) -> dict[str, str]:
    return job_environment(own, prefix=PREFIX, home=HOME)


@pytest.mark.req("E10")
def test_only_what_is_named_is_handed_on() -> None:
    own = {"HOME": "/h", "USER": "u", "LANG": "C.UTF-8", "TZ": "UTC", "PATH": "/bin"}

    assert made(**own, AWS_SECRET="s", LD_PRELOAD="x", PYTHONPATH="/p", TENURE_DRILL="d") == {
        **own, "TENURE_HOME": "/srv/.tenure"
    }  # fmt: skip


def test_what_the_worker_does_not_have_is_not_made_up() -> None:
    assert made() == {"PATH": DEFAULT_PATH, "TENURE_HOME": "/srv/.tenure"}


@pytest.mark.parametrize(
    ("own", "path"),
    [
        ("/opt/tenure/bin:/usr/bin:/bin", "/usr/bin:/bin"),
        ("/usr/bin:/opt/tenure/bin/:/bin", "/usr/bin:/bin"),
        ("/opt/tenure/bin", DEFAULT_PATH),
        ("/opt/tenure/bin2:/opt/tenure", "/opt/tenure/bin2:/opt/tenure"),
        # An empty folder means the working folder: a job must not find commands there.
        (":/usr/bin::/bin:", "/usr/bin:/bin"),
        ("", DEFAULT_PATH),
    ],
)
def test_the_tools_of_tenure_are_taken_out_of_the_path(own: str, path: str) -> None:
    assert made(PATH=own)["PATH"] == path


def test_a_job_is_told_where_the_command_is(tmp_path: Path) -> None:
    """A virtual environment's `bin` is not on its PATH, so `tenure` is not found there by its name."""
    here, elsewhere = tmp_path / "a b" / "bin" / "tenure", tmp_path / "usr" / "tenure"
    for command in (here, elsewhere):
        command.parent.mkdir(parents=True)
        command.touch(0o755)
    own = {"PATH": f"{here.parent}:{elsewhere.parent}"}

    made = job_environment(own, prefix=here.parents[1], home=HOME)
    assert (made["TENURE_COMMAND"], made["PATH"]) == (str(here), str(elsewhere.parent))

    here.chmod(0o600)
    made = job_environment(own, prefix=here.parents[1], home=HOME)
    assert made["TENURE_COMMAND"] == str(elsewhere), "of an installation without a virtual environment"
    elsewhere.unlink()
    assert "TENURE_COMMAND" not in job_environment(own, prefix=here.parents[1], home=HOME), "control: there is none"


def test_a_home_of_the_worker_s_own_environment_is_replaced() -> None:
    assert made(TENURE_HOME="/elsewhere")["TENURE_HOME"] == "/srv/.tenure"


@pytest.mark.req("E01")
def test_the_environment_is_a_copy() -> None:
    own = {"HOME": "/h"}
    environment = job_environment(own, prefix=PREFIX, home=HOME)

    own["HOME"] = "/changed"

    assert environment["HOME"] == "/h"
