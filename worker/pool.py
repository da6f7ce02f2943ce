"""A small pool of threads for what is slow: launching, reading evidence, stopping.

Pool threads never touch the store. They return completions, which the worker's next step applies in a batch.
Rule: design §3.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Completion:
    """What one task came to: its `result`, or the `error` it raised."""

    key: Hashable
    result: object
    error: Exception | None


class TaskPool:
    """Threads that run tasks in order of submission.

    The threads are daemons: a worker that exits never waits for a launch or a stop. What they leave half done is what a
    killed worker leaves half done, and recovery settles both alike.
    """

    def __init__(self, threads: int, name: str, completed: Callable[[Completion], None]) -> None:
        """Start the threads.

        Args:
            completed: Called from a pool thread with each completion; must not block.
        """
        self._tasks: queue.SimpleQueue[tuple[Hashable, Callable[[], object]] | None] = queue.SimpleQueue()
        self._completed = completed
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, key: Hashable, task: Callable[[], object]) -> None:
        """Queue a task; never blocks."""
        self._tasks.put((key, task))

    def close(self) -> None:
        """Let the threads end after what is queued; does not wait."""
        for _ in self._threads:
            self._tasks.put(None)

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            key, task = item
            try:
                self._completed(Completion(key, task(), None))
            except Exception as error:  # noqa: BLE001 - every failure of a task is reported to the step
                self._completed(Completion(key, None, error))
