"""The part of the store contract that is about workers: their registration, and what they write under the leases they hold.

Rule: design §6; requirements E05, E06, E15, E16, R05, R07; the fence by a `LeaseKey` is told in `shared.store.contract`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared.ids import AttemptId, Incarnation
from shared.model.attempt import Ending, LeaseKey, Phase
from shared.model.evidence import Pin
from shared.model.outcome import Outcome
from shared.model.work import WorkChange
from shared.store.values import Registration


class WorkerTransitions(Protocol):
    """What a worker says of itself, and of the attempts it holds; the latter is fenced by their key."""

    def next_incarnation(self, name: str) -> Incarnation: ...
    def register_worker(self, registration: Registration) -> None: ...
    def drain_worker(self, owner: Incarnation) -> None:
        """No more claims for this worker."""

    def retire_worker(self, owner: Incarnation, *, reason: str, died: bool = False) -> int:
        """Mark a worker gone and revoke (`released` or `reason`) every lease it still owns; returns how many. Idempotent.
        Called by the worker itself at its end, or (*leader*) on proof of its death.

        Args:
            died: By that proof, on this boot: counted on each attempt that it had accepted, and perhaps held against a binding
                (`policy.losses`).
        """

    def beat(self, owner: Incarnation) -> None:
        """Sign of life of a worker. Raises RefusedError when the worker is gone (it was buried: it must stop)."""

    def renew(self, owner: Incarnation, *, lease_us: int) -> set[tuple[AttemptId, int]]:
        """Extend all accepted live leases of `owner`, never shortening one; beats. Returns (attempt, epoch) of those extended:
        whatever the caller holds beyond that set is lost. Rule: E05, R07.
        """

    def accept(self, key: LeaseKey, *, invoke_isolated: bool | None, sandbox_digest: str | None = None) -> None:
        """The owner's first write. `invoke_isolated` not None: also writes `invoke = called` with that mark, and the digest of
        the sandbox that the launch is planned with (first launch). Rule: E16, R14.
        """

    def record_phases(self, key: LeaseKey, phases: Sequence[Phase]) -> None:
        """Add to the trail of this lease's segment: a phase by its name, once when it begins and once when it has ended; a later
        report of a name replaces the earlier one; the same one again writes nothing. The segment keeps the first 16 names, reports of others are only counted.

        Rides on the transition it comes behind in its transaction. A refusal only leaves the trail short. Rule: E15.
        """

    def pin(self, key: LeaseKey, pin: Pin, *, token_sha256: str | None = None) -> None:
        """Record the held launch's identity, and the digest of the token its program gets; launching or resuming becomes
        running. The fence is checked now, so an old launch's pin is refused. Rule: R05.
        """

    def adopt(self, key: LeaseKey, *, why: str) -> None:
        """Recovering becomes running; the pin stays."""

    def relaunch(self, key: LeaseKey, *, clear_pin: bool, why: str, sandbox_digest: str | None = None) -> None:
        """Recovering becomes launching (resuming if that was lost): the segment is marked relaunched with `invoke = called,
        isolated` of the launch that follows at once, the pin cleared on positive evidence. Without a digest the segment keeps
        the one it carries. Rule: R03, R04, R14.
        """

    def finish(self, key: LeaseKey, ending: Ending, change: WorkChange, *, outcome: Outcome | None = None) -> None:
        """End the attempt and settle its Work in one transaction. Exclusion is released with `ending.proof`, else kept with a
        stop order. The inputs of an attempt that took no effect are pending again when its Work may be tried again. Rings the
        coordinator.

        Args:
            outcome: What the program declared, applied with this end, whatever its kind: the turn's events, the inputs it took,
                and a wait for the next attempt (then `change` makes the Work wait); None: nothing is applied. Rule: O06, O15.
        """

    def require_recovery(self, key: LeaseKey, *, why: str, proof: str | None) -> None:
        """The attempt may have run and its outcome is unknown: `recovery_required`, lease revoked. Its slot stays held."""

    def release(self, key: LeaseKey, *, reason: str) -> None:
        """Revoke this lease so that the same attempt can be recovered at once. Rings the coordinator. Rule: R07."""
