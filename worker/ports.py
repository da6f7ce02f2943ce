"""Everything a worker's parts share: who it is, what it holds, and the doors to the outside, all given to it once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Protocol

from shared.clock import Clock
from shared.errors import LeaseLostError
from shared.ids import AttemptId, Incarnation
from shared.model.attempt import AttemptState, Exclusion, LeaseKey, Snapshot
from shared.model.evidence import Evidence, Pin, ProcessIdentity
from shared.model.host import Leader
from shared.model.stop import StopResult
from shared.process.channel import Handed, Word
from shared.process.launcher import Launcher
from shared.process.output import Piece
from shared.store.contract import ReadTx, Store
from worker.batch import Batch, Undone
from worker.belt import Belt, NoBelt
from worker.executors.contract import Executor
from worker.holding import Holding
from worker.quiet import Quiet

log = logging.getLogger(__name__)


class Pool(Protocol):
    """Runs slow tasks elsewhere; each comes back as a completion."""

    def submit(self, key: Hashable, task: Callable[[], object]) -> None: ...


class ExitWatcher(Protocol):
    """Tells when a process is gone."""

    def watch(self, key: Hashable, identity: ProcessIdentity) -> bool: ...
    def unwatch(self, key: Hashable) -> None: ...
    def exit_status(self, key: Hashable) -> int | None: ...
    def has_ended(self, key: Hashable) -> bool: ...


@dataclass(frozen=True, slots=True)
class StopTarget:
    """What a stop order is about, as the store has it.

    Attributes:
        since_epoch: With which its present launch began; what ran before that is proven gone.
        is_interrupted: An agent that is told so before it is signalled.
        workers: Registered workers, and `leader` whoever leads: none of them is a job's, whatever it looks like.
    """

    attempt_id: AttemptId
    pin: Pin | None
    isolated: bool
    since_epoch: int
    grace_s: float
    workers: tuple[ProcessIdentity, ...]
    leader: Leader | None
    is_interrupted: bool = False


class HostView(Protocol):
    """What can be read of, and done to, launches on this host. Blocks; for pool threads only."""

    def read_evidence(self, pin: Pin) -> Evidence: ...
    def child_record_seen(self, attempt_id: AttemptId, since_epoch: int) -> bool | None: ...
    def stop(self, target: StopTarget, quiet: Quiet) -> StopResult: ...
    def read_output(self, pin: Pin, offset: int, limit: int) -> Piece:
        """Standard output of a launch from there on; short of `limit` only at its end."""

    def hand_over(self, pin: Pin, words: list[Word]) -> list[Handed]:
        """Tell a running program these, in order; what came of each."""


@dataclass(slots=True)
class Ports:
    """One worker's collaborators.

    Attributes:
        launches: Pool for launching and reading evidence; `stops`: one of its own, as a stop may take its whole grace.
        executors: By registration.
        environment_layer: What a launch gets on top and nothing stores; blocks; raises SecretUnavailableError.
        belt: By which running programs speak to it; `new_token`: what each launch's program names itself by.
        quiet: Keeps launches and orphan scans apart.
        holdings: What it holds, by attempt.
    """

    me: Incarnation
    store: Store
    clock: Clock
    launcher: Launcher
    host: HostView
    watcher: ExitWatcher
    launches: Pool
    stops: Pool
    executors: Mapping[str, Executor]
    environment_layer: Callable[[Snapshot], Mapping[str, str]]
    batch: Batch
    belt: Belt = field(default_factory=NoBelt)
    new_token: Callable[[], str] = token_hex
    quiet: Quiet = field(default_factory=Quiet)
    holdings: dict[AttemptId, Holding] = field(default_factory=dict)

    def current(self, attempt_id: AttemptId, epoch: int) -> Holding | None:
        """The holding of exactly this epoch; None when it was lost or replaced in the meantime."""
        holding = self.holdings.get(attempt_id)
        return holding if holding is not None and holding.key.epoch == epoch else None

    def lose(self, holding: Holding, error: Undone) -> None:
        """Look away from an attempt whose write came to nothing: mostly another holds it, or somebody ended it."""
        facts = {"attempt": holding.attempt_id, "epoch": holding.key.epoch, "why": str(error)}
        if isinstance(error, LeaseLostError) and error.has_ended:
            log.info("attempt.ended_elsewhere", extra=facts)
        else:
            log.warning("lease.lost", extra=facts)
        self.drop(holding)

    def drop(self, holding: Holding) -> None:
        """Stop supervising: shut a gate that is still shut, look away. Kills nothing. Rule: R08, R09."""
        holding.shut_gate()
        self.belt.close(holding.key)
        self.watcher.unwatch(holding.key)
        if self.holdings.get(holding.attempt_id) is holding:
            del self.holdings[holding.attempt_id]


def lease_in_force(tx: ReadTx, key: LeaseKey) -> bool:
    """True when exactly this lease is live (looked up after an unknown commit)."""
    lease = tx.lease(key.attempt_id)
    return (
        lease is not None
        and (lease.epoch, lease.owner, lease.boot_id) == (key.epoch, key.owner, tx.now.boot_id)
        and lease.revoked_at_us is None
        and lease.expires_mono_us > tx.now.mono_us
    )


def ended_at(tx: ReadTx, key: LeaseKey) -> bool:
    """True when the attempt ended at exactly this epoch."""
    attempt = tx.attempt(key.attempt_id)
    return attempt is not None and attempt.epoch == key.epoch and attempt.ended_at_us is not None


def settled_at(tx: ReadTx, key: LeaseKey) -> bool:
    """True when the segment of exactly this epoch is over: the attempt ended, parked, or waits for a person."""
    attempt = tx.attempt(key.attempt_id)
    over = (AttemptState.PARKED, AttemptState.RECOVERY_REQUIRED)
    return ended_at(tx, key) or (attempt is not None and attempt.epoch == key.epoch and attempt.state in over)


def exclusion_released(tx: ReadTx, attempt_id: AttemptId) -> bool:
    """True when the attempt's stop has been confirmed."""
    attempt = tx.attempt(attempt_id)
    return attempt is not None and attempt.exclusion is Exclusion.RELEASED
