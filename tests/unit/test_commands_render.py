"""Text for people: nothing in it may act on a terminal, and a command reads as a shell would take it."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from shared.commands.render import Ink, counted, duration, escaped, iso, milliseconds, moment, quoted, table

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcödé", "plain, ünïcödé"),
        ("a\x1b[31mb", "a\\e[31mb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("a\u202eb\u2028", "a\\u202eb\\u2028"),
        (b"caf\xe9".decode(errors="surrogateescape"), "caf\\xe9"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_may_act_on_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_characters_to_keep_stay() -> None:
    assert escaped("a\tb\n\x1b", keep="\t\n") == "a\tb\n\\e"


@pytest.mark.parametrize(
    "words",
    [
        ["echo", "hello"],
        ["sh", "-c", "for i in 1 2; do echo $i; done"],
        ["printf", "%s", ""],
        ["it's", 'a "b" c'],
        ["line\nbreak", "tab\tand \x1b[0m", "back\\slash\n", "quote'\n"],
    ],
)
def test_quoted_command_is_what_a_shell_would_run(words: list[str]) -> None:
    line = quoted(words)

    assert line.isprintable()
    seen = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True).stdout
    assert seen.decode().split("\0")[:-1] == words


def test_plain_command_is_quoted_as_everybody_does() -> None:
    assert quoted(["sh", "-c", "echo $i"]) == shlex.join(["sh", "-c", "echo $i"])


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (-5, "0ms"),
        (0, "0ms"),
        (850_000, "850ms"),
        (SECOND, "1s"),
        (200 * SECOND, "3m 20s"),
        (60 * SECOND, "1m"),
        (7_500 * SECOND, "2h 5m"),
        (90_000 * SECOND, "1d 1h"),
        (3_601 * SECOND, "1h"),
    ],
)
def test_duration_has_two_units_at_most(us: int, text: str) -> None:
    assert duration(us) == text


def test_times_are_utc_and_unknown_is_null() -> None:
    at_us = 1_800_000_000_123_456

    assert iso(at_us) == "2027-01-15T08:00:00.123456Z"
    assert moment(at_us) == "2027-01-15 08:00:00Z"
    assert (iso(None), moment(None), milliseconds(None)) == (None, "-", None)
    assert milliseconds(1_500) == 1


def test_columns_are_aligned_whatever_their_colour() -> None:
    ink = Ink(is_on=True)

    lines = table([["w1", ink.state("running"), "a"], ["w1000", ink.state("held"), "b"]])

    assert [line.replace("\x1b[33m", "").replace("\x1b[31m", "").replace("\x1b[0m", "") for line in lines] == [
        "w1     running  a",
        "w1000  held     b",
    ]
    assert table([]) == []


def test_colour_is_off_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert Ink.of({}).is_on
    assert not Ink.of({"NO_COLOR": "1"}).is_on
    assert not Ink.of({"TERM": "dumb"}).is_on

    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert not Ink.of({}).is_on
    assert Ink(is_on=False).state("failed") == "failed"


def test_counts_agree_with_their_noun() -> None:
    assert [counted(1, "worker"), counted(0, "worker"), counted(1000, "work", capped=True)] == [
        "1 worker",
        "0 workers",
        "1000+ works",
    ]
