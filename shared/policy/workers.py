"""Which workers may be handed an attempt. Rule: design §5 ("It is eligible when …", "Recovery ignores slots …")."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shared.ids import Incarnation
from shared.model.evidence import Pin
from shared.model.host import Worker, WorkerState
from shared.model.instant import Instant
from shared.policy.capacity import WorkerSlots


def is_responsive(worker: Worker, now: Instant, *, lease_us: int, held_locks: Collection[Incarnation]) -> bool:
    """Live on this boot, its lock held, and its last sign of life younger than a third of the lease."""
    return (
        worker.state is WorkerState.LIVE
        and worker.identity.boot_id == now.boot_id
        and worker.id in held_locks
        and now.mono_us - worker.beat_mono_us < lease_us // 3
    )


def eligible(
    workers: Sequence[Worker], now: Instant, *, lease_us: int, held_locks: Collection[Incarnation]
) -> tuple[WorkerSlots, ...]:
    """Workers that new claims may go to, with their free slots.

    Args:
        held_locks: Workers whose lock was just seen held.
    """
    return tuple(
        WorkerSlots(worker.id, worker.slots - worker.in_use, frozenset(worker.executors))
        for worker in workers
        if not worker.overdue and is_responsive(worker, now, lease_us=lease_us, held_locks=held_locks)
    )


def choose_recoverer(
    responsive: Sequence[Worker],
    pin: Pin | None,
    load: dict[Incarnation, int],
    *,
    registration: str,
    avoid: Incarnation | None,
    barred: Collection[Incarnation] = (),
) -> Incarnation | None:
    """The worker that takes an attempt over; None: nobody can, it waits for one to register.

    Slots are ignored. Only a worker that offers the pinned executor registration may (never a replacement, E09), and with a pin
    only one that sees the pinned processes (same boot and pid namespace). Least loaded first, `avoid` (it did not accept in
    time) last.

    Args:
        load: Attempts per worker; the chosen one's is raised by one.
        barred: They launch another suspect just now, and this one is a suspect too (`losses.is_suspect`): together they would share
            the blame for a death.
    """
    fit = [
        worker.id
        for worker in responsive
        if registration in worker.executors
        and worker.id not in barred
        and (pin is None or pin.shim.boot_id != worker.identity.boot_id or pin.shim.pid_ns == worker.identity.pid_ns)
    ]
    chosen = min(fit, key=lambda worker: (worker == avoid, load.get(worker, 0), worker), default=None)
    if chosen is not None:
        load[chosen] = load.get(chosen, 0) + 1
    return chosen
