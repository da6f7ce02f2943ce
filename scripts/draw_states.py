#!/usr/bin/env python3
"""Draw the state tables of `shared/policy/steps.py` into `docs/states.md`; with `--check`, only say whether it is stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from shared.model.attempt import AttemptState  # noqa: E402 - scripts run from any folder
from shared.model.work import WorkState  # noqa: E402
from shared.policy.steps import ATTEMPT_STEPS, WORK_STEPS, is_final_attempt, is_final_work  # noqa: E402

PAGE = ROOT / "docs" / "states.md"

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)

INTRODUCTION = """\
# States

Drawn from the tables in [shared/policy/steps.py](../shared/policy/steps.py) by `scripts/draw_states.py`; a test fails when this
page is stale. Every change of a stored state is one of these arrows; a pair that has no arrow is refused as a bug of ours. What
each word means is told once, in [shared/README.md](../shared/README.md).

The end of an attempt frees nothing by itself: whether it still claims resources is a fact of its own (`exclusion: held | released`).
"""


def page() -> str:
    """The whole page, as it should be."""
    work = section("Work", WorkState, WorkState.IDLE, WORK_STEPS, is_final_work)
    attempt = section("Attempt", AttemptState, AttemptState.LAUNCHING, ATTEMPT_STEPS, is_final_attempt)
    return f"{INTRODUCTION}\n{work}\n{attempt}"


def section(
    title: str, states: type[S], first: S, steps: Mapping[tuple[S, E], S], is_final: Callable[[S], bool]
) -> str:
    """One state machine: its diagram, then the same as a table."""
    arrows: dict[tuple[S, S], list[str]] = {}
    for state in states:
        for (source, event), target in steps.items():
            if source is state:
                arrows.setdefault((source, target), []).append(event.value)
    diagram = [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in arrows.items()]
    rows = [f"| `{source}` | {', '.join(events)} | `{target}` |" for (source, target), events in arrows.items()]
    ends = [f"    {state} --> [*]" for state in states if is_final(state)]
    lines = [
        f"## {title}",
        "",
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {first}",
        *diagram,
        *ends,
        "```",
        "",
        "| from | on | to |",
        "|---|---|---|",
        *rows,
        "",
        f"Final: {', '.join(f'`{state}`' for state in states if is_final(state))}.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Write the page, or with `--check` compare it; 1 when it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is stale")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write or compare")
    arguments = parser.parse_args()
    drawn = page()
    if not arguments.check:
        arguments.page.write_text(drawn, encoding="utf-8")
        return 0
    if arguments.page.is_file() and arguments.page.read_text(encoding="utf-8") == drawn:
        return 0
    print(f"{arguments.page} is stale: run scripts/draw_states.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
