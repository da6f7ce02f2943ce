"""What a person calls for in the cells of commands: the words, and whether the store says that it is done.

Whether it was done is read from the store, never from what the command said. Rule: requirements M01, M05, V05.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from chaos.job import Job
from chaos.matrix.cell import Cell, Scene
from chaos.matrix.programs import EVENT, await_parked, await_started, await_taken, submit_agent, submit_waiting
from chaos.matrix.scene import JOB_S, STATUS
from chaos.matrix.stage import Stage
from chaos.witness import Mark
from shared.boundary import Boundary
from shared.ids import WorkId
from shared.model.attempt import AttemptState

_numbers = itertools.count(1)


class Errand:
    """One command, before and after.

    Attributes:
        words: What is typed.
        has_key: Asked again it answers as before, and nothing more is done.
    """

    words: Sequence[str]
    has_key = False

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def is_done(self) -> bool:
        """Whether its effect is in the store."""
        raise NotImplementedError

    def settle(self) -> None:
        """Tell the harness what was called for, so that the checks know of it, and see it come to where only the valve is left."""

    def _running_job(self) -> WorkId:
        """A job that runs, and waits at the valve."""
        self.stage.about = job = self.stage.submit(at_valve=True, seconds=0, status=STATUS)
        self.stage.await_mark(job, Mark.START)
        return job

    def _running_agent(self) -> WorkId:
        """An agent that runs until the valve opens."""
        self.stage.about = agent = submit_agent(self.stage)
        await_started(self.stage, agent)
        return agent


class Submit(Errand):
    """`tenure submit`."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._known = self._works()
        self.words = ("submit", "--", *stage.harness.witness.command(wait=JOB_S, status=STATUS))

    def is_done(self) -> bool:
        """See `Errand.is_done`."""
        return bool(self._works() - self._known)

    def settle(self) -> None:
        """See `Errand.settle`."""
        new = self._works() - self._known
        assert len(new) == 1, f"called for one work, there are {len(new)}"
        self.stage.harness.jobs += [Job(work_id, STATUS) for work_id in new]

    def _works(self) -> set[WorkId]:
        works = self.stage.harness.read(lambda tx: tx.works(states=(), after=0, limit=10_000))
        return {work.id for work in works}


class Apply(Errand):
    """`tenure apply`, of what is active with one binding more that nobody uses."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._before = self._generation()
        path = Path(stage.folder / "tenure.toml")
        path.write_text(f'{stage.configuration}[binding.drill{next(_numbers)}]\ncommand = ["true"]\n', encoding="utf-8")
        self.words = ("apply", str(path))

    def is_done(self) -> bool:
        """See `Errand.is_done`."""
        return self._generation() > self._before

    def _generation(self) -> int:
        found = self.stage.harness.read(lambda tx: tx.config())
        return 0 if found is None else found.number


class Cancel(Errand):
    """`tenure work cancel`, of a job that runs."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._cancelled = self._running_job()
        self.words = ("work", "cancel", self._cancelled, "--wait", "0s")

    def is_done(self) -> bool:
        """See `Errand.is_done`."""
        return bool(self.stage.harness.read(lambda tx: tx.cancellations(self._cancelled)))

    def settle(self) -> None:
        """See `Errand.settle`."""
        self.stage.harness.was_cancelled(self._cancelled)


class Hold(Errand):
    """`tenure work hold`, of a job that runs."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._held = self._running_job()
        self.words = ("work", "hold", self._held)

    def is_done(self) -> bool:
        """See `Errand.is_done`."""
        work = self.stage.harness.read(lambda tx: tx.work(self._held))
        return work is not None and work.hold is not None


class Publish(Errand):
    """`tenure event publish --key`, of what a parked job waits for."""

    has_key = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        stage.about = self._waiting = submit_waiting(stage)
        await_started(stage, self._waiting)
        await_parked(stage, self._waiting)
        self.words = ("event", "publish", EVENT, "--correlate", self._waiting, "--key", f"{self._waiting}-go")

    def is_done(self) -> bool:
        """See `Errand.is_done`."""
        events = self.stage.harness.history().events
        return any(event.kind == "event.published" and event.data.get("correlate") == self._waiting for event in events)

    def settle(self) -> None:
        """See `Errand.settle`."""
        self.stage.await_held(self._waiting)


class Inject(Errand):
    """`tenure work inject --key`, to an agent that runs."""

    has_key = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._agent = self._running_agent()
        self.words = ("work", "inject", self._agent, "--input", "hello", "--key", f"{self._agent}-hello")

    def is_done(self) -> bool:
        """See `Errand.is_done`."""
        return bool(self.stage.harness.read(lambda tx: tx.intents(self._agent)))

    def settle(self) -> None:
        """See `Errand.settle`."""
        await_taken(self.stage, self._agent)


class Interrupt(Errand):
    """`tenure work interrupt`, of an agent that runs."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._agent = self._running_agent()
        self.words = ("work", "interrupt", self._agent)

    def is_done(self) -> bool:
        """See `Errand.is_done`."""
        return bool(self.stage.harness.read(lambda tx: tx.intents(self._agent)))

    def settle(self) -> None:
        """See `Errand.settle`. The next attempt has to run before the valve opens, as the first one may live still."""
        self.stage.harness.was_interrupted(self._agent)

        def next_runs() -> bool:
            attempts = self.stage.harness.read(lambda tx: tx.attempts(self._agent))
            return len(attempts) > 1 and attempts[-1].state is AttemptState.RUNNING

        self.stage.await_work(self._agent, lambda _: next_runs(), "runs again")


_OF_BOUNDARY = {
    Boundary.SUBMIT_COMMIT: Submit,
    Boundary.CONFIG_COMMIT: Apply,
    Boundary.CANCEL_COMMIT: Cancel,
    Boundary.COMMAND_COMMIT: Hold,
    Boundary.EVENT_COMMIT: Publish,
    Boundary.INTENT_COMMIT: Inject,
}


def errand_of(stage: Stage, cell: Cell) -> Errand:
    """What is called for in a cell, with its scene set; not called for yet."""
    return Interrupt(stage) if cell.scene is Scene.INTERRUPT else _OF_BOUNDARY[cell.boundary](stage)
