"""What passes a gate: one launch of a Work at a time, pinned before, never again once it ran, no success without evidence."""

from __future__ import annotations

from chaos.checks.processes import Process, processes
from chaos.checks.wakes import woken_epochs
from chaos.history import History, pins_in
from chaos.job import Job
from chaos.seen import Go
from chaos.witness import Mark
from shared.ids import WorkId
from shared.model.attempt import Attempt, AttemptState
from shared.model.outcome import OutcomeKind


def one_launch_of_a_work_lives(history: History) -> list[str]:
    """At most one launch of a Work has living processes, whatever its attempt and epoch. Rule: E03, R02, W01."""
    found = []
    known: dict[WorkId, list[Process]] = {}
    for process in processes(history):
        before = known.setdefault(process.work_id, [])
        others = [other for other in before if other.launch != process.launch and other.lives_at(process.began)]
        found += [f"{_name(process)} began while {_name(other)} lived" for other in others]
        before.append(process)
    return found


def _name(process: Process) -> str:
    attempt_id, epoch = process.launch
    return f"{attempt_id} of epoch {epoch} (pid {process.pid})"


def launches_follow_their_pin(history: History) -> list[str]:
    """What started had been pinned: that launch, of that epoch, before it started. Rule: R04, R05."""
    pinned_at = {
        (event.attempt_id, event.epoch): event.seq for event in history.events if event.kind == "attempt.pinned"
    }
    forgotten = pins_in(history.lost)
    found = []
    for line in history.lines:
        seq = pinned_at.get((line.attempt_id, line.epoch))
        if line.mark is not Mark.START:
            continue
        if seq is None and (line.attempt_id, line.epoch) in forgotten:
            continue  # in which order is not known any more, as the numbers of lost events are given again
        if seq is None:
            found.append(f"{line.attempt_id} started under epoch {line.epoch}, which was never pinned")
        elif line.seq is not None and line.seq < seq:
            found.append(f"{line.attempt_id} started under epoch {line.epoch} before its pin was committed")
    return found


def gates_open_under_a_live_pin(history: History) -> list[str]:
    """When a gate is opened, the store holds exactly that launch's pin, and its lease has not lapsed. Rule: design §7, step 3."""
    return [
        f"the gate of {go.attempt_id} epoch {go.epoch} (pid {go.pid}) was opened: {why}"
        for go in history.gos
        if not go.was_forgotten and (why := _why_not(go)) is not None
    ]


def _why_not(go: Go) -> str | None:
    pin = None if go.attempt is None else go.attempt.pin
    if pin is None:
        return "nothing was pinned"
    if (pin.epoch, pin.shim.pid) != (go.epoch, go.pid):
        return f"pinned was epoch {pin.epoch} (pid {pin.shim.pid})"
    if go.lease is None or (go.lease.epoch, go.lease.boot_id) != (go.epoch, go.now.boot_id):
        return "the lease was another one"
    if go.lease.expires_mono_us <= go.now.mono_us:
        return f"the lease had lapsed {go.now.mono_us - go.lease.expires_mono_us} us before"
    return None


def nothing_that_ran_is_relaunched(history: History) -> list[str]:
    """No launch of an attempt from before a relaunch ever ran anything, those apart that a park had ended. Rule: R03, R04."""
    found = []
    woken = woken_epochs(history)
    for event in history.events:
        if event.kind != "attempt.relaunched" or event.epoch is None or event.attempt_id is None:
            continue
        since = max((epoch for epoch in woken.get(event.attempt_id, ()) if epoch <= event.epoch), default=0)
        found += [
            f"{line.attempt_id} was relaunched at epoch {event.epoch}, and its launch of epoch {line.epoch} ran"
            for line in history.lines
            if line.mark is Mark.START and line.attempt_id == event.attempt_id and since <= line.epoch < event.epoch
        ]
    return found


def success_has_evidence(history: History) -> list[str]:
    """Nothing is called a success without a pinned launch that came to its last line, and that ended with 0 or had declared
    itself completed. One that was killed behind that word has said all that counts. Rule: M02, O15.
    """
    found = []
    jobs = {job.work_id: job for job in history.jobs}
    ends = {(line.attempt_id, line.epoch) for line in history.lines if line.mark is Mark.END}
    forgotten = pins_in(history.lost)
    declared = {
        event.attempt_id
        for event in history.events
        if event.kind == "outcome.applied" and event.data.get("kind") == OutcomeKind.COMPLETED
    }
    for attempt in history.attempts.values():
        if attempt.state is not AttemptState.SUCCEEDED:
            continue
        is_good = attempt.exit_status == 0 or (attempt.exit_status is not None and attempt.id in declared)
        pins = {(attempt.id, attempt.pin.epoch)} if attempt.pin else {pin for pin in forgotten if pin[0] == attempt.id}
        if not is_good or not pins:
            pinned = "a" if pins else "no"
            found.append(f"{attempt.id} succeeded with status {attempt.exit_status} and {pinned} pin")
        elif attempt.work_id in jobs and pins.isdisjoint(ends) and not _was_killed(jobs[attempt.work_id], attempt):
            found.append(f"{attempt.id} succeeded, and never came to its last line")
    return found


def _was_killed(job: Job, attempt: Attempt) -> bool:
    return job.may_be_killed and attempt.exit_status is not None and attempt.exit_status < 0
