"""What one key of `tenure.toml` may hold: checks of single values, and the types made of them.

Nothing is guessed or converted. A check raises `fault(...)`: one message for a person, to be read after the key's name,
and a hint where one is known.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Annotated, get_args

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from shared.config.arguments import argument_fault
from shared.config.durations import DURATION_MAX_US, LEASE_MAX_US, DurationError, parse_duration_us
from shared.config.sizes import SizeError, parse_size
from shared.ids import is_work_id
from shared.model import settings as values
from shared.model.usage import AMOUNT_MAX, PLACES, is_unit
from shared.secrets import SecretReferenceError, parse_reference

FAULT = "tenure"  # the kind of our own errors among pydantic's

_SHELL_SIGNS = re.compile(r"[|&;<>$`*?~]")


def fault(
    message: str, hint: str | None = None, *, key: tuple[str | int, ...] = (), unsupported: bool = False
) -> PydanticCustomError:
    """An error for a validator to raise.

    Args:
        message: What is wrong, to be read after the key's name.
        hint: What to do; None when the message says it all.
        key: Path of the key below the validated table that is at fault; the message then follows the table's name and
            says which. () = the validated value itself.
        unsupported: A later version may well take it.
    """
    context = {"fault": message, "hint": hint, "key": key, "unsupported": unsupported}
    return PydanticCustomError(FAULT, "{fault}", context)


def kind_of(value: object) -> str:
    """What a person would call a TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)[:40]
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:40]}…"'
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return "a date or time"


def likely(word: str, known: Iterable[str]) -> str | None:
    """The one of `known` that `word` was probably meant to be; None when none is near."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return near[0] if near else None


def _whole(smallest: int, *, zero: str = "unbounded") -> Callable[[object], int]:
    lowest = f"0 ({zero})" if smallest == 0 else str(smallest)

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise fault(f"must be a whole number, not {kind_of(value)}")
        if not smallest <= value <= values.LIMIT_MAX:
            raise fault(f"must be from {lowest} to {values.LIMIT_MAX}, not {kind_of(value)}")
        return value

    return check


def _duration(max_us: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, str):
            raise fault(f"must be a duration in quotes with its unit, e.g. {_meant(value)}, not {kind_of(value)}")
        try:
            return parse_duration_us(value, max_us=max_us)
        except DurationError as error:
            raise fault(error.reason, error.hint) from error

    return check


def _meant(value: object) -> str:
    """An example of a duration, with the number that was written where that makes one."""
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= values.LIMIT_MAX
    return f'"{value}s"' if whole else '"30s"'


def _size(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return 0
    if not isinstance(value, str):
        raise fault(f'must be a size in quotes with its unit, e.g. "64MiB", or 0 (unbounded), not {kind_of(value)}')
    try:
        return parse_size(value)
    except SizeError as error:
        raise fault(error.reason, error.hint) from error


def _decimal(value: object) -> Decimal:
    """A number as it is written, never as a float has it."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
        raise fault(f'must be a number, as in 20, 0.5 or "0.5", not {kind_of(value)}')
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise fault(f"must be a number, not {kind_of(value)}") from None
    if not amount.is_finite():
        raise fault(f"must be a number, not {kind_of(value)}")
    return amount


def _amount(value: object) -> Decimal:
    amount = _decimal(value)
    if not 0 < amount <= AMOUNT_MAX:
        raise fault(f"must be above 0 and at most {AMOUNT_MAX:f}, not {kind_of(value)}")
    if amount % PLACES:
        raise fault(f"has more than 12 decimals: {kind_of(value)}")
    return amount


def _fraction(value: object) -> Decimal:
    fraction = _decimal(value)
    if not 0 < fraction < 1:
        raise fault(f"must be a fraction of max between 0 and 1, as in 0.8, not {kind_of(value)}")
    return fraction


def _unit(value: object) -> str:
    text = _text(value)
    if not is_unit(text):
        raise fault(f"is no name for a unit: {kind_of(text)}", 'as in "usd", "tokens", "minutes", "turns"')
    return text


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise fault(f"must be a text in quotes, not {kind_of(value)}")
    return value


def _one_of(*allowed: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        text = _text(value)
        if text not in allowed:
            near = likely(text, allowed)
            choice = " or ".join(f'"{word}"' for word in allowed)
            raise fault(f"must be {choice}, not {kind_of(text)}", near and f'did you mean "{near}"?')
        return text

    return check


def _executor(value: object) -> str:
    text = _text(value)
    known = get_args(values.Executor)
    if text not in known:
        near = likely(text, known)
        raise fault(f"is unknown: {kind_of(text)}", near and f'did you mean "{near}"?')
    return text


def _argument(value: object) -> str:
    text = _text(value)
    reason = argument_fault(text)
    if reason is not None:
        raise fault(reason)
    return text


def _command(value: object) -> object:
    if isinstance(value, str):
        raise fault("must be a list with one text per argument", _as_list(value))
    if isinstance(value, list) and not value:
        raise fault("is empty", 'a program and its arguments, as in ["df", "-h"]')
    if isinstance(value, list) and value[0] == "":
        raise fault("begins with an empty text, where the program's name must be")
    return value


def _as_list(line: str) -> str | None:
    """The list form of a command line; through `sh -c` when it has signs that only a shell reads."""
    try:
        parts = ["sh", "-c", line] if _SHELL_SIGNS.search(line) else shlex.split(line)
    except ValueError:  # an open quote
        parts = ["sh", "-c", line]
    text = json.dumps(parts, ensure_ascii=False)
    return f"command = {text}" if parts and len(text) <= 120 else None


def _cwd(value: object) -> str:
    text = _text(value)
    if not text or "\0" in text:
        raise fault("must name a folder")
    if text.startswith("~"):
        raise fault(f"{kind_of(text)}: ~ is not expanded", "write the whole path")
    return text


def _path(value: object) -> str:
    text = _text(value)
    if not text.startswith("/") or "\0" in text:
        raise fault(f"must be a whole path, not {kind_of(text)}", 'it begins with "/"')
    if ".." in text.split("/"):  # where it leads depends on links, so it cannot be compared with others
        raise fault(f'must be a path without "..", not {kind_of(text)}')
    return "/" + os.path.normpath(text).lstrip("/")


def _secret(value: object) -> str:
    if not isinstance(value, str):  # never shown: it may be the secret itself
        raise fault("must be a text in quotes that says where the secret lies", '"file:/run/secrets/api_key"')
    try:
        parse_reference(value)
    except SecretReferenceError as error:
        raise fault(error.reason, error.hint) from None
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise fault(f"must be true or false, not {kind_of(value)}")
    return value


def _scope_name(name: str) -> str:
    if not values.is_scope_name(name):
        raise fault(
            "is no name for a scope", 'letters, digits, ".", "_" and "-", parts joined by "/", as in "ops/backup"'
        )
    return name


def _scope_of(value: object) -> str:
    return _scope_name(_text(value))


def _grant_name(name: str) -> str:
    if not values.is_binding_name(name):
        raise fault("is no name for a grant", 'a letter, then at most 62 letters, digits, ".", "_" and "-"')
    return name


def _binding_name(name: str) -> str:
    if is_work_id(name):
        raise fault("is no name for a binding: it reads as the id of a work")
    if not values.is_binding_name(name):
        raise fault("is no name for a binding", 'a letter, then at most 62 letters, digits, ".", "_" and "-"')
    return name


Limit = Annotated[int, BeforeValidator(_whole(0))]
Slots = Annotated[int, BeforeValidator(_whole(1))]
Count = Annotated[int, BeforeValidator(_whole(0, zero="never"))]
Whole = Annotated[int, BeforeValidator(_whole(1))]
Duration = Annotated[int, BeforeValidator(_duration(DURATION_MAX_US))]
LeaseDuration = Annotated[int, BeforeValidator(_duration(LEASE_MAX_US))]
Size = Annotated[int, BeforeValidator(_size)]
Switch = Annotated[bool, BeforeValidator(_switch)]
Text = Annotated[str, BeforeValidator(_text)]
Argument = Annotated[str, BeforeValidator(_argument)]
Command = Annotated[list[Argument], BeforeValidator(_command)]
Executor = Annotated[str, BeforeValidator(_executor)]
Folder = Annotated[str, BeforeValidator(_cwd)]
AbsolutePath = Annotated[str, BeforeValidator(_path)]
Secret = Annotated[str, BeforeValidator(_secret)]
Cause = Annotated[str, BeforeValidator(_one_of("failure", "timeout"))]
Replay = Annotated[str, BeforeValidator(_one_of("never", "safe"))]
OnInjectError = Annotated[str, BeforeValidator(_one_of("queue", "drop"))]
OnExhausted = Annotated[str, BeforeValidator(_one_of("fail", "hold"))]
Kind = Annotated[str, BeforeValidator(_one_of("run_once", "standing"))]
Amount = Annotated[Decimal, BeforeValidator(_amount)]
Fraction = Annotated[Decimal, BeforeValidator(_fraction)]
Unit = Annotated[str, BeforeValidator(_unit)]
PerWhom = Annotated[str, BeforeValidator(_one_of("work", "scope", "all"))]
Window = Annotated[str, BeforeValidator(_one_of("life", "day", "week"))]
KnownScope = Annotated[str, BeforeValidator(_scope_of)]
ScopeName = Annotated[str, AfterValidator(_scope_name)]
BindingName = Annotated[str, AfterValidator(_binding_name)]
GrantName = Annotated[str, AfterValidator(_grant_name)]
