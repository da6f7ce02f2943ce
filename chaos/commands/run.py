"""`tenure drill run`: harm at seeded random times."""

from __future__ import annotations

import random
from argparse import Namespace

from chaos import kills
from chaos.commands import session
from chaos.harness import StillWaitingError
from chaos.ledger import Ledger
from chaos.results import Found
from shared.commands.arguments import Parser


def main(argv: list[str]) -> int:
    """Run the drill of a seed.

    Raises:
        UsageError: the command line is wrong.
    """
    parser = Parser(
        "tenure drill run",
        "Workers and coordinators are killed at random times over short jobs; then everything is checked.",
        session.EXIT_CODES,
    )
    parser.add_argument("--seed", type=int, help="replays the harm of an earlier run; else a new one is drawn")
    parser.add_argument("--kills", type=int, default=kills.KILLS, help="at least so many (%(default)s)")
    parser.add_argument("--jobs", type=int, default=kills.JOBS, help="(%(default)s)")
    return session.drill("run", parser, argv, _play)


def _play(given: Namespace, ledger: Ledger) -> None:
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    ledger.seed = seed
    ledger.command = f"tenure drill run --seed {seed} --kills {given.kills} --jobs {given.jobs}"
    ledger.say(f"replay with: {ledger.command}")
    try:
        outcome = kills.run(ledger.folder / "drill", seed, kills=given.kills, jobs=given.jobs, say=ledger.say)
    except StillWaitingError as error:
        ledger.findings.append(Found("comes_to_rest", str(error), ledger.command))
        ledger.say(f"failed: {error}")
        return
    ledger.say(str(outcome))
    ledger.totals |= {"jobs": given.jobs, "kills": outcome.kills, "takeovers": outcome.recovered}
    ledger.totals |= {"relaunches": outcome.relaunched, **{f"kills of {kind}": n for kind, n in outcome.killed.items()}}
    for finding in outcome.findings:
        ledger.findings.append(Found(finding.check, finding.what, ledger.command))
        ledger.say(f"  {finding}")
