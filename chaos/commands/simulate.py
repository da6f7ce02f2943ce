"""`tenure drill simulate`: histories of seeds, on a virtual clock and a simulated host."""

from __future__ import annotations

import os
import random
from argparse import Namespace
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from chaos.commands import guards, session
from chaos.ledger import Ledger
from chaos.results import Coverage, Found, Struck
from chaos.simulation import corpus
from chaos.simulation.controls import SEEDS_MAX
from chaos.simulation.harm import Kind
from chaos.simulation.run import DEFAULTS, Options, Outcome, simulate
from chaos.simulation.shrink import Shrinker
from chaos.simulation.sweep import Tally, sweep
from chaos.stories import stories
from shared.boundary import Boundary, Side
from shared.clock import SystemClock
from shared.commands.arguments import Parser, whole_number
from shared.errors import UsageError
from shared.model.instant import US_PER_S, elapsed_us

SEEDS = 1_000
SHOWN_STEPS = 60
FAILURES_SHRUNK = 3
SHOWN_OF = 20
TELL_EVERY_US = 2 * US_PER_S


def main(argv: list[str]) -> int:
    """Play histories.

    Raises:
        UsageError: the command line is wrong.
    """
    parser = Parser(
        "tenure drill simulate",
        "The coordinator and worker of this tenure on a virtual clock and a simulated host. A seed decides who runs, who dies, who is "
        "frozen, where clocks step and the store fails.",
        session.EXIT_CODES,
    )
    parser.add_argument("--seeds", metavar="N", help=f"histories ({SEEDS}; 1 when --seed is given)")
    parser.add_argument("--seed", metavar="S", help="the first seed; else one is drawn")
    parser.add_argument(
        "--steps", metavar="N", help="go on until so many boundaries were reached, whatever --seeds says"
    )
    parser.add_argument("--jobs", metavar="N", help="processes (one for each processor)")
    parser.add_argument("--works", metavar="N", help=f"Works in each history ({DEFAULTS.works})")
    parser.add_argument("--workers", metavar="N", help=f"workers in each history ({DEFAULTS.workers})")
    parser.add_argument("--harms", metavar="N", help=f"items of harm in each history, at most ({DEFAULTS.harms})")
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="replay what is written there instead")
    parser.add_argument(
        "--guards",
        action="store_true",
        help=f"take each guard away instead, and wait for its check ({SEEDS_MAX} histories of each at most)",
    )
    return session.drill("simulate", parser, argv, _play)


def _play(given: Namespace, ledger: Ledger) -> None:
    if given.corpus is not None:
        _replay(given.corpus, ledger)
        return
    if given.guards:
        first = _number(given.seed, "--seed", 0, least=0)
        guards.play(ledger, first=first, seeds=_number(given.seeds, "--seeds", SEEDS_MAX))
        return
    options = Options(
        works=_number(given.works, "--works", DEFAULTS.works),
        workers=_number(given.workers, "--workers", DEFAULTS.workers),
        harms=_number(given.harms, "--harms", DEFAULTS.harms, least=0),
    )
    first = _number(given.seed, "--seed", random.SystemRandom().randrange(2**32), least=0)
    count = _number(given.seeds, "--seeds", SEEDS if given.seed is None else 1)
    until_steps = _number(given.steps, "--steps", 0)
    ledger.seed = first
    sizes = _sizes(options)
    bound = f" --steps {until_steps}" if until_steps else f" --seeds {count}"
    ledger.command = f"tenure drill simulate --seed {first}{bound}{sizes}"
    ledger.say(f"replay with: {ledger.command}")
    seeds = range(first, first + (2**31 if until_steps else count))
    total = Tally()
    try:
        if len(seeds) == 1:
            _one(first, options, ledger, total)
        else:
            _many(
                seeds, options, ledger, total, until_steps, _number(given.jobs, "--jobs", len(os.sched_getaffinity(0)))
            )
    finally:
        _count(ledger, total)
    for seed in sorted(total.failed)[:FAILURES_SHRUNK]:
        _tell(simulate(seed, options), f"tenure drill simulate --seed {seed}{sizes}", ledger)
    for seed in sorted(total.failed)[FAILURES_SHRUNK:]:
        for finding in total.failed[seed]:
            ledger.findings.append(Found(finding.check, finding.what, f"tenure drill simulate --seed {seed}{sizes}"))
    if total.histories > 1 and not total.failed:
        _show(seeds, options, ledger)


def _one(seed: int, options: Options, ledger: Ledger, total: Tally) -> None:
    """One history, told from its beginning to its end."""
    outcome = simulate(seed, options)
    total.add(Tally(1, outcome.steps, outcome.elapsed_us, outcome.cpu_us, reached=outcome.reached))
    total.struck.update(str(harm.kind) for harm in outcome.struck)
    if outcome.findings:
        total.failed[seed] = outcome.findings
    ledger.say("\n".join(str(step) for step in outcome.trace))
    ledger.stories += stories(outcome.history, findings=outcome.findings, seed=seed)


def _many(seeds: range, options: Options, ledger: Ledger, total: Tally, until_steps: int, processes: int) -> None:
    clock = SystemClock()
    began = told = clock.now()
    with closing(sweep(seeds, options, processes=processes)) as tallies:
        for tally in tallies:
            total.add(tally)
            for seed, findings in tally.failed.items():
                ledger.say(f"seed {seed}: {findings[0]}")
            now = clock.now()
            if elapsed_us(told, now) >= TELL_EVERY_US:
                told = now
                ledger.say(f"{_summary(total)}, {_rates(total, elapsed_us(began, now))}")
            if until_steps and total.steps >= until_steps:
                break
    took_us = max(1, elapsed_us(began, clock.now()))
    ledger.totals["histories per second"] = round(total.histories * US_PER_S / took_us, 1)
    ledger.totals["histories per second and processor"] = round(total.histories * US_PER_S / max(1, total.cpu_us), 1)
    ledger.say(f"{_summary(total)}, {_rates(total, took_us)}")


def _rates(total: Tally, took_us: int) -> str:
    """By the clock on the wall, and by the processor time that was used, which a busy host does not change."""
    by_wall, by_cpu = (total.histories * US_PER_S / max(1, us) for us in (took_us, total.cpu_us))
    return f"{by_wall:.1f} histories/s, {by_cpu:.1f} for each second of processor time"


def _summary(total: Tally) -> str:
    return f"{total.histories} histories, {total.steps} boundaries reached, {len(total.failed)} failed"


def _count(ledger: Ledger, total: Tally) -> None:
    """Keep what was done, also when it was cut short."""
    ledger.say(_summary(total))
    ledger.totals |= {"histories": total.histories, "steps": total.steps, "failed": len(total.failed)}
    ledger.totals["virtual seconds"] = total.elapsed_us // US_PER_S
    ledger.totals |= {f"harm: {kind}": number for kind, number in sorted(total.struck.items())}
    found = [_coverage(boundary, total) for boundary in Boundary]
    ledger.coverage += found
    unreached = [each.boundary for each in found if not each.is_reached]
    if unreached:
        ledger.say(f"never reached: {', '.join(unreached)}")


def _coverage(boundary: Boundary, total: Tally) -> Coverage:
    def struck(side: Side) -> Struck:
        return Struck(*(total.reached[boundary, side, kind] for kind in (Kind.CRASH, Kind.PAUSE, Kind.FAULT)))

    return Coverage(
        str(boundary),
        total.reached[boundary, Side.BEFORE, ""],
        total.reached[boundary, Side.AFTER, ""],
        struck(Side.BEFORE),
        struck(Side.AFTER),
    )


def _tell(outcome: Outcome, command: str, ledger: Ledger) -> None:
    """A failing history: what was found, what it shrinks to, what came before, and how to see it again."""
    for finding in outcome.findings:
        ledger.findings.append(Found(finding.check, finding.what, command))
        ledger.say(f"seed {outcome.seed}: {finding}")
    small = Shrinker(outcome).shrink()
    kept = ledger.folder / f"history-{outcome.seed}.json"
    kept.write_text(corpus.to_json([corpus.entry_of(small, "")]), encoding="utf-8")
    ledger.say(f"  shrunk to {len(small.jobs)} Works and {len(small.plan)} items of harm, {small.steps} steps:")
    for harm in small.plan:
        ledger.say(f"    {harm}")
    for finding in small.findings:
        ledger.say(f"    {finding}")
    ledger.say("\n".join(f"    {step}" for step in small.trace[-SHOWN_STEPS:]))
    ledger.say(f"  replay with: {command}")
    ledger.say(f"  the short one: tenure drill simulate --corpus {kept}")
    ledger.stories += stories(small.history, findings=small.findings, seed=outcome.seed)


def _show(seeds: range, options: Options, ledger: Ledger) -> None:
    """For the page, where nothing failed: of the first histories the one in which attempts changed hands most often."""
    outcomes = [simulate(seed, options) for seed in seeds[:SHOWN_OF]]
    busiest = max(outcomes, key=lambda one: sum(attempt.epoch for attempt in one.history.attempts.values()))
    ledger.stories += stories(busiest.history, seed=busiest.seed)


def _replay(path: Path, ledger: Ledger) -> None:
    ledger.command = f"tenure drill simulate --corpus {path}"
    try:
        entries = corpus.read(path)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is no corpus of histories: {error}") from error
    total = Tally()
    for entry in entries:
        outcome = simulate(entry.seed, entry.options)
        total.add(Tally(1, outcome.steps, outcome.elapsed_us, outcome.cpu_us, reached=outcome.reached))
        ledger.say(f"seed {entry.seed}: {'; '.join(str(finding) for finding in outcome.findings) or 'nothing found'}")
        ledger.findings += [Found(finding.check, finding.what, ledger.command) for finding in outcome.findings]
    _count(ledger, total)


def _sizes(options: Options) -> str:
    """What of the options is not as usual, as it is typed."""
    plain = replace(DEFAULTS)
    names = [name for name in ("works", "workers", "harms") if getattr(options, name) != getattr(plain, name)]
    return "".join(f" --{name} {getattr(options, name)}" for name in names)


def _number(text: str | None, option: str, default: int, *, least: int = 1) -> int:
    return default if text is None else whole_number(text, option, least=least, most=2**63)
