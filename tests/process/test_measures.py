"""What a job costs is counted and fixed; how long things take is measured, and asserted nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos import measures
from shared.boundary import Boundary
from tests.support.checkout import ROOT

COMMITS_OF_A_JOB = (
    Boundary.SUBMIT_COMMIT,
    Boundary.CLAIM_COMMIT,
    Boundary.ACCEPT_COMMIT,
    Boundary.PIN_COMMIT,
    Boundary.FINISH_COMMIT,
)
# What goes on whether or not there is a job: signs of life, leadership, the record of passes.
UPKEEP = {Boundary.RENEW_COMMIT, Boundary.LEADER_COMMIT, Boundary.PASS_COMMIT, Boundary.RECOVERY_COMMIT}
STATEMENTS_OF_A_JOB_MAX = 200
BATCH = 40


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return measures.counts(tmp_path_factory.mktemp("counts") / "drill", jobs=BATCH)


def test_a_job_costs_five_commits_of_its_own(counted: dict[str, Any]) -> None:
    one = counted["one_job"]
    commits = {name: count for name, count in one.items() if name.endswith("_commit") and name not in UPKEEP}

    assert commits == dict.fromkeys(COMMITS_OF_A_JOB, 1)


def test_a_launch_costs_one_sync_and_one_request_to_the_zygote_here(counted: dict[str, Any]) -> None:
    """The shim's own syncs are four: `child.json`, `exit.json`, and the directory after each."""
    launch = (
        Boundary.ATTEMPT_MKDIR,
        Boundary.ATTEMPT_SYNC,
        Boundary.SHIM_SPAWN,
        Boundary.READY_RECEIVE,
        Boundary.GO_SEND,
    )

    assert {name: counted["one_job"].get(name) for name in launch} == dict.fromkeys(launch, 1)
    assert Boundary.ZYGOTE_EXEC not in counted["one_job"]


def test_the_statements_of_a_job_are_bounded(counted: dict[str, Any]) -> None:
    assert counted["one_job"]["statements"] <= STATEMENTS_OF_A_JOB_MAX


def test_jobs_that_come_together_share_commits(counted: dict[str, Any]) -> None:
    assert counted["per_job_of_batch"]["commits"] < len(COMMITS_OF_A_JOB) - 1  # the submit is not among these


def test_the_benchmark_prints_json(tmp_path: Path) -> None:
    words: list[str | Path] = [
        sys.executable,
        "-P",
        ROOT / "scripts" / "bench.py",
        "--quick",
        "--json",
        "--only",
        "disk",
    ]

    done = subprocess.run([*words, "--folder", tmp_path], capture_output=True, check=True, timeout=60)

    found = json.loads(done.stdout)
    assert set(found) == {"host", "disk"}
    assert {"tenure", "python", "kernel", "settings"} <= set(found["host"])
    assert list(tmp_path.iterdir()) == []
