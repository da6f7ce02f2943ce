"""Relaunch, adopt, finish or ask a person: the decision at the heart of tenure.

The caller already holds a newer epoch of the attempt, so no older holder can write any more. What is decided here rests on
durable facts and kernel evidence only, and fails closed: where nothing proves that nothing ran, nothing is run again.

Rule: requirements R02–R06; design §7; research "process truth" §2 (the kill-point table).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.model.attempt import AttemptState, Invoke
from shared.model.evidence import Evidence, LockState, Pin


class Verdict(StrEnum):
    """What the new holder does."""

    RELAUNCH = "relaunch"  # nothing ran: launch again under this epoch
    ADOPT = "adopt"  # the shim lives: watch it
    ADOPT_ORPHAN = "adopt_orphan"  # the shim is dead, its child lives: watch the child
    FINISHED = "finished"  # it ended, and how is known
    RECOVERY_REQUIRED = "recovery_required"  # it may have run and nobody can say how it ended
    NOTHING_RAN = "nothing_ran"  # as RELAUNCH, but the attempt is out of time: end it


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What the store knows of the attempt's launch.

    Attributes:
        unfinished_in: The state the attempt was in when first recovered (launching, resuming or running).
        pin: The attempt's pin, from this or any earlier segment.
        invoke, isolated: The last written invoke mark since the launch began; None when none was.
        child_record_seen: A launch of the attempt, of whatever epoch, may have exec'ed something; None when nobody could look. Matters
            where `may_relaunch`.
        out_of_time: This recovery only takes authority to time the attempt out.
    """

    unfinished_in: AttemptState
    pin: Pin | None
    invoke: Invoke | None
    isolated: bool
    child_record_seen: bool | None
    out_of_time: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict, the sentence that explains it, and for FINISHED the exit status by the evidence it came from."""

    verdict: Verdict
    why: str


def decide(facts: LaunchFacts, evidence: Evidence | None) -> Decision:
    """Decide what becomes of a recovered attempt.

    Args:
        evidence: Read after the new epoch was claimed, for `facts.pin`; None exactly when there is no pin.
    """
    if facts.pin is None:
        decision = _decide_unpinned(facts)
    elif evidence is None:
        decision = Decision(Verdict.RECOVERY_REQUIRED, "it is pinned, and its evidence was not read")
    else:
        decision = _decide_pinned(evidence)
    if decision.verdict is Verdict.RELAUNCH and facts.child_record_seen is not False:
        decision = _decide_unseen(facts)
    if decision.verdict is Verdict.RELAUNCH and facts.out_of_time:
        return Decision(Verdict.NOTHING_RAN, decision.why)
    return decision


def may_relaunch(evidence: Evidence | None) -> bool:
    """Whether the records of the attempt's other launches matter: there is no pin, or the pinned launch ran nothing.

    They are looked for only then: a home has as many directories as it keeps attempts.
    """
    return evidence is None or _decide_pinned(evidence).verdict is Verdict.RELAUNCH


def _decide_unpinned(facts: LaunchFacts) -> Decision:
    """Rule: R03 (relaunch) and R04 (everything else)."""
    if facts.unfinished_in not in (AttemptState.LAUNCHING, AttemptState.RESUMING):
        return Decision(Verdict.RECOVERY_REQUIRED, "it was running, and its pin is not in the store")
    if facts.invoke is None:
        return Decision(Verdict.RECOVERY_REQUIRED, "its launch left no mark of how far it got")
    if facts.invoke is Invoke.CALLED and not facts.isolated:
        return Decision(Verdict.RECOVERY_REQUIRED, "its executor was called, and does not hold what it launches")
    return Decision(Verdict.RELAUNCH, "nothing was pinned, so nothing was let through the gate")


def _decide_unseen(facts: LaunchFacts) -> Decision:
    """What the store and the pinned launch say is contradicted by another launch's record: a store that lost commits forgot it."""
    if facts.child_record_seen is None:
        return Decision(Verdict.RECOVERY_REQUIRED, "its directories could not be read")
    return Decision(Verdict.RECOVERY_REQUIRED, "a child registered itself in a launch whose pin is not in the store")


def _decide_pinned(evidence: Evidence) -> Decision:
    if not evidence.directory_proven:
        return Decision(Verdict.RECOVERY_REQUIRED, "the pinned directory is missing or is another one")
    if evidence.lock is LockState.UNPROVEN:
        return Decision(Verdict.RECOVERY_REQUIRED, "its lock file is missing, is another one, or cannot be probed")
    if not evidence.same_boot:
        return _decide_from_files(evidence)
    if evidence.lock is LockState.HELD:
        return Decision(Verdict.ADOPT, "its shim holds the attempt's lock")
    if evidence.exit is None and evidence.child is not None and evidence.child_alive and evidence.same_pid_ns:
        return Decision(Verdict.ADOPT_ORPHAN, "its shim is gone, and the process it started lives")
    return _decide_from_files(evidence)


def _decide_from_files(evidence: Evidence) -> Decision:
    """Nobody holds the launch any more: its files are final. Rule: the kill-point table's lower rows."""
    if evidence.exit is not None:
        if evidence.exit.ran or evidence.exit.error is not None:
            return Decision(Verdict.FINISHED, "its shim recorded the end")
        if evidence.child_alive:
            return Decision(
                Verdict.RECOVERY_REQUIRED, "nothing was executed, it says, yet the registered process lives"
            )
        return Decision(Verdict.RELAUNCH, "its shim recorded that nothing was executed")
    if evidence.unreadable:
        return Decision(Verdict.RECOVERY_REQUIRED, f"{', '.join(evidence.unreadable)} cannot be read")
    if evidence.child is None and not evidence.child_alive and evidence.child_status is None:
        return Decision(Verdict.RELAUNCH, "its shim is gone, and no child ever registered")
    if not evidence.same_boot:
        return Decision(Verdict.RECOVERY_REQUIRED, "the host restarted while it ran; how it ended is unknown")
    if evidence.child_alive is not False or not evidence.same_pid_ns:
        return Decision(Verdict.RECOVERY_REQUIRED, "whether its process lives cannot be seen from here")
    if evidence.child_status is not None:
        return Decision(Verdict.FINISHED, "the kernel kept its exit status")
    return Decision(Verdict.RECOVERY_REQUIRED, "it ran, its shim died with it, and nobody saw how it ended")
