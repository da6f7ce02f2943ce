"""What waits for a person, in one list: outcomes that are unknown, gates, budgets, quarantines, what nothing is left to try for, stops
that nobody proves.

Rule: requirements B06, G05, C04; issue item "needs you".
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.commands.held_text import why_held
from shared.commands.json_views import Json
from shared.commands.next_step import answer, release_of_binding
from shared.commands.open_home import OpenHome
from shared.commands.render import duration, escaped, iso, moment
from shared.model.instant import Instant
from shared.model.timer import timer_due_us
from shared.model.work import Reason
from shared.store.contract import ReadTx

SHOWN_MAX = 50
BLOCKED = {
    Reason.EXHAUSTED: "nothing is left to try",
    Reason.PERMANENT_FAILURE: "it cannot run as it is",
    Reason.TIMED_OUT: "it ran out of time",
}


@dataclass(frozen=True, slots=True)
class Need:
    """One thing a person has to see to.

    Attributes:
        kind: `recovery_required`, `asked`, `gate_held`, `over_budget`, `quarantined`, `exhausted`, `permanent_failure`, `timed_out` or
            `stop_unproven`.
        subject: A work, an attempt, or a binding.
        step: The command that goes on from here, without `tenure`.
    """

    kind: str
    subject: str
    why: str
    since_at_us: int | None
    step: str


def read_needs(tx: ReadTx) -> list[Need]:
    """What waits for a person, kind by kind; at most `SHOWN_MAX` of each."""
    return [
        *_unknown(tx),
        *_asked(tx),
        *_at_gates(tx),
        *_over_budget(tx),
        *_quarantined(tx),
        *_blocked(tx),
        *_unproven(tx),
    ]


def need_view(need: Need, door: OpenHome) -> Json:
    """For programs."""
    return {
        "kind": need.kind,
        "subject": need.subject,
        "why": need.why,
        "since": iso(need.since_at_us),
        "step": door.command(need.step),
    }


def need_row(need: Need, now: Instant, door: OpenHome) -> list[str]:
    """For people."""
    since = "" if need.since_at_us is None else f"for {duration(max(0, now.wall_us - need.since_at_us))}"
    return [need.subject, need.kind, since, escaped(need.why), door.command(need.step)]


def _unknown(tx: ReadTx) -> list[Need]:
    return [
        Need("recovery_required", one.id, one.error or "", one.started_at_us, f"attempt show {one.id}")
        for one in tx.needs_person(limit=SHOWN_MAX)
    ]


def _asked(tx: ReadTx) -> list[Need]:
    """Programs that asked something and wait, without a slot, for somebody to answer."""
    needs = []
    for one in tx.asked(limit=SHOWN_MAX):
        timer = tx.timer(one.work_id)
        until = "" if timer is None else f" (unanswered, it goes on {moment(timer_due_us(timer))})"
        needs.append(Need("asked", one.attempt_id, f"{one.ask}{until}", one.registered_at_us, answer(one)))
    return needs


def _at_gates(tx: ReadTx) -> list[Need]:
    return [
        Need(Reason.GATE_HELD, work.id, work.start_hold.reason, work.start_hold.since_at_us, f"gate admit {work.id}")
        for work in tx.held_for([Reason.GATE_HELD], limit=SHOWN_MAX)
        if work.start_hold is not None
    ]


def _over_budget(tx: ReadTx) -> list[Need]:
    return [
        Need(
            Reason.OVER_BUDGET,
            work.id,
            why_held(work),
            None if work.start_hold is None else work.start_hold.since_at_us,
            f"work release {work.id}",
        )
        for work in tx.held_for([Reason.OVER_BUDGET], limit=SHOWN_MAX)
    ]


def _blocked(tx: ReadTx) -> list[Need]:
    """Held with nothing left to try; what a person holds besides, that person knows of."""
    return [
        Need(work.reason, work.id, BLOCKED[work.reason], None, f"work retry {work.id}")
        for work in tx.held_for(list(BLOCKED), limit=SHOWN_MAX)
        if work.reason is not None and work.hold is None
    ]


def _quarantined(tx: ReadTx) -> list[Need]:
    return [
        Need(Reason.QUARANTINED, one.binding, one.reason or "", one.quarantined_at_us, release_of_binding(one.binding))
        for one in tx.routines(limit=SHOWN_MAX)
        if one.quarantined_at_us is not None
    ]


def _unproven(tx: ReadTx) -> list[Need]:
    """Stops that were tried and not proven; one that was never tried needs nobody yet."""
    return [
        Need(
            Reason.STOP_UNPROVEN,
            order.attempt_id,
            f"{order.why}; not proven in {order.tries} tries",
            order.ordered_at_us,
            f"attempt show {order.attempt_id}",
        )
        for order in tx.stop_orders(limit=SHOWN_MAX)
        if order.tries
    ]
