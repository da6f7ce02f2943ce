"""`tenure attempt reconcile`: what became of an attempt is unknown; show the evidence, and let a person settle it.

Without a word on how it ended nothing is changed. With one, that is kept as the word of who gave it, and why; it frees no slot by
itself: only a proof of the stop does. Rule: requirements V03, M02, X03; design §11.
"""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace

from shared.commands.arguments import Parser, add_json, attempt_named, reason_given, whole_number
from shared.commands.attempt_story import Story, read_story
from shared.commands.attempt_text import live_lines
from shared.commands.json_views import Json
from shared.commands.live_evidence import LiveEvidence, evidence_view, look_at
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import Ink, escaped, moment, print_json, quoted, table
from shared.commands.work_facts import worker_of
from shared.errors import RefusedError, UsageError
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, Ending, Exclusion, FailureClass
from shared.model.work import WorkChange, WorkState
from shared.policy.settle import ending_of_status
from shared.store.contract import Tx
from shared.store.settling import change_after

_PROG = "tenure attempt reconcile"
RUN_AGAIN = WorkChange(WorkState.READY, None, None, 0)
"""A person who says "again" is not held to how often tenure would try by itself."""
_EPILOG = """\
Without --finished, --signal, --failed or --again it only shows what is known.
A word frees no slot: that takes the proof of the stop, or `tenure attempt confirm-stopped`."""


def reconcile(argv: list[str], home: str | None) -> int:
    """Show what is known of an attempt whose outcome is not, or settle it.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such attempt.
        RefusedError: it does not wait for a person, or its process lives; nothing was changed.
    """
    parser = Parser(_PROG, "What became of an attempt is unknown: look at the evidence, then settle it.", _EPILOG)
    parser.add_argument("attempt", nargs="?", metavar="A", help="its id: w41.2")
    parser.add_argument("--finished", metavar="CODE", help="it ended with this exit code; 0 is success")
    parser.add_argument("--signal", metavar="N", help="this signal ended it")
    parser.add_argument("--failed", action="store_true", help="it failed; no more is known")
    parser.add_argument("--again", action="store_true", help="run it again, as a new attempt, once its stop is proven")
    parser.add_argument("--reason", metavar="TEXT", help="how you know; kept in its history")
    add_json(parser)
    given = parser.parse(argv)
    attempt_id = attempt_named(given.attempt, _PROG)
    ending = _ending(given)
    reason = None if ending is None else reason_given(given.reason, _PROG)
    if ending is None and given.reason is not None:
        raise UsageError(
            f"{_PROG}: a reason for what?", hint="--finished CODE, --signal N, --failed or --again says it"
        )
    by = f"uid {os.getuid()} via attempt reconcile"

    with opened(home) as door:
        story = door.store.read(lambda tx: read_story(tx, attempt_id))
        _refuse_settled(story, door)
        seen = look_at(door, story.attempt)
        if ending is not None and reason is not None:
            _refuse_alive(story, seen, door)
            epoch = story.attempt.epoch
            told = replace(ending, why=f"settled by {by}: {reason}")
            door.store.write(lambda tx: _settle(tx, attempt_id, epoch, told, again=given.again, by=by, reason=reason))
            story = door.store.read(lambda tx: read_story(tx, attempt_id))
        if given.json:
            print_json(_view(story, seen, by=None if ending is None else by, reason=reason))
        elif ending is None:
            print("\n".join(_open_lines(story, seen, door, Ink.of(os.environ))))
        else:
            print("\n".join(_settled_lines(story, door, again=given.again)))
    return 0


def _ending(given: argparse.Namespace) -> Ending | None:
    """How it ended, by the person's word; None when none was given."""
    words = [given.finished is not None, given.signal is not None, given.failed, given.again]
    if sum(words) > 1:
        raise UsageError(f"{_PROG}: it can end in one way only", hint="--finished, --signal, --failed or --again")
    if given.finished is not None:
        return ending_of_status(whole_number(given.finished, "--finished", least=0, most=255), None)
    if given.signal is not None:
        return ending_of_status(-whole_number(given.signal, "--signal", least=1, most=int(signal.SIGRTMAX)), None)
    if given.failed:
        return Ending(AttemptState.FAILED, None, FailureClass.KNOWN, "it failed, as a person says", None, "")
    if given.again:
        return Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, "its outcome stays unknown", None, "")
    return None


def _refuse_settled(story: Story, door: OpenHome) -> None:
    attempt = story.attempt
    if attempt.state is AttemptState.RECOVERY_REQUIRED:
        return
    told = f"it has ended: {attempt.state}" if attempt.ended_at_us is not None else f"it is {attempt.state}"
    hint = f"see: {door.command(f'attempt show {attempt.id}')}"
    raise RefusedError(f"{attempt.id} does not wait for a person: {told}", hint=hint)


def _refuse_alive(story: Story, seen: LiveEvidence, door: OpenHome) -> None:
    if seen.lives is None:
        return
    hint = f"let it end, or end it: {door.command(f'attempt cancel {story.attempt.id}')}"
    raise RefusedError(f"{story.attempt.id} has not ended: {seen.lives}", hint=hint)


def _settle(tx: Tx, attempt_id: AttemptId, epoch: int, ending: Ending, *, again: bool, by: str, reason: str) -> None:
    change = RUN_AGAIN if again else change_after(tx, attempt_id, ending)
    tx.reconcile(attempt_id, expected_epoch=epoch, ending=ending, change=change, by=by, reason=reason)


def _view(story: Story, seen: LiveEvidence, *, by: str | None, reason: str | None) -> Json:
    attempt = story.attempt
    return {
        "id": attempt.id,
        "work": story.work.id,
        "work_state": story.work.state,
        "state": attempt.state,
        "epoch": attempt.epoch,
        "error": attempt.error,
        "exclusion": attempt.exclusion,
        "exclusion_proof": attempt.exclusion_proof,
        "evidence": evidence_view(seen),
        "settled": by is not None,
        "by": by,
        "reason": reason,
    }


def _open_lines(story: Story, seen: LiveEvidence, door: OpenHome, ink: Ink) -> list[str]:
    attempt = story.attempt
    rows = [["why", escaped(attempt.error or "no more is known")]]
    if story.facts.command is not None:
        rows.append(["command", quoted(story.facts.command)])
    rows.append(
        ["started", f"{moment(attempt.started_at_us)}; held last by {worker_of(story.facts)}, epoch {attempt.epoch}"]
    )
    if attempt.exclusion_proof is not None:
        rows.append(["stop", f"proven by {attempt.exclusion_proof} when it was left to a person"])
    text = [
        f"{ink.strong(attempt.id)}  {ink.state(attempt.state)}",
        *table(rows, indent="  "),
        "",
        *live_lines(seen, ink),
        "",
    ]
    logs = door.command(f"work logs {story.work.id} --attempt {attempt.number}")
    text.append(f"What it wrote: {logs}")
    if seen.lives is not None:
        return [*text, f"It lives. Let it end, or end it: {door.command(f'attempt cancel {attempt.id}')}"]
    ways = [
        ["--finished CODE", "it ended with this exit code; 0 is success"],
        ["--signal N", "this signal ended it"],
        ["--failed", "it failed"],
        ["--again", "run it again, as a new attempt"],
    ]
    settle = door.command(f'attempt reconcile {attempt.id} --reason "…"')
    return [*text, f"Settle it by your word: {settle}  with one of", *table(ways, indent="  ")]


def _settled_lines(story: Story, door: OpenHome, *, again: bool) -> list[str]:
    attempt, work = story.attempt, story.work
    free = attempt.exclusion is Exclusion.RELEASED
    slot = (
        f"its slot is free, proof {attempt.exclusion_proof}" if free else "its slot stays held until its stop is proven"
    )
    text = [f"{attempt.id} {attempt.state}, on your word; {slot}"]
    if again:
        when = "next" if free else "once the stop is proven"
        text.append(f"{work.id} is {work.state}: attempt {attempt.number + 1} follows {when}")
    else:
        text.append(f"{work.id} is {work.state}")
    if not free:
        text.append(f"see: {door.command(f'attempt show {attempt.id}')}")
    return text
