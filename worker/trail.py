"""The launch phases of one holding, written by a pool thread as they happen and read by the worker's step. Rule: E15."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from shared.model.attempt import Phase
from shared.model.instant import US_PER_MS, Instant

SLOW_US = 200 * US_PER_MS
"""A phase that is open for longer is written by itself, so that it shows while it runs."""


class Trail:
    """Phases in order of their beginning. Phases that are over ride on the next write of the attempt."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._phases: list[Phase] = []
        self._written: tuple[Phase, ...] = ()
        self._open_since_us: int | None = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A phase around the block: `ok`, or `failed` when it raises."""
        self._begin(name)
        try:
            yield
        except BaseException:
            self._end("failed")
            raise
        self._end("ok")

    def phases(self) -> tuple[Phase, ...]:
        """All of them, to be written under the lease."""
        with self._lock:
            return tuple(self._phases)

    def written(self, phases: tuple[Phase, ...]) -> None:
        """These were written."""
        self._written = phases

    @property
    def slow_mono_us(self) -> int | None:
        """When the open phase counts as slow and is to be written; None when none is open or it is written already."""
        with self._lock:
            if self._open_since_us is None or tuple(self._phases) == self._written:
                return None
            return self._open_since_us + SLOW_US

    def _begin(self, name: str) -> None:
        now = self._now()
        with self._lock:
            self._phases.append(Phase(name, now.wall_us, None, None))
            self._open_since_us = now.mono_us

    def _end(self, outcome: Literal["ok", "failed"]) -> None:
        now = self._now()
        with self._lock:
            self._phases[-1] = replace(self._phases[-1], ended_at_us=now.wall_us, outcome=outcome)
            self._open_since_us = None
