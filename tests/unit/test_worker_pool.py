"""The pool of threads: each task comes back once, with its result or its error, and nothing waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from worker.pool import Completion, TaskPool

PATIENCE_S = 30


@pytest.fixture
def completions() -> queue.SimpleQueue[Completion]:
    return queue.SimpleQueue()


@pytest.fixture
def pool(completions: queue.SimpleQueue[Completion]) -> Iterator[TaskPool]:
    made = TaskPool(2, "test", completions.put)
    yield made
    made.close()
    for thread in made._threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_a_result_and_an_error_both_come_back(pool: TaskPool, completions: queue.SimpleQueue[Completion]) -> None:
    fault = OSError("no more processes")

    def fail() -> None:
        raise fault

    pool.submit("one", lambda: 41)
    pool.submit("two", fail)

    back = {done.key: (done.result, done.error) for done in (completions.get(timeout=PATIENCE_S) for _ in range(2))}
    assert back == {"one": (41, None), "two": (None, fault)}


@pytest.mark.req("E07")
def test_a_blocked_task_holds_up_neither_its_caller_nor_the_next(
    pool: TaskPool, completions: queue.SimpleQueue[Completion]
) -> None:
    freed = threading.Event()
    pool.submit("blocked", lambda: freed.wait(PATIENCE_S))

    pool.submit("next", lambda: "done")

    assert completions.get(timeout=PATIENCE_S).key == "next"
    freed.set()
    assert completions.get(timeout=PATIENCE_S) == Completion("blocked", True, None)


def test_what_is_queued_is_done_before_a_closed_pool_ends(completions: queue.SimpleQueue[Completion]) -> None:
    pool = TaskPool(1, "test", completions.put)
    for number in range(20):
        pool.submit(number, lambda: None)

    pool.close()

    assert [completions.get(timeout=PATIENCE_S).key for _ in range(20)] == list(range(20))


def test_its_threads_never_keep_a_process_alive(pool: TaskPool) -> None:
    assert [thread.daemon for thread in pool._threads] == [True, True]
