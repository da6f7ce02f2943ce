"""The schema of the agent protocol, as a program that speaks it would use it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from jsonschema import Draft202012Validator

from shared.model.stream import Refusal
from tests.support.checkout import ROOT
from worker.agents.lines import Line
from worker.agents.messages import Heard, hear, understand

SCHEMA = json.loads((ROOT / "docs" / "agent-protocol.schema.json").read_text())
KNOWN = frozenset({"consumed", "not_accepting", "usage", "turn", "wait", "result", "log"})


def _validator(part: str) -> Draft202012Validator:
    whole: Mapping[str, object] = {**SCHEMA, "$ref": f"#/$defs/{part}"}
    return Draft202012Validator(whole)


FROM_PROGRAM, TO_PROGRAM = _validator("from_program"), _validator("to_program")


def faults(validator: Draft202012Validator, message: object) -> list[str]:
    """What the schema finds wrong with a message."""
    return [error.message for error in validator.iter_errors(message)]


def heard(message: object) -> Heard | Refusal:
    """What the product makes of a message of a program."""
    return hear(Line(1, json.dumps(message).encode()), "out.1", understand)


def is_taken(message: object) -> bool:
    """Whether it is one that means something, for the product."""
    found = heard(message)
    return isinstance(found, Heard) and found.unknown is None


def disagreement(message: object) -> str | None:
    """What the schema and the product say differently of a message of a program; None: they agree."""
    found, taken = faults(FROM_PROGRAM, message), is_taken(message)
    if (not found) is taken:
        return None
    return f"{json.dumps(message)}: the schema says {found or 'valid'}, the product {heard(message)}"


def require_told(line: bytes) -> None:
    """A line to a program is a message, and fits into its channel."""
    assert line.endswith(b"\n")
    assert len(line) <= 4096
    assert faults(TO_PROGRAM, json.loads(line)) == [], line
