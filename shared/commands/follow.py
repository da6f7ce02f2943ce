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


PAGE = 64
"""Attempts read at once."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A Work as it was last seen.

    Attributes:
        attempts: Those whose output is to be passed on now, by number; at most `PAGE`.
        last: Its last attempt; None: it has none.
    """

    work: Work
    attempts: tuple[Attempt, ...]
    last: Attempt | None


class Launches:
    """The folders of a Work's launches. An attempt has several when it was parked and resumed, or launched anew as nothing ran."""

    def __init__(self, attempts_dir: Path) -> None:
        self._attempts_dir = attempts_dir
        self._known: dict[AttemptId, tuple[list[str], int]] = {}
        """What was found, and the first epoch to look for again: only that of the last look may have got a folder since in which
        anything runs, and none of an attempt that has ended.
        """

    def of(self, attempts: Sequence[Attempt]) -> list[str]:
        """Names of those that are there, in the order of attempts and epochs. An adoption adds none: what runs keeps its folder."""
        return [name for attempt in attempts for name in self._of_one(attempt)]

    def _of_one(self, attempt: Attempt) -> list[str]:
        found, since = self._known.get(attempt.id, ([], 1))
        names = [attempt_directory(attempt.id, epoch) for epoch in range(since, attempt.epoch + 1)]
        new = [name for name in names if name not in found[-1:] and (self._attempts_dir / name).is_dir()]
        has_ended = attempt.ended_at_us is not None
        self._known[attempt.id] = [*found, *new], attempt.epoch + has_ended
        return self._known[attempt.id][0]


def outline(tx: ReadTx, work_id: WorkId) -> Work:
    """A Work, all but what it brings itself.

    Raises:
        NotFoundError: there is none of this name.
    """
    work = tx.work_outline(work_id)
    if work is None:
        raise NotFoundError(f"there is no work {work_id} in this home", hint="`tenure work list` shows what there is")
    return work


def attempt_of(tx: ReadTx, work_id: WorkId, number: int | None) -> Attempt | None:
    """The attempt of that number; None: the last one. None when there is none."""
    found = tx.last_attempts(work_id, before=None if number is None else number + 1, limit=1)
    return next((each for each in found if number in {None, each.number}), None)


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
        self._passed = 0

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
                self._outputs.point_at(self._launches.of(self._seen.attempts))
                if len(self._seen.attempts) == PAGE:
                    self._passed, self._seen = self._seen.attempts[-2].number, None  # there may be more behind them
                    continue
                self._passed = max([self._passed, *_ended(self._seen.attempts)])
                end = outcome(self._seen.work, self._seen.last)
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
            self._seen = store.read(self._read)
        except StoreBusyError:
            return False
        return self._seen != before

    def _read(self, tx: ReadTx) -> Seen:
        """The Work, and those of its attempts that had not ended yet when they were seen last, or have begun since."""
        work, last = outline(tx, self._work_id), attempt_of(tx, self._work_id, None)
        if self._number is None:
            return Seen(work, tuple(tx.next_attempts(self._work_id, after=self._passed, limit=PAGE)), last)
        chosen = attempt_of(tx, self._work_id, self._number)
        return Seen(work, () if chosen is None else (chosen,), last)


def _ended(attempts: Sequence[Attempt]) -> list[int]:
    """Numbers of those that have ended."""
    return [attempt.number for attempt in attempts if attempt.ended_at_us is not None]


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
