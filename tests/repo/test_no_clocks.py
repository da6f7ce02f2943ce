"""No test sleeps, and none asserts how long something took: what has to be waited for is a fact, with a bound. Rule: K06.

Reads the tests' own syntax. Bounded waits live in `tests/support`; whatever else looks at a clock is named here, with its reason.
Code that a test hands to another process is text, and none of this: a job may sleep.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

SLEEPS = {"sleep", "usleep", "nanosleep"}
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime", "times"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS} | {"now", "utcnow", "today"}
CLOCK_MODULES = {"time", "datetime", "date", "os"}
WAITS = {"wait", "join", "acquire", "get", "poll", "select", "sigtimedwait"}

DURATIONS = ("took", "elapsed", "seconds_taken", "duration_s", "latency", "time_taken")
"""Beginnings of names by which a measured time is called."""

KNOWN = {
    ("tests/crash/test_boundary_drill.py", "clock"): "the date chooses which part of the drill is played today",
    ("tests/process/launch_drill.py", "sleep"): "a bounded wait, in a script that runs without pytest",
    ("tests/process/launch_drill.py", "clock"): "the bound of that wait",
    (
        "tests/process/rogue_job.py",
        "sleep",
    ): "a program that looks again and again for its next victim; its test waits for the deaths",
    ("tests/process/odd_scenes.py", "clock"): "measures a scene for its report; nothing is asserted on it there",
    ("tests/process/scenes.py", "clock"): "measures a scene for its report, and names a file",
    ("tests/process/test_up_children.py", "clock"): "a span of three seconds in which wake-ups are counted, not timed",
    ("tests/process/test_cases_recovery.py", "clock"): "a date of yesterday, written into a file",
}


def files() -> list[Path]:
    """Every Python file of the tests, but those that may wait for all others."""
    found = sorted((ROOT / "tests").rglob("*.py"))
    return [path for path in found if (ROOT / "tests" / "support") not in path.parents]


def violations(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, kind (`sleep`, `clock`, `wait`, `duration`), and what was found."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _called(node)
        elif isinstance(node, ast.Assert):
            for part in ast.walk(node.test):
                if isinstance(part, ast.Compare) and any(_is_duration(side) for side in [part.left, *part.comparators]):
                    yield node.lineno, "duration", ast.unparse(part)
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield node.lineno, "clock", ast.unparse(node)


def _called(node: ast.Call) -> Iterator[tuple[int, str, str]]:
    name = _name(node.func)
    owner = _name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if name in SLEEPS:
        yield node.lineno, "sleep", ast.unparse(node)
    elif name in CLOCKS and owner in CLOCK_MODULES:
        yield node.lineno, "clock", ast.unparse(node)
    elif name in WAITS and any(_is_below_a_second(argument) for argument in _timeouts(node)):
        yield node.lineno, "wait", ast.unparse(node)


def _timeouts(node: ast.Call) -> list[ast.expr]:
    """What bounds a wait: its only positional number, or its `timeout`."""
    named = [keyword.value for keyword in node.keywords if keyword.arg == "timeout"]
    return named or [argument for argument in node.args if _number(argument) is not None]


def _is_below_a_second(node: ast.expr) -> bool:
    number = _number(node)
    return number is not None and 0 < number < 1


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    return None


def _is_duration(node: ast.expr) -> bool:
    """A difference with a reading of a clock in it, or something that is called a measured time."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return any(
            kind == "clock" for part in ast.walk(node) if isinstance(part, ast.Call) for _, kind, _ in _called(part)
        )
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value).startswith(DURATIONS)
    return _name(node).startswith(DURATIONS)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.req("K06")
def test_no_test_sleeps_or_asserts_a_duration() -> None:
    found = [
        (str(path.relative_to(ROOT)), kind, f"{line}: {what}")
        for path in files()
        for line, kind, what in violations(ast.parse(path.read_text()))
    ]

    assert [each for each in found if each[:2] not in KNOWN] == []
    assert set(KNOWN) == {each[:2] for each in found}, "an exception that nobody needs any more"


@pytest.mark.req("K06")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("time.sleep(1)", "sleep"),
        ("sleep(0.1)", "sleep"),
        ("asyncio.sleep(1)", "sleep"),
        ("began = time.monotonic()", "clock"),
        ("from time import monotonic", "clock"),
        ("datetime.now()", "clock"),
        ("event.wait(0.2)", "wait"),
        ("event.wait(timeout=0.2)", "wait"),
        ("inbox.get(timeout=0.05)", "wait"),
        ("assert time.monotonic() - began < 5", "duration"),
        ("assert facts['took_s'] < 4", "duration"),
        ("assert 0 < elapsed_s", "duration"),
    ],
)
def test_each_planted_violation_is_found(code: str, kind: str) -> None:
    assert kind in {found for _, found, _ in violations(ast.parse(code))}


@pytest.mark.req("K06")
@pytest.mark.parametrize(
    "code",
    [
        "wait_until(lambda: path.exists(), 'it is there')",
        "harness.wait(lambda: ended(), 'all ended')",
        "process.wait(30)",
        "process.wait(timeout=30)",
        "site.clock.now()",
        "site.elapse(3)",
        "assert record.duration_us == 0",
        "assert site.clock.now().mono_us - began_us <= 4 * POLL_US",
        "script = 'import time; time.sleep(60)'",
        "stop.wait(0)",
    ],
)
def test_what_waits_for_a_fact_or_lives_in_virtual_time_is_left_alone(code: str) -> None:
    """The control."""
    assert list(violations(ast.parse(code))) == []
