"""Claude Code's lines, as its pages and issues show them, become declarations; what is new in them is counted and means nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.errors import UnsupportedError
from shared.model.declaration import DeclarationKind
from shared.model.stream import Place, Refusal
from shared.model.work import Input
from shared.store.contract import Assignment
from tests.support.sites import Site
from worker.agents.claude_code import understand
from worker.agents.lines import Line
from worker.agents.messages import Heard, hear
from worker.agents.reading import read_stretch
from worker.executors.claude_code import ClaudeCodeExecutor
from worker.executors.shell import ShellExecutor

FIXTURES = Path(__file__).parent / "claude_code"


def result(**changes: Any) -> dict[str, Any]:
    """A `result` line of a turn that worked."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 5100,
        "duration_api_ms": 4200,
        "num_turns": 3,
        "result": "Fixed the test.",
        "session_id": "0b0e",
        "total_cost_usd": 0.0421,
        "usage": {
            "input_tokens": 12,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 9000,
            "output_tokens": 88,
            "server_tool_use": {"web_search_requests": 0},
            "service_tier": "standard",
        },
        "permission_denials": [],
        "uuid": "b1",
        **changes,
    }


def heard(message: object) -> Heard:
    found = hear(Line(9, json.dumps(message).encode()), "out.1", understand)
    assert not isinstance(found, Refusal), found
    return found


def declared(message: object) -> dict[str, Any]:
    """What a line declares, by kind."""
    return {one.kind: json.loads(one.body) for one in heard(message).declarations}


def used(message: object) -> dict[str, str]:
    """What a line reports as consumed."""
    return heard(message).usage.to_plain()


def test_a_result_is_the_outcome_with_its_cost_and_tokens() -> None:
    found = declared(result())

    assert found[DeclarationKind.OUTCOME]["kind"] == "completed"
    assert found[DeclarationKind.OUTCOME]["summary"] == "Fixed the test."
    assert used(result()) == {"usd": "0.0421", "tokens": "9400"}
    assert found[DeclarationKind.TURN] == {"status": "completed", "comment": ""}


@pytest.mark.req("O10")
@pytest.mark.parametrize(
    ("changes", "retry"),
    [
        (
            {"is_error": True, "result": 'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}'},
            {"reset_at_us": None},
        ),
        ({"is_error": True, "result": "API Error: Repeated 529 Overloaded errors"}, {"reset_at_us": None}),
        ({"is_error": True, "result": "API Error: 429 rate_limit_error"}, {"reset_at_us": None}),
        ({"is_error": True, "result": "API Error: 500 Internal server error"}, {"reset_at_us": None}),
        ({"is_error": True, "result": "Claude AI usage limit reached|1893456000"}, {"reset_at_us": 1893456000 * 10**6}),
        (
            {"is_error": True, "result": "Claude AI usage limit reached|1893456000000"},
            {"reset_at_us": 1893456000 * 10**6},
        ),
        ({"is_error": True, "result": "Invalid API key · Please run /login"}, None),
        ({"subtype": "error_max_turns", "result": None}, None),
        ({"subtype": "error_during_execution", "result": None, "errors": ["it broke"]}, None),
        ({"subtype": "error_of_a_later_version", "result": None}, None),
    ],
)
def test_a_result_that_failed_says_when_to_try_again_where_it_knows(changes: dict[str, Any], retry: object) -> None:
    found = declared(result(**changes))[DeclarationKind.OUTCOME]

    assert (found["kind"], found["retry"]) == ("failed", retry)
    assert found["summary"]


@pytest.mark.req("O10")
@pytest.mark.parametrize(
    ("resets_at", "us"),
    [
        (1893456000, 1893456000 * 10**6),
        (1893456000000, 1893456000 * 10**6),
        (None, None),
        ("soon", None),
        (True, None),
        (-5, None),
    ],
)
def test_a_limit_that_rejects_is_its_outcome_with_the_time_of_its_reset(resets_at: object, us: int | None) -> None:
    line = {
        "type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour"},
    }

    found = declared(line)[DeclarationKind.OUTCOME]

    assert (found["kind"], found["retry"]) == ("failed", {"reset_at_us": us})
    allowed = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": resets_at}}
    assert declared(allowed) == {}, "control: it goes on"
    said = declared(result(is_error=True, result="You've hit your session limit · resets 3pm"))
    assert DeclarationKind.OUTCOME not in said, "the event before it knows more"


def test_what_it_was_not_allowed_is_a_turn_for_a_person_to_see() -> None:
    denials: list[dict[str, Any]] = [
        {"tool_name": name, "tool_use_id": "t", "tool_input": {}} for name in ("Bash", "Write", "Bash")
    ]

    found = declared(result(permission_denials=denials))

    assert found[DeclarationKind.TURN] == {"status": "permission-denied", "comment": "not allowed to use Bash, Write"}


@pytest.mark.parametrize(
    "usage",
    [
        None,
        3,
        [],
        {},
        {"input_tokens": "many"},
        {"input_tokens": -1},
        {"input_tokens": True},
        {"input_tokens": 10**30},
        {"input_tokens": 10**12 - 1, "output_tokens": 10**12 - 1},
    ],
)
def test_usage_that_is_none_is_left_out_and_the_outcome_counts(usage: object) -> None:
    message = result(usage=usage, total_cost_usd="free")

    assert declared(message)[DeclarationKind.OUTCOME]["kind"] == "completed"
    assert used(message) == {}


def test_lines_that_say_nothing_of_the_end_and_lines_that_are_new() -> None:
    for kind in ("system", "assistant", "user", "stream_event"):
        assert heard({"type": kind, "subtype": "init"}) == Heard()
    assert heard({"type": "control_request", "request": {"subtype": "interrupt"}}) == Heard()
    asked = {"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool", "tool_name": "Bash"}}
    assert heard(asked) == Heard(unknown="control_request can_use_tool"), "nobody can answer it: a person is to see it"
    assert heard({"type": "of_a_later_version"}) == Heard(unknown="of_a_later_version")


@pytest.mark.parametrize(
    ("name", "outcome"), [("worked", "completed"), ("limited", "failed"), ("denied", "completed"), ("broken", None)]
)
def test_a_whole_session_comes_to_its_outcome(name: str, outcome: str | None) -> None:
    data = (FIXTURES / f"{name}.jsonl").read_bytes()

    stretch = read_stretch(Place(), 0, data, understand, pin_epoch=1, at_end=True)

    outcomes = [
        json.loads(one.declaration.body) for one in stretch.said if one.declaration.kind is DeclarationKind.OUTCOME
    ]
    assert (outcomes[-1]["kind"] if outcomes else None) == outcome
    assert stretch.after.lines == len(data.splitlines())
    if name == "limited":
        assert outcomes[-1]["retry"] == {"reset_at_us": 1893456000 * 10**6}
    if name == "broken":
        assert [refusal.line for refusal in stretch.refusals] == [3]
        assert stretch.unknown == (("of_a_later_version", 1),)


# --- the launch


@pytest.fixture
def assignment(site: Site) -> Assignment:
    worker = site.bench()
    site.claim(worker)
    return site.world.store.read(lambda tx: tx.assignments(worker.me, limit=1))[0]


@pytest.mark.req("B03")
def test_its_inputs_are_one_message_and_then_its_input_ends(assignment: Assignment) -> None:
    """Of several messages each `result` would say what was spent since the program began, and be charged."""
    inputs = (Input(1, b"fix it\nplease"), Input(2, b""), Input(3, "zwölf".encode()))

    spec = ClaudeCodeExecutor(ShellExecutor({}, None)).prepare(replace(assignment, inputs=inputs), {})

    assert spec.channel is False
    assert spec.stdin is not None
    [line] = [json.loads(line) for line in spec.stdin.splitlines()]
    assert [block["text"] for block in line["message"]["content"]] == ["fix it\nplease", "zwölf"]
    assert line["type"] == "user"


def test_without_an_input_it_is_told_nothing(assignment: Assignment) -> None:
    spec = ClaudeCodeExecutor(ShellExecutor({}, None)).prepare(replace(assignment, inputs=(Input(2, b""),)), {})

    assert spec.stdin is None


def test_an_input_that_is_no_text_is_refused(assignment: Assignment) -> None:
    with pytest.raises(UnsupportedError, match="input 7 is no text"):
        ClaudeCodeExecutor(ShellExecutor({}, None)).prepare(replace(assignment, inputs=(Input(7, b"\xff"),)), {})
