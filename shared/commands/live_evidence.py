"""What can be seen of an attempt right now: its pinned files, its processes. Looks, signals nothing.

Rule: design §7 (evidence is read in the pinned epoch's directory).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from shared.commands.attendance import attendance
from shared.commands.json_views import Json
from shared.commands.open_home import OpenHome
from shared.model.attempt import Attempt
from shared.model.evidence import Evidence, LockState, ProcessIdentity
from shared.model.stop import StopResult
from shared.policy.recovery import Decision, LaunchFacts, decide, may_relaunch
from shared.presence import up_pid
from shared.process.evidence import any_child_record, read_evidence
from shared.process.identity import identify
from shared.process.stopper import prove_stopped


@dataclass(frozen=True, slots=True)
class LiveEvidence:
    """Seen at one moment.

    Attributes:
        evidence: Of the pinned launch; None without a pin.
        child_record_seen: Whether any launch may have run something, where that matters; None when nobody could look, or it does not.
        stop: The proof that nothing of it is left, or why each rule fails and which processes may be its own.
        decision: What tenure itself would make of this evidence.
    """

    evidence: Evidence | None
    child_record_seen: bool | None
    stop: StopResult
    decision: Decision

    @property
    def lives(self) -> str | None:
        """How it is known that its process lives; None when that is not known."""
        found = self.evidence
        if found is None or not found.same_boot:
            return None
        if found.lock is LockState.HELD:
            return "its shim holds the attempt's lock"
        if found.child_alive and found.same_pid_ns and found.child is not None:
            return f"process {found.child.pid} lives"
        return None


def look_at(door: OpenHome, attempt: Attempt) -> LiveEvidence:
    """Look at an attempt's files and processes."""
    attempts, pin = door.place.attempts, attempt.pin
    evidence = None if pin is None else read_evidence(attempts, pin)
    seen = any_child_record(attempts, attempt.id, attempt.launch_epoch) if may_relaunch(evidence) else None
    stop = prove_stopped(
        attempts, attempt.id, pin, attempt.isolated, since_epoch=attempt.launch_epoch, accounted=lambda: _our_own(door)
    )
    facts = LaunchFacts(
        unfinished_in=attempt.recovered_from or attempt.state,
        pin=pin,
        invoke=attempt.invoke,
        isolated=attempt.isolated,
        child_record_seen=seen,
    )
    return LiveEvidence(evidence, seen, stop, decide(facts, evidence))


def _our_own(door: OpenHome) -> list[ProcessIdentity]:
    """Who is up on this home: no job's, though it may look like what one left. Only for showing: nothing is freed by it."""
    there = attendance(door.store, door.place.run)
    pids = [there.leader.pid if there.leader is not None else None, up_pid(door.place.run)]
    found = [worker.identity for worker in there.workers]
    for pid in pids:
        try:
            found += [] if pid is None else [identify(pid)]
        except ProcessLookupError:
            continue
    return found


def evidence_view(seen: LiveEvidence) -> Json:
    """For programs."""
    return {
        "lives": seen.lives is not None,
        "verdict": seen.decision.verdict,
        "why": seen.decision.why,
        "pinned": None if seen.evidence is None else _pinned_view(seen.evidence),
        "child_record_seen": seen.child_record_seen,
        "proof": seen.stop.proof,
        "tried": list(seen.stop.tried),
        "suspects": [{**asdict(suspect), "matched": list(suspect.matched)} for suspect in seen.stop.suspects],
    }


def _pinned_view(evidence: Evidence) -> Json:
    record = evidence.exit
    return {
        "same_boot": evidence.same_boot,
        "same_pid_ns": evidence.same_pid_ns,
        "directory_proven": evidence.directory_proven,
        "lock": evidence.lock,
        "exit": None if record is None else asdict(record),
        "child": None if evidence.child is None else asdict(evidence.child),
        "child_alive": evidence.child_alive,
        "child_status": evidence.child_status,
        "unreadable": list(evidence.unreadable),
    }
