"""Following a Work to its end: its outputs as they come, and whoever is missing named once.

A follower only looks: it takes part in nothing, may be killed at any time and started again. What it waits for is in the store
and in files, so it outlives coordinator and workers, and a busy store costs it a look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.commands.attendance import attendance
from shared.commands.open_home import OpenHome
from shared.commands.outcome import Outcome, outcome
from shared.commands.output import Outputs
from shared.errors import NotFoundError, StoreBusyError
from shared.ids import AttemptId, WorkId, attempt_directory
from shared.model.attempt import Attempt
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.work import Work
from shared.store.contract import ReadTx

POLL_LEAST_US = 5 * US_PER_MS
POLL_MOST_US = 100 * US_PER_MS
ATTENDANCE_US = US_PER_S
PATIENCE_US = 3 * US_PER_S
"""How long somebody may be missing before that is said: a restart is no news."""

Say = Callable[[str, str | None], None]
"""Tells a person something: (line, what to do about it)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A Work as it was last seen, with all its attempts by number."""

    work: Work
    attempts: tuple[Attempt, ...]

    def chosen(self, number: int | None) -> list[Attempt]:
        """The attempt of that number; None: all of them."""
        return [each for each in self.attempts if number in {None, each.number}]


class Launches:
    """The folders of a Work's launches. An attempt has several when it was parked and resumed, or launched anew as nothing ran."""

    def __init__(self, attempts_dir: Path) -> None:
        self._attempts_dir = attempts_dir
        self._of_ended: dict[AttemptId, list[str]] = {}

    def of(self, attempts: Sequence[Attempt]) -> list[str]:
        """Names of those that are there, in the order of attempts and epochs. An adoption adds none: what runs keeps its folder."""
        return [name for attempt in attempts for name in self._of_one(attempt)]

    def _of_one(self, attempt: Attempt) -> list[str]:
        found = self._of_ended.get(attempt.id)
        if found is None:
            names = [attempt_directory(attempt.id, epoch) for epoch in range(1, attempt.epoch + 1)]
            found = [name for name in names if (self._attempts_dir / name).is_dir()]
            if attempt.ended_at_us is not None:
                self._of_ended[attempt.id] = found
        return found


def look(tx: ReadTx, work_id: WorkId) -> Seen:
    """Read a Work.

    Raises:
        NotFoundError: there is none of this name.
    """
    work = tx.work_outline(work_id)
    if work is None:
        raise NotFoundError(f"there is no work {work_id} in this home", hint="`tenure work list` shows what there is")
    return Seen(work, tuple(tx.attempts(work_id)))


class Follower:
    """Follows one Work."""

    def __init__(
        self, home: OpenHome, work_id: WorkId, outputs: Outputs, say: Say, *, number: int | None = None
    ) -> None:
        """Take what to follow.

        Args:
            number: Only the output of this attempt.
        """
        self._home = home
        self._work_id = work_id
        self._outputs = outputs
        self._number = number
        self._launches = Launches(home.place.attempts)
        self._watch = _Watch(home, say)
        self._seen: Seen | None = None

    def run(self) -> Outcome:
        """Pass the outputs on until the Work has ended, or nobody can know how it ends; then all that is left of them.

        Raises:
            NotFoundError: there is no such Work. StoreUnavailableError: the store cannot be used any more.
            BrokenPipeError: the reader has left.
        """
        clock = self._home.clock
        pause_us = POLL_LEAST_US
        while True:
            news = self._look()
            if self._seen is not None:
                self._outputs.point_at(self._launches.of(self._seen.chosen(self._number)))
                end = outcome(self._seen.work, self._seen.attempts)
                if end is not None:
                    self._outputs.drain()
                    return end
            if self._outputs.pump():
                pause_us = POLL_LEAST_US
                continue
            self._watch.look()
            pause_us = POLL_LEAST_US if news else min(POLL_MOST_US, pause_us * 3 // 2)
            clock.wait(clock.now().mono_us + pause_us, None)

    def _look(self) -> bool:
        """See what the store says, if it has changed; True when this Work has."""
        store, before = self._home.store, self._seen
        try:
            if not store.changed() and before is not None:
                return False
            self._seen = store.read(lambda tx: look(tx, self._work_id))
        except StoreBusyError:
            return False
        return self._seen != before


class _Watch:
    """Says once when there is nobody to do the work, and again only after there was."""

    def __init__(self, home: OpenHome, say: Say) -> None:
        self._home = home
        self._say = say
        self._due_us = 0
        self._missing_since_us: int | None = None
        self._patience_us = 0  # whoever is missing at the start is named at once
        self._said = False

    def look(self) -> None:
        now_us = self._home.clock.now().mono_us
        if now_us < self._due_us:
            return
        self._due_us = now_us + ATTENDANCE_US
        try:
            self._home.store.check_file()
            missing = attendance(self._home.store, self._home.place.run).missing()
        except StoreBusyError:
            return
        if missing is None:
            self._missing_since_us, self._patience_us, self._said = None, PATIENCE_US, False
            return
        if self._missing_since_us is None:
            self._missing_since_us = now_us
        if not self._said and now_us - self._missing_since_us >= self._patience_us:
            self._said = True
            self._say(f"{missing}; waiting", f"start it: {self._home.command('up')}")
