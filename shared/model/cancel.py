"""Cancel: asked for, acknowledged by whoever takes the stop, settled once the stop is proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.ids import AttemptId, WorkId

CancelScope = Literal["work", "attempt"]


@dataclass(frozen=True, slots=True)
class Cancellation:
    """One cancel that was accepted. What it names ended with it; its processes are what it waits for. Rule: X01.

    Attributes:
        attempt_id, epoch: What has to be stopped, exactly this; None together: nothing was there to stop.
        acknowledged_at_us, acknowledged_by: When a worker took the stop order, or a person confirmed the stop; None: nobody
            has yet, or nobody had to.
        settled_at_us, result: `stopped S1`, by its proof, or `nothing to stop`; None: the stop is not proven yet.
    """

    id: int
    work_id: WorkId
    attempt_id: AttemptId | None
    epoch: int | None
    scope: CancelScope
    requested_by: str
    reason: str
    requested_at_us: int
    acknowledged_at_us: int | None
    acknowledged_by: str | None
    settled_at_us: int | None
    result: str | None
