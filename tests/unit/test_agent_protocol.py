"""Every message of the agent protocol by its published schema, both ways, and by the product: what one takes the other takes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from shared.model.intent import Delivered
from shared.process import channel
from shared.process.channel import INTERRUPT, Word
from tests.support.protocol import FROM_PROGRAM, SCHEMA, TO_PROGRAM, disagreement, faults, heard, is_taken, require_told

EVENT = {"type": "ci.done", "correlate": "42"}
FAILED: dict[str, Any] = {"type": "result", "outcome": "failed"}

VALID: dict[str, dict[str, Any]] = {
    "consumed": {"type": "consumed", "inputs": [3, 4]},
    "not accepting": {"type": "not_accepting", "id": "i7"},
    "usage": {"type": "usage", "units": {"usd": 0.12, "tokens": 900, "x.y-z_1": "0.000001"}},
    "usage of nothing": {"type": "usage", "units": {"usd": 0}},
    "usage with an exponent": {"type": "usage", "units": {"usd": "1e-7"}},
    "turn": {"type": "turn", "status": "done", "comment": "all tests pass"},
    "turn, of one letter": {"type": "turn", "status": "d", "comment": None},
    "wait for an event": {"type": "wait", "event": EVENT},
    "wait for any of a type": {"type": "wait", "event": {"type": "tick", "correlate": None}},
    "wait for a time": {"type": "wait", "timer": "2h", "resume": True},
    "wait for a date": {"type": "wait", "timer": "2030-01-31T08:00:00.5+01:00"},
    "wait for both": {"type": "wait", "event": EVENT, "timer": "2030-01-31T08:00Z", "resume": False},
    "a question": {"type": "wait", "ask": "deploy?", "event": EVENT, "timer": "1h", "resume": True},
    "completed": {"type": "result", "outcome": "completed", "summary": "ok", "artifacts": ["a.txt"]},
    "completed, bare": {"type": "result", "outcome": "completed"},
    "handoff": {"type": "result", "outcome": "handoff", "permanent": False, "retry": None},
    "failed": FAILED,
    "failed for good": {**FAILED, "permanent": True},
    "failed until then": {**FAILED, "retry": {"reset_at": "2030-01-31T08:00:00Z"}},
    "failed for now": {**FAILED, "retry": {"unknown": True}, "permanent": False},
    "log": {"type": "log", "any": ["thing", {"at": "all"}]},
}

INVALID: dict[str, Any] = {
    "no object": [],
    "no type": {"inputs": [1]},
    "a type that is no text": {"type": 3},
    "consumed: nothing": {"type": "consumed", "inputs": []},
    "consumed: input 0": {"type": "consumed", "inputs": [0]},
    "consumed: text": {"type": "consumed", "inputs": ["1"]},
    "consumed: true": {"type": "consumed", "inputs": [True]},
    "consumed: more than a number can be": {"type": "consumed", "inputs": [2**63]},
    "consumed: too many": {"type": "consumed", "inputs": list(range(1, 1026))},
    "consumed: another field": {"type": "consumed", "inputs": [1], "why": "x"},
    "not accepting: nothing": {"type": "not_accepting"},
    "not accepting: no text": {"type": "not_accepting", "id": 7},
    "not accepting: too long": {"type": "not_accepting", "id": "i" * 41},
    "usage: no units": {"type": "usage", "units": {}},
    "usage: 17 units": {"type": "usage", "units": {f"u{number}": 1 for number in range(17)}},
    "usage: a unit with a capital": {"type": "usage", "units": {"USD": 1}},
    "usage: a unit that tenure counts": {"type": "usage", "units": {"turns": 1}},
    "usage: negative": {"type": "usage", "units": {"usd": -0.01}},
    "usage: too much": {"type": "usage", "units": {"usd": 1e13}},
    "usage: true": {"type": "usage", "units": {"usd": True}},
    "usage: null": {"type": "usage", "units": {"usd": None}},
    "usage: words": {"type": "usage", "units": {"usd": "a lot"}},
    "usage: with a sign": {"type": "usage", "units": {"usd": "+1"}},
    "usage: a list": {"type": "usage", "units": ["usd"]},
    "turn: no status": {"type": "turn", "comment": "x"},
    "turn: a capital": {"type": "turn", "status": "Done"},
    "turn: of 65": {"type": "turn", "status": "a" * 65},
    "turn: a comment of 8,001": {"type": "turn", "status": "done", "comment": "x" * 8001},
    "turn: another field": {"type": "turn", "status": "done", "colour": "red"},
    "wait: for nothing": {"type": "wait"},
    "wait: for null and null": {"type": "wait", "event": None, "timer": None},
    "wait: for no type": {"type": "wait", "event": {"correlate": "x"}},
    "wait: for a wrong type": {"type": "wait", "event": {"type": "Ci Done"}},
    "wait: for an empty key": {"type": "wait", "event": {"type": "tick", "correlate": ""}},
    "wait: for a key with a line end": {"type": "wait", "event": {"type": "tick", "correlate": "a\nb"}},
    "wait: for more of an event": {"type": "wait", "event": {**EVENT, "data": 1}},
    "wait: without a unit": {"type": "wait", "timer": "5"},
    "wait: for no time": {"type": "wait", "timer": "0s"},
    "wait: for a number": {"type": "wait", "timer": 5},
    "wait: without a zone": {"type": "wait", "timer": "2030-01-31T08:00:00"},
    "wait: a day alone": {"type": "wait", "timer": "2030-01-31"},
    "wait: resume yes": {"type": "wait", "timer": "5s", "resume": "yes"},
    "wait: a question that nothing answers": {"type": "wait", "ask": "deploy?", "timer": "1h"},
    "wait: a question of 501": {"type": "wait", "ask": "x" * 501, "event": EVENT},
    "result: no outcome": {"type": "result", "summary": "x"},
    "result: waiting": {"type": "result", "outcome": "waiting"},
    "result: another one": {"type": "result", "outcome": "done"},
    "result: a summary of 8,001": {"type": "result", "outcome": "completed", "summary": "x" * 8001},
    "result: 65 artifacts": {"type": "result", "outcome": "completed", "artifacts": ["a"] * 65},
    "result: an empty artifact": {"type": "result", "outcome": "completed", "artifacts": [""]},
    "result: an artifact of 1,001": {"type": "result", "outcome": "completed", "artifacts": ["x" * 1001]},
    "result: permanent success": {"type": "result", "outcome": "completed", "permanent": True},
    "result: success to be retried": {"type": "result", "outcome": "handoff", "retry": {"unknown": True}},
    "result: for good and to be retried": {**FAILED, "permanent": True, "retry": {"unknown": True}},
    "result: a hint that says nothing": {**FAILED, "retry": {}},
    "result: a hint that says both": {**FAILED, "retry": {"unknown": True, "reset_at": "2030-01-31T08:00:00Z"}},
    "result: a hint that is not unknown": {**FAILED, "retry": {"unknown": False}},
    "result: a hint without a zone": {**FAILED, "retry": {"reset_at": "2030-01-31T08:00:00"}},
    "result: another field": {"type": "result", "outcome": "completed", "kind": "failed"},
}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.req("O02", "O15")
@pytest.mark.parametrize("name", VALID)
def test_what_the_page_allows_is_valid_and_taken(name: str) -> None:
    assert faults(FROM_PROGRAM, VALID[name]) == []
    assert is_taken(VALID[name]), heard(VALID[name])


@pytest.mark.req("O02", "O15")
@pytest.mark.parametrize("name", INVALID)
def test_what_it_does_not_allow_is_invalid_and_refused(name: str) -> None:
    assert faults(FROM_PROGRAM, INVALID[name])
    assert not is_taken(INVALID[name])


def test_a_type_of_a_later_version_is_in_no_schema_and_means_nothing() -> None:
    later = {"type": "later", "any": "thing"}

    assert faults(FROM_PROGRAM, later)
    found = heard(later)
    assert getattr(found, "unknown", None) == "later"


# --- whatever is made of valid messages, both say the same of it

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2**64), st.floats(-1, 1e13).filter(lambda value: value % 1 != 0),
    st.sampled_from(["", "x", "1", "0.5", "5m", "2030-01-31T08:00:00Z", "a b", "i7", "done", "x" * 8001, "y" * 501, "z" * 65]),
    st.sampled_from([[], [1], ["a"], {}, {"type": "tick"}, {"unknown": True}, {"usd": 1}, {"usd": "1e5"}, EVENT]),
)  # fmt: skip
NAMES = st.sampled_from(
    ["inputs", "id", "units", "status", "comment", "event", "timer", "resume", "ask", "outcome", "summary", "artifacts",
     "permanent", "retry", "text", "type"],
)  # fmt: skip


@given(
    message=st.sampled_from(list(VALID.values())),
    changes=st.dictionaries(NAMES, VALUES, max_size=2),
    without=st.sets(NAMES, max_size=1),
)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_the_schema_and_the_product_agree_on_whatever_is_said(
    message: dict[str, Any], changes: dict[str, Any], without: set[str]
) -> None:
    changed = {name: value for name, value in {**message, **changes}.items() if name not in without}

    assert disagreement(changed) is None


def test_where_they_differ_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a product that forgets a bound is seen to."""
    long = INVALID["turn: a comment of 8,001"]
    assert disagreement(long) is None

    monkeypatch.setattr("shared.model.declaration.COMMENT_CHARS_MAX", 10_000)

    assert disagreement(long) is not None


# --- what a program is told


def test_an_interrupt_is_a_message() -> None:
    require_told(INTERRUPT)


@pytest.mark.parametrize("body", [b"", b"more", "zwölf\n".encode(), b"x" * 5000, b"\xff", b"a\0b", b'"' * 3000])
def test_every_input_is_told_by_a_message(tmp_path: Path, body: bytes) -> None:
    os.mkfifo(tmp_path / "stdin")
    program = os.open(tmp_path / "stdin", os.O_RDONLY | os.O_NONBLOCK)
    handed = channel.tell(tmp_path, Word("i7", 3, body))
    line = os.read(program, 65_536)
    os.close(program)

    assert handed.result is Delivered.ACCEPTED
    require_told(line)
    message = json.loads(line)
    told = message["body"].encode() if "body" in message else Path(message["file"]).read_bytes()
    assert (message["number"], told) == (3, body)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "interrupt", "why": "x"},
        {"type": "input", "id": "7", "number": 1, "body": "x"},
        {"type": "input", "id": "i7", "number": 1},
        {"type": "input", "id": "i7", "number": 1, "body": "x", "file": "/x"},
        {"type": "input", "id": "i7", "number": 1, "body": "x", "more": 1},
        {"type": "start", "protocol": 1, "work": "w1", "attempt": "w1.1", "epoch": 1, "time_left_ms": 1, "wake": None},
        {"type": "later"},
    ],
)
def test_what_is_no_message_to_a_program_is_none(message: dict[str, Any]) -> None:
    assert faults(TO_PROGRAM, message)
