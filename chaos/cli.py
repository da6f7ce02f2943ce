"""`tenure drill`: harm a tenure of its own on purpose, on this host, and say what is left.

Each drill makes a home of its own in a temporary folder, which is kept when something was found. Rule: design §9, §12.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from chaos import boundaries, kills
from chaos.boundaries import Mode, Stage
from chaos.harness import StillWaitingError

PASSED, FAILED = 0, 1


def main(argv: list[str], *, home: str | None) -> int:
    """Run the named drill; 1 when it found anything. `home` is not used: a drill never touches a home that is in use."""
    del home
    parser = argparse.ArgumentParser(
        prog="tenure drill", description="Kill and freeze processes of a home made for it."
    )
    drills = parser.add_subparsers(dest="drill", required=True)
    random_kills = drills.add_parser("kills", help="workers and coordinators killed at random times over short jobs")
    random_kills.add_argument("--seed", type=int, help="replays the harm of an earlier run; else a new one is drawn")
    random_kills.add_argument("--kills", type=int, default=kills.KILLS, help="at least so many (%(default)s)")
    random_kills.add_argument("--jobs", type=int, default=kills.JOBS, help="(%(default)s)")
    matrix = drills.add_parser("matrix", help="a death right before and right after each boundary")
    matrix.add_argument("--only", default="", help="cells whose name contains this")
    matrix.add_argument("--stop", action="store_true", help="freeze until the leases have lapsed, instead of killing")
    arguments = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="tenure-drill-"))
    if arguments.drill == "kills":
        passed = _kills(folder, arguments.seed, arguments.kills, arguments.jobs)
    else:
        passed = _matrix(folder, arguments.only, Mode.STOP if arguments.stop else Mode.KILL)
    if passed:
        shutil.rmtree(folder)
    else:
        _say(f"kept: {folder}")
    return PASSED if passed else FAILED


def _kills(folder: Path, seed: int | None, count: int, jobs: int) -> bool:
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    _say(f"replay with: tenure drill kills --seed {chosen} --kills {count} --jobs {jobs}")
    try:
        outcome = kills.run(folder / "drill", chosen, kills=count, jobs=jobs, say=_say)
    except StillWaitingError as error:
        _say(f"failed: {error}")
        return False
    _say(str(outcome))
    for finding in outcome.findings:
        _say(f"  {finding}")
    return not outcome.findings


def _matrix(folder: Path, only: str, mode: Mode) -> bool:
    stages: dict[str, Stage] = {}
    failed = 0
    chosen = [cell for cell in boundaries.cells(mode=mode) if only in str(cell)]
    try:
        for number, cell in enumerate(chosen, start=1):
            stage = stages.setdefault(cell.role, Stage(folder, cell.role))
            began = time.monotonic()
            try:
                found = [str(finding) for finding in stage.play(cell)]
            except AssertionError as error:  # not reached, not dead there, or never at rest
                found = [str(error)]
            failed += bool(found)
            verdict = "failed" if found else "ok"
            _say(f"{number:>3}/{len(chosen)} {cell!s:<44} {time.monotonic() - began:5.2f} s  {verdict}")
            for line in found:
                _say(f"        {line}")
            if found:
                _say(f"        replay with: tenure drill matrix --only {cell}{' --stop' if mode is Mode.STOP else ''}")
    finally:
        for stage in stages.values():
            stage.close()
    _say(f"{len(chosen)} cells, {failed} failed")
    return failed == 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
