"""Commits, statements and boundaries of a job, counted in one process."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self
from unittest import mock

from chaos.harness import COORDINATOR, Harness
from chaos.measures.setting import SETTINGS, TRUE, WORKERS, submit_all
from chaos.measures.spread import Numbers
from coordinator import bootstrap as coordinator_bootstrap
from shared import boundary
from shared.boundary import Boundary, Side
from shared.child import ChildOptions
from shared.store.contract import Store
from shared.store.sqlite.store import SqliteStore, open_store
from worker import bootstrap as worker_bootstrap

NOTES_S = 1.5  # after which what a pass leaves to be written later is written
UNCOUNTED = frozenset({Boundary.QUEUE_LOCK, Boundary.LOCK_PROBE})


def counts(folder: Path, *, jobs: int = 100) -> Numbers:
    """Commits, statements and boundaries crossed per job, alone and in a batch; coordinator and worker run on threads here."""
    with Harness(folder, SETTINGS) as harness, _InView(harness) as view:
        harness.wait(lambda: len(harness.read(lambda tx: tx.workers())) == 1, "the worker is there")
        time.sleep(NOTES_S)
        before = view.counted()
        harness.submit_command(TRUE)
        harness.wait_quiet()
        time.sleep(NOTES_S)
        between = view.counted()
        submit_all(harness, jobs)
        harness.wait_quiet()
        time.sleep(NOTES_S)
        after = view.counted()
    one, batch = between - before, after - between
    return {
        "one_job": dict(sorted(one.items())),
        "per_job_of_batch": {name: round(count / jobs, 2) for name, count in sorted(batch.items())},
        "batch": jobs,
    }


class _InView:
    """A coordinator and a worker on threads of this process: their stores count, and every boundary they cross is seen."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._stores: list[SqliteStore] = []
        self._crossed: Counter[str] = Counter()
        self._options = [ChildOptions(str(harness.home.path), name, drain_s=0.0) for name in (COORDINATOR, WORKERS[0])]

    def counted(self) -> Counter[str]:
        """Everything counted so far; the harness's own submit is among the boundaries, not among commits and statements."""
        commits = sum(store.commits for store in self._stores)
        statements = sum(store.statements for store in self._stores)
        return Counter({"commits": commits, "statements": statements}) + self._crossed

    def __enter__(self) -> Self:
        def opened(*args: object, **options: object) -> Store:
            store = open_store(*args, **options)  # type: ignore[arg-type]
            self._stores.append(store)
            return store

        def crossed(at: Boundary, side: Side) -> None:
            if side is Side.AFTER and at not in UNCOUNTED:
                self._crossed[at] += 1

        modules = (coordinator_bootstrap, worker_bootstrap)
        self._patches = [mock.patch.object(module, "open_store", opened) for module in modules]
        for patch in self._patches:
            patch.start()
        boundary.install(crossed)
        self._threads = [
            threading.Thread(target=module.main, args=(options,))
            for module, options in zip(modules, self._options, strict=True)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for options in reversed(self._options):
            options.stop.ask(0.0, "measured")
        for thread in self._threads:
            thread.join()
        boundary.install(None)
        for patch in self._patches:
            patch.stop()
