"""A recorded history without a fault in which everything happens once that a check looks at; and pieces to put faults into it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from chaos.history import History
from chaos.job import Job
from chaos.recording import Known, record
from chaos.seen import Go, Life, Look, Seen
from chaos.witness import OUTPUT, Line, Mark
from shared.ids import Incarnation, WorkId
from shared.model.attempt import AttemptState, Ending, FailureClass, LeaseKey
from shared.model.host import StopOrder
from shared.model.instant import US_PER_S
from shared.model.settings import Config, ScopeConfig, Settings
from shared.store.contract import Event
from shared.store.values import Claimed
from tests.support.stores import (
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    FAILED,
    LEASE_US,
    RETURNED,
    SQLITE,
    SUCCEEDED,
    World,
    ram_folder,
)

CONFIG = Config(Settings(job_concurrency=2, lease_us=LEASE_US), scopes=(ScopeConfig("ops", 2),))
NOBODY = Incarnation("")
AMBIGUOUS = Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, "nobody saw it", None, "outcome unknown")
NOTHING_RAN = Ending(AttemptState.FAILED, None, FailureClass.ADMISSION, "launch: busy", "S0", "launch failed")


@dataclass
class Story:
    """A store, and what a simulation would have seen beside it."""

    world: World
    lines: list[Line] = field(default_factory=list)
    gos: list[Go] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    first: Incarnation = NOBODY
    second: Incarnation = NOBODY

    def seq(self) -> int:
        return self.world.store.read(lambda tx: len(tx.events(after=0, limit=10_000)))

    def say(self, mark: Mark, key: LeaseKey, pid: int = 500) -> None:
        work = WorkId(key.attempt_id.partition(".")[0])
        self.lines.append(Line(mark, work, key.attempt_id, key.epoch, pid, self.seq()))

    def submit(self, status: int = 0, *, scope: str = "", **expected: Any) -> WorkId:
        work_id = self.world.submit(scope=scope)
        self.jobs.append(Job(work_id, status, **expected))
        return work_id

    def go(self, key: LeaseKey) -> None:
        """Open the gate of a pinned launch."""
        attempt, lease, now = self.world.store.read(
            lambda tx: (tx.attempt(key.attempt_id), tx.lease(key.attempt_id), tx.now)
        )
        assert attempt is not None
        assert attempt.pin is not None
        self.gos.append(Go(key.attempt_id, key.epoch, attempt.pin.shim.pid, now, attempt, lease))
        self.say(Mark.START, key)

    def run(self, work_id: WorkId) -> LeaseKey:
        """Claim, pin, open the gate."""
        key = self.world.running(self.first, work_id)
        self.go(key)
        return key

    def exit(self, key: LeaseKey, *, cut_short: bool = False) -> None:
        if not cut_short:
            self.say(Mark.END, key)
        self.say(Mark.GONE, key)

    def finish(self, key: LeaseKey, ending: Ending, change: Any) -> None:
        self.world.store.write(lambda tx: tx.finish(key, ending, change))

    def stop(self, key: LeaseKey) -> None:
        """Carry out the open order for an attempt."""
        world = self.world
        order = world.store.read(lambda tx: next(one for one in tx.stop_orders() if one.attempt_id == key.attempt_id))
        world.store.write(lambda tx: tx.take_stop_order(order.id, self.first, lease_us=US_PER_S))
        world.confirm(key, epoch=order.epoch, proof="S5")

    def take_over(self, key: LeaseKey) -> LeaseKey:
        self.world.release(key)
        taken = self.world.take_over(key, self.second)
        self.world.store.write(lambda tx: tx.accept(taken, invoke_isolated=None))
        return taken

    def record(self) -> History:
        lives = (Life(self.first, 0, None), Life(Incarnation("worker-3.1"), 0, self.seq() - 2))
        looks = tuple(Look(at * 10 * US_PER_S, True, frozenset()) for at in range(3))
        seen = Seen(gos=tuple(self.gos), lives=lives, looks=looks)
        return record(self.world.store, lambda _: OUTPUT, Known(self.jobs, self.lines, CONFIG, seen))


def clean_history() -> History:
    """Six jobs and two leaders: w1 is adopted, w2 fails, w3 is cancelled while it runs, w4 is lost and run again, w5 fails to
    launch at first, w6 is launched again before anything ran.
    """
    with ram_folder() as folder:
        story = Story(World(SQLITE, folder))
        world = story.world
        story.first, story.second = world.worker("worker-1"), world.worker("worker-2")
        _adopted_and_failed(story)
        _cancelled(story)
        _run_again(story)
        _relaunched(story)
        buried = world.worker("worker-3")
        world.as_leader(lambda tx: tx.retire_worker(buried, reason="worker died"))
        history = story.record()
        world.close()
    return history


def _adopted_and_failed(story: Story) -> None:
    adopted, failed = story.submit(scope="ops/backup"), story.submit(7, scope="ops")
    key = story.run(adopted)
    other = story.world.running(story.first, failed)  # it has its slot, and starts once the first is gone
    taken = story.take_over(key)
    story.world.store.write(lambda tx: tx.adopt(taken, why="it lives"))
    story.exit(key)
    story.finish(taken, SUCCEEDED, COMPLETED)
    story.go(other)
    story.exit(other)
    story.finish(other, FAILED, EXHAUSTED)


def _cancelled(story: Story) -> None:
    cancelled = story.submit(cancelled=True)
    key = story.run(cancelled)
    story.world.store.write(lambda tx: tx.cancel_work(cancelled, by="t", reason="t"))
    story.exit(key, cut_short=True)
    story.stop(key)


def _run_again(story: Story) -> None:
    world = story.world
    again = story.submit(may_run_again=True, may_be_killed=True)
    key = story.run(again)
    story.exit(key, cut_short=True)
    story.finish(key, AMBIGUOUS, RETURNED)
    story.stop(key)
    second = world.try_claim(again, story.first)
    assert isinstance(second, Claimed)
    _launch_claimed(story, LeaseKey(second.attempt_id, 1, story.first))
    world.take_lead(proven_dead=world.generation)
    refused = story.submit()
    nothing = world.accepted(story.first, refused)
    story.finish(nothing, NOTHING_RAN, BACKED_OFF)
    world.clock.advance(2 * US_PER_S)
    world.fire(refused)
    third = world.try_claim(refused, story.first)
    assert isinstance(third, Claimed)
    _launch_claimed(story, LeaseKey(third.attempt_id, 1, story.first))


def _launch_claimed(story: Story, key: LeaseKey) -> None:
    story.world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    story.world.store.write(lambda tx: tx.pin(key, story.world.pin(key)))
    story.go(key)
    story.exit(key)
    story.finish(key, SUCCEEDED, COMPLETED)


def _relaunched(story: Story) -> None:
    world = story.world
    lost = story.submit(may_be_killed=True, cancelled=True)
    key = world.running(story.first, lost)
    taken = story.take_over(key)
    world.store.write(lambda tx: tx.relaunch(taken, clear_pin=True, why="no child ever registered"))
    world.store.write(lambda tx: tx.pin(taken, world.pin(taken)))
    story.go(taken)
    story.exit(taken)
    story.finish(taken, SUCCEEDED, COMPLETED)


def with_event(history: History, kind: str, **changes: Any) -> History:
    """Another event at the end of the changefeed."""
    fields: dict[str, Any] = {"work_id": None, "attempt_id": None, "epoch": None, "data": {}} | changes
    event = Event(len(history.events) + 1, history.events[-1].at_us, kind, **fields)
    return replace(history, events=(*history.events, event))


def index_of(history: History, kind: str, attempt_id: str) -> int:
    """Where the changefeed has the first event of a kind of an attempt."""
    return next(
        place for place, event in enumerate(history.events) if (event.kind, event.attempt_id) == (kind, attempt_id)
    )


def with_changed_event(history: History, which: str, attempt_id: str, **changes: Any) -> History:
    """The first event of that kind of an attempt, changed; `data` is added to what it says."""
    place = index_of(history, which, attempt_id)
    event = history.events[place]
    if "data" in changes:
        changes["data"] = {**event.data, **changes["data"]}
    events = (*history.events[:place], replace(event, **changes), *history.events[place + 1 :])
    return replace(history, events=events)


def with_changed_lines(history: History, mark: Mark, attempt_id: str, **changes: Any) -> History:
    """The lines of one kind of an attempt, changed."""
    lines = [
        replace(line, **changes) if (line.mark, line.attempt_id) == (mark, attempt_id) else line
        for line in history.lines
    ]
    return replace(history, lines=tuple(lines))


def without_lines(history: History, attempt_id: str, *marks: Mark) -> History:
    """Without what an attempt said; `marks` empty: all of it."""
    lines = [line for line in history.lines if line.attempt_id != attempt_id or (marks and line.mark not in marks)]
    return replace(history, lines=tuple(lines))


def with_late_ends(history: History, *attempt_ids: str) -> History:
    """The processes of these attempts are seen to live to the end of the witness, though by the changefeed they ended before."""
    late = [line for line in history.lines if line.mark is Mark.GONE and line.attempt_id in attempt_ids]
    rest = [line for line in history.lines if line not in late]
    return replace(history, lines=(*rest, *late))


def open_order(attempt_id: Any) -> StopOrder:
    """A stop order that nobody has proven."""
    return StopOrder(99, attempt_id, 1, "why", "test", None, 0, None, 1)
