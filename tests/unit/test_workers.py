"""Which workers may be handed an attempt, new or lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from shared.ids import Incarnation
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.host import Worker, WorkerState
from shared.model.instant import US_PER_S, Instant
from shared.policy.workers import choose_recoverer, eligible, is_responsive
from tests.support.evidence import PIN, SHIM

LEASE_US = 60 * US_PER_S
NOW = Instant(wall_us=1_800_000_000 * US_PER_S, mono_us=1_000 * US_PER_S, boot_id=SHIM.boot_id)
SOUND = Worker(
    id=Incarnation("worker-1.7"),
    name="worker-1",
    identity=ProcessIdentity(pid=70, start_ticks=1, boot_id=SHIM.boot_id, pid_ns=SHIM.pid_ns),
    machine_id="m",
    lock_device=1,
    lock_inode=2,
    slots=4,
    executors=("shell@1",),
    state=WorkerState.LIVE,
    beat_mono_us=NOW.mono_us,
    in_use=1,
    overdue=False,
)
ELSEWHERE = replace(SOUND.identity, pid_ns=5)
REBOOTED = replace(SOUND.identity, boot_id="boot-0")


def named(name: str, *, pid_ns: int = SHIM.pid_ns, in_use: int = 0) -> Worker:
    identity = replace(SOUND.identity, pid_ns=pid_ns)
    return replace(SOUND, id=Incarnation(name), identity=identity, in_use=in_use)


def is_eligible(worker: Worker, *, lock_held: bool = True) -> bool:
    held = {worker.id} if lock_held else set()
    return bool(eligible([worker], NOW, lease_us=LEASE_US, held_locks=held))


@pytest.mark.parametrize(
    ("state", "age_s", "lock_held", "same_boot", "overdue"),
    list(product(WorkerState, (0, 19.999999, 20, 3600), (True, False), (True, False), (True, False))),
)
def test_a_worker_is_eligible_when_every_condition_holds(
    state: WorkerState, age_s: float, lock_held: bool, same_boot: bool, overdue: bool
) -> None:
    beat = NOW.mono_us - round(age_s * US_PER_S)
    identity = SOUND.identity if same_boot else REBOOTED
    worker = replace(SOUND, state=state, beat_mono_us=beat, identity=identity, overdue=overdue)
    responsive = state.value == "live" and age_s < 20 and lock_held and same_boot

    held = {worker.id} if lock_held else set()
    assert is_responsive(worker, NOW, lease_us=LEASE_US, held_locks=held) is responsive
    assert is_eligible(worker, lock_held=lock_held) is (responsive and not overdue)


def test_the_lock_of_another_worker_speaks_for_nobody_else() -> None:
    assert is_eligible(SOUND), "control"

    assert eligible([SOUND], NOW, lease_us=LEASE_US, held_locks={Incarnation("worker-1.8")}) == ()


def test_an_eligible_worker_offers_the_slots_it_has_left_and_its_executors() -> None:
    worker = replace(SOUND, slots=4, in_use=3, executors=("agent", "shell"))

    (offer,) = eligible([worker], NOW, lease_us=LEASE_US, held_locks={worker.id})

    assert (offer.id, offer.free, offer.executors) == (worker.id, 1, frozenset({"agent", "shell"}))


@pytest.mark.parametrize("pin", [PIN, None], ids=["pinned", "unpinned"])
def test_the_least_loaded_worker_recovers_then_the_first_by_name(pin: Pin | None) -> None:
    workers = [named("worker-3.1"), named("worker-1.1"), named("worker-2.1")]
    load = {Incarnation("worker-1.1"): 2, Incarnation("worker-2.1"): 1, Incarnation("worker-3.1"): 1}

    chosen = [choose_recoverer(workers, pin, load, registration="shell@1", avoid=None) for _ in range(4)]

    assert chosen == ["worker-2.1", "worker-3.1", "worker-1.1", "worker-2.1"]
    assert load == {"worker-1.1": 3, "worker-2.1": 3, "worker-3.1": 2}


def test_recovery_ignores_slots() -> None:
    full = replace(named("worker-1.1", in_use=64), slots=1)

    assert choose_recoverer([full], PIN, {full.id: 64}, registration="shell@1", avoid=None) == full.id


def test_a_worker_that_did_not_accept_in_time_comes_last_but_is_better_than_nobody() -> None:
    late, other = named("worker-1.1"), named("worker-2.1")
    load = {late.id: 0, other.id: 50}
    assert choose_recoverer([late, other], PIN, dict(load), registration="shell@1", avoid=None) == late.id, "control"

    assert choose_recoverer([late, other], PIN, dict(load), registration="shell@1", avoid=late.id) == other.id
    assert choose_recoverer([late], PIN, dict(load), registration="shell@1", avoid=late.id) == late.id


@pytest.mark.req("R04")
def test_a_pinned_attempt_goes_only_to_a_worker_that_sees_its_processes() -> None:
    blind = named("worker-1.1", pid_ns=5)
    assert choose_recoverer([blind], None, {}, registration="shell@1", avoid=None) == blind.id, "control: without a pin"
    assert choose_recoverer([named("worker-1.1")], PIN, {}, registration="shell@1", avoid=None) == "worker-1.1", (
        "control: its namespace"
    )

    assert choose_recoverer([blind], PIN, {}, registration="shell@1", avoid=None) is None


def test_after_a_reboot_any_worker_may_read_what_is_left() -> None:
    old = replace(PIN, shim=replace(SHIM, boot_id="boot-0"))

    assert (
        choose_recoverer([named("worker-1.1", pid_ns=5)], old, {}, registration="shell@1", avoid=None) == "worker-1.1"
    )


def test_nobody_recovers_when_nobody_is_there() -> None:
    load: dict[Incarnation, int] = {}

    assert choose_recoverer([], PIN, load, registration="shell@1", avoid=None) is None
    assert load == {}
