"""A child's log reaches its parent, whatever becomes of the child, of its siblings, or of the parent's terminal."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pytest

from shared import child, logs
from tests.support import up_children
from tests.support.waiting import wait_until

Start = Callable[[str], "Run"]


class Records(logging.Handler):
    """A terminal that keeps what it is given; it can be held."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[logging.LogRecord] = []
        self.open = threading.Event()
        self.open.set()

    def emit(self, record: logging.LogRecord) -> None:
        self.open.wait()
        self.seen.append(record)

    def count(self, process: str, event: str = "") -> int:
        return sum(made.processName == process and made.getMessage().startswith(event) for made in list(self.seen))


class Run:
    """A real child with its own log, started as `tenure up` starts it."""

    def __init__(self, target: str, name: str, home: Path, terminal: Records, *, keep_write_end: bool = False) -> None:
        self.log = logs.ChildLog(name, terminal)
        options = child.ChildOptions(home=str(home), name=name, parent_pid=os.getpid())
        target = f"{up_children.CHILDREN}:{target}"
        self.process: BaseProcess = multiprocessing.Process(
            target=child.run, name=name, args=(target, options, self.log.queue)
        )
        self.process.start()
        if not keep_write_end:
            self.log.started()

    def kill(self) -> None:
        self.process.kill()
        self.process.join(30)

    def has_received_all(self) -> bool:
        """Whether the receiver has ended."""
        return not self.log._receive_thread.is_alive()


def wait_for(terminal: Records, process: str, event: str, count: int = 1) -> None:
    wait_until(lambda: terminal.count(process, event) >= count, f"{process} said {event} {count} ×")


@pytest.fixture
def terminal() -> Records:
    return Records()


@pytest.fixture
def start(tmp_path: Path, terminal: Records) -> Iterator[Callable[..., Run]]:
    """Start children by the name of their function; whatever is left of them is killed."""
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("spawn", force=True)
    (tmp_path / "run").mkdir()
    runs: list[Run] = []

    def one(target: str, *, keep_write_end: bool = False) -> Run:
        run = Run(target, f"child-{len(runs) + 1}", tmp_path, terminal, keep_write_end=keep_write_end)
        runs.append(run)
        return run

    try:
        yield one
    finally:
        terminal.open.set()
        for run in runs:
            run.kill()
            if not run.log.queue._writer.closed:
                run.log.started()
            run.log.close()
        multiprocessing.set_start_method(before, force=True)


@pytest.fixture
def queue() -> Iterator[Queue[Any]]:
    """A queue with both ends in this process."""
    made: Queue[Any] = multiprocessing.get_context("spawn").Queue()
    yield made
    made.cancel_join_thread()
    made.close()
    for end in (made._reader, made._writer):  # type: ignore[attr-defined]
        end.close()


def test_all_records_of_a_child_that_ends_arrive_in_order(start: Start, terminal: Records) -> None:
    run = start("counting")

    run.process.join(30)

    assert run.process.exitcode == 0
    wait_until(run.has_received_all, "the receiver ends with the child")
    taken = [made.__dict__ for made in terminal.seen if made.getMessage() == "count"]
    dropped = sum(made.__dict__["records"] for made in terminal.seen if made.getMessage() == "log.dropped")
    numbers = [fields["number"] for fields in taken]
    assert numbers == sorted(set(numbers))
    assert len(numbers) + dropped <= up_children.RECORDS
    assert len(numbers) >= logs.RECORDS_WAITING_MAX
    assert {fields["own"] for fields in taken} == {"own"}


def test_a_child_killed_in_the_middle_of_a_record_ends_its_own_receiver_and_silences_nobody(
    start: Start, terminal: Records, tmp_path: Path
) -> None:
    other = start("chatty")
    wait_for(terminal, "child-1", "child.ready")

    run = start("torn")

    run.process.join(30)
    assert run.process.exitcode == -signal.SIGKILL
    wait_until(run.has_received_all, "the receiver ends with the child")
    up_children.have_said(tmp_path, other.process.name)
    wait_for(terminal, "child-1", "chat.said")


def test_control_with_the_write_end_open_the_receiver_would_wait_for_ever(start: Callable[..., Run]) -> None:
    run = start("torn", keep_write_end=True)
    run.process.join(30)
    wait_until(lambda: not run.log.queue._reader.poll(0), "all that was sent is taken, and no end of it is to be read")
    assert not run.has_received_all()

    run.log.started()

    wait_until(run.has_received_all, "the receiver ends")


def test_children_killed_while_they_flood_the_log_leave_the_others_heard(
    start: Start, terminal: Records, tmp_path: Path
) -> None:
    other = start("chatty")
    wait_for(terminal, "child-1", "child.ready")

    for number in range(1, 7):
        run = start("flooding")
        wait_for(terminal, run.process.name, "flood", number)
        terminal.open.clear()  # so that the pipe is full, and the child somewhere in the middle of a record
        run.kill()
        terminal.open.set()
        wait_until(run.has_received_all, "its receiver ends")
        up_children.have_said(tmp_path, other.process.name)
        wait_for(terminal, other.process.name, "chat.said", number)
        terminal.seen[:] = [made for made in terminal.seen if made.processName == other.process.name]


def test_a_child_ends_though_nobody_takes_its_log(start: Start, terminal: Records) -> None:
    terminal.open.clear()
    run = start("counting")

    run.process.join(30)

    assert run.process.exitcode == 0


def test_a_closed_write_end_is_the_end_for_a_reader(queue: Queue[Any]) -> None:
    logs.close_write_end(queue)

    with pytest.raises(EOFError):
        queue.get()


def test_a_closed_read_end_is_an_error_for_a_writer_instead_of_a_wait(queue: Queue[Any]) -> None:
    logs.close_read_end(queue)

    with pytest.raises(BrokenPipeError):
        queue._writer.send_bytes(b"x" * 1_000_000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("ignored", [True, False])
def test_a_lost_parent_is_a_silent_end_of_the_feeder(
    queue: Queue[Any], capfd: pytest.CaptureFixture[str], ignored: bool
) -> None:
    if ignored:
        logs.ignore_lost_parent(queue)
    logs.close_read_end(queue)

    queue.put("unheard")
    queue.close()
    logs.join_feeder(queue, 30)

    assert ("BrokenPipeError" in capfd.readouterr().err) is not ignored


def test_joining_the_feeder_is_bounded(queue: Queue[Any]) -> None:
    queue.cancel_join_thread()
    queue.put("x" * 1_000_000)  # more than the pipe takes
    feeder = queue._thread  # type: ignore[attr-defined]
    reader = os.dup(queue._reader.fileno())  # type: ignore[attr-defined]  # the feeder closes its own at the end
    queue.close()

    logs.join_feeder(queue, 0.05)
    assert feeder.is_alive()

    with open(reader, "rb") as pipe:
        assert len(pipe.read(1_000_000)) == 1_000_000
    logs.join_feeder(queue, 30)
    assert not feeder.is_alive()


def test_joining_a_feeder_that_never_was(queue: Queue[Any]) -> None:
    queue.close()

    logs.join_feeder(queue, 30)
