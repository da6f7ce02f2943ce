"""The guards of the product by name, and how to take each one away for a while, in this process.

A guard is worth what happens without it: `chaos/simulation/controls.py` takes each away and waits for the check that must fire, by
name. Where a second defence stands behind one, taking the first away alone changes nothing or ends in a refusal; then
`covered_by` says which it is, and a test shows it. Rule: design §9 ("remove one guard, that check, and it by name, must fire").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from types import ModuleType
from typing import Any

import coordinator.coordinator
import coordinator.recovery
import shared.policy.capacity
import worker.batch
import worker.ending
import worker.launching
from shared.errors import RefusedError
from shared.model.attempt import AttemptState, Ending
from shared.model.evidence import LockState
from shared.policy.recovery import Decision, Verdict
from shared.store.sqlite import (
    coordination,
    ends,
    fragments,
    holding,
    migrate,
    queue,
    reads,
    registration,
    schema,
    stops,
    takeover,
    writing,
)
from shared.store.sqlite.store import SqliteStore

FAR_US = 1 << 60


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard.

    Attributes:
        keeps: What it keeps from happening.
        remove: Takes it away for the time of a `with`; raises LookupError when it is not there.
        caught_by: The check that must fire in a simulation without it; None: none can, and `covered_by` says why.
        entails: Checks that may fire beside that one, since what they look at follows. Anything else fails the control.
        covered_by: The defence behind it, for the sake of which nothing happens without it, or what a simulation lacks; a case of
            its own shows what it refuses.
        alters_schema: It stands in the tables; only a store that is made meanwhile is without it.
    """

    name: str
    keeps: str
    remove: Callable[[], AbstractContextManager[None]]
    caught_by: str | None
    entails: frozenset[str] = frozenset()
    covered_by: str | None = None
    alters_schema: bool = False

    @contextmanager
    def removed(self) -> Iterator[None]:
        """Be without it; it is back afterwards, whatever happens."""
        with self.remove():
            yield


# --- how to take something away


@contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _all(*removals: AbstractContextManager[None]) -> Iterator[None]:
    with ExitStack() as stack:
        for removal in removals:
            stack.enter_context(removal)
        yield


def _in_sql(module: ModuleType, fragment: str, substitute: str) -> AbstractContextManager[None]:
    """Every statement of a module without a fragment."""
    statements = {name: text for name, text in vars(module).items() if isinstance(text, str) and fragment in text}
    if not statements:
        raise LookupError(f"no statement of {module.__name__} has {fragment!r}")
    return _all(*(_replaced(module, name, text.replace(fragment, substitute)) for name, text in statements.items()))


# --- the store


def _fence() -> AbstractContextManager[None]:
    anybody = "id = :attempt"
    return _all(*(_in_sql(module, fragments.FENCE, anybody) for module in (holding, writing)))


def _unexcluded_recheck() -> AbstractContextManager[None]:
    return _replaced(reads.Reads, "unexcluded", lambda _tx, _work_id: None)


def _one_unexcluded() -> AbstractContextManager[None]:
    indexes = tuple(text for text in schema.INDEXES if "attempt_one_unexcluded" not in text)
    if len(indexes) == len(schema.INDEXES):
        raise LookupError("no index keeps the attempts of a Work apart")
    return _all(_unexcluded_recheck(), _replaced(migrate, "INDEXES", indexes))


def _claim_recheck() -> AbstractContextManager[None]:
    return _all(
        _replaced(coordination.Coordination, "_changed", lambda _tx, _request, _work: None),
        _in_sql(coordination, "AND revision = :revision AND state = 'ready'", ""),
    )


def _capacity_recheck() -> AbstractContextManager[None]:
    limit = vars(coordination.Coordination)["_limit"]

    def without(tx: Any, request: Any) -> Any:
        return limit(tx, replace(request, refusal=lambda _usage: None))

    return _replaced(coordination.Coordination, "_limit", without)


def _pool_limit() -> AbstractContextManager[None]:
    return _replaced(vars(shared.policy.capacity)["_Book"], "pool_full", lambda _book, _pool: False)


def _scope_limit() -> AbstractContextManager[None]:
    return _replaced(vars(shared.policy.capacity)["_Book"], "full_scope", lambda _book, _scope: None)


def _leader_generation() -> AbstractContextManager[None]:
    def lead(tx: Any, owner: Any, generation: int, **_times: int) -> None:
        tx._leading, tx._generation = owner, generation

    return _replaced(registration.Registrations, "lead", lead)


def _generation_rises() -> AbstractContextManager[None]:
    triggers = tuple(text for text in schema.TRIGGERS if "leader_generation" not in text)
    if len(triggers) == len(schema.TRIGGERS):
        raise LookupError("no trigger keeps the generation of leaders apart")
    return _all(
        _in_sql(registration, "generation = generation + 1", "generation = generation"),
        _replaced(migrate, "TRIGGERS", triggers),
    )


def _confirmed_epoch() -> AbstractContextManager[None]:
    confirm = vars(stops.Stops)["confirm_stopped"]

    def without(tx: Any, attempt_id: Any, *, expected_epoch: int, **told: Any) -> None:
        read = tx.attempt

        def at_that_epoch(name: Any) -> Any:
            found = read(name)
            return None if found is None else replace(found, epoch=expected_epoch)

        tx.attempt = at_that_epoch
        try:
            confirm(tx, attempt_id, expected_epoch=expected_epoch, **told)
        finally:
            del tx.attempt

    return _all(
        _replaced(stops.Stops, "confirm_stopped", without),
        _in_sql(stops, "id = :attempt AND epoch = :epoch AND ended_at_us IS NOT NULL", "id = :attempt"),
    )


def _never_shorter() -> AbstractContextManager[None]:
    return _in_sql(holding, "max(expires_mono_us, :mono + :lease)", ":mono + :lease")


def _same_store() -> AbstractContextManager[None]:
    return _replaced(SqliteStore, "_require_same", lambda _store, _db: None)


def _queue() -> AbstractContextManager[None]:
    return _all(
        _replaced(queue.Queued, "__enter__", lambda _queued: None),
        _replaced(queue.Queued, "__exit__", lambda _queued, *_error: None),
    )


def _returned_inputs() -> AbstractContextManager[None]:
    return _replaced(ends, "RETURN_INPUTS", "SELECT ?")


def _live_lease() -> AbstractContextManager[None]:
    """Whatever is unfinished is taken over, whether its lease is live or not."""
    return _all(*(_in_sql(module, fragments.NOT_LIVE, "1") for module in (takeover, reads)))


def _stop_orders() -> AbstractContextManager[None]:
    return _replaced(writing.Writing, "_order_stop", lambda _tx, _attempt, _why, _by: None)


def _accept_timeout() -> AbstractContextManager[None]:
    return _replaced(coordination.Coordination, "revoke_unaccepted", lambda _tx, **_timeout: [])


# --- coordinator and worker


def _recovery() -> AbstractContextManager[None]:
    return _replaced(coordinator.recovery.Recovery, "_claim_some", lambda *_: (0, False))


def _lock_probe() -> AbstractContextManager[None]:
    """Each thirtieth look at the lock of a living worker sees it free."""
    probe = vars(coordinator.coordinator.Coordinator)["_probe_worker"]
    looks = count(1)

    def without(one: Any, worker: Any) -> LockState:
        seen: LockState = probe(one, worker)
        return LockState.FREE if next(looks) % 30 == 0 else seen

    return _replaced(coordinator.coordinator.Coordinator, "_probe_worker", without)


def _pin_before_go() -> AbstractContextManager[None]:
    ready = vars(worker.launching.Launches)["_ready"]

    def without(launches: Any, holding: Any, held: Any) -> None:
        ready(launches, holding, held)
        if holding is not None and holding.launch is held:
            held.go()

    return _replaced(worker.launching.Launches, "_ready", without)


def _lease_at_go() -> AbstractContextManager[None]:
    pinned = vars(worker.launching.Launches)["_pinned"]

    def without(launches: Any, holding: Any) -> None:
        holding.lease_until_mono_us = FAR_US
        pinned(launches, holding)

    return _replaced(worker.launching.Launches, "_pinned", without)


def _decided(change: Callable[[Any, Any, Decision], Decision]) -> AbstractContextManager[None]:
    decide = vars(worker.ending)["decide"]
    return _replaced(worker.ending, "decide", lambda facts, evidence: change(facts, evidence, decide(facts, evidence)))


def _uncertain_asks() -> AbstractContextManager[None]:
    def relaunch(_facts: Any, _evidence: Any, decision: Decision) -> Decision:
        uncertain = decision.verdict is Verdict.RECOVERY_REQUIRED
        return replace(decision, verdict=Verdict.RELAUNCH) if uncertain else decision

    return _decided(relaunch)


def _unknown_is_no_success() -> AbstractContextManager[None]:
    def succeed(endings: Any, holding: Any, _decision: Decision, proof: str | None) -> None:
        endings.end(holding, Ending(AttemptState.SUCCEEDED, 0, None, None, proof, "ended"))

    return _replaced(worker.ending.Endings, "_ask_person", succeed)


def _child_record() -> AbstractContextManager[None]:
    decide = vars(worker.ending)["decide"]
    return _replaced(
        worker.ending, "decide", lambda facts, evidence: decide(replace(facts, child_record_seen=False), evidence)
    )


def _unreadable_is_not_absent() -> AbstractContextManager[None]:
    decide = vars(worker.ending)["decide"]

    def without(facts: Any, evidence: Any) -> Decision:
        return decide(facts, None if evidence is None else replace(evidence, unreadable=()))  # type: ignore[no-any-return]

    return _replaced(worker.ending, "decide", without)


def _proof_of_stop() -> AbstractContextManager[None]:
    return _replaced(worker.ending, "proof_of", lambda _evidence: "S1")


def _looked_up(settle: Callable[[Any], None]) -> AbstractContextManager[None]:
    def without(batch: Any) -> None:
        while batch._unknown:
            settle(batch._unknown.pop(0))

    return _replaced(worker.batch.Batch, "_look_up", without)


def _unknown_commit() -> AbstractContextManager[None]:
    return _looked_up(lambda change: change.done())


def _unknown_commit_kept() -> AbstractContextManager[None]:
    return _looked_up(lambda change: change.refused(RefusedError("its commit is unknown")))


def _closed_gate() -> AbstractContextManager[None]:
    import chaos.simulation.shim as simulated

    released = vars(simulated._Shim)["_is_released"]

    def without(shim: Any) -> bool:
        return bool(released(shim)) or not shim._gate.is_open

    return _replaced(simulated._Shim, "_is_released", without)


_RAN_TWICE = frozenset(
    {
        "jobs_are_one_set",
        "one_launch_of_a_work_lives",
        "nothing_that_ran_is_relaunched",
        "capacity_is_kept",
        "slots_are_freed_on_proof",
    }
)
_RAN_UNKNOWN = frozenset(
    {
        "launches_follow_their_pin",
        "success_has_evidence",
        "statuses_are_true",
        "retries_are_not_spent",
        "nothing_is_stuck",
        "jobs_are_one_set",
        "no_actor_broke",
        "never_at_rest",
    }
)
"""What follows when something runs that was never pinned: nobody can adopt or stop it, and its slot is never free again."""

GUARDS: tuple[Guard, ...] = (
    Guard("fence", "a write whose lease is over", _fence, "no_actor_broke"),
    Guard(
        "pin_before_go",
        "something that runs and that the store does not know of",
        _pin_before_go,
        "gates_open_under_a_live_pin",
        _RAN_UNKNOWN,
    ),
    Guard("lease_at_go", "a gate opened after the lease has lapsed", _lease_at_go, "gates_open_under_a_live_pin"),
    Guard(
        "closed_gate",
        "a job whose worker gave its launch up",
        _closed_gate,
        "launches_follow_their_pin",
        _RAN_UNKNOWN,
    ),
    Guard(
        "unexcluded_recheck",
        "attempt N+1 beside an unproven N; the unique index behind it refuses",
        _unexcluded_recheck,
        "no_actor_broke",
    ),
    Guard(
        "one_unexcluded",
        "attempt N+1 beside an unproven N",
        _one_unexcluded,
        "attempts_wait_for_proof",
        _RAN_TWICE,
        alters_schema=True,
    ),
    Guard(
        "claim_recheck",
        "a claim of a Work that has changed; the state tables behind it refuse",
        _claim_recheck,
        "no_actor_broke",
    ),
    Guard(
        "pool_limit",
        "more attempts at once than a pool allows",
        _pool_limit,
        "slots_are_kept",
        frozenset({"capacity_is_kept"}),
    ),
    Guard(
        "scope_limit",
        "more attempts at once than a scope above them allows",
        _scope_limit,
        "slots_are_kept",
        frozenset({"capacity_is_kept"}),
    ),
    Guard(
        "leader_generation", "a transition of a leader that was succeeded", _leader_generation, "one_leader_at_a_time"
    ),
    Guard(
        "generation_rises",
        "two leaders of one generation",
        _generation_rises,
        "generations_only_rise",
        alters_schema=True,
    ),
    Guard("lock_probe", "the burial of a worker that lives", _lock_probe, "only_the_dead_are_buried"),
    Guard("recovery", "an attempt that nobody holds any more", _recovery, "nothing_is_neglected", _RAN_UNKNOWN),
    Guard("proof_of_stop", "a slot freed by an exit status", _proof_of_stop, "slots_are_freed_on_proof", _RAN_TWICE),
    Guard(
        "confirmed_epoch",
        "a stop confirmed for another epoch",
        _confirmed_epoch,
        "slots_are_freed_on_proof",
        frozenset({"epochs_only_rise", "capacity_is_kept"}),
    ),
    Guard("stop_orders", "an end without proof that nobody follows up", _stop_orders, "nothing_is_stuck", _RAN_UNKNOWN),
    Guard(
        "uncertain_asks",
        "a second run where nobody knows of the first",
        _uncertain_asks,
        "nothing_that_ran_is_relaunched",
        _RAN_TWICE,
    ),
    Guard(
        "unreadable_is_not_absent",
        "a second run where the record of the first is torn",
        _unreadable_is_not_absent,
        "nothing_that_ran_is_relaunched",
        _RAN_TWICE,
    ),
    Guard(
        "unknown_is_no_success",
        "success without evidence",
        _unknown_is_no_success,
        "success_has_evidence",
        frozenset({"statuses_are_true"}),
    ),
    Guard(
        "unknown_commit",
        "an effect of a commit that never happened",
        _unknown_commit,
        "gates_open_under_a_live_pin",
        _RAN_UNKNOWN,
    ),
    Guard("returned_inputs", "an input lost with the attempt that had it", _returned_inputs, "inputs_are_kept"),
    Guard(
        "live_lease",
        "an attempt taken from its living holder",
        _live_lease,
        None,
        covered_by="behind it stands the fence: whoever had it is refused from then on, and what it launched is adopted",
    ),
    Guard(
        "unknown_commit_kept",
        "work given up though its commit happened",
        _unknown_commit_kept,
        None,
        covered_by="behind it stands the lease: what is dropped is given back at the next renewal, or lapses, and is recovered",
    ),
    Guard(
        "capacity_recheck",
        "a claim beyond a limit that was reached since it was decided",
        _capacity_recheck,
        None,
        covered_by="behind it stands the leader's generation: only one leader claims, and its own pass counts what it hands out",
    ),
    Guard(
        "accept_timeout",
        "a claim that waits for a worker that does not take it",
        _accept_timeout,
        None,
        covered_by="behind it stands the lease, which lapses by itself, only later",
    ),
    Guard(
        "child_record",
        "a relaunch though a child registered itself and no pin is known",
        _child_record,
        None,
        covered_by="before it stands the pin, which comes before GO: only a store that lost commits knows no pin of what ran",
    ),
    Guard(
        "renewal_never_shorter",
        "a renewal that shortens a lease",
        _never_shorter,
        None,
        covered_by="behind it stands the trigger `lease_shorter`; and no simulation asks for a shorter lease",
    ),
    Guard(
        "same_store",
        "a write into a store that was taken over meanwhile",
        _same_store,
        None,
        covered_by="no simulation replaces a store; a case of its own shows what refuses",
    ),
    Guard(
        "queue",
        "writers that starve each other",
        _queue,
        None,
        covered_by="behind it stands SQLite's own write lock, which keeps them apart, but in no order",
    ),
)
"""Those that a simulation catches first, then those that something stands behind."""


def guard(name: str) -> Guard:
    """The guard of that name. Raises LookupError."""
    for found in GUARDS:
        if found.name == name:
            return found
    raise LookupError(f"no guard is called {name!r}")
