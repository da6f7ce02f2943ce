"""Stopping what an attempt launched, and proving that it is stopped.

The shim stops its own tree, so it is asked first, and killed only while it has no child or nothing is left below it. Where it is
dead, or does not deliver in time, whatever bears a mark of the launch is stopped in its place. Whatever is not proven is
`unproven`, with what may be left and why each rule failed; the next try looks anew.

Rule: design §7 (proofs S0 to S5).
"""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path

from shared import boundary
from shared.boundary import Boundary
from shared.ids import AttemptId
from shared.model.evidence import Evidence, LockState, Pin, ProcessIdentity
from shared.model.stop import StopResult
from shared.process import procfs
from shared.process.evidence import read_evidence
from shared.process.identity import is_alive
from shared.process.marks import key_of
from shared.process.prover import Case, Quiet, proof_on_record, prove
from shared.process.sweep import Sweep

SHIM_MARGIN_S = 1.0  # for the shim, after its own grace, to kill, reap and record
KILL_BOUND_S = 6.0  # a bomb of some hundred processes takes seconds to freeze where it has no cgroup
END_BOUND_S = 2.0
PAUSE_S = 0.05

Accounted = Callable[[], Iterable[ProcessIdentity]]


def prove_stopped(
    attempts_dir: Path,
    attempt_id: AttemptId,
    pin: Pin | None,
    isolated: bool,  # noqa: FBT001 - the order of the proof's facts
    *,
    since_epoch: int = 1,
    accounted: Accounted = tuple,
    quiet: Quiet = nullcontext,
) -> StopResult:
    """Look for the proof that nothing of the attempt is left; sends no signal. S1b needs a stop order and is not tried."""
    return prove(
        Case(attempts_dir, attempt_id, pin, isolated, _keys(accounted()), quiet, ordered=False, since_epoch=since_epoch)
    )


def stop(
    attempts_dir: Path,
    attempt_id: AttemptId,
    pin: Pin | None,
    isolated: bool,  # noqa: FBT001 - the order of the proof's facts
    grace_s: float,
    *,
    ordered: bool,
    since_epoch: int = 1,
    accounted: Accounted = tuple,
    quiet: Quiet = nullcontext,
) -> StopResult:
    """Stop everything the attempt launched, and prove it. Idempotent; a stop that was cut short is taken up again.

    Blocks: at most twice `grace_s` (for the shim, and for what it left when it died meanwhile) and 15 s more.

    Args:
        isolated: What the executor launches is held at a gate until its pin.
        grace_s: Between TERM and KILL. A living shim goes by the grace it was launched with.
        ordered: A stop order is in force. Without one, a shim that has no child yet is left to its gate.
        accounted: Gives processes that are no job's, though they may look like one's orphans: registered workers and
            coordinators, zygotes, services known from before. They are never signalled.
        quiet: Entered while all processes are looked through: the caller launches nothing meanwhile.
    """
    case = Case(
        attempts_dir, attempt_id, pin, isolated, _keys(accounted()), quiet, ordered=ordered, since_epoch=since_epoch
    )
    if pin is None:
        return prove(case)
    proven = proof_on_record(case, pin)
    if proven is not None:
        return proven
    task = _Stop(case, pin)
    task.run(grace_s)
    return dataclasses.replace(prove(case), terms=task.terms, kills=task.kills)


def _keys(identities: Iterable[ProcessIdentity]) -> frozenset[tuple[int, int]]:
    """Whom to leave out, as keys of the table; this process is always among them."""
    own = (os.getpid(), procfs.start_ticks(os.getpid()))
    return frozenset([own, *(key for key in map(key_of, identities) if key is not None)])


class _Stop:
    """The signals of one try at one attempt.

    Attributes:
        terms, kills: How many processes were asked to end, and how many were killed, besides the shim.
    """

    def __init__(self, case: Case, pin: Pin) -> None:
        self._case = case
        self._pin = pin
        self.terms = 0
        self.kills = 0

    def run(self, grace_s: float) -> None:
        """Ask the shim; where it does not deliver, stop in its place what bears a mark of the launch; the shim last."""
        shim, evidence = self._pin.shim, self._read()
        if not evidence.same_boot or not evidence.same_pid_ns:
            return  # its pids mean nothing here
        if evidence.child is None and not self._case.ordered:
            return
        _ask_to_end(shim, grace_s + SHIM_MARGIN_S)
        if is_alive(shim):
            self._insist()
        self._await_registration()
        evidence = self._read()
        if evidence.child is None or is_alive(shim) or proof_on_record(self._case, self._pin) is not None:
            return
        sweep = self._sweep(evidence)
        sweep.ask(grace_s)
        sweep.kill(KILL_BOUND_S)  # also when nothing was seen any more: what forks on may not have been
        self._count(sweep)

    def _insist(self) -> None:
        """The shim did not deliver: kill what is below it in its place, and the shim itself only when nothing is."""
        evidence = self._read()
        if evidence.child is None and "child.json" not in evidence.unreadable:
            _kill(self._pin.shim)
            return
        sweep = self._sweep(evidence)
        is_over = sweep.kill(KILL_BOUND_S)
        self._count(sweep)
        if not is_over:
            return
        _await_end(self._pin.shim, SHIM_MARGIN_S)
        if is_alive(self._pin.shim) and not sweep.find():
            _kill(self._pin.shim)

    def _sweep(self, evidence: Evidence) -> Sweep:
        """Its own line of ancestors is left out, in case the job started us; such a stop is not proven, and says why."""
        try:
            above = {(pid, ticks) for pid, ticks in procfs.lineage(os.getpid())}
        except OSError:
            above = set()
        return Sweep(self._case.marks(evidence), evidence.leaf, above)

    def _count(self, sweep: Sweep) -> None:
        self.terms += len(sweep.asked)
        self.kills += len(sweep.killed)

    def _read(self) -> Evidence:
        return read_evidence(self._case.attempts_dir, self._pin)

    def _await_registration(self) -> None:
        """A child on its way to exec holds the lock of a dead shim until it has registered."""
        deadline = time.monotonic() + SHIM_MARGIN_S
        while not is_alive(self._pin.shim) and time.monotonic() < deadline:
            if self._read().lock is not LockState.HELD:
                return
            time.sleep(PAUSE_S)


def _ask_to_end(identity: ProcessIdentity, bound_s: float) -> None:
    """TERM, and CONT so that a stopped process hears it; wait for its end within the bound."""
    if _send(identity, signal.SIGTERM):
        _send(identity, signal.SIGCONT)
        _await_end(identity, bound_s)


def _kill(identity: ProcessIdentity) -> None:
    if _send(identity, signal.SIGKILL):
        _await_end(identity, END_BOUND_S)


def _send(identity: ProcessIdentity, number: int) -> bool:
    """Signal exactly this process; False when it is gone or not ours to signal."""
    fd = _open(identity)
    if fd is None:
        return False
    try:
        boundary.pidfd_kill(fd, number, Boundary.STOP_SIGNAL)
    except (ProcessLookupError, PermissionError):
        return False
    else:
        return True
    finally:
        os.close(fd)


def _await_end(identity: ProcessIdentity, bound_s: float) -> None:
    fd = _open(identity)
    if fd is None:
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(bound_s * 1000)
    finally:
        os.close(fd)


def _open(identity: ProcessIdentity) -> int | None:
    """A pidfd of exactly this process; None when it is gone. Verified after the open, so the number cannot change hands."""
    try:
        fd = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if is_alive(identity):
        return fd
    os.close(fd)
    return None
