"""What follows a Work on a screen reads what is under way, however long the Work has stood and however often its attempt was taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from chaos.crowd.copies import Copies
from chaos.crowd.population import SMALL
from chaos.crowd.site import FAILED, Site, config_for
from shared.clock import VirtualClock
from shared.commands.follow import PAGE, Follower, Launches
from shared.commands.open_home import OpenHome
from shared.commands.outcome import Outcome
from shared.commands.output import Outputs
from shared.home import Home
from shared.ids import AttemptId, WorkId, attempt_directory
from shared.model.attempt import Attempt, LeaseKey
from shared.model.work import NewWork, WorkChange, WorkKind, WorkState
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.store import open_store
from tests.support.stores import ram_folder

FEW, MANY = 4, 2_000
RESTED = WorkChange(WorkState.IDLE, None, None, 0)


class ScriptedClock(VirtualClock):
    """Does the next thing of a script each time somebody waits."""

    script: Iterator[Callable[[], object]] = iter(())

    def wait(self, until_mono_us: int, wake: Any) -> Any:
        """See `Clock.wait`."""
        next(self.script)()
        return super().wait(until_mono_us, wake)


@dataclass
class Reader:
    """What was passed on, and what it had cost, in steps of SQLite's machine and in looks at folders, when the follower waited."""

    data: bytes = b""
    steps: int = 0
    stats: int = 0
    costs: list[tuple[int, int]] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        """See `Sink`."""
        self.data += data

    def close(self) -> None:
        """See `Sink`."""

    def step(self) -> int:
        """One step of the machine."""
        self.steps += 1
        return 0

    def note(self) -> None:
        """The follower waits."""
        self.costs.append((self.steps, self.stats))

    def of_looks(self) -> list[tuple[int, int]]:
        """What each look but the first has cost."""
        return [
            (after[0] - before[0], after[1] - before[1])
            for before, after in zip(self.costs, self.costs[1:], strict=False)
        ]


@pytest.fixture
def site() -> Iterator[Site]:
    with ram_folder() as folder:
        site = Site(folder / "home", ScriptedClock(), config_for(SMALL))
        yield site
        site.close()


def folder_of(site: Site, attempt_id: str, epoch: int = 1) -> Path:
    return Home(site.home).attempts / attempt_directory(AttemptId(attempt_id), epoch)


def write(site: Site, attempt_id: str, data: bytes, epoch: int = 1) -> None:
    """Let a launch write to its standard output."""
    folder = folder_of(site, attempt_id, epoch)
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "out").open("ab") as out:
        out.write(data)


def standing(site: Site, attempts: int) -> WorkId:
    """A Work of which so many attempts have ended, and one runs."""
    work = NewWork("", None, ("true",), (), "/", b"first", "uid 1000", kind=WorkKind.STANDING)
    work_id = site.store.write(lambda tx: tx.submit(work, "jobs"))
    site.finish(site.run(work_id), change=RESTED)
    with closing(Copies(site.home)) as copies:
        copies.attempts(AttemptId(f"{work_id}.1"), attempts - 1)
    site.store.write(lambda tx: tx.add_input(work_id, b"more", by="uid 1000"))
    site.run(work_id)
    return work_id


def follow(
    site: Site,
    work_id: WorkId,
    script: list[Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    number: int | None = None,
) -> tuple[Reader, Outcome]:
    """Follow a Work while that happens, a thing at each wait, and cancel it then."""
    reader, connections, place = Reader(), [], Home(site.home)
    is_dir = Path.is_dir

    def counted(path: Path) -> bool:
        reader.stats += 1
        return is_dir(path)

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(*args, **options)
        connections.append(connection)
        return connection

    def noted(act: Callable[[], object]) -> Callable[[], object]:
        def noting() -> None:
            reader.note()
            act()

        return noting

    def cancel() -> None:
        site.store.write(lambda tx: tx.cancel_work(work_id, by="uid 1000", reason="enough"))

    assert isinstance(site.clock, ScriptedClock)
    site.clock.script = iter([noted(act) for act in [*script, cancel]])
    with (
        closing(open_store(site.home, site.clock, connect=connect)) as store,
        closing(Outputs(place.attempts, [("out", reader)], lambda _file, _count: None)) as outputs,
        monkeypatch.context() as patched,
    ):
        patched.setattr(Path, "is_dir", counted)
        connections[-1].set_progress_handler(reader.step, 1)
        home = OpenHome(place, store, site.clock, None)
        end = Follower(home, work_id, outputs, lambda _line, _advice: None, number=number).run()
    return reader, end


@pytest.mark.req("S01", "S02")
@pytest.mark.parametrize("number", [None, 1])
def test_a_look_at_a_work_costs_the_same_however_many_attempts_of_it_have_ended(
    site: Site, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    def touch() -> None:
        site.store.write(lambda tx: tx.beat(site.worker))

    worst: list[tuple[int, int]] = []
    for attempts in (FEW, MANY):
        work_id = standing(site, attempts)
        reader, end = follow(site, work_id, [touch] * 6, monkeypatch, number=number)
        assert end.line == f"{work_id} was cancelled"
        assert len(reader.of_looks()) == 6
        worst.append((max(steps for steps, _ in reader.of_looks()), max(stats for _, stats in reader.of_looks())))

    (steps_of_few, stats_of_few), (steps_of_many, stats_of_many) = worst
    assert steps_of_many <= steps_of_few + 100, "of SQLite's machine; reading one attempt takes more than fifty"
    assert stats_of_many <= stats_of_few <= 1


@pytest.mark.req("S01")
def test_what_all_attempts_wrote_comes_once_and_in_their_order(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 3 * PAGE
    work_id = standing(site, attempts)
    wrote = [1, 2, PAGE, PAGE + 1, 2 * PAGE, attempts, attempts + 1]
    for number in wrote:
        write(site, f"{work_id}.{number}", b"%d " % number)

    def next_one() -> None:
        [last] = site.running()
        number = int(last.rpartition(".")[2])
        write(site, last, b"last words ")
        site.finish(LeaseKey(last, 1, site.worker), change=RESTED)
        site.store.write(lambda tx: tx.add_input(work_id, b"again", by="uid 1000"))
        write(site, site.run(work_id).attempt_id, b"%d " % (number + 1))

    reader, end = follow(site, work_id, [next_one, next_one, lambda: None], monkeypatch)

    first = b"".join(b"%d " % number for number in wrote)
    assert reader.data == first + b"last words %d last words %d " % (attempts + 2, attempts + 3)
    assert end.code == 125


def test_the_last_attempt_counts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    work_id = site.submit()
    again = WorkChange(WorkState.READY, None, None, 0)
    site.finish(site.run(work_id), FAILED, again)
    key = site.run(work_id)

    _, end = follow(site, work_id, [lambda: site.finish(key)], monkeypatch)

    assert end == Outcome(0)


@pytest.mark.req("S01")
def test_only_the_folders_that_an_attempt_may_have_got_since_are_looked_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = site.run(site.submit())
    found = site.store.read(lambda tx: tx.attempt(key.attempt_id))
    assert found is not None
    stats: list[Path] = []
    is_dir = Path.is_dir

    def counted(path: Path) -> bool:
        stats.append(path)
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", counted)
    launches = Launches(Home(site.home).attempts)

    def names(attempt: Attempt) -> tuple[list[int], int]:
        """The epochs of its launches, and how many folders were looked for."""
        stats.clear()
        return [int(name.rpartition(".")[2]) for name in launches.of([attempt])], len(stats)

    assert names(replace(found, epoch=MANY)) == ([], MANY), "each once: it may have been launched anew at any"
    write(site, key.attempt_id, b"", epoch=MANY)
    assert names(replace(found, epoch=MANY)) == ([MANY], 1)
    write(site, key.attempt_id, b"", epoch=MANY + 2)
    assert names(replace(found, epoch=MANY + 3)) == ([MANY, MANY + 2], 3), "nobody saw those before"
    assert names(replace(found, epoch=MANY + 3)) == ([MANY, MANY + 2], 1)
    ended = replace(found, epoch=MANY + 3, ended_at_us=1)
    assert [names(ended)[1], names(ended)[1]] == [1, 0], "nothing launches it again"
