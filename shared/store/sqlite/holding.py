"""The worker's transitions. Each that takes a key is fenced by exactly that live lease."""

from __future__ import annotations

from collections.abc import Sequence

from shared.boundary import Boundary
from shared.errors import FenceViolationError, RefusedError
from shared.ids import AttemptId, Incarnation
from shared.model.attempt import PHASES_MAX, AttemptState, Ending, Invoke, LeaseKey, Phase
from shared.model.evidence import Pin
from shared.model.outcome import Outcome
from shared.model.work import WorkChange, WorkState
from shared.policy.steps import AttemptEvent
from shared.store.sqlite.ends import SET_ENDED, Ends
from shared.store.sqlite.fragments import CHARGE, FENCE, LIVE
from shared.store.sqlite.rows import phases_of_text, phases_text, pin_params
from shared.wake import COORDINATOR

BEAT = """UPDATE worker SET beat_mono_us = max(beat_mono_us, :mono)
  WHERE id = :owner AND state <> 'gone' AND boot_id = :boot RETURNING id"""
RENEW = f"""UPDATE lease AS l SET expires_mono_us = max(expires_mono_us, :mono + :lease)
  WHERE l.owner = :owner AND {LIVE} AND l.accepted_at_us IS NOT NULL RETURNING attempt_id, epoch"""
ACCEPT = f"""UPDATE lease AS l SET accepted_at_us = :wall WHERE l.attempt_id = :attempt AND l.owner = :owner AND l.epoch = :epoch
  AND {LIVE} AND l.accepted_at_us IS NULL RETURNING epoch"""
MARK_CALLED = f"UPDATE attempt SET invoke = :invoke, isolated = :isolated WHERE {FENCE} RETURNING id"
MARK_SEGMENT = """UPDATE segment SET invoke = :invoke, isolated = :isolated, relaunched = :relaunched,
    sandbox_digest = coalesce(:digest, sandbox_digest)
  WHERE attempt_id = :attempt AND epoch = :epoch AND ended_at_us IS NULL RETURNING epoch"""
PIN = f"""UPDATE attempt SET state = :state, pin_epoch = :pin_epoch, pin_directory = :pin_directory, pin_pid = :pin_pid,
    pin_start_ticks = :pin_start_ticks, pin_boot_id = :pin_boot_id, pin_pid_ns = :pin_pid_ns, pin_pidfs_ino = :pin_pidfs_ino,
    pin_directory_ino = :pin_directory_ino, pin_lock_ino = :pin_lock_ino, token_sha256 = :token,
    workers_lost_in_row = 0
  WHERE {FENCE} AND (pin_epoch IS NULL OR pin_epoch < :pin_epoch) RETURNING id"""
TELL_AGAIN = """UPDATE intent SET fate = 'queued'
  WHERE attempt_id = ? AND settled_at_us IS NULL AND fate IN ('dispatched', 'accepted')"""
"""Another launch has another channel: what an earlier one was handed and did not take is handed over again."""
ADOPT = f"UPDATE attempt SET state = :state, recovered_from = NULL WHERE {FENCE} AND pin_epoch IS NOT NULL RETURNING id"
RELAUNCH = f"""UPDATE attempt SET state = :state, recovered_from = NULL, relaunches = relaunches + 1, invoke = :invoke,
    isolated = :isolated, pin_epoch = NULL, pin_directory = NULL, pin_pid = NULL, pin_start_ticks = NULL, pin_boot_id = NULL,
    pin_pid_ns = NULL, pin_pidfs_ino = NULL, pin_directory_ino = NULL, pin_lock_ino = NULL
  WHERE {FENCE} RETURNING id"""
FINISH = f"{SET_ENDED} WHERE {FENCE} RETURNING id"
REQUIRE_RECOVERY = f"""UPDATE attempt SET state = :state, recovered_from = NULL, error = :error, exclusion_proof = :proof, {CHARGE}
  WHERE {FENCE} RETURNING id"""
SEGMENT_PHASES = "SELECT phases FROM segment WHERE attempt_id = :attempt AND epoch = :epoch AND ended_at_us IS NULL"
RECORD_PHASES = """UPDATE segment SET phases = :phases, phases_dropped = phases_dropped + :dropped
  WHERE attempt_id = :attempt AND epoch = :epoch AND ended_at_us IS NULL RETURNING epoch"""


class Holding(Ends):
    """See `worker_contract.WorkerTransitions`."""

    def beat(self, owner: Incarnation) -> None:
        """See `Tx.beat`."""
        self._note(Boundary.RENEW_COMMIT)
        if self._db.one(BEAT, self._clock | {"owner": owner}) is None:
            raise RefusedError(f"{owner} does not take part any more", hint="it must stop; a new one registers anew")

    def renew(self, owner: Incarnation, *, lease_us: int) -> set[tuple[AttemptId, int]]:
        """See `Tx.renew`. Appends no event: it is the hottest write, and changes no state."""
        self.beat(owner)
        found = self._db.rows(RENEW, self._clock | {"owner": owner, "lease": lease_us})
        return {(AttemptId(row[0]), row[1]) for row in found}

    def accept(self, key: LeaseKey, *, invoke_isolated: bool | None, sandbox_digest: str | None = None) -> None:
        """See `Tx.accept`. Raises RefusedError when it is accepted already."""
        attempt = self._held(key)
        if self._db.one(ACCEPT, self._key(key)) is None:
            raise RefusedError(f"{key.attempt_id} is accepted already at epoch {key.epoch}")
        if invoke_isolated is not None:
            if attempt.state not in (AttemptState.LAUNCHING, AttemptState.RESUMING):
                raise FenceViolationError(f"{attempt.id}: a first launch cannot begin while it is {attempt.state}")
            self._mark_called(key, isolated=invoke_isolated, sandbox_digest=sandbox_digest)
        self._event(
            "attempt.accepted",
            {"owner": key.owner, "isolated": invoke_isolated},
            attempt=key.attempt_id,
            epoch=key.epoch,
        )
        self._note(Boundary.ACCEPT_COMMIT)

    def _mark_called(self, key: LeaseKey, *, isolated: bool, sandbox_digest: str | None) -> None:
        mark = {"invoke": Invoke.CALLED, "isolated": int(isolated), "relaunched": 0, "digest": sandbox_digest}
        self._fenced(MARK_CALLED, key, mark)
        self._fenced(MARK_SEGMENT, key, mark)

    def pin(self, key: LeaseKey, pin: Pin, *, token_sha256: str | None = None) -> None:
        """See `Tx.pin`. Raises RefusedError when it is another epoch's pin, or one of that epoch is stored."""
        attempt = self._held(key)
        if pin.epoch != key.epoch:
            raise RefusedError(f"a pin of epoch {pin.epoch} cannot be written under epoch {key.epoch} of {attempt.id}")
        if attempt.pin is not None and attempt.pin.epoch >= pin.epoch:
            raise RefusedError(f"{attempt.id} has a pin of epoch {attempt.pin.epoch} already")
        state = self._step_attempt(attempt, AttemptEvent.PINNED)
        self._fenced(PIN, key, {"state": state, "token": token_sha256, **pin_params(pin)})
        self._db.rows(TELL_AGAIN, (attempt.id,))
        self._attempt_event(attempt, "pinned", state, {"pid": pin.shim.pid})
        self._note(Boundary.PIN_COMMIT)
        if attempt.workers_lost_in_row:
            self._note(Boundary.PIN_COMMIT, COORDINATOR)  # the turn of the next suspect

    def adopt(self, key: LeaseKey, *, why: str) -> None:
        """See `Tx.adopt`. Raises RefusedError when there is no pin to adopt by."""
        attempt = self._held(key)
        if attempt.pin is None:
            raise RefusedError(f"{attempt.id} has no pin: there is nothing to adopt")
        state = self._step_attempt(attempt, AttemptEvent.ADOPTED)
        self._fenced(ADOPT, key, {"state": state})
        self._attempt_event(attempt, "adopted", state, {"why": why})
        self._note(Boundary.ADOPT_COMMIT)

    def relaunch(self, key: LeaseKey, *, clear_pin: bool, why: str, sandbox_digest: str | None = None) -> None:
        """See `Tx.relaunch`. Raises RefusedError when there is a pin that is not to be cleared: what it names may have run."""
        attempt = self._held(key)
        if attempt.pin is not None and not clear_pin:
            raise RefusedError(f"{attempt.id} has a pin: relaunching it needs evidence that nothing ran")
        resuming = attempt.recovered_from is AttemptState.RESUMING
        event = AttemptEvent.RELAUNCHED_RESUME if resuming else AttemptEvent.RELAUNCHED
        state = self._step_attempt(attempt, event)
        snapshot = self.snapshot(attempt.id)
        assert snapshot is not None
        mark = {"state": state, "invoke": Invoke.CALLED, "isolated": int(snapshot.isolated), "relaunched": 1}
        self._fenced(RELAUNCH, key, mark)
        self._fenced(MARK_SEGMENT, key, mark | {"digest": sandbox_digest})
        self._attempt_event(attempt, "relaunched", state, {"by": event, "why": why})
        self._note(Boundary.RELAUNCH_COMMIT)

    def record_phases(self, key: LeaseKey, phases: Sequence[Phase]) -> None:
        """See `Tx.record_phases`."""
        self._held(key)
        text = self._db.value(SEGMENT_PHASES, self._key(key))
        assert text is not None, "a live lease has an open segment"
        kept = {one.name: one for one in _phases_if_readable(text)}
        dropped = 0
        for one in phases:
            if one.name in kept or len(kept) < PHASES_MAX:
                kept[one.name] = one
            else:
                dropped += 1
        trail = phases_text(kept.values())
        if (trail, dropped) == (text, 0):
            return  # told before: an unanswered commit had kept it
        self._fenced(RECORD_PHASES, key, {"phases": trail, "dropped": dropped})
        told = {"phases": [(one.name, one.outcome) for one in phases]}
        self._event("segment.phases", told, attempt=key.attempt_id, epoch=key.epoch)
        if not self.notes.boundaries:  # alone; else it rides on the transition it comes with
            self._note(Boundary.RENEW_COMMIT)

    def finish(self, key: LeaseKey, ending: Ending, change: WorkChange, *, outcome: Outcome | None = None) -> None:
        """See `Tx.finish`. The inputs of an attempt that did not take effect wait again for the next one."""
        self._note(Boundary.FINISH_COMMIT, COORDINATOR)
        attempt = self._held(key)
        self._fenced(FINISH, key, self._ended_params(attempt, ending))
        if outcome is not None:
            self._apply_declared(attempt, outcome, change.handoff)
        self._after_end(attempt, ending, change, key.owner, {})
        if change.state is WorkState.WAITING:
            if outcome is None or outcome.wait is None:
                raise FenceViolationError(f"{attempt.id}: its Work cannot wait for nothing")
            self._register(attempt, outcome.wait, self.notes.last_seq)

    def require_recovery(self, key: LeaseKey, *, why: str, proof: str | None) -> None:
        """See `Tx.require_recovery`. A proof of stop is recorded, for the person who settles it."""
        self._note(Boundary.FINISH_COMMIT, COORDINATOR)
        attempt = self._held(key)
        state = self._step_attempt(attempt, AttemptEvent.UNCERTAIN)
        self._fenced(REQUIRE_RECOVERY, key, self._budget(attempt) | {"state": state, "error": why, "proof": proof})
        self._end_segment(attempt)
        self._revoke(attempt.id, "recovery_required")
        self._attempt_event(attempt, "recovery_required", state, {"why": why, "proof": proof})

    def release(self, key: LeaseKey, *, reason: str) -> None:
        """See `Tx.release`."""
        self._held(key)
        self._revoke(key.attempt_id, reason)
        self._note(Boundary.RENEW_COMMIT, COORDINATOR)


def _phases_if_readable(text: str) -> tuple[Phase, ...]:
    """A trail that cannot be read begins anew: it is for people, and must not keep its attempt from anything."""
    try:
        return phases_of_text(text)
    except (ValueError, TypeError):
        return ()
