"""Random lives of a store: everything that anybody may do to it, in any order, also with what they held long ago.

After each step the tables are what the state tables make of the changefeed, and no rule is broken. Writes go through two handles in
turn and now and then meet a fault; handles are closed and opened anew.
"""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from shared.errors import LeadershipLostError, RefusedError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, Ending, Exclusion, LeaseKey
from shared.model.event import NewEvent
from shared.model.instant import US_PER_S
from shared.model.stop import StopResult
from shared.model.work import SET_ASIDE, Reason, WorkChange, WorkKind, WorkState
from shared.policy.capacity import Wait
from shared.policy.lease import budget_left_us
from shared.policy.steps import is_final_attempt, is_final_work
from shared.store.active import active_config
from shared.store.contract import Claimed, ClaimRefused, Tx, UnreadableRow
from shared.store.values import GateHold, GateVerdict
from tests.model.machine import LAUNCH, Act, Machine
from tests.model.rough_store import BUSY, FULL, IOERR, Fault
from tests.support.declarations import TICK
from tests.support.passes import pass_record
from tests.support.stores import (
    ACCEPT_US,
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    LEADERSHIP_US,
    LEASE_US,
    RETURNED,
    TIMEOUT_US,
    identity,
)

HELD_BACK = WorkChange(WorkState.HELD, Reason.EXHAUSTED, None, 0)
ENDINGS = st.sampled_from(
    [
        AttemptState.SUCCEEDED,
        AttemptState.FAILED,
        AttemptState.TIMED_OUT,
        AttemptState.INTERRUPTED,
        AttemptState.HANDED_OFF,
    ]
)
RESTED = WorkChange(WorkState.IDLE, None, None, 0, spends_inputs=True)
FAILED = (AttemptState.FAILED, AttemptState.TIMED_OUT, AttemptState.INTERRUPTED)
CHANGES = st.sampled_from([COMPLETED, EXHAUSTED, BACKED_OFF, RETURNED, HELD_BACK, RESTED])
AGAIN = st.sampled_from([EXHAUSTED, BACKED_OFF, RETURNED, HELD_BACK, RESTED])
PROOF = st.sampled_from(["S1", None])
PICK = st.integers(0, 99)
"""Below 80: of the last few, the last at 0; from there on: of all there ever were."""
VERDICTS: st.SearchStrategy[Act] = st.sampled_from(["adopt", "relaunch on evidence", "phases"])
ACTS: st.SearchStrategy[list[Act]] = st.lists(
    st.sampled_from([*get_args(Act), "finish", "finish", "finish"]), min_size=1, max_size=4
)


class Lives(Machine):
    """What may happen, one rule for each."""

    @initialize()
    def begin(self) -> None:
        self.workers += [self.world.worker("worker-1"), self.world.worker("worker-2")]
        for stage in range(3):
            self.start_job(stage, stage, [], AttemptState.FAILED, RETURNED, None)

    # --- the store itself

    @rule(
        fault=st.sampled_from(
            [
                ("begin", BUSY),
                ("begin", IOERR),
                ("statement", BUSY),
                ("statement", IOERR),
                ("statement", FULL),
                ("commit", BUSY),
                ("commit", FULL),
                ("commit", IOERR),
                ("commit", IOERR),
                ("committed", IOERR),
                ("committed", IOERR),
                ("committed", IOERR),
            ]
        ),
        countdown=st.integers(0, 12),
    )
    def meet_fault(self, fault: tuple[str, int], countdown: int) -> None:
        """The next write meets it."""
        point, code = fault
        self.rough.fault = Fault(point, code, countdown if point == "statement" else 0)

    @rule(pick=PICK, what=st.sampled_from(["reopen", "give up", "contend", "fill the disk"]))
    def disturb(self, pick: int, what: str) -> None:
        """A handle is opened anew; a writer comes to nothing in the middle of its transaction; two write at once; the space
        that is kept for ends is used up.
        """
        if what == "reopen":
            self.rough.reopen()
        elif what == "contend":
            self.rough.contend(lambda tx: tx.next_incarnation("worker-9"))
        elif what == "fill the disk":
            self.rough.ballast.free()
            self.claim(pick, 0)
        else:
            self.give_up(self.worker(pick))

    @rule(
        what=st.sampled_from(
            [1, US_PER_S, ACCEPT_US, *[LEASE_US // 3] * 3, LEASE_US, TIMEOUT_US, -US_PER_S, "wall", "boot"]
        )
    )
    def let_time_pass(self, what: int | str) -> None:
        """Also backwards, by the wall alone, and over a reboot."""
        clock = self.world.clock
        if what == "boot":
            clock.reboot(f"boot-{int(clock.now().boot_id[5:]) + 1}", down_us=US_PER_S)
            self.workers += [self.world.worker("worker-1"), self.world.worker("worker-2")]
        elif what == "wall":
            clock.step_wall((-1) ** self.seen * 86_400 * US_PER_S)
        else:
            clock.advance(what)

    # --- commands

    @rule(priority=st.integers(0, 2), scope=st.sampled_from(["", "ops", "ops/backup"]))
    def submit(self, priority: int, scope: str) -> None:
        before = self.world.store.read(lambda tx: tx.last_work_number())
        assert self.world.submit(priority=priority, scope=scope) == f"w{before + 1}"

    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        """Mostly what does not run: an attempt of it can be cancelled too."""
        at_rest = [name for name, state in self.folded.works.items() if state in (WorkState.HELD, WorkState.BACKOFF)]
        name = WorkId(self.pick(pick, at_rest if at_rest and pick < 50 else list(self.folded.works)))
        may = not is_final_work(self.folded.works[name])
        self.refused_unless(may, lambda tx: tx.cancel_work(name, by="t", reason="t"))

    @rule(pick=PICK, change=AGAIN)
    def cancel_attempt(self, pick: int, change: WorkChange) -> None:
        """Mostly what is parked, where anything is."""
        if self.keys:
            parked = [name for name, one in self.folded.attempts.items() if one.state is AttemptState.PARKED]
            name = AttemptId(self.pick(pick, parked)) if parked and pick < 60 else self.key(pick).attempt_id
            may = not is_final_attempt(self.folded.attempts[name].state)
            self.refused_unless(may, lambda tx: tx.cancel_attempt(name, by="t", reason="t", change=change))

    @rule(pick=PICK, ending=ENDINGS, change=CHANGES, proof=PROOF, late=st.booleans())
    def settle_by_hand(
        self, pick: int, ending: AttemptState, change: WorkChange, proof: str | None, late: bool
    ) -> None:
        """A person settles what was left to one; `late`: as it was an epoch ago."""
        if self.keys:
            self.act(self.key(pick), "leave to a person", ending, change, proof)
        settled = Ending(ending, None, None, None, None, "t")
        for one in self.world.store.read(lambda tx: tx.needs_person(limit=1)):
            epoch = one.epoch - late

            def settle(tx: Tx, name: AttemptId = one.id, epoch: int = epoch) -> None:
                tx.reconcile(name, expected_epoch=epoch, ending=settled, change=change, by="t", reason="t")

            if ending is AttemptState.HANDED_OFF and not late:
                self.is_no_step(settle)
            else:
                self.refused_unless(not late, settle)

    @rule(pick=PICK, hold=st.booleans())
    def hold_or_release(self, pick: int, hold: bool) -> None:
        """A person holds a Work, or lets it go; what is held already, or by nobody, is refused."""
        wanted = (WorkState.IDLE, WorkState.BACKOFF) if hold else (WorkState.HELD,)
        near = [name for name, state in self.folded.works.items() if state in wanted]
        work = self.world.work(WorkId(self.pick(pick, near if near and pick < 60 else list(self.folded.works))))
        if hold:
            may = work.hold is None and not is_final_work(work.state)
            self.refused_unless(may, lambda tx: tx.hold_work(work.id, by="t", reason="t"))
        else:
            may = work.hold is not None
            self.refused_unless(may, lambda tx: tx.release_work(work.id, by="t", reason="t"))

    @rule(pick=PICK)
    def retry(self, pick: int) -> None:
        """A person tries a Work again: one at rest that has had an attempt which failed, whose stop is proven."""
        failed = [name for name, state in self.folded.works.items() if state in (WorkState.FAILED, WorkState.HELD)]
        name = WorkId(self.pick(pick, failed if failed and pick < 50 else list(self.folded.works)))
        if pick % 5 == 0 and self.try_claim(self.world.submit(), self.worker(pick)):  # one that rests after a failure
            self.go_on((*LAUNCH, "finish"), AttemptState.FAILED, RESTED, "S1")
            name = work_of(self.keys[-1].attempt_id)
            self.everything_holds()
        work = self.world.work(name)
        attempts = self.world.store.read(lambda tx: tx.attempts(name))
        proven = all(one.exclusion is Exclusion.RELEASED for one in attempts)
        states = (WorkState.HELD, WorkState.BACKOFF, WorkState.FAILED)
        may = work.state in states or (work.state is WorkState.IDLE and bool(attempts) and attempts[-1].state in FAILED)
        may = may and bool(attempts) and proven and work.hold is None
        self.refused_unless(may, lambda tx: tx.retry_work(name, by="t", reason="t"))

    @rule(pick=PICK, key=st.sampled_from([None, "a", "b"]), first=st.booleans())
    def feed(self, pick: int, key: str | None, first: bool) -> None:
        """A standing Work is handed in, or gets a further input; under a key at most once."""
        if first:
            self.world.submit(kind=WorkKind.STANDING, input_=None if pick % 2 else b"first")
            return
        work = self.world.work(WorkId(self.pick(pick, list(self.folded.works))))
        known = None if key is None else self.world.store.read(lambda tx: tx.submission(key))
        may = work.kind is WorkKind.STANDING and not is_final_work(work.state)
        if known is not None:
            may = known.work_id == work.id
        self.refused_unless(may, lambda tx: tx.add_input(work.id, b"more", by="t", key=key))

    @rule(pick=PICK, what=st.sampled_from(["hold", "admitted", "refused", "charge", "charge late"]))
    def gate_or_charge(self, pick: int, what: str) -> None:
        """A gate turns a first start into a hold, or settles what it holds; or what is staged is settled."""
        if what.startswith("charge"):
            self.charge(late=what == "charge late")
            return
        if what == "hold":
            new = [work.id for work in self.world.ready() if not work.attempts_used] or [self.world.submit()]
            self.try_claim(WorkId(self.pick(pick, new)), self.worker(pick), GateHold("approval", "ask"))
            return
        verdict: GateVerdict = "admitted" if what == "admitted" else "refused"
        held = [work.id for work in self.world.store.read(lambda tx: tx.held_for([Reason.GATE_HELD], limit=9))]
        name = WorkId(self.pick(pick, held or list(self.folded.works)))
        self.refused_unless(
            bool(held), lambda tx: tx.settle_gate(name, holder="approval", verdict=verdict, by="t", reason="t")
        )

    def charge(self, *, late: bool) -> None:
        """Settle what is staged; `late`: as a leader that knows the configuration before, which charges nothing."""
        active = self.world.store.read(active_config)
        number = active.number - 1 if late and active.number is not None else active.number
        done = self.world.as_leader(lambda tx: tx.settle_usage(active.config.budgets, generation=number, limit=99))
        assert not (late and active.number is not None and done)

    @rule(release=st.booleans())
    def quarantine(self, release: bool) -> None:
        is_quarantined = "backup" in self.world.store.read(lambda tx: tx.quarantined())
        if release:
            self.refused_unless(is_quarantined, lambda tx: tx.release_binding("backup", by="t", reason="t"))
        else:
            self.refused_unless(not is_quarantined, lambda tx: tx.quarantine_binding("backup", by="t", reason="t"))

    # --- who takes part

    @rule(pick=PICK, name=st.sampled_from(["worker-1", "worker-2"]), what=st.sampled_from(["", "drain", "retire"]))
    def come_and_go(self, pick: int, name: str, what: str) -> None:
        """A worker leaves, or not, and another comes."""
        owner = self.worker(pick)
        if what == "drain":
            self.world.store.write(lambda tx: tx.drain_worker(owner))
        elif what == "retire":
            self.world.store.write(lambda tx: tx.retire_worker(owner, reason="released"))
        self.workers.append(self.world.worker(name))

    @rule(pick=PICK, resigns=st.booleans(), proven=st.booleans())
    def take_lead(self, pick: int, resigns: bool, proven: bool) -> None:
        """Another coordinator wants to lead; it may when the one before is proven dead, has resigned, or its lease is over."""
        if resigns and self.leaders:
            old, generation = self.pick(pick, self.leaders)
            self.world.store.write(lambda tx: tx.resign(old, generation))
        before = self.world.store.read(lambda tx: tx.leader())
        now = self.world.clock.now()
        protected = before is not None and before.boot_id == now.boot_id and before.expires_mono_us > now.mono_us
        owner = self.world.store.write(lambda tx: tx.next_incarnation("coordinator"))
        taken = self.world.store.write(
            lambda tx: tx.take_leadership(
                owner,
                process=identity(1),
                lock_device=1,
                lock_inode=2,
                duration_us=LEADERSHIP_US,
                proven_dead=before.generation if proven and before is not None else None,
            )
        )
        assert (taken is None) == (protected and not proven)
        if taken is not None:
            assert taken.generation == (1 if before is None else before.generation + 1)
            self.world.leader, self.world.generation = owner, taken.generation

    @rule(pick=PICK)
    def lead(self, pick: int) -> None:
        """Whoever led at any time records a pass; only the leader may."""
        if not self.leaders:
            return
        owner, generation = self.pick(pick, self.leaders)
        found, now = self.world.store.read(lambda tx: tx.leader()), self.world.clock.now()
        assert found is not None
        live = found.boot_id == now.boot_id and found.expires_mono_us > now.mono_us
        may = live and (found.owner, found.generation) == (owner, generation)

        def record(tx: Tx) -> None:
            tx.lead(owner, generation, duration_us=LEADERSHIP_US, renew_after_us=LEADERSHIP_US // 3)
            tx.mark_clock(offset_us=self.seen % 2)
            tx.record_pass(pass_record())

        try:
            self.world.store.write(record)
        except LeadershipLostError:
            assert not may
        else:
            assert may

    # --- the leader

    @rule(pick=PICK, stage=st.integers(0, 2), acts=ACTS, ending=ENDINGS, change=CHANGES, proof=PROOF)
    def start_job(
        self, pick: int, stage: int, acts: list[Act], ending: AttemptState, change: WorkChange, proof: str | None
    ) -> None:
        """Submit, claim, go as far as `stage` (0 claimed, 1 accepted, 2 pinned), and on."""
        if self.try_claim(self.world.submit(), self.worker(pick)):
            self.go_on((*LAUNCH[:stage], *acts), ending, change, proof)

    @rule(pick=PICK, which=PICK)
    def claim(self, pick: int, which: int) -> None:
        ready = self.world.ready()
        if ready:
            self.try_claim(ready[which % len(ready)].id, self.worker(pick))

    @rule(pick=PICK)
    def claim_late(self, pick: int) -> None:
        """A claim that was decided on long ago: refused unless everything it rests on is as it was."""
        if self.requests:
            request = self.pick(pick, self.requests)
            work = self.world.work(request.work_id)
            answer = self.world.as_leader(lambda tx: tx.claim(request))
            if work.state is not WorkState.READY or work.revision != request.revision:
                assert answer == ClaimRefused("work", None, None)
            elif isinstance(answer, Claimed):
                self.keys.append(LeaseKey(answer.attempt_id, 1, request.worker))

    @rule(pick=PICK, which=PICK, acts=ACTS, ending=ENDINGS, change=CHANGES, proof=PROOF)
    def recover(
        self, pick: int, which: int, acts: list[Act], ending: AttemptState, change: WorkChange, proof: str | None
    ) -> None:
        """Take over what nobody holds, accept it, and go on as its holder."""
        found = self.world.recoverable()
        if found and self.try_recover(found[which % len(found)].attempt.id, self.worker(pick), behind=0):
            self.go_on(("accept", *acts), ending, change, proof)

    @rule(pick=PICK, which=PICK, first=VERDICTS, acts=ACTS, ending=ENDINGS, change=CHANGES, proof=PROOF)
    def hand_over(
        self,
        pick: int,
        which: int,
        first: Act,
        acts: list[Act],
        ending: AttemptState,
        change: WorkChange,
        proof: str | None,
    ) -> None:
        """A holder releases what it holds and has launched, another takes it over."""
        if self.keys:
            key = self.key(which)
            self.go_on(("pin", "release"), ending, change, proof, key=key)
            if self.try_recover(key.attempt_id, self.worker(pick), behind=0):
                self.go_on(("accept", first, *acts), ending, change, proof)

    @rule(pick=PICK, which=PICK, behind=st.integers(0, 1))
    def recover_any(self, pick: int, which: int, behind: int) -> None:
        """Any attempt there ever was, also one that somebody holds, or as it was seen an epoch ago."""
        if self.keys:
            self.try_recover(self.key(which).attempt_id, self.worker(pick), behind=behind)

    @rule(which=PICK, change=AGAIN)
    def time_out(self, which: int, change: WorkChange) -> None:
        """The leader ends what nobody holds, exactly when its time is used up."""
        found = self.world.recoverable()
        if found:
            attempt, out_of_time = found[which % len(found)].attempt, found[which % len(found)].out_of_time
            assert out_of_time == (budget_left_us(attempt, self.world.clock.now()) == 0)
            done = self.world.as_leader(
                lambda tx: tx.time_out_lapsed(attempt.id, epoch_seen=attempt.epoch, why="t", change=change)
            )
            assert done is out_of_time

    @rule()
    def reconcile(self) -> None:
        """What a leader's pass begins with."""
        self.world.as_leader(lambda tx: tx.record_clock_jump(1, offset_us=self.seen % 3))
        self.world.as_leader(lambda tx: tx.revoke_foreign_boots())
        self.world.as_leader(lambda tx: tx.carry_timers(limit=9))
        self.world.as_leader(lambda tx: tx.revoke_unaccepted(accept_timeout_us=ACCEPT_US))

    @rule(number=st.integers(1, 12), reason=st.sampled_from([Reason.NO_WORKER, Reason.CAPACITY_SCOPE, *SET_ASIDE]))
    def hold_back(self, number: int, reason: Reason) -> None:
        name = WorkId(f"w{number}")
        self.world.as_leader(lambda tx: tx.hold_back([Wait(name, reason, "ops")]))
        found = self.world.store.read(lambda tx: tx.work(name))
        assert found is None or (found.reason is reason) or found.state is not WorkState.READY
        self.requeue()
        self.configure(number % 2)

    def requeue(self) -> None:
        """What is ready is in the queue, or set aside, and never both."""
        aside = self.world.store.read(lambda tx: tx.set_aside("jobs", after=None, limit=64)).ids
        queued = {work.id for work in self.world.ready()}
        assert not queued & set(aside)
        self.world.as_leader(lambda tx: tx.requeue(aside))
        assert {work.id for work in self.world.ready()} == queued | set(aside)

    @rule(number=st.integers(1, 3), again=st.booleans())
    def mark_row(self, number: int, again: bool) -> None:
        """A row is said to be unreadable, or to be readable again; that it is so, or was marked, is nobody's condition."""
        rows = [UnreadableRow("work", f"w{number}", "command")]
        self.world.as_leader(lambda tx: tx.unmark_readable(rows) if again else tx.mark_unreadable(rows))

    @rule(number=st.integers(1, 12), due=st.booleans())
    def fire(self, number: int, due: bool) -> None:
        """End the backoffs that are over, or want to end any."""
        if due:
            self.world.clock.advance(US_PER_S)
        names = [timer.work_id for timer in self.world.store.read(lambda tx: tx.timers_due(limit=99))]
        for name in names if due else [WorkId(f"w{number}")]:
            is_over = self.is_backoff_over(name)
            assert is_over or name not in names
            timer = self.world.store.read(lambda tx, name=name: tx.last_timer(name))  # type: ignore[misc]
            if timer is not None:
                leading = self.world.led(lambda tx, timer=timer: tx.fire_timer(timer.id))  # type: ignore[misc]
                self.refused_unless(is_over, leading)

    @rule(pick=PICK, which=PICK, stage=st.integers(0, 2), acts=ACTS, ending=ENDINGS, change=CHANGES, proof=PROOF)
    def park_and_resume(
        self,
        pick: int,
        which: int,
        stage: int,
        acts: list[Act],
        ending: AttemptState,
        change: WorkChange,
        proof: str | None,
    ) -> None:
        """What runs parks; what is waited for comes, or not yet; what was woken first is resumed, and goes on, or its launch is
        lost and made again, or comes to nothing and is put off.
        """
        if self.keys and stage > 0:
            self.go_on(("pin", "park"), ending, change, proof, key=self.key(which))
        if which % 2:
            self.world.store.write(lambda tx: tx.publish(TICK))
        for one in self.world.store.read(lambda tx: tx.woken("jobs", limit=1).woken):
            if not self.try_resume(one.attempt.id, self.worker(pick), behind=0):
                continue
            if stage == 0 and pick % 3 == 0:
                self.go_on(("launch", "put off"), ending, change, proof)
                continue
            if stage == 0:
                self.go_on(("launch", "release"), ending, change, proof)
                if not self.try_recover(one.attempt.id, self.worker(pick), behind=0):
                    continue
                self.go_on(("accept", "put off" if pick % 3 == 1 else "relaunch"), ending, change, proof)
            self.go_on((*LAUNCH[:stage], *acts), ending, change, proof)

    @rule(pick=PICK, ending=ENDINGS, change=CHANGES, proof=PROOF)
    def end_resumed(self, pick: int, ending: AttemptState, change: WorkChange, proof: str | None) -> None:
        """A job of its own parks and is woken, and ends before anything of its resume has run."""
        owner = self.worker(pick)
        if not self.try_claim(self.world.submit(), owner):
            return
        key = self.keys[-1]
        self.go_on(("launch", "pin", "park"), ending, change, proof)
        self.world.store.write(lambda tx: tx.publish(TICK))
        if self.try_resume(key.attempt_id, owner, behind=0):
            self.go_on(("launch", "finish"), ending, change, proof)

    @rule(pick=PICK, which=PICK, behind=st.integers(0, 1))
    def resume_any(self, pick: int, which: int, behind: int) -> None:
        """Any attempt there ever was, also as it was an epoch ago, whether what it waits for has come or not; and passes go on with
        what has not woken all.
        """
        self.world.store.write(lambda tx: tx.publish(TICK if behind else NewEvent("tock", "k", "null", "t")))
        if pick % 3:
            self.world.as_leader(lambda tx: tx.wake_on(limit=pick % 3))
        if self.keys:
            self.try_resume(self.key(which).attempt_id, self.worker(pick), behind=behind)

    # --- the holders, present and past

    @rule(pick=PICK, acts=ACTS, ending=ENDINGS, change=CHANGES, proof=PROOF)
    def hold(self, pick: int, acts: list[Act], ending: AttemptState, change: WorkChange, proof: str | None) -> None:
        """What one holder does, one act after the other, whether it still may or not."""
        if self.keys:
            self.go_on(acts, ending, change, proof, key=self.key(pick))

    @rule(pick=PICK, late=st.booleans())
    def renew(self, pick: int, late: bool) -> None:
        """Who holds, or held, renews: in time, or when it is too late."""
        owner = self.pick(pick, self.keys).owner if self.keys else self.worker(pick)
        if late:
            self.world.clock.advance(LEASE_US)
        held = set(self.world.store.read(lambda tx: tx.held(owner)))
        try:
            kept = self.world.store.write(lambda tx: tx.renew(owner, lease_us=LEASE_US))
        except RefusedError:
            assert not self.is_present(owner)
        else:
            assert self.is_present(owner)
            self.world.store.write(lambda tx: tx.beat(owner))
            assert {LeaseKey(name, epoch, owner) for name, epoch in kept} == held

    # --- stop orders

    @rule(pick=PICK, late=st.booleans())
    def confirm(self, pick: int, late: bool) -> None:
        if self.keys:
            name = self.key(pick).attempt_id
            found = self.folded.attempts[name]
            epoch = found.epoch - late
            may = is_final_attempt(found.state) and not late
            self.refused_unless(may, lambda tx: tx.confirm_stopped(name, expected_epoch=epoch, proof="S1", by="t"))

    @rule(pick=PICK, which=PICK, tried=st.sampled_from([None, "S1: no exit record", "S2: no cgroup"]))
    def work_on_order(self, pick: int, which: int, tried: str | None) -> None:
        """Any order there ever was: it is the taker's when it is open and nobody else's, and may be given back then."""
        self.orders += [one for one in self.open_orders() if one.id not in {old.id for old in self.orders}]
        if not self.orders:
            return
        owner, number = self.worker(pick), self.pick(which, self.orders).id
        free = {one.id for one in self.world.store.read(lambda tx: tx.stop_orders(unassigned=True, limit=1_000))}
        free |= {one.id for one in self.open_orders() if one.owner == owner}
        taken = False
        try:
            taken = self.world.store.write(lambda tx: tx.take_stop_order(number, owner, lease_us=US_PER_S))
        except RefusedError:
            assert not self.is_present(owner)
        else:
            assert taken == (number in free)
        if tried is not None:
            result = StopResult(None, (), (tried,), None)
            self.refused_unless(taken, lambda tx: tx.report_unproven(number, owner, result, retry_us=US_PER_S))
