"""The complete orphan scan on tables that are made up: what may be left of a launch, what is accounted for, what is exact."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from shared.ids import AttemptId
from shared.model.evidence import ProcessIdentity
from shared.process import orphans, procfs, snapshot
from shared.process.identity import boot_id, identify, pid_namespace
from shared.process.marks import Launch, Marks
from shared.process.orphans import Sources, find_orphans, scan
from shared.process.snapshot import Process, Snapshot
from tests.support.processes import Reaper

SHIM_TICKS = 1000
INIT = Process(1, 0, 1, 1, 1, "S", False)


def process(pid: int, ppid: int, start_ticks: int = SHIM_TICKS, *, ended: bool = False) -> Process:
    return Process(pid, ppid, pid, pid, start_ticks, "Z" if ended else "S", ended)


def table(*processes: Process, exact: bool = True) -> Snapshot:
    return Snapshot({each.pid: each for each in (INIT, *processes)}, exact)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    shim = ProcessIdentity(500, SHIM_TICKS, boot_id(), pid_namespace())
    return Sources(tmp_path, AttemptId("w1.1"), shim, ((40, 7),), frozenset(), contextlib.nullcontext)


@pytest.mark.req("R12")
@pytest.mark.parametrize(
    ("seen", "is_flagged"),
    [
        (process(600, 1), True),
        (process(600, 1, SHIM_TICKS - 1), False),
        (process(600, 1, ended=True), False),
        (process(600, 40), True),
        (process(600, 41), False),
        (process(600, 599), False),
    ],
    ids=[
        "of_pid_1",
        "older_than_the_shim",
        "ended",
        "of_a_reaper",
        "of_a_process_that_inherits_nothing",
        "below_another",
    ],
)
def test_what_may_be_left_of_a_launch(sources: Sources, seen: Process, is_flagged: bool) -> None:
    host = table(process(40, 1, 7), process(41, 1, 8), process(599, 41, 9), seen)

    assert [each.pid for each in find_orphans(host, sources)] == ([600] if is_flagged else [])


def test_a_reaper_whose_number_another_process_has_now_inherits_nothing(sources: Sources) -> None:
    assert find_orphans(table(process(40, 1, 7), process(600, 40)), sources), "control: it is the one that was recorded"

    assert find_orphans(table(process(40, 1, 9), process(600, 40)), sources) == []


def test_what_is_accounted_for_is_left_out(sources: Sources) -> None:
    host = table(process(600, 1))
    assert find_orphans(host, sources), "control"

    assert find_orphans(host, replace(sources, accounted=frozenset([(600, SHIM_TICKS)]))) == []
    assert find_orphans(host, replace(sources, accounted=frozenset([(600, SHIM_TICKS + 1)]))), (
        "its number alone is not it"
    )


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot]:
    """The snapshots that are taken, one after the other; the last one again and again."""
    snapshots: list[Snapshot] = []
    monkeypatch.setattr(snapshot, "take", lambda: snapshots.pop(0) if len(snapshots) > 1 else snapshots[0])
    monkeypatch.setattr(orphans, "PAUSE_S", 0)
    return snapshots


def marks(tmp_path: Path) -> Marks:
    return Marks(Launch(AttemptId("w1.1"), tmp_path, None, None, None, None))


@pytest.mark.req("R12")
@pytest.mark.parametrize(
    ("snapshots", "exact", "left"),
    [
        ([table()], True, ()),
        ([table(exact=False)], False, ()),
        ([table(exact=False)] * 18 + [table(), table()], True, ()),
        ([table(exact=False)] * 19 + [table()], False, ()),
        ([table(process(600, 1)), table(), table()], True, ()),
        ([table(process(600, 1))], False, (600,)),
        ([table(), table(process(600, 1))], False, (600,)),
    ],
    ids=["empty", "never_exact", "exact_at_last", "once_is_not_enough", "a_passer_by", "one_stays", "one_comes"],
)
def test_two_exact_and_empty_snapshots_of_twenty(
    sources: Sources,
    taken: list[Snapshot],
    tmp_path: Path,
    snapshots: list[Snapshot],
    exact: bool,
    left: tuple[int, ...],
) -> None:
    taken += snapshots

    found = scan(sources, marks(tmp_path))

    assert (found.exact, found.orphans) == (exact, left)


def test_the_caller_is_quiet_for_the_whole_of_the_scan(
    sources: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    order: list[str] = []

    def take() -> Snapshot:
        order.append("look")
        return table()

    @contextlib.contextmanager
    def quiet() -> Iterator[None]:
        order.append("quiet")
        yield
        order.append("on")

    monkeypatch.setattr(snapshot, "take", take)

    assert scan(replace(sources, quiet=quiet), marks(tmp_path)).exact
    assert order == ["quiet", "look", "look", "on"]


@pytest.mark.parametrize(("owner", "is_accounted"), [("w2.1.1", True), ("w1.1.2", False)])
@pytest.mark.parametrize("role", ["shim", "child"])
def test_shims_and_children_of_other_attempts_are_accounted_for(
    sources: Sources, taken: list[Snapshot], reaper: Reaper, tmp_path: Path, owner: str, is_accounted: bool, role: str
) -> None:
    living = identify(reaper.start(["sleep", "60"]).pid)
    other = replace(living, pid=1, start_ticks=procfs.start_ticks(1))
    record = {
        "child": asdict(living if role == "child" else other),
        "shim": asdict(living if role == "shim" else other),
    }
    (tmp_path / owner).mkdir()
    (tmp_path / owner / "child.json").write_text(json.dumps(record))
    taken.append(table(process(living.pid, 1, living.start_ticks)))
    launch = replace(sources, shim=replace(sources.shim, start_ticks=living.start_ticks))

    assert scan(launch, marks(tmp_path)).orphans == (() if is_accounted else (living.pid,))


class TestSnapshot:
    """What makes a snapshot of the real table exact."""

    @pytest.fixture
    def forks(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        counts = [7, 7]
        monkeypatch.setattr(procfs, "fork_count", lambda: counts.pop(0))
        return counts

    @pytest.fixture
    def lines(self, monkeypatch: pytest.MonkeyPatch) -> dict[int, Process]:
        found = {1: INIT, 600: process(600, 1), 601: process(601, 600)}
        monkeypatch.setattr("psutil.pids", lambda: list(found))
        monkeypatch.setattr(snapshot, "read", found.get)
        return found

    def test_nothing_was_forked_and_every_parent_is_there(self, forks: list[int], lines: dict[int, Process]) -> None:
        assert snapshot.take() == Snapshot(lines, True)

    def test_something_was_forked_meanwhile(self, forks: list[int], lines: dict[int, Process]) -> None:
        forks[1] = 8

        assert not snapshot.take().exact

    @pytest.mark.parametrize("how", ["gone", "ended"])
    def test_a_parent_ended_meanwhile(self, forks: list[int], lines: dict[int, Process], how: str) -> None:
        """Its child has another parent by now, and may be an orphan that this table does not show."""
        if how == "gone":
            del lines[600]
        else:
            lines[600] = process(600, 1, ended=True)

        assert not snapshot.take().exact

    def test_this_process_is_in_the_real_one_with_its_parent(self) -> None:
        seen = snapshot.take().table

        assert seen[os.getpid()].ppid == os.getppid()
        assert seen[os.getpid()].key == (os.getpid(), procfs.start_ticks(os.getpid()))
        assert not [each for each in seen.values() if each.pid != 1 and each.ppid == 0 and each.state == "I"]


class TestBlindness:
    """Where not everything is shown, nothing is proven by looking."""

    def test_here_everything_is_shown(self) -> None:
        assert procfs.blindness() is None

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            (b"rw", None),
            (b"rw,hidepid=0", None),
            (b"rw,hidepid=2", "/proc is mounted with hidepid"),
            (b"rw,gid=4,hidepid=invisible", "/proc is mounted with hidepid"),
        ],
    )
    def test_hidden_processes(self, monkeypatch: pytest.MonkeyPatch, options: bytes, why: str | None) -> None:
        monkeypatch.setattr(procfs, "_mount_options", lambda: options.split(b","))

        assert procfs.blindness() == why

    def test_proc_of_another_namespace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "readlink", lambda _: "4711")

        assert procfs.blindness() == "/proc belongs to another pid namespace"

    def test_no_count_of_forks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(procfs, "fork_count", lambda: 0)

        assert procfs.blindness() == "/proc/stat counts no processes"

    def test_pid_1_is_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def hidden(pid: int) -> list[bytes]:
            raise ProcessLookupError(pid)

        monkeypatch.setattr(procfs, "stat_fields", hidden)

        assert procfs.blindness() == "/proc does not show every process"
