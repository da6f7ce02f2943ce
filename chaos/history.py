"""What is known after a drill, as one plain value: what was asked for, what the store says, what the witness says.

Everything that judges works on this value alone. Drills with real processes and the simulation make the same one; `chaos/recording.py`
reads it. Rule: design §9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from chaos.job import Job
from chaos.seen import Seen
from chaos.witness import Line, Mark
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, Lease, Segment, Snapshot
from shared.model.budget import Budget
from shared.model.cancel import Cancellation
from shared.model.declaration import Recorded
from shared.model.host import StopOrder
from shared.model.intent import Intent
from shared.model.stream import Stream
from shared.model.work import Work
from shared.policy.capacity import Limits
from shared.store.contract import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class History(Seen):
    """Everything the checks look at: what the store says, what the witness says, and what was seen besides.

    Attributes:
        limits: In force all the while.
        lease_us: Of the configuration.
        lines: The witness, in the order it was written.
        snapshots: What each attempt pinned at its claim.
        declarations: What the program of each attempt declared, in order.
        streams: How far the output of each agent was read; of an attempt that nobody listens to, none.
        intents: Words to the attempts of each Work, in order.
        pending_inputs: Numbers of the inputs of each Work that no attempt has consumed.
        events: The changefeed, from its beginning.
        open_orders: Stop orders that nobody has proven yet.
        cancellations: By Work, in order.
        outputs: What each pinned attempt wrote to its standard output.
        budgets: In force all the while; `approvals`: the bindings whose works a person has to approve.
        ledgers: Of each budget for life, what was charged, by subject.
        is_usage_staged: Some of what was used is not charged yet.
    """

    jobs: tuple[Job, ...]
    limits: Limits
    lease_us: int
    lines: tuple[Line, ...]
    works: Mapping[WorkId, Work]
    attempts: Mapping[AttemptId, Attempt]
    snapshots: Mapping[AttemptId, Snapshot]
    segments: Mapping[AttemptId, tuple[Segment, ...]]
    leases: Mapping[AttemptId, Lease]
    declarations: Mapping[AttemptId, tuple[Recorded, ...]]
    streams: Mapping[AttemptId, Stream]
    intents: Mapping[WorkId, tuple[Intent, ...]]
    pending_inputs: Mapping[WorkId, tuple[int, ...]]
    events: tuple[Event, ...]
    open_orders: tuple[StopOrder, ...]
    cancellations: Mapping[WorkId, tuple[Cancellation, ...]]
    outputs: Mapping[AttemptId, str]
    budgets: tuple[Budget, ...] = ()
    approvals: frozenset[str] = frozenset()
    ledgers: Mapping[Budget, Mapping[str, Decimal]] = field(default_factory=dict)
    is_usage_staged: bool = False

    def lines_of(self, work_id: WorkId, mark: Mark) -> list[Line]:
        """What the jobs of one Work said."""
        return [line for line in self.lines if line.work_id == work_id and line.mark is mark]

    def attempts_of(self, work_id: WorkId) -> list[Attempt]:
        """A Work's attempts, by number."""
        found = [attempt for attempt in self.attempts.values() if attempt.work_id == work_id]
        return sorted(found, key=lambda attempt: attempt.number)

    def job(self, work_id: WorkId) -> Job | None:
        """The job behind a Work; None when it is none of the drill's."""
        return next((job for job in self.jobs if job.work_id == work_id), None)


def pins_in(events: Sequence[Event]) -> frozenset[tuple[AttemptId, int]]:
    """The launches that some events tell of as pinned: attempt and epoch."""
    return frozenset(
        (event.attempt_id, event.epoch)
        for event in events
        if event.kind == "attempt.pinned" and event.attempt_id is not None and event.epoch is not None
    )
