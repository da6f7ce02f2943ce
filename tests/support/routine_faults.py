"""A history without a fault of works that run what their binding says; and faults of it, each of which makes one check fire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chaos.history import History
from chaos.job import Job
from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import LeaseKey
from shared.model.work import RoutineNews
from shared.store.values import Claimed
from tests.support.clean_histories import Story
from tests.support.stores import COMPLETED, EXHAUSTED, FAILED, SQLITE, SUCCEEDED, World, new_work, ram_folder

BACKUP = "backup"
SECOND, LAST = AttemptId("w2.1"), AttemptId("w4.1")
MOST = 2


def routine_history() -> History:
    """w1 and w2 fail, which quarantines their binding; w3 does well after its release; w4 costs two workers, which does so again."""
    with ram_folder() as folder:
        story = Story(World(SQLITE, folder))
        story.first = story.world.worker("worker-1")
        for _ in range(MOST):
            key = _run(story, 7)
            story.exit(key)
            failed = replace(EXHAUSTED, routine=RoutineNews(BACKUP, worked=False, quarantine_after=MOST))
            story.finish(key, FAILED, failed)
        _release(story)
        key = _run(story, 0)
        story.exit(key)
        _do_well(story, key)
        key = _run(story, 0)
        for number in range(MOST):
            _die(story, story.first if number == 0 else story.second)
            story.second = story.world.worker(f"worker-{2 + number}")
            key = story.world.take_over(key, story.second)
            _adopt(story, key)
        _release(story)
        story.exit(replace(key, epoch=1))
        _do_well(story, key)
        history = story.record()
        story.world.close()
    return replace(history, lives=())


def _die(story: Story, worker: Incarnation) -> None:
    story.world.as_leader(lambda tx: tx.retire_worker(worker, reason="worker died", died=True))


def _adopt(story: Story, key: LeaseKey) -> None:
    story.world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
    story.world.store.write(lambda tx: tx.adopt(key, why="it lives"))


def _release(story: Story) -> None:
    story.world.store.write(lambda tx: tx.release_binding(BACKUP, by="t", reason="t"))


def _do_well(story: Story, key: LeaseKey) -> None:
    story.finish(key, SUCCEEDED, replace(COMPLETED, routine=RoutineNews(BACKUP, worked=True, quarantine_after=MOST)))


def _run(story: Story, status: int) -> LeaseKey:
    world, work = story.world, replace(new_work(), binding=BACKUP, command=None)
    work_id: WorkId = world.store.write(lambda tx: tx.submit(work, "jobs"))
    story.jobs.append(Job(work_id, status))
    request = world.request(work_id, story.first)
    pinned = replace(request.snapshot, binding=BACKUP, quarantine_after=MOST, workers_lost_max=MOST)
    answer = world.as_leader(lambda tx: tx.claim(replace(request, snapshot=pinned)))
    assert isinstance(answer, Claimed), answer
    key = LeaseKey(answer.attempt_id, 1, story.first)
    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(key, world.pin(key)))
    story.go(key)
    return key


def _with_kind(history: History, kind: str, nth: int, other: str) -> History:
    """The nth event of a kind is another."""
    at = [place for place, event in enumerate(history.events) if event.kind == kind][nth]
    changed = replace(history.events[at], kind=other)
    return replace(history, events=(*history.events[:at], changed, *history.events[at + 1 :]))


def _with_snapshot(history: History, attempt_id: AttemptId, **changes: Any) -> History:
    changed = replace(history.snapshots[attempt_id], **changes)
    return replace(history, snapshots={**history.snapshots, attempt_id: changed})


def started_in_quarantine(history: History) -> History:
    return _with_kind(history, "binding.released", 0, "config.activated")


def not_quarantined(history: History) -> History:
    return _with_kind(history, "binding.quarantined", 0, "config.activated")


def quarantined_too_soon(history: History) -> History:
    return _with_snapshot(history, SECOND, quarantine_after=MOST + 1)


def blamed_for_nothing(history: History) -> History:
    return _with_snapshot(history, LAST, workers_lost_max=MOST + 1)


def blamed_though_it_brings_its_command(history: History) -> History:
    work_id = WorkId("w4")
    own = replace(history.works[work_id], command=("true",))
    return replace(history, works={**history.works, work_id: own})


ROUTINE_FAULTS: dict[str, list[Callable[[History], History]]] = {
    "quarantined_bindings_start_nothing": [started_in_quarantine],
    "failures_quarantine_their_binding": [not_quarantined, quarantined_too_soon],
    "losses_quarantine_their_binding": [blamed_for_nothing, blamed_though_it_brings_its_command],
}
