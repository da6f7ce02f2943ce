"""Whoever comes to a named boundary is killed or frozen there, alone or with everybody; what must come of it comes of it.

Each boundary's own deaths are played every time; of all the rest a part, another one each day. The cells of a run are played on
several lanes, before the first of these tests looks at its own.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from chaos.matrix import deaths
from chaos.matrix.cell import CameTo, Cell, Harm, Kept, Played, Role, Scene, Who
from chaos.matrix.every import every_cell, kills_alone, part
from chaos.matrix.lane import Lane
from chaos.matrix.lanes import Lanes
from chaos.matrix.programs import PLOTS
from chaos.matrix.table import ELSEWHERE
from shared.boundary import Boundary, Side

LANES = 4
PARTS = 4
# Read before the fixtures clear the environment of whoever runs this.
PART = int(os.environ.get("TENURE_SEED") or dt.datetime.now(dt.UTC).toordinal()) % PARTS + 1
ALWAYS = list(kills_alone())
ROTATING = part([cell for cell in every_cell() if cell not in ALWAYS], PART, PARTS)

Results = dict[str, Played]


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What every cell came to that a selected test asks for."""
    asked = [item.callspec.params.get("cell") for item in request.session.items if hasattr(item, "callspec")]
    cells = [cell for cell in every_cell() if cell in asked]
    with Lanes(tmp_path_factory.mktemp("matrix"), min(LANES, len(cells))) as lanes:
        return {str(cell): result for cell, result in lanes.play(cells)}


@pytest.mark.timeout(900)
@pytest.mark.req("E03", "E16", "R02", "R03", "R04", "R05", "R15", "L01", "M01", "M02")
@pytest.mark.req("O06", "O08", "O15", "S01", "T01", "T02", "T04", "B03")
@pytest.mark.parametrize("cell", ALWAYS, ids=str)
def test_killed_there_it_converges(played: Results, cell: Cell) -> None:
    assert_as_expected(played[str(cell)])


@pytest.mark.drills
@pytest.mark.timeout(900)
@pytest.mark.req("R07", "R08", "R09", "L01", "M01", "M02", "M05")
@pytest.mark.req("O06", "O08", "O15", "S01", "T01", "T02", "T04", "B03")
@pytest.mark.parametrize("cell", ROTATING, ids=str)
def test_harmed_there_in_any_other_way_it_converges(played: Results, cell: Cell) -> None:
    print(
        f"part {PART} of {PARTS}; replay with: TENURE_SEED={PART - 1} ./scripts/test --drills tests/crash/test_boundary_drill.py"
    )
    assert_as_expected(played[str(cell)])


def assert_as_expected(result: Played) -> None:
    if result.skipped:
        pytest.skip(result.skipped)
    assert result.findings == ()


@pytest.mark.req("M03")
def test_every_boundary_has_cells_on_each_side_that_it_has() -> None:
    """A boundary added to the code without a drill fails here. What has one side only says so below."""
    drilled = {(cell.boundary, cell.side) for cell in every_cell() if not cell.is_fault}
    wanted = {(boundary, side) for boundary in Boundary for side in Side if boundary not in ELSEWHERE}

    assert wanted - drilled == ONE_SIDED
    assert all(ELSEWHERE.values()), "each says why"
    assert set(ELSEWHERE) & {boundary for boundary, _ in drilled} == set()


ONE_SIDED = {
    (Boundary.GO_RECEIVE, Side.BEFORE),  # waiting at the gate is the far side of READY_SEND
    (Boundary.CHILD_REAP, Side.BEFORE),  # waiting for the job is the far side of CHILD_EXEC
}


@pytest.mark.req("M01")
def test_every_point_is_tried_alone_and_with_everybody_killed_and_frozen() -> None:
    tried: dict[tuple[Role, Boundary, Side], set[tuple[Harm, Who]]] = {}
    for cell in every_cell():
        if not cell.is_fault and cell.scene is not Scene.NEW_HOME:
            tried.setdefault((cell.role, cell.boundary, cell.side), set()).add((cell.harm, cell.who))
    both = {(harm, who) for harm in (Harm.KILL, Harm.STOP) for who in (Who.SELF, Who.EVERYONE)}

    assert [point for point, harms in tried.items() if not both <= harms] == []


@pytest.mark.req("M01")
def test_where_programs_speak_something_is_kept_and_a_chain_of_takeovers_is_survived() -> None:
    speaking = [cell for cell in every_cell() if cell.scene in PLOTS or cell.boundary in SPOKEN_OF]

    assert [str(cell) for cell in speaking if not cell.keeps] == []
    assert {cell.boundary for cell in speaking if cell.incarnations >= 3} == {
        Boundary.DECLARE_COMMIT,
        Boundary.STREAM_COMMIT,
        Boundary.DISPATCH_COMMIT,
        Boundary.ACKNOWLEDGE_COMMIT,
        Boundary.CHANNEL_RENAME,
        Boundary.CHANNEL_WRITE,
        Boundary.PARK_COMMIT,
    }


SPOKEN_OF = frozenset({Boundary.EVENT_COMMIT, Boundary.INTENT_COMMIT})
"""Crossed by a person, for a program that runs or waits."""


def test_parts_are_all_cells_each_once() -> None:
    cells = every_cell()
    parts = [part(cells, number, PARTS) for number in range(1, PARTS + 1)]

    assert sorted(map(str, (cell for each in parts for cell in each))) == sorted(map(str, cells))
    assert len(set(map(str, cells))) == len(cells), "names are unique"


@pytest.fixture
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    made = Lane(tmp_path_factory.mktemp("lane"))
    yield made
    made.close()


def cell_named(name: str) -> Cell:
    return next(cell for cell in every_cell() if str(cell) == name)


def test_a_boundary_that_is_not_reached_fails_its_cell(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of every cell: a process that goes on past where it should have died is not taken for one that died."""
    monkeypatch.setattr(deaths, "HIT_BOUND_S", 2.0)

    result = lane.play(replace(cell_named("worker-stop_signal-before-kill-self"), scene=Scene.JOB))

    assert len(result.findings) == 1
    assert "worker-stop_signal-before-kill-self was reached" in result.findings[0]


def test_what_is_to_be_kept_and_is_not_fails_its_cell(lane: Lane) -> None:
    """The control of what is kept: a job that waits and goes on, of which an input is asked for that it never got."""
    cell = cell_named("worker-park_commit-after-kill-self")

    result = lane.play(replace(cell, keeps=cell.keeps | {Kept.INPUTS}))

    assert result.findings == (f"{Kept.INPUTS}: nothing was handed to w1",)


def test_what_comes_out_otherwise_than_written_down_fails_its_cell(lane: Lane) -> None:
    """The control of the expectations: the store's own word is compared, quiet is not enough."""
    cell = cell_named("worker-pin_commit-before-kill-self")

    result = lane.play(replace(cell, expected=frozenset({CameTo.ADOPTED}), incarnations=1))

    assert result.findings == ("convergence: it came to relaunched, expected was adopted",)
