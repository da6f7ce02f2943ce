"""The protocol of agents: what one line of a program means. Pure. Rule: docs/agent-protocol.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from shared.errors import DeclarationError
from shared.model.declaration import Declaration, declaration_of, usage_declared
from shared.model.stream import WHY_CHARS_MAX, Refusal, RefusalCode
from shared.model.usage import NO_USAGE, Usage, exact
from worker.agents.lines import Line

DECLARED = frozenset({"turn", "wait"})
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Heard:
    """What one line says.

    Attributes:
        declarations: Turns, waits, outcomes.
        unknown: Its type, when this version does not know it; it is kept in the output, counted, and means nothing else.
    """

    declarations: tuple[Declaration, ...] = ()
    consumed: tuple[int, ...] = ()
    declined: tuple[str, ...] = ()
    unknown: str | None = None
    usage: Usage = NO_USAGE


NOTHING = Heard()


class Language(Protocol):
    """How a program's messages are understood."""

    def __call__(self, message: Mapping[str, object], key: str) -> Heard:
        """Understand one message.

        Args:
            key: Begins the keys of whatever it declares; the same for the same line, whoever reads it.
        Raises:
            DeclarationError: it is of a known type, and wrong.
        """


def hear(line: Line, key: str, language: Language) -> Heard | Refusal:
    """What a line means, or why it was not taken."""
    if b"\0" in line.data:
        return Refusal(line.number, RefusalCode.NUL, "it holds a NUL byte")
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError:
        return Refusal(line.number, RefusalCode.NOT_UTF8, "it is no UTF-8")
    if not text.strip():
        return NOTHING
    try:
        message = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=exact)
    except (ValueError, RecursionError):
        return Refusal(line.number, RefusalCode.NOT_JSON, "it is no JSON")
    fault = _unstorable(message)
    if fault is not None:
        return Refusal(line.number, fault, "it holds text that no store can keep")
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return Refusal(line.number, RefusalCode.INVALID, "a message is an object with a `type`")
    try:
        return language(message, f"{key}.{line.number}")
    except DeclarationError as error:
        return Refusal(line.number, RefusalCode.INVALID, str(error)[:WHY_CHARS_MAX])


def understand(message: Mapping[str, object], key: str) -> Heard:
    """See `Language`: the protocol of agents."""
    kind = str(message["type"])
    body = {name: value for name, value in message.items() if name != "type"}
    if kind in DECLARED:
        return Heard(declarations=(declaration_of(key, kind, body),))
    match kind:
        case "result":
            if "kind" in body:
                raise DeclarationError("result: knows no `kind`; it has an `outcome`")
            body["kind"] = body.pop("outcome", None)
            return Heard(declarations=(declaration_of(key, "outcome", body),))
        case "usage":
            return Heard(usage=usage_declared(declaration_of(key, kind, body)))
        case "consumed":
            checked = json.loads(declaration_of(key, kind, body).body)
            return Heard(consumed=tuple(checked["inputs"]))
        case "not_accepting":
            return Heard(declined=(_intent_of(body),))
        case "log":
            return NOTHING
        case _:
            return Heard(unknown=kind)


def _intent_of(body: Mapping[str, object]) -> str:
    name = body.get("id")
    if set(body) != {"id"} or not isinstance(name, str) or not 0 < len(name) <= 40:
        raise DeclarationError(
            "not_accepting: `id` is the id of the input that came with it, and nothing else is there"
        )
    return name


def _unstorable(value: object) -> RefusalCode | None:
    """What no store can keep anywhere in a message: NUL characters, halves of surrogate pairs."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            if "\0" in one:
                return RefusalCode.NUL
            if not one.isascii() and any(ord(sign) in _SURROGATES for sign in one):
                return RefusalCode.SURROGATE
        elif isinstance(one, dict):
            pending += [*one, *one.values()]
        elif isinstance(one, list):
            pending += one
    return None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")
