"""The history around a finding, in lines for a person: events, segments, the witness, and what logs say of the Work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from chaos.checks import Finding
from chaos.random_drill.aftermath import Aftermath
from shared.commands.render import iso
from shared.ids import WorkId
from shared.model.instant import US_PER_S
from shared.store.contract import Event

WORKS_MAX = 2
EVENTS_MAX = 40
LOG_LINES_MAX = 20
BLOWS_MAX = 15
BLOWS_AROUND_US = 2 * US_PER_S


def told(finding: Finding, after: Aftermath, logs: Path) -> list[str]:
    """What is known of the Works that a finding names; nothing when it names none."""
    named = [WorkId(word) for word in dict.fromkeys(re.findall(r"\bw[1-9]\d*\b", finding.what))]
    known = [work_id for work_id in named if work_id in after.history.works][:WORKS_MAX]
    return [f"  {line}" for work_id in known for line in _work(work_id, after, logs)]


def _work(work_id: WorkId, after: Aftermath, logs: Path) -> Iterator[str]:
    history = after.history
    job, work = after.jobs.get(work_id), history.works[work_id]
    yield f"{work_id}: {work.state}{f' ({work.reason})' if work.reason else ''}; planned: {job}"
    for attempt in history.attempts_of(work_id):
        yield f"{attempt.id}: {attempt.state}, {attempt.exclusion} {attempt.exclusion_proof}, status {attempt.exit_status}"
        for segment in history.segments[attempt.id]:
            marks = " ".join(word for word in ("recovered", "relaunched") if getattr(segment, word))
            yield f"  epoch {segment.epoch} {segment.worker} invoke {segment.invoke} {marks}"
    events = [event for event in history.events if _concerns(event, work_id, after)]
    for event in events[-EVENTS_MAX:]:
        yield f"  {event.seq} {iso(event.at_us)} {event.kind} epoch {event.epoch} {dict(event.data)}"
    yield from (
        f"  witness: {line.mark} {line.attempt_id} epoch {line.epoch} pid {line.pid}"
        for line in history.lines
        if line.work_id == work_id
    )
    if events:
        began, ended = events[0].at_us - BLOWS_AROUND_US, events[-1].at_us + BLOWS_AROUND_US
        for blow in [blow for blow in after.blows if began <= blow.at_us <= ended][:BLOWS_MAX]:
            yield f"  harm: {iso(blow.at_us)} {blow.what} {blow.who} {blow.pid or ''}"
    yield from _log_lines(work_id, logs)


def _concerns(event: Event, work_id: WorkId, after: Aftermath) -> bool:
    attempt = None if event.attempt_id is None else after.history.attempts.get(event.attempt_id)
    return event.work_id == work_id or (attempt is not None and attempt.work_id == work_id)


def _log_lines(work_id: WorkId, logs: Path) -> Iterator[str]:
    named = re.compile(rf"\b{work_id}\b")
    found = []
    for log in sorted(logs.glob("*.log")):
        text = log.read_text(encoding="utf-8", errors="replace")
        found += [f"  {log.stem}: {line}" for line in text.splitlines() if named.search(line)]
    yield from found[-LOG_LINES_MAX:]
