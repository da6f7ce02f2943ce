"""What whoever drills knows of a job: how it ends when it is left alone, and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.witness import OUTPUT
from shared.ids import WorkId


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was submitted, and how it may end. What the drill did to it widens that; no check is ever made weaker.

    Attributes:
        status: How it ends when it is left alone: 0 to 255, or the negative number of a signal.
        cancelled: It was cancelled; it may never start, or end early.
        cannot_run: There is no such command; it is to fail for good, and never starts.
        may_time_out: Its time may be up before it ends.
        may_be_killed: The drill killed its processes, or its host; it may start and never come to its last line.
        may_need_person: Evidence of its launch was destroyed (its shim killed, its files, its host); its outcome may be unknown,
            so it may be left to a person. A job that nothing of that happened to must not.
        may_run_again: Its binding declares it safe to replay, or has a retry policy, or it takes several inputs: an attempt that
            ran may be followed by another.
        may_stay_open: The store was older than its home and was refused for good, as no newer copy of it was left; it may never be
            settled, or even start.
        statuses: How its first attempts end, by number, before those that end with `status`.
        is_standing: It rests after each input, or is held; only a cancel settles it.
        is_held: Once nothing is left to try it is held for a person, instead of failing.
        may_be_given_up: Workers may have been lost over its launch, so many that it was given up; it may fail without having started.
        may_be_retried: A person may have tried it again.
        speaks: It speaks with tenure while it runs: how its attempts end, and what follows, is held against what its program knows
            of that itself (`checks/spoken.py`). `status` and `statuses` say nothing then.
        correlate: Keys that events of its turns carry; () where one without a key is told.
        is_overheard: It speaks with tenure too, and whoever drills overhears every word (a simulation): that is held against what
            is known of it in `checks/speech.py`.
        interrupted: Somebody interrupted it; an attempt may end early.
        output: What it prints when it is left alone; None: that is not looked at.
    """

    work_id: WorkId
    status: int
    cancelled: bool = False
    cannot_run: bool = False
    may_time_out: bool = False
    may_be_killed: bool = False
    may_need_person: bool = False
    may_run_again: bool = False
    may_stay_open: bool = False
    statuses: tuple[int, ...] = ()
    is_standing: bool = False
    is_held: bool = False
    may_be_given_up: bool = False
    may_be_retried: bool = False
    speaks: bool = False
    correlate: tuple[str, ...] = ()
    is_overheard: bool = False
    interrupted: bool = False
    output: str | None = OUTPUT

    def status_of(self, number: int) -> int:
        """How its attempt of that number ends when it is left alone."""
        return self.statuses[number - 1] if number <= len(self.statuses) else self.status

    @property
    def may_be_cut_short(self) -> bool:
        """Whether it may have started and not come to its last line."""
        return self.cancelled or self.interrupted or self.may_time_out or self.may_be_killed or self.may_stay_open

    @property
    def may_never_start(self) -> bool:
        """Whether it may be settled, or left to a person, without having started."""
        is_ended = self.cancelled or self.cannot_run or self.may_time_out or self.may_be_given_up
        return is_ended or self.may_need_person or self.may_stay_open
