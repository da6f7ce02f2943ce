"""Intents and streams of agents, for programs and for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from shared.commands.json_views import Json
from shared.commands.render import counted, escaped, iso, moment, table
from shared.model.intent import Fate, Intent, IntentKind
from shared.model.stream import BELT, Refusal, Stream

_FATES = {
    Fate.QUEUED: "waits to be handed over",
    Fate.DISPATCHED: "is being handed over",
    Fate.ACCEPTED: "handed over, not consumed yet",
    Fate.CONSUMED: "consumed",
    Fate.NOT_ACCEPTING: "not accepted: it waits for the next attempt",
    Fate.RETURNED: "returned: it waits for the next attempt",
    Fate.DROPPED: "dropped, as its binding says",
}


def fate_text(intent: Intent) -> str:
    """What became of it, in words."""
    if intent.kind is IntentKind.INTERRUPT:
        return "its stop is ordered"
    given_to = intent.given_to
    match intent.fate:
        case Fate.RETURNED | Fate.NOT_ACCEPTING if given_to is not None:
            return f"{_FATES[intent.fate].partition(':')[0]}; {given_to} was given it"
        case Fate.CONSUMED if given_to is None:
            return "consumed, and given back: it waits for the next attempt"
        case Fate.CONSUMED if given_to != intent.attempt_id:
            return f"consumed, and given back; {given_to} was given it"
        case fate:
            return _FATES[fate]


def intent_view(intent: Intent) -> Json:
    """For programs."""
    return {
        "id": intent.id,
        "kind": intent.kind,
        "work": intent.work_id,
        "attempt": intent.attempt_id,
        "input": intent.input,
        "fate": intent.fate,
        "given_to": intent.given_to,
        "tries": intent.tries,
        "by": intent.by,
        "accepted_at": iso(intent.accepted_at_us),
        "settled_at": iso(intent.settled_at_us),
        "why": intent.why,
    }


def intent_rows(intents: Sequence[Intent]) -> list[list[str]]:
    """One row for each."""
    rows = []
    for one in intents:
        what = f"input {one.input}" if one.input is not None else str(one.kind)
        why = f": {escaped(one.why)}" if one.why else ""
        rows.append(
            [one.id, what, moment(one.accepted_at_us), f"to {one.attempt_id or 'nobody'}", f"{fate_text(one)}{why}"]
        )
    return rows


def intent_lines(intents: Sequence[Intent]) -> list[str]:
    """A paragraph on them; nothing when there were none."""
    return ["", "told", *table(intent_rows(intents), indent="  ")] if intents else []


def stream_view(stream: Stream | None) -> Json | None:
    """For programs; None: nothing of it was read, as of a program that nobody listens to."""
    if stream is None:
        return None
    return {
        "offset_bytes": stream.place.offset,
        "lines": stream.place.lines,
        "refused": stream.refused,
        "refusals": [{"line": one.line or None, "code": one.code, "why": one.why} for one in stream.refusals],
        "unknown": dict(stream.unknown),
    }


def line_text(refusal: Refusal) -> str:
    """Where it was said."""
    return "by its belt" if refusal.line == BELT else f"line {refusal.line}"


def stream_rows(stream: Stream) -> list[list[str]]:
    """How far it was read, and what in it was no message."""
    rows = [["read", f"{counted(stream.place.lines, 'line')}, {stream.place.offset} bytes"]]
    if stream.unknown:
        told = ", ".join(f"{escaped(name)} ({count})" for name, count in sorted(stream.unknown.items()))
        rows.append(["unknown", told])
    if stream.refused:
        rows.append(["refused", counted(stream.refused, "line")])
        rows += [["", f"{line_text(one)}  {one.code}: {escaped(one.why)}"] for one in stream.refusals]
    return rows
