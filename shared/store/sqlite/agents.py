"""Transitions of running agents: what was read of them, what they are told. See `agent_contract.AgentTransitions`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from shared.boundary import Boundary
from shared.errors import DeclarationError, KeyReusedError, NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt, AttemptState, Ending, Exclusion, LeaseKey
from shared.model.declaration import outcome_of
from shared.model.intent import Delivered, Fate, Intent, IntentKind
from shared.model.stream import REFUSALS_KEPT, WHY_CHARS_MAX, Place, Refusal, RefusalCode, Stream, Stretch, Took
from shared.model.usage import Usage
from shared.model.work import Reason, Work, WorkChange, WorkState
from shared.policy.steps import WorkEvent, is_final_work
from shared.policy.submission import input_digest
from shared.store.sqlite.agent_reads import stream_params
from shared.store.sqlite.columns import json_text
from shared.store.sqlite.commands import INSERT_INPUT, INSERT_SUBMISSION, Commands, caused
from shared.store.sqlite.ends import Ends
from shared.store.sqlite.reporting import NAMED_MAX
from shared.wake import COORDINATOR

INSERT_INTENT = """INSERT INTO intent (kind, work_id, attempt_id, input, fate, tries, requested_by, accepted_at_us, settled_at_us, why)
  VALUES (:kind, :work, :attempt, :input, :fate, 0, :by, :wall, :settled, :why) RETURNING number"""
OF_INPUT = "SELECT number FROM intent WHERE input = ?"
LIVE_ATTEMPT = "SELECT id FROM attempt WHERE work_id = ? AND ended_at_us IS NULL"
OWNER = "SELECT owner FROM lease WHERE attempt_id = ? AND revoked_at_us IS NULL"
SET_STREAM = """INSERT INTO stream (attempt_id, pin_epoch, offset_bytes, lines, skipping, refused, refusals, unknown, read_at_us)
  VALUES (:attempt, :pin_epoch, :offset, :lines, :skipping, :refused, :refusals, :unknown, :wall)
  ON CONFLICT (attempt_id) DO UPDATE SET pin_epoch = :pin_epoch, offset_bytes = :offset, lines = :lines, skipping = :skipping,
    refused = :refused, refusals = :refusals, unknown = :unknown, read_at_us = :wall"""
TAKEN = """UPDATE input SET consumed_by = :attempt WHERE number = :input AND work_id = :work AND consumed_by IS NULL
  AND EXISTS (SELECT 1 FROM intent WHERE input = :input AND attempt_id = :attempt AND tries > 0) RETURNING number"""
TAKEN_LATE = """UPDATE input SET consumed_by = :attempt WHERE number = :input AND work_id = :work AND consumed_by IS NULL
  AND EXISTS (SELECT 1 FROM intent WHERE input = :input AND attempt_id = :attempt AND tries > 0)
  AND EXISTS (SELECT 1 FROM input AS spent WHERE spent.consumed_by = :attempt) RETURNING number"""
IS_BUDGETED = "SELECT EXISTS (SELECT 1 FROM budget)"
SET_USAGE = "UPDATE attempt SET usage = :usage WHERE id = :attempt AND exclusion = 'held' RETURNING id"
SETTLE_TAKEN = """UPDATE intent SET fate = 'consumed', settled_at_us = :wall
  WHERE input = :input AND attempt_id = :attempt AND settled_at_us IS NULL RETURNING number"""
DECLINED = """UPDATE intent SET fate = 'not_accepting', settled_at_us = :wall, why = 'its program says so'
  WHERE number = :number AND attempt_id = :attempt AND fate IN ('dispatched', 'accepted') RETURNING number"""
DISPATCH = """UPDATE intent SET fate = 'dispatched', token = :token, token_epoch = :epoch, tries = tries + 1
  WHERE number = :number AND attempt_id = :attempt AND kind = 'inject' AND fate IN ('queued', 'dispatched') RETURNING number"""
ACKNOWLEDGE = """UPDATE intent SET fate = :fate, settled_at_us = :settled, why = :why
  WHERE number = :number AND attempt_id = :attempt AND fate = 'dispatched' AND token = :token RETURNING input"""
DROP_INPUT = "DELETE FROM input WHERE number = :input AND consumed_by IS NULL RETURNING number"

_FATE_OF = {
    Delivered.ACCEPTED: Fate.ACCEPTED,
    Delivered.NOT_ACCEPTING: Fate.NOT_ACCEPTING,
    Delivered.LATER: Fate.QUEUED,
}


class Agents(Commands, Ends):
    """See `agent_contract.AgentTransitions`."""

    def inject(
        self, work_id: WorkId, body: bytes, *, by: str, key: str | None = None, cause: AttemptId | None = None
    ) -> Intent:
        """See `AgentTransitions.inject`."""
        known = None if key is None else self.submission(key)
        if known is not None:
            if known.digest != input_digest(work_id, body):
                raise KeyReusedError(known.key, known.work_id)
            return self._intent_of_input(known.input)
        work = self._open_work(work_id)
        depth = self._depth_of(cause)
        self._require_ballast()
        number = int(self._db.value(INSERT_INPUT, (work_id, body, self._now.wall_us, depth)))
        if key is not None:
            digest = input_digest(work_id, body)
            self._db.rows(INSERT_SUBMISSION, (key, digest, work_id, number, self._now.wall_us))
        row = self._db.one(LIVE_ATTEMPT, (work_id,))
        live = None if row is None else AttemptId(row["id"])
        told = {"input": number, "bytes": len(body), "by": by, "key": key}
        self._event("input.accepted", told | caused(cause, depth), work=work_id)
        fate, why = (Fate.RETURNED, "nothing ran") if live is None else (Fate.QUEUED, None)
        intent = self._add_intent(IntentKind.INJECT, work_id, live, number, fate, by, why)
        if work.state is WorkState.IDLE:
            ready = WorkChange(WorkState.READY, None, None, work.admission_failures, work.failures_used)
            self._step_work(work, WorkEvent.INPUT, ready)
        self._note(Boundary.INTENT_COMMIT, COORDINATOR, *self._holder(live))
        return intent

    def interrupt(self, work_id: WorkId, *, by: str, reason: str) -> Intent:
        """See `AgentTransitions.interrupt`."""
        work = self._open_work(work_id)
        row = self._db.one(LIVE_ATTEMPT, (work_id,))
        if row is None:
            raise RefusedError(f"{work_id} is {work.state}: nothing of it runs")
        attempt = self.attempt(AttemptId(row["id"]))
        assert attempt is not None, "it was read in this transaction"
        self._note(Boundary.INTENT_COMMIT, COORDINATOR, *self._holder(attempt.id))
        intent = self._add_intent(IntentKind.INTERRUPT, work_id, attempt.id, None, Fate.ACCEPTED, by, reason)
        change = WorkChange(WorkState.READY, None, None, work.admission_failures, work.failures_used)
        if work.hold is not None:
            change = WorkChange(WorkState.HELD, Reason.HOLD, None, work.admission_failures, work.failures_used)
        self._end(attempt, interrupted(attempt, by, reason), change, by)
        return intent

    def follow(self, key: LeaseKey, pin_epoch: int, stretch: Stretch) -> None:
        """See `AgentTransitions.follow`."""
        self._note(Boundary.STREAM_COMMIT)
        attempt = self._held(key)
        known = self._read_up_to(key.attempt_id, pin_epoch, stretch)
        refused = self._record_said(attempt, stretch)
        refused += self._record_usage(attempt, stretch)
        left = [number for number in _named(stretch.consumed) if not self._take(attempt, number)]
        strange = self._not_handed(attempt, left, waiting=False) if left else []
        if strange:
            declared = outcome_of(self.declarations(attempt.id, unapplied=True)).consumed
            refused += _never_handed(attempt, stretch.consumed, set(strange).difference(declared))
        self._set_stream(attempt, known, stretch, refused)
        for name in stretch.declined:
            self._decline(key, name)

    def note_refusal(self, key: LeaseKey, refusal: Refusal) -> None:
        """See `AgentTransitions.note_refusal`."""
        self._note(Boundary.DECLARE_COMMIT)
        attempt = self._held(key)
        known = self.stream(attempt.id) or Stream(key.epoch if attempt.pin is None else attempt.pin.epoch)
        self._set_stream(attempt, known, Stretch(known.place, known.place), [refusal])

    def _read_up_to(self, name: AttemptId, pin_epoch: int, stretch: Stretch) -> Stream:
        """What is known of the output; the stretch has to begin where that ends. Raises RefusedError."""
        known = self.stream(name)
        if known is None:
            known = Stream(pin_epoch)
        elif known.pin_epoch != pin_epoch:
            known = Stream(pin_epoch, Place(), known.refused, known.refusals, known.unknown)
        if known.place != stretch.before:
            raise RefusedError(f"the output of {name} was read up to {known.place.offset} meanwhile")
        return known

    def _record_said(self, attempt: Attempt, stretch: Stretch) -> list[Refusal]:
        """What a stretch declares; what there is no room for is refused by itself, and the rest counts."""
        refused = []
        for said in stretch.said:
            try:
                self._record(attempt, said.declaration)
            except DeclarationError as error:
                code = RefusalCode.TOO_MANY if error.code == RefusalCode.TOO_MANY else RefusalCode.INVALID
                refused.append(Refusal(said.line, code, str(error)[:WHY_CHARS_MAX]))
        return refused

    def _record_usage(self, attempt: Attempt, stretch: Stretch) -> list[Refusal]:
        units = self._add_usage(attempt.id, stretch.usage)
        why = f"it reported in too many units already: no room for {', '.join(units)}"
        return [Refusal(stretch.after.lines, RefusalCode.TOO_MANY, why[:WHY_CHARS_MAX])] if units else []

    def _set_stream(self, attempt: Attempt, known: Stream, stretch: Stretch, refused: list[Refusal]) -> None:
        """Write how far it was read. Of what was refused the first lines are events; all of it is counted."""
        params = stream_params(known.then(stretch, refused)) | {"attempt": attempt.id, "wall": self._now.wall_us}
        self._db.rows(SET_STREAM, params)
        told = max(0, REFUSALS_KEPT - known.refused)
        for refusal in stretch.refusals_with(refused)[:told]:
            facts = {"line": refusal.line, "code": refusal.code, "why": refusal.why}
            self._event("stream.refused", facts, attempt=attempt.id, epoch=attempt.epoch)

    def report_late(self, attempt_id: AttemptId, *, expected_epoch: int, pin_epoch: int, stretch: Stretch) -> None:
        """See `AgentTransitions.report_late`."""
        self._note(Boundary.STREAM_COMMIT, COORDINATOR)
        attempt = self.attempt(attempt_id)
        if attempt is None or attempt.epoch != expected_epoch or attempt.ended_at_us is None:
            raise RefusedError(f"{attempt_id} has not ended at epoch {expected_epoch}")
        if attempt.exclusion is Exclusion.RELEASED:
            raise RefusedError(f"the stop of {attempt_id} is confirmed: what it said before is settled")
        known = self._read_up_to(attempt_id, pin_epoch, stretch)
        refused = self._record_usage(attempt, stretch)
        taken = [number for number in _named(stretch.consumed) if self._take_late(attempt, number)]
        refused += self._never_handed_late(attempt, stretch.consumed, taken)
        self._set_stream(attempt, known, stretch, refused)
        charged = self.reported(attempt_id).beyond(attempt.usage)
        if charged.amounts:
            self._charge_late(attempt, charged)
        if taken:
            self._rest_again(attempt.work_id)
        not_applied = Counter(said.declaration.kind.value for said in stretch.said)
        told = {"usage": charged.to_plain(), "consumed": taken, "not_applied": dict(not_applied)}
        if any(told.values()):
            self._event("report.late", told, attempt=attempt_id, epoch=attempt.epoch)

    def _charge_late(self, attempt: Attempt, further: Usage) -> None:
        """Stage what an ended attempt is known to have consumed besides. Its exclusion is held: nobody else does."""
        if self._db.value(IS_BUDGETED):
            self._stage_further(attempt, further)
        usage = json_text(attempt.usage.plus(further).to_plain())
        row = self._db.one(SET_USAGE, {"attempt": attempt.id, "usage": usage})
        assert row is not None, "it was read in this transaction"

    def _take_late(self, attempt: Attempt, number: int) -> bool:
        """An input that the program took before its end, and that waits: it is spent with the attempt's others, if those are.

        Where the end gave back what the attempt had, this input comes again as well: an attempt takes all of it, or nothing.
        """
        params = {"attempt": attempt.id, "input": number, "work": attempt.work_id}
        return self._db.one(TAKEN_LATE, params) is not None

    def _never_handed_late(self, attempt: Attempt, said: Sequence[Took], taken: Sequence[int]) -> list[Refusal]:
        """Lines that name what the attempt never had; what it began with may wait again by now."""
        left = set(_named(said)).difference(taken)
        strange = self._not_handed(attempt, left, waiting=False) if left else []
        if not strange:
            return []
        pinned = self.snapshot(attempt.id)
        return _never_handed(attempt, said, set(strange).difference(() if pinned is None else pinned.inputs))

    def _rest_again(self, work_id: WorkId) -> None:
        """Standing Work that was to run for an input which has turned out to be taken."""
        work = self._work_or_refuse(work_id)
        if work.state is WorkState.READY and not self.pending_inputs(work_id, limit=1):
            rests = WorkChange(WorkState.IDLE, None, None, work.admission_failures, work.failures_used)
            self._step_work(work, WorkEvent.EXHAUSTED_INPUT, rests)

    def _take(self, attempt: Attempt, number: int) -> bool:
        """The program took an input that it was handed while it ran; False, and nothing is written: not now."""
        params = {"attempt": attempt.id, "input": number, "work": attempt.work_id, "wall": self._now.wall_us}
        taken = self._db.one(TAKEN, params)
        settled = self._db.one(SETTLE_TAKEN, params) if taken is not None else None
        if settled is not None:
            self._tell_fate(settled["number"], Fate.CONSUMED, attempt.work_id, attempt.id, None)
        return taken is not None

    def _decline(self, key: LeaseKey, name: str) -> None:
        number = name.removeprefix("i")
        if name.startswith("i") and number.isascii() and number.isdigit() and len(number) < 19:
            params = {"number": int(number), "attempt": key.attempt_id, "wall": self._now.wall_us}
            if self._db.one(DECLINED, params) is not None:
                self._tell_fate(int(number), Fate.NOT_ACCEPTING, None, key.attempt_id, "its program says so")

    def dispatch(self, key: LeaseKey, number: int) -> int | None:
        """See `AgentTransitions.dispatch`."""
        self._note(Boundary.DISPATCH_COMMIT)
        attempt = self._held(key)
        if attempt.state is not AttemptState.RUNNING:
            return None
        token = self._count("dispatch")
        params = {"number": number, "attempt": key.attempt_id, "token": token, "epoch": key.epoch}
        if self._db.one(DISPATCH, params) is None:
            return None
        self._tell_fate(number, Fate.DISPATCHED, None, key.attempt_id, None)
        return token

    def acknowledge(self, key: LeaseKey, number: int, *, token: int, result: Delivered, why: str | None = None) -> bool:
        """See `AgentTransitions.acknowledge`."""
        self._note(Boundary.ACKNOWLEDGE_COMMIT)
        self._held(key)
        fate = _FATE_OF.get(result) or self._fallback(key.attempt_id)
        settled = None if fate in (Fate.ACCEPTED, Fate.QUEUED) else self._now.wall_us
        params = {
            "number": number,
            "attempt": key.attempt_id,
            "token": token,
            "fate": fate,
            "settled": settled,
            "why": why,
        }
        row = self._db.one(ACKNOWLEDGE, params)
        if row is None:
            return False
        if fate is Fate.DROPPED:
            self._db.rows(DROP_INPUT, {"input": row["input"]})
        self._tell_fate(number, fate, None, key.attempt_id, why)
        return True

    def _fallback(self, name: AttemptId) -> Fate:
        """What becomes of an input that cannot be handed over, as the attempt pinned it. Rule: T02."""
        snapshot = self.snapshot(name)
        return Fate.DROPPED if snapshot is not None and snapshot.on_inject_error == "drop" else Fate.RETURNED

    def _add_intent(
        self,
        kind: IntentKind,
        work_id: WorkId,
        target: AttemptId | None,
        number: int | None,
        fate: Fate,
        by: str,
        why: str | None,
    ) -> Intent:
        settled = None if kind is IntentKind.INJECT and target is not None else self._now.wall_us
        params: dict[str, object] = {
            "kind": kind,
            "work": work_id,
            "attempt": target,
            "input": number,
            "fate": fate,
            "by": by,
            "wall": self._now.wall_us,
            "settled": settled,
            "why": why,
        }
        name = int(self._db.value(INSERT_INTENT, params))
        told = {"intent": f"i{name}", "kind": kind, "input": number, "fate": fate, "by": by, "why": why}
        self._event("intent.recorded", told, work=work_id, attempt=target)
        found = self.intent(name)
        assert found is not None, "it was just written"
        return found

    def _tell_fate(
        self, number: int, fate: Fate, work_id: WorkId | None, attempt: AttemptId | None, why: str | None
    ) -> None:
        self._event(f"intent.{fate}", {"intent": f"i{number}", "why": why}, work=work_id, attempt=attempt)

    def _intent_of_input(self, number: int | None) -> Intent:
        found = None if number is None else self._db.value(OF_INPUT, (number,))
        intent = None if found is None else self.intent(int(found))
        if intent is None:
            raise RefusedError(f"that key was used for input {number}, which was submitted and not injected")
        return intent

    def _open_work(self, work_id: WorkId) -> Work:
        work = self.work_outline(work_id)
        if work is None:
            raise NotFoundError(f"no work {work_id} in this home")
        if is_final_work(work.state):
            raise RefusedError(f"{work_id} has already ended: {work.state}", hint="submit a new work")
        return work

    def _holder(self, name: AttemptId | None) -> tuple[str, ...]:
        owner = None if name is None else self._db.value(OWNER, (name,))
        return () if owner is None else (str(owner),)


def _named(said: Sequence[Took]) -> tuple[int, ...]:
    """The inputs that lines name, each once."""
    return tuple(dict.fromkeys(number for one in said for number in one.inputs))


def _never_handed(attempt: Attempt, said: Sequence[Took], strange: Collection[int]) -> list[Refusal]:
    """One refusal for each line that names a stranger; the other inputs that it names count."""
    found = []
    for line, numbers in ((one.line, [number for number in one.inputs if number in strange]) for one in said):
        if numbers:
            why = f"consumed: {attempt.id} was never handed input {', '.join(map(str, numbers[:NAMED_MAX]))}"
            found.append(Refusal(line, RefusalCode.NOT_HANDED, why[:WHY_CHARS_MAX]))
    return found


def interrupted(attempt: Attempt, by: str, reason: str) -> Ending:
    """How an attempt ends that is interrupted. A proof of its stop, recorded when it was left to a person, still holds."""
    return Ending(
        AttemptState.INTERRUPTED, None, None, f"interrupted by {by}: {reason}", attempt.exclusion_proof, "interrupted"
    )
