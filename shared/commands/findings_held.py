"""Checks of work that is held over budget or at a start gate. Rule: requirements B06, C04, G05."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shared.commands.findings import NAMED_MAX, Finding, Severity
from shared.commands.held_text import why_held
from shared.commands.open_home import OpenHome
from shared.commands.render import counted, duration, escaped
from shared.model.work import Reason, Work, WorkState

LOOKED_AT = 1_000


def check_budgets(door: OpenHome) -> list[Finding]:
    """No work is held because a budget is used up."""
    held = door.store.read(lambda tx: tx.held_for([Reason.OVER_BUDGET], limit=LOOKED_AT))
    if not held:
        return []
    message = f"{counted(len(held), 'work')} held over budget: {_named(held)}"
    release = door.command(f"work release {held[0].id}")
    step = (
        f"{door.command('budget list')}, then {release} starts it once more even so; for good, raise the budget before"
    )
    return [Finding("budgets.held", Severity.WARNING, message, step)]


def check_gates(door: OpenHome) -> list[Finding]:
    """Nothing waits at a start gate, and every gate decides."""
    held, now = door.store.read(lambda tx: (tx.held_for([Reason.GATE_HELD], limit=LOOKED_AT), tx.now))
    found = []
    if held:
        since = [work.start_hold.since_at_us for work in held if work.start_hold is not None]
        longest = f", the longest for {duration(max(0, now.wall_us - min(since)))}" if since else ""
        message = f"{counted(len(held), 'work')} held at a start gate{longest}: {_named(held)}"
        step = f"{door.command('gate list')}, then admit or refuse each"
        found.append(Finding("gates.held", Severity.INFO, message, step))
    ready = door.store.read(lambda tx: tx.works(states=(WorkState.READY,), after=0, limit=LOOKED_AT))
    undecided = [work for work in ready if work.reason is Reason.GATE_UNDECIDED]
    if undecided:
        by_gate: dict[str, list[Work]] = {}
        for work in undecided:
            by_gate.setdefault(work.reason_limit or "unknown: it has not decided", []).append(work)
        for told, works in list(by_gate.items())[:NAMED_MAX]:
            names = ", ".join(work.id for work in works[:NAMED_MAX])
            message = f"gate {escaped(told)}; so {counted(len(works), 'work')} cannot start: {names}"
            step = f"mend the gate: it is asked again in each pass; {door.command(f'work cancel {works[0].id}')} gives up instead"
            found.append(Finding("gates.undecided", Severity.ERROR, message, step))
    return found


def _named(works: Sequence[Work]) -> str:
    told = [f"{work.id} ({escaped(why_held(work))})" for work in works[:NAMED_MAX]]
    return ", ".join(told) + (f" and {len(works) - NAMED_MAX} more" if len(works) > NAMED_MAX else "")


HELD_CHECKS: dict[str, Callable[[OpenHome], list[Finding]]] = {"budgets": check_budgets, "gates": check_gates}
