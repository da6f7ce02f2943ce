"""The rules of recovery by name, each refusal beside its control. Rule: requirements R03, R04, R06; the kill-point table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.model.attempt import AttemptState, Invoke
from shared.model.evidence import Evidence, LockState
from shared.policy.recovery import LaunchFacts, Verdict, decide, may_relaunch
from tests.support.evidence import CHILD, NO_SUCH_COMMAND, NOT_RAN, NOTHING_LEFT, PIN, RAN

LAUNCHING = LaunchFacts(AttemptState.LAUNCHING, None, Invoke.PENDING, False, False)
PINNED = LaunchFacts(AttemptState.RUNNING, PIN, Invoke.CALLED, True, False)


@pytest.mark.req("R03")
@pytest.mark.parametrize("state", [AttemptState.LAUNCHING, AttemptState.RESUMING])
@pytest.mark.parametrize(
    ("invoke", "isolated"), [(Invoke.PENDING, False), (Invoke.PENDING, True), (Invoke.CALLED, True)], ids=str
)
def test_a_launch_that_pinned_nothing_is_relaunched(state: AttemptState, invoke: Invoke, isolated: bool) -> None:
    facts = LaunchFacts(state, None, invoke, isolated, child_record_seen=False)

    assert decide(facts, None).verdict is Verdict.RELAUNCH


@pytest.mark.req("R04")
@pytest.mark.parametrize(
    ("control", "change"),
    [
        ("called, not isolated", {"invoke": Invoke.CALLED, "isolated": False}),
        ("no invoke, as an older release left it", {"invoke": None}),
        ("no invoke, isolated", {"invoke": None, "isolated": True}),
        ("running, its pin lost", {"unfinished_in": AttemptState.RUNNING}),
        ("a child had registered", {"child_record_seen": True}),
        ("nobody could look", {"child_record_seen": None}),
    ],
)
def test_any_other_launch_without_a_pin_fails_closed(control: str, change: dict[str, object]) -> None:
    assert decide(LAUNCHING, None).verdict is Verdict.RELAUNCH, "control: without the change it is relaunched"

    assert decide(replace(LAUNCHING, **change), None).verdict is Verdict.RECOVERY_REQUIRED  # type: ignore[arg-type]


@pytest.mark.req("R04")
@pytest.mark.parametrize(
    ("row", "evidence", "verdict"),
    [
        ("shim alive", replace(NOTHING_LEFT, lock=LockState.HELD), Verdict.ADOPT),
        ("shim alive, seen from another pid namespace", replace(NOTHING_LEFT, lock=LockState.HELD, same_pid_ns=False), Verdict.ADOPT),
        ("ended", replace(NOTHING_LEFT, exit=RAN, child=CHILD, child_alive=False), Verdict.FINISHED),
        ("ended, read after a reboot", replace(NOTHING_LEFT, exit=RAN, child=CHILD, same_boot=False), Verdict.FINISHED),
        ("nothing executed", replace(NOTHING_LEFT, exit=NOT_RAN), Verdict.RELAUNCH),
        ("child died between its record and exec", replace(NOTHING_LEFT, exit=NOT_RAN, child=CHILD, child_alive=False), Verdict.RELAUNCH),
        ("no such command", replace(NOTHING_LEFT, exit=NO_SUCH_COMMAND, child=CHILD, child_alive=False), Verdict.FINISHED),
        ("no exit, no child", NOTHING_LEFT, Verdict.RELAUNCH),
        ("no exit, no child, read after a reboot", replace(NOTHING_LEFT, same_boot=False), Verdict.RELAUNCH),
        ("child alive", replace(NOTHING_LEFT, child=CHILD, child_alive=True), Verdict.ADOPT_ORPHAN),
        ("child alive, exit.json torn", replace(NOTHING_LEFT, child=CHILD, child_alive=True, unreadable=("exit.json",)), Verdict.ADOPT_ORPHAN),
        ("child gone, its status kept", replace(NOTHING_LEFT, child=CHILD, child_alive=False, child_status=7), Verdict.FINISHED),
        ("child gone", replace(NOTHING_LEFT, child=CHILD, child_alive=False), Verdict.RECOVERY_REQUIRED),
        ("child not to be seen", replace(NOTHING_LEFT, child=CHILD), Verdict.RECOVERY_REQUIRED),
        ("child only, after a reboot", replace(NOTHING_LEFT, child=CHILD, child_alive=False, same_boot=False), Verdict.RECOVERY_REQUIRED),
        ("directory is another", replace(NOTHING_LEFT, directory_proven=False), Verdict.RECOVERY_REQUIRED),
        ("lock is another", replace(NOTHING_LEFT, lock=LockState.UNPROVEN), Verdict.RECOVERY_REQUIRED),
        ("lock is another, after a reboot", replace(NOTHING_LEFT, lock=LockState.UNPROVEN, same_boot=False), Verdict.RECOVERY_REQUIRED),
        ("child.json torn", replace(NOTHING_LEFT, unreadable=("child.json",)), Verdict.RECOVERY_REQUIRED),
    ],
)  # fmt: skip
def test_a_pinned_launch_is_decided_by_its_evidence(row: str, evidence: Evidence, verdict: Verdict) -> None:
    assert decide(PINNED, evidence).verdict is verdict


@pytest.mark.req("R06")
@pytest.mark.parametrize("case", [(LAUNCHING, None), (PINNED, NOTHING_LEFT)], ids=["unpinned", "pinned"])
def test_an_attempt_out_of_time_is_never_relaunched(case: tuple[LaunchFacts, Evidence | None]) -> None:
    facts, evidence = case
    assert decide(facts, evidence).verdict is Verdict.RELAUNCH, "control: in time it is"

    assert decide(replace(facts, out_of_time=True), evidence).verdict is Verdict.NOTHING_RAN


@pytest.mark.req("R04")
@pytest.mark.parametrize("seen", [True, None])
def test_a_launch_that_the_store_forgot_keeps_a_pinned_one_from_being_relaunched(seen: bool | None) -> None:
    """An older copy of the store knows the pin of a launch that ran nothing, and not the later launch that ran."""
    assert may_relaunch(NOTHING_LEFT)
    assert decide(PINNED, NOTHING_LEFT).verdict is Verdict.RELAUNCH

    assert decide(replace(PINNED, child_record_seen=seen), NOTHING_LEFT).verdict is Verdict.RECOVERY_REQUIRED
