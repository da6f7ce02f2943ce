"""Checks of what running programs say: lines of agents that were refused or not understood. Rule: requirement O02, V04."""

from __future__ import annotations

from collections.abc import Callable

from shared.commands.findings import NAMED_MAX, Finding, Severity
from shared.commands.intent_text import line_text
from shared.commands.next_step import answer
from shared.commands.open_home import OpenHome
from shared.commands.render import counted, escaped
from shared.model.instant import US_PER_S
from shared.store.values import FaultyStream

RECENT_US = 24 * 3600 * US_PER_S
"""So long ago an attempt may have ended that is still worth a look."""


def check_lines(door: OpenHome) -> list[Finding]:
    """What agents say is understood, in what runs now and what ended within a day."""
    faulty = door.store.read(lambda tx: tx.faulty_streams(since_at_us=tx.now.wall_us - RECENT_US, limit=NAMED_MAX + 1))
    if not faulty:
        return []
    told = "; ".join(_told(one) for one in faulty[:NAMED_MAX])
    more = "; and more" if len(faulty) > NAMED_MAX else ""
    step = f"{door.command(f'attempt show {faulty[0].attempt_id}')} has the lines; mend the program by docs/agent-protocol.md"
    return [Finding("agents.lines", Severity.WARNING, f"what agents say is not all understood: {told}{more}", step)]


def _told(one: FaultyStream) -> str:
    stream, parts = one.stream, []
    if stream.refused:
        last = stream.refusals[-1]
        parts.append(
            f"{counted(stream.refused, 'line')} refused, the last of them {line_text(last)} ({last.code}: {escaped(last.why)})"
        )
    if stream.unknown:
        types = ", ".join(f"{escaped(name)} ({count})" for name, count in sorted(stream.unknown.items()))
        parts.append(f"unknown types {types}")
    return f"{one.attempt_id}{', which runs' if one.is_live else ''}: {', '.join(parts)}"


def check_asked(door: OpenHome) -> list[Finding]:
    """Nothing waits for a person's answer."""
    asked = door.store.read(lambda tx: tx.asked(limit=NAMED_MAX + 1))
    if not asked:
        return []
    told = ", ".join(f"{one.attempt_id} (“{escaped(one.ask or '')}”)" for one in asked[:NAMED_MAX])
    more = " and more" if len(asked) > NAMED_MAX else ""
    message = f"{counted(len(asked), 'work')} that asked something and wait for an answer: {told}{more}"
    return [Finding("agents.asked", Severity.INFO, message, f"answer: {door.command(answer(asked[0]))}")]


AGENT_CHECKS: dict[str, Callable[[OpenHome], list[Finding]]] = {"agents": check_lines, "asked": check_asked}
