"""Stories out of a history: which Works are told, what lies in which lane, and what a stepping clock does to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.checks import Finding
from chaos.history import History
from chaos.job import Job
from chaos.results import Lane, Span, Story, StoryMark
from chaos.stories import SILENCE_US_MAX, Harm, stories
from chaos.witness import Line, Mark
from shared.ids import AttemptId, WorkId
from shared.store.contract import Event
from tests.support.clean_histories import clean_history
from tests.support.histories import a_history, a_work, an_attempt

W1, W2 = WorkId("w1"), WorkId("w2")
A1, A2 = AttemptId("w1.1"), AttemptId("w2.1")
MS = 1_000
BEGAN = 1_000_000_000


def event(seq: int, at_ms: int, kind: str, of: str | None = None, epoch: int | None = None, **data: Any) -> Event:
    attempt = AttemptId(of) if of is not None and "." in of else None
    work = WorkId(of) if of is not None and attempt is None else None
    return Event(seq, BEGAN + at_ms * MS, kind, work, attempt, epoch, data)


EVENTS = (
    event(1, 0, "leader.taken", owner="coordinator.1", generation=1),
    event(2, 1, "worker.registered", worker="worker-1.1"),
    event(3, 2, "worker.registered", worker="worker-2.1"),
    event(4, 10, "work.submitted", "w1"),
    event(5, 20, "attempt.claimed", "w1.1", 1, worker="worker-1.1"),
    event(6, 20, "work.running", "w1"),
    event(7, 30, "attempt.pinned", "w1.1", 1),
    event(8, 50, "worker.gone", worker="worker-1.1", reason="worker died"),
    event(9, 50, "lease.revoked", "w1.1", 1, reason="worker died"),
    event(10, 60, "leader.taken", owner="coordinator.2", generation=2),
    event(11, 70, "attempt.taken_over", "w1.1", 2, worker="worker-2.1"),
    event(12, 75, "attempt.adopted", "w1.1", 2, why="it runs"),
    event(13, 90, "attempt.succeeded", "w1.1", 2),
    event(14, 90, "work.completed", "w1"),
    event(15, 95, "work.submitted", "w2"),
    event(16, 96, "attempt.claimed", "w2.1", 1, worker="worker-2.1"),
    event(17, 99, "attempt.failed", "w2.1", 1),
    event(18, 99, "work.failed", "w2"),
)
LINES = (Line(Mark.START, W1, A1, 1, 7), Line(Mark.END, W1, A1, 1, 7), Line(Mark.START, W2, A2, 1, 8))


@pytest.fixture
def history() -> History:
    """w1 was taken over once while it ran; w2 simply failed."""
    return a_history(
        jobs=(Job(W1, 0), Job(W2, 7)),
        works={W1: a_work(W1), W2: a_work(W2)},
        attempts={A1: an_attempt(A1, 0, epoch=2), A2: an_attempt(A2, 7)},
        lines=LINES,
        events=EVENTS,
    )


def lane(story: Story, name: str) -> Lane:
    return next(each for each in story.lanes if each.name == name)


def test_the_work_with_the_most_epochs_is_told_from_its_first_event_on(history: History) -> None:
    (story,) = stories(history, seed=9)

    assert (story.title, story.seed) == ("w1: 2 leases, the most", 9)
    assert [each.name for each in story.lanes] == ["leader", "w1", "w1.1", "pid 7", "worker-1.1", "worker-2.1"]
    assert lane(story, "leader").spans == (
        Span(0, 50 * MS, "generation 1, coordinator.1", "leader"),
        Span(50 * MS, 80 * MS, "generation 2, coordinator.2", "leader"),
    )
    assert lane(story, "w1").spans == (Span(0, 10 * MS, "submitted", "work"), Span(10 * MS, 80 * MS, "running", "work"))
    assert lane(story, "w1").marks == (StoryMark(80 * MS, "completed", "end"),)


def test_the_work_that_is_asked_for_is_told_before_all_others(history: History) -> None:
    found = stories(history, about=(W2, "worker-pin_commit"), findings=[Finding("jobs_are_one_set", "w1 was lost")])

    assert [story.title for story in found[:2]] == ["w2: worker-pin_commit", "w1: jobs_are_one_set"]
    assert len(stories(history, about=(W2, "worker-pin_commit"), most=1)) == 1


def test_a_lease_is_drawn_until_it_was_let_go_and_the_next_from_the_takeover_on(history: History) -> None:
    told = lane(stories(history)[0], "w1.1")

    assert told.spans == (
        Span(10 * MS, 40 * MS, "epoch 1, worker-1.1", "lease"),
        Span(60 * MS, 80 * MS, "epoch 2, worker-2.1", "lease"),
    )
    assert StoryMark(65 * MS, "attempt.adopted (epoch 2): it runs", "commit") in told.marks
    assert told.marks[-1] == StoryMark(80 * MS, "attempt.succeeded (epoch 2)", "end")


def test_workers_are_drawn_until_they_were_found_gone(history: History) -> None:
    (story,) = stories(history)

    assert lane(story, "worker-1.1").spans == (Span(0, 40 * MS, "registered", "worker"),)
    assert lane(story, "worker-1.1").marks == (StoryMark(40 * MS, "found gone: worker died", "gone"),)
    assert lane(story, "worker-2.1").spans == (Span(0, 80 * MS, "registered", "worker"),)


def test_a_process_is_drawn_from_its_pin_to_the_end_of_its_attempt(history: History) -> None:
    assert lane(stories(history)[0], "pid 7").spans == (Span(20 * MS, 80 * MS, "epoch 1, came to its end", "process"),)


def test_a_process_of_a_simulation_is_drawn_exactly(history: History) -> None:
    exact = (replace(LINES[0], seq=8), Line(Mark.GONE, W1, A1, 1, 7, seq=11))

    told = stories(replace(history, lines=exact))[0]

    assert lane(told, "pid 7").spans == (Span(40 * MS, 60 * MS, "epoch 1, gone", "process"),)


def test_what_a_finding_names_comes_first(history: History) -> None:
    told = stories(history, findings=[Finding("statuses_are_true", "w2.1 ended with 7, recorded is 0")])

    assert [story.title for story in told] == ["w2: statuses_are_true", "w1: 2 leases, the most"]
    assert lane(told[0], "pid 8").spans[0].label == "epoch 1, no end seen"
    assert [story.title for story in stories(history, most=0)] == []


def test_a_finding_that_names_no_work_of_the_history_chooses_none(history: History) -> None:
    told = stories(history, findings=[Finding("generations_only_rise", "generation 1 followed 2, see w99")])

    assert [story.title for story in told] == ["w1: 2 leases, the most"]


def test_the_slowest_recovery_is_told_besides_the_most_epochs(history: History) -> None:
    more = (
        event(19, 100, "attempt.taken_over", "w1.1", 3, worker="worker-2.1"),
        event(20, 101, "attempt.adopted", "w1.1", 3),
        event(21, 110, "attempt.taken_over", "w2.1", 2, worker="worker-2.1"),
        event(22, 990, "attempt.relaunched", "w2.1", 2),
    )
    attempts = {A1: an_attempt(A1, 0, epoch=3), A2: an_attempt(A2, 7, epoch=2)}

    told = stories(replace(history, events=EVENTS + more, attempts=attempts))

    assert [story.title for story in told] == ["w1: 3 leases, the most", "w2: slowest to be recovered, 880 ms"]


def test_harm_is_marked_where_it_was_done_and_to_whom(history: History) -> None:
    harms = [
        Harm(BEGAN + 45 * MS, "worker-1.1", "kill", "KILL"),
        Harm(BEGAN + 48 * MS, "worker-1", "stop", "by its name"),
        Harm(BEGAN + 70 * MS, "worker-1", "kill", "of the one after it"),
        Harm(BEGAN + 55 * MS, "coordinator", "kill", "of one that does not lead"),
        Harm(BEGAN + 5 * MS, "worker-1.1", "kill", "before it begins"),
    ]

    (story,) = stories(history, harms=harms)

    marks = [mark for each in story.lanes for mark in each.marks if mark.kind in {"kill", "stop"}]
    assert marks == [StoryMark(35 * MS, "KILL", "kill"), StoryMark(38 * MS, "by its name", "stop")]
    assert set(marks) <= set(lane(story, "worker-1.1").marks)


def test_a_generation_ends_where_its_leader_was_killed(history: History) -> None:
    (story,) = stories(history, harms=[Harm(BEGAN + 55 * MS, "leader", "kill", "KILL")])

    assert lane(story, "leader").marks == (StoryMark(45 * MS, "KILL", "kill"),)
    assert lane(story, "leader").spans[0] == Span(0, 45 * MS, "generation 1, coordinator.1", "leader")
    assert lane(story, "leader").spans[1].from_us == 50 * MS


def test_a_drill_that_knows_the_time_better_is_believed(history: History) -> None:
    stepped = tuple(replace(each, at_us=each.at_us + (3_600_000 * MS if each.seq % 2 else 0)) for each in EVENTS)

    def true(each: Event) -> int:
        return EVENTS[each.seq - 1].at_us

    assert stories(replace(history, events=stepped), clock=true) == stories(history)
    assert stories(replace(history, events=stepped)) != stories(history)


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_a_clock_that_steps_is_marked_and_spoils_no_order(history: History, step_ms: int) -> None:
    stepped = tuple(replace(each, at_us=each.at_us + (step_ms * MS if each.seq >= 7 else 0)) for each in EVENTS)

    (story,) = stories(replace(history, events=stepped))

    first, second = lane(story, "w1.1").spans
    pause_us = SILENCE_US_MAX if step_ms > 0 else 0
    assert (first.from_us, first.to_us) == (10 * MS, 10 * MS + pause_us + 20 * MS)
    assert first.to_us < second.from_us < second.to_us
    assert [mark.kind for mark in lane(story, "leader").marks] == ["jump"]


def test_an_empty_history_tells_nothing() -> None:
    assert stories(a_history()) == ()


def test_a_recorded_history_is_told_within_its_axis() -> None:
    told = stories(clean_history(), most=2)

    assert told[0].title.endswith("leases, the most")
    for story in told:
        assert {lane.kind for lane in story.lanes} == {"leader", "work", "attempt", "process", "worker"}
        assert any(span.kind == "lease" for each in story.lanes for span in each.spans)
        assert all(0 <= span.from_us <= span.to_us for each in story.lanes for span in each.spans)
