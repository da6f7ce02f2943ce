"""Many seeds at once: spread over processes, counted, told as they come back. One that finds something is played again here."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from chaos.checks import Finding
from chaos.simulation.homes import play_in, ram_folder
from chaos.simulation.run import Options, simulate
from shared.boundary import Boundary, Side

CHUNK = 10


@dataclass(slots=True)
class Tally:
    """What some histories came to.

    Attributes:
        elapsed_us, cpu_us: Virtual time, and processor time.
        struck: Harm that found its place, by kind.
        reached: See `Outcome.reached`.
        failed: By seed, what was found.
    """

    histories: int = 0
    steps: int = 0
    elapsed_us: int = 0
    cpu_us: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    reached: Counter[tuple[Boundary, Side, str]] = field(default_factory=Counter)
    failed: dict[int, tuple[Finding, ...]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Count another's in."""
        self.histories += other.histories
        self.steps += other.steps
        self.elapsed_us += other.elapsed_us
        self.cpu_us += other.cpu_us
        self.struck.update(other.struck)
        self.reached.update(other.reached)
        self.failed.update(other.failed)


def play(seeds: range, options: Options) -> Tally:
    """Play some seeds, one after the other."""
    tally = Tally()
    for seed in seeds:
        outcome = simulate(seed, options)
        tally.histories += 1
        tally.steps += outcome.steps
        tally.elapsed_us += outcome.elapsed_us
        tally.cpu_us += outcome.cpu_us
        tally.struck.update(str(harm.kind) for harm in outcome.struck)
        tally.reached.update(outcome.reached)
        if outcome.findings:
            tally.failed[seed] = outcome.findings
    return tally


def sweep(seeds: range, options: Options, *, processes: int) -> Generator[Tally, None, None]:
    """Play many seeds on so many processes; what each chunk came to, in the order in which they are done.

    Closing the iterator ends it: chunks under way are played to their end, no more are begun.
    """
    chunks = (seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK))
    with ram_folder() as folder:
        pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin, (folder,))
        try:
            waiting: set[Future[Tally]] = set()
            while True:
                while len(waiting) < processes + 1 and (chunk := next(chunks, None)) is not None:
                    waiting.add(pool.submit(play, chunk, options))
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us says when it is over
    play_in(Path(folder))
