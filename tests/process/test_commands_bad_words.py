"""Words that are no text, or too long, at every place of every command that takes one: one line that says which, exit code 2, and
nothing is changed. Beside each stands the same line with a good word, accepted; and ids that name nothing, refused with 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.commands.arguments import REASON_CHARS_MAX
from shared.commands.request import INPUT_BYTES_MAX
from shared.model.event import DATA_BYTES_MAX, WORD_CHARS_MAX
from shared.model.settings import Binding, Config
from shared.model.work import WorkKind
from shared.policy.submission import KEY_CHARS_MAX
from shared.store.values import GateHold
from tests.support.command_homes import Ask, CommandHome, ending

NUL, NO_UTF8 = "a\0b", "a\udcffb"  # the second is what Python makes of a byte that is no UTF-8
CONFIG = Config(
    bindings=(
        Binding("backup", ("true",)),
        Binding("feed", ("cat",), kind=WorkKind.STANDING),
        Binding("old", ("true",)),
    )
)

Line = Callable[[str], list[str]]

# (the command line with a word in it, what the refusal names, a good word, the most characters; None: of another rule)
PLACES: dict[str, tuple[Line, str, str, int | None]] = {
    "submit key": (lambda word: ["submit", "backup", "--key", word], "--key", "k", KEY_CHARS_MAX),
    "submit correlate": (lambda word: ["submit", "backup", "--correlate", word], "--correlate", "c", WORD_CHARS_MAX),
    "submit scope": (lambda word: ["submit", "backup", "--scope", word], "--scope", "ops", 255),
    "submit grant": (lambda word: ["submit", "backup", "--grant", word], "--grant", "", None),
    "submit binding": (lambda word: ["submit", word], "no binding", "backup", 63),
    "input key": (lambda word: ["submit", "w2", "--input", "x", "--key", word], "--key", "k", KEY_CHARS_MAX),
    "inject key": (lambda word: ["work", "inject", "w3", "--input", "x", "--key", word], "--key", "k", KEY_CHARS_MAX),
    "interrupt reason": (lambda word: ["work", "interrupt", "w3", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "retry reason": (lambda word: ["work", "retry", "w4", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "hold reason": (lambda word: ["work", "hold", "w1", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "release reason": (lambda word: ["work", "release", "w6", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "cancel reason": (lambda word: ["work", "cancel", "w1", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "admit reason": (lambda word: ["gate", "admit", "w5", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "admit key": (lambda word: ["gate", "admit", "w5", "--key", word], "--key", "k", KEY_CHARS_MAX),
    "refuse reason": (lambda word: ["gate", "refuse", "w5", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "quarantine reason": (lambda word: ["binding", "quarantine", "backup", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "quarantine name": (lambda word: ["binding", "quarantine", word, "--reason", "r"], "no name of a binding", "backup", 63),
    "lift reason": (lambda word: ["binding", "release", "old", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "event type": (lambda word: ["event", "publish", word], "the type of an event", "review.given", 100),
    "event correlate": (lambda word: ["event", "publish", "a.b", "--correlate", word], "--correlate", "c", WORD_CHARS_MAX),
    "event data": (lambda word: ["event", "publish", "a.b", "--data", json.dumps(word)], "--data", "d", DATA_BYTES_MAX - 2),
    "reconcile reason": (lambda word: ["attempt", "reconcile", "w7.1", "--failed", "--reason", word], "--reason", "r", REASON_CHARS_MAX),
    "show id": (lambda word: ["work", "show", word], "no work's id", "w1", 20),
    "inject id": (lambda word: ["work", "inject", word, "--input", "x"], "no work's id", "w3", 20),
}  # fmt: skip
WORDS = {"nul": NUL, "no_utf8": NO_UTF8, "too_long": None}


@pytest.fixture
def lived_in(home: CommandHome) -> CommandHome:
    """w1 ready, w2 at rest, w3 running, w4 failed, w5 at a gate, w6 held, w7 for a person to settle; `old` in quarantine."""
    home.activate(CONFIG)
    worker = home.staff()
    home.submit()
    home.submit(kind=WorkKind.STANDING)
    home.launch(worker)
    home.end(home.launch(worker), ending(3))
    home.try_claim(home.submit(), worker, gate_hold=GateHold("approval", "needs approval of a person"))
    held = home.submit()
    home.store.write(lambda tx: tx.hold_work(held, by="a test", reason="wait"))
    home.abandon(home.launch(worker))
    home.store.write(lambda tx: tx.quarantine_binding("old", by="a test", reason="broken"))
    assert [str(state) for state in home.states().values()] == [
        *("ready", "idle", "running", "failed", "held", "held", "running")
    ]
    return home


def contents(home: CommandHome) -> Any:
    """All that a refused command must leave alone, bindings and inputs included."""
    inputs = home.store.read(lambda tx: tx.inputs(range(1, 100)))
    return home.everything(), home.store.read(lambda tx: tx.routines(limit=99)), inputs


def assert_refused(home: CommandHome, ask: Ask, line: list[str], names: str, code: int) -> None:
    """In one line with a hint, and with `--json` as an object."""
    before = contents(home)
    said = ask(*line)
    assert (said.code, said.out) == (code, ""), said
    first, *hint = said.err.splitlines()
    assert names in first
    assert len(hint) <= 1
    assert len(first) < 1_200
    said = ask(*line, "--json")
    assert (said.code, said.out) == (code, ""), said
    told = json.loads(said.err)["error"]
    assert set(told) == {"code", "message", "hint"}
    assert contents(home) == before


@pytest.mark.req("V05")
@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_word_that_cannot_be_is_refused_in_one_line_and_changes_nothing(
    lived_in: CommandHome, ask: Ask, place: str, kind: str
) -> None:
    line, names, good, most = PLACES[place]
    word = WORDS[kind] or "x" * ((most or 63) + 1)

    assert_refused(lived_in, ask, line(word), names, code=2)

    if most is not None:
        accepted = ask(*line(good))
        assert accepted.code == 0, accepted


@pytest.mark.parametrize(
    ("place", "length"),
    [
        (place, most)
        for place, (_, _, good, most) in PLACES.items()
        if most is not None and good in ("k", "c", "r", "d")
    ],
)
def test_the_longest_word_that_may_be_is_taken_whole(lived_in: CommandHome, ask: Ask, place: str, length: int) -> None:
    line = PLACES[place][0]

    said = ask(*line("ü" * (length // 2) if place == "event data" else "ü" * length))

    assert said.code == 0, said
    told = lived_in.store.read(lambda tx: tx.events(after=0, limit=1_000))[-9:]
    if "--reason" in line(""):
        assert any("ü" * length in event.data.values() for event in told), "none of it is cut off"


@pytest.mark.parametrize("line", [["submit", "w2"], ["work", "inject", "w3"], ["submit", "feed"]], ids=" ".join)
def test_input_is_bytes_of_any_kind_up_to_a_bound(lived_in: CommandHome, ask: Ask, line: list[str]) -> None:
    assert_refused(lived_in, ask, [*line, "--input", "x" * (INPUT_BYTES_MAX + 1)], "--input: more than", code=2)
    numbers = range(1, 100)
    before = len(lived_in.store.read(lambda tx: tx.inputs(numbers)))

    for word in (NUL, NO_UTF8, "x" * INPUT_BYTES_MAX):
        assert ask(*line, "--input", word).code == 0

    kept = lived_in.store.read(lambda tx: tx.inputs(numbers))[before:]
    assert [each.body for each in kept] == [b"a\0b", b"a\xffb", b"x" * INPUT_BYTES_MAX]


NOWHERE = [
    *(["work", verb, "w99"] for verb in ("retry", "hold", "release", "interrupt", "cancel", "show", "logs")),
    ["work", "inject", "w99", "--input", "x"],
    ["submit", "w99", "--input", "x"],
    ["gate", "admit", "w99"],
    ["gate", "refuse", "w99", "--reason", "r"],
    ["attempt", "show", "w99.1"],
    ["attempt", "cancel", "w1.9"],
    ["attempt", "reconcile", "w99.1", "--failed", "--reason", "r"],
    ["attempt", "confirm-stopped", "w99.1", "--epoch", "1", "--reason", "r"],
    ["binding", "quarantine", "nosuch", "--reason", "r"],
    ["binding", "release", "backup", "--reason", "r"],
]


@pytest.mark.parametrize("line", NOWHERE, ids=" ".join)
def test_an_id_that_names_nothing_is_refused_with_1(lived_in: CommandHome, ask: Ask, line: list[str]) -> None:
    name = next(word for word in line if word in ("w99", "w99.1", "w1.9", "nosuch", "backup"))

    assert_refused(lived_in, ask, line, name.removesuffix(".1"), code=1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["tool", "trun", "x"], "'trun' is none of turn, wait, outcome, usage, input; did you mean `turn`?"),
        (["tool"], "turn|wait|outcome|usage|input is missing"),
        (["tool", "input", "--took", "x"], "--took: 'x' is no whole number"),
        (["event", "publsh", "a.b"], "'publsh' is none of publish; did you mean `publish`?"),
        (["event", "publish"], "TYPE is missing"),
        (["events", "--after", "08"], "--after must be a whole number from 0"),
        (["events", "--limit", "0"], "--limit must be a whole number from 1 to 10000"),
        (["budget", "lsit"], "tenure budget has no 'lsit'"),
        (["submit", "--kind", "standin", "--", "true"], "'standin' is none of run_once, standing; did you mean `standing`?"),
        (["tool", "turn", "done"], "this is no job of tenure, or one that cannot speak"),
    ],
)  # fmt: skip
def test_a_command_line_that_is_wrong_says_what_would_be_right(
    lived_in: CommandHome, ask: Ask, line: list[str], told: str
) -> None:
    before = contents(lived_in)

    said = ask(*line)

    assert (said.code, said.out) == (2, "")
    assert told in said.err.splitlines()[0]
    assert contents(lived_in) == before
