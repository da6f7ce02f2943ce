"""The part of the store contract that is about leadership, and what the leader alone does.

Rule: design §5; requirements E02, E03, L01, R02, E14; what a transition marked *leader* needs is told in `shared.store.contract`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.evidence import ProcessIdentity
from shared.model.host import Leader, PassRecord
from shared.model.work import WorkChange
from shared.policy.capacity import Wait
from shared.store.values import Claimed, ClaimHeld, ClaimRefused, ClaimRequest, UnreadableRow


class LeaderTransitions(Protocol):
    """Taking the lead, and the transitions of whoever has it."""

    def take_leadership(
        self,
        owner: Incarnation,
        *,
        process: ProcessIdentity,
        lock_device: int,
        lock_inode: int,
        duration_us: int,
        proven_dead: int | None,
    ) -> Leader | None:
        """Compare-and-set to generation + 1; None when another leads.

        Args:
            process: Who asks, so that whoever stands by can watch it.
            proven_dead: The generation whose own lock file was proven free; that row then no longer protects itself.
        """

    def lead(self, owner: Incarnation, generation: int, *, duration_us: int, renew_after_us: int) -> None:
        """Assert leadership for this transaction, renewing it when less than `duration_us - renew_after_us` is left.
        Raises LeadershipLostError.
        """

    def resign(self, owner: Incarnation, generation: int) -> None:
        """Give leadership up; refused silently when it is another's."""

    def revoke_foreign_boots(self) -> int:
        """Revoke every unrevoked lease of another boot; returns how many. *leader*"""

    def carry_timers(self, *, limit: int) -> int:
        """Go on in this boot with so many timers of others, those due first before the others: what was waited is the wall difference,
        at least 0, measured now and never again, so that a wall clock that is set afterwards delays none; returns how many. None that
        is left is due by this boot's clock. *leader* Rule: K02, S01.
        """

    def revoke_unaccepted(self, *, accept_timeout_us: int) -> list[AttemptId]:
        """Revoke claims not accepted in time (reason `not_accepted`). *leader*"""

    def claim(self, request: ClaimRequest) -> Claimed | ClaimHeld | ClaimRefused:
        """Recheck what it was decided on; hold the Work for a gate or a budget, else create attempt N+1 with all it needs, consume
        the inputs, charge a turn. Rings the worker. *leader* Rule: E02, E03, E08, B04, G03.
        """

    def claim_recovery(
        self, attempt_id: AttemptId, *, epoch_seen: int, worker: Incarnation, lease_us: int
    ) -> int | None:
        """Same attempt, epoch + 1, `recovering`, new lease for `worker`, the open segment ended and one marked recovered begun
        at the same instant; None when the epoch moved, the lease is live, or `worker` is neither the leader itself nor a live
        worker that offers the pinned executor registration. The ended segment and the budget are charged with the time since it was measured. Writes no invoke; the new
        segment carries the sandbox's digest. Drops all but the last 50 segments, counted. Rings the worker. *leader*
        Rule: R02, E13, E17, R14.
        """

    def time_out_lapsed(self, attempt_id: AttemptId, *, epoch_seen: int, why: str, change: WorkChange) -> bool:
        """End an attempt that has neither a live lease nor time left: recovered by the leader itself (epoch + 1, a `recovered`
        segment of no length), timed out, exclusion held with a stop order, its Work settled by `change`, all at once.

        Returns: False, and nothing is written, when the epoch moved, the lease is live, time is left, or it has ended, is parked
            or waits for a person.
        Rings the coordinator and the workers. *leader* Rule: E14, R06, O05.
        """

    def hold_back(self, waits: Sequence[Wait]) -> None:
        """Record why ready Works do not start; writes only what changed. A reason of `SET_ASIDE` takes them out of the queue. *leader*"""

    def requeue(self, work_ids: Sequence[WorkId]) -> None:
        """Put Works that are set aside back into the queue, at the place they had: what held them back may do so no more. *leader*"""

    def record_pass(self, record: PassRecord) -> None:
        """*leader* Keeps the last 1,000."""

    def mark_unreadable(self, rows: Sequence[UnreadableRow]) -> None:
        """Mark rows that cannot be read, each once. *leader* Rule: S05."""

    def unmark_readable(self, rows: Sequence[UnreadableRow]) -> None:
        """Take the mark from rows that can be read again, or are gone. *leader*"""

    def mark_clock(self, *, offset_us: int) -> None:
        """Keep how the clocks lay to each other (wall minus monotonic, this boot) when the last pass began. *leader*"""

    def record_clock_jump(self, by_us: int, *, offset_us: int) -> None:
        """Tell that the wall clock jumped, and keep the mark of after it; nothing when that mark is kept already. *leader*
        Rule: K02.
        """

    def checkpoint_due(self) -> bool: ...
