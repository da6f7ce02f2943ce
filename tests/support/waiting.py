"""The only place where a test waits by the clock: for a durable fact, with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONGEST_PAUSE_S = 0.05


def wait_until(predicate: Callable[[], T], what: str, seconds: float = 30) -> T:
    """Ask again and again until the answer is true; return that answer.

    Args:
        predicate: Asks for a fact that stays true once it is true (a row, a file, an end), never for a passing moment.
        what: The fact in words, for the failure.
        seconds: At most 30; a bound against hanging, never a claim about speed.

    Raises:
        AssertionError: the fact did not come true in time. The last answer is named.
    """
    assert seconds <= 30, "a bounded wait lasts 30 s at most"
    until = time.monotonic() + seconds
    pause = 0.001
    while True:
        answer = predicate()
        if answer:
            return answer
        if time.monotonic() >= until:
            raise AssertionError(f"not within {seconds:g} s: {what} (last answer: {answer!r})")
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_S)
