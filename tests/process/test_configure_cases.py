"""What others' configurations got away with is refused from outside: one line, nothing changed, and it says what stays active."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared import cli
from shared.config import loader
from shared.config.arguments import ARGUMENT_BYTES_MAX, total_bytes_max
from shared.config.loader import FILE_BYTES_MAX
from shared.model.settings import Binding, Config, Grant, ScopeConfig
from shared.policy.binding import resolve
from tests.support.command_homes import CommandHome, command_home

BINDING = '[binding.a]\ncommand = ["true"]\n'
LONGEST = "x" * ARGUMENT_BYTES_MAX
WHOLE_FILE = "a fault without a line of its own"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CommandHome]:
    with command_home(tmp_path) as home:
        home.activate(Config(bindings=(Binding("old", ("true",)),)))
        yield home


def apply(home: CommandHome, text: str | bytes) -> int:
    file = home.folder / "tenure.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return cli.main(["--home", str(home.home), "apply", str(file)])


# (case, text, line or WHOLE_FILE, what the line says, the text put right)
REFUSED: list[tuple[str, str, int | str, str, str]] = [
    ("C066 misspelt", BINDING + "max_atempts = 1", 3, 'unknown key "max_atempts" in binding.a', BINDING),
    ("C066 plural of a unit", BINDING + "timeout_second = 5", 3, 'unknown key "timeout_second"', BINDING),
    ("C066 wrong level", 'timeout = "5s"', 1, 'unknown key "timeout"', '[settings]\ntimeout = "5s"'),
    ("C066 twice", "[settings]\nslots = 1\nslots = 1", 3, "defined twice, first on line 2", "[settings]\nslots = 1"),
    ("C066 text for a number", '[settings]\nslots = "5"', 2, 'whole number, not "5"', "[settings]\nslots = 5"),
    ("C066 no unit", "[settings]\nlease = 60", 2, 'with its unit, e.g. "60s"', '[settings]\nlease = "60s"'),
    ("C066 on", BINDING + "sandbox = { network = on }", 3, "not TOML", BINDING + "sandbox = { network = true }"),
    ("C066 no", BINDING + 'sandbox = { network = "no" }', 3, "true or false", BINDING + "sandbox = { network = false }"),
    ("C066 exponent", "[settings]\nslots = 1e3", 2, "whole number, not 1E+3", "[settings]\nslots = 1000"),
    ("C066 leading zero", "[settings]\nslots = 08", 2, "not TOML", "[settings]\nslots = 8"),
    ("C066 below zero", "[settings]\nconcurrency = -1", 2, "from 0 (unbounded)", "[settings]\nconcurrency = 0"),
    ("C066 bomb", "x = " + "{a=" * 20_000, WHOLE_FILE, "nested too deep", BINDING),
    ("C066 too large", "#" * (FILE_BYTES_MAX + 1), WHOLE_FILE, "larger than 16 MiB", "#" * 5_000_000),
    ("C068 argument", f'[binding.a]\ncommand = ["x", "{LONGEST}x"]', 2, "131,072 bytes", f'[binding.a]\ncommand = ["x", "{LONGEST}"]'),
    ("C068 variable", BINDING + f'env = {{ A = "{LONGEST[2:]}x" }}', 3, "131,072 bytes", BINDING + f'env = {{ A = "{LONGEST[2:]}" }}'),
    ("C069 a line of shell", '[binding.a]\ncommand = "date +%H:%M"', 2, "must be a list", '[binding.a]\ncommand = ["date", "+%H:%M"]'),
    ("E02 unknown binding", BINDING + '[scope.ops]\nbinding = "b"', 4, 'no binding "b" in this file', BINDING + '[scope.ops]\nbinding = "a"'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "message", "right"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_bad_reload_is_one_line_and_keeps_the_old_configuration_and_says_so(
    home: CommandHome, text: str, line: int | str, message: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = home.everything()

    assert apply(home, text) == 2

    said = capsys.readouterr()
    first = said.err.splitlines()[0]
    where = f"{home.folder}/tenure.toml:" + ("" if line == WHOLE_FILE else f"{line}:")
    assert first.startswith(f"tenure: {where} ")
    assert message in first
    assert first.endswith("; generation 1 stays active")
    assert (said.out, len(first) < 400, len(said.err.splitlines()) <= 2) == ("", True, True)
    assert home.everything() == before

    assert apply(home, right) == 0
    assert "generation 2 is active" in capsys.readouterr().out


# Habits of other formats that mean the same here.
SAME: list[tuple[str, bytes]] = [
    ("C066 tabs", b'\t[binding.a]\n\tcommand\t=\t["sh", "-c", "date +%H:%M >> \\"my file.txt\\""]\n'),
    ("C066 byte-order mark", b'\xef\xbb\xbf[binding.a]\ncommand = ["sh", "-c", "date +%H:%M >> \\"my file.txt\\""]\n'),
    ("C069 CRLF, no last newline", b'[binding.a]\r\ncommand = ["sh", "-c", "date +%H:%M >> \\"my file.txt\\""]'),
    (
        "C069 comment, trailing spaces",
        b'[binding.a]  \ncommand = ["sh", "-c", \'date +%H:%M >> "my file.txt"\']  # % #',
    ),
]


@pytest.mark.parametrize("text", [row[1] for row in SAME], ids=[row[0] for row in SAME])
def test_a_percent_sign_is_an_ordinary_character_and_the_last_line_counts(home: CommandHome, text: bytes) -> None:
    assert apply(home, text) == 0

    active = home.store.read(lambda tx: tx.config())
    assert active is not None
    binding = Config.from_json(active.body).binding("a")
    assert binding is not None
    assert binding.command == ("sh", "-c", 'date +%H:%M >> "my file.txt"')


def test_c066_an_empty_file_is_the_defaults_and_says_what_is_gone(
    home: CommandHome, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply(home, "") == 0

    assert "gone: binding old" in capsys.readouterr().out


def test_c066_of_very_many_faults_only_the_first_is_put_into_words(
    home: CommandHome, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guessed: list[str] = []
    monkeypatch.setattr(loader, "likely", lambda word, known: guessed.append(word))

    assert apply(home, "[settings]\n" + "".join(f"k{number} = 1\n" for number in range(2000))) == 2

    assert 'unknown key "k0" in settings (and 1999 more faults in this file)' in capsys.readouterr().err
    assert guessed == ["k0"]


def test_of_very_many_changes_only_the_first_are_listed(home: CommandHome, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(home, "".join(f'[binding.b{number}]\ncommand = ["true"]\n' for number in range(1000))) == 0

    assert "binding b115 and 980 more; gone: binding old" in capsys.readouterr().out


def test_c068_all_together_must_fit_and_the_way_round_is_named(
    home: CommandHome, capsys: pytest.CaptureFixture[str]
) -> None:
    words = '"' + "x" * 100_000 + '", '

    assert apply(home, f'[binding.a]\ncommand = ["x", {words * (total_bytes_max() // 100_000 + 1)}]') == 2
    said = capsys.readouterr().err
    assert "bytes together, this host takes" in said
    assert "pass it by file or standard input" in said

    assert apply(home, f'[binding.a]\ncommand = ["x", {words * (total_bytes_max() // 100_000 - 1)}]') == 0


@pytest.mark.req("E10")
def test_a_secret_written_into_the_file_is_refused_and_shown_nowhere(
    home: CommandHome, capsys: pytest.CaptureFixture[str]
) -> None:
    before = home.everything()

    assert apply(home, BINDING + '[binding.a.secrets]\nKEY = "hunter2"') == 2
    assert "hunter2" not in capsys.readouterr().err
    assert home.everything() == before

    assert apply(home, BINDING + '[binding.a.secrets]\nKEY = "env:HUNTER"') == 0, "control"


SCOPED = Config(
    scopes=(ScopeConfig("ops", binding="careful"),),
    bindings=(
        Binding(
            "careful",
            ("./careful.sh",),
            env=(("LEVEL", "1"),),
            secrets=(("API_KEY", "env:KEY"),),
            grants=(Grant("deploy", env=(("TARGET", "prod"),)),),
        ),
    ),
)


@pytest.mark.req("E02")
@pytest.mark.req("E18")
def test_work_handed_in_to_a_scope_takes_its_binding_and_the_grants_it_asks_for(
    home: CommandHome, capsys: pytest.CaptureFixture[str]
) -> None:
    home.activate(SCOPED)

    for words in (["--scope", "ops/x"], ["--scope", "ops", "--grant", "deploy", "--", "true"]):
        assert cli.main(["--home", str(home.home), "submit", *words]) == 0

    assert capsys.readouterr().out == "w1\nw2\n"
    plain, bare = home.store.read(lambda tx: tx.works(states=(), after=0, limit=9))
    first = resolve(plain, SCOPED, generation=2, folder="/", inputs=())
    second = resolve(bare, SCOPED, generation=2, folder="/", inputs=())
    assert first is not None
    assert second is not None
    assert (first.binding, first.command, first.grants) == ("careful", ("./careful.sh",), ())
    assert (second.binding, second.command, second.grants) == ("careful", ("true",), ("deploy",))
    assert dict(second.env) == {"LEVEL": "1", "TARGET": "prod"}


# (the command line, what the one line says, the same put right)
UNRESOLVED: list[tuple[list[str], str, list[str]]] = [
    (["--scope", "other"], "neither a command nor a binding", ["--scope", "ops"]),
    (["careful", "--grant", "deplo"], "no grant 'deplo'; did you mean `deploy`?", ["careful", "--grant", "deploy"]),
    (["--grant", "deploy", "--", "true"], "a command without a binding has no grant", ["--", "true"]),
    (["careful", "--grant", "a b"], "'a b' is no name of a grant", ["careful"]),
    (["careful", "--env", "API_KEY=x"], "API_KEY is a secret of binding careful", ["careful", "--env", "API=x"]),
]


@pytest.mark.req("E18")
@pytest.mark.parametrize(("words", "message", "right"), UNRESOLVED)
def test_what_could_never_start_is_not_handed_in(
    home: CommandHome, words: list[str], message: str, right: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    home.activate(SCOPED)
    before = home.everything()

    assert cli.main(["--home", str(home.home), "submit", *words]) == 2
    said = capsys.readouterr()
    assert (said.out, message in said.err.splitlines()[0]) == ("", True)
    assert home.everything() == before

    assert cli.main(["--home", str(home.home), "submit", *right]) == 0
