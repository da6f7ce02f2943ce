"""Whether a store is older than the evidence on disk: directories of attempts that it does not know yet.

Ids come from its counters, which never go back, so a directory with a higher number than the store has given is proof. A row that
is gone (retention) proves nothing. Rule: design §4 (`store_regressed`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from shared.ids import WorkId, work_id
from shared.store.contract import ReadTx, Store

WORKS_MAX = 20_000
_TOLD_MAX = 20
_DIRECTORY = re.compile(r"w([1-9][0-9]{0,17})\.([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")

Launch = tuple[int, int]
"""Attempt number and epoch."""


def names_in(folder: Path) -> Iterator[str]:
    """The names of what lies in a folder, read when they are asked for."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.name


def check_regressed(store: Store, names: Iterable[str], *, most: int = WORKS_MAX) -> list[str]:
    """What a store must know and does not, one sentence each, at most 20; [] when it is not older than its home.

    Looks at the last launch of each of the `most` newest Works that have a directory.

    Args:
        names: What the home's folder of attempt directories holds; see `names_in`.
    """
    latest = _latest_launches(names)  # read first: what is made later is in the store before it is on disk
    newest = sorted(latest, reverse=True)[:most]
    return store.read(lambda tx: _unknown(tx, [(number, latest[number]) for number in newest]))


def _latest_launches(names: Iterable[str]) -> dict[int, Launch]:
    latest: dict[int, Launch] = {}
    for name in names:
        match = _DIRECTORY.fullmatch(name)
        if match is not None:
            number, attempt, epoch = map(int, match.groups())
            latest[number] = max(latest.get(number, (0, 0)), (attempt, epoch))
    return latest


def _unknown(tx: ReadTx, launches: list[tuple[int, Launch]]) -> list[str]:
    found: list[str] = []
    last = tx.last_work_number()
    for number, launch in launches:
        name = work_id(number)
        if number > last:
            found.append(f"{name} has a directory, the last Work that the store gave out is w{last}")
        else:
            found += _newer_launch(tx, name, launch)
        if len(found) >= _TOLD_MAX:
            break
    return found


def _newer_launch(tx: ReadTx, name: WorkId, launch: Launch) -> list[str]:
    work = tx.work(name)
    if work is None:
        return []
    number, epoch = launch
    if number > work.attempts_used:
        return [
            f"{name}.{number} has a directory, the last attempt that the store knows of {name} is {work.attempts_used}"
        ]
    known = {attempt.number: attempt.epoch for attempt in tx.attempts(name)}
    if epoch > known.get(number, epoch):
        return [f"{name}.{number} has a directory of epoch {epoch}, the store knows it at epoch {known[number]}"]
    return []
