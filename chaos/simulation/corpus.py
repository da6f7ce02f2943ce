"""Seeds that once led to something: each with the plan that it was shrunk to, and what was found. Replayed by a test.

A seed alone would come to mean another history with the next change of how plans are drawn; so harm and jobs are written out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.programs import Act, Deed, Part
from chaos.simulation.run import Options, Outcome
from shared.boundary import Boundary, Side, Victims

LISTED = ("statuses", "delays_us", "keys", "parts")
CORPUS = Path(__file__).with_name("corpus.json")


@dataclass(frozen=True, slots=True)
class Entry:
    """One history that failed once.

    Attributes:
        found: The check that fired, and what it said.
        cause: What was wrong, in one sentence.
        holds: There were budgets and approvals.
        workers_lost_max: See `Settings`.
    """

    seed: int
    workers: int
    lease_us: int
    jobs: tuple[Job, ...]
    plan: tuple[Harm, ...]
    found: str
    cause: str
    holds: bool = False
    workers_lost_max: int = 0

    @property
    def options(self) -> Options:
        """What replays it."""
        return Options(
            works=len(self.jobs),
            workers=self.workers,
            lease_us=self.lease_us,
            plan=self.plan,
            jobs=self.jobs,
            holds=self.holds,
            workers_lost_max=self.workers_lost_max,
        )


def entry_of(outcome: Outcome, cause: str) -> Entry:
    """What to keep of a history that failed."""
    options = outcome.options
    found = str(outcome.findings[0]) if outcome.findings else ""
    return Entry(
        outcome.seed,
        options.workers,
        options.lease_us,
        outcome.jobs,
        outcome.plan,
        found,
        cause,
        holds=bool(options.holds),
        workers_lost_max=options.workers_lost_max or 0,
    )


def to_json(entries: list[Entry]) -> str:
    """The text of a corpus."""
    return json.dumps([asdict(entry) for entry in entries], indent=1) + "\n"


def read(path: Path = CORPUS) -> list[Entry]:
    """The kept histories; what their time did not know yet has its default.

    Raises:
        OSError, ValueError, TypeError, KeyError: the file cannot be read, or is none of ours.
    """
    return [_entry(facts) for facts in json.loads(path.read_text(encoding="utf-8"))]


def _entry(facts: dict[str, Any]) -> Entry:
    jobs = tuple(_job(each) for each in facts.pop("jobs"))
    return Entry(jobs=jobs, plan=tuple(_harm(each) for each in facts.pop("plan")), **facts)


def _job(facts: dict[str, Any]) -> Job:
    for name in LISTED:
        facts[name] = tuple(facts.get(name, ()))
    facts["parts"] = tuple(_part(each) for each in facts["parts"])
    return Job(**facts)


def _part(facts: dict[str, Any]) -> Part:
    deeds = (Deed(Act(deed.pop("act")), **deed) for deed in facts["deeds"])
    return Part(tuple(deeds), facts["status"])


def _harm(facts: dict[str, Any]) -> Harm:
    boundary, side = facts.pop("boundary"), facts.pop("side")
    return Harm(
        kind=Kind(facts.pop("kind")),
        victims=Victims(facts.pop("victims")),
        boundary=None if boundary is None else Boundary(boundary),
        side=None if side is None else Side(side),
        **facts,
    )
