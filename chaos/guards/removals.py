"""How each guard is taken away for a while: what stands in its place is the code as it would be without it.

Each raises LookupError when what it takes away is not there. The guards themselves are named in `chaos/guards/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from types import ModuleType
from typing import Any

import coordinator.bootstrap
import coordinator.coordinator
import coordinator.gates
import coordinator.recovery
import shared.policy.capacity
import worker.batch
import worker.ending
import worker.launching
from shared.errors import NotWrittenError
from shared.model.attempt import AttemptState, Ending
from shared.model.evidence import LockState
from shared.model.usage import NO_USAGE
from shared.policy.recovery import Decision, Verdict
from shared.store.sqlite import (
    charging,
    coordination,
    ends,
    fragments,
    holding,
    migrate,
    reads,
    registration,
    schema,
    stops,
    takeover,
    writing,
)
from shared.store.sqlite import queue as store_queue
from shared.store.sqlite.store import SqliteStore

FAR_US = 1 << 60


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Another value under that name for a while."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def all_of(*removals: AbstractContextManager[None]) -> Iterator[None]:
    """Several at once."""
    with ExitStack() as stack:
        for removal in removals:
            stack.enter_context(removal)
        yield


def in_sql(module: ModuleType, fragment: str, substitute: str) -> AbstractContextManager[None]:
    """Every statement of a module without a fragment."""
    statements = {name: text for name, text in vars(module).items() if isinstance(text, str) and fragment in text}
    if not statements:
        raise LookupError(f"no statement of {module.__name__} has {fragment!r}")
    return all_of(*(replaced(module, name, text.replace(fragment, substitute)) for name, text in statements.items()))


# --- the store


def fence() -> AbstractContextManager[None]:
    anybody = "id = :attempt"
    return all_of(*(in_sql(module, fragments.FENCE, anybody) for module in (holding, writing)))


def unexcluded_recheck() -> AbstractContextManager[None]:
    return replaced(reads.Reads, "unexcluded", lambda _tx, _work_id: None)


def one_unexcluded() -> AbstractContextManager[None]:
    indexes = tuple(text for text in schema.INDEXES if "attempt_one_unexcluded" not in text)
    if len(indexes) == len(schema.INDEXES):
        raise LookupError("no index keeps the attempts of a Work apart")
    return all_of(unexcluded_recheck(), replaced(migrate, "INDEXES", indexes))


def claim_recheck() -> AbstractContextManager[None]:
    return all_of(
        replaced(coordination.Coordination, "_changed", lambda _tx, _request, _work: None),
        in_sql(coordination, "AND revision = :revision AND state = 'ready'", ""),
    )


def capacity_recheck() -> AbstractContextManager[None]:
    limit = vars(coordination.Coordination)["_limit"]

    def without(tx: Any, request: Any) -> Any:
        return limit(tx, replace(request, refusal=lambda _usage: None))

    return replaced(coordination.Coordination, "_limit", without)


def pool_limit() -> AbstractContextManager[None]:
    return replaced(vars(shared.policy.capacity)["_Book"], "pool_full", lambda _book, _pool: False)


def scope_limit() -> AbstractContextManager[None]:
    return replaced(vars(shared.policy.capacity)["_Book"], "full_scope", lambda _book, _scope: None)


def budget_limit() -> AbstractContextManager[None]:
    return replaced(charging, "first_full", lambda _lines, _used: None)


def turn_charge() -> AbstractContextManager[None]:
    return replaced(coordination, "A_TURN", NO_USAGE)


def approval() -> AbstractContextManager[None]:
    return replaced(coordinator.gates.ApprovalGate, "concerns", lambda _gate, _work, _snapshot, _config: False)


def leader_generation() -> AbstractContextManager[None]:
    def lead(tx: Any, owner: Any, generation: int, **_times: int) -> None:
        tx._leading, tx._generation = owner, generation

    return replaced(registration.Registrations, "lead", lead)


def generation_rises() -> AbstractContextManager[None]:
    triggers = tuple(text for text in schema.TRIGGERS if "leader_generation" not in text)
    if len(triggers) == len(schema.TRIGGERS):
        raise LookupError("no trigger keeps the generation of leaders apart")
    return all_of(
        in_sql(registration, "generation = generation + 1", "generation = generation"),
        replaced(migrate, "TRIGGERS", triggers),
    )


def confirmed_epoch() -> AbstractContextManager[None]:
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

    return all_of(
        replaced(stops.Stops, "confirm_stopped", without),
        in_sql(stops, "id = :attempt AND epoch = :epoch AND ended_at_us IS NOT NULL", "id = :attempt"),
    )


def never_shorter() -> AbstractContextManager[None]:
    return in_sql(holding, "max(expires_mono_us, :mono + :lease)", ":mono + :lease")


def same_store() -> AbstractContextManager[None]:
    return replaced(SqliteStore, "_require_same", lambda _store, _db: None)


def older_store() -> AbstractContextManager[None]:
    return replaced(coordinator.bootstrap, "refuse_older", lambda _store, _names: None)


def queue() -> AbstractContextManager[None]:
    return all_of(
        replaced(store_queue.Queued, "__enter__", lambda _queued: None),
        replaced(store_queue.Queued, "__exit__", lambda _queued, *_error: None),
    )


def returned_inputs() -> AbstractContextManager[None]:
    return in_sql(ends, "WHERE consumed_by = :attempt", "WHERE consumed_by = :attempt AND 0")


def live_lease() -> AbstractContextManager[None]:
    """Whatever is unfinished is taken over, whether its lease is live or not."""
    return all_of(*(in_sql(module, fragments.NOT_LIVE, "1") for module in (takeover, reads)))


def stop_orders() -> AbstractContextManager[None]:
    return replaced(writing.Writing, "_order_stop", lambda _tx, _attempt, _why, _by: None)


def accept_timeout() -> AbstractContextManager[None]:
    return replaced(coordination.Coordination, "revoke_unaccepted", lambda _tx, **_timeout: [])


# --- coordinator and worker


def recovery() -> AbstractContextManager[None]:
    return replaced(coordinator.recovery.Recovery, "_claim_some", lambda *_: (0, False))


def lock_probe() -> AbstractContextManager[None]:
    """Each thirtieth look at the lock of a living worker sees it free."""
    probe = vars(coordinator.coordinator.Coordinator)["_probe_worker"]
    looks = count(1)

    def without(one: Any, worker: Any) -> LockState:
        seen: LockState = probe(one, worker)
        return LockState.FREE if next(looks) % 30 == 0 else seen

    return replaced(coordinator.coordinator.Coordinator, "_probe_worker", without)


def pin_before_go() -> AbstractContextManager[None]:
    ready = vars(worker.launching.Launches)["_ready"]

    def without(launches: Any, holding: Any, held: Any) -> None:
        ready(launches, holding, held)
        if holding is not None and holding.launch is held:
            held.go()

    return replaced(worker.launching.Launches, "_ready", without)


def lease_at_go() -> AbstractContextManager[None]:
    pinned = vars(worker.launching.Launches)["_pinned"]

    def without(launches: Any, holding: Any) -> None:
        holding.lease_until_mono_us = FAR_US
        pinned(launches, holding)

    return replaced(worker.launching.Launches, "_pinned", without)


def _decided(change: Callable[[Any, Any, Decision], Decision]) -> AbstractContextManager[None]:
    decide = vars(worker.ending)["decide"]
    return replaced(worker.ending, "decide", lambda facts, evidence: change(facts, evidence, decide(facts, evidence)))


def uncertain_asks() -> AbstractContextManager[None]:
    def relaunch(_facts: Any, _evidence: Any, decision: Decision) -> Decision:
        uncertain = decision.verdict is Verdict.RECOVERY_REQUIRED
        return replace(decision, verdict=Verdict.RELAUNCH) if uncertain else decision

    return _decided(relaunch)


def unknown_is_no_success() -> AbstractContextManager[None]:
    def succeed(endings: Any, holding: Any, _decision: Decision, proof: str | None) -> None:
        endings.end(holding, Ending(AttemptState.SUCCEEDED, 0, None, None, proof, "ended"))

    return replaced(worker.ending.Endings, "_ask_person", succeed)


def child_record() -> AbstractContextManager[None]:
    decide = vars(worker.ending)["decide"]
    return replaced(
        worker.ending, "decide", lambda facts, evidence: decide(replace(facts, child_record_seen=False), evidence)
    )


def unreadable_is_not_absent() -> AbstractContextManager[None]:
    decide = vars(worker.ending)["decide"]

    def without(facts: Any, evidence: Any) -> Decision:
        if evidence is None or not evidence.unreadable:
            return decide(facts, evidence)  # type: ignore[no-any-return]
        absent = replace(facts, child_record_seen=False)  # the look at all records, which could not read it either
        return decide(absent, replace(evidence, unreadable=()))  # type: ignore[no-any-return]

    return replaced(worker.ending, "decide", without)


def proof_of_stop() -> AbstractContextManager[None]:
    return replaced(worker.ending, "proof_of", lambda _evidence: "S1")


def _looked_up(settle: Callable[[Any], None]) -> AbstractContextManager[None]:
    def without(batch: Any) -> None:
        while batch._unknown:
            settle(batch._unknown.pop(0))

    return replaced(worker.batch.Batch, "_look_up", without)


def unknown_commit() -> AbstractContextManager[None]:
    return _looked_up(lambda change: change.done())


def unknown_commit_kept() -> AbstractContextManager[None]:
    return _looked_up(lambda change: change.undone(NotWrittenError("its commit is unknown")))


def closed_gate() -> AbstractContextManager[None]:
    import chaos.simulation.shim as simulated

    released = vars(simulated._Shim)["_is_released"]

    def without(shim: Any) -> bool:
        return bool(released(shim)) or not shim._gate.is_open

    return replaced(simulated._Shim, "_is_released", without)
