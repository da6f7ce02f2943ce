"""Names of things, minted from store counters; a name is never reused in a home.

work `w41` · attempt `w41.2` · its directory for epoch 3 `w41.2.3` · worker incarnation `worker-1.7` (name, registration)
· coordinator incarnation `coordinator.5`. Rule: design §4, "Ids come from store counters".
"""

from __future__ import annotations

import re
from typing import NewType

WorkId = NewType("WorkId", str)
AttemptId = NewType("AttemptId", str)
Incarnation = NewType("Incarnation", str)

_WORK = re.compile(r"w([1-9][0-9]{0,17})")
_ATTEMPT = re.compile(r"(w[1-9][0-9]{0,17})\.([1-9][0-9]{0,8})")
_WORKER_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


def work_id(number: int) -> WorkId:
    """Name of the Work with this counter value."""
    return WorkId(f"w{number}")


def attempt_id(work: WorkId, number: int) -> AttemptId:
    """Name of attempt `number` (from 1) of a Work."""
    return AttemptId(f"{work}.{number}")


def attempt_directory(attempt: AttemptId, epoch: int) -> str:
    """Folder name of one launch, relative to the home's `attempts/`."""
    return f"{attempt}.{epoch}"


def incarnation(name: str, number: int) -> Incarnation:
    """Name of the `number`-th process that registered as `name`."""
    return Incarnation(f"{name}.{number}")


def is_work_id(text: str) -> bool:
    """True when `text` has the shape of a Work's name."""
    return _WORK.fullmatch(text) is not None


def is_attempt_id(text: str) -> bool:
    """True when `text` has the shape of an attempt's name."""
    return _ATTEMPT.fullmatch(text) is not None


def is_worker_name(text: str) -> bool:
    """True when `text` may name a worker: lower-case letters, digits and dashes, at most 32."""
    return _WORKER_NAME.fullmatch(text) is not None


def work_of(attempt: AttemptId) -> WorkId:
    """The Work an attempt belongs to."""
    return WorkId(attempt.rsplit(".", 1)[0])
