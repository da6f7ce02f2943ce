"""Keeps this worker's own launches and its orphan scans apart: a scan is exact only while nothing forks. Rule: design §7 (S5)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAIT_S = 15.0  # a launch ends within its READY bound


class Quiet:
    """Launches share it, a scan has it alone. A waiting scan lets no new launch begin, so it waits one launch at most."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._launching = 0
        self._scans = 0

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Around a launch. Blocks while a scan runs or waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._scans == 0)
            self._launching += 1
        try:
            yield
        finally:
            with self._changed:
                self._launching -= 1
                self._changed.notify_all()

    @contextmanager
    def scanning(self) -> Iterator[None]:
        """Around a scan. Blocks until running launches are over, at most `WAIT_S`; after that the scan is merely less exact."""
        with self._changed:
            self._scans += 1
            self._changed.wait_for(lambda: self._launching == 0, WAIT_S)
        try:
            yield
        finally:
            with self._changed:
                self._scans -= 1
                self._changed.notify_all()
