"""Names are minted from counters, told apart by their shape, and read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ids import (
    attempt_directory,
    attempt_id,
    incarnation,
    is_attempt_id,
    is_work_id,
    is_worker_name,
    work_id,
    work_of,
)

NUMBERS = st.integers(1, 10**9 - 1)


def test_names_are_those_of_the_glossary() -> None:
    assert work_id(41) == "w41"
    assert attempt_id(work_id(41), 2) == "w41.2"
    assert attempt_directory(attempt_id(work_id(41), 2), 3) == "w41.2.3"
    assert incarnation("worker-1", 7) == "worker-1.7"


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_name_is_read_back_and_taken_for_no_other_kind(work: int, number: int, epoch: int) -> None:
    attempt = attempt_id(work_id(work), number)
    directory = attempt_directory(attempt, epoch)

    assert work_of(attempt) == work_id(work)
    assert [is_work_id(text) for text in (work_id(work), attempt, directory)] == [True, False, False]
    assert [is_attempt_id(text) for text in (work_id(work), attempt, directory)] == [False, True, False]


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=2, unique=True))
def test_two_launches_never_share_a_directory(launches: list[tuple[int, int, int]]) -> None:
    first, second = (attempt_directory(attempt_id(work_id(w), n), e) for w, n, e in launches)

    assert first != second


@pytest.mark.parametrize(
    "text", ["", "w", "w0", "w01", "W1", "1", "w1\n", " w1", "w1 ", "w-1", "w1.1", "w" + "9" * 19, "w１"]
)
def test_what_is_no_work_id_is_not_taken_for_one(text: str) -> None:
    assert is_work_id("w1"), "control"

    assert not is_work_id(text)


@pytest.mark.parametrize(
    "text", ["", "w1", "w1.", "w1.0", "w1.01", "w0.1", ".1", "w1.1.1", "w1.1\n", "w1.-1", "w1.1234567890"]
)
def test_what_is_no_attempt_id_is_not_taken_for_one(text: str) -> None:
    assert is_attempt_id("w1.1"), "control"

    assert not is_attempt_id(text)


@pytest.mark.parametrize("name", ["w", "worker-1", "a" * 32, "x-", "a1-2"])
def test_a_worker_name_is_accepted(name: str) -> None:
    assert is_worker_name(name)


@pytest.mark.parametrize("name", ["", "1a", "-a", "Worker", "a.1", "a/b", "a b", "a\n", "a" * 33, "é", "../x", "a_b"])
def test_what_cannot_name_a_worker_is_refused(name: str) -> None:
    assert not is_worker_name(name)
