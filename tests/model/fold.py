"""What a store's tables say, in the form of what its changefeed tells.

`chaos.fold` folds the state tables over the changefeed. `Told` follows what has no state table: who holds what, who takes part, who
leads. Neither knows SQL or a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.fold import Folded, FoldedAttempt, fold
from shared.model.attempt import AttemptState
from shared.model.work import WorkState
from shared.policy.steps import AttemptEvent, WorkEvent
from shared.store.contract import Event, ReadTx

__all__ = ["Folded", "FoldedAttempt", "Step", "Told", "fold", "step_of", "tables"]

Step = tuple[AttemptState, AttemptEvent] | tuple[WorkState, WorkEvent]

_EVENT_OF_KIND = {
    "recovery_required": AttemptEvent.UNCERTAIN,
    **{event.value: event for event in AttemptEvent},
}
_BESIDE = frozenset(
    {
        *("attempt.claimed", "work.submitted", "config.activated", "segment.phases", "stop.unproven"),
        *("store.adopted", "store.migrated", "timers.carried", "clock.jumped", "event.published"),
        *("waking.put_off", "waking.done"),
    }
)
"""Events that take no step of a state table and change nobody's hold."""
_OF_WORK = frozenset({"work", "cancel", "timer", "retry", "hold", "input", "binding", "gate", "budget"})


def step_of(before: Folded, event: Event) -> Step | None:
    """The step of a state table that the event tells of, by what was folded before it; None when it tells of none."""
    group, _, word = event.kind.partition(".")
    if group == "work" and word != "submitted":
        return before.works[str(event.work_id)], WorkEvent(str(event.data["by"]))
    if group != "attempt" or word in ("claimed", "accepted", "stop_confirmed"):
        return None
    by = AttemptEvent(str(event.data["by"])) if word == "relaunched" else _EVENT_OF_KIND[word]
    return before.attempts[str(event.attempt_id)].state, by


@dataclass
class Hold:
    """Who has the lease of an attempt, and what is known of its launch and of its stop.

    Attributes:
        pinned: The epoch of its pin; None without one.
        ordered: Its stop is ordered, and not confirmed.
    """

    owner: str
    accepted: bool = False
    pinned: int | None = None
    ordered: bool = False


@dataclass
class Told:
    """What the events so far tell beside states."""

    holds: dict[str, Hold] = field(default_factory=dict)
    workers: dict[str, str] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    generation: int = 0
    leader: str | None = None

    def take(self, event: Event) -> None:
        """Apply one event. Raises AssertionError when it does not fit what came before."""
        group, _, word = event.kind.partition(".")
        if group == "worker":
            self._take_worker(str(event.data["worker"]), word)
        elif group == "row":
            key = str(event.data["key"])
            assert (key in self.marked) == (word == "readable"), "marked once, and taken back once"
            self.marked ^= {key}
        elif group == "leader":
            self._take_leader(event, word)
        elif event.kind == "attempt.claimed":
            number = sum(name.rsplit(".", 1)[0] == event.work_id for name in self.holds) + 1
            assert event.attempt_id == f"{event.work_id}.{number}", "attempts are numbered without a gap"
            self.holds[str(event.attempt_id)] = Hold(str(event.data["worker"]))
        elif event.attempt_id is not None:
            self._take_hold(event, self.holds[str(event.attempt_id)])
        else:
            assert event.kind in _BESIDE or group in _OF_WORK, event.kind

    def _take_hold(self, event: Event, hold: Hold) -> None:
        match event.kind:
            case "attempt.accepted":
                assert (hold.accepted, hold.owner) == (False, event.data["owner"])
                hold.accepted = True
            case "attempt.parked" | "attempt.put_off":
                hold.pinned = None
            case "attempt.taken_over" | "attempt.woken":
                hold.owner, hold.accepted = str(event.data["worker"]), False
            case "attempt.pinned":
                hold.pinned = event.epoch
            case "attempt.relaunched":
                hold.pinned = None
            case "lease.revoked":
                assert hold.owner == event.data["owner"]
            case "stop.ordered":
                assert not hold.ordered
                hold.ordered = True
            case "attempt.stop_confirmed":
                assert hold.ordered
                hold.ordered = False

    def _take_worker(self, name: str, word: str) -> None:
        state = {"registered": "live", "draining": "draining", "gone": "gone"}[word]
        allowed = {"live": (None,), "draining": ("live",), "gone": ("live", "draining")}
        assert self.workers.get(name) in allowed[state]
        self.workers[name] = state

    def _take_leader(self, event: Event, word: str) -> None:
        if word == "taken":
            assert event.data["generation"] == self.generation + 1
            self.generation += 1
            self.leader = str(event.data["owner"])
        else:
            assert (word, event.data["generation"]) == ("resigned", self.generation)
            assert event.data["owner"] == self.leader, "given up once"
            self.leader = None


def tables(tx: ReadTx) -> tuple[Folded, Told]:
    """What the tables say, in the same form."""
    found, told = Folded(), Told()
    ordered = {order.attempt_id for order in tx.stop_orders(limit=10_000)}
    for work in tx.works(states=(), after=0, limit=10_000):
        found.works[work.id] = work.state
        for cancel in tx.cancellations(work.id, limit=1_000):
            acknowledged = "requested" if cancel.acknowledged_at_us is None else "acknowledged"
            found.cancels[cancel.id] = acknowledged if cancel.settled_at_us is None else "settled"
        for attempt in tx.attempts(work.id):
            lease = tx.lease(attempt.id)
            assert lease is not None
            assert lease.epoch == attempt.epoch
            found.attempts[attempt.id] = FoldedAttempt(
                attempt.state, attempt.epoch, attempt.exclusion, lease.revoked_at_us is not None
            )
            told.holds[attempt.id] = Hold(
                owner=lease.owner,
                accepted=lease.accepted_at_us is not None,
                pinned=None if attempt.pin is None else attempt.pin.epoch,
                ordered=attempt.id in ordered,
            )
    told.workers = {worker.id: worker.state.value for gone in (False, True) for worker in tx.workers(gone=gone)}
    told.marked = {row.key for row in tx.unreadable_rows(after=None, limit=1_000)}
    found.waking = set(tx.waking(limit=10_000))
    leader = tx.leader()
    if leader is not None:
        told.generation = leader.generation
        told.leader = None if leader.expires_mono_us == 0 else leader.owner
    return found, told
