"""Checks of work that waits for more than time: retries that do not come, bindings in quarantine, what nothing is left to try for,
chains that were stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.commands.findings import NAMED_MAX, Finding, Severity
from shared.commands.next_step import release_of_binding
from shared.commands.open_home import OpenHome
from shared.commands.render import counted, duration, escaped
from shared.model.instant import US_PER_S, elapsed_us
from shared.model.timer import Timer
from shared.model.work import Reason, Work, WorkState
from shared.store.contract import ReadTx

STUCK_US = 120 * US_PER_S
"""A leader passes at least each minute, and at once when a timer is due; so much later it does not come by itself."""
LOOKED_AT = 1_000
SUSPICIOUS = 2
"""Workers lost in a row: one dies of many things."""
BLOCKED = (Reason.EXHAUSTED, Reason.PERMANENT_FAILURE, Reason.TIMED_OUT)


def check_retries(door: OpenHome) -> list[Finding]:
    """What is due to be tried again is tried again."""
    late = door.store.read(_late)
    if not late:
        return []
    timer, late_us = late[0]
    more = f", and {len(late) - 1} more" if len(late) > 1 else ""
    message = f"{timer.work_id} should have been tried again {duration(late_us)} ago{more}: nobody fires its timer"
    return [Finding("retries.stuck", Severity.ERROR, message, f"see who leads: {door.command('status')}")]


def _late(tx: ReadTx) -> list[tuple[Timer, int]]:
    """Timers that are due for too long, the latest first, with how long."""
    due = [(timer, _overdue_us(timer, tx)) for timer in tx.timers_due(limit=LOOKED_AT)]
    return sorted((each for each in due if each[1] > STUCK_US), key=lambda each: -each[1])


def _overdue_us(timer: Timer, tx: ReadTx) -> int:
    by_elapsed = elapsed_us(timer.since, tx.now) - timer.after_us
    by_wall = 0 if timer.due_at_us is None else tx.now.wall_us - timer.due_at_us
    return max(by_elapsed, by_wall)


def check_bindings(door: OpenHome) -> list[Finding]:
    """No binding is in quarantine."""
    found = []
    for one in door.store.read(lambda tx: tx.routines(limit=LOOKED_AT)):
        if one.quarantined_at_us is not None:
            message = f"binding {one.binding} is quarantined, none of its works start: {escaped(one.reason or '')}"
            step = f"mend it, then {door.command(release_of_binding(one.binding))}"
            found.append(Finding("bindings.quarantined", Severity.WARNING, message, step))
    return found[:NAMED_MAX]


def check_suspects(door: OpenHome) -> list[Finding]:
    """Nothing that runs or is launched seems to kill the workers that hold it."""
    found = []
    for attempt in door.store.read(lambda tx: tx.suspects(limit=NAMED_MAX)):
        if attempt.workers_lost_in_row >= SUSPICIOUS:
            message = f"{attempt.id}: {attempt.workers_lost_in_row} workers in a row died soon after they got it; it may be what kills them"
            step = f"{door.command(f'attempt show {attempt.id}')}, and {door.command(f'work cancel {attempt.work_id}')} if it is"
            found.append(Finding("workers.lost", Severity.WARNING, message, step))
    return found


def check_exhausted(door: OpenHome) -> list[Finding]:
    """Nothing is held because tenure would not try it again by itself."""
    held = door.store.read(lambda tx: tx.works(states=(WorkState.HELD,), after=0, limit=LOOKED_AT))
    blocked = [work for work in held if work.reason in BLOCKED]
    if not blocked:
        return []
    message = f"{counted(len(blocked), 'work')} held with nothing left to try: {_named(blocked)}"
    step = (
        f"{door.command(f'work show {blocked[0].id}')}, then {door.command(f'work retry {blocked[0].id}')} or cancel it"
    )
    return [Finding("works.exhausted", Severity.WARNING, message, step)]


def check_chains(door: OpenHome) -> list[Finding]:
    """No work stopped because what it did was brought about by too many others before it. Rule: O06, O07."""
    stopped = door.store.read(lambda tx: tx.chains_stopped(limit=LOOKED_AT))
    if not stopped:
        return []
    works = list(dict.fromkeys(one.work_id for one in stopped))
    first = stopped[0]
    names = ", ".join(works[:NAMED_MAX]) + (f" and {len(works) - NAMED_MAX} more" if len(works) > NAMED_MAX else "")
    message = (
        f"a chain of more than {first.depth_max} links was stopped at {counted(len(works), 'work')}: {names};"
        f" {first.attempt_id} ended without its {first.derived}"
    )
    step = f"{door.command(f'attempt show {first.attempt_id}')}; if going on is right, {door.command(f'submit {first.work_id}')} --input TEXT sets it off anew"
    return [Finding("chains.stopped", Severity.WARNING, message, step)]


def _named(works: Sequence[Work]) -> str:
    names = ", ".join(f"{work.id} ({work.reason})" for work in works[:NAMED_MAX])
    return names + (f" and {len(works) - NAMED_MAX} more" if len(works) > NAMED_MAX else "")


WORK_CHECKS = {
    "retries": check_retries,
    "bindings": check_bindings,
    "suspects": check_suspects,
    "exhausted": check_exhausted,
    "chains": check_chains,
}
