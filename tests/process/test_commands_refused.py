"""Bad input to `run`, `submit` and the others: one clear line, exit code 2 (or 1), and nothing is created. Beside each, its control."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared import cli
from shared.commands import request, run, submit
from shared.commands.request import ARGUMENT_BYTES_MAX, INPUT_BYTES_MAX, arguments_bytes_max
from shared.errors import TenureError
from shared.model.settings import Binding, Config
from shared.model.work import NewWork
from tests.support.command_homes import CommandHome, command_home

BINDINGS = Config(bindings=(Binding("backup", ("true",)), Binding("report", ("true",))))
TOO_MANY = "x" * 100_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CommandHome]:
    with command_home(tmp_path) as home:
        home.activate(BINDINGS)
        yield home


def many_arguments() -> list[str]:
    return [TOO_MANY] * (arguments_bytes_max() // len(TOO_MANY) + 1)


# (what is wrong, the command line, what the one line says, the same command line put right)
REFUSED: list[tuple[str, list[str], str, list[str]]] = [
    ("no command", ["submit"], "A binding or a command is missing", ["submit", "backup"]),
    ("no command after --", ["submit", "--"], "the command is missing", ["submit", "--", "true"]),
    ("empty program", ["submit", "--", ""], "the command is missing", ["submit", "--", "true", ""]),
    ("unknown binding", ["submit", "backpu"], "no binding 'backpu'; did you mean `backup`?", ["submit", "backup"]),
    (
        "unknown option",
        ["submit", "--scpe", "ops", "backup"],
        "no option --scpe; did you mean `--scope`?",
        ["submit", "--scope", "ops", "backup"],
    ),
    (
        "abbreviated option",
        ["submit", "--sco", "ops", "backup"],
        "no option --sco",
        ["submit", "--scope", "ops", "backup"],
    ),
    (
        "option without value",
        ["submit", "backup", "--scope"],
        "--scope: expected one argument",
        ["submit", "backup", "--scope", "ops"],
    ),
    ("a word too many", ["submit", "backup", "now"], "what is 'now' for?", ["submit", "backup"]),
    (
        "scope of a wrong shape",
        ["submit", "backup", "--scope", "ops//x"],
        "'ops//x' is no name of a scope",
        ["submit", "backup", "--scope", "ops/x"],
    ),
    (
        "scope that is empty",
        ["submit", "backup", "--scope", ""],
        "'' is no name of a scope",
        ["submit", "backup", "--scope", "o"],
    ),
    (
        "option given twice",
        ["submit", "backup", "--scope", "ops", "--scope", "lab"],
        "--scope is given twice",
        ["submit", "backup", "--scope", "ops", "--env", "A=1", "--env", "B=2"],
    ),
    (
        "number with a leading zero",
        ["submit", "backup", "--priority", "08"],
        "--priority must be a whole number",
        ["submit", "backup", "--priority", "8"],
    ),
    ("env without =", ["submit", "backup", "--env", "K"], "'K' is not K=V", ["submit", "backup", "--env", "K="]),
    (
        "env name of a wrong shape",
        ["submit", "backup", "--env", "1K=v"],
        "'1K=v' is not K=V",
        ["submit", "backup", "--env", "K1=v"],
    ),
    (
        "env of tenure's own",
        ["submit", "backup", "--env", "TENURE_HOME=/x"],
        "TENURE_HOME is not yours to set",
        ["submit", "backup", "--env", "MY_HOME=/x"],
    ),
    (
        "argument too long",
        ["submit", "--", "echo", "x" * (ARGUMENT_BYTES_MAX + 1)],
        "argument 1 of the command is 131072 bytes long",
        ["submit", "--", "echo", "x" * ARGUMENT_BYTES_MAX],
    ),
    (
        "env too long",
        ["submit", "backup", "--env", "K=" + "x" * ARGUMENT_BYTES_MAX],
        "--env K is 131073 bytes long",
        ["submit", "backup", "--env", "K=" + "x" * (ARGUMENT_BYTES_MAX - 2)],
    ),
    (
        "too much in all",
        ["submit", "--", "echo", *many_arguments()],
        "with its environment, the kernel takes",
        ["submit", "--", "echo", *many_arguments()[2:]],
    ),
    (
        "NUL in an argument",
        ["submit", "--", "echo", "a\0b"],
        "argument 1 of the command holds a NUL byte",
        ["submit", "--", "echo", "ab"],
    ),
    (
        "input too large",
        ["submit", "backup", "--input", "x" * (INPUT_BYTES_MAX + 1)],
        "more than 1048576 bytes",
        ["submit", "backup", "--input", "x" * INPUT_BYTES_MAX],
    ),
    (
        "input file missing",
        ["submit", "backup", "--input", "@nosuch"],
        "'nosuch' cannot be read: No such file",
        ["submit", "backup", "--input", "@there"],
    ),
    (
        "input file is a folder",
        ["submit", "backup", "--input", "@."],
        "'.' cannot be read: Is a directory",
        ["submit", "backup", "--input", "@there"],
    ),
    (
        "priority is no number",
        ["submit", "backup", "--priority", "high"],
        "--priority must be a whole number",
        ["submit", "backup", "--priority", "-3"],
    ),
    (
        "priority out of bounds",
        ["submit", "backup", "--priority", "1001"],
        "--priority must be a whole number",
        ["submit", "backup", "--priority", "1000"],
    ),
]


@pytest.mark.parametrize(
    ("line", "message", "right"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_bad_submission_is_one_line_and_creates_nothing(
    home: CommandHome,
    line: list[str],
    message: str,
    right: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(home.folder)
    (home.folder / "there").write_bytes(b"input")
    before = home.everything()

    assert cli.main(["--home", str(home.home), *line]) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err.splitlines()[0]
    assert len(said.err.splitlines()) <= 2
    assert home.everything() == before

    assert cli.main(["--home", str(home.home), *right]) == 0
    assert capsys.readouterr().out == "w1\n"
    assert len(home.works()) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            [
                "--",
            ],
            "the command is missing",
        ),
        ([], "the command is missing"),
        (["ls", "-l"], "the command goes behind --"),
        (["--bindng", "x", "--", "ls"], "tenure run has no option --bindng; did you mean `--binding`?"),
        (["--json", "--", "ls"], "tenure run has no option --json"),
        (["--env", "TENURE_X=1", "--", "ls"], "TENURE_X is not yours to set"),
    ],
)
def test_bad_run_is_refused_before_any_home_is_looked_for(line: list[str], message: str) -> None:
    with pytest.raises(TenureError, match=message.replace("?", "\\?").replace("`", "`")) as caught:
        run.parse(line)

    assert caught.value.exit_code == 2


def test_run_takes_all_it_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    wanted = run.parse(
        ["--scope", "ops", "--env", "B=2", "--env", "A=1", "--env", "B=3", "--input", "hi", "--", "ls", "--", "-l"]
    )

    assert wanted == NewWork(
        scope="ops",
        binding=None,
        command=("ls", "--", "-l"),
        env=(("A", "1"), ("B", "3")),
        cwd=str(tmp_path),
        input=b"hi",
        submitted_by=wanted.submitted_by,
    )
    assert wanted.submitted_by.endswith(" via run")


def test_run_of_a_binding_needs_no_command() -> None:
    assert run.parse(["--binding", "backup"]).command is None


def test_submission_starts_in_the_configurations_folder() -> None:
    work = submit.parse(["--", "ls"]).work
    assert work is not None
    assert work.cwd is None


def test_run_in_a_folder_that_is_gone_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(TenureError, match="working directory cannot be used") as caught:
        run.parse(["--", "ls"])

    assert caught.value.exit_code == 2
    monkeypatch.chdir(tmp_path)
    assert run.parse(["--", "ls"]).cwd == str(tmp_path)


def test_input_comes_from_text_file_or_standard_input(home: CommandHome) -> None:
    (home.folder / "file").write_bytes(b"\x00\xff")

    for given in ("text", "@file", "-"):
        assert home.call("submit", "--input", given, "--", "cat", stdin=b"from here\n").code == 0

    inputs = home.store.read(lambda tx: tx.inputs([1, 2, 3]))
    assert [each.body for each in inputs] == [b"text", b"\x00\xff", b"from here\n"]


def test_standard_input_is_read_no_further_than_the_limit(home: CommandHome) -> None:
    said = home.call("submit", "--input", "-", "--", "cat", stdin=b"x" * (INPUT_BYTES_MAX + 1))

    assert (said.code, home.works()) == (2, [])
    assert home.call("submit", "--input", "-", "--", "cat", stdin=b"x" * INPUT_BYTES_MAX).code == 0


LATER = [
    (["store", "retain"], ["store", "check"]),
]


@pytest.mark.parametrize(("line", "right"), LATER)
def test_what_comes_later_is_refused_as_such(
    home: CommandHome, line: list[str], right: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--home", str(home.home), *line]) == 1
    assert "not supported in this version" in capsys.readouterr().err
    assert home.works() == []

    assert cli.main(["--home", str(home.home), *right]) == 0


READS_REFUSED = [
    (["work"], 2, "list, show, logs, cancel, retry, hold, release, inject or interrupt?", ["work", "list"]),
    (["work", "lsit"], 2, "tenure work has no 'lsit'; did you mean `list`?", ["work", "list"]),
    (["work", "list", "--state", "runing"], 2, "no work is ever 'runing'; did you mean `running`?", ["work", "list", "--state", "running"]),
    (["work", "list", "--limit", "0"], 2, "--limit must be a whole number from 1 to 1000", ["work", "list", "--limit", "1"]),
    (["work", "list", "--after", "x"], 2, "--after must be a whole number", ["work", "list", "--after", "w1"]),
    (["work", "show"], 2, "Its id is missing", ["work", "show", "w1"]),
    (["work", "show", "41"], 2, "'41' is no work's id", ["work", "show", "w1"]),
    (["work", "show", "w2"], 1, "there is no work w2", ["work", "show", "w1"]),
    (["work", "show", "--jsn", "w1"], 2, "no option --jsn; did you mean `--json`?", ["work", "show", "--json", "w1"]),
    (["work", "logs", "w2"], 1, "there is no work w2", ["work", "logs", "w1"]),
    (["work", "logs", "w1", "--attempt", "1"], 1, "w1 has no attempt 1", ["work", "logs", "w1"]),
    (["work", "logs", "w1", "--stdout", "--stderr"], 2, "--stdout or --stderr", ["work", "logs", "w1", "--stderr"]),
    (["work", "cancel", "w2"], 1, "no work w2", ["work", "cancel", "w1"]),
    (["status", "x"], 2, "what is 'x' for?", ["status"]),
    (["capacity", "--jso"], 2, "no option --jso; did you mean `--json`?", ["capacity", "--json"]),
    (["doctor", "--fix"], 2, "no option --fix", ["store", "check"]),
    (["store"], 2, "check, backup, adopt or migrate?", ["store", "check"]),
    (["store", "chek"], 2, "tenure store has no 'chek'; did you mean `check`?", ["store", "check"]),
    (["store", "adopt"], 1, "nothing to adopt", ["store", "migrate"]),
    (["attempt"], 2, "show, reconcile, confirm-stopped or cancel?", ["capacity"]),
    (["attempt", "shwo", "w1.1"], 2, "tenure attempt has no 'shwo'; did you mean `show`?", ["capacity"]),
    (["attempt", "show"], 2, "which attempt? Its id is missing", ["work", "show", "w1"]),
    (["work", "list", "--reason", "ful"], 2, "nothing waits for 'ful'", ["work", "list", "--reason", "disk_full"]),
    (["work", "cancel", "w1", "--wait", "5"], 2, '--wait: "5" needs a unit, e.g. "5s"', ["work", "cancel", "w1", "--wait", "0s"]),
    (["work", "cancel", "w1", "--wait", "25h"], 2, "--wait: must be from 0s to 1d", ["work", "cancel", "w1", "--wait", "0s"]),
    (["work", "cancel", "w1", "--wait", "soon"], 2, '--wait: "soon" is no duration', ["work", "cancel", "w1", "--wait", "0s"]),
    (["store", "backup", ""], 2, "no name of a file", ["store", "backup"]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "message", "right"), READS_REFUSED)
def test_bad_question_is_one_line(
    home: CommandHome, line: list[str], code: int, message: str, right: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    home.submit()
    before = home.everything()

    assert cli.main(["--home", str(home.home), *line]) == code

    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err.splitlines()[0]
    assert home.everything() == before
    assert cli.main(["--home", str(home.home), *right]) == 0


@pytest.mark.parametrize(
    "command", ["run -- true", "submit -- true", "status", "work list", "capacity", "doctor", "store check"]
)
def test_without_a_home_nothing_is_made(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"

    assert cli.main(["--home", str(missing), *command.split()]) == 3
    assert "does not exist" in capsys.readouterr().err
    assert not missing.exists()

    (tmp_path / "strange").mkdir()
    assert cli.main(["--home", str(tmp_path / "strange"), *command.split()]) == 3
    assert "is not a home of tenure" in capsys.readouterr().err
    assert list((tmp_path / "strange").iterdir()) == []


def test_error_is_an_object_with_json(home: CommandHome) -> None:
    said = home.call("work", "show", "w9", "--json")

    assert (said.code, said.out) == (1, "")
    assert '"code": "not_found"' in said.err


def test_limits_are_the_kernels(tmp_path: Path) -> None:
    import errno
    import subprocess

    assert subprocess.run(["true", "x" * request.ARGUMENT_BYTES_MAX], check=False).returncode == 0
    with pytest.raises(OSError) as caught:  # noqa: PT011 - its number is looked at
        subprocess.run(["true", "x" * (request.ARGUMENT_BYTES_MAX + 1)], check=False)
    assert caught.value.errno == errno.E2BIG
