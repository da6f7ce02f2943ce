"""How a log record reads: one line of text, or one JSON object, with the same facts."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, cast

import pytest

from shared import logs

CREATED = 1_700_000_000.123


def record(event: str = "attempt.claimed", /, **extra: object) -> logging.LogRecord:
    made = logging.getLogger("tests").makeRecord("tests", logging.INFO, "file", 1, event, (), None, extra=extra)
    made.created = CREATED
    return made


def text(made: logging.LogRecord, *, colour: bool = False) -> str:
    return logs.TextFormatter(colour=colour).format(made)


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = logs.JsonFormatter().format(made)
    assert "\n" not in line
    parsed = json.loads(line)
    assert isinstance(parsed, dict)
    return parsed


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, whose handlers and level are put back afterwards."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def test_text_is_time_level_event_fields() -> None:
    made = record(work="w41", attempt="w41.2", epoch=3)

    assert text(made) == "22:13:20.123Z info  attempt.claimed work=w41 attempt=w41.2 epoch=3"


def test_json_has_the_same_facts() -> None:
    made = record(work="w41", attempt="w41.2", epoch=3)

    assert as_json(made) == {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "info",
        "event": "attempt.claimed",
        "work": "w41",
        "attempt": "w41.2",
        "epoch": 3,
    }


@pytest.mark.parametrize(
    ("level", "word"),
    [(logging.DEBUG, "debug"), (logging.INFO, "info "), (logging.WARNING, "warn "), (logging.ERROR, "error")],
)
def test_levels_are_one_column(level: int, word: str) -> None:
    made = record()
    made.levelno, made.levelname = level, logging.getLevelName(level)

    assert text(made) == f"22:13:20.123Z {word} attempt.claimed"


def test_the_process_is_a_column_under_a_parent() -> None:
    made = record(work="w41")
    made.processName = "worker-1"

    assert text(made) == "22:13:20.123Z info  worker-1    attempt.claimed work=w41"
    assert as_json(made)["process"] == "worker-1"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain-1.2/x:y", "plain-1.2/x:y"),
        ("zürich", "zürich"),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ("", '""'),
        ('say "x"', r'"say \"x\""'),
        (r"C:\new", r'"C:\\new"'),
        ("one\ntwo", r'"one\ntwo"'),
        ("\x1b[2J\x07\x7f\x9b", r'"\x1b[2J\x07\x7f\x9b"'),
        ("\u2028\u202e", r'"\u2028\u202e"'),
        (os.fsdecode(b"\xff.txt"), r'"\udcff.txt"'),
        (b"\xff", r'"\\xff"'),
        (None, "none"),
        (True, "true"),
        (61_200, "61200"),
        (0.5, "0.5"),
        (float("nan"), "nan"),
        (["a", 1], r'"[\"a\", 1]"'),
        ({"a": 1}, r'"{\"a\": 1}"'),
    ],
)
def test_a_value_is_bare_when_unmistakable_else_quoted_and_escaped(value: object, shown: str) -> None:
    assert text(record(value=value)) == f"22:13:20.123Z info  attempt.claimed value={shown}"


def test_control_characters_of_an_event_are_escaped() -> None:
    assert text(record("one\n\x1b[31mtwo")).endswith(r" one\n\x1b[31mtwo")


def test_arguments_are_filled_in() -> None:
    made = record("took %d ms")
    made.args = (3,)

    assert text(made).endswith(" took 3 ms")
    assert as_json(made)["event"] == "took 3 ms"


def test_words_of_our_own_stay_what_they_are_in_json() -> None:
    class Colour(StrEnum):
        RED = "red"

    made = record(colour=Colour.RED, error=ValueError("bad"), level="mine", nan=float("inf"), names=("a", "b"))

    line = as_json(made)

    assert line["colour"] == "red"
    assert line["error"] == "bad"
    assert (line["level"], line["level_"]) == ("info", "mine")
    assert line["nan"] == "inf"
    assert line["names"] == ["a", "b"]


def test_a_long_value_is_cut_and_says_so() -> None:
    made = record(command="x" * (logs.VALUE_CHARS_MAX + 5))

    assert as_json(made)["command"] == "x" * logs.VALUE_CHARS_MAX + "… (5 more)"


def test_a_traceback_is_indented_below_its_line_or_a_field() -> None:
    try:
        raise ValueError("bad\x1b")
    except ValueError:
        made = record("process.failed")
        made.exc_info = sys.exc_info()

    first, *rest = text(made).split("\n")

    assert first == "22:13:20.123Z info  process.failed"
    assert rest[0] == "    Traceback (most recent call last):"
    assert rest[-1] == r"    ValueError: bad\x1b"
    assert as_json(made)["traceback"].endswith("ValueError: bad\x1b")


@pytest.mark.parametrize("name", sorted(logs.WITHHELD))
def test_environment_secrets_and_output_are_withheld(name: str) -> None:
    made = record(**{name: "s3cr3t", name.upper(): {"KEY": "s3cr3t"}, "job": {name: "s3cr3t"}})

    assert "s3cr3t" not in text(made)
    assert "s3cr3t" not in json.dumps(as_json(made))
    assert f"{name}=[withheld]" in text(made)


def test_other_names_are_shown() -> None:
    assert "environments=shown" in text(record(environments="shown"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "no_color", "coloured"), [(Terminal, "", True), (Terminal, "1", False), (io.StringIO, "", False)]
)
def test_colour_only_on_a_terminal_and_without_no_color(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], no_color: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    target = stream()
    logs.set_up_terminal(logging.INFO, stream=target)

    logging.getLogger("tests").warning("lease.lost", extra={"attempt": "w1.1"})

    assert ("\x1b[33mwarn \x1b[0m" in target.getvalue()) is coloured
    assert target.getvalue().endswith("lease.lost attempt=w1.1\n")


def test_the_set_up_is_the_only_one_and_has_a_level(root: logging.Logger) -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.set_up_terminal(logging.INFO, stream=first)
    logs.set_up_terminal(logging.WARNING, json=True, stream=second)

    logging.getLogger("tests").info("not.shown")
    logging.getLogger("tests").warning("shown")

    assert not first.getvalue()
    assert json.loads(second.getvalue())["event"] == "shown"


class Gone(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_terminal_that_is_gone_is_no_complaint(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = logs.set_up_terminal(logging.INFO, stream=Gone())

    logging.getLogger("tests").info("unheard")
    terminal.say("unheard")

    assert capsys.readouterr().err == ""


def test_a_bug_of_a_caller_is_complained_about(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up_terminal(logging.INFO, stream=io.StringIO())

    logging.getLogger("tests").info("took %d ms", "three")

    assert "TypeError" in capsys.readouterr().err


def test_what_is_said_is_one_line(root: logging.Logger) -> None:
    stream = io.StringIO()

    logs.set_up_terminal(logging.INFO, stream=stream).say("worker-1 died\x1b")

    assert stream.getvalue() == "worker-1 died\\x1b\n"


class Queue:
    """As much of a queue as the child's handler uses."""

    def __init__(self) -> None:
        self.waiting: list[logging.LogRecord] = []

    def qsize(self) -> int:
        return len(self.waiting)

    def put_nowait(self, made: logging.LogRecord) -> None:
        self.waiting.append(made)


def test_a_child_drops_what_nobody_takes_and_says_how_much() -> None:
    queue = Queue()
    handler = logs._ChildHandler(cast(Any, queue))
    for _ in range(logs.RECORDS_WAITING_MAX + 3):
        handler.handle(record())
    assert len(queue.waiting) == logs.RECORDS_WAITING_MAX

    queue.waiting.clear()
    handler.handle(record("after"))
    handler.handle(record("later"))

    assert [text(made)[14:] for made in queue.waiting] == ["warn  log.dropped records=3", "info  after", "info  later"]
