"""`tenure run` and `work logs --follow` against a store that the test moves as coordinator and worker would."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from shared.ids import Incarnation, WorkId
from shared.model.attempt import Ending, FailureClass, LeaseKey
from shared.model.work import WorkState
from tests.support.command_homes import CommandHome, Running, ending, failed_to_run
from tests.support.processes import Reaper
from tests.support.waiting import wait_until

HEAVY = {"pydantic", "rich", "psutil", "sqlite_utils", "typer", "multiprocessing", "asyncio"}


@pytest.fixture
def start(home: CommandHome, reaper: Reaper) -> Callable[..., Running]:
    def start(*words: str) -> Running:
        return Running(reaper, home, words)

    return start


def submitted(home: CommandHome) -> WorkId:
    return wait_until(home.works, "a work is handed in")[0]


def launched(home: CommandHome, worker: Incarnation) -> LeaseKey:
    return home.launch(worker, submitted(home))


def test_output_comes_as_it_is_written_and_the_exit_code_is_the_jobs(
    home: CommandHome, start: Callable[..., Running]
) -> None:
    worker = home.staff()
    running = start("run", "--", "a", "b")
    key = launched(home, worker)

    home.say(key, b"one\n\x00\xff")
    running.wait_out(b"one\n\x00\xff")
    home.say(key, b"wrong\n", "err")
    running.wait_err("wrong\n")
    home.say(key, b"two, and the rest")
    home.end(key, ending(7))

    assert running.wait() == 7
    assert running.out == b"one\n\x00\xfftwo, and the rest"
    assert running.err == "wrong\n"


def test_output_is_whole_over_every_takeover(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    other = home.worker("worker-2")
    running = start("run", "--", "a")
    key = launched(home, worker)
    home.say(key, b"before ")
    running.wait_out(b"before ")

    for _ in range(2):
        home.release(key)
        key = home.take_over(key, other)
        home.adopt(key)
        home.say(key, b"after ")

    home.end(key, ending(0))
    assert running.wait() == 0
    assert running.out == b"before after after "


def test_output_of_a_second_attempt_follows_that_of_the_first(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    running = start("run", "--", "a")
    key = launched(home, worker)
    home.end(key, failed_to_run("launch: no room", FailureClass.ADMISSION))
    assert home.states() == {submitted(home): WorkState.BACKOFF}
    home.clock.advance(2_000_000)
    home.fire(WorkId("w1"))

    request = home.request(submitted(home), worker)
    home.as_leader(lambda tx: tx.claim(request))
    second = LeaseKey(home.store.read(lambda tx: tx.attempts(WorkId("w1")))[-1].id, 1, worker)
    home.store.write(lambda tx: tx.accept(second, invoke_isolated=True))
    home.store.write(lambda tx: tx.pin(second, home.pin(second)))
    home.directory(second).mkdir(parents=True)
    home.say(second, b"at last\n")
    home.end(second, ending(0))

    assert (running.wait(), running.out) == (0, b"at last\n")


@pytest.mark.parametrize(
    ("end", "code", "line"),
    [
        (ending(0), 0, ""),
        (ending(-9), 137, ""),
        (failed_to_run("exec: ENOENT: No such file or directory: nosuch"), 127, "tenure: w1.1: command not found"),
        (
            failed_to_run("exec: EACCES: Permission denied: /etc"),
            126,
            "tenure: w1.1: the command could not be executed",
        ),
    ],
)
def test_way_of_ending_is_the_exit_code(
    home: CommandHome, start: Callable[..., Running], end: Ending, code: int, line: str
) -> None:
    worker = home.staff()
    running = start("run", "--", "a")

    home.end(launched(home, worker), end)

    assert running.wait() == code
    assert running.err.startswith(line)
    assert bool(running.err) == bool(line)


def test_unknown_outcome_is_125_and_names_what_to_look_at(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    running = start("run", "--", "a")
    key = launched(home, worker)
    home.say(key, b"so far\n")

    home.abandon(key)

    assert running.wait() == 125
    assert running.out == b"so far\n"
    assert "what became of w1.1 is unknown" in running.err
    assert f"tenure --home {home.home} work show w1" in running.err


def test_cancelled_work_is_125(home: CommandHome, start: Callable[..., Running]) -> None:
    home.staff()
    running = start("run", "--", "a")

    home.cancel(submitted(home))

    assert running.wait() == 125
    assert running.err.startswith("tenure: w1 was cancelled\n")


def test_interrupt_detaches_and_the_work_goes_on(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    running = start("run", "--", "a")
    key = launched(home, worker)
    home.say(key, b"begun\n")
    running.wait_out(b"begun\n")

    running.interrupt()

    assert running.wait() == 130
    again = f"tenure --home {home.home} work logs --follow w1"
    assert running.err == f"tenure: detached; w1 goes on\n  follow it again: {again}\n"
    assert home.states() == {"w1": WorkState.RUNNING}

    follower = start(*again.split()[3:])
    follower.wait_out(b"begun\n")
    home.say(key, b"ended\n")
    home.end(key, ending(3))
    assert (follower.wait(), follower.out) == (0, b"begun\nended\n")


def test_output_is_whole_over_a_wait(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    running = start("run", "--", "a")
    key = launched(home, worker)
    home.say(key, b"before ")
    running.wait_out(b"before ")
    home.park(key)
    assert home.call("work", "logs", "w1").out == "before "
    assert "nothing of it runs, slot free" in home.call("work", "show", "w1").out

    resumed = home.launch_again(key, worker)
    home.say(resumed, b"after")
    home.end(resumed, ending(0))

    assert running.wait() == 0
    assert running.out == b"before after"
    assert home.call("work", "logs", "w1").out == "before after"


def test_with_nothing_up_it_says_so_once_and_waits(home: CommandHome, start: Callable[..., Running]) -> None:
    running = start("run", "--", "a")
    said = f"tenure: nothing is up; waiting\n  start it: tenure --home {home.home} up\n"
    running.wait_err(said)

    worker = home.staff()
    home.end(launched(home, worker), ending(0))

    assert running.wait() == 0
    assert running.err == said


def test_with_somebody_up_it_says_nothing(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    running = start("run", "--", "a")

    home.end(launched(home, worker), ending(0))

    assert (running.wait(), running.err) == (0, "")


def test_work_is_handed_in_once_the_store_is_no_longer_busy(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    with (home.home / "queue.lock").open("r+b") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        running = start("run", "--", "a")
        running.wait_err("tenure: the store is busy, waiting")
        assert home.works() == []

    home.end(launched(home, worker), ending(0))
    assert running.wait() == 0
    assert home.works() == ["w1"]


def test_store_that_is_replaced_meanwhile_ends_the_following(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    running = start("run", "--", "a")
    launched(home, worker)

    (home.home / "store.db").rename(home.home / "aside.db")

    assert running.wait() == 125
    assert running.err.startswith("tenure: w1 cannot be followed any more: ")


def test_reader_that_leaves_ends_it_quietly_and_not_the_work(home: CommandHome, reaper: Reaper) -> None:
    worker = home.staff()
    process = reaper.start(home.argv("run", "--", "a"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    key = launched(home, worker)
    home.say(key, b"first\n")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"first\n"
    process.stdout.close()

    home.say(key, b"second\n")

    assert process.wait(timeout=30) == 141
    assert process.stderr.read() == b""
    assert home.states() == {"w1": WorkState.RUNNING}


def test_killed_follower_leaves_the_work_alone(home: CommandHome, start: Callable[..., Running]) -> None:
    worker = home.staff()
    running = start("run", "--", "a")
    key = launched(home, worker)

    running.process.send_signal(signal.SIGKILL)
    running.wait()

    home.end(key, ending(0))
    assert home.states() == {"w1": WorkState.COMPLETED}


def modules_after(home: CommandHome, words: list[str]) -> set[str]:
    program = (
        f"import sys\nfrom shared import cli\ncode = cli.main({words!r})\nprint(code, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, cwd=home.folder, timeout=60
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(modules)


@pytest.mark.parametrize(
    "words",
    [
        ["submit", "--", "true"],
        ["status"],
        ["status", "--json"],
        ["capacity"],
        ["work", "list"],
        ["work", "show", "w1"],
        ["work", "logs", "w1"],
        ["work", "logs", "--follow", "w1"],
    ],
)
def test_hot_command_imports_nothing_heavy_from_beginning_to_end(home: CommandHome, words: list[str]) -> None:
    home.ended(home.staff())

    assert modules_after(home, ["--home", str(home.home), *words]) & HEAVY == set()


def test_run_imports_nothing_heavy_from_beginning_to_end(home: CommandHome, reaper: Reaper) -> None:
    worker = home.staff()
    program = (
        "import sys\nfrom shared import cli\n"
        f"code = cli.main(['--home', {str(home.home)!r}, 'run', '--', 'a'])\nprint(code, *sys.modules)"
    )
    process = reaper.start([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE)
    home.end(launched(home, worker), ending(0))

    out, _ = process.communicate(timeout=30)

    code, *modules = out.decode().split()
    assert code == "0"
    assert set(modules) & HEAVY == set()


def test_environment_of_the_caller_is_not_recorded(home: CommandHome) -> None:
    assert home.call("submit", "--", "true", env={**os.environ, "CALLERS_SECRET": "42"}).code == 0

    work = home.work(WorkId("w1"))
    assert work.env == ()
