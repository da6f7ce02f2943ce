"""Stopping what an attempt launched, and proving that it is stopped.

Only two processes are ever signalled, each through a pidfd whose identity was verified after it was opened: the pinned shim,
and the child that registered itself in the pinned directory. The shim stops its own tree, so it is asked first and killed only
while it has no child. Whatever is not proven is `unproven`, with what may be left and why each rule failed.

Rule: design §7 (proofs S0, S1, S1b, S3).
"""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

from shared import boundary
from shared.boundary import Boundary
from shared.ids import AttemptId
from shared.model.evidence import Evidence, LockState, Pin, ProcessIdentity
from shared.model.stop import StopResult
from shared.policy.proof import S0, S1, S1B, S3
from shared.process import tree
from shared.process.evidence import any_child_record, read_evidence
from shared.process.identity import is_alive
from shared.process.suspects import find_suspects

SHIM_MARGIN_S = 1.0  # for the shim, after its own grace, to kill, reap and record
KILL_BOUND_S = 2.0
KILL_INTERVAL_S = 0.05


def prove_stopped(attempts_dir: Path, attempt_id: AttemptId, pin: Pin | None, isolated: bool) -> StopResult:  # noqa: FBT001
    """Look for the proof that nothing of the attempt is left; sends no signal. S1b needs a stop order and is not tried."""
    return _Stop(attempts_dir, attempt_id, pin, isolated=isolated, ordered=False).prove()


def stop(
    attempts_dir: Path,
    attempt_id: AttemptId,
    pin: Pin | None,
    isolated: bool,  # noqa: FBT001 - the order of the proof's facts
    grace_s: float,
    *,
    ordered: bool,
) -> StopResult:
    """Stop everything the attempt launched, and prove it. Idempotent; a stop that was cut short is taken up again.

    Blocks: at most `grace_s` and 4 s more.

    Args:
        isolated: What the executor launches is held at a gate until its pin.
        grace_s: Between TERM and KILL. A living shim goes by the grace it was launched with.
        ordered: A stop order is in force. Without one, a shim that has no child yet is left to its gate.
    """
    task = _Stop(attempts_dir, attempt_id, pin, isolated=isolated, ordered=ordered)
    result = task.prove()
    if result.proof is None and pin is not None:
        task.signal(pin, grace_s)
        result = task.prove()
    return result


class _Stop:
    """One try at one attempt."""

    def __init__(
        self, attempts_dir: Path, attempt_id: AttemptId, pin: Pin | None, *, isolated: bool, ordered: bool
    ) -> None:
        self._attempts_dir = attempts_dir
        self._attempt_id = attempt_id
        self._pin = pin
        self._isolated = isolated
        self._ordered = ordered

    # --- proof -------------------------------------------------------------------------------------------------------

    def prove(self) -> StopResult:
        if self._pin is None:
            failed = self._why_not_s0()
            if failed is None:
                return StopResult(S0, (), (), None)
            return self._unproven([f"{S0}: {failed}", *(f"{rule}: no pin" for rule in (S1, S1B, S3))], None)
        evidence = read_evidence(self._attempts_dir, self._pin)
        tried = [f"{S0}: it was pinned"]
        for rule, failed in (
            (S3, "the host has not restarted since" if evidence.same_boot else None),
            (S1, _why_not_s1(evidence)),
            (S1B, self._why_not_s1b(evidence)),
        ):
            if failed is None:
                return StopResult(rule, (), (), evidence.exit)
            tried.append(f"{rule}: {failed}")
        return self._unproven(tried, evidence)

    def _why_not_s0(self) -> str | None:
        if not self._isolated:
            return "its executor does not hold what it launches at a gate"
        seen = any_child_record(self._attempts_dir, self._attempt_id)
        if seen is None:
            return "its directories could not be read"
        return "a child registered itself" if seen else None

    def _why_not_s1b(self, evidence: Evidence) -> str | None:
        if not self._ordered:
            return "no stop order"
        if not evidence.directory_proven:
            return "the pinned directory is missing or is another one"
        if evidence.child is not None or "child.json" in evidence.unreadable:
            return "a child registered itself"
        return _why_not_free(evidence)

    def _unproven(self, tried: list[str], evidence: Evidence | None) -> StopResult:
        shim = None if self._pin is None or (evidence and not evidence.same_pid_ns) else self._pin.shim
        child = None if evidence is None or not evidence.same_pid_ns else evidence.child
        suspects, unreadable = find_suspects(self._attempts_dir.parent, self._attempt_id, shim, child)
        if unreadable:
            tried.append(f"suspects: the environment of {unreadable} processes could not be read")
        return StopResult(None, suspects, tuple(tried), None if evidence is None else evidence.exit)

    # --- signals -----------------------------------------------------------------------------------------------------

    def signal(self, pin: Pin, grace_s: float) -> None:
        evidence = read_evidence(self._attempts_dir, pin)
        if not evidence.same_boot or not evidence.same_pid_ns:
            return  # its pids mean nothing here
        if evidence.child is None and not self._ordered:
            return
        _ask_to_end(pin.shim, grace_s + SHIM_MARGIN_S)
        if is_alive(pin.shim):
            self._insist(pin)
        self._await_registration(pin)
        child = read_evidence(self._attempts_dir, pin).child
        if child is not None and not is_alive(pin.shim) and is_alive(child):
            _ask_to_end(child, grace_s)
            _kill(child)

    def _insist(self, pin: Pin) -> None:
        """The shim did not deliver: kill its tree in its place, or the shim itself while it has none."""
        if read_evidence(self._attempts_dir, pin).child is None:
            _kill(pin.shim)
            return
        deadline = time.monotonic() + KILL_BOUND_S
        while is_alive(pin.shim) and time.monotonic() < deadline:
            tree.kill(pin.shim.pid)
            _await_end(pin.shim, KILL_INTERVAL_S)

    def _await_registration(self, pin: Pin) -> None:
        """A child on its way to exec holds the lock of a dead shim until it has registered."""
        deadline = time.monotonic() + SHIM_MARGIN_S
        while not is_alive(pin.shim) and time.monotonic() < deadline:
            if read_evidence(self._attempts_dir, pin).lock is not LockState.HELD:
                return
            time.sleep(KILL_INTERVAL_S)


def _why_not_s1(evidence: Evidence) -> str | None:
    if not evidence.directory_proven:
        return "the pinned directory is missing or is another one"
    if evidence.exit is None:
        return "the exit record cannot be read" if "exit.json" in evidence.unreadable else "no exit record"
    if not evidence.exit.tree_empty:
        return "the shim was no subreaper, so what it left may live"
    return _why_not_free(evidence)


def _why_not_free(evidence: Evidence) -> str | None:
    if evidence.lock is LockState.FREE:
        return None
    return "its lock is held" if evidence.lock is LockState.HELD else "its lock could not be probed"


def _ask_to_end(identity: ProcessIdentity, bound_s: float) -> None:
    """TERM, and CONT so that a stopped process hears it; wait for its end within the bound."""
    if _send(identity, signal.SIGTERM):
        _send(identity, signal.SIGCONT)
        _await_end(identity, bound_s)


def _kill(identity: ProcessIdentity) -> None:
    if _send(identity, signal.SIGKILL):
        _await_end(identity, KILL_BOUND_S)


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
