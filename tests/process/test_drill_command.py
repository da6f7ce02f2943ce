"""`tenure drill`: says what it does, what it found, and how to see it again."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaos import cli, results
from chaos.commands import matrix
from chaos.matrix.cell import Cell, Harm, Played
from chaos.matrix.every import every_cell
from chaos.matrix.lanes import Lanes
from chaos.random_drill.drill import RandomDrill
from chaos.random_drill.plan import plan
from chaos.random_drill.processes import Processes
from chaos.report.page import page
from shared.boundary import Boundary
from shared.errors import ConfigError, UsageError
from tests.support.drill_results import a_result


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Drills make their homes below it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_cell_of_the_matrix_is_played_and_nothing_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["matrix", "--only", "coordinator-claim_commit-before-kill-self"], home=None)

    told = capsys.readouterr().out
    assert code == 0
    assert "coordinator-claim_commit-before-kill-self" in told
    assert "1 cells: 1 ok, 0 skipped, 0 failed" in told
    assert told.endswith("0 lost, 0 run twice, 0 false success\n")
    assert list(folder.iterdir()) == []


def test_a_few_kills_are_drawn_and_can_be_replayed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["run", "--kills", "2", "--jobs", "3", "--seed", "5"], home=None)

    told = capsys.readouterr().out
    assert code == 0
    assert "replay with: tenure drill run --seed 5 --kills 2 --jobs 3" in told
    assert ", 0 findings" in told
    assert list(folder.iterdir()) == []


def test_a_drill_that_never_rests_has_failed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is the test above, which rests. What is under way is a finding, and the home is kept."""
    rest = RandomDrill.rest
    jobs = tuple(job for step in plan(5, kills=1, jobs=1) for job in step.jobs)
    monkeypatch.setattr(Processes, "start", lambda *_args, **_options: None)  # so nobody takes what is handed in
    monkeypatch.setattr(RandomDrill, "play", lambda drill: drill.operator.hand_in(jobs))
    monkeypatch.setattr(RandomDrill, "rest", lambda drill: rest(drill, 0.5))

    assert cli.main(["run", "--seed", "5", "--kills", "1", "--jobs", "1"], home=None) == 1
    assert "comes_to_rest: not within 0.5 s" in capsys.readouterr().out
    assert len(list(folder.iterdir())) == 1


def plays(monkeypatch: pytest.MonkeyPatch, play: Callable[[Cell], Played]) -> None:
    """Let a function play each cell, in this process."""

    def answers(_lanes: Lanes, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Played]]:
        return ((cell, play(cell)) for cell in cells)

    monkeypatch.setattr(Lanes, "play", answers)


def test_a_cell_that_fails_is_told_with_what_replays_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plays(monkeypatch, lambda cell: Played(str(cell), "adopted", 7, ("epochs_only_rise: w1.1 went back",)))

    assert cli.main(["matrix", "--only", "worker-go_send-after-kill-self"], home=None) == 1
    told = capsys.readouterr().out
    assert "epochs_only_rise: w1.1 went back" in told
    assert "replay with: tenure drill matrix --only worker-go_send-after-kill-self" in told
    assert told.rstrip().splitlines()[-2] == "1 finding: epochs_only_rise"


def test_the_result_tells_what_was_found_first_and_then_one_chain_for_each_boundary(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(cell: Cell) -> Played:
        findings = ("epochs_only_rise: w1.1 went back",) if cell.boundary is Boundary.PIN_COMMIT else ()
        told = (replace(a_result().stories[0], title=str(cell)),) if cell.harm is Harm.KILL else ()
        return Played(str(cell), "relaunched", 7, findings, stories=told)

    plays(monkeypatch, played)
    monkeypatch.setattr(matrix, "STORIES_MAX", 6)
    place = folder / "result.json"

    assert cli.main(["matrix", "--only", "worker-p", "--result", str(place)], home=None) == 1

    assert [story.title for story in results.read(place).stories] == [
        "worker-pin_commit-before-kill-self",
        "worker-pin_commit-before-kill-everyone",
        "worker-pin_commit-after-kill-self",
        "worker-pin_commit-after-kill-everyone",
        "worker-park_commit-before-kill-self",
    ]


def test_what_cannot_be_tried_here_is_counted_and_never_green(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plays(monkeypatch, lambda cell: Played(str(cell), "", 0, skipped="strace is not installed"))

    assert cli.main(["matrix", "--only", "worker-pin_commit-disk_full"], home=None) == 0
    told = capsys.readouterr().out
    assert "skipped 1: strace is not installed" in told
    assert "1 cells: 0 ok, 1 skipped, 0 failed" in told
    assert "0 lost" not in told


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["kills"],
        ["run", "--kils", "2"],
        ["run", "--seed", "x"],
        ["matrix", "now"],
        ["matrix", "--part", "5/4"],
        ["matrix", "--part", "0/4"],
        ["matrix", "--lanes", "0"],
        ["simulate", "--seeds", "0"],
    ],
)
def test_a_wrong_command_line_is_refused(argv: list[str], folder: Path) -> None:
    with pytest.raises(UsageError):
        cli.main(argv, home=None)
    assert list(folder.iterdir()) == []


def test_the_result_is_written_where_it_is_wanted(folder: Path) -> None:
    place = folder / "result.json"

    assert cli.main(["matrix", "--only", "no such cell", "--result", str(place)], home=None) == 0

    assert results.read(place).passed
    assert list(folder.iterdir()) == [place]


def test_a_drill_cut_short_leaves_what_it_has(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Cell] = []

    def interrupted_at_the_third(cell: Cell) -> Played:
        played.append(cell)
        if len(played) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return Played(str(cell), "undisturbed", 1)

    plays(monkeypatch, interrupted_at_the_third)
    place = folder / "result.json"

    assert cli.main(["matrix", "--result", str(place)], home=None) == 130

    result = results.read(place)
    assert (result.passed, result.cut_short) == (False, "interrupted")
    assert [cell.name for cell in result.cells] == [str(cell) for cell in played[:2]]
    assert "2 cells: 2 ok" in capsys.readouterr().out
    assert list(folder.iterdir()) == [place]


def test_what_was_found_before_the_interrupt_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found_then_interrupted(cell: Cell) -> Played:
        if cell == every_cell()[0]:
            return Played(str(cell), "", 1, ("epochs_only_rise: w1.1 went back",))
        raise KeyboardInterrupt

    plays(monkeypatch, found_then_interrupted)

    assert cli.main(["matrix"], home=None) == 130

    (kept,) = folder.iterdir()
    assert [cell.findings for cell in results.read(kept / "result.json").cells] == [
        ("epochs_only_rise: w1.1 went back",)
    ]


def test_a_drill_that_breaks_says_so_and_leaves_what_it_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_cell: Cell) -> Played:
        raise RuntimeError("no disk")

    plays(monkeypatch, broken)
    place = folder / "result.json"

    with pytest.raises(RuntimeError):
        cli.main(["matrix", "--result", str(place)], home=None)

    assert results.read(place).cut_short == "RuntimeError: no disk"


def test_a_place_for_the_result_that_cannot_be_is_refused_before_anything_is_done(folder: Path) -> None:
    with pytest.raises(UsageError, match="--result"):
        cli.main(["matrix", "--result", str(folder / "none" / "result.json")], home=None)
    assert list(folder.iterdir()) == []


def test_results_become_a_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [folder / "one.json", folder / "two.json"]
    for place in places:
        a_result().write(place)

    assert cli.main(["report", *map(str, places), "--page", str(folder / "page.html")], home=None) == 0

    assert (folder / "page.html").read_text("utf-8") == page([a_result(), a_result()])
    assert (folder / "page.html").stat().st_mode & 0o777 == 0o600
    assert f"{places[0]}: matrix: 0 lost, 0 run twice, 0 false success" in capsys.readouterr().out


def test_a_file_that_is_no_result_is_refused_and_no_page_is_written(folder: Path) -> None:
    (folder / "odd.json").write_text("{}", "ascii")
    a_result().write(folder / "good.json")

    with pytest.raises(ConfigError, match=r"odd\.json: is no result of a drill"):
        cli.main(
            ["report", str(folder / "good.json"), str(folder / "odd.json"), "--page", str(folder / "p")], home=None
        )
    with pytest.raises(UsageError, match="which results"):
        cli.main(["report"], home=None)
    assert sorted(path.name for path in folder.iterdir()) == ["good.json", "odd.json"]


def test_a_drill_writes_its_page_where_it_is_wanted(folder: Path) -> None:
    place = folder / "page.html"

    assert cli.main(["matrix", "--only", "no such cell", "--page", str(place)], home=None) == 0

    assert "Nothing was tried" in place.read_text("utf-8")
    assert list(folder.iterdir()) == [place]
