"""A simulated history in which everything happens once that the checks of overheard programs look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaos.history import History
from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.programs import AGENT, BELT, Act, Deed, Part
from chaos.simulation.run import Options, Outcome, simulate
from chaos.speech import Said, Told
from shared.ids import AttemptId
from shared.model.instant import US_PER_S

LISTENS = Job(
    1,
    voice=AGENT,
    parts=(
        Part(
            (
                Deed(Act.USAGE, count=3),
                Deed(Act.NOISE, count=2),
                Deed(Act.GARBAGE),
                Deed(Act.TAKE, us=4 * US_PER_S),
                Deed(Act.TURN, word="done"),
                Deed(Act.WAIT, word="go", flag=True),
            )
        ),
    ),
)
"""Takes what it is told while it runs, and waits then."""
TELLS = Job(
    1,
    voice=BELT,
    parts=(Part((Deed(Act.USAGE, count=2), Deed(Act.TURN, word="stuck"), Deed(Act.RESULT, word="failed"))),),
)
SLEEPS = Job(1, ignores_term=True, voice=AGENT, parts=(Part((Deed(Act.TAKE, us=20 * US_PER_S),)),))
HANDS_OFF = Job(1, voice=BELT, inputs=1, goes_on=True, parts=(Part((Deed(Act.RESULT, word="handoff"),)),))
"""Standing; its second attempt follows its first."""
PLAN = (
    Harm(Kind.INJECT, step=180, work=1),
    Harm(Kind.INJECT, step=190, work=1),
    Harm(Kind.INTERRUPT, step=400, work=3),
)
A1, A2, A3, A4 = (AttemptId(f"w{number}.1") for number in range(1, 5))


def overheard() -> Outcome:
    """Played without harm, in the first order of things in which the interrupt comes before the program's end."""
    options = Options(jobs=(LISTENS, TELLS, SLEEPS, HANDS_OFF), plan=PLAN, holds=False)
    played = (simulate(seed, options) for seed in range(99))
    return next(outcome for outcome in played if told_of(outcome.history, "interrupt", A3))


def with_said(history: History, kind: str, attempt_id: AttemptId, **changes: Any) -> History:
    """The last thing of that kind that an attempt said was another."""
    said = list(history.said)
    place = max(at for at, one in enumerate(said) if (one.kind, one.attempt_id) == (kind, attempt_id))
    said[place] = replace(said[place], **changes)
    return replace(history, said=tuple(said))


def with_told(history: History, kind: str, attempt_id: AttemptId, **changes: Any) -> History:
    """The last thing of that kind that an attempt was told was another."""
    told = list(history.told)
    place = max(at for at, one in enumerate(told) if (one.kind, one.attempt_id) == (kind, attempt_id))
    told[place] = replace(told[place], **changes)
    return replace(history, told=tuple(told))


def without_declaration(history: History, kind: str, attempt_id: AttemptId) -> History:
    """The store lacks what an attempt declared of that kind."""
    kept = tuple(one for one in history.declarations[attempt_id] if one.declaration.kind != kind)
    assert len(kept) < len(history.declarations[attempt_id])
    return replace(history, declarations={**history.declarations, attempt_id: kept})


def said_of(history: History, kind: str, attempt_id: AttemptId) -> list[Said]:
    return [one for one in history.said if (one.kind, one.attempt_id) == (kind, attempt_id)]


def told_of(history: History, kind: str, attempt_id: AttemptId) -> list[Told]:
    return [one for one in history.told if (one.kind, one.attempt_id) == (kind, attempt_id)]
