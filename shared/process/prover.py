"""Looking for the proof that an attempt is stopped: its records first, then everything that runs. Sends no signal.

Rule: design §7 (proofs S0 to S5); which facts prove what is decided in `shared/policy/proof.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from shared.ids import AttemptId
from shared.model.evidence import Evidence, LockState, Pin
from shared.model.stop import Search, StopResult
from shared.policy import proof
from shared.policy.proof import S0, S1, S1B, S2, S3, S5
from shared.process import cgroup, orphans, procfs, snapshot
from shared.process.evidence import any_child_record, open_pinned, read_evidence
from shared.process.identity import is_alive
from shared.process.marks import Launch, Marks, probe_tree_lock
from shared.process.snapshot import Key
from shared.process.suspects import describe

Quiet = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Case:
    """One attempt whose stop is to be proven.

    Attributes:
        isolated: What its executor launches is held at a gate until its pin.
        accounted: Processes that are no job's, though they may look like one's orphans.
        quiet: Entered while all processes are looked through.
        ordered: A stop order is in force.
        since_epoch: With which its present launch began; what ran before that was proven gone.
    """

    attempts_dir: Path
    attempt_id: AttemptId
    pin: Pin | None
    isolated: bool
    accounted: frozenset[Key]
    quiet: Quiet
    ordered: bool
    since_epoch: int = 1

    def marks(self, evidence: Evidence | None) -> Marks:
        """What to know its processes by, as far as its pids mean something here."""
        is_here = evidence is not None and evidence.same_boot and evidence.same_pid_ns
        launch = Launch(
            attempt_id=self.attempt_id,
            home=self.attempts_dir.parent,
            shim=self.pin.shim if is_here and self.pin is not None else None,
            child=evidence.child if is_here and evidence is not None else None,
            leaf=evidence.leaf if is_here and evidence is not None else None,
            tree_lock=self.tree_lock()[1],
        )
        return Marks(launch, self.accounted)

    def tree_lock(self) -> tuple[LockState, tuple[int, int] | None]:
        """State of the lock that the job inherited, and which file that is."""
        directory = None if self.pin is None else open_pinned(self.attempts_dir, self.pin)
        if directory is None:
            return LockState.UNPROVEN, None
        try:
            return probe_tree_lock(directory)
        finally:
            os.close(directory)


def prove(case: Case) -> StopResult:
    """Try every rule, the cheapest first; what is not proven comes with its suspects.

    Blocks: for a search of all processes, at most a second or so, and only while the lock is free and no record proves the stop.
    """
    if case.pin is None:
        failed = _why_not_s0(case)
        if failed is None:
            return StopResult(S0, (), (), None)
        return _unproven(case, None, [f"{S0}: {failed}", *(f"{rule}: no pin" for rule in (S3, S1, S1B, S2, S5))])
    evidence = read_evidence(case.attempts_dir, case.pin)
    tried = [f"{S0}: it was pinned"]
    forgotten = Forgotten(case)
    rule = by_record(case, evidence, tried, forgotten)
    if rule is not None:
        return _proven(rule, evidence, None)
    failed = proof.why_not_searched(evidence)
    if failed is not None:
        return _unproven(case, evidence, [*tried, f"{S2}: {failed}", f"{S5}: {failed}"])
    found = _scan(case, case.pin, evidence)
    search = _search(case, case.pin, evidence, found)
    for rule, why_not in ((S2, proof.why_not_s2(evidence, search)), (S5, proof.why_not_s5(evidence, search))):
        failed = why_not or forgotten.why()
        if failed is None:
            return _proven(rule, evidence, search.exact)
        tried.append(f"{rule}: {failed}")
    return _unproven(case, evidence, tried, found)


def proof_on_record(case: Case, pin: Pin) -> StopResult | None:
    """The proof that records alone give, None when there is none."""
    evidence = read_evidence(case.attempts_dir, pin)
    rule = by_record(case, evidence, [], Forgotten(case))
    return None if rule is None else _proven(rule, evidence, None)


class Forgotten:
    """A launch after the pinned one that ran, and that a store older than its home knows no more.

    Looked for when it is first asked about, and not again: by then everything else says that the attempt is stopped.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._found: tuple[str | None] | None = None

    def why(self) -> str | None:
        """Why such a launch forbids a proof; None: there is none."""
        if self._found is None:
            case = self._case
            later = case.since_epoch if case.pin is None else max(case.since_epoch, case.pin.epoch + 1)
            told = "a child registered itself in a launch whose pin is not in the store"
            self._found = (_why_seen(case, later, told),)
        return self._found[0]


def by_record(case: Case, evidence: Evidence, tried: list[str], forgotten: Forgotten) -> str | None:
    """The rule that records alone prove the stop by; why each other does not is added to `tried`."""
    for rule, why_not in (
        (S3, proof.why_not_s3(evidence)),
        (S1, proof.why_not_s1(evidence)),
        (S1B, proof.why_not_s1b(evidence, ordered=case.ordered)),
    ):
        failed = why_not or (None if rule == S3 else forgotten.why())
        if failed is None:
            return rule
        tried.append(f"{rule}: {failed}")
    return None


def _why_not_s0(case: Case) -> str | None:
    if not case.isolated:
        return "its executor does not hold what it launches at a gate"
    return _why_seen(case, case.since_epoch, "a child registered itself")


def _why_seen(case: Case, since_epoch: int, told: str) -> str | None:
    seen = any_child_record(case.attempts_dir, case.attempt_id, since_epoch)
    return "its directories could not be read" if seen is None else told if seen else None


def _scan(case: Case, pin: Pin, evidence: Evidence) -> orphans.Found | None:
    """Look through all processes; None where that could not be complete."""
    if procfs.blindness() is not None or evidence.reapers is None:
        return None
    sources = orphans.Sources(
        attempts_dir=case.attempts_dir,
        attempt_id=case.attempt_id,
        shim=pin.shim,
        reapers=evidence.reapers,
        accounted=case.accounted,
        quiet=case.quiet,
    )
    return orphans.scan(sources, case.marks(evidence))


def _search(case: Case, pin: Pin, evidence: Evidence, found: orphans.Found | None) -> Search:
    leaf = evidence.leaf
    return Search(
        blind=procfs.blindness(),
        matched=0 if found is None else len(found.matched),
        orphans=0 if found is None else len(found.orphans),
        exact=found is not None and found.exact,
        leaf_empty=None if leaf is None else cgroup.is_empty(leaf.path, leaf.inode),
        tree_lock=case.tree_lock()[0],
        shim_alive=is_alive(pin.shim),
    )


def _proven(rule: str, evidence: Evidence, exact: bool | None) -> StopResult:  # noqa: FBT001 - as the result has it
    leaf = evidence.leaf
    if leaf is not None and evidence.same_boot and cgroup.is_empty(leaf.path, leaf.inode):
        cgroup.remove(leaf.path)
    return StopResult(rule, (), (), evidence.exit, exact=exact)


def _unproven(
    case: Case, evidence: Evidence | None, tried: list[str], found: orphans.Found | None = None
) -> StopResult:
    exit_record = None if evidence is None else evidence.exit
    marks = case.marks(evidence)
    try:
        table = snapshot.take() if found is None else found.table
    except OSError:
        return StopResult(None, (), (*tried, "suspects: /proc cannot be read"), exit_record)
    matched = marks.of(table)
    for pid in () if found is None else found.orphans:
        matched[pid] = (*matched.get(pid, ()), orphans.ORPHAN)
    suspects = describe(table, matched)
    if marks.unreadable:
        tried.append(f"suspects: the environment of {len(marks.unreadable)} processes could not be read")
    return StopResult(None, suspects, tuple(tried), exit_record, exact=None if found is None else found.exact)
