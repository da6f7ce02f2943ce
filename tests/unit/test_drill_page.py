"""The page of a drill's results: whole, self-contained, and nothing that a job, a path or an error holds can change it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from chaos.report.page import FINDINGS_MAX, page
from chaos.report.text import number, took
from chaos.report.timeline import TICKS_MAX, ticks
from chaos.report.verdict import PROMISE, Tone, verdict
from chaos.results import Coverage, Found, Guard, Lane, Span, Story, Struck
from tests.support.drill_results import A_HOST, HOSTILE, a_cell, a_result

VOID = {"meta", "col", "br", "line", "path", "rect", "circle"}
LINKS = {"src", "href", "srcset", "data", "action", "formaction", "poster", "background", "xlink:href", "ping"}


class Page(HTMLParser):
    """A page as it is read: every element closed where it was opened, ids once, and what it says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.said = ""
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"
        ids = self.values("id")
        assert len(ids) == len(set(ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.said += data

    def values(self, name: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == name]


FAILED = a_cell(side="before", harm="STOP", findings=("epochs_only_rise: w1.1 went from epoch 3 to 2",), came_to="hold")
MISSED = Guard("fence", "a late write", "epochs_only_rise", None, "")
NOTICED = Guard("pin", "a second run", "launches_follow_their_pin", 3, "")
COVERED = Guard("queue", "writers that starve", "", None, "behind it stands SQLite's own lock")
SKIPPED = a_cell("pin_commit", skipped="no strace on this host")


def test_a_page_is_well_formed_and_says_what_came_of_each_cell() -> None:
    cells = (a_cell(), FAILED, SKIPPED)

    read = Page(page([a_result(cells=cells)]))

    for cell in cells:
        label = next(value for value in read.values("aria-label") if value.startswith(f"{cell.name}: "))
        words = "1 found" if cell.findings else "not played" if cell.skipped else "passed"
        assert label == f"{cell.name}: {words}"
        assert cell.replay in read.said
    assert "w1.1 went from epoch 3 to 2" in read.said
    assert "no strace on this host" in read.said
    assert "Linux 6.12.1" in read.said
    assert "began 2026-08-01 12:00:00 UTC" in read.said
    assert "recovery after a worker's kill" in read.said


def test_each_button_opens_a_card_that_is_there() -> None:
    read = Page(page([a_result(cells=(a_cell(), FAILED)), a_result(cells=(a_cell(), SKIPPED))]))

    targets = set(read.values("popovertarget"))
    assert len(targets) == 4
    assert targets <= set(read.values("id"))


@pytest.mark.parametrize("hostile", [False, True])
def test_nothing_is_asked_for_from_elsewhere_and_nothing_runs(hostile: bool) -> None:
    text = page([a_result(hostile=hostile), a_result()])

    read = Page(text)
    links = [value for _, name, value in read.attributes if name in LINKS]
    assert links == ["#r0", "#r1"]
    assert not re.search(r"https?:|//\w|@import|url\(", text.replace("</", "<"))
    assert not {"script", "iframe", "object", "embed", "link", "base", "form", "img"} & set(read.tags)
    assert not [name for _, name, _ in read.attributes if name.startswith("on")]
    assert "default-src 'none'" in read.values("content")[0]


def test_text_from_outside_is_shown_and_changes_nothing() -> None:
    text = page([a_result(hostile=True)])

    plain, read = Page(page([a_result(cells=a_result().cells, findings=())])), Page(text)
    assert HOSTILE not in text
    assert "</script><script>alert(1)</script> \\x00\\e[31m \\u202e \\x80 \"'&<b>" in read.said
    assert set(read.tags) - set(plain.tags) <= {"li", "ul", "b", "p"}
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text)
    text.encode("utf-8")


def test_kinds_from_outside_name_no_class_of_their_own() -> None:
    story = Story("odd", None, (Lane("a", "b", (Span(0, 9, "label", 'x" onclick="y'),), ()),))

    read = Page(page([a_result(stories=(story,))]))

    assert "span k-other" in read.values("class")
    assert not [name for _, name, _ in read.attributes if name == "onclick"]


@pytest.mark.parametrize(
    ("changed", "tone", "line"),
    [
        ({}, Tone.GOOD, PROMISE),
        ({"cells": (FAILED,)}, Tone.BAD, "1 finding: epochs_only_rise"),
        (
            {"findings": (Found("jobs_are_one_set", "w1 started 2 times", ""),) * 2},
            Tone.BAD,
            "2 findings: jobs_are_one_set (2)",
        ),
        ({"guards": (MISSED,)}, Tone.BAD, "1 finding: epochs_only_rise"),
        ({"cells": (), "guards": (NOTICED, COVERED)}, Tone.GOOD, "1 guard taken away, each noticed by its check"),
        ({"cells": (), "guards": (COVERED,)}, Tone.OPEN, "Nothing was tried"),
        ({"cut_short": "interrupted"}, Tone.OPEN, "Cut short (interrupted); nothing was found until then"),
        ({"cut_short": "interrupted", "cells": (FAILED,)}, Tone.BAD, "1 finding: epochs_only_rise"),
        ({"cells": (), "totals": {}, "guards": ()}, Tone.OPEN, "Nothing was tried"),
        ({"cells": (SKIPPED,), "totals": {"kills": 0}, "guards": ()}, Tone.OPEN, "Nothing was tried"),
    ],
)
def test_the_headline_says_what_was_found_and_never_more_than_was_tried(
    changed: dict[str, Any], tone: Tone, line: str
) -> None:
    one = verdict([a_result(**changed)])

    assert (one.tone, one.line) == (tone, line)


def test_one_finding_among_several_results_is_the_headline() -> None:
    results = [a_result(), a_result(cells=(FAILED,)), a_result()]

    read = Page(page(results))

    assert verdict(results).tone is Tone.BAD
    assert verdict(results[:1]).tone is Tone.GOOD
    assert read.said.count("✕ 1 finding: epochs_only_rise") >= 2


def test_each_host_is_named_when_results_come_from_several() -> None:
    here, there = a_result(), a_result(host=replace(A_HOST, kernel="5.10.0"))

    same, other = Page(page([here, here])).said, Page(page([here, there])).said

    assert same.count("Linux 6.12.1") == 1
    assert other.count("Linux 6.12.1") == 1
    assert other.count("Linux 5.10.0") == 1


def test_findings_beyond_what_can_be_read_are_counted() -> None:
    found = tuple(Found("nothing_is_stuck", f"w{number}", "") for number in range(FINDINGS_MAX + 3))

    read = Page(page([a_result(findings=found)]))

    assert "and 3 more in the result’s file" in read.said
    assert f"w{FINDINGS_MAX + 1}" not in read.said


def test_a_boundary_that_was_never_reached_and_a_guard_that_was_never_missed_are_said() -> None:
    read = Page(page([a_result(coverage=(Coverage("go_send", 3, 0),), guards=(MISSED,))]))

    assert "1 not reached on both sides" in read.said
    assert "– never" in read.said
    assert "✕ never" in read.said


def test_what_was_done_at_a_boundary_is_told_for_both_sides() -> None:
    struck = Coverage("go_send", 30, 28, Struck(killed=7, failed=1), Struck(killed=5))
    read = Page(page([a_result(coverage=(struck, Coverage("store_link", 0, 0)))]))

    assert "7 · 5" in read.said
    assert "1 · 0" in read.said
    assert "Never reached: store_link." in " ".join(read.said.split()).replace(" .", ".")


def test_a_guard_with_another_defence_behind_it_is_no_finding() -> None:
    read = Page(page([a_result(guards=(NOTICED, COVERED))]))

    assert "1 guard taken away, one at a time; every time it was noticed." in read.said
    assert "behind it stands SQLite's own lock" in read.said
    assert "✕ never" not in read.said


def test_a_result_with_nothing_in_it_is_a_page() -> None:
    Page(page([a_result(cells=(), totals={}, figures=(), coverage=(), guards=(), stories=(Story("empty", None, ()),))]))


@pytest.mark.parametrize("whole_us", [1, 7, 8, 999, 1_000_000, 6_300_000, 86_400_000_000])
def test_ticks_are_few_round_and_within_the_axis(whole_us: int) -> None:
    found = ticks(whole_us)

    assert found[0] == 0
    assert 1 <= len(found) <= TICKS_MAX
    assert found[-1] <= whole_us
    assert all(re.fullmatch("[125]0*", str(b - a)) for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (12, "12"),
        (2.8, "2.8"),
        (0.256, "0.26"),
        (41.55, "41.5"),
        (9.999, "10"),
        (1234567, "1\u202f234\u202f567"),
        (5.0, "5"),
    ],
)
def test_numbers_are_grouped_and_no_longer_than_they_need_be(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(812, "812 ms"), (4_200, "4.2 s"), (59_999, "60.0 s"), (65_000, "1 min 5 s"), (7_800_000, "2 h 10 min")],
)
def test_durations_have_two_units_at_most(ms: int, shown: str) -> None:
    assert took(ms).replace("\u202f", " ") == shown
