"""What a program may declare of itself, what it comes to, and how a segment ends by it."""

from __future__ import annotations

import json
import re

import pytest

from shared.errors import DeclarationError
from shared.model.attempt import AttemptState, Ending, FailureClass, RetryHint
from shared.model.declaration import (
    BODY_BYTES_MAX,
    Declaration,
    Recorded,
    declaration_of,
    outcome_of,
    parse_json,
    usage_declared,
)
from shared.model.outcome import Outcome, OutcomeKind, Turn, WaitSpec
from shared.model.usage import Usage
from shared.policy.outcome import Park, Unproven, end_of
from shared.policy.settle import ending_of_status

GOOD: dict[str, tuple[str, object]] = {
    "turn": ("turn", {"status": "done", "comment": "all tests pass"}),
    "turn, 64 long": ("turn", {"status": "a" + "-" * 63}),
    "wait for an event": ("wait", {"event": {"type": "review.given", "correlate": "pr-7"}, "resume": True}),
    "a question": ("wait", {"ask": "deploy?", "event": {"type": "answer.given"}, "timer": "1h"}),
    "wait for a while": ("wait", {"timer": "5m", "resume": False}),
    "wait until a date": ("wait", {"timer": "2030-01-31T08:00:00+01:00"}),
    "completed": ("outcome", {"kind": "completed", "summary": "ok", "artifacts": ["file:a"]}),
    "failed": ("outcome", {"kind": "failed", "permanent": True}),
    "failed, reset known": ("outcome", {"kind": "failed", "retry": {"reset_at": "2030-01-31T08:00:00Z"}}),
    "failed, reset unknown": ("outcome", {"kind": "failed", "retry": {"unknown": True}}),
    "usage": ("usage", {"units": {"usd": "0.25", "tokens": 1200, "x": 1.5}}),
    "consumed": ("consumed", {"inputs": [1, 2]}),
}
BAD: dict[str, tuple[str, object]] = {
    "no such kind": ("shout", {}),
    "no object": ("turn", []),
    "another field": ("turn", {"status": "done", "colour": "red"}),
    "no status": ("turn", {"comment": "x"}),
    "status with a capital": ("turn", {"status": "Done"}),
    "status that begins with a digit": ("turn", {"status": "1st"}),
    "status of 65": ("turn", {"status": "a" * 65}),
    "a NUL": ("turn", {"status": "done", "comment": "a\0b"}),
    "a lone surrogate": ("turn", {"status": "done", "comment": "a\ud800b"}),
    "a lone surrogate in a name": ("usage", {"units": {"\udfff": 1}}),
    "a wait for nothing": ("wait", {"resume": True}),
    "a question that nothing answers": ("wait", {"ask": "deploy?", "timer": "1h"}),
    "a question of 501": ("wait", {"ask": "x" * 501, "event": {"type": "answer.given"}}),
    "a time before the calendar": ("wait", {"timer": "0001-01-01T00:00:00+23:00"}),
    "a day that no month has": ("wait", {"timer": "2030-02-30T08:00:00Z"}),
    "a week": ("wait", {"timer": "2030-W05-4T08:00:00Z"}),
    "a wait for no type": ("wait", {"event": {"correlate": "x"}}),
    "a time without a unit": ("wait", {"timer": "5"}),
    "a time without a zone": ("wait", {"timer": "2030-01-31T08:00:00"}),
    "more than a year": ("wait", {"timer": "366d"}),
    "bare waiting": ("outcome", {"kind": "waiting"}),
    "another outcome": ("outcome", {"kind": "done"}),
    "permanent success": ("outcome", {"kind": "completed", "permanent": True}),
    "permanent and to be retried": ("outcome", {"kind": "failed", "permanent": True, "retry": {"unknown": True}}),
    "a hint that says nothing": ("outcome", {"kind": "failed", "retry": {}}),
    "artifacts that are no list": ("outcome", {"kind": "completed", "artifacts": "file:a"}),
    "no units": ("usage", {"units": {}}),
    "an amount that is none": ("usage", {"units": {"usd": "a lot"}}),
    "an infinite amount": ("usage", {"units": {"usd": "Infinity"}}),
    "a true amount": ("usage", {"units": {"usd": True}}),
    "inputs that are no numbers": ("consumed", {"inputs": ["1"]}),
    "input 0": ("consumed", {"inputs": [0]}),
}


@pytest.mark.req("O06", "O08", "O15")
@pytest.mark.parametrize("name", GOOD)
def test_what_makes_sense_is_taken_and_read_back(name: str) -> None:
    kind, body = GOOD[name]

    declaration = declaration_of("k-1", kind, body)

    assert declaration.kind == kind
    outcome_of([Recorded(declaration, 1, 0, 1, None)])


@pytest.mark.req("O06", "O08", "O15")
@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused_by_its_type(name: str) -> None:
    kind, body = BAD[name]

    with pytest.raises(DeclarationError):
        declaration_of("k-1", kind, body)


@pytest.mark.parametrize("key", ["", "a b", "x" * 65, None, 7, "-a"])
def test_a_key_is_a_short_word(key: object) -> None:
    with pytest.raises(DeclarationError, match="key"):
        declaration_of(key, "turn", {"status": "done"})
    declaration_of("a.b_c:d-1", "turn", {"status": "done"})  # the control


def test_a_declaration_is_bounded() -> None:
    artifacts = ["ä" * 1_000] * 33
    with pytest.raises(DeclarationError, match="64 KiB"):
        declaration_of("k", "outcome", {"kind": "completed", "artifacts": artifacts})
    fits = declaration_of("k", "outcome", {"kind": "completed", "artifacts": artifacts[:30]})
    assert 60_000 < len(fits.body.encode()) <= BODY_BYTES_MAX


@pytest.mark.parametrize("text", [b"{", b"\xff", b'{"a":1,"a":2}', b"NaN", b"[" * 100_000, b"1e999", b'{"a":[-1e400]}'])
def test_what_is_no_strict_json_is_refused(text: bytes) -> None:
    with pytest.raises(DeclarationError):
        parse_json(text)
    assert parse_json(b'{"a":1,"b":2.5e3}') == {"a": 1, "b": 2500.0}


def recorded(*declared: tuple[str, object]) -> list[Recorded]:
    made = [declaration_of(f"k-{seq}", kind, body) for seq, (kind, body) in enumerate(declared, 1)]
    return [Recorded(one, seq, 0, 1, None) for seq, one in enumerate(made, 1)]


def test_the_last_turn_and_the_last_of_waits_and_outcomes_count() -> None:
    outcome = outcome_of(recorded(GOOD["wait for an event"], GOOD["turn"], GOOD["completed"], GOOD["turn, 64 long"]))

    assert outcome.kind is OutcomeKind.COMPLETED
    assert outcome.turn == Turn("a" + "-" * 63, "")
    assert (outcome.wait, outcome.summary, outcome.artifacts) == (None, "ok", ("file:a",))
    later = outcome_of(recorded(GOOD["completed"], GOOD["wait for an event"]))
    assert later == Outcome(OutcomeKind.WAITING, wait=WaitSpec("review.given", "pr-7", None, None, True, since_seq=2))


@pytest.mark.req("O02")
def test_inputs_are_kept_once() -> None:
    assert outcome_of(recorded(("consumed", {"inputs": [3, 1]}), ("consumed", {"inputs": [1, 2]}))).consumed == (
        3,
        1,
        2,
    )


@pytest.mark.req("O10")
def test_a_hint_says_when_or_that_nobody_knows() -> None:
    known, unknown = (
        outcome_of(recorded(GOOD["failed, reset known"])),
        outcome_of(recorded(GOOD["failed, reset unknown"])),
    )

    assert known.retry == RetryHint(1_896_076_800_000_000)
    assert unknown.retry == RetryHint(None)


@pytest.mark.req("B02")
@pytest.mark.parametrize(
    ("units", "why"),
    [
        ({"turns": 1}, "turns are counted by tenure itself"),
        ({"attempts": 1}, "attempts are counted by tenure itself"),
        ({"USD": 1}, "'USD' is no name for a unit"),
        ({"usd": -0.5}, "-0.5 usd: an amount is a number from 0 to 1000000000000"),
        ({"usd": "1e13"}, "an amount is a number from 0"),
        ({"usd": "٣"}, "usd: '٣' is no amount"),
        ({"usd": "1_000"}, "usd: '1_000' is no amount"),
        ({"usd": 10**5000}, "usd: a int is no amount"),
        ({"usd": [1]}, "usd: a list is no amount"),
        ({f"u{number}": 1 for number in range(17)}, "`units` has 1 to 16 units"),
    ],
)
def test_usage_that_no_budget_could_count_is_refused_where_it_is_said(units: object, why: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(why)) as caught:
        declaration_of("k-1", "usage", {"units": units})

    assert caught.value.code in ("usage_invalid", "declaration_invalid")
    good = declaration_of("k-1", "usage", {"units": {"usd": "0.50", "tokens": 3, "minutes": 1e-3}})
    assert usage_declared(good) == Usage.from_plain({"minutes": "0.001", "tokens": "3", "usd": "0.5"})


# --- how a segment ends

ENDED, FAILED, LOST = ending_of_status(0, "S1"), ending_of_status(7, "S1"), ending_of_status(None, "S1")
WAITING = Outcome(OutcomeKind.WAITING, wait=WaitSpec("tick", None, None, None, resume=True))
NEXT_WAITS = Outcome(OutcomeKind.WAITING, wait=WaitSpec("tick", None, None, None, resume=False))


def ending(end: object) -> tuple[AttemptState, FailureClass | None, int | None]:
    assert isinstance(end, Ending)
    return end.state, end.failure, end.exit_status


@pytest.mark.req("O15")
def test_without_a_word_the_exit_status_decides() -> None:
    assert end_of(ENDED, Outcome(turn=Turn("done", ""))) is ENDED
    assert end_of(FAILED, Outcome(turn=Turn("done", ""))) is FAILED


@pytest.mark.req("O15")
def test_a_word_goes_before_the_exit_status() -> None:
    assert ending(end_of(FAILED, Outcome(OutcomeKind.COMPLETED))) == (AttemptState.SUCCEEDED, None, 7)
    assert ending(end_of(ENDED, Outcome(OutcomeKind.FAILED))) == (AttemptState.FAILED, FailureClass.KNOWN, 0)
    assert ending(end_of(ENDED, Outcome(OutcomeKind.HANDOFF))) == (AttemptState.HANDED_OFF, None, 0)


@pytest.mark.req("O15", "M02")
@pytest.mark.parametrize("kind", OutcomeKind)
def test_nothing_that_was_not_seen_to_end_is_what_it_said(kind: OutcomeKind) -> None:
    assert end_of(LOST, Outcome(kind, wait=WAITING.wait if kind is OutcomeKind.WAITING else None)) is LOST


@pytest.mark.req("O10", "O11")
def test_a_failure_carries_its_hint_and_whether_it_is_for_good() -> None:
    hinted = end_of(ENDED, Outcome(OutcomeKind.FAILED, retry=RetryHint(None), summary="quota\nused up"))
    assert isinstance(hinted, Ending)
    assert (hinted.hint, hinted.error) == (RetryHint(None), "declared failed: quota used up")
    for_good = end_of(ENDED, Outcome(OutcomeKind.FAILED, permanent=True))
    assert ending(for_good)[1] is FailureClass.PERMANENT


@pytest.mark.req("O08")
def test_a_wait_parks_only_with_success_and_proof() -> None:
    assert end_of(ENDED, WAITING) == Park("S1")
    assert end_of(FAILED, WAITING) is FAILED
    assert isinstance(end_of(ending_of_status(0, None), WAITING), Unproven)
    assert ending(end_of(ENDED, NEXT_WAITS))[0] is AttemptState.HANDED_OFF
    assert end_of(FAILED, NEXT_WAITS) is FAILED


def test_a_body_is_canonical() -> None:
    one = declaration_of("k", "turn", {"status": "done", "comment": "é"})
    other = declaration_of("k", "turn", {"comment": "é", "status": "done"})

    assert one == other
    assert isinstance(one, Declaration)
    assert json.loads(one.body) == {"comment": "é", "status": "done"}
