"""Changes committed together: one refusal undoes no other, an unknown commit is looked up, each consequence comes once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import IndeterminateError, NotWrittenError, RefusedError, StoreBusyError
from worker.batch import Batch, Change, Undone


class ListStore:
    """A store whose state is a list of words; a transaction appends to it.

    Attributes:
        faults: What the next commits do: `busy`, `lost` (not answered, nothing written), `unanswered` (written).
        reads: What the next reads do: `busy` or `fine`.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.faults: list[str] = []
        self.reads: list[str] = []
        self.commits = 0

    def write(self, fn: Callable[[Any], None]) -> None:
        draft = list(self.words)
        fn(draft)
        fault = self.faults.pop(0) if self.faults else None
        if fault == "busy":
            raise StoreBusyError("busy")
        if fault != "lost":
            self.words = draft
            self.commits += 1
        if fault is not None:
            raise IndeterminateError(fault)

    def read(self, fn: Callable[[Any], bool]) -> bool:
        if self.reads and self.reads.pop(0) == "busy":
            raise StoreBusyError("busy")
        return fn(self.words)


class Recorded:
    """A batch of named changes and what became of each."""

    def __init__(self) -> None:
        self.store = ListStore()
        self.batch = Batch(self.store)  # type: ignore[arg-type]
        self.told: list[str] = []
        self.why: list[Undone] = []

    def add(self, word: str, *, is_refused: bool = False, then: Callable[[], None] = lambda: None) -> None:
        def apply(draft: Any) -> None:
            if is_refused:
                raise RefusedError(f"no {word}")
            draft.append(word)

        def done() -> None:
            self.told.append(f"done {word}")
            then()

        def happened(words: Any) -> bool:
            return word in words

        def undone(error: Undone) -> None:
            self.told.append(f"refused {word}")
            self.why.append(error)

        self.batch.add(Change(apply, done, undone, happened))


@pytest.fixture
def it() -> Recorded:
    return Recorded()


def test_nothing_queued_commits_nothing(it: Recorded) -> None:
    assert not it.batch

    it.batch.commit()

    assert it.store.commits == 0


@pytest.mark.req("S01")
def test_what_is_queued_shares_a_commit_in_order(it: Recorded) -> None:
    for word in "abc":
        it.add(word)
    assert it.batch

    it.batch.commit()

    assert (it.store.words, it.store.commits) == (["a", "b", "c"], 1)
    assert it.told == ["done a", "done b", "done c"]
    assert not it.batch


def test_a_refused_change_undoes_no_other(it: Recorded) -> None:
    it.add("a")
    it.add("b", is_refused=True)
    it.add("c")
    it.add("d", is_refused=True)

    it.batch.commit()

    assert it.store.words == ["a", "c"]
    assert sorted(it.told) == ["done a", "done c", "refused b", "refused d"]


def test_a_busy_store_keeps_everything_queued(it: Recorded) -> None:
    it.add("a")
    it.store.faults = ["busy"]

    with pytest.raises(StoreBusyError):
        it.batch.commit()

    assert it.batch
    assert it.told == []
    it.add("b")
    it.batch.commit()
    assert (it.store.words, it.told) == (["a", "b"], ["done a", "done b"])


@pytest.mark.parametrize(("fault", "told"), [("unanswered", "done"), ("lost", "refused")])
def test_an_unknown_commit_is_looked_up_before_anything_is_told(it: Recorded, fault: str, told: str) -> None:
    it.add("a")
    it.store.faults = [fault]

    it.batch.commit()

    assert it.told == [f"{told} a"]
    assert not it.batch


def test_what_did_not_reach_the_store_is_no_refusal(it: Recorded) -> None:
    it.add("a")
    it.store.faults = ["lost"]
    it.batch.commit()
    assert [type(error) for error in it.why] == [NotWrittenError]

    it.add("b", is_refused=True)
    it.batch.commit()

    assert [type(error) for error in it.why] == [NotWrittenError, RefusedError], "control: what the state says no to"


@pytest.mark.parametrize(("fault", "told"), [("unanswered", "done"), ("lost", "refused")])
def test_a_look_up_that_fails_is_done_again_and_nothing_is_told_meanwhile(it: Recorded, fault: str, told: str) -> None:
    it.add("a")
    it.store.faults = [fault]
    it.store.reads = ["busy", "busy"]
    for _ in range(2):
        with pytest.raises(StoreBusyError):
            it.batch.commit()
        assert it.told == []
        assert it.batch

    it.batch.commit()

    assert it.told == [f"{told} a"]


def test_a_look_up_that_fails_half_way_tells_nothing_twice(it: Recorded) -> None:
    it.add("a")
    it.add("b")
    it.store.faults = ["unanswered"]
    it.store.reads = ["fine", "busy"]
    with pytest.raises(StoreBusyError):
        it.batch.commit()
    assert it.told == ["done a"]

    it.batch.commit()

    assert it.told == ["done a", "done b"]


def test_what_is_unknown_is_looked_up_before_what_is_new_is_written(it: Recorded) -> None:
    it.add("a")
    it.store.faults = ["unanswered"]
    it.store.reads = ["busy"]
    with pytest.raises(StoreBusyError):
        it.batch.commit()
    it.add("b")

    it.batch.commit()

    assert it.told == ["done a", "done b"]


def test_a_consequence_may_queue_more_which_the_same_commit_call_writes_or_keeps(it: Recorded) -> None:
    it.add("a", then=lambda: it.add("b"))

    it.batch.commit()
    it.batch.commit()

    assert (it.store.words, it.told) == (["a", "b"], ["done a", "done b"])


def test_a_consequence_of_a_look_up_may_queue_more(it: Recorded) -> None:
    it.add("a", then=lambda: it.add("b"))
    it.store.faults = ["unanswered"]

    it.batch.commit()
    it.batch.commit()

    assert (it.store.words, it.told) == (["a", "b"], ["done a", "done b"])
