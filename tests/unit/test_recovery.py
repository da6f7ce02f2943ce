"""Relaunch, adopt, finish or ask: every combination of facts and evidence against the table and against invariants.

The invariants are stated here from requirements R02–R06, design §7 and the kill-point table, without a look at the code. Each one
is shown to fire: a copy of the decision with one rule broken must violate it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.attempt import AttemptState, Invoke
from shared.model.evidence import Evidence, ExitRecord, LockState
from shared.policy.recovery import Decision, LaunchFacts, Verdict, decide, may_relaunch
from tests.support.evidence import (
    CHILD,
    KILLED,
    NO_SUCH_COMMAND,
    NOT_RAN,
    NOT_REGISTERED,
    PIN,
    RAN,
    RAN_TREE_UNKNOWN,
)

EXITS = (None, RAN, RAN_TREE_UNKNOWN, KILLED, NOT_RAN, NO_SUCH_COMMAND, NOT_REGISTERED)

EVIDENCE = tuple(
    Evidence(
        same_boot=same_boot,
        same_pid_ns=same_pid_ns,
        directory_proven=directory_proven,
        lock=lock,
        exit=exit_record,
        child=child,
        unreadable=unreadable,
        child_alive=child_alive,
        child_status=child_status,
    )
    for same_boot, same_pid_ns, directory_proven, lock, exit_record, child, unreadable, child_alive, child_status in product(
        (True, False),
        (True, False),
        (True, False),
        LockState,
        EXITS,
        (None, CHILD),
        ((), ("exit.json",), ("child.json",), ("exit.json", "child.json")),
        (None, True, False),
        (None, 0, -9),
    )
)
FACTS = tuple(
    LaunchFacts(unfinished_in, pin, invoke, isolated, child_record_seen, out_of_time)
    for unfinished_in, pin, invoke, isolated, child_record_seen, out_of_time in product(
        AttemptState, (None, PIN), (None, *Invoke), (True, False), (True, False, None), (True, False)
    )
)
UNPINNED = tuple(facts for facts in FACTS if facts.pin is None)
# With a pin the evidence decides, and what the attempt's other launches left; that the other facts do not matter is a test of its own.
PINNED = tuple(
    LaunchFacts(AttemptState.RUNNING, PIN, Invoke.CALLED, True, seen, late)
    for seen, late in product((True, False, None), (True, False))
)

Decide = Callable[[LaunchFacts, Evidence | None], Decision]
Case = tuple[LaunchFacts, Evidence | None]


def every_case() -> Iterator[Case]:
    yield from ((facts, None) for facts in FACTS)
    yield from product(PINNED, EVIDENCE)


# ------------------------------------------------------------------------------------------------ the table


def verdict_by_table(facts: LaunchFacts, evidence: Evidence | None) -> Verdict:
    """The first row that fits, in the order of the table in the research on process truth, §2; the last row is what no other
    row proves. R06 turns a relaunch of an attempt out of time into an end.
    """
    verdict = _unpinned_row(facts) if facts.pin is None else _pinned_row(evidence)
    if verdict is Verdict.RELAUNCH and facts.child_record_seen is not False:
        return Verdict.RECOVERY_REQUIRED
    if verdict is Verdict.RELAUNCH and facts.out_of_time:
        return Verdict.NOTHING_RAN
    return verdict


def _unpinned_row(facts: LaunchFacts) -> Verdict:
    launch_unfinished = facts.unfinished_in.value in ("launching", "resuming")
    held_until_pin = facts.invoke is Invoke.PENDING or (facts.invoke is Invoke.CALLED and facts.isolated)
    if launch_unfinished and held_until_pin and facts.child_record_seen is False:
        return Verdict.RELAUNCH
    return Verdict.RECOVERY_REQUIRED


def _pinned_row(evidence: Evidence | None) -> Verdict:
    if evidence is None or not evidence.directory_proven or evidence.lock is LockState.UNPROVEN:
        return Verdict.RECOVERY_REQUIRED
    shim_lives = evidence.same_boot and evidence.lock is LockState.HELD
    seen_here = evidence.same_boot and evidence.same_pid_ns
    contradicted = evidence.child_alive is True
    match evidence.exit:
        case _ if shim_lives:
            return Verdict.ADOPT
        case ExitRecord(ran=True) | ExitRecord(error=str()):
            return Verdict.FINISHED
        case ExitRecord():
            return Verdict.RECOVERY_REQUIRED if contradicted else Verdict.RELAUNCH
        case None if evidence.child is not None and evidence.child_alive is True and seen_here:
            return Verdict.ADOPT_ORPHAN
        case None if evidence.unreadable:
            return Verdict.RECOVERY_REQUIRED
        case None if evidence.child is None and not contradicted and evidence.child_status is None:
            return Verdict.RELAUNCH
        case None if evidence.child_alive is False and seen_here and evidence.child_status is not None:
            return Verdict.FINISHED
    return Verdict.RECOVERY_REQUIRED


@pytest.mark.req("R02", "R03", "R04", "R06")
def test_every_combination_is_decided_as_the_table_says() -> None:
    wrong = [
        (facts, evidence)
        for facts, evidence in every_case()
        if decide(facts, evidence).verdict is not verdict_by_table(facts, evidence)
    ]

    assert wrong[:3] == []


def test_every_verdict_occurs_and_says_why() -> None:
    decisions = [decide(*case) for case in every_case()]

    assert {decision.verdict for decision in decisions} == set(Verdict)
    assert all(decision.why for decision in decisions)


@given(st.sampled_from(FACTS), st.sampled_from(EVIDENCE))
def test_with_a_pin_only_evidence_records_and_the_time_left_decide(facts: LaunchFacts, evidence: Evidence) -> None:
    pinned = replace(facts, pin=PIN)
    alike = replace(PINNED[0], child_record_seen=facts.child_record_seen, out_of_time=facts.out_of_time)

    assert decide(pinned, evidence) == decide(alike, evidence)


@given(st.sampled_from(PINNED), st.sampled_from(EVIDENCE))
def test_records_of_other_launches_matter_only_where_they_are_looked_for(
    facts: LaunchFacts, evidence: Evidence
) -> None:
    unseen = decide(replace(facts, child_record_seen=None), evidence)

    assert may_relaunch(evidence) or decide(facts, evidence) == unseen


@given(st.sampled_from(UNPINNED), st.sampled_from(EVIDENCE))
def test_without_a_pin_evidence_of_another_launch_is_not_looked_at(facts: LaunchFacts, evidence: Evidence) -> None:
    assert decide(facts, evidence) == decide(facts, None)


# ------------------------------------------------------------------------------------------------ the invariants


def nothing_ran_is_proven(facts: LaunchFacts, evidence: Evidence | None) -> bool:
    """Positive proof that nothing was ever exec'ed and nothing can be any more. Silence proves only where it is complete."""
    if facts.pin is None:
        never_called = facts.invoke is Invoke.PENDING
        held_at_gate = facts.invoke is Invoke.CALLED and facts.isolated
        is_launch = facts.unfinished_in in (AttemptState.LAUNCHING, AttemptState.RESUMING)
        return is_launch and (never_called or held_at_gate) and facts.child_record_seen is False
    if evidence is None or not evidence.directory_proven or evidence.lock is LockState.UNPROVEN:
        return False
    if evidence.same_boot and evidence.lock is LockState.HELD:
        return False
    if evidence.child_alive is True or facts.child_record_seen is not False:
        return False
    if evidence.exit is not None:
        return not evidence.exit.ran and evidence.exit.error is None
    return evidence.child is None and evidence.child_status is None and not evidence.unreadable


def is_never_run_again_unproven(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    return verdict not in (Verdict.RELAUNCH, Verdict.NOTHING_RAN) or nothing_ran_is_proven(facts, evidence)


def is_relaunched_when_nothing_ran(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    return verdict in (Verdict.RELAUNCH, Verdict.NOTHING_RAN) or not nothing_ran_is_proven(facts, evidence)


def is_end_known(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    if verdict is not Verdict.FINISHED:
        return True
    return evidence is not None and (evidence.exit is not None or evidence.child_status is not None)


def is_recorded_end_used(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    if facts.pin is None or evidence is None or evidence.exit is None or not evidence.exit.ran:
        return True
    holds = evidence.directory_proven and (
        evidence.lock is LockState.FREE or (not evidence.same_boot and evidence.lock is LockState.HELD)
    )
    return verdict is Verdict.FINISHED or not holds


def is_unproven_directory_shown(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    unproven = facts.pin is not None and evidence is not None and not evidence.directory_proven
    return verdict is Verdict.RECOVERY_REQUIRED or not unproven


def is_unproven_lock_shown(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    unproven = facts.pin is not None and evidence is not None and evidence.lock is LockState.UNPROVEN
    return verdict is Verdict.RECOVERY_REQUIRED or not unproven


def is_nothing_of_another_boot_adopted(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    return verdict not in (Verdict.ADOPT, Verdict.ADOPT_ORPHAN) or (evidence is not None and evidence.same_boot)


def is_orphan_seen_from_here(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    return verdict is not Verdict.ADOPT_ORPHAN or (
        evidence is not None and evidence.child is not None and evidence.child_alive is True and evidence.same_pid_ns
    )


def is_shim_alive_when_adopted(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    return verdict is not Verdict.ADOPT or (evidence is not None and evidence.lock is LockState.HELD)


def is_what_lives_adopted(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    if facts.pin is None or evidence is None or not (evidence.same_boot and evidence.directory_proven):
        return True
    return verdict is Verdict.ADOPT or evidence.lock is not LockState.HELD


def is_never_relaunched_out_of_time(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    return verdict is not (Verdict.RELAUNCH if facts.out_of_time else Verdict.NOTHING_RAN)


def is_unpinned_never_observed(facts: LaunchFacts, evidence: Evidence | None, verdict: Verdict) -> bool:
    allowed = (Verdict.RELAUNCH, Verdict.NOTHING_RAN, Verdict.RECOVERY_REQUIRED)
    return facts.pin is not None or verdict in allowed


INVARIANTS = (
    is_never_run_again_unproven,
    is_relaunched_when_nothing_ran,
    is_end_known,
    is_recorded_end_used,
    is_unproven_directory_shown,
    is_unproven_lock_shown,
    is_nothing_of_another_boot_adopted,
    is_orphan_seen_from_here,
    is_shim_alive_when_adopted,
    is_what_lives_adopted,
    is_never_relaunched_out_of_time,
    is_unpinned_never_observed,
)


def violated_by(decision: Decide, cases: Iterator[Case]) -> set[str]:
    """Names of the invariants that some case violates."""
    found: set[str] = set()
    for facts, evidence in cases:
        verdict = decision(facts, evidence).verdict
        found |= {rule.__name__ for rule in INVARIANTS if not rule(facts, evidence, verdict)}
    return found


@pytest.mark.req("R02", "R03", "R04", "R06", "M02")
def test_no_combination_violates_an_invariant() -> None:
    assert violated_by(decide, every_case()) == set()


def believing(**lie: object) -> Decide:
    """The decision with one field of the evidence taken for something else than it is."""

    def broken(facts: LaunchFacts, evidence: Evidence | None) -> Decision:
        return decide(facts, None if evidence is None else replace(evidence, **lie))  # type: ignore[arg-type]

    return broken


def assuming(**lie: object) -> Decide:
    """The decision with one fact taken for something else than it is."""
    return lambda facts, evidence: decide(replace(facts, **lie), evidence)  # type: ignore[arg-type]


def instead(lie: Callable[[LaunchFacts, Evidence | None], Verdict | None]) -> Decide:
    """The decision with another verdict in some cases."""

    def broken(facts: LaunchFacts, evidence: Evidence | None) -> Decision:
        told = lie(facts, evidence)
        return decide(facts, evidence) if told is None else Decision(told, "broken on purpose")

    return broken


def when_evidence(condition: Callable[[Evidence], bool], verdict: Verdict) -> Decide:
    return instead(lambda _, evidence: verdict if evidence is not None and condition(evidence) else None)


BROKEN: dict[str, tuple[Decide, str]] = {
    "a missing directory is taken for ours": (believing(directory_proven=True), "is_unproven_directory_shown"),
    "an unproven lock is taken for free": (believing(lock=LockState.FREE), "is_unproven_lock_shown"),
    "a held lock is taken for free": (believing(lock=LockState.FREE), "is_what_lives_adopted"),
    "any lock is taken for held": (believing(lock=LockState.HELD), "is_shim_alive_when_adopted"),
    "another boot is taken for this one": (believing(same_boot=True), "is_nothing_of_another_boot_adopted"),
    "a foreign pid is taken for ours": (believing(same_pid_ns=True), "is_orphan_seen_from_here"),
    "an unreadable file is taken for none": (believing(unreadable=()), "is_never_run_again_unproven"),
    "the child's registration is ignored": (
        believing(child=None, child_alive=None, child_status=None),
        "is_never_run_again_unproven",
    ),
    "a living child is ignored": (believing(child_alive=False), "is_never_run_again_unproven"),
    "an unknown child is taken for alive": (believing(child_alive=True), "is_orphan_seen_from_here"),
    "an unknown status is taken for 0": (believing(child_status=0), "is_end_known"),
    "the exit record is ignored": (believing(exit=None), "is_recorded_end_used"),
    "any end is taken for none": (believing(exit=NOT_RAN), "is_never_run_again_unproven"),
    "no end is taken for one": (believing(exit=RAN), "is_end_known"),
    "everything is shown to a person": (
        instead(lambda *_: Verdict.RECOVERY_REQUIRED),
        "is_relaunched_when_nothing_ran",
    ),
    "time is forgotten": (assuming(out_of_time=False), "is_never_relaunched_out_of_time"),
    "time is always over": (assuming(out_of_time=True), "is_never_relaunched_out_of_time"),
    "an unisolated call is taken for isolated": (assuming(isolated=True), "is_never_run_again_unproven"),
    "a call is taken for pending": (assuming(invoke=Invoke.PENDING), "is_never_run_again_unproven"),
    "a lost pin of a running attempt is ignored": (
        assuming(unfinished_in=AttemptState.LAUNCHING),
        "is_never_run_again_unproven",
    ),
    "a resume is not relaunched": (
        instead(lambda f, _: Verdict.RECOVERY_REQUIRED if f.unfinished_in is AttemptState.RESUMING else None),
        "is_relaunched_when_nothing_ran",
    ),
    "child records are not looked for": (assuming(child_record_seen=False), "is_never_run_again_unproven"),
    "a pin without evidence is taken for none": (
        instead(lambda f, e: decide(replace(f, pin=None), None).verdict if e is None else None),
        "is_never_run_again_unproven",
    ),
    "an unpinned launch is adopted": (
        instead(lambda f, _: Verdict.ADOPT if f.pin is None else None),
        "is_unpinned_never_observed",
    ),
    "a gone child is taken for finished": (
        when_evidence(lambda e: e.child_alive is False and e.exit is None, Verdict.FINISHED),
        "is_end_known",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_decision_with_one_rule_broken_violates_the_invariant_of_that_rule(name: str) -> None:
    broken, invariant = BROKEN[name]
    rule = next(rule for rule in INVARIANTS if rule.__name__ == invariant)

    assert not all(rule(facts, evidence, broken(facts, evidence).verdict) for facts, evidence in every_case())


def test_every_invariant_is_shown_to_fire() -> None:
    assert {invariant for _, invariant in BROKEN.values()} == {rule.__name__ for rule in INVARIANTS}
