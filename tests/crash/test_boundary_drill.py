"""A coordinator or worker dies right before and right after each boundary it crosses; the next one goes on, and all holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos.boundaries import COORDINATOR_SCENES, ELSEWHERE, WORKER, WORKER_SCENES, Cell, Mode, Stage, cells
from chaos.harness import COORDINATOR
from shared.boundary import Boundary

Stages = dict[str, Stage]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    folder = tmp_path_factory.mktemp("boundaries")
    found = {role: Stage(folder, role) for role in (WORKER, COORDINATOR)}
    yield found
    for stage in found.values():
        stage.close()


@pytest.mark.req("E03", "E16", "R02", "R03", "R04", "R05", "R15", "L01")
@pytest.mark.parametrize("cell", list(cells()), ids=str)
def test_killed_there_another_goes_on(stages: Stages, cell: Cell) -> None:
    assert stages[cell.role].play(cell) == []


@pytest.mark.drills
@pytest.mark.req("R07", "R08", "R09", "L01")
@pytest.mark.parametrize("cell", list(cells(mode=Mode.STOP)), ids=str)
def test_stopped_there_until_its_leases_lapsed_it_does_no_harm(stages: Stages, cell: Cell) -> None:
    assert stages[cell.role].play(cell) == []


def test_every_boundary_is_a_cell_or_is_crossed_by_something_else() -> None:
    drilled = set(WORKER_SCENES) | set(COORDINATOR_SCENES)

    assert drilled | ELSEWHERE == set(Boundary)
    assert drilled & ELSEWHERE == set()
