"""`tenure attempt confirm-stopped`: a person's word in place of a proof that cannot be had.

The word holds for exactly one epoch of an attempt that has ended; it is kept with who gave it and why. What it overrides is shown.

Rule: requirements R11, X03; design §7 ("an operator may confirm with a reason").
"""

from __future__ import annotations

import os

from shared.commands.arguments import Parser, add_json, attempt_named, reason_given, whole_number
from shared.commands.attempt_story import Story, read_story
from shared.commands.attempt_text import live_lines, order_lines
from shared.commands.json_views import Json, stop_order_view
from shared.commands.live_evidence import LiveEvidence, evidence_view, look_at
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import Ink, print_json
from shared.errors import RefusedError, UsageError
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, Exclusion
from shared.store.contract import PERSON, Tx

EPOCH_MAX = 10**9


def confirm_stopped(argv: list[str], home: str | None) -> int:
    """Free the slot of an ended attempt whose stop cannot be proven.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such attempt.
        RefusedError: it is at another epoch, has not ended, or is released already; nothing was changed.
    """
    prog = "tenure attempt confirm-stopped"
    parser = Parser(
        prog,
        "Free the slot of an attempt that has ended, on your word that nothing of it is left.",
        "Use it where the proof cannot come: a process that cannot be killed, a host that is gone. A proof needs no word:\n"
        "while a worker is up it is looked for again and again.",
    )
    parser.add_argument("attempt", nargs="?", metavar="A", help="its id: w41.2")
    parser.add_argument("--epoch", metavar="N", help="the epoch you looked at: `tenure attempt show` names it")
    parser.add_argument("--reason", metavar="TEXT", help="why you are sure; kept in its history")
    add_json(parser)
    given = parser.parse(argv)
    attempt_id = attempt_named(given.attempt, prog)
    if given.epoch is None:
        hint = f"`tenure attempt show {attempt_id}` names it, so that your word cannot hit what you have not seen"
        raise UsageError(f"{prog}: of which epoch? Say it with --epoch N", hint=hint)
    epoch = whole_number(given.epoch, "--epoch", least=1, most=EPOCH_MAX)
    reason = reason_given(given.reason, prog)
    by = f"uid {os.getuid()} via attempt confirm-stopped"
    with opened(home) as door:
        before = door.store.read(lambda tx: read_story(tx, attempt_id))
        _refuse(before, epoch, door)
        seen = look_at(door, before.attempt)
        door.store.write(lambda tx: _confirm(tx, attempt_id, epoch, by=by, reason=reason))
        after = door.store.read(lambda tx: read_story(tx, attempt_id))
        if given.json:
            print_json(_view(after, before, seen, by=by, reason=reason))
        else:
            print("\n".join(_lines(before, seen, Ink.of(os.environ))))
    return 0


def _refuse(story: Story, epoch: int, door: OpenHome) -> None:
    attempt = story.attempt
    show = door.command(f"attempt show {attempt.id}")
    if attempt.epoch != epoch:
        message = f"{attempt.id} is at epoch {attempt.epoch}, not {epoch}: it is not what you looked at"
        raise RefusedError(message, hint=f"look again: {show}")
    if attempt.state is AttemptState.RECOVERY_REQUIRED:
        hint = f"settle it first: {door.command(f'attempt reconcile {attempt.id}')}"
        raise RefusedError(f"{attempt.id} has not ended: what became of it is unknown", hint=hint)
    if attempt.ended_at_us is None:
        hint = f"end it first: {door.command(f'attempt cancel {attempt.id}')}"
        raise RefusedError(f"{attempt.id} has not ended: it is {attempt.state}", hint=hint)
    if attempt.exclusion is Exclusion.RELEASED:
        how = (
            "so by a person's word"
            if attempt.exclusion_proof == PERSON
            else f"proven stopped: {attempt.exclusion_proof}"
        )
        raise RefusedError(f"the slot of {attempt.id} is free already; it is {how}", hint=show)


def _confirm(tx: Tx, attempt_id: AttemptId, epoch: int, *, by: str, reason: str) -> None:
    attempt = tx.attempt(attempt_id)
    if attempt is not None and attempt.exclusion is Exclusion.RELEASED:
        raise RefusedError(f"{attempt_id} was proven stopped meanwhile: {attempt.exclusion_proof}")
    tx.confirm_stopped(attempt_id, expected_epoch=epoch, proof=PERSON, by=by, reason=reason)


def _view(after: Story, before: Story, seen: LiveEvidence, *, by: str, reason: str) -> Json:
    attempt, order = after.attempt, before.facts.stop_order
    return {
        "id": attempt.id,
        "epoch": attempt.epoch,
        "state": attempt.state,
        "exclusion": attempt.exclusion,
        "exclusion_proof": attempt.exclusion_proof,
        "by": by,
        "reason": reason,
        "overridden": {
            "stop_order": None if order is None else stop_order_view(order),
            "evidence": evidence_view(seen),
        },
    }


def _lines(before: Story, seen: LiveEvidence, ink: Ink) -> list[str]:
    attempt, order = before.attempt, before.facts.stop_order
    text = [f"{ink.strong(attempt.id)} counts as stopped, on your word for epoch {attempt.epoch}; its slot is free"]
    if seen.lives is not None:
        text.append(ink.strong(f"though {seen.lives}"))
    if order is not None:
        text += [ink.faint("what this overrides"), *order_lines(order)]
    return [*text, *live_lines(seen, ink)]
