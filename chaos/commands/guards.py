"""`tenure drill simulate --guards`: each guard of the product taken away, and the check that must notice."""

from __future__ import annotations

from chaos.guards import GUARDS
from chaos.ledger import Ledger
from chaos.results import Found
from chaos.results import Guard as Noticed
from chaos.simulation.controls import WrongCheckError, hunt, hunted

WIDTH = max(len(guard.name) for guard in GUARDS)


def play(ledger: Ledger, *, first: int, seeds: int) -> None:
    """Hunt for every guard from the same seed on, and tell of each what noticed that it was gone, or what stands behind it.

    Args:
        seeds: Histories of each guard at most.
    """
    ledger.seed = first
    ledger.command = f"tenure drill simulate --guards --seed {first} --seeds {seeds}"
    ledger.say(f"replay with: {ledger.command}")
    for guard in hunted():
        assert guard.caught_by is not None, "only those are hunted"
        try:
            caught = hunt(guard, first=first, seeds=seeds)
        except WrongCheckError as error:
            ledger.findings += [
                Found(finding.check, f"without {guard.name}, seed {error.outcome.seed}: {finding.what}", ledger.command)
                for finding in error.outcome.findings
            ]
            ledger.say(f"{guard.name:{WIDTH}}  {error}")
            continue
        noticed = None if caught.outcome is None else caught.seeds
        ledger.guards.append(Noticed(guard.name, guard.keeps, guard.caught_by, noticed, ""))
        told = "never" if noticed is None else f"after {noticed}"
        ledger.say(f"{guard.name:{WIDTH}}  keeps from: {guard.keeps}")
        ledger.say(f"{'':{WIDTH}}  {guard.caught_by} fired {told}: {caught.finding.what if caught.finding else ''}")
    for guard in GUARDS:
        if guard.covered_by is not None:
            ledger.guards.append(Noticed(guard.name, guard.keeps, "", None, guard.covered_by))
            ledger.say(f"{guard.name:{WIDTH}}  keeps from: {guard.keeps}")
            ledger.say(f"{'':{WIDTH}}  not hunted: {guard.covered_by}")
    ledger.totals["guards noticed"] = sum(guard.seeds is not None for guard in ledger.guards)
