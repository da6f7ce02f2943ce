"""All that is known about one attempt, read in one snapshot: for programs as one object, for people by `attempt_text`.

Environment values are the ones that were stored in clear; of a secret only the reference is known. Rule: requirements V02, E18.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from shared.commands.intent_text import stream_view
from shared.commands.json_views import Json, cancellation_view
from shared.commands.render import iso, masked, milliseconds
from shared.commands.work_facts import AttemptFacts, attempt_facts, attempt_view, snapshot_if_readable
from shared.errors import NotFoundError
from shared.ids import AttemptId, work_of
from shared.model.attempt import Attempt, AttemptState, Snapshot
from shared.model.cancel import Cancellation
from shared.model.instant import Instant
from shared.model.settings import Exponential
from shared.model.stream import Stream
from shared.model.work import Work
from shared.policy.lease import budget_left_us
from shared.store.contract import Event, ReadTx

EVENTS_MAX = 500


@dataclass(frozen=True, slots=True)
class Story:
    """One attempt.

    Attributes:
        snapshot: What it pinned; None when the store lost it, or it cannot be read.
        stream: What was read of an agent's output; None: nothing, as of every other program.
        cancellations: That ended this attempt, or wait for its stop.
        events: Of this attempt, in order; the last `EVENTS_MAX`.
        now: When all this was read.
    """

    work: Work
    facts: AttemptFacts
    snapshot: Snapshot | None
    stream: Stream | None
    cancellations: tuple[Cancellation, ...]
    events: tuple[Event, ...]
    now: Instant

    @property
    def attempt(self) -> Attempt:
        """The attempt itself."""
        return self.facts.attempt

    @property
    def budget_left_us(self) -> int | None:
        """What is left of its timeout now; None once it has ended, or while it waits for a person."""
        attempt = self.attempt
        if attempt.ended_at_us is not None or attempt.state is AttemptState.RECOVERY_REQUIRED:
            return None
        return budget_left_us(attempt, self.now)

    @property
    def deadline_at_us(self) -> int | None:
        """When its time is over, if nothing parks it; None when nothing counts down."""
        left = self.budget_left_us
        return None if left is None or self.attempt.state is AttemptState.PARKED else self.now.wall_us + left


def read_story(tx: ReadTx, attempt_id: AttemptId) -> Story:
    """Read it.

    Raises:
        NotFoundError: there is no such attempt.
    """
    attempt = tx.attempt(attempt_id)
    work = tx.work_outline(work_of(attempt_id))
    if attempt is None or work is None:
        raise no_such_attempt(tx, attempt_id)
    return Story(
        work=work,
        facts=attempt_facts(tx, attempt),
        snapshot=snapshot_if_readable(tx, attempt_id),
        stream=tx.stream(attempt_id),
        cancellations=tuple(each for each in tx.cancellations(work.id) if each.attempt_id == attempt_id),
        events=tuple(tx.attempt_events(attempt_id, limit=EVENTS_MAX)),
        now=tx.now,
    )


def no_such_attempt(tx: ReadTx, attempt_id: AttemptId) -> NotFoundError:
    """The refusal, which says what there is instead."""
    work = tx.work_outline(work_of(attempt_id))
    if work is None:
        return NotFoundError(
            f"there is no work {work_of(attempt_id)} in this home", hint="`tenure work list` shows what there is"
        )
    used = work.attempts_used
    told = "was never started" if not used else f"has {used} attempt{'' if used == 1 else 's'}"
    return NotFoundError(f"there is no attempt {attempt_id}: {work.id} {told}", hint=f"`tenure work show {work.id}`")


def story_view(story: Story) -> Json:
    """For programs; keys of an attempt in `work show` mean the same here."""
    return {
        "work": story.work.id,
        **attempt_view(story.facts, story.now),
        "budget_left_ms": milliseconds(story.budget_left_us),
        "deadline": iso(story.deadline_at_us),
        "pinned": None if story.snapshot is None else pinned_view(story.snapshot, story.work),
        "stream": stream_view(story.stream),
        "cancellations": [cancellation_view(record) for record in story.cancellations],
        "events": [event_view(event) for event in story.events],
    }


def pinned_view(snapshot: Snapshot, work: Work) -> Json:
    """What an attempt pinned at its claim."""
    sandbox = snapshot.sandbox
    return {
        "generation": snapshot.generation,
        "binding": snapshot.binding,
        "executor": snapshot.executor,
        "registration": snapshot.registration,
        "isolated": snapshot.isolated,
        "command": list(snapshot.command),
        "cwd": snapshot.cwd,
        "env": dict(masked(snapshot.env, dict(work.env))),
        "secrets": dict(snapshot.secrets),
        "grants": list(snapshot.grants),
        "sandbox": None if sandbox is None else {key: _plain(value) for key, value in asdict(sandbox).items()},
        "timeout_ms": milliseconds(snapshot.timeout_us),
        "grace_ms": milliseconds(snapshot.grace_us),
        "retry_delays_ms": [milliseconds(delay) for delay in snapshot.retry_delays_us],
        "retry_exponential": _bounds(snapshot.retry_exponential),
        "retry_on": list(snapshot.retry_on),
        "retry_exhausted": snapshot.retry_exhausted,
        "replay": snapshot.replay,
        "output_max_bytes": snapshot.output_max_bytes,
        "inputs": list(snapshot.inputs),
        "trigger": snapshot.trigger,
        "idle_ms": milliseconds(snapshot.idle_us),
        "on_inject_error": snapshot.on_inject_error,
        "continue": snapshot.continues,
        "causal_depth": snapshot.depth_max,
    }


def event_view(event: Event) -> Json:
    """One entry of the changefeed."""
    return {
        "seq": event.seq,
        "at": iso(event.at_us),
        "kind": event.kind,
        "work": event.work_id,
        "attempt": event.attempt_id,
        "epoch": event.epoch,
        "data": dict(event.data),
    }


def _bounds(drawn: Exponential | None) -> Json | None:
    """The bounds of waits that are drawn."""
    if drawn is None:
        return None
    return {
        "base_ms": milliseconds(drawn.base_us),
        "max_ms": milliseconds(drawn.max_us),
        "attempts": drawn.attempts,
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
