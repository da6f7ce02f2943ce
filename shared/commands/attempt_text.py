"""One attempt as text for people: the whole story, and the evidence that a decision rests on. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from shared.commands.attempt_story import Story
from shared.commands.intent_text import stream_rows
from shared.commands.json_views import finding_of
from shared.commands.live_evidence import LiveEvidence
from shared.commands.open_home import OpenHome
from shared.commands.render import MASK, Ink, counted, duration, escaped, masked, moment, quoted, table
from shared.commands.work_text import (
    chain_rows,
    counted_tries,
    holder_text,
    result_text,
    segment_row,
    stage_lines,
    stop_text,
    usage_text,
)
from shared.config.sizes import format_size
from shared.model.attempt import Attempt, AttemptState, Exclusion, Phase, Snapshot
from shared.model.evidence import Evidence, LockState
from shared.model.host import StopOrder
from shared.model.work import Work
from shared.store.contract import Event

SUSPECTS_SHOWN = 20


def story_lines(story: Story, ink: Ink) -> list[str]:
    """All that is known about an attempt."""
    attempt = story.attempt
    text = [f"{ink.strong(attempt.id)}  {ink.state(attempt.state)}{result_text(attempt)}"]
    text += table(_rows(story), indent="  ")
    if story.facts.stop_order is not None:
        text += ["", ink.faint("stop order"), *order_lines(story.facts.stop_order)]
    for record in story.cancellations:
        text += ["", ink.faint("cancelled" if record.scope == "attempt" else f"cancelled with {story.work.id}")]
        text += stage_lines(record)
    if story.stream is not None:
        text += ["", ink.faint("output"), *table(stream_rows(story.stream), indent="  ")]
    text += ["", ink.faint("held"), *_segment_lines(story)]
    if story.snapshot is not None:
        text += ["", ink.faint("pinned"), *table(_pinned_rows(story.snapshot, story.work), indent="  ")]
    text += ["", ink.faint("events"), *table([_event_row(event) for event in story.events], indent="  ")]
    return text


def _rows(story: Story) -> list[list[str]]:
    attempt = story.attempt
    rows = [["work", f"{story.work.id} is {story.work.state}"], ["started", moment(attempt.started_at_us)]]
    if attempt.ended_at_us is not None:
        took = duration(max(0, attempt.ended_at_us - attempt.started_at_us))
        rows.append(["ended", f"{moment(attempt.ended_at_us)} after {took}"])
    if story.budget_left_us is not None:
        until = f", until {moment(story.deadline_at_us)}" if story.deadline_at_us is not None else ""
        rows.append(["time left", f"{duration(story.budget_left_us)}{until}"])
    if attempt.usage.amounts:
        rows.append(["used", usage_text(attempt)])
    if attempt.error:
        rows.append(["why", escaped(attempt.error)])
    rows.append(["held by", holder_text(story.facts, story.now)])
    if attempt.pin is not None:
        pin = attempt.pin
        rows.append(["files", f"attempts/{pin.directory}"])
        rows.append(["shim", f"pid {pin.shim.pid}, started at tick {pin.shim.start_ticks} of boot {pin.shim.boot_id}"])
    if attempt.relaunches:
        rows.append(["relaunched", f"{attempt.relaunches} times, nothing had run"])
    if attempt.workers_lost:
        rows.append(["workers", lost_text(attempt)])
    rows.append(["stop", stop_text(attempt, story.facts.stop_order)])
    if attempt.depth:
        rows.append(["depth", f"{counted(attempt.depth, 'link')} from what somebody asked for"])
    return rows + chain_rows(story.facts.refusals)


def lost_text(attempt: Attempt) -> str:
    """How many workers died while they held it."""
    row = attempt.workers_lost_in_row
    so_far = f"{counted(attempt.workers_lost, 'worker')} died while holding it"
    return so_far if row < 2 else f"{so_far}, the last {row} soon one after the other"


def order_lines(order: StopOrder) -> list[str]:
    """A stop order: who gave it, what was tried, what may be left."""
    rows = [["why", escaped(order.why)], ["ordered", f"{moment(order.ordered_at_us)} by {escaped(order.ordered_by)}"]]
    rows.append(["tried", f"{counted_tries(order.tries)}{f', now by {order.owner}' if order.owner else ''}"])
    finding = finding_of(order) or {}
    rows += [["no proof", escaped(str(rule))] for rule in cast("list[object]", finding.get("tried") or [])]
    suspects = cast("list[dict[str, Any]]", finding.get("suspects") or [])
    return [*table(rows, indent="  "), *suspect_lines(suspects)]


def suspect_lines(suspects: Sequence[Mapping[str, Any]]) -> list[str]:
    """Processes that may be what is left of an attempt."""
    if not suspects:
        return []
    heads = ["suspect", "parent", "user", "started at tick", "state", "matched", "command"]
    rows = [heads, *(_suspect_row(each) for each in suspects[:SUSPECTS_SHOWN])]
    text = table(rows, indent="  ")
    if len(suspects) > SUSPECTS_SHOWN:
        text.append(f"  and {len(suspects) - SUSPECTS_SHOWN} more")
    return text


def _suspect_row(facts: Mapping[str, Any]) -> list[str]:
    matched = ", ".join(map(str, facts.get("matched") or []))
    command = escaped(str(facts.get("command_line")))
    told = [str(facts.get(key)) for key in ("pid", "ppid", "uid", "started_ticks", "state")]
    if facts.get("waits_in"):
        told[-1] += f" in {facts['waits_in']}"
    return [*map(escaped, told), escaped(matched), command]


def _segment_lines(story: Story) -> list[str]:
    attempt, text = story.attempt, []
    if attempt.segments_dropped:
        spent = duration(attempt.segments_dropped_us)
        text.append(f"  {counted(attempt.segments_dropped, 'earlier segment')} not kept, active for {spent}")
    rows = [segment_row(segment) for segment in story.facts.segments]
    for line, segment in zip(table(rows, indent="  "), story.facts.segments, strict=True):
        text.append(line)
        if segment.sandbox_digest is not None:
            text.append(f"    sandbox {segment.sandbox_digest}")
        text += table([_phase_row(phase) for phase in segment.phases], indent="    ")
        if segment.phases_dropped:
            text.append(f"    {counted(segment.phases_dropped, 'further phase')} not kept")
    return text


def _phase_row(phase: Phase) -> list[str]:
    if phase.ended_at_us is None:
        return [phase.name, f"since {moment(phase.began_at_us)}", "under way, as far as it was told"]
    return [phase.name, duration(max(0, phase.ended_at_us - phase.began_at_us)), phase.outcome or ""]


def _pinned_rows(snapshot: Snapshot, work: Work) -> list[list[str]]:
    rows = [["command", quoted(snapshot.command)], ["folder", escaped(snapshot.cwd)]]
    if snapshot.binding is not None:
        rows.append(["binding", f"{snapshot.binding}, configuration {snapshot.generation}"])
    rows.append(["executor", f"{snapshot.registration}, pool {snapshot.pool}, scope {escaped(snapshot.scope) or '-'}"])
    shown = masked(snapshot.env, dict(work.env))
    rows += [["env", f"{name}={value if value == MASK else quoted([value])}"] for name, value in shown.items()]
    rows += [["secret", f"{name} from {escaped(reference)}"] for name, reference in snapshot.secrets]
    if snapshot.grants:
        rows.append(["grants", ", ".join(snapshot.grants)])
    limit = format_size(snapshot.output_max_bytes) if snapshot.output_max_bytes else "unbounded"
    rows.append(
        ["limits", f"time {duration(snapshot.timeout_us)}, grace {duration(snapshot.grace_us)}, output {limit}"]
    )
    if snapshot.sandbox is not None:
        box = snapshot.sandbox
        rows.append(["sandbox", f"reads {quoted(box.read_only)}, writes {quoted(box.writable) or 'nothing'}"])
        rows.append(
            ["", f"{'the host’s' if box.network else 'no'} network, {'own' if box.private_tmp else 'shared'} /tmp"]
        )
    if snapshot.continues:
        rows.append(["continue", f"a handoff is followed at once, in a chain of at most {snapshot.depth_max} links"])
    if snapshot.retry_exponential is not None:
        bounds = snapshot.retry_exponential
        first, last = duration(bounds.base_us), duration(bounds.max_us)
        told = f"{bounds.attempts} attempts, each wait drawn up to a bound that doubles from {first} to {last}"
        rows.append(["retry", f"{told}; on {', '.join(snapshot.retry_on)}"])
    elif snapshot.retry_delays_us:
        delays = ", ".join(duration(delay) for delay in snapshot.retry_delays_us)
        rows.append(["retry", f"after {delays}; on {', '.join(snapshot.retry_on)}"])
    rows.append(["replay", f"{snapshot.replay}: an unknown outcome {_replay(snapshot.replay)}"])
    return rows


def _replay(word: str) -> str:
    return "is tried again" if word == "safe" else "waits for a person"


def _event_row(event: Event) -> list[str]:
    data = dict(event.data)
    before, after = data.pop("from", None), data.pop("to", None)
    step = f"{before} → {after}" if before is not None else str(after or "")
    facts = ", ".join(f"{name} {_fact(value)}" for name, value in data.items() if value not in _SAYS_NOTHING)
    return [str(event.seq), moment(event.at_us), event.kind, f"epoch {event.epoch}", escaped(step), escaped(facts)]


_SAYS_NOTHING: tuple[object, ...] = (None, "", [], {})


def _fact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- evidence --------------------------------------------------------------------------------------------------------


def live_lines(seen: LiveEvidence, ink: Ink) -> list[str]:
    """What the kernel and the attempt's files say right now, fact by fact; then the processes that may be its own."""
    told = [("pin", "none in the store"), ("child", _CHILD_SEEN[seen.child_record_seen])]
    if seen.evidence is not None:
        told = _evidence(seen.evidence)
    rows = [[name, words] for name, words in told]
    rows += [["no proof", escaped(rule)] for rule in seen.stop.tried]
    if seen.stop.proof is not None:
        rows.append(["stop", f"proven by {seen.stop.proof}: nothing of it is left"])
    text = [ink.faint("evidence now"), *table(rows, indent="  ")]
    return [*text, *suspect_lines([asdict(suspect) for suspect in seen.stop.suspects])]


_CHILD_SEEN = {
    True: "one registered itself, so something may have run",
    False: "none ever registered, so nothing ran",
    None: "its directories could not be read",
}


def _evidence(evidence: Evidence) -> list[tuple[str, str]]:
    if not evidence.same_boot:
        return [("boot", "another one than it was launched in: every process of it is dead"), *_files(evidence)]
    told = [("boot", "the one it was launched in")]
    if not evidence.same_pid_ns:
        told.append(("processes", "it was launched in another pid namespace: they cannot be seen from here"))
    lock = {
        LockState.HELD: "held: its shim lives",
        LockState.FREE: "free: its shim is gone",
        LockState.UNPROVEN: "missing, another one, or unreadable: it proves nothing",
    }[evidence.lock]
    return [*told, ("lock", lock), *_files(evidence)]


def _files(evidence: Evidence) -> list[tuple[str, str]]:
    if not evidence.directory_proven:
        return [("files", "the pinned directory is missing or is another one")]
    told = []
    record = evidence.exit
    if record is not None and record.ran:
        ended = f"exit code {record.status}" if (record.status or 0) >= 0 else f"signal {-(record.status or 0)}"
        empty = "" if record.tree_empty else "; processes of it may be left"
        told.append(("exit record", f"{ended}{empty}"))
    elif record is not None:
        told.append(("exit record", f"nothing ran: {escaped(record.error or 'no reason given')}"))
    elif "exit.json" not in evidence.unreadable:
        told.append(("exit record", "none"))
    told += [(name, "cannot be read") for name in evidence.unreadable]
    if evidence.child is not None:
        life = {True: "lives", False: "is dead", None: "cannot be seen from here"}[evidence.child_alive]
        told.append(("process", f"pid {evidence.child.pid}, started at tick {evidence.child.start_ticks}: {life}"))
        if evidence.child_status is not None:
            told.append(("exit status", f"{evidence.child_status}, kept by the kernel"))
    elif "child.json" not in evidence.unreadable:
        told.append(("process", "none was ever registered"))
    return told


def advice_lines(story: Story, door: OpenHome) -> list[str]:
    """What a person can do about it; nothing when nothing waits for one."""
    attempt = story.attempt
    if attempt.state is AttemptState.RECOVERY_REQUIRED:
        settle = door.command(f"attempt reconcile {attempt.id}")
        return ["", f"Nobody can know what became of it. Look at the evidence and settle it: {settle}"]
    if attempt.ended_at_us is not None and attempt.exclusion is Exclusion.HELD:
        word = door.command(f'attempt confirm-stopped {attempt.id} --epoch {attempt.epoch} --reason "…"')
        return ["", f"Its slot comes free with the proof, which is looked for again and again; or on your word: {word}"]
    return []
