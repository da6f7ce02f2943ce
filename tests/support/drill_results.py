"""Results of drills as tests need them: small, with something of everything."""

from __future__ import annotations

from dataclasses import replace

from chaos.results import (
    Cell,
    Coverage,
    Figure,
    Found,
    Guard,
    Host,
    Lane,
    Result,
    Span,
    Story,
    StoryMark,
)

HOSTILE = "</script><script>alert(1)</script> \x00\x1b[31m \u202e \udc80 \"'&<b>"
"""What a job, a path or an error may hold, where a page or a file must still be what it is."""

A_HOST = Host("6.12.1", "x86_64", 2, "3.11.2", "3.51.3", 1000, True, False, False, True)


def a_cell(boundary: str = "claim_commit", side: str = "after", **changed: object) -> Cell:
    """A cell that passed, or what was changed of it."""
    cell = Cell(
        name=f"coordinator-{boundary}-{side}-kill",
        role="coordinator",
        boundary=boundary,
        side=side,
        harm="KILL",
        victims="self",
        scene="job",
        expected="relaunch",
        came_to="relaunch",
        took_ms=812,
        findings=(),
        skipped="",
        replay=f"tenure drill matrix --only coordinator-{boundary}-{side}-kill",
    )
    return replace(cell, **changed)  # type: ignore[arg-type]


def a_story(title: str = "w7, three epochs") -> Story:
    """A worker dies while a job runs; another adopts it."""
    lanes = (
        Lane("leader", "leader", (Span(0, 2_400_000, "generation 1", "leader"),), ()),
        Lane(
            "w7.1",
            "attempt",
            (
                Span(100_000, 900_000, "epoch 1, worker-1.1", "lease"),
                Span(950_000, 2_300_000, "epoch 2, worker-2.1", "lease"),
            ),
            (StoryMark(100_000, "claimed", "commit"), StoryMark(2_300_000, "succeeded", "commit")),
        ),
        Lane("pid 4711", "process", (Span(300_000, 2_200_000, "epoch 1", "process"),), ()),
        Lane("worker-1.1", "worker", (), (StoryMark(900_000, "KILL", "kill"),)),
    )
    return Story(title, 5, lanes)


def a_result(*, host: Host = A_HOST, hostile: bool = False, **changed: object) -> Result:
    """A matrix that passed, or what was changed of it; with `hostile`, odd text wherever text from outside may come."""
    odd = HOSTILE if hostile else "relaunch"
    result = Result(
        drill="matrix",
        version="0.1.0",
        host=host,
        command="tenure drill matrix",
        seed=None,
        began_at="2026-08-01T12:00:00Z",
        took_ms=61_000,
        passed=not hostile,
        cut_short="",
        totals={"cells": 2, "kills": 6, "seconds": 61.5},
        cells=(
            a_cell(came_to=odd, findings=(f"epochs_only_rise: {HOSTILE}",) if hostile else ()),
            a_cell(side="before"),
        ),
        findings=(Found("jobs_are_one_set", HOSTILE, f"tenure drill run --seed 5 {HOSTILE}"),) if hostile else (),
        figures=(Figure("recovery after a worker's kill", "ms", 41.5, 93.25, 101.0, 200),),
        coverage=(Coverage("claim_commit", 120, 118), Coverage("pin_commit", 90, 0)),
        guards=(Guard("fence of finish", "a late end", "statuses_are_true", 12, ""),),
        stories=(a_story(HOSTILE) if hostile else a_story(),),
    )
    return replace(result, **changed)  # type: ignore[arg-type]
