"""The store of the random lives, who uses it, and what must hold after each of their steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import ClassVar, Literal, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from shared.errors import FenceViolationError, LeaseLostError, RefusedError
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import AttemptState, Ending, Exclusion, FailureClass, LeaseKey, Phase
from shared.model.budget import Budget, Per
from shared.model.host import StopOrder
from shared.model.instant import US_PER_S, elapsed_us
from shared.model.outcome import Outcome, OutcomeKind, Turn, WaitSpec
from shared.model.settings import DEFAULT
from shared.model.work import Reason, WorkChange, WorkState
from shared.policy.lease import is_live
from shared.policy.steps import is_final_attempt
from shared.store.contract import Claimed, ClaimRequest, ReadTx, ResumeRequest, Tx
from shared.store.sqlite.inspect import INVARIANTS
from shared.store.values import ClaimHeld, GateHold
from tests.model.fold import Folded, Step, Told, step_of, tables
from tests.model.rough_store import RoughStore
from tests.support.declarations import HANDED_OFF, TURN, WAITS
from tests.support.stores import (
    AGAIN,
    BACKED_OFF,
    LEASE_US,
    NOTHING_RAN,
    SQLITE,
    TIMEOUT_US,
    World,
    new_work,
    no_refusal,
    ram_folder,
)

T = TypeVar("T")

HANDLES = 2
Act = Literal[
    "accept",
    "launch",
    "phases",
    "pin",
    "adopt",
    "relaunch",
    "relaunch on evidence",
    "declare",
    "park",
    "put off",
    "await",
    "finish",
    "leave to a person",
    "release",
]
"""What a holder does."""
PLENTY = Budget("minutes", Decimal(10**9), Per.ALL)
LAUNCH: tuple[Act, ...] = ("launch", "pin")


class Machine(RuleBasedStateMachine):
    """One store and all who use it.

    Attributes:
        keys, workers, leaders, requests, orders: All that anybody ever held, the last one last.
        steps, done, met: Steps of the state tables, transitions and faults of all lives so far.
    """

    steps: ClassVar[Counter[Step]] = Counter()
    done: ClassVar[Counter[str]] = Counter()
    met: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self.world = World(SQLITE, self._stack.enter_context(ram_folder()))
        self.rough = RoughStore(self.world, HANDLES)
        self.world.store = self.rough
        self.keys: list[LeaseKey] = []
        self.workers: list[Incarnation] = []
        self.leaders: list[tuple[Incarnation, int]] = []
        self.requests: list[ClaimRequest] = []
        self.orders: list[StopOrder] = []
        self.folded = Folded()
        self.told = Told()
        self.seen = 0

    def teardown(self) -> None:
        type(self).done.update(self.rough.done)
        type(self).met.update(self.rough.met)
        self.world.close()
        self._stack.close()

    @invariant()
    def everything_holds(self) -> None:
        self.tables_are_the_fold_of_the_changefeed()
        for name, query in INVARIANTS:
            assert self.rough.rows(query) == [], name
        usage = self.world.store.read(lambda tx: tx.usage())
        holding = [
            one
            for one in self.folded.attempts.values()
            if one.exclusion is Exclusion.HELD and one.state is not AttemptState.PARKED
        ]
        assert sum(usage.counts.values()) == len(holding), "slots are what is unexcluded and not parked"
        self.world.store.read(time_adds_up)
        led = (self.world.leader, self.world.generation)
        if led[0] is not None and (not self.leaders or self.leaders[-1] != led):
            self.leaders.append((led[0], led[1]))

    def tables_are_the_fold_of_the_changefeed(self) -> None:
        for event in self.world.store.read(lambda tx: tx.events(after=self.seen, limit=100_000)):
            assert event.seq == self.seen + 1
            step = step_of(self.folded, event)
            if step is not None:
                type(self).steps[step] += 1
            self.folded.take(event)
            self.told.take(event)
            self.seen = event.seq
        assert self.world.store.read(tables) == (self.folded, self.told)

    def pick(self, pick: int, of: Sequence[T]) -> T:
        return of[-1 - pick % min(4, len(of))] if pick < 80 else of[(pick * 7 + self.seen) % len(of)]

    def worker(self, pick: int) -> Incarnation:
        return self.pick(pick, self.workers)

    def key(self, pick: int) -> LeaseKey:
        """Mostly one that still gives authority."""
        live = self.live(self.keys[-12:]) if pick < 60 else []
        return self.pick(pick, live or self.keys)

    def live(self, keys: Sequence[LeaseKey]) -> list[LeaseKey]:
        """Those of the keys that pure policy says give authority now."""
        now = self.world.clock.now()

        def choose(tx: ReadTx) -> list[LeaseKey]:
            found = [(key, tx.lease(key.attempt_id), tx.attempt(key.attempt_id)) for key in keys]
            return [
                key
                for key, lease, attempt in found
                if lease is not None
                and attempt is not None
                and (lease.owner, lease.epoch, attempt.epoch) == (key.owner, key.epoch, key.epoch)
                and is_live(lease, now)
                and attempt.ended_at_us is None
            ]

        return self.world.store.read(choose)

    def has_authority(self, key: LeaseKey) -> bool:
        return bool(self.live([key]))

    def is_present(self, owner: Incarnation) -> bool:
        boot = self.world.clock.now().boot_id
        there = self.world.store.read(lambda tx: tx.workers())
        return any((one.id, one.identity.boot_id) == (owner, boot) for one in there)

    def refused_unless(self, may: bool, transition: Callable[[Tx], object]) -> None:
        try:
            self.world.store.write(transition)
        except RefusedError:
            assert not may
        else:
            assert may

    def is_no_step(self, transition: Callable[[Tx], object]) -> None:
        try:
            self.world.store.write(transition)
        except FenceViolationError as error:
            assert "no step from" in str(error)  # noqa: PT017
        else:
            raise AssertionError("a step that is in no table was taken")

    def fenced(self, key: LeaseKey, transition: Callable[[Tx], None]) -> None:
        """Run a holder's transition: it loses its lease exactly when pure policy says that the lease gives no authority."""
        authority = self.has_authority(key)
        try:
            self.world.store.write(transition)
        except LeaseLostError:
            assert not authority
        except RefusedError:
            assert authority
        except FenceViolationError as error:
            assert authority
            assert any(word in str(error) for word in ("no step from", "leads to", "first launch"))  # noqa: PT017
        else:
            assert authority

    def act(self, key: LeaseKey, act: Act, ending: AttemptState, change: WorkChange, proof: str | None) -> None:
        failure = None if ending is AttemptState.SUCCEEDED else FailureClass.KNOWN
        match act:
            case "accept":
                self.fenced(key, lambda tx: tx.accept(key, invoke_isolated=None))
            case "launch":
                self.fenced(key, lambda tx: tx.accept(key, invoke_isolated=True))
            case "phases":
                self.fenced(key, lambda tx: tx.record_phases(key, [Phase("sandbox", 1, 2, "ok")]))
            case "pin":
                self.fenced(key, lambda tx: tx.pin(key, self.world.pin(key)))
            case "adopt":
                self.fenced(key, lambda tx: tx.adopt(key, why="t"))
            case "relaunch" | "relaunch on evidence":
                self.fenced(key, lambda tx: tx.relaunch(key, clear_pin=act != "relaunch", why="t"))
            case "declare":
                self.fenced(key, lambda tx: tx.declare(key, [TURN]))
            case "park" | "put off" | "await":
                self.wait(key, act)
            case "finish":
                self.fenced(key, lambda tx: tx.finish(key, Ending(ending, 0, failure, None, proof, "t"), change))
            case "leave to a person":
                self.fenced(key, lambda tx: tx.require_recovery(key, why="t", proof=proof))
            case "release":
                self.fenced(key, lambda tx: tx.release(key, reason="released"))

    def wait(self, key: LeaseKey, act: Act) -> None:
        match act:
            case "park":
                waiting = self.waiting(resume=True)
                self.fenced(key, lambda tx: tx.park(key, waiting, proof="S1"))
            case "put off":
                self.fenced(key, lambda tx: tx.put_off(key, NOTHING_RAN, proof="S0", again=AGAIN))
            case _:
                waiting = self.waiting(resume=False)
                self.fenced(key, lambda tx: tx.finish(key, HANDED_OFF, WAITS, outcome=waiting))

    def waiting(self, *, resume: bool) -> Outcome:
        """A turn's end that waits for a tick from now on, or a second."""
        wait = WaitSpec("tick", None, US_PER_S, None, resume=resume, since_seq=self.seen)
        return Outcome(OutcomeKind.WAITING, Turn("done", ""), wait)

    def go_on(
        self,
        acts: Sequence[Act],
        ending: AttemptState,
        change: WorkChange,
        proof: str | None,
        *,
        key: LeaseKey | None = None,
    ) -> None:
        """Act as the holder of `key`, or of the last one."""
        for act in acts:
            self.act(key or self.keys[-1], act, ending, change, proof)

    def try_claim(self, work_id: WorkId, owner: Incarnation, gate_hold: GateHold | None = None) -> bool:
        request = self.world.request(work_id, owner, gate_hold=gate_hold)
        self.requests.append(request)
        has_ballast = self.rough.ballast.is_there()
        answer = self.world.as_leader(lambda tx: tx.claim(request))
        if isinstance(answer, Claimed):
            assert has_ballast, "claims stop while the disk is full"
            self.keys.append(LeaseKey(answer.attempt_id, 1, owner))
            return True
        if isinstance(answer, ClaimHeld):
            assert gate_hold is not None, "no budget here is ever used up"
            return False
        assert answer.changed == "worker" or answer.reason in (Reason.DISK_FULL, Reason.STOP_UNPROVEN), answer
        return False

    def try_recover(self, name: AttemptId, owner: Incarnation, *, behind: int) -> bool:
        attempt, lease, workers = self.world.store.read(lambda tx: (tx.attempt(name), tx.lease(name), tx.workers()))
        assert attempt is not None
        assert lease is not None
        now = self.world.clock.now()
        offers = any((one.id, one.state, one.identity.boot_id) == (owner, "live", now.boot_id) for one in workers)
        open_ = not is_final_attempt(attempt.state)
        open_ = open_ and attempt.state not in (AttemptState.RECOVERY_REQUIRED, AttemptState.PARKED)
        seen = attempt.epoch - behind
        epoch = self.world.as_leader(
            lambda tx: tx.claim_recovery(name, epoch_seen=seen, worker=owner, lease_us=LEASE_US)
        )
        may = open_ and offers and behind == 0 and not is_live(lease, now)
        assert epoch == (attempt.epoch + 1 if may else None)
        if epoch is not None:
            self.keys.append(LeaseKey(name, epoch, owner))
        return epoch is not None

    def configure(self, concurrency: int) -> None:
        budgets = (PLENTY,) if concurrency % 2 else ()
        chosen = replace(DEFAULT, settings=replace(DEFAULT.settings, job_concurrency=concurrency), budgets=budgets)
        before = self.world.store.read(lambda tx: tx.config())
        number = self.world.store.write(lambda tx: tx.activate_config(chosen.to_json(), chosen.digest, "tenure.toml"))
        assert number == (1 if before is None else before.number + (before.digest != chosen.digest))

    def try_resume(self, name: AttemptId, owner: Incarnation, *, behind: int) -> bool:
        """Resume a parked attempt: exactly when what it waits for has come, nobody holds its Work, and a worker is there."""
        attempt, workers = self.world.store.read(lambda tx: (tx.attempt(name), tx.workers()))
        assert attempt is not None
        work, awaited = self.world.store.read(lambda tx: (tx.work(attempt.work_id), tx.awaited(attempt.work_id)))
        assert work is not None
        boot = self.world.clock.now().boot_id
        offers = any((one.id, one.state, one.identity.boot_id) == (owner, "live", boot) for one in workers)
        woken = awaited is not None and awaited.due_seq is not None and awaited.attempt_id == name
        may = woken and offers and behind == 0 and work.hold is None and self.rough.ballast.is_there()
        request = ResumeRequest(name, attempt.epoch - behind, owner, LEASE_US, no_refusal)
        answer = self.world.as_leader(lambda tx: tx.claim_resume(request))
        assert isinstance(answer, Claimed) == may, answer
        if may:
            self.keys.append(LeaseKey(name, attempt.epoch + 1, owner))
        return may

    def is_backoff_over(self, name: WorkId) -> bool:
        """Whether the time is over that a Work backs off for, waits for at most, or that its resume is put off for."""
        work, timer = self.world.store.read(lambda tx: (tx.work(name), tx.timer(name)))
        if timer is not None and work is not None and work.state is WorkState.WAITING:
            return elapsed_us(timer.since, self.world.clock.now()) >= timer.after_us
        if work is None or work.backoff_since is None or work.backoff_us is None:
            return False
        return elapsed_us(work.backoff_since, self.world.clock.now()) >= work.backoff_us

    def open_orders(self) -> list[StopOrder]:
        return self.world.store.read(lambda tx: tx.stop_orders(limit=1_000))

    def give_up(self, owner: Incarnation) -> None:
        held = self.live(self.keys[-4:])

        def write(tx: Tx) -> None:
            for key in held:
                tx.finish(key, Ending(AttemptState.FAILED, 1, FailureClass.KNOWN, None, None, "t"), BACKED_OFF)
            tx.retire_worker(owner, reason="t")
            tx.submit(new_work(), "jobs")

        self.rough.interrupt(write)


def time_adds_up(tx: ReadTx) -> None:
    """What the segments of an attempt that is not let go used and what it has left is its timeout, at every instant. Rule: E13, E17."""
    for attempt in tx.holders(limit=1_000):
        ended = [one.active_us for one in tx.segments(attempt.id) if one.active_us is not None]
        used = attempt.segments_dropped_us + sum(ended)
        assert attempt.budget_us == max(0, TIMEOUT_US - used)
