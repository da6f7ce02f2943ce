"""A store that goes back in time: refused where the disk shows it, and where nothing can, nothing runs twice."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.checks import examine
from chaos.history import History
from chaos.simulation.harm import COMMITS_LOST, Harm, Kind
from chaos.simulation.jobs import Job
from chaos.simulation.past import Past
from chaos.simulation.run import Options, Outcome, simulate
from chaos.witness import Mark
from coordinator import bootstrap
from shared.boundary import Boundary, Side
from shared.errors import StoreUnavailableError
from shared.ids import WorkId
from shared.model.instant import US_PER_MS, US_PER_S
from shared.store.sqlite.driver import sqlite3

FIRST = int(os.environ.get("TENURE_SEED", "1"))
SEEDS = 40
SECONDS = Job(1_500 * US_PER_MS)


def starts(history: History, work_id: str) -> int:
    return len(history.lines_of(WorkId(work_id), Mark.START))


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What coordinators said when they refused a store at their start."""
    said: list[str] = []
    really = bootstrap.refuse_older

    def refuse_older(store, names) -> None:  # type: ignore[no-untyped-def]
        try:
            really(store, names)
        except StoreUnavailableError as error:
            said.append(str(error))
            raise

    monkeypatch.setattr(bootstrap, "refuse_older", refuse_older)
    return said


@pytest.mark.req("R02", "R04", "L03")
@pytest.mark.parametrize("kind", [Kind.OLDER, Kind.RESTORE])
def test_nothing_runs_twice_whatever_the_store_forgot(kind: Kind, refused: list[str]) -> None:
    print(f"TENURE_SEED={FIRST}")
    outcomes = [simulate(seed, options(kind, seed)) for seed in range(FIRST, FIRST + SEEDS)]

    assert {outcome.seed: outcome.findings for outcome in outcomes if outcome.findings} == {}
    assert any(outcome.history.lost for outcome in outcomes), "some lost commits, and nothing showed it"
    assert refused, "some were refused"


def options(kind: Kind, seed: int) -> Options:
    chance = random.Random(f"{seed}/setback")
    harm = Harm(kind, step=chance.randint(60, 400), commits=chance.choice(COMMITS_LOST), us=US_PER_S)
    return Options(plan=(harm,), jobs=(SECONDS,) * 3)


def lose(commits: int, *, boundary: Boundary = Boundary.CHILD_EXEC) -> Outcome:
    """The host loses its power when the first job has just begun, and the store so many of its last commits."""
    older = Harm(Kind.OLDER, "shim", boundary, Side.AFTER, commits=commits, us=US_PER_S)
    return simulate(3, Options(plan=(older,), jobs=(SECONDS,), workers=1))


def test_a_directory_that_the_store_does_not_know_is_refused_until_the_newest_copy_is_back(refused: list[str]) -> None:
    outcome = lose(1_000)

    assert outcome.findings == ()
    assert refused[0].endswith("w1 has a directory, the last Work that the store gave out is w0")
    assert starts(outcome.history, "w1") == 1
    assert any(event.kind == "attempt.pinned" for event in outcome.history.events), (
        "the newest copy tells of its launch"
    )


def test_a_forgotten_pin_is_left_to_a_person(refused: list[str]) -> None:
    """No directory shows it: the store knows this launch, and only the record of its child that it ran."""
    outcome = lose(1)

    assert refused == []
    assert outcome.findings == ()
    assert [event.kind for event in outcome.history.lost][-1] == "attempt.pinned"
    assert starts(outcome.history, "w1") == 1
    assert any(event.kind == "attempt.recovery_required" for event in outcome.history.events)


def test_a_power_loss_with_a_truthful_disk_is_refused_by_nobody(refused: list[str]) -> None:
    """The control: the same without the loss of a commit."""
    reboot = Harm(Kind.REBOOT, "shim", Boundary.CHILD_EXEC, Side.AFTER, us=US_PER_S)
    outcome = simulate(3, Options(plan=(reboot,), jobs=(SECONDS,), workers=1))

    assert outcome.struck
    assert outcome.findings == ()
    assert refused == []
    assert outcome.history.lost == ()


def test_a_store_that_nobody_can_put_right_is_refused_for_good(
    monkeypatch: pytest.MonkeyPatch, refused: list[str]
) -> None:
    """The copy that the person puts back is the older one again."""
    monkeypatch.setattr("chaos.simulation.setback.Setback.undo", lambda setback: setattr(setback, "is_undone", True))
    outcome = lose(1_000)

    assert outcome.findings == ()
    assert len(refused) >= 2
    assert all(job.may_stay_open for job in outcome.history.jobs)
    stuck = replace(outcome.history, jobs=tuple(replace(job, may_stay_open=False) for job in outcome.history.jobs))
    assert examine_names(stuck) >= {"jobs_are_one_set"}, "the control: it would be missed"


def examine_names(history: History) -> set[str]:
    return {finding.check for finding in examine(history)}


def test_a_log_is_cut_behind_a_commit(tmp_path: Path) -> None:
    store = tmp_path / "home" / "store.db"
    store.parent.mkdir()
    db = sqlite3.connect(store, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    db.execute("CREATE TABLE t (x)")
    past = Past(store)

    def left(commits: int) -> list[int] | None:
        with past.without_last(commits) as older:
            return None if older is None else [row[0] for row in older.execute("SELECT x FROM t")]

    assert left(1) is None, "nothing was committed since"
    for number in range(5):
        db.execute("INSERT INTO t VALUES (?)", (number,))
        assert past.note()
        assert not past.note()
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (9)")

    assert left(1) == [0, 1, 2, 3]
    assert left(3) == [0, 1]
    assert left(100) == []
    db.execute("ROLLBACK")
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    assert left(1) is None, "a checkpoint has copied all of it"
    db.close()
