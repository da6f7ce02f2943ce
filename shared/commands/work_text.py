"""A Work as text for people: one line in a list, or all that is known about it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from shared.commands.json_views import Json, finding_of
from shared.commands.next_step import next_step
from shared.commands.open_home import OpenHome
from shared.commands.render import Ink, duration, escaped, masked, moment, quoted, table
from shared.commands.work_facts import AttemptFacts, WorkFacts, worker_of
from shared.model.attempt import Attempt, AttemptState, Exclusion, FailureClass, Segment
from shared.model.budget import plain
from shared.model.cancel import Cancellation
from shared.model.causality import ChainRefusal
from shared.model.host import StopOrder
from shared.model.instant import US_PER_MINUTE, Instant
from shared.model.timer import Timer, timer_due_us
from shared.model.usage import MINUTES
from shared.model.wait import Awaited, WaitState
from shared.model.work import Reason, Work, WorkKind, WorkState
from shared.policy.lease import is_live
from shared.store.values import PERSON

SUSPECTS_SHOWN = 10

WHY = {
    Reason.CAPACITY_CONCURRENCY: "pool agents is full",
    Reason.CAPACITY_JOB_CONCURRENCY: "pool jobs is full",
    Reason.CAPACITY_SCOPE: "a scope it is in is full",
    Reason.NO_WORKER: "no worker can take it",
    Reason.STOP_UNPROVEN: "an earlier attempt is not proven stopped",
    Reason.DISK_FULL: "the disk is full",
    Reason.UNSUPPORTED_GENERATION: "the active configuration has no such binding, or cannot be read",
    Reason.TIMED_OUT: "out of time",
    Reason.PERMANENT_FAILURE: "it cannot run",
    Reason.EXHAUSTED: "nothing is left to try",
    Reason.HOLD: "a person holds it",
    Reason.QUARANTINED: "its binding is quarantined",
    Reason.OVER_BUDGET: "a budget is used up",
    Reason.GATE_HELD: "it waits at a start gate",
    Reason.GATE_UNDECIDED: "a start gate has not decided",
}


FAILED = {
    FailureClass.VALIDATION: "was asked for wrongly",
    FailureClass.AUTHORITY: "had lost its lease",
    FailureClass.TRANSIENT: "found the store busy",
    FailureClass.ADMISSION: "ran nothing",
    FailureClass.PERMANENT: "cannot succeed",
    FailureClass.TIMED_OUT: "ran out of time",
    FailureClass.CANCELLED: "was cancelled",
    FailureClass.AMBIGUOUS: "ended nobody knows how",
    FailureClass.DELIVERY: "was not delivered",
}
"""How an attempt of a class ended, where \"failed\" does not say it all."""


def list_rows(works: Sequence[Json], ink: Ink) -> list[list[str]]:
    """A heading and one row for each work, as `work_view` has it."""
    rows = [[ink.faint(head) for head in ("work", "state", "scope", "attempts", "submitted", "what")]]
    for work in works:
        view = cast("dict[str, Any]", work)
        reason = f" ({view['reason']})" if view["reason"] else ""
        submitted = str(view["submitted_at"])[:19].replace("T", " ") + "Z"
        what = quoted(view["command"]) if view["command"] else f"binding {view['binding'] or 'of its scope'}"
        state = f"{ink.state(view['state'])}{reason}"
        rows.append([view["id"], state, view["scope"], str(view["attempts_used"]), submitted, _short(what)])
    return rows


def show_lines(facts: WorkFacts, door: OpenHome, ink: Ink, *, shown: WorkFacts | None = None) -> list[str]:
    """All that is known about a work.

    Args:
        shown: Has the attempts that are to be shown; None: the last ones.
    """
    shown = shown or facts
    work = facts.work
    text = [f"{ink.strong(work.id)}  {ink.state(work.state)}{_why(work, facts.now)}"]
    text += table(_work_rows(work) + _retry_rows(facts) + _next_rows(facts, door), indent="  ")
    if shown.earlier is not None:
        text += ["", ink.faint(f"earlier attempts: {door.command(f'work show {work.id} --before {shown.earlier}')}")]
    for each in shown.attempts:
        text += ["", *_attempt_lines(each, facts.now, ink)]
    for record in facts.cancellations:
        text += ["", ink.faint(f"cancel of {record.attempt_id or work.id}"), *stage_lines(record)]
    for each in facts.attempts:
        if each.attempt.state is AttemptState.RECOVERY_REQUIRED:
            text += ["", _advice(work, each.attempt, door)]
    return text


def _next_rows(facts: WorkFacts, door: OpenHome) -> list[list[str]]:
    step = next_step(facts)
    return [] if step is None else [["next", f"{step.what}: {door.command(step.command)}"]]


def _awaited(awaited: Awaited, timer: Timer | None) -> str:
    """What it waits for, since when, until when; or what woke it, and that it waits for a slot, or to be resumed once more."""
    if awaited.is_put_off and timer is not None:
        return f"another resume, at {moment(timer_due_us(timer))}: {escaped(timer.why)}"
    if awaited.state is WaitState.SATISFIED:
        return f"a slot, to go on: woken by event {awaited.wake_seq} at {moment(awaited.woken_at_us or 0)}"
    told = [f"an answer to “{escaped(awaited.ask)}”,"] if awaited.ask else []
    told += [] if awaited.event_type is None else [f"event {awaited.event_type}"]
    if awaited.correlate is not None:
        told.append(f"about {escaped(awaited.correlate)}")
    told.append(f"since {moment(awaited.registered_at_us)}")
    if timer is not None:
        told.append(f"until {moment(timer_due_us(timer))}")
    return " ".join(told)


def _why(work: Work, now: Instant) -> str:
    if work.backoff_us is not None and work.backoff_since is not None:
        ends = work.backoff_since.wall_us + work.backoff_us
        return f"  tried again {moment(ends)}" if ends > now.wall_us else "  tried again at the next pass"
    if work.reason is None:
        return ""
    if work.reason is Reason.CAPACITY_SCOPE and work.reason_limit is not None:
        return f"  {work.reason}: scope {escaped(work.reason_limit)} is full"
    if work.reason is Reason.GATE_UNDECIDED and work.reason_limit is not None:
        return f"  {work.reason}: gate {escaped(work.reason_limit)}"
    return f"  {work.reason}: {WHY[work.reason]}"


def _retry_rows(facts: WorkFacts) -> list[list[str]]:
    """What is known of its failures, and when and why it is tried again, or by whom it is held."""
    work, rows = facts.work, []
    if work.kind is WorkKind.STANDING:
        rows.append(["kind", "standing: it rests until its next input"])
    if work.failures_used:
        failure = facts.attempts[-1].attempt.failure if facts.attempts else None
        last = None if failure is None else FAILED.get(failure)
        of = "" if facts.retry is None or work.kind is WorkKind.STANDING else f" of {facts.retry.attempts_max}"
        rows.append(["failures", f"{work.failures_used}{of}{f'; the last one {last}' if last else ''}"])
    if facts.awaited is not None:
        rows.append(["waits for", _awaited(facts.awaited, facts.timer)])
    elif facts.timer is not None:
        due_us = timer_due_us(facts.timer)
        rows.append(["next try", f"{moment(due_us)}: {escaped(facts.timer.why)}"])
    if work.hold is not None:
        told = f"{moment(work.hold.since_at_us)} by {escaped(work.hold.by)}: {escaped(work.hold.reason)}"
        rows.append(["held", told if work.state is WorkState.HELD else f"{told}; once this attempt has ended"])
    if work.start_hold is not None:
        one = work.start_hold
        rows.append(["held", f"{moment(one.since_at_us)} for {escaped(one.by)}: {escaped(one.reason)}"])
    return rows


def _work_rows(work: Work) -> list[list[str]]:
    rows = [["scope", work.scope]]
    if work.binding is not None:
        rows.append(["binding", work.binding])
    if work.command is not None:
        rows.append(["command", quoted(work.command)])
    if work.cwd is not None:
        rows.append(["folder", escaped(work.cwd)])
    rows += [["env", f"{name}={value}"] for name, value in masked(work.env).items()]
    if work.grants:
        rows.append(["grants", ", ".join(work.grants)])
    if work.priority:
        rows.append(["priority", str(work.priority)])
    rows.append(["submitted", f"{moment(work.submitted_at_us)} by {escaped(work.submitted_by)}"])
    if work.ended_at_us is not None:
        rows.append(["ended", moment(work.ended_at_us)])
    return rows


def usage_text(attempt: Attempt) -> str:
    """What an attempt consumed: `3m 20s, 1.7 usd`. Of minutes two places are enough for people; `--json` has them all."""
    return ", ".join(
        duration(int(amount * US_PER_MINUTE)) if unit == MINUTES else f"{plain(amount)} {unit}"
        for unit, amount in attempt.usage.amounts
    )


def _attempt_lines(facts: AttemptFacts, now: Instant, ink: Ink) -> list[str]:
    attempt = facts.attempt
    head = f"{ink.strong(attempt.id)}  {ink.state(attempt.state)}{result_text(attempt)}"
    rows = [["started", moment(attempt.started_at_us)]]
    if attempt.ended_at_us is not None:
        took = duration(max(0, attempt.ended_at_us - attempt.started_at_us))
        rows.append(["ended", f"{moment(attempt.ended_at_us)} after {took}"])
    if attempt.usage.amounts:
        rows.append(["used", usage_text(attempt)])
    if attempt.error:
        rows.append(["why", escaped(attempt.error)])
    rows.append(["held by", holder_text(facts, now)])
    if attempt.pin is not None:
        rows.append(["files", f"attempts/{attempt.pin.directory}  (shim pid {attempt.pin.shim.pid})"])
    rows.append(["stop", stop_text(attempt, facts.stop_order)])
    rows += chain_rows(facts.refusals)
    text = [head, *table(rows, indent="  ")]
    if facts.stop_order is not None:
        text += _finding_lines(facts.stop_order)
    return [*text, *table([segment_row(segment) for segment in facts.segments], indent="    ")]


def chain_rows(refusals: Sequence[ChainRefusal]) -> list[list[str]]:
    """What its outcomes did not get, as too much had brought each other about before."""
    return [
        ["chain", f"too long at epoch {one.epoch}: its {one.derived} would be link {one.depth} of {one.depth_max}"]
        for one in refusals
    ]


def result_text(attempt: Attempt) -> str:
    """Its exit code or signal, or the class of its failure, behind two spaces; nothing while there is nothing to tell."""
    status = attempt.exit_status
    if status is None:
        told = attempt.failure is None or attempt.failure.value == attempt.state.value
        return "" if told else f"  {attempt.failure}"
    return f"  exit code {status}" if status >= 0 else f"  signal {-status}"


def holder_text(facts: AttemptFacts, now: Instant) -> str:
    """Who holds it, at which epoch and for how long, or who did."""
    worker = worker_of(facts) or "nobody"
    lease = facts.lease
    if facts.attempt.ended_at_us is not None or lease is None:
        return f"{worker}, epoch {facts.attempt.epoch}"
    if is_live(lease, now):
        accepted = "" if lease.accepted_at_us is not None else ", not accepted yet"
        left = duration(lease.expires_mono_us - now.mono_us)
        return f"{lease.owner}, epoch {lease.epoch}, lease good for {left}{accepted}"
    gone = f"revoked: {escaped(lease.revoked_reason)}" if lease.revoked_reason else "lapsed"
    return f"nobody; the lease of {lease.owner}, epoch {lease.epoch}, is {gone}"


def stop_text(attempt: Attempt, order: StopOrder | None) -> str:
    """Whether its stop is proven, and what that means for its slot."""
    if attempt.exclusion is Exclusion.RELEASED and attempt.exclusion_proof == PERSON:
        return "not proven; a person's word freed the slot"
    if attempt.exclusion is Exclusion.RELEASED:
        return f"proven ({attempt.exclusion_proof}), slot free"
    if attempt.state is AttemptState.RECOVERY_REQUIRED:
        return "unproven, slot held until a person decides"
    if attempt.state is AttemptState.PARKED:
        return "nothing of it runs, slot free"
    if attempt.ended_at_us is None:
        return "not ended, slot held"
    tries = "" if order is None or not order.tries else f" after {counted_tries(order.tries)}"
    return f"unproven{tries}, slot held"


def stage_lines(record: Cancellation) -> list[str]:
    """How far a cancel has come: who asked, who stops, what proved it."""
    rows = [
        ["requested", f"{moment(record.requested_at_us)} by {escaped(record.requested_by)}: {escaped(record.reason)}"]
    ]
    if record.acknowledged_at_us is not None:
        told = f"{moment(record.acknowledged_at_us)} by {escaped(record.acknowledged_by or '')}"
        rows.append(["acknowledged", told])
    elif record.settled_at_us is None:
        rows.append(["acknowledged", "not yet: no worker has taken the stop order"])
    if record.settled_at_us is not None:
        rows.append(["settled", f"{moment(record.settled_at_us)}: {escaped(record.result or '')}"])
    elif record.acknowledged_at_us is not None:
        rows.append(["settled", "not yet: the stop is not proven"])
    return table(rows, indent="  ")


def counted_tries(count: int) -> str:
    """`1 try`, `3 tries`."""
    return "1 try" if count == 1 else f"{count} tries"


def _finding_lines(order: StopOrder) -> list[str]:
    finding = finding_of(order)
    if finding is None:
        return []
    rows = [["tried", escaped(str(rule))] for rule in cast("list[object]", finding.get("tried") or [])]
    suspects = cast("list[dict[str, Any]]", finding.get("suspects") or [])
    rows += [["suspect", _suspect(each)] for each in suspects[:SUSPECTS_SHOWN]]
    if len(suspects) > SUSPECTS_SHOWN:
        rows.append(["", f"and {len(suspects) - SUSPECTS_SHOWN} more"])
    return table(rows, indent="  ")


def _suspect(facts: dict[str, Any]) -> str:
    matched = ", ".join(map(str, facts.get("matched") or []))
    return escaped(f"pid {facts.get('pid')} ({facts.get('state')}) {facts.get('command_line')}  by {matched}")


def segment_row(segment: Segment) -> list[str]:
    """A stretch under one lease."""
    marks = [
        word
        for word, holds in (
            (f"invoke {segment.invoke}" if segment.invoke else "", segment.invoke is not None),
            ("isolated", segment.isolated),
            ("recovered", segment.recovered),
            ("relaunched", segment.relaunched),
        )
        if holds
    ]
    ended = moment(segment.ended_at_us) if segment.ended_at_us is not None else "now"
    return [f"epoch {segment.epoch}", segment.worker, f"{moment(segment.began_at_us)} – {ended}", ", ".join(marks)]


def _advice(work: Work, attempt: Attempt, door: OpenHome) -> str:
    logs, settle = door.command(f"work logs {work.id}"), door.command(f"attempt reconcile {attempt.id}")
    return f"Nobody can know what became of {attempt.id}. Look at what it wrote ({logs}), then at the evidence, and settle it ({settle})."


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
