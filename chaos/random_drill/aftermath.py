"""Everything that is known after a random drill: the history that all drills have, and what this one knows besides."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.harness import Harness, StillWaitingError
from chaos.history import History
from chaos.notes import read_notes
from chaos.random_drill.controls import Controls
from chaos.random_drill.load import PlannedJob
from chaos.random_drill.operator import Answer, Operator
from chaos.random_drill.processes import Blow
from chaos.random_drill.roster import Admission
from chaos.random_drill.watch import Watch, lives
from chaos.recording import Known, output_in, record
from chaos.seen import Fault, Seen
from chaos.witness import Mark
from shared.ids import AttemptId, WorkId
from shared.model.attempt import Attempt
from shared.model.work import Work
from shared.process.ring import BLOCK_BYTES, UNCAPPED
from shared.store.contract import ReadTx

LEFT_BOUND_S = 10.0
"""For processes of tenure that are about to end: a zygote whose worker was killed, say."""
FOR_A_PERSON = "attempt.recovery_required|stop.unproven"
"""Errors that tenure may log here: a person must act, and the drill's operator does."""
_ERROR = re.compile(rf"^\S+ (?:error|fatal) (?!(?:{FOR_A_PERSON}) ).*|^\s*Traceback .*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What the checks of a random drill look at.

    Attributes:
        planned: By number: everything that was to be handed in.
        admissions: By number: what is known of whether it was taken.
        jobs: The planned job behind each Work.
        answers: What `tenure run` said of jobs it followed.
        troubles: Commands that said what they may not say.
        broken_outputs: What is wrong with what is kept of an attempt's output, where something is.
        left: Processes that were still there at rest, each described.
        not_over: What was not over within the bound; empty when all was.
        is_cut_short: Whoever was asked for had left before the end: what failed for good was not tried again any more.
        blows: The harm that was done, in order.
    """

    history: History
    planned: Mapping[int, PlannedJob]
    admissions: Mapping[int, Admission]
    jobs: Mapping[WorkId, PlannedJob]
    answers: tuple[Answer, ...]
    troubles: tuple[str, ...]
    broken_outputs: Mapping[AttemptId, str]
    left: tuple[str, ...]
    not_over: str
    blows: tuple[Blow, ...]
    is_cut_short: bool = False


def look_back(harness: Harness, operator: Operator, controls: Controls, watch: Watch, not_over: str) -> Aftermath:
    """Read and see everything, at rest."""
    roster = operator.roster
    works = harness.read(lambda tx: {work.id: work for work in all_works(tx)})
    jobs = roster.found(works.values())
    seen = Seen(
        faults=(*watch.processes.faults, *logged_errors(harness.logs)),
        looks=tuple(watch.looks),
        accepted=harness.read(controls.accepted),
        notes=read_notes(operator.notes),
    )
    known = Known(roster.jobs(works), harness.witness.lines(), harness.config, seen)
    history = record(harness.store, output_in(harness.home.attempts), known)
    history = replace(history, lives=lives(watch.processes, history.events))
    broken = {}
    for attempt in history.attempts.values():
        job = jobs.get(attempt.work_id)
        if roster.disk_fills or job is None or job.recipe.manner is not None or attempt.pin is None:
            continue
        if ran_by_itself(history, attempt):
            directory = harness.home.attempts / attempt.pin.directory
            wrong = _broken(directory, job, shim_killed=attempt.work_id in roster.shims_killed)
            if wrong:
                broken[attempt.id] = wrong
    return Aftermath(
        history=history,
        planned=roster.planned,
        admissions=roster.admissions,
        jobs=jobs,
        answers=tuple(operator.answers),
        troubles=tuple(operator.troubles),
        broken_outputs=broken,
        left=() if not_over else _left(harness),
        not_over=not_over,
        blows=tuple(watch.processes.blows),
        is_cut_short=controls.is_over,
    )


def ran_by_itself(history: History, attempt: Attempt) -> bool:
    """Whether it came to its last line, so that everything it printed is there."""
    return any(line.attempt_id == attempt.id for line in history.lines if line.mark is Mark.END)


def broken_output(
    kept: bytes, printed: bytes, max_bytes: int, *, capped: bool, block_bytes: int = BLOCK_BYTES
) -> str | None:
    """What is wrong with what is kept of one stream; None: nothing.

    The tail is kept, the head may have been dropped: then it reads as zeros, a block at a time.

    Args:
        capped: Whoever keeps it to its cap lived to the end, so that no more than the cap is left.
    """
    if len(kept) != len(printed):
        return f"{len(kept)} bytes long, {len(printed)} were printed"
    head = len(kept) - len(kept.lstrip(b"\0"))
    if head > max(0, len(printed) - max_bytes):
        return f"{head} bytes are dropped, {len(printed)} were printed and {max_bytes} are kept"
    if kept[head:] != printed[head:]:
        return "other bytes than were printed"
    if capped and len(printed) - head > max_bytes + block_bytes:
        return f"{len(printed) - head} bytes are kept, more than {max_bytes}"
    return None


def _broken(directory: Path, job: PlannedJob, *, shim_killed: bool) -> str | None:
    capped = not shim_killed and UNCAPPED.encode() not in _read(directory / "exit.json")
    block_bytes = max(BLOCK_BYTES, directory.stat().st_blksize)
    for name, printed in zip(("out", "err"), job.prints, strict=True):
        kept = _read(directory / name)
        wrong = broken_output(kept, printed, job.output_max_bytes, capped=capped, block_bytes=block_bytes)
        if wrong:
            return f"{name}: {wrong}"
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def all_works(tx: ReadTx) -> Iterator[Work]:
    """Every Work, page by page."""
    after = 0
    while page := tx.works(states=(), after=after, limit=500):
        yield from page
        after = page[-1].number


def logged_errors(folder: Path) -> list[Fault]:
    """What coordinators and workers logged as an error, or did not catch."""
    faults = []
    for log in sorted(folder.glob("*.log")):
        if not re.fullmatch(r"\d+-(coordinator|worker-\d+)", log.stem):
            continue
        text = log.read_text(encoding="utf-8", errors="replace")
        found = _ERROR.search(text)
        if found is not None:
            faults.append(Fault(log.stem, found.group().strip(), text[found.start() :][:2_000]))
    return faults


def _left(harness: Harness) -> tuple[str, ...]:
    """Who is there below this process that is neither tenure's nor was before; waits for what is about to end."""
    try:
        harness.wait(lambda: not harness.strangers(), "only tenure's own processes are left", LEFT_BOUND_S)
    except StillWaitingError:
        pass
    return tuple(_describe(pid) for pid in harness.strangers())


def _describe(pid: int) -> str:
    words = b""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
    return f"{pid}: {words.decode(errors='replace')[:120]}"
