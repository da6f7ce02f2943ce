"""How long it takes from `kill -9` to the commit that puts things right again, by role; measured on a home of its own.

From the instant the signal was sent to the time of the transaction in the changefeed; both are the wall clock of this host. A job runs
all the while, except where it is the victim. Rule: requirement W02.
"""

from __future__ import annotations

import signal
import time
from enum import StrEnum
from pathlib import Path

from chaos.harness import COORDINATOR
from chaos.matrix.scene import STATUS
from chaos.matrix.stage import SECOND_WORKER, STANDBY, WORKER, Stage, send
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import Settings
from shared.store.contract import Event

KILLS = 20
KILLED = -9
MS_PER_S = 1_000
SETTINGS = Settings(job_concurrency=8, lease_us=6 * US_PER_S)


class Role(StrEnum):
    """Who is killed."""

    COORDINATOR = "coordinator"
    WORKER = "worker"
    SHIM = "shim"
    EVERYONE = "everyone"


TOLD = {
    Role.COORDINATOR: "a standby leads",
    Role.WORKER: "another worker has adopted its job",
    Role.SHIM: "shim and job are killed, and the end is recorded or a person is asked",
    Role.EVERYONE: "coordinator and worker are started again at once, and the job is adopted",
}
ADOPTED, LEADS = ("attempt.adopted",), ("leader.taken",)
ENDED = ("attempt.failed", "attempt.recovery_required")


def measure(folder: Path, role: Role, kills: int) -> list[float]:
    """Kill so many times; the milliseconds of each.

    Raises:
        StillWaitingError: something was not put right in time.
    """
    stage = Stage(folder, SETTINGS)
    try:
        return [_once(stage, role) for _ in range(kills)]
    finally:
        stage.close()


def _once(stage: Stage, role: Role) -> float:
    if role is Role.COORDINATOR:
        return _lose_leader(stage)
    job = _running_job(stage, with_second_worker=role is Role.WORKER)
    since = _last_event(stage)
    match role:
        case Role.WORKER:
            holder = _holder(stage, job)
            killed_at = time.time()
            stage.leave(holder)
        case Role.SHIM:
            stage.expect(job, may_need_person=True)
            processes = _processes(stage, job)
            killed_at = time.time()
            for pid in processes:
                send(pid, signal.SIGKILL)
        case _:
            killed_at = time.time()
            stage.kill_everyone()
            stage.start(COORDINATOR)
            stage.start(WORKER)
    event = _await_event(stage, ENDED if role is Role.SHIM else ADOPTED, since, job)
    with stage.valve_open():
        stage.wait_quiet(status=KILLED)
    return event.at_us / US_PER_MS - killed_at * MS_PER_S


def _lose_leader(stage: Stage) -> float:
    """Kill whoever leads while the other stands by; who was killed stands by the next time."""
    for name in (COORDINATOR, STANDBY):
        running = stage.ensure(name)
        stage.harness.wait(lambda running=running: _says(running.log), f"{name} leads or stands by")  # type: ignore[misc]
    leader = stage.harness.read(lambda tx: tx.leader())
    since = _last_event(stage)
    assert leader is not None
    name = next(name for name in (COORDINATOR, STANDBY) if stage.ensure(name).pid == leader.pid)
    killed_at = time.time()
    stage.leave(name)
    return _await_event(stage, LEADS, since, None).at_us / US_PER_MS - killed_at * MS_PER_S


def _says(log: Path) -> bool:
    text = log.read_text(encoding="utf-8", errors="replace")
    return "leader.taken" in text or "leader.standby" in text


def _running_job(stage: Stage, *, with_second_worker: bool) -> WorkId:
    for name in (COORDINATOR, WORKER, *((SECOND_WORKER,) if with_second_worker else ())):
        stage.ensure(name)
    wanted = {running.pid for running in stage.cast if running.name != COORDINATOR}
    stage.harness.wait(lambda: wanted <= _present(stage), "every worker takes part")
    job = stage.submit(at_valve=True, seconds=0, status=STATUS)
    stage.await_mark(job, Mark.START)
    stage.await_held(job)
    return job


def _present(stage: Stage) -> set[int]:
    return {worker.identity.pid for worker in stage.harness.read(lambda tx: tx.workers())}


def _holder(stage: Stage, job: WorkId) -> str:
    """The name on stage of the worker that holds the job."""
    lease = stage.harness.read(lambda tx: tx.lease(tx.attempts(job)[-1].id))
    assert lease is not None
    return lease.owner.rpartition(".")[0]


def _processes(stage: Stage, job: WorkId) -> list[int]:
    pin = stage.harness.read(lambda tx: tx.attempts(job))[-1].pin
    assert pin is not None
    return [pin.shim.pid, *(line.pid for line in stage.harness.witness.lines() if line.work_id == job)]


def _last_event(stage: Stage) -> int:
    return stage.harness.history().events[-1].seq


def _await_event(stage: Stage, kinds: tuple[str, ...], since: int, job: WorkId | None) -> Event:
    def found() -> Event | None:
        events = stage.harness.read(lambda tx: tx.events(after=since, limit=1_000))
        mine = [event for event in events if event.kind in kinds and (job is None or event.work_id == job)]
        return mine[0] if mine else None

    event = stage.harness.wait(found, f"{' or '.join(kinds)} after a kill")
    assert event is not None
    return event
