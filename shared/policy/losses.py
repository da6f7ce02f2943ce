"""Work that takes its worker with it: what the deaths of an attempt's holders mean.

Only a death that is proven on the same boot counts, and only of a worker that had accepted the attempt: a worker that left, a host
that restarted, a lease that lapsed say nothing of what ran. Deaths are counted on the attempt in the transaction that takes it back,
so before it is launched again or adopted. A death proves no guilt: whatever the worker held besides is counted as well. So suspects
are launched one at a time (`workers.choose_recoverer`), and a binding is blamed only where all that is left to suspect is its own.

Rule: design §11 ("a job that keeps killing its worker is counted and quarantined"); case C056.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.model.attempt import Attempt, AttemptState, Ending, FailureClass, Snapshot
from shared.model.instant import US_PER_S

QUICK_US = 10 * US_PER_S
"""What runs is suspected only of a death that comes so soon after a worker got it: a crash loop. A worker that has held it for
longer, and dies of something else, begins the row anew."""


@dataclass(frozen=True, slots=True)
class Lost:
    """An attempt whose holder died, as it is after the loss was counted; `snapshot`: what it pinned, None where that cannot be read."""

    attempt: Attempt
    snapshot: Snapshot | None


def in_row_after(attempt: Attempt, held_us: int) -> int:
    """How many holders of it died in a row, with this one; a pin begins the row anew.

    Args:
        held_us: Elapsed since the worker was given it.
    """
    if attempt.pin is not None and held_us >= QUICK_US:
        return 1
    return attempt.workers_lost_in_row + 1


def is_suspect(attempt: Attempt, pinned: Snapshot) -> bool:
    """Whether the next death would be the last that its launch may cost: it is launched with no other suspect beside it.

    What dies alone is to blame; what was only near is pinned meanwhile. A first death delays nobody.
    """
    last = max(1, pinned.workers_lost_max - 1)
    return bool(pinned.workers_lost_max) and attempt.pin is None and attempt.workers_lost_in_row >= last


def ending_of_lost_workers(attempt: Attempt, pinned: Snapshot) -> Ending | None:
    """How an attempt ends that is to be launched again, when its launches have cost enough workers; None: launch it again.

    A known failure: its retry policy counts it, and says what comes next.
    """
    lost = attempt.workers_lost_in_row
    if not pinned.workers_lost_max or lost < pinned.workers_lost_max:
        return None
    workers = "one worker its life" if lost == 1 else f"{lost} workers in a row their lives"
    error = f"worker lost: launching it cost {workers}"
    return Ending(AttemptState.FAILED, None, FailureClass.KNOWN, error, None, "worker lost")


def binding_to_blame(lost: Sequence[Lost]) -> str | None:
    """The binding of which nothing more is to start, when one worker's death is the last of too many; None: none.

    What runs is never touched for that. Nobody is blamed while the suspicion falls on several, or on a launch that is about to be
    ended, or on what no binding says.

    Args:
        lost: All that the dead worker held.
    """
    suspected = [each for each in lost if _has_cost_enough(each)]
    names = {None if each.snapshot is None else each.snapshot.binding for each in suspected}
    if len(names) != 1 or any(each.attempt.pin is None or not _counts(each.snapshot) for each in suspected):
        return None
    return names.pop()


def _has_cost_enough(lost: Lost) -> bool:
    most = 0 if lost.snapshot is None else lost.snapshot.workers_lost_max
    return bool(most) and lost.attempt.workers_lost_in_row >= most


def _counts(snapshot: Snapshot | None) -> bool:
    """Whether its binding may be quarantined for it: not where the Work brings its own command, nor where nothing ever is."""
    return snapshot is not None and snapshot.quarantine_after > 0
