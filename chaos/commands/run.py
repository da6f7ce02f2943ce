"""`tenure drill run`: seeded load and seeded harm on real processes."""

from __future__ import annotations

import random
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from functools import partial

from chaos.checks import Finding
from chaos.checks.inputs import fates_of_inputs
from chaos.commands import session
from chaos.ledger import Ledger
from chaos.random_drill import figures
from chaos.random_drill.aftermath import Aftermath
from chaos.random_drill.dossier import told
from chaos.random_drill.drill import RandomDrill
from chaos.random_drill.expectations import judge
from chaos.random_drill.plan import JOBS, KILLS, plan
from chaos.results import Found
from chaos.stories import stories
from shared.commands.arguments import Parser, whole_number
from shared.model.intent import Fate

INTERRUPTED_REST_S = 20.0
MOST = 1_000_000
SHOWN, TOLD = 3, 20
"""Findings whose history is printed, and written to a file in the folder; the others are named."""
_EPILOG = (
    "A replay repeats the plan: the same jobs, the same harm, in the same order. When each of it meets what is up to the host,"
    " so a finding may need several tries.\n" + session.EXIT_CODES
)


def main(argv: list[str]) -> int:
    """Run the drill of a seed.

    Raises:
        UsageError: the command line is wrong.
    """
    parser = Parser(
        "tenure drill run",
        "Jobs of every kind run while workers, coordinators, zygotes and shims are killed, frozen, drained and kept from their"
        " store at random times; then everything is checked.",
        _EPILOG,
    )
    parser.add_argument("--seed", type=int, help="replays the plan of an earlier run; else a new one is drawn")
    parser.add_argument(
        "--kills", type=_number("--kills"), default=KILLS, help="of workers and coordinators, at least (%(default)s)"
    )
    parser.add_argument("--jobs", type=_number("--jobs"), default=JOBS, help="(%(default)s)")
    parser.add_argument(
        "--minutes", type=_number("--minutes"), help="no more harm after so many; else until the plan is done"
    )
    parser.add_argument(
        "--small-disk", action="store_true", help="put the home on a small disk, and fill that too; takes root"
    )
    return session.drill("run", parser, argv, _play)


def _number(option: str) -> Callable[[str], int]:
    return partial(whole_number, option=option, least=1, most=MOST)


def _play(given: Namespace, ledger: Ledger) -> None:
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    minutes = "" if given.minutes is None else f" --minutes {given.minutes}"
    ledger.seed = seed
    ledger.command = f"tenure drill run --seed {seed} --kills {given.kills} --jobs {given.jobs}{minutes}"
    ledger.command += " --small-disk" if given.small_disk else ""
    ledger.say(f"replay with: {ledger.command}")
    steps = plan(seed, kills=given.kills, jobs=given.jobs, small_disk=given.small_disk)
    began = time.monotonic()
    with RandomDrill(
        ledger.folder / "drill", steps, minutes=given.minutes, small_disk=given.small_disk, say=ledger.say
    ) as drill:
        interrupt: KeyboardInterrupt | None = None
        try:
            drill.play()
        except KeyboardInterrupt as error:
            interrupt = error
            ledger.say(
                f"stopping: no more harm, at most {INTERRUPTED_REST_S:g} s for rest; Ctrl-C again leaves at once"
            )
        if interrupt is not None:
            drill.cut_short()
            drill.rest(INTERRUPTED_REST_S, patient=False)
        else:
            drill.rest()
        after = drill.look_back()
        killed = dict(drill.processes.killed)
        words = {"settled by a person": len(drill.operator.settled), "stops on a word": len(drill.operator.confirmed)}
        words |= {f"said: {kind}": count for kind, count in sorted(drill.controls.done.items())}
        words |= {f"said too late: {kind}": count for kind, count in sorted(drill.controls.refused.items())}
        words |= {f"asked for: {what}": count for what, count in sorted(drill.duties.done.items())}
        words |= {f"asked for: release of {name}": count for name, count in sorted(drill.quarantines.done.items())}
    _book(after, killed, ledger)
    harms = Counter(step.harm for step in steps[: drill.played])
    ledger.totals |= {"steps": drill.played, **words, **{f"harm: {harm}": count for harm, count in harms.items()}}
    findings = judge(after)
    ledger.stories += stories(
        after.history, findings=findings, harms=figures.harms(after), seed=seed, clock=figures.true_clock(after)
    )
    _tell(after, findings, ledger)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(killed.items()))
    ledger.say(
        f"seed {seed}: killed {kinds} in {time.monotonic() - began:.0f} s; {len(after.history.works)} jobs,"
        f" {ledger.totals['takeovers']:g} takeovers, {ledger.totals['relaunches']:g} relaunches, {len(findings)} findings"
    )
    if interrupt is not None:
        raise interrupt


def _book(after: Aftermath, killed: dict[str, int], ledger: Ledger) -> None:
    segments = [segment for found in after.history.segments.values() for segment in found]
    ledger.totals |= {
        "jobs": len(after.history.works),
        "kills": killed.get("worker", 0) + killed.get("coordinator", 0),
        **{f"kills of {kind}": count for kind, count in sorted(killed.items())},
        "takeovers": sum(segment.recovered for segment in segments),
        "relaunches": sum(segment.relaunched for segment in segments),
        "inputs given up": sum(fate is Fate.DROPPED for fate in fates_of_inputs(after.history).values()),
    }
    ledger.figures += figures.figures(after)
    for figure in ledger.figures:
        ledger.say(f"{figure.name}: p50 {figure.p50:.0f} {figure.unit}, p99 {figure.p99:.0f}, of {figure.count}")


def _tell(after: Aftermath, findings: list[Finding], ledger: Ledger) -> None:
    """Each finding with the history around it: the first few here, more of them in the folder."""
    texts = []
    for number, finding in enumerate(findings):
        ledger.findings.append(Found(finding.check, finding.what, ledger.command))
        around = told(finding, after, ledger.folder / "drill" / "logs") if number < TOLD else []
        lines = [str(finding), *around]
        texts += [*lines, ""]
        if number < SHOWN:
            for line in lines:
                ledger.say(f"  {line}")
    if findings:
        (ledger.folder / "findings.txt").write_text("\n".join(texts), encoding="utf-8", errors="backslashreplace")
