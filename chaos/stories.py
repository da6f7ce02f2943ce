"""Histories told for the eye: who led, which lease held an attempt, which processes ran, on one axis of time. Pure.

Time is that of the changefeed, followed from event to event: a clock that steps back stands still here, and a jump or a long
silence is drawn short and marked. A drill's witness keeps no time, so a process is drawn from its pin to the end of its
attempt; a simulation's lines say exactly when.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from chaos.checks import Finding
from chaos.history import History
from chaos.results import Lane, Span, Story, StoryMark
from chaos.witness import Line, Mark
from shared.ids import AttemptId, WorkId
from shared.model.attempt import AttemptState
from shared.policy.steps import is_final_attempt
from shared.store.contract import Event

STORIES_MAX = 3
SILENCE_US_MAX = 120_000_000
"""The longest stretch without an event that is drawn at its length."""
PROCESSES_MAX = 12
LEADER = "leader"
_HOLDS = frozenset({"attempt.claimed", "attempt.taken_over", "attempt.woken"})
_RESUMES = frozenset({"attempt.adopted", "attempt.relaunched"})
_FINAL = frozenset(f"attempt.{state.value}" for state in AttemptState if is_final_attempt(state))
_LETS_GO = frozenset({"lease.revoked", "attempt.recovery_required"}) | _FINAL


@dataclass(frozen=True, slots=True)
class Harm:
    """Something that a drill did.

    Attributes:
        at_us: UTC.
        who: `leader`, a worker's name or its incarnation.
        kind: `kill`, `stop`, `cont` or `fault`.
    """

    at_us: int
    who: str
    kind: str
    label: str


def _stamp(event: Event) -> int:
    return event.at_us


def stories(
    history: History,
    *,
    about: tuple[WorkId, str] | None = None,
    findings: Sequence[Finding] = (),
    harms: Sequence[Harm] = (),
    seed: int | None = None,
    most: int = STORIES_MAX,
    clock: Callable[[Event], int] = _stamp,
) -> tuple[Story, ...]:
    """The most telling Works of a history: first those that a finding names, then the most taken over, then the slowest back.

    Args:
        about: A Work to tell of before all others, and why.
        harms: As far as the drill knows when it did what.
        most: At most so many stories.
        clock: When an event was committed (UTC, microseconds), where a drill knows that better than the event's own stamp.
    """
    axis = _Axis(history.events, clock)
    return tuple(
        _story(history, axis, work_id, why, harms, seed)
        for work_id, why in _chosen(history, axis, about, findings)[:most]
    )


class _Axis:
    """Where each event lies, in microseconds since the first."""

    def __init__(self, events: Sequence[Event], clock: Callable[[Event], int]) -> None:
        walls = [clock(event) for event in events]
        self._latest = list(accumulate(walls, max))
        self._of: dict[int, int] = {}
        self.jumps: list[StoryMark] = []
        self._places: list[int] = []
        for index, event in enumerate(events):
            gap = walls[index] - walls[index - 1] if index else 0
            place = (self._places[-1] if index else 0) + min(max(0, gap), SILENCE_US_MAX)
            if gap < 0 or gap > SILENCE_US_MAX:
                self.jumps.append(StoryMark(place, f"the clock or a silence of {gap / 1e6:+g} s", "jump"))
            self._of[event.seq] = place
            self._places.append(place)

    def of(self, event: Event) -> int:
        return self._of[event.seq]

    def of_seq(self, seq: int) -> int | None:
        return self._of.get(seq)

    def of_wall(self, at_us: int) -> int:
        """Of an instant that is no event: as far behind the event before it as the clock says."""
        index = bisect_right(self._latest, at_us) - 1
        return 0 if index < 0 else self._places[index] + min(at_us - self._latest[index], SILENCE_US_MAX)


def _chosen(
    history: History, axis: _Axis, about: tuple[WorkId, str] | None, findings: Sequence[Finding]
) -> list[tuple[WorkId, str]]:
    chosen: dict[WorkId, str] = {} if about is None else {about[0]: about[1]}
    for finding in findings:
        for word in re.findall(r"\bw\d+\b", finding.what):
            if WorkId(word) in history.works:
                chosen.setdefault(WorkId(word), finding.check)
    epochs = {work: sum(attempt.epoch for attempt in history.attempts_of(work)) for work in history.works}
    for work, count in sorted(epochs.items(), key=lambda item: (-item[1], item[0]))[:1]:
        chosen.setdefault(work, f"{count} leases, the most")
    slow = {work: _recovery_us(history, axis, work) for work in history.works}
    for work, us in sorted(slow.items(), key=lambda item: (-item[1], item[0]))[:1]:
        if us:
            chosen.setdefault(work, f"slowest to be recovered, {us / 1e3:.0f} ms")
    return list(chosen.items())


def _recovery_us(history: History, axis: _Axis, work_id: WorkId) -> int:
    """The longest time between a lease that was let go, or taken over, and the attempt's going on under the next."""
    longest, lost = 0, None
    for event in _events_of(history, work_id):
        if event.kind == "lease.revoked" or (event.kind == "attempt.taken_over" and lost is None):
            lost = axis.of(event)
        elif event.kind in _RESUMES | _FINAL and lost is not None:
            longest, lost = max(longest, axis.of(event) - lost), None
    return longest


def _story(history: History, axis: _Axis, work_id: WorkId, why: str, harms: Sequence[Harm], seed: int | None) -> Story:
    events = _events_of(history, work_id)
    began = axis.of(events[0]) if events else 0
    ended = max([axis.of(events[-1])] if events else [0])
    telling = _Telling(history, axis, began, max(ended, began + 1))
    attempts = [attempt.id for attempt in history.attempts_of(work_id)]
    owners = [str(event.data.get("worker")) for event in events if event.kind in _HOLDS]
    lanes = [telling.leader(harms), telling.work(work_id, events)]
    for attempt_id in attempts:
        own = [event for event in events if event.attempt_id == attempt_id]
        lanes += [telling.attempt(attempt_id, own), *telling.processes(work_id, attempt_id, own)]
    lanes += [telling.worker(owner) for owner in dict.fromkeys(owners)]
    return Story(f"{work_id}: {why}", seed, tuple(telling.harmed(lanes, harms)))


def _events_of(history: History, work_id: WorkId) -> list[Event]:
    names = {attempt.id for attempt in history.attempts_of(work_id)}
    return [event for event in history.events if event.work_id == work_id or event.attempt_id in names]


class _Telling:
    """One story's window on the axis, and the lanes in it."""

    def __init__(self, history: History, axis: _Axis, began: int, ended: int) -> None:
        self._history = history
        self._axis = axis
        self._began = began
        self._ended = ended

    def leader(self, harms: Sequence[Harm]) -> Lane:
        """Generations, one after the other; each until its leader was killed, gave up the lead or was followed."""
        open_span: tuple[int, str] | None = None
        spans = []
        deaths = [self._axis.of_wall(harm.at_us) for harm in harms if (harm.who, harm.kind) == (LEADER, "kill")]
        for event in self._history.events:
            if event.kind in {"leader.taken", "leader.resigned"} and open_span is not None:
                spans += self._reign(*open_span, self._axis.of(event), deaths)
                open_span = None
            if event.kind == "leader.taken":
                label = f"generation {event.data.get('generation')}, {event.data.get('owner')}"
                open_span = (self._axis.of(event), label)
        if open_span is not None:
            spans += self._reign(*open_span, self._ended, deaths)
        jumps = [mark for jump in self._axis.jumps for mark in self._mark(jump.at_us, jump.label, jump.kind)]
        return Lane(LEADER, "leader", tuple(spans), tuple(jumps))

    def _reign(self, from_us: int, label: str, to_us: int, deaths: Iterable[int]) -> list[Span]:
        died = min((death for death in deaths if from_us <= death < to_us), default=to_us)
        return self._span(from_us, died, label, "leader")

    def work(self, work_id: WorkId, events: Iterable[Event]) -> Lane:
        """The Work's states."""
        states = [
            (self._axis.of(event), event.kind.removeprefix("work."))
            for event in events
            if event.work_id and event.kind.startswith("work.")
        ]
        ends = [at for at, _ in states[1:]]
        spans = [
            span for (at, state), end in zip(states, ends, strict=False) for span in self._span(at, end, state, "work")
        ]
        last = [mark for at, state in states[-1:] for mark in self._mark(at, state, "end")]
        return Lane(work_id, "work", tuple(spans), tuple(last))

    def attempt(self, attempt_id: AttemptId, events: Sequence[Event]) -> Lane:
        """Its leases, each until it was let go or overtaken, and everything that was committed of it."""
        spans: list[Span] = []
        for index, event in enumerate(events):
            if event.kind in _HOLDS:
                label = f"epoch {event.epoch}, {event.data.get('worker')}"
                spans += self._span(self._axis.of(event), self._lets_go(events[index + 1 :]), label, "lease")
        marks = [
            mark
            for event in events
            for mark in self._mark(self._axis.of(event), _told(event), "end" if event.kind in _FINAL else "commit")
        ]
        return Lane(attempt_id, "attempt", tuple(spans), tuple(marks))

    def processes(self, work_id: WorkId, attempt_id: AttemptId, events: Sequence[Event]) -> list[Lane]:
        """Every process that the witness names."""
        lines = [line for line in self._history.lines if line.work_id == work_id and line.attempt_id == attempt_id]
        found = []
        for line in [line for line in lines if line.mark in {Mark.START, Mark.CHILD}][:PROCESSES_MAX]:
            last = next(
                (each for each in reversed(lines) if each.pid == line.pid and each.mark in {Mark.END, Mark.GONE}), None
            )
            how = "no end seen" if last is None else "came to its end" if last.mark is Mark.END else "gone"
            spans = self._span(
                self._began_at(line, events), self._gone_at(last, events), f"epoch {line.epoch}, {how}", "process"
            )
            found.append(Lane(f"pid {line.pid}", "process", tuple(spans), ()))
        return found

    def worker(self, owner: str) -> Lane:
        """From its registration until it was found gone."""
        spans, marks = [], []
        began: int | None = None
        for event in self._history.events:
            if event.data.get("worker") != owner:
                continue
            if event.kind == "worker.registered":
                began = self._axis.of(event)
            elif event.kind == "worker.gone":
                spans += self._span(began or 0, self._axis.of(event), "registered", "worker")
                marks += self._mark(self._axis.of(event), f"found gone: {event.data.get('reason')}", "gone")
                began = None
        if began is not None:
            spans += self._span(began, self._ended, "registered", "worker")
        return Lane(owner, "worker", tuple(spans), tuple(marks))

    def harmed(self, lanes: Sequence[Lane], harms: Sequence[Harm]) -> list[Lane]:
        """The lanes with what was done to whom they are of; a worker's name means its incarnation of that time."""
        found = []
        for lane in lanes:
            marks = [
                mark
                for harm in harms
                if _is_of(lane, harm.who, self._axis.of_wall(harm.at_us) - self._began)
                for mark in self._mark(self._axis.of_wall(harm.at_us), harm.label, harm.kind)
            ]
            found.append(Lane(lane.name, lane.kind, lane.spans, (*lane.marks, *marks)))
        return found

    def _lets_go(self, later: Sequence[Event]) -> int:
        end = next((event for event in later if event.kind in _LETS_GO | _HOLDS), None)
        return self._ended if end is None else self._axis.of(end)

    def _began_at(self, line: Line, events: Sequence[Event]) -> int:
        exact = None if line.seq is None else self._axis.of_seq(line.seq)
        pins = [
            self._axis.of(event) for event in events if event.kind == "attempt.pinned" and event.epoch == line.epoch
        ]
        return exact if exact is not None else pins[-1] if pins else self._began

    def _gone_at(self, last: Line | None, events: Sequence[Event]) -> int:
        exact = None if last is None or last.seq is None else self._axis.of_seq(last.seq)
        ends = [self._axis.of(event) for event in events if event.kind in _FINAL]
        return exact if exact is not None else ends[-1] if ends else self._ended

    def _span(self, from_us: int, to_us: int, label: str, kind: str) -> list[Span]:
        """What of it lies in the window; nothing when it lies outside."""
        first, last = max(from_us, self._began), min(to_us, self._ended)
        return [Span(first - self._began, last - self._began, label, kind)] if first <= last else []

    def _mark(self, at_us: int, label: str, kind: str) -> list[StoryMark]:
        return [StoryMark(at_us - self._began, label, kind)] if self._began <= at_us <= self._ended else []


def _told(event: Event) -> str:
    why = next((str(event.data[name]) for name in ("why", "reason") if event.data.get(name)), "")
    epoch = "" if event.epoch is None else f" (epoch {event.epoch})"
    return f"{event.kind}{epoch}{': ' if why else ''}{why}"


def _is_of(lane: Lane, who: str, at_us: int) -> bool:
    if lane.kind == "worker" and lane.name.rpartition(".")[0] == who:
        return any(span.from_us <= at_us <= span.to_us for span in lane.spans)
    return lane.name == who
