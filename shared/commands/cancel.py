"""`tenure work cancel` and `tenure attempt cancel`: asked for, acknowledged by whoever stops it, settled by the proof.

The store's part is done at once and for exactly what was named; then the stop is waited for a moment, so that most of the time its
proof can be told. What is not proven yet is said to be so. Rule: requirements T05, X01, X02.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from shared.commands.arguments import Parser, add_json, attempt_named, reason_or, work_named
from shared.commands.attempt_story import no_such_attempt
from shared.commands.durations import duration_us
from shared.commands.json_views import Json, cancellation_view, stop_order_view
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import print_json
from shared.commands.work_text import counted_tries, stage_lines
from shared.errors import RefusedError
from shared.ids import AttemptId, WorkId, is_attempt_id, work_of
from shared.model.attempt import Attempt, AttemptState, Ending, Exclusion, FailureClass
from shared.model.cancel import Cancellation
from shared.model.host import StopOrder
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.work import Work
from shared.store.contract import CancelOutcome, ReadTx, Tx
from shared.store.settling import change_after

STOP_WAIT = "2s"
STOP_WAIT_MAX_US = 86_400 * US_PER_S
STOP_POLL_US = 50 * US_PER_MS
REASON = "asked for on the command line"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What has become of a cancel so far. `attempt` and `order`: of what has to be stopped; None when nothing has to be."""

    work: Work
    attempt: Attempt | None
    order: StopOrder | None
    record: Cancellation


def cancel(argv: list[str], home: str | None, *, prog: str) -> int:
    """End a work, or one attempt, by its id.

    Args:
        prog: As the user called it; `tenure attempt cancel` takes attempts only.

    Raises:
        UsageError: the command line is wrong. NotFoundError: there is no such thing. RefusedError: it has already ended.
    """
    parser = Parser(
        prog,
        "End a work or one attempt: at once in the store, and by a stop order for what may be running of it.",
        "What is said to be stopped is proven to be; what is not keeps its slot until it is.",
    )
    of_attempts = prog == "tenure attempt cancel"
    parser.add_argument(
        "what", nargs="?", metavar="A" if of_attempts else "W|A", help="its id: w41.2, or w41 for a work"
    )
    parser.add_argument("--reason", default=REASON, metavar="TEXT", help="kept in its history")
    parser.add_argument(
        "--wait", default=STOP_WAIT, metavar="TIME", help="how long to wait for the proof: 500ms, 30s, 0s (%(default)s)"
    )
    add_json(parser)
    given = parser.parse(argv)
    wait_us = duration_us(given.wait, "--wait", most_us=STOP_WAIT_MAX_US)
    reason = reason_or(given.reason, REASON)
    by = f"uid {os.getuid()} via {prog.removeprefix('tenure ')}"
    if of_attempts or (given.what is not None and is_attempt_id(given.what)):
        attempt_id = attempt_named(given.what, prog)
        work_id = work_of(attempt_id)
    else:
        attempt_id, work_id = None, work_named(given.what, prog)

    with opened(home) as door:
        if attempt_id is None:
            done = door.store.write(lambda tx: tx.cancel_work(work_id, by=by, reason=reason))
        else:
            done = door.store.write(lambda tx: _cancel_attempt(tx, attempt_id, by=by, reason=reason))
        seen = _await_stop(door, work_id, done, wait_us)
        if given.json:
            print_json(_view(done, seen))
        else:
            print("\n".join(_lines(given.what, done, seen, door)))
    return 0


def _cancel_attempt(tx: Tx, attempt_id: AttemptId, *, by: str, reason: str) -> CancelOutcome:
    """Cancel one attempt, and settle its work as its policy says of cancelled ones."""
    attempt, work = tx.attempt(attempt_id), tx.work_outline(work_of(attempt_id))
    if attempt is None or work is None:
        raise no_such_attempt(tx, attempt_id)
    if attempt.ended_at_us is not None:
        live = tx.unexcluded(work.id)
        other = f"; {live} is the one that goes on" if live not in {None, attempt_id} else ""
        raise RefusedError(f"{attempt_id} has already ended: {attempt.state}{other}")
    ending = Ending(AttemptState.CANCELLED, None, FailureClass.CANCELLED, None, None, reason)
    change = change_after(tx, attempt_id, ending)
    return tx.cancel_attempt(attempt_id, by=by, reason=reason, change=change)


def _await_stop(door: OpenHome, work_id: WorkId, done: CancelOutcome, wait_us: int) -> Cancelled:
    until_us = door.clock.now().mono_us + wait_us
    while True:
        seen = door.store.read(lambda tx: _read(tx, work_id, done))
        if seen.record.settled_at_us is not None or door.clock.now().mono_us >= until_us:
            return seen
        door.clock.wait(door.clock.now().mono_us + STOP_POLL_US, None)


def _read(tx: ReadTx, work_id: WorkId, done: CancelOutcome) -> Cancelled:
    record = next(each for each in tx.cancellations(work_id) if each.id == done.cancellation_id)
    work, name = tx.work_outline(work_id), record.attempt_id
    assert work is not None, "it was just cancelled"
    if name is None:
        return Cancelled(work, None, None, record)
    return Cancelled(work, tx.attempt(name), tx.open_stop_order(name), record)


def _view(done: CancelOutcome, seen: Cancelled) -> Json:
    attempt, order = seen.attempt, seen.order
    return {
        "id": seen.work.id,
        "state": seen.work.state,
        "state_before": done.state_before,
        "attempt": done.attempt_id,
        "exclusion": None if attempt is None else attempt.exclusion,
        "exclusion_proof": None if attempt is None else attempt.exclusion_proof,
        "stop_order": None if order is None else stop_order_view(order),
        "cancellation": cancellation_view(seen.record),
    }


def _lines(what: str, done: CancelOutcome, seen: Cancelled, door: OpenHome) -> list[str]:
    attempt, order = seen.attempt, seen.order
    if attempt is None:
        return [f"{what} cancelled; it was {done.state_before}, nothing was running"]
    if attempt.exclusion is Exclusion.RELEASED:
        return [
            f"{what} cancelled; {attempt.id} is stopped, proof {attempt.exclusion_proof}",
            *stage_lines(seen.record),
        ]
    tried = f", {counted_tries(order.tries)} so far did not prove it" if order is not None and order.tries else ""
    head = f"{what} cancelled; the stop of {attempt.id} is ordered and not proven yet{tried}: its slot stays held"
    return [head, *stage_lines(seen.record), f"see: {door.command(f'attempt show {attempt.id}')}"]
