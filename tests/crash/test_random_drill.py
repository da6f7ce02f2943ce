"""Seeded load and seeded harm on real processes: every job runs once, every status is true, nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from chaos import cli, results
from chaos.notes import Word
from chaos.random_drill.acts import ActKind
from chaos.random_drill.drill import RandomDrill
from chaos.random_drill.load import Kind
from chaos.random_drill.plan import COSTS, JOBS, KILLS, Harm, plan
from chaos.results import Result
from chaos.witness import Mark
from tests.support.processes import Reaper
from tests.support.small_disks import small_disk
from tests.support.waiting import wait_until

# Read before the fixtures clear the environment of whoever runs this.
SEED = int(os.environ.get("TENURE_SEED") or random.SystemRandom().randrange(2**32))
EXTRA_SEEDS = 5


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Drills make their homes below it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def drilled(folder: Path, seed: int, *more: str, kills: int, jobs: int) -> tuple[int, Result]:
    print(f"replay with: TENURE_SEED={seed} ./scripts/test tests/crash/test_random_drill.py")
    place = folder / "result.json"
    words = ["--seed", str(seed), "--kills", str(kills), "--jobs", str(jobs), "--result", str(place), *more]
    return cli.main(["run", *words], home=None), results.read(place)


def asked_for(seed: int) -> set[str]:
    """What a person is sure to be asked for in the drill of a seed."""
    jobs = [job for step in plan(seed, kills=KILLS, jobs=JOBS) for job in step.jobs]
    admits = any(job.kind is Kind.APPROVED and job.person.admits for job in jobs)
    breaking = Counter(job.status != 0 for job in jobs if job.kind is Kind.BREAKING)
    # So many more fail than do well that two in a row do in any order, even if some do not come to their end.
    quarantines = breaking[True] > 2 * (breaking[False] + 2)
    return {"release", "retry"} | ({"admit"} if admits else set()) | ({"release of breaking"} if quarantines else set())


@pytest.mark.timeout(400)
@pytest.mark.req(
    "E06",
    "R02",
    "R03",
    "R04",
    "R05",
    "R09",
    "R15",
    "L01",
    "L02",
    "K02",
    "K04",
    "M01",
    "M02",
    "M04",
    "M05",
    "W01",
    "O01",
    "O06",
    "O08",
    "O15",
    "T02",
    "T03",
    "B03",
    "B04",
    "G03",
)
def test_200_kills_lose_nothing_and_run_nothing_twice(folder: Path) -> None:
    code, result = drilled(folder, SEED, kills=KILLS, jobs=JOBS)

    assert [found.said for found in result.findings] == []
    assert code == 0
    assert result.totals["kills"] >= KILLS
    assert all(result.totals[f"harm: {harm}"] > 0 for harm in (Harm.SHIM, Harm.CLOCK))
    assert all(result.totals[f"said: {kind}"] > 0 for kind in (ActKind.FEED, ActKind.SUBMIT, ActKind.INTERRUPT))
    assert all(result.totals[f"asked for: {what}"] > 0 for what in asked_for(SEED))
    assert result.totals["takeovers"] > 0, "no kill hit a worker that held something: the drill has shown nothing"
    assert {figure.name.partition(",")[0] for figure in result.figures} >= {
        "worker killed",
        "leader killed",
        "submitted",
    }
    assert result.stories, "a history is worth telling"


@pytest.mark.drills
@pytest.mark.timeout(400)
@pytest.mark.parametrize("offset", range(1, 1 + EXTRA_SEEDS))
def test_more_seeds(folder: Path, offset: int) -> None:
    code, result = drilled(folder, SEED + offset, kills=KILLS, jobs=JOBS)

    assert (code, [found.said for found in result.findings]) == (0, [])


@pytest.mark.drills
@pytest.mark.timeout(400)
@pytest.mark.req("M05")
def test_a_disk_that_fills_up_loses_nothing_either(folder: Path) -> None:
    with small_disk(folder / "tried", "1m"):  # or skipped: nothing can be mounted here
        pass
    code, result = drilled(folder, SEED, "--small-disk", kills=KILLS // 2, jobs=JOBS // 2)

    assert [found.said for found in result.findings] == []
    assert code == 0
    assert result.totals["harm: full"] > 0


@pytest.mark.parametrize("fault", ["a start twice", "an end that was not"])
def test_what_is_planted_is_found_and_named(
    folder: Path, fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control of the whole drill: one witness line too many, and it says which check fired, and how to see it again."""
    rest = RandomDrill.rest

    def rest_then_plant(drill: RandomDrill) -> None:
        rest(drill)
        start = next(line for line in drill.harness.witness.lines() if line.mark is Mark.START)
        drill.harness.witness.tell(Mark.START if fault == "a start twice" else Mark.END, start)

    monkeypatch.setattr(RandomDrill, "rest", rest_then_plant)

    code, result = drilled(folder, 11, kills=1, jobs=4)

    check = "jobs_are_one_set" if fault == "a start twice" else "started_jobs_came_to_their_end"
    told = capsys.readouterr().out
    assert code == 1
    assert check in {found.check for found in result.findings}
    assert f"{check}: w" in told
    assert "witness: start" in told
    assert "replay with: tenure drill run --seed 11 --kills 1 --jobs 4" in told
    kept = [path for path in folder.iterdir() if path.is_dir()]
    assert len(kept) == 1
    assert check in (kept[0] / "findings.txt").read_text()


def test_a_program_that_read_an_input_twice_is_found_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of what programs note: one line of them twice."""
    rest = RandomDrill.rest

    def rest_then_plant(drill: RandomDrill) -> None:
        rest(drill)
        path = drill.operator.notes
        saw = next(line for line in path.read_text().splitlines() if json.loads(line)["word"] == Word.SAW)
        with path.open("a") as file:
            file.write(f"{saw}\n")

    monkeypatch.setattr(RandomDrill, "rest", rest_then_plant)

    code, result = drilled(folder, 11, kills=1, jobs=12)

    assert code == 1
    assert {found.check for found in result.findings} == {"inputs_are_read_in_order"}


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_leaves_no_process_and_no_folder(folder: Path, reaper: Reaper, times: int) -> None:
    """Asked once it comes to rest and checks; asked twice it leaves at once. Whatever is left fails the test by `reaper`."""
    argv = [sys.executable, "-m", "shared.cli", "drill", "run", "--seed", "4", "--kills", "100000", "--jobs", "50000"]
    drill = reaper.start(argv, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
    assert drill.stdout is not None
    wait_until(lambda: any(folder.glob("*/drill/witness")), "the drill has begun")
    wait_until(lambda: any(path.stat().st_size for path in folder.glob("*/drill/witness")), "a job has started")

    drill.send_signal(signal.SIGINT)
    said = b""
    while b"stopping" not in said:
        line = drill.stdout.readline()
        assert line, said
        said += line
    if times == 2:
        drill.send_signal(signal.SIGINT)
    rest, _ = drill.communicate(timeout=60)

    assert drill.returncode == 130, said + rest
    assert (b"findings" in rest) is (times == 1)
    assert list(folder.iterdir()) == []


def test_a_seed_plans_the_same_each_time() -> None:
    assert plan(7, kills=50, jobs=60) == plan(7, kills=50, jobs=60)
    assert plan(7, kills=50, jobs=60) != plan(8, kills=50, jobs=60)


@pytest.mark.parametrize(("wanted", "jobs"), [(1, 1), (50, 60), (200, 200)])
def test_a_plan_has_the_kills_and_jobs_that_were_asked_for(wanted: int, jobs: int) -> None:
    steps = plan(3, kills=wanted, jobs=jobs)

    assert sum(COSTS.get(step.harm, 0) for step in steps) >= wanted
    assert [job.number for step in steps for job in step.jobs] == list(range(1, jobs + 1))


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_of_the_usual_size_has_every_kind_of_job(seed: int) -> None:
    assert {job.kind for step in plan(seed) for job in step.jobs} == set(Kind)


def test_a_plan_of_many_has_every_kind_of_job_and_harm() -> None:
    steps = plan(3, kills=2_000, jobs=2_000)

    assert set(Counter(step.harm for step in steps)) == set(Harm) - {Harm.FULL}
    small = plan(3, kills=2_000, jobs=2_000, small_disk=True)
    assert set(Counter(step.harm for step in small)) == set(Harm)
    assert set(Counter(job.kind for step in steps for job in step.jobs)) == set(Kind)
    acts = [act for step in steps for job in step.jobs for act in job.acts]
    assert {act.kind for act in acts} == set(ActKind)
    assert {act.command for act in acts} == {act.again for act in acts} == {True, False}
    assert all(job.acts == tuple(sorted(job.acts, key=lambda act: act.after_s)) for step in steps for job in step.jobs)
    handed_in: list[Kind] = []
    for step in steps:
        handed_in += [job.kind for job in step.jobs]
        assert step.harm is not Harm.HOUND or handed_in[-1] is Kind.LINGERING, "what is hounded was just handed in"
    cancelled = [job for step in steps for job in step.jobs if job.cancel is not None]
    assert {job.cancel.attempt for job in cancelled if job.cancel is not None} == {True, False}
    assert all(job.cancel is not None for step in steps for job in step.jobs if job.kind is Kind.DEAF)
