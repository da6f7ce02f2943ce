"""`tenure events` and `tenure event publish`: the changefeed, and how to add to it. Rule: requirements O06, O08, D02; design §12."""

from __future__ import annotations

import json
import os

from shared.commands.arguments import Parser, add_json, whole_number
from shared.commands.json_views import Json
from shared.commands.open_home import OpenHome, opened
from shared.commands.render import iso, print_json
from shared.commands.request import cause_of
from shared.errors import IndeterminateError, UsageError
from shared.model.declaration import parse_json
from shared.model.event import DATA_BYTES_MAX, RESERVED_PREFIXES, NewEvent, event_type_fault, word_fault
from shared.model.instant import US_PER_MS
from shared.policy.submission import key_fault
from shared.store.contract import Event

PAGE = 500
LIMIT_MAX = 10_000
CURSOR_MAX = 10**18 - 1
POLL_US = 250 * US_PER_MS


def main(argv: list[str], *, home: str | None) -> int:
    """Show the changefeed, from a place on.

    Raises:
        UsageError: the command line is wrong.
    """
    parser = Parser("tenure events", "Show what happened, in order. The last number is where to go on: --after N.")
    parser.add_argument("--after", default="0", metavar="N", help="only what comes behind that entry")
    parser.add_argument("--limit", default="100", metavar="N", help="at most so many (100)")
    parser.add_argument("--follow", action="store_true", help="go on as more comes, until interrupted")
    add_json(parser)
    given = parser.parse(argv)
    after = whole_number(given.after, "--after", least=0, most=CURSOR_MAX)
    limit = whole_number(given.limit, "--limit", least=1, most=LIMIT_MAX)
    with opened(home) as door:
        if given.follow:
            _follow(door, after, as_json=given.json)
        found = door.store.read(lambda tx: tx.events(after=after, limit=limit))
        if given.json:
            cursor = found[-1].seq if len(found) == limit else None
            print_json({"items": [_view(event) for event in found], "next": cursor})
        else:
            for event in found:
                print(_line(event))
    return 0


def event(argv: list[str], *, home: str | None) -> int:
    """`tenure event publish`: accept an event; whoever waits for it is woken.

    Raises:
        UsageError: the command line is wrong; nothing was published. KeyReusedError: the key belongs to another event.
    """
    parser = Parser("tenure event", "Publish an event, and print its place in the changefeed.")
    parser.add_argument("verb", choices=("publish",), metavar="publish")
    parser.add_argument("type", metavar="TYPE", help="what happened: review.given")
    parser.add_argument("--correlate", metavar="K", help="what it is about; waits may ask for it")
    parser.add_argument("--key", metavar="K", help="the same key again: the same event, accepted once")
    parser.add_argument("--data", default="null", metavar="JSON", help="handed to whoever it wakes")
    add_json(parser)
    given = parser.parse(argv)
    wanted = _new_event(given.type, given.correlate, given.data)
    fault = None if given.key is None else key_fault(given.key)
    if fault is not None:
        raise UsageError(f"--key {fault}")
    with opened(home) as door:
        cause = cause_of(door.place.path, os.environ)
        try:
            seq = door.store.write(lambda tx: tx.publish(wanted, key=given.key, cause=cause))
        except IndeterminateError as error:
            asked = f"whether it was accepted: {door.command('events')}"
            error.hint = asked if given.key is None else "the same command again: its key lets it count once"
            raise
        if given.json:
            print_json({"seq": seq, "type": wanted.type, "correlate": wanted.correlate, "key": given.key})
        else:
            print(seq)
    return 0


def _new_event(kind: str, correlate: str | None, data: str) -> NewEvent:
    fault = event_type_fault(kind)
    if fault is not None:
        raise UsageError(f"the type of an event {fault}")
    if kind.startswith(RESERVED_PREFIXES):
        raise UsageError(f"{kind} is published by tenure alone", hint="choose another type")
    fault = None if correlate is None else word_fault(correlate)
    if fault is not None:
        raise UsageError(f"--correlate {fault}")
    try:
        found = parse_json(os.fsencode(data))
    except Exception as error:
        raise UsageError(f"--data: {error}", hint="text is JSON too: --data '\"done\"'") from error
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    if len(text.encode("utf-8", "surrogatepass")) > DATA_BYTES_MAX:
        raise UsageError(f"--data is more than {DATA_BYTES_MAX} bytes (64 KiB)")
    if any("\ud800" <= sign <= "\udfff" for sign in text) or "\\u0000" in text:
        raise UsageError("--data holds a NUL or half a surrogate pair, which no program can be given")
    return NewEvent(kind, correlate, text, f"uid {os.getuid()}")


def _follow(door: OpenHome, after: int, *, as_json: bool) -> None:
    """Print whatever comes, until interrupted."""
    while True:
        found = door.store.read(lambda tx, after=after: tx.events(after=after, limit=PAGE))  # type: ignore[misc]
        for one in found:
            print(json.dumps(_view(one), ensure_ascii=False) if as_json else _line(one), flush=True)
            after = one.seq
        if len(found) < PAGE:
            door.clock.wait(door.clock.now().mono_us + POLL_US, None)


def _view(event: Event) -> Json:
    return {
        "seq": event.seq,
        "at": iso(event.at_us),
        "kind": event.kind,
        "work": event.work_id,
        "attempt": event.attempt_id,
        "epoch": event.epoch,
        "data": dict(event.data),
    }


def _line(event: Event) -> str:
    about = event.attempt_id or event.work_id or "-"
    facts = " ".join(f"{name}={_word(value)}" for name, value in event.data.items() if value is not None)
    return f"{event.seq}  {iso(event.at_us)}  {event.kind}  {about}  {facts}".rstrip()


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return json.dumps(text) if any(sign.isspace() or not sign.isprintable() for sign in text) else text
