"""Random lives of a store: after every step its tables are what the state tables make of its changefeed, and no rule is broken.

A failure prints the steps and the line that replays them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chaos.fold import MisfitError
from shared.errors import FenceViolationError, LeaseLostError, RefusedError
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import AttemptState, Ending, FailureClass, LeaseKey, Phase
from shared.model.instant import US_PER_S
from shared.model.work import WorkChange, WorkState
from shared.policy.lease import is_live
from shared.store.contract import Claimed, ReadTx, Tx
from shared.store.sqlite.inspect import INVARIANTS
from tests.model.fold import Folded, fold, tables
from tests.support.stores import (
    ACCEPT_US,
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    LEASE_US,
    RETURNED,
    SQLITE,
    TIMEOUT_US,
    World,
    ram_folder,
)

ENDINGS = st.sampled_from(
    [AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.TIMED_OUT, AttemptState.INTERRUPTED]
)
CHANGES = st.sampled_from([COMPLETED, EXHAUSTED, BACKED_OFF, RETURNED])
INDEX = st.integers(min_value=0, max_value=9)


def time_adds_up(tx: ReadTx) -> None:
    """What an attempt's segments used and what it has left is its timeout, at every instant. Rule: E13, E17."""
    for work in tx.works(states=(), after=0, limit=1_000):
        for attempt in tx.attempts(work.id):
            ended = [one.active_us for one in tx.segments(attempt.id) if one.active_us is not None]
            used = attempt.segments_dropped_us + sum(ended)
            assert attempt.budget_us == max(0, TIMEOUT_US - used)


class Lives(RuleBasedStateMachine):
    """Everything that anybody may do to a store, in any order, also with what they held long ago."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self.world = World(SQLITE, self._stack.enter_context(ram_folder()))
        self.keys: list[LeaseKey] = []
        self.workers: list[Incarnation] = []
        self.folded = Folded()
        self.seen = 0

    def teardown(self) -> None:
        self.world.close()
        self._stack.close()

    @initialize()
    def begin(self) -> None:
        self.workers += [self.world.worker("worker-1"), self.world.worker("worker-2")]
        for stage in range(3):
            self.start_job(stage, stage)

    # --- commands, registration, time

    @rule(priority=st.integers(0, 2), scope=st.sampled_from(["", "ops", "ops/backup"]))
    def submit(self, priority: int, scope: str) -> None:
        self.world.submit(priority=priority, scope=scope)

    @rule(number=INDEX)
    def cancel(self, number: int) -> None:
        self.may_be_refused(lambda tx: tx.cancel_work(WorkId(f"w{number + 1}"), by="t", reason="t"))

    @rule(index=INDEX, change=CHANGES)
    def cancel_attempt(self, index: int, change: WorkChange) -> None:
        if self.keys and change is not COMPLETED:
            name = self.keys[-1 - index % len(self.keys)].attempt_id
            self.may_be_refused(lambda tx: tx.cancel_attempt(name, by="t", reason="t", change=change))

    @rule(state=ENDINGS, change=CHANGES)
    def settle_by_hand(self, state: AttemptState, change: WorkChange) -> None:
        ending = Ending(state, None, None, None, None, "t")

        def settle(tx: Tx) -> None:
            for one in tx.needs_person(limit=1):
                tx.reconcile(one.id, expected_epoch=one.epoch, ending=ending, change=change, by="t", reason="t")

        self.world.store.write(settle)

    @rule(index=INDEX)
    def take_order(self, index: int) -> None:
        for order in self.world.store.read(lambda tx: tx.stop_orders(limit=1)):
            self.may_be_refused(lambda tx, one=order: tx.take_stop_order(one.id, self.worker(index), lease_us=US_PER_S))  # type: ignore[misc]

    @rule(name=st.sampled_from(["worker-1", "worker-2", "worker-3"]))
    def register(self, name: str) -> None:
        self.workers.append(self.world.worker(name))

    @rule(index=INDEX)
    def drain(self, index: int) -> None:
        self.world.store.write(lambda tx: tx.drain_worker(self.worker(index)))
        self.workers.append(self.world.worker("worker-1"))

    @rule(index=INDEX)
    def retire(self, index: int) -> None:
        self.world.store.write(lambda tx: tx.retire_worker(self.worker(index), reason="released"))
        self.workers.append(self.world.worker("worker-2"))

    @rule(us=st.sampled_from([1, US_PER_S, ACCEPT_US, LEASE_US // 3, LEASE_US, TIMEOUT_US, -US_PER_S]))
    def advance(self, us: int) -> None:
        self.world.clock.advance(us)

    @rule(us=st.sampled_from([-86_400 * US_PER_S, 86_400 * US_PER_S]))
    def step_wall(self, us: int) -> None:
        self.world.clock.step_wall(us)

    @precondition(lambda self: self.seen > 30)
    @rule()
    def reboot(self) -> None:
        boot = self.world.clock.now().boot_id
        self.world.clock.reboot(f"boot-{int(boot[5:]) + 1}", down_us=US_PER_S)
        self.workers += [self.world.worker("worker-1"), self.world.worker("worker-2")]

    # --- the leader

    @rule(index=INDEX, stage=st.integers(0, 2))
    def start_job(self, index: int, stage: int) -> None:
        """Submit, claim, and go as far as `stage`: 0 claimed, 1 accepted, 2 pinned."""
        work_id = self.world.submit()
        answer = self.world.try_claim(work_id, self.worker(index))
        if isinstance(answer, Claimed):
            self.keys.append(LeaseKey(answer.attempt_id, 1, self.worker(index)))
            if stage >= 1:
                self.accept(0, isolated=True)
            if stage >= 2:
                self.pin(0)

    @rule(index=INDEX, which=INDEX)
    def claim(self, index: int, which: int) -> None:
        ready = self.world.ready()
        if ready:
            answer = self.world.try_claim(ready[which % len(ready)].id, self.worker(index))
            if isinstance(answer, Claimed):
                self.keys.append(LeaseKey(answer.attempt_id, 1, self.worker(index)))

    @rule(index=INDEX, which=INDEX, then=st.sampled_from(["", "accept", "adopt", "relaunch"]))
    def recover(self, index: int, which: int, then: str) -> None:
        found = self.world.recoverable()
        if found:
            attempt = found[which % len(found)].attempt
            owner = self.worker(index)
            epoch = self.world.as_leader(
                lambda tx: tx.claim_recovery(attempt.id, epoch_seen=attempt.epoch, worker=owner, lease_us=LEASE_US)
            )
            if epoch is not None:
                self.keys.append(LeaseKey(attempt.id, epoch, owner))
                if then:
                    self.accept(0, isolated=None)
                if then == "adopt":
                    self.adopt(0)
                if then == "relaunch":
                    self.relaunch(0, clear_pin=True)

    @rule(which=INDEX, change=st.sampled_from([EXHAUSTED, BACKED_OFF, RETURNED]))
    def time_out(self, which: int, change: WorkChange) -> None:
        """The leader ends what nobody holds, exactly when its time is used up."""
        found = self.world.recoverable()
        if found:
            attempt, out_of_time = found[which % len(found)].attempt, found[which % len(found)].out_of_time
            done = self.world.as_leader(
                lambda tx: tx.time_out_lapsed(attempt.id, epoch_seen=attempt.epoch, why="t", change=change)
            )
            assert done is out_of_time

    @rule()
    def reconcile(self) -> None:
        self.world.as_leader(lambda tx: tx.revoke_foreign_boots())
        self.world.as_leader(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US))

    @rule()
    def fire(self) -> None:
        for work_id in self.world.store.read(lambda tx: tx.backoff_due(limit=9)):
            self.world.as_leader(lambda tx, name=work_id: tx.fire_backoff(name))  # type: ignore[misc]

    # --- the holders, present and past

    @rule(index=INDEX, isolated=st.sampled_from([True, None]))
    def accept(self, index: int, isolated: bool | None) -> None:
        self.fenced(index, lambda tx, key: tx.accept(key, invoke_isolated=isolated))

    @rule(index=INDEX)
    def pin(self, index: int) -> None:
        self.fenced(index, lambda tx, key: tx.pin(key, self.world.pin(key)))

    @rule(index=INDEX, name=st.sampled_from(["environment", "sandbox"]))
    def record_phases(self, index: int, name: str) -> None:
        self.fenced(index, lambda tx, key: tx.record_phases(key, [Phase(name, 1, 2, "ok")]))

    @rule(index=INDEX)
    def adopt(self, index: int) -> None:
        self.fenced(index, lambda tx, key: tx.adopt(key, why="t"))

    @rule(index=INDEX, clear_pin=st.booleans())
    def relaunch(self, index: int, clear_pin: bool) -> None:
        self.fenced(index, lambda tx, key: tx.relaunch(key, clear_pin=clear_pin, why="t"))

    @rule(index=INDEX, state=ENDINGS, change=CHANGES, proof=st.sampled_from(["S1", None]))
    def finish(self, index: int, state: AttemptState, change: WorkChange, proof: str | None) -> None:
        failure = None if state is AttemptState.SUCCEEDED else FailureClass.KNOWN
        self.fenced(index, lambda tx, key: tx.finish(key, Ending(state, 0, failure, None, proof, "t"), change))

    @rule(index=INDEX, proof=st.sampled_from(["S1", None]))
    def require_recovery(self, index: int, proof: str | None) -> None:
        self.fenced(index, lambda tx, key: tx.require_recovery(key, why="t", proof=proof))

    @rule(index=INDEX)
    def release(self, index: int) -> None:
        self.fenced(index, lambda tx, key: tx.release(key, reason="released"))

    @rule(index=INDEX)
    def renew(self, index: int) -> None:
        owner = self.worker(index)
        held = set(self.world.store.read(lambda tx: tx.held(owner)))
        kept = self.may_be_refused(lambda tx: tx.renew(owner, lease_us=LEASE_US))
        if kept is not None:
            assert {LeaseKey(name, epoch, owner) for name, epoch in kept} == held

    @rule(index=INDEX, epoch=st.integers(1, 2))
    def confirm(self, index: int, epoch: int) -> None:
        if self.keys:
            name = self.keys[index % len(self.keys)].attempt_id
            self.may_be_refused(lambda tx: tx.confirm_stopped(name, expected_epoch=epoch, proof="S1", by="t"))

    # --- what holds after each step

    @invariant()
    def everything_holds(self) -> None:
        self.tables_are_the_fold_of_the_changefeed()
        for name, query in INVARIANTS:
            assert self.world.store._db.rows(query) == [], name  # type: ignore[attr-defined]
        usage = self.world.store.read(lambda tx: tx.usage())
        holding = [one for one in self.folded.attempts.values() if one.exclusion == "held"]
        assert sum(usage.counts.values()) == len(holding), "slots are what is unexcluded"

        self.world.store.read(time_adds_up)

    def tables_are_the_fold_of_the_changefeed(self) -> None:
        for event in self.world.store.read(lambda tx: tx.events(after=self.seen, limit=100_000)):
            assert event.seq == self.seen + 1
            self.folded.take(event)
            self.seen = event.seq
        assert self.world.store.read(tables) == self.folded

    # --- pieces

    def worker(self, index: int) -> Incarnation:
        return self.workers[-1 - index % min(4, len(self.workers))]  # mostly of those that came last

    def fenced(self, index: int, transition: Callable[[Tx, LeaseKey], None]) -> None:
        """Run a holder's transition: it loses its lease exactly when pure policy says that the lease gives no authority."""
        if not self.keys:
            return
        key = self.keys[-1 - index % len(self.keys)]
        authority = self.has_authority(key)
        try:
            self.world.store.write(lambda tx: transition(tx, key))
        except LeaseLostError:
            assert not authority
        except RefusedError:
            assert authority
        except FenceViolationError as error:
            assert authority
            assert any(word in str(error) for word in ("no step from", "leads to", "first launch"))  # noqa: PT017
        else:
            assert authority

    def has_authority(self, key: LeaseKey) -> bool:
        lease, attempt = self.world.store.read(lambda tx: (tx.lease(key.attempt_id), tx.attempt(key.attempt_id)))
        assert lease is not None
        assert attempt is not None
        mine = (lease.owner, lease.epoch, attempt.epoch) == (key.owner, key.epoch, key.epoch)
        return mine and is_live(lease, self.world.clock.now()) and attempt.ended_at_us is None

    def may_be_refused(self, transition: Callable[[Tx], object]) -> set[tuple[AttemptId, int]] | None:
        try:
            return self.world.store.write(transition)  # type: ignore[return-value]
        except RefusedError:
            return None


TestLives = pytest.mark.req("E03", "E07", "E13", "R02", "R07", "R09", "C03", "V05", "D02")(Lives.TestCase)
TestLives.settings = settings(max_examples=80, stateful_step_count=50)


def test_the_reference_refuses_a_changefeed_that_skips_a_step() -> None:
    """The control: without the pin's event, the end does not follow from what was before."""
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        world.ended(world.worker())
        events = world.store.read(lambda tx: tx.events(after=0, limit=100))
        world.close()

    assert fold(events).works == {"w1": WorkState.COMPLETED}
    with pytest.raises(MisfitError):
        fold(event for event in events if event.kind != "attempt.pinned")
