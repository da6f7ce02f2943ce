"""Published events: what a Work can wait for. They are entries of the changefeed with a type and, if wanted, a key.

Rule: requirements O06–O08.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

TURN_EVENT = "execution.turn"
TIMER_EVENT = "wait.elapsed"
HANDOFF_EVENT = "execution.handoff"
RESERVED_PREFIXES = ("execution.", "wait.", "budget.")
"""Types that only tenure itself publishes."""
DATA_BYTES_MAX = 64 * 1024
WORD_CHARS_MAX = 200
KEYS_MAX = 16
"""Correlation keys of one Work."""

_TYPE = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*")
TYPE_CHARS_MAX = 100


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that somebody publishes.

    Attributes:
        data: A JSON value as text, for whoever it wakes.
        by: Who published it, for the record.
    """

    type: str
    correlate: str | None
    data: str
    by: str


def event_type_fault(text: object) -> str | None:
    """Why this is no type of an event; None: it is one."""
    if not isinstance(text, str) or len(text) > TYPE_CHARS_MAX or _TYPE.fullmatch(text) is None:
        return f"is at most {TYPE_CHARS_MAX} of a-z 0-9 - _ with dots between, a letter first"
    return None


def word_fault(text: object) -> str | None:
    """Why this is no correlation key; None: it is one."""
    if not isinstance(text, str) or not text:
        return "is text, and not empty"
    if len(text) > WORD_CHARS_MAX:
        return f"is {len(text)} characters long, {WORD_CHARS_MAX} are allowed"
    if any(unicodedata.category(sign).startswith("C") for sign in text):
        return "holds a character that cannot be shown"
    return None
