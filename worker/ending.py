"""Watch what runs, examine what ended or was taken over, and write how it ended. Rule: design §7; requirements R02–R06, R11."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from shared.model.attempt import AttemptState, Ending, FailureClass
from shared.model.declaration import outcome_of
from shared.model.evidence import Evidence, LockState
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.outcome import Outcome
from shared.policy.outcome import End, Park, Unproven, applies, end_of
from shared.policy.proof import proof_of, proof_of_nothing
from shared.policy.recovery import Decision, LaunchFacts, Verdict, decide, may_relaunch
from shared.policy.resumption import PutOff
from shared.policy.settle import OUT_OF_TIME, ending_idle, ending_instead_of_relaunch, ending_of_evidence
from shared.store.contract import ReadTx, Tx
from worker.batch import Change
from worker.executors.contract import Fault, sandbox_of, told_of
from worker.holding import Holding, Phase
from worker.pool import Completion
from worker.ports import Ports, lease_in_force, settled_at
from worker.settling import write_end
from worker.streams import Streams

log = logging.getLogger(__name__)

PAUSE_US = 20 * US_PER_MS
UNSEEN_PAUSE_US = US_PER_S
UNSEEN_MAX = 3
"""So often evidence that could not be looked at is looked for again, before its absence counts as an answer. Rule: M04."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pool thread read about one attempt: evidence of its pin (None without a pin), and the search for child records of its
    other launches (only where these matter, see `may_relaunch`).
    """

    evidence: Evidence | None
    child_record_seen: bool | None


class Endings:
    """Observes held attempts, decides from evidence, and settles."""

    def __init__(self, ports: Ports, streams: Streams, launch: Callable[[Holding], None]) -> None:
        """Take the ports, what reads the outputs of agents, and what starts a launch once a relaunch is written."""
        self._ports = ports
        self._streams = streams
        self._launch = launch

    def watch(self, holding: Holding) -> None:
        """Wait for the end of the shim; gone already: examine at once."""
        holding.phase = Phase.WATCHING
        self._streams.begin(holding)
        identity = None if holding.pin is None else holding.pin.shim
        if identity is None or not self._ports.watcher.watch(holding.key, identity):
            self.examine(holding)

    def gone(self, holding: Holding | None) -> None:
        """The watched process ended."""
        if holding is None:
            return
        if holding.phase is Phase.WATCHING:
            self.examine(holding)
        else:
            holding.gone = True

    def examine(self, holding: Holding) -> None:
        """Read the evidence on the pool."""
        holding.phase = Phase.EXAMINING
        host, pin, attempt_id = self._ports.host, holding.pin, holding.attempt_id
        since_epoch = holding.assignment.attempt.launch_epoch

        def read() -> Findings:
            evidence = None if pin is None else host.read_evidence(pin)
            seen = host.child_record_seen(attempt_id, since_epoch) if may_relaunch(evidence) else None
            return Findings(evidence, seen)

        self._ports.launches.submit(("examine", holding.key), read)

    def examined(self, holding: Holding | None, completion: Completion) -> None:
        """Evidence was read: decide, and queue what follows."""
        if completion.error is not None and not isinstance(completion.error, OSError):
            raise completion.error
        if holding is None or holding.phase is not Phase.EXAMINING:
            return
        if completion.error is not None:
            self._look_again(holding, f"the host could not look: {completion.error}")
            return
        findings = completion.result
        assert isinstance(findings, Findings)
        if _is_unseen(holding, findings) and holding.unseen < UNSEEN_MAX:
            holding.unseen += 1
            self._look_again(holding, "its evidence cannot be read")
            return
        holding.unseen = 0
        evidence = findings.evidence
        if holding.orphan and evidence is not None and evidence.child_status is None:
            evidence = replace(evidence, child_status=self._ports.watcher.exit_status(holding.key))
        decision = decide(self._facts(holding, findings), evidence)
        log.log(
            logging.INFO if holding.recovering else logging.DEBUG,  # of our own launch, its end says as much
            "attempt.examined",
            extra={
                "attempt": holding.attempt_id,
                "epoch": holding.key.epoch,
                "verdict": decision.verdict,
                "why": decision.why,
            },
        )
        self._act(holding, decision, evidence, _proof_of(findings))

    def _look_again(self, holding: Holding, why: str) -> None:
        """What cannot be seen now is no answer yet: the lease is kept, and nothing is decided on it."""
        facts = {"attempt": holding.attempt_id, "epoch": holding.key.epoch, "why": why}
        log.warning("evidence.unseen", extra=facts)
        holding.phase = Phase.PAUSED
        holding.look_again_mono_us = self._ports.clock.now().mono_us + UNSEEN_PAUSE_US

    def examine_untold(self) -> None:
        """Examine what has ended without anybody having been told: a wake may be lost. Cheap; called at each renewal."""
        for holding in list(self._ports.holdings.values()):
            if holding.phase is Phase.WATCHING and self._ports.watcher.has_ended(holding.key):
                self.examine(holding)

    def end(self, holding: Holding, ending: Ending) -> None:
        """Queue the end of the attempt, and what it means for its Work, as one transition; of a resume that came to nothing, that
        it is parked again.
        """
        holding.phase = Phase.ENDING
        key, phases = holding.key, holding.phases()
        came_to: list[End] = [ending]

        def apply(tx: Tx) -> None:
            if holding.pin is None and phases:
                tx.record_phases(key, phases)
            came_to[:] = [write_end(tx, holding, ending)]

        self._queue(holding, apply, lambda: self._settled(holding, came_to[0]), lambda tx: settled_at(tx, key))

    def _observed(self, holding: Holding, observed: Ending) -> None:
        """Queue the end of a segment that was seen, with what its program declared of it. Rule: O15."""
        holding.phase = Phase.ENDING
        key = holding.key
        came_to: list[End] = [observed]

        def apply(tx: Tx) -> None:
            declared = tx.declarations(key.attempt_id, unapplied=True) if applies(observed) else []
            outcome = outcome_of(declared) if declared else None
            end = observed if outcome is None else end_of(observed, outcome)
            said = Outcome() if outcome is None and applies(observed) else outcome
            came_to[:] = [write_end(tx, holding, end, applied=outcome, said=said)]

        self._queue(holding, apply, lambda: self._settled(holding, came_to[0]), lambda tx: settled_at(tx, key))

    def _settled(self, holding: Holding, end: End) -> None:
        if isinstance(end, Ending):
            self._ended(holding, end)
            return
        facts: dict[str, object] = {"attempt": holding.attempt_id, "epoch": holding.key.epoch}
        match end:
            case Park():
                log.info("attempt.parked", extra=facts)
            case PutOff(failed=failed, again=again):
                log.warning("attempt.put_off", extra={**facts, "why": failed.error, "after_us": again.after_us})
            case Unproven(why=why):
                log.error("attempt.recovery_required", extra={**facts, "why": why})
        self._ports.drop(holding)

    def time_out(self, holding: Holding) -> None:
        """Queue the end of an attempt that ran out of time; its stop is ordered, its slot held until that is proven."""
        holding.shut_gate()
        self._ports.watcher.unwatch(holding.key)
        self.end(holding, OUT_OF_TIME)

    def end_idle(self, holding: Holding) -> None:
        """Queue the end of an agent that has said nothing for longer than it may; its stop is ordered. Rule: case C061."""
        self._ports.watcher.unwatch(holding.key)
        self.end(holding, ending_idle(holding.assignment.snapshot.idle_us or 0))

    def observation_failed(self, holding: Holding, error: Fault) -> None:
        """Queue the end of an attempt whose executor cannot say what its program says; what may still run is stopped. While
        it is being examined nothing is done: whatever becomes of that reads again. Rule: O04, R13.
        """
        if holding.phase not in (Phase.WATCHING, Phase.DRAINING):
            return
        told, seen = tell(holding, error), holding.seen if holding.phase is Phase.DRAINING else None
        self._ports.watcher.unwatch(holding.key)
        status, proof = (None, None) if seen is None else (seen.exit_status, seen.proof)
        self.end(holding, Ending(AttemptState.FAILED, status, FailureClass.KNOWN, told, proof, "executor failed"))

    def release(self, holding: Holding, reason: str) -> None:
        """Queue giving the lease back, so that the same attempt is recovered at once; nothing is killed."""
        holding.phase = Phase.ENDING
        key = holding.key

        def apply(tx: Tx) -> None:
            tx.release(key, reason=reason)

        self._queue(holding, apply, lambda: self._ports.drop(holding), lambda tx: not lease_in_force(tx, key))

    def _facts(self, holding: Holding, findings: Findings) -> LaunchFacts:
        attempt = holding.assignment.attempt
        return LaunchFacts(
            unfinished_in=attempt.recovered_from or attempt.state,
            pin=holding.pin,
            invoke=attempt.invoke,
            isolated=attempt.isolated,
            child_record_seen=findings.child_record_seen,
            out_of_time=self._ports.clock.now().mono_us >= holding.deadline_mono_us,
        )

    def _act(self, holding: Holding, decision: Decision, evidence: Evidence | None, proof: str | None) -> None:
        match decision.verdict:
            case Verdict.FINISHED if evidence is not None:
                ending = holding.seen = ending_of_evidence(evidence, proof)
                self._streams.drain(holding, lambda: self._observed(holding, ending))
            case Verdict.ADOPT:
                self._take_up(holding, decision)
            case Verdict.ADOPT_ORPHAN if evidence is not None:
                self._adopt_orphan(holding, decision, evidence)
            case Verdict.RELAUNCH:
                self._relaunch(holding, decision, proof_of_nothing(evidence))
            case Verdict.NOTHING_RAN:
                self.time_out(holding)
            case _ if holding.assignment.snapshot.replay == "safe":
                is_over = proof is not None
                self._streams.drain(holding, lambda: self._end_ambiguous(holding, decision, proof), is_over=is_over)
            case _:
                is_over = proof is not None
                self._streams.drain(holding, lambda: self._ask_person(holding, decision, proof), is_over=is_over)

    def _end_ambiguous(self, holding: Holding, decision: Decision, proof: str | None) -> None:
        """The outcome is unknown, and its binding says that running it again does no harm: attempt N+1 follows by itself, once
        the stop of this one is proven. Rule: F01, design §11.
        """
        self.end(
            holding, Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, decision.why, proof, "outcome unknown")
        )

    def _adopt_orphan(self, holding: Holding, decision: Decision, evidence: Evidence) -> None:
        holding.orphan, holding.gone = True, False
        if evidence.child is None or not self._ports.watcher.watch(holding.key, evidence.child):
            self.examine(holding)
            return
        self._take_up(holding, decision)

    def _take_up(self, holding: Holding, decision: Decision) -> None:
        """Record a recovered attempt as adopted, then watch it; an attempt of ours that was running all along is watched."""
        if not holding.recovering:
            self._watch_taken_up(holding)
            return
        holding.phase = Phase.ENDING
        key = holding.key

        def apply(tx: Tx) -> None:
            tx.adopt(key, why=decision.why)

        def adopted() -> None:
            holding.recovering = False
            log.info("attempt.adopted", extra={"attempt": holding.attempt_id, "epoch": key.epoch, "why": decision.why})
            self._watch_taken_up(holding)

        def happened(tx: ReadTx) -> bool:
            attempt = tx.attempt(key.attempt_id)
            return attempt is not None and attempt.state is AttemptState.RUNNING and lease_in_force(tx, key)

        self._queue(holding, apply, adopted, happened)

    def _watch_taken_up(self, holding: Holding) -> None:
        if holding.pin is not None and holding.token_sha256 is not None:
            self._ports.belt.bind(holding.key, holding.pin.directory, holding.token_sha256)
        self._streams.begin(holding)
        if holding.orphan:
            holding.phase = Phase.WATCHING
            if holding.gone:
                self.examine(holding)
        elif holding.pin is not None and self._ports.watcher.watch(holding.key, holding.pin.shim):
            holding.phase = Phase.WATCHING
        else:
            holding.phase = Phase.PAUSED
            holding.look_again_mono_us = self._ports.clock.now().mono_us + PAUSE_US

    def _relaunch(self, holding: Holding, decision: Decision, proof: str | None) -> None:
        """Nothing ran. A recovered attempt is launched again under this epoch; one of our own goes through recovery for that,
        so that its new launch gets an epoch, and with it a directory, of its own.
        """
        if not holding.recovering:
            self.release(holding, "nothing ran")
            return
        given_up = ending_instead_of_relaunch(holding.assignment.attempt, holding.assignment.snapshot, proof)
        if given_up is not None:
            self.end(holding, given_up)
            return
        holding.phase = Phase.ENDING
        key, snapshot = holding.key, holding.assignment.snapshot
        digest, fault = sandbox_of(self._ports.executors[snapshot.registration], snapshot)
        if fault is not None:
            told = tell(holding, fault)
            self.end(holding, Ending(AttemptState.FAILED, None, FailureClass.ADMISSION, told, proof, "launch failed"))
            return

        def apply(tx: Tx) -> None:
            tx.relaunch(key, clear_pin=holding.pin is not None, why=decision.why, sandbox_digest=digest)

        def relaunched() -> None:
            holding.pin = None
            holding.recovering = False
            self._launch(holding)

        def happened(tx: ReadTx) -> bool:
            attempt = tx.attempt(key.attempt_id)
            launching = (AttemptState.LAUNCHING, AttemptState.RESUMING)
            return attempt is not None and attempt.state in launching and lease_in_force(tx, key)

        self._queue(holding, apply, relaunched, happened)

    def _ask_person(self, holding: Holding, decision: Decision, proof: str | None) -> None:
        holding.phase = Phase.ENDING
        key = holding.key

        def apply(tx: Tx) -> None:
            tx.require_recovery(key, why=decision.why, proof=proof)

        def told() -> None:
            log.error(
                "attempt.recovery_required",
                extra={"attempt": holding.attempt_id, "epoch": key.epoch, "why": decision.why},
            )
            self._ports.drop(holding)

        def happened(tx: ReadTx) -> bool:
            attempt = tx.attempt(key.attempt_id)
            return attempt is not None and attempt.state is AttemptState.RECOVERY_REQUIRED

        self._queue(holding, apply, told, happened)

    def _ended(self, holding: Holding, ending: Ending) -> None:
        log.info(
            "attempt.ended",
            extra={
                "state": ending.state,
                "attempt": holding.attempt_id,
                "epoch": holding.key.epoch,
                "exit": ending.exit_status,
                "proof": ending.proof,
            },
        )
        self._ports.drop(holding)

    def _queue(
        self,
        holding: Holding,
        apply: Callable[[Tx], None],
        done: Callable[[], None],
        happened: Callable[[ReadTx], bool],
    ) -> None:
        self._ports.batch.add(Change(apply, done, partial(self._ports.lose, holding), happened))


def tell(holding: Holding, fault: Fault) -> str:
    """Log that an executor failed, and give the line on it that is stored. Rule: O04."""
    told = told_of(fault)
    log.error("executor.failed", extra={"attempt": holding.attempt_id, "epoch": holding.key.epoch, "why": told})
    return told


def _proof_of(findings: Findings) -> str | None:
    """What the evidence proves of the stop; nothing where another launch of the attempt may have run, which it says nothing of."""
    evidence = findings.evidence
    if evidence is None or (may_relaunch(evidence) and findings.child_record_seen is not False):
        return None
    return proof_of(evidence)


def _is_unseen(holding: Holding, findings: Findings) -> bool:
    """Whether something of the evidence could not be read; perhaps it can a moment later."""
    evidence = findings.evidence
    if holding.pin is None or evidence is None or may_relaunch(evidence):
        return findings.child_record_seen is None
    return evidence.directory_proven and (evidence.lock is LockState.UNPROVEN or bool(evidence.unreadable))
