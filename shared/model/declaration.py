"""What a running program says of itself: turns, waits, its outcome, its usage, the inputs it took.

Each is a *declaration*: checked here, recorded under the fence while the program runs, and applied only when its host observes
the end of that segment. The tool belt and the protocol of agents are two doors to these same values.

Rule: requirements O01, O02, O06–O08, O15.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from shared.errors import DeclarationError, RefusedError
from shared.model.attempt import RetryHint
from shared.model.event import event_type_fault, word_fault
from shared.model.outcome import Outcome, OutcomeKind, Turn, WaitSpec
from shared.model.usage import UNITS_MAX, Usage, usage_of

BODY_BYTES_MAX = 64 * 1024
"""Of one declaration, as canonical JSON."""
DECLARATIONS_MAX = 256
"""Of one kind in one segment: turns, waits, outcomes. What is added up (usage) or kept as a set (consumed) has no such bound."""
KEY_CHARS_MAX = 64
SUMMARY_CHARS_MAX = 8_000
COMMENT_CHARS_MAX = 8_000
ARTIFACTS_MAX = 64
ARTIFACT_CHARS_MAX = 1_000
CONSUMED_MAX = 1_024
ASK_CHARS_MAX = 500
WAIT_MAX_US = 365 * 24 * 3_600_000_000
TURN_STATUS = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_DURATION = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h|d)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})")
_UNIT_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


class DeclarationKind(StrEnum):
    """What can be declared."""

    TURN = "turn"
    WAIT = "wait"
    OUTCOME = "outcome"
    USAGE = "usage"
    CONSUMED = "consumed"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration, checked.

    Attributes:
        key: Its identity within the attempt: the same key again is the same declaration.
        body: Canonical JSON text.
    """

    key: str
    kind: DeclarationKind
    body: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A declaration as the store has it.

    Attributes:
        seq: The changefeed entry that recorded it; events that a wait waits for come behind it.
        epoch: Under which it was recorded.
        applied_epoch: Under which the end was observed that it was applied with; None: not applied yet.
    """

    declaration: Declaration
    seq: int
    recorded_at_us: int
    epoch: int
    applied_epoch: int | None


def declaration_of(key: object, kind: object, raw: object) -> Declaration:
    """A declaration from what came through a door, strictly checked.

    Args:
        raw: The JSON value of its body.
    Raises:
        DeclarationError: it is none; nothing of it is kept.
    """
    if not isinstance(key, str) or len(key) > KEY_CHARS_MAX or _KEY.fullmatch(key) is None:
        raise DeclarationError(f"the key of a declaration is 1 to {KEY_CHARS_MAX} of A-Z a-z 0-9 . _ : -")
    if not isinstance(kind, str) or kind not in tuple(DeclarationKind):
        raise DeclarationError(f"a declaration is one of {', '.join(DeclarationKind)}")
    if not isinstance(raw, dict):
        raise DeclarationError(f"the body of a {kind} is an object")
    _refuse_unstorable(raw)
    fields = _CHECKS[DeclarationKind(kind)](_Fields(kind, raw))
    body = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if len(body.encode()) > BODY_BYTES_MAX:
        raise DeclarationError(f"a declaration is at most {BODY_BYTES_MAX} bytes (64 KiB)")
    return Declaration(key, DeclarationKind(kind), body)


def finite(text: str) -> float:
    """A number that can be written as JSON again. Raises ValueError: it would be read as infinity."""
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text[:40]} is too large a number")
    return found


def parse_json(text: bytes, *, number: Callable[[str], object] = finite) -> object:
    """One JSON value, strictly: UTF-8, no NaN, no name twice.

    Args:
        number: Reads what has a point or an exponent. Raises ValueError.
    Raises:
        DeclarationError: it is none.
    """
    try:
        return json.loads(
            text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant, parse_float=number
        )
    except UnicodeDecodeError:
        raise DeclarationError("it is no UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"it is no JSON: {str(error)[:100]}") from None


def usage_declared(declaration: Declaration) -> Usage:
    """What a declaration of usage says. Raises ValueError: it is none."""
    return Usage.from_plain(json.loads(declaration.body)["units"])


def inputs_declared(declaration: Declaration) -> tuple[int, ...]:
    """Numbers of the inputs that a declaration says were taken."""
    return tuple(json.loads(declaration.body)["inputs"])


def outcome_of(recorded: Iterable[Recorded]) -> Outcome:
    """What one segment's declarations come to, in the order in which they were recorded.

    The last turn counts; of waits and outcomes the last one; inputs are all kept. Usage is added up where it is recorded.
    """
    outcome: dict[str, object] = {}
    consumed: dict[int, None] = {}
    for one in recorded:
        fields = json.loads(one.declaration.body)
        match one.declaration.kind:
            case DeclarationKind.TURN:
                outcome["turn"] = Turn(fields["status"], fields["comment"])
            case DeclarationKind.WAIT:
                outcome = {"turn": outcome.get("turn"), "kind": OutcomeKind.WAITING, "wait": _wait(fields, one.seq)}
            case DeclarationKind.OUTCOME:
                outcome = {"turn": outcome.get("turn"), **_outcome(fields)}
            case DeclarationKind.CONSUMED:
                consumed |= dict.fromkeys(fields["inputs"])
    return Outcome(consumed=tuple(consumed), **outcome)  # type: ignore[arg-type]


def _outcome(fields: Mapping[str, object]) -> dict[str, object]:
    retry = fields.get("retry")
    return {
        "kind": OutcomeKind(str(fields["kind"])),
        "summary": fields["summary"],
        "artifacts": tuple(fields["artifacts"]),  # type: ignore[arg-type]
        "permanent": fields["permanent"],
        "retry": None if retry is None else RetryHint(retry["reset_at_us"]),  # type: ignore[index]
    }


def _wait(fields: Mapping[str, object], seq: int) -> WaitSpec:
    return WaitSpec(since_seq=seq, **fields)  # type: ignore[arg-type]


class _Fields:
    """The fields of a body: each is taken once, and what is left over is refused."""

    def __init__(self, kind: str, raw: Mapping[str, object]) -> None:
        self._kind = kind
        self._left = dict(raw)

    def take(self, name: str, default: object = None) -> object:
        found = self._left.pop(name, None)
        return default if found is None else found

    def text(self, name: str, chars_max: int, *, needed: bool = False) -> str:
        found = self.take(name, "")
        if not isinstance(found, str) or len(found) > chars_max:
            raise self.fault(f"`{name}` is text of at most {chars_max} characters")
        if needed and not found:
            raise self.fault(f"`{name}` is missing")
        return found

    def flag(self, name: str) -> bool:
        found = self.take(name, default=False)
        if not isinstance(found, bool):
            raise self.fault(f"`{name}` is true or false")
        return found

    def done(self) -> None:
        if self._left:
            raise self.fault(f"knows no `{min(self._left)}`")

    def fault(self, what: str) -> DeclarationError:
        return DeclarationError(f"{self._kind}: {what}")


def _check_turn(given: _Fields) -> dict[str, object]:
    status = given.text("status", 64, needed=True)
    if TURN_STATUS.fullmatch(status) is None:
        raise given.fault("`status` is a lower-case letter, then at most 63 of a-z 0-9 - _")
    comment = given.text("comment", COMMENT_CHARS_MAX)
    given.done()
    return {"status": status, "comment": comment}


def _check_wait(given: _Fields) -> dict[str, object]:
    event, timer, resume = given.take("event"), given.take("timer"), given.flag("resume")
    ask = given.text("ask", ASK_CHARS_MAX)
    given.done()
    if ask and event is None:
        raise given.fault("`ask` needs an `event`: whatever answers it")
    if event is None and timer is None:
        raise given.fault("names neither an event nor a time: nothing would ever end it")
    event_type, correlate = (None, None) if event is None else _awaited(given, event)
    after_us, until_at_us = (None, None) if timer is None else _time(given, timer)
    return {
        "event_type": event_type,
        "correlate": correlate,
        "after_us": after_us,
        "until_at_us": until_at_us,
        "resume": resume,
        **({"ask": ask} if ask else {}),
    }


def _awaited(given: _Fields, event: object) -> tuple[str, str | None]:
    if not isinstance(event, dict) or not set(event) <= {"type", "correlate"}:
        raise given.fault("`event` has a `type` and, if wanted, a `correlate`")
    kind, correlate = event.get("type"), event.get("correlate")
    fault = event_type_fault(kind)
    if fault is not None:
        raise given.fault(f"the type of an event {fault}")
    fault = None if correlate is None else word_fault(correlate)
    if fault is not None:
        raise given.fault(f"`correlate` {fault}")
    return str(kind), correlate


def _time(given: _Fields, timer: object) -> tuple[int | None, int | None]:
    """Elapsed microseconds, or microseconds of the wall clock."""
    if isinstance(timer, str):
        found = _DURATION.fullmatch(timer)
        if found is not None:
            after_us = int(found[1]) * _UNIT_US[found[2]]
            if after_us <= WAIT_MAX_US:
                return after_us, None
            raise given.fault("`timer` is at most 365d")
        at_us = _date_us(timer)
        if at_us is not None:
            return None, at_us
    raise given.fault('`timer` is a duration ("90s", "5m") or a time with its zone ("2030-01-31T08:00:00Z")')


def _check_outcome(given: _Fields) -> dict[str, object]:
    kind = given.text("kind", 20, needed=True)
    if kind == OutcomeKind.WAITING:
        raise given.fault("`waiting` needs what it waits for: declare a wait")
    if kind not in (OutcomeKind.COMPLETED, OutcomeKind.FAILED, OutcomeKind.HANDOFF):
        raise given.fault("`kind` is completed, failed or handoff")
    summary, permanent, retry = given.text("summary", SUMMARY_CHARS_MAX), given.flag("permanent"), given.take("retry")
    artifacts = given.take("artifacts", [])
    given.done()
    if not isinstance(artifacts, list) or len(artifacts) > ARTIFACTS_MAX:
        raise given.fault(f"`artifacts` is a list of at most {ARTIFACTS_MAX}")
    if not all(isinstance(one, str) and 0 < len(one) <= ARTIFACT_CHARS_MAX for one in artifacts):
        raise given.fault(f"each of `artifacts` is a reference of at most {ARTIFACT_CHARS_MAX} characters")
    if kind != OutcomeKind.FAILED and (permanent or retry is not None):
        raise given.fault("`permanent` and `retry` belong to a failure")
    if permanent and retry is not None:
        raise given.fault("what is permanent cannot be tried again: either `permanent` or `retry`")
    hint = None if retry is None else {"reset_at_us": _reset_us(given, retry)}
    return {"kind": kind, "summary": summary, "permanent": permanent, "artifacts": artifacts, "retry": hint}


def _reset_us(given: _Fields, retry: object) -> int | None:
    """UTC of the reset; None: it is not known. Whether it lies in the past is seen when it is applied. Rule: O10."""
    if retry == {"unknown": True}:
        return None
    if isinstance(retry, dict) and set(retry) == {"reset_at"} and isinstance(retry["reset_at"], str):
        at_us = _date_us(retry["reset_at"])
        if at_us is not None:
            return at_us
    raise given.fault('`retry` is {"reset_at": a time with its zone} or {"unknown": true}')


def _check_usage(given: _Fields) -> dict[str, object]:
    units = given.take("units")
    given.done()
    if not isinstance(units, dict) or not 0 < len(units) <= UNITS_MAX:
        raise given.fault(f"`units` has 1 to {UNITS_MAX} units with their amounts")
    try:
        return {"units": usage_of(units).to_plain()}
    except RefusedError as error:
        raise DeclarationError(f"usage: {error}", code=error.code) from None


def _check_consumed(given: _Fields) -> dict[str, object]:
    inputs = given.take("inputs")
    given.done()
    if not isinstance(inputs, list) or not 0 < len(inputs) <= CONSUMED_MAX:
        raise given.fault(f"`inputs` is a list of 1 to {CONSUMED_MAX} numbers")
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 < one < 2**63 for one in inputs):
        raise given.fault("each of `inputs` is the number of an input")
    return {"inputs": inputs}


_CHECKS = {
    DeclarationKind.TURN: _check_turn,
    DeclarationKind.WAIT: _check_wait,
    DeclarationKind.OUTCOME: _check_outcome,
    DeclarationKind.USAGE: _check_usage,
    DeclarationKind.CONSUMED: _check_consumed,
}


def _date_us(text: str) -> int | None:
    """Microseconds since 1970 of an ISO time that names its zone; None: it is none."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        since = datetime.fromisoformat(text).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):  # no day of a calendar, or one before the first or behind the last it has
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _refuse_unstorable(value: object) -> None:
    """Refuse text that no store or program can be given. Raises DeclarationError."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            if "\0" in one:
                raise DeclarationError("it holds a NUL character")
            if not one.isascii() and any("\ud800" <= sign <= "\udfff" for sign in one):
                raise DeclarationError("it holds half of a surrogate pair, which is no character")
        elif isinstance(one, dict):
            pending += [*one, *one.values()]
        elif isinstance(one, list):
            pending += one


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")
