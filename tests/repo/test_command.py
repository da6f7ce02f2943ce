"""The `tenure` command: its table, its options, its errors, and how little it imports."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

from shared import cli
from shared.errors import ConfigError, RefusedError, StoreUnavailableError
from tests.support.checkout import tool

NAMES = [name for group in cli.COMMANDS.values() for name in group]
HOT = ["run", "submit", "status"]
HEAVY = {"pydantic", "rich", "psutil", "sqlite_utils", "multiprocessing_logging", "multiprocessing", "asyncio"}


class Spy:
    """A command that notes what it was called with, then does as told."""

    def __init__(self, outcome: int | BaseException = 0) -> None:
        self.outcome = outcome
        self.calls: list[tuple[list[str], str | None]] = []

    def __call__(self, argv: list[str], *, home: str | None) -> int:
        self.calls.append((argv, home))
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    command = Spy()
    monkeypatch.setitem(sys.modules, "spy_of_the_test", SimpleNamespace(main=command))
    monkeypatch.setitem(cli.COMMANDS, "Test", {"spy": cli.Entry("spy_of_the_test:main", "")})
    return command


@pytest.mark.parametrize(
    ("words", "home"),
    [
        (["spy", "a", "--home", "x"], None),
        (["--home", "/h", "spy", "a", "--home", "x"], "/h"),
        (["--home=/h", "--debug", "spy", "a", "--home", "x"], "/h"),
    ],
)
def test_command_gets_its_words_untouched_and_the_home(spy: Spy, words: list[str], home: str | None) -> None:
    assert cli.main(words) == 0
    assert spy.calls == [(["a", "--home", "x"], home)]


def test_command_decides_the_exit_code(spy: Spy) -> None:
    spy.outcome = 7

    assert cli.main(["spy"]) == 7


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (RefusedError("w1 has ended", hint="look at it"), 1, "tenure: w1 has ended\n  look at it\n"),
        (ConfigError("no unit", source="tenure.toml", line=3), 2, "tenure: tenure.toml:3: no unit\n"),
        (StoreUnavailableError("corrupt", "the store is corrupt"), 3, "tenure: the store is corrupt\n"),
    ],
)
def test_error_is_one_line_and_its_exit_code(
    spy: Spy, capsys: pytest.CaptureFixture[str], error: Exception, code: int, lines: str
) -> None:
    spy.outcome = error

    assert cli.main(["spy"]) == code
    assert capsys.readouterr() == ("", lines)


def test_error_is_an_object_with_json(spy: Spy, capsys: pytest.CaptureFixture[str]) -> None:
    spy.outcome = StoreUnavailableError("corrupt", "the store is corrupt", hint="restore a backup")

    assert cli.main(["spy", "--json"]) == 3

    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err) == {
        "error": {"code": "corrupt", "message": "the store is corrupt", "hint": "restore a backup"}
    }


def test_json_of_the_jobs_own_command_is_not_ours(spy: Spy, capsys: pytest.CaptureFixture[str]) -> None:
    spy.outcome = RefusedError("no")

    assert cli.main(["spy", "--", "list", "--json"]) == 1
    assert capsys.readouterr().err == "tenure: no\n"


def test_debug_shows_the_traceback(spy: Spy) -> None:
    spy.outcome = RefusedError("no")

    with pytest.raises(RefusedError):
        cli.main(["--debug", "spy"])


def test_interrupt_exits_as_a_shell_shows_it(spy: Spy) -> None:
    spy.outcome = KeyboardInterrupt()

    assert cli.main(["spy"]) == 130


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "tenure: no command 'rnu'; did you mean `run`?"),
        (["quite-another"], "tenure: no command 'quite-another'"),
        (["--hme", "x", "run"], "tenure: no option --hme before the command"),
        (["--home"], "tenure: --home needs a folder"),
        (["--home=", "run"], "tenure: --home needs a folder"),
    ],
)
def test_wrong_command_line_exits_2_with_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert cli.main(words) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == message


def test_no_command_shows_the_help_and_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert capsys.readouterr() == ("", cli.help_text() + "\n")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {words[0] for words in lines if words} >= set(NAMES)


def test_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen([tool("tenure"), "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        errors = command.stderr.read()

    assert (command.returncode, errors) == (cli.EXIT_PIPE_CLOSED, b"")


def modules_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("name", HOT)
def test_hot_command_imports_nothing_heavy(name: str) -> None:
    assert modules_after(f"from shared import cli; cli.load({name!r})") & HEAVY == set()


OWN_OF_TOOL = {
    *("shared", "shared.cli", "shared.rooms", "shared.errors", "shared.ids", "shared.clock", "shared.boundary"),
    *("shared.commands", "shared.commands.arguments", "shared.commands.tool", "shared.model", "shared.model.instant"),
}
NOT_IN_A_HURRY = {"sqlite3", "logging", "subprocess", "threading", "datetime", "decimal", "tomllib", "hashlib", "queue"}


@pytest.mark.parametrize("code", ["cli.load('tool')", "cli.main(['tool', 'turn', 'done', '--key', 'k'])"])
def test_the_tool_of_jobs_imports_a_parser_and_a_socket(code: str) -> None:
    """Jobs call it in a hurry: nothing of a store, a log, or a decision comes with it."""
    found = modules_after(f"from shared import cli; {code}")

    assert {
        name for name in found if name.partition(".")[0] in {"shared", "worker", "coordinator", "chaos"}
    } == OWN_OF_TOOL
    assert {"argparse", "socket"} <= found
    assert found & (HEAVY | NOT_IN_A_HURRY) == set()
    other = modules_after("from shared import cli; cli.load('submit')")
    assert other & NOT_IN_A_HURRY, "control: a command that opens the store brings some of it"


def test_heavy_import_would_be_seen() -> None:
    assert modules_after("import psutil") & HEAVY == {"psutil"}


@pytest.mark.parametrize("name", NAMES)
def test_every_command_exists(name: str) -> None:
    target = next(group[name].target for group in cli.COMMANDS.values() if name in group)
    module, _, attribute = target.partition(":")

    assert callable(getattr(import_module(module), attribute))
