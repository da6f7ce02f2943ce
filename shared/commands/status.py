"""`tenure status`: who leads, which workers are there, what is under way, what waits for a person.

Reads one snapshot and probes the locks of the named processes; every list is bounded, and says so.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

from shared.commands.arguments import Parser, add_json
from shared.commands.attendance import Attendance, Rows, judge, read_rows
from shared.commands.json_views import Json, attendance_view, pass_view, stop_order_view, unreadable_view
from shared.commands.needs import Need, need_row, need_view, read_needs
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import Ink, duration, escaped, print_json, quoted, signed_duration, table
from shared.commands.work_facts import WorkFacts, attempt_view, work_facts, worker_of
from shared.commands.work_text import counted_tries
from shared.errors import UnreadableError
from shared.model.attempt import AttemptState
from shared.model.host import PassRecord, StopOrder
from shared.model.instant import Instant
from shared.model.work import WorkState
from shared.policy.steps import is_final_work
from shared.store.contract import ReadTx, UnreadableRow

OPEN_STATES = tuple(state for state in WorkState if not is_final_work(state))
COUNTED_MAX = 1000
SHOWN_MAX = 50


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one read of the store found.

    Attributes:
        counts: Works not ended, by state; at most `COUNTED_MAX` of each are counted.
        live: Running Works with their attempts, oldest first; at most `SHOWN_MAX`.
        cancelling: Open stop orders of cancelled attempts, oldest first; with `unproven` at most `SHOWN_MAX`.
        unproven: The other open stop orders, oldest first.
        unreadable: Rows that cannot be read, marked or come upon just now; at most `SHOWN_MAX`.
        needs: What waits for a person, whatever it is.
        capped: Names of the lists that were cut off.
    """

    rows: Rows
    counts: Counter[WorkState]
    live: tuple[WorkFacts, ...]
    needs_person: tuple[WorkFacts, ...]
    cancelling: tuple[StopOrder, ...]
    unproven: tuple[StopOrder, ...]
    unreadable: tuple[UnreadableRow, ...]
    capped: tuple[str, ...]
    last_pass: PassRecord | None
    needs: tuple[Need, ...] = ()

    @property
    def now(self) -> Instant:
        """When it was read."""
        return self.rows.now


def main(argv: list[str], *, home: str | None) -> int:
    """Print the status; 0, also when nothing is up."""
    parser = Parser("tenure status", "Who leads, which workers are there, what is under way, what waits for a person.")
    add_json(parser)
    given = parser.parse(argv)
    with opened(home) as door:
        seen = door.store.read(read)
        there = judge(seen.rows, door.place.run)
        if given.json:
            print_json(view(seen, there, door))
        else:
            print("\n".join(lines(seen, there, door, Ink.of(os.environ))))
    return 0


def read(tx: ReadTx) -> Snapshot:
    """Read it all in one snapshot."""
    counts = Counter[WorkState]()
    capped: list[str] = []
    for state in OPEN_STATES:
        counted = tx.count_works(state, cap=COUNTED_MAX)
        if counted:
            counts[state] = counted
    undecided = [attempt.work_id for attempt in tx.needs_person(limit=SHOWN_MAX)]
    running = tx.works(states=(WorkState.RUNNING,), after=0, limit=2 * SHOWN_MAX + 1)
    live = [work for work in running if work.id not in set(undecided)]
    orders = tx.stop_orders(limit=SHOWN_MAX)
    cancelled = {order.id for order in orders if _was_cancelled(tx, order)}
    capped += ["running"] if len(live) > SHOWN_MAX else []
    capped += ["recovery_required"] if len(undecided) == SHOWN_MAX else []
    capped += ["cancelling", "unproven_stops"] if len(orders) == SHOWN_MAX else []
    works = [work for work_id in undecided if (work := tx.work_outline(work_id)) is not None]
    return Snapshot(
        rows=read_rows(tx),
        counts=counts,
        live=tuple(work_facts(tx, live[:SHOWN_MAX])),
        needs_person=tuple(work_facts(tx, works)),
        cancelling=tuple(order for order in orders if order.id in cancelled),
        unproven=tuple(order for order in orders if order.id not in cancelled),
        unreadable=_unreadable(tx),
        capped=tuple(capped),
        last_pass=tx.last_pass(),
        needs=tuple(read_needs(tx)),
    )


def _unreadable(tx: ReadTx) -> tuple[UnreadableRow, ...]:
    marked = tx.unreadable_rows(after=None, limit=SHOWN_MAX)
    return tuple({(row.table, row.key): row for row in [*marked, *tx.skipped]}.values())[:SHOWN_MAX]


def _was_cancelled(tx: ReadTx, order: StopOrder) -> bool:
    try:
        attempt = tx.attempt(order.attempt_id)
    except UnreadableError:
        return False
    return attempt is not None and attempt.state is AttemptState.CANCELLED


def view(seen: Snapshot, there: Attendance, door: OpenHome) -> Json:
    """For programs. A count that reached `counted_max` means "at least"; `capped` names the lists that go on."""
    return {
        "home": str(door.place.path),
        **attendance_view(there, seen.now),
        "works": {state.value: seen.counts[state] for state in OPEN_STATES},
        "counted_max": COUNTED_MAX,
        "running": [_attempt_of(facts, seen.now) for facts in seen.live],
        "recovery_required": [_attempt_of(facts, seen.now) for facts in seen.needs_person],
        "cancelling": [stop_order_view(order) for order in seen.cancelling],
        "unproven_stops": [stop_order_view(order) for order in seen.unproven],
        "unreadable": [unreadable_view(row) for row in seen.unreadable],
        "needs_you": [need_view(need, door) for need in seen.needs],
        "capped": list(seen.capped),
        "last_pass": None if seen.last_pass is None else pass_view(seen.last_pass),
    }


def _attempt_of(facts: WorkFacts, now: Instant) -> Json | None:
    return {"work": facts.work.id, **attempt_view(facts.attempts[-1], now)} if facts.attempts else None


def lines(seen: Snapshot, there: Attendance, door: OpenHome, ink: Ink) -> list[str]:
    """For people."""
    missing = there.missing()
    text = [f"{ink.strong(missing)}; start it: {door.command('up')}"] if missing else []
    text += table(_who(seen, there, ink))
    text += ["", _counts(seen, ink)]
    if seen.live:
        text += ["", ink.faint("running"), *table([_live_row(each, seen.now, ink) for each in seen.live], indent="  ")]
    if seen.needs:
        text += [
            "",
            ink.strong("needs you"),
            *table([need_row(need, seen.now, door) for need in seen.needs], indent="  "),
        ]
    if seen.cancelling:
        text += ["", ink.faint("cancelling"), *table([_stop_row(order) for order in seen.cancelling], indent="  ")]
    if seen.unproven:
        text += [
            "",
            ink.strong("stop not proven yet; their slots stay held"),
            *table([_stop_row(o) for o in seen.unproven], indent="  "),
        ]
    if seen.unreadable:
        rows = [[row.table, escaped(row.key), row.error] for row in seen.unreadable]
        text += ["", ink.strong("cannot be read; `doctor` says what to do"), *table(rows, indent="  ")]
    if seen.capped:
        text += ["", ink.faint(f"only the first {SHOWN_MAX} are shown: {', '.join(seen.capped)}")]
    if seen.last_pass is not None:
        text += ["", ink.faint(_pass(seen.last_pass, seen.now))]
    return text


def _who(seen: Snapshot, there: Attendance, ink: Ink) -> list[list[str]]:
    rows = []
    if there.leader is not None:
        leader = there.leader
        rows.append([leader.owner, f"pid {leader.pid}", f"leads, generation {leader.generation}"])
    for worker in there.workers:
        said = duration(seen.now.mono_us - worker.beat_mono_us)
        overdue = ", claim overdue" if worker.overdue else ""
        words = f"{ink.state(worker.state)}  {worker.in_use} of {worker.slots} slots in use{overdue}"
        rows.append([worker.id, f"pid {worker.identity.pid}", f"{words}  {ink.faint(f'heard {said} ago')}"])
    return rows


def _counts(seen: Snapshot, ink: Ink) -> str:
    words = [
        f"{seen.counts[state]}{'+' if seen.counts[state] >= COUNTED_MAX else ''} {ink.state(state)}"
        for state in OPEN_STATES
        if seen.counts[state]
    ]
    return f"works: {', '.join(words)}" if words else "works: none open"


def _live_row(facts: WorkFacts, now: Instant, ink: Ink) -> list[str]:
    if not facts.attempts:
        return [facts.work.id, "", "", "", ""]
    last = facts.attempts[-1]
    attempt = last.attempt
    since = duration(max(0, now.wall_us - attempt.started_at_us))
    command = quoted(last.command or ())
    return [attempt.id, ink.state(attempt.state), f"epoch {attempt.epoch}", worker_of(last) or "-", since, command]


def _stop_row(order: StopOrder) -> list[str]:
    tried = counted_tries(order.tries) if order.tries else "not tried yet"
    return [order.attempt_id, escaped(order.why), tried, f"by {order.owner}" if order.owner else ""]


def _pass(record: PassRecord, now: Instant) -> str:
    ago = duration(max(0, now.wall_us - record.started_at_us))
    counts = {"claimed": record.claimed, "recovered": record.recovered, "revoked": record.revoked}
    did = ", ".join(f"{what} {'?' if count is None else count}" for what, count in counts.items())
    jump = ""
    if record.clock_jump_us is not None:
        jump = f", the wall clock had jumped {signed_duration(record.clock_jump_us)}"
    fault = f", error: {escaped(record.error)}" if record.error else ""
    return f"last pass {ago} ago ({escaped(record.trigger)}): {did}{jump}{fault}"
