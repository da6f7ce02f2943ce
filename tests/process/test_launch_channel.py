"""A job that is spoken with: its standard input is a pipe that has no end, whoever writes and whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from shared import boundary
from shared.boundary import Boundary, Side
from shared.model.evidence import LockState
from shared.model.intent import Delivered
from shared.process.channel import Word, hand_over, say, tell
from shared.process.launcher import LaunchError
from shared.process.spec import CHANNEL_BYTES
from tests.process.launch_host import Host
from tests.support.checkout import ROOT
from tests.support.waiting import wait_until

ECHO = ["sh", "-c", 'while read -r line; do echo "got $line"; [ "$line" = end ] && exit 3; done; echo over']


def said(host: Host, pin: object, text: str) -> None:
    wait_until(lambda: text in host.out(pin), f"the job said {text}")  # type: ignore[arg-type]


def test_a_job_reads_what_was_there_first_and_what_comes_later_and_never_an_end(host: Host) -> None:
    pin = host.start(ECHO, stdin=b"first\n", channel=True, files=(("note", b"x"),))
    folder = host.folder(pin)

    said(host, pin, "got first")
    assert (folder / "note").read_bytes() == b"x"
    assert say(folder, b"second\n").result is Delivered.ACCEPTED
    said(host, pin, "got second")
    assert host.evidence(pin).lock is LockState.HELD, "that writers come and go is no end"
    say(folder, b"end\n")

    assert host.await_end(pin).status == 3
    assert "over" not in host.out(pin)


def test_a_job_whose_shim_was_killed_is_still_spoken_with(host: Host) -> None:
    pin = host.start(ECHO, channel=True)
    os.kill(pin.shim.pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pin.shim.pid}/exe").exists(), "the shim is dead")

    assert say(host.folder(pin), b"alone\n").result is Delivered.ACCEPTED

    said(host, pin, "got alone")
    say(host.folder(pin), b"end\n")
    said(host, pin, "got end")


def test_words_of_any_length_arrive_whole_and_in_order(host: Host) -> None:
    pin = host.start(ECHO, channel=True)
    folder = host.folder(pin)
    words = [Word("i1", 1, b"short"), Word("i2", 2, b"y" * 100_000), Word("i3", 3, b"\xff"), Word("i4", 4, b"last")]

    assert [handed.result for handed in hand_over(words, partial(tell, folder))] == [Delivered.ACCEPTED] * 4

    said(host, pin, '"body":"last"')
    lines = host.out(pin).splitlines()
    assert [line.split('"id":"')[1][:2] for line in lines] == ["i1", "i2", "i3", "i4"]
    assert (folder / "input-2").read_bytes() == b"y" * 100_000
    assert (folder / "input-3").read_bytes() == b"\xff"
    hand_over(words[1:2], partial(tell, folder))
    assert (folder / "input-2").read_bytes() == b"y" * 100_000, "told again, its file is the same"
    say(folder, b"end\n")


def test_a_job_that_reads_nothing_leaves_the_rest_for_later(host: Host) -> None:
    pin = host.start(["sleep", "60"], channel=True)
    words = [Word(f"i{number}", number, b"z" * 3000) for number in range(1, 40)]

    results = [handed.result for handed in hand_over(words, partial(tell, host.folder(pin)))]

    full = results.index(Delivered.LATER)
    assert full > 10, "a pipe takes 64 KiB"
    assert set(results[full:]) == {Delivered.LATER}, "nothing goes ahead of what had no room"
    os.kill(pin.shim.pid, signal.SIGTERM)
    host.await_end(pin)
    assert hand_over(words[:1], partial(tell, host.folder(pin)))[0].result is Delivered.LATER, (
        "its end says what becomes of that"
    )


@pytest.mark.parametrize(("stdin", "expected"), [(b"x\n", Delivered.NOT_ACCEPTING), (None, Delivered.FAILED)])
def test_a_job_with_another_standard_input_takes_nothing(host: Host, stdin: bytes | None, expected: Delivered) -> None:
    pin = host.start(["sleep", "60"], stdin=stdin)

    assert say(host.folder(pin), b"x\n").result is expected
    os.kill(pin.shim.pid, signal.SIGTERM)
    host.await_end(pin)


def test_first_words_that_do_not_fit_fail_the_launch_and_nothing_runs(host: Host, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="too many") as caught:
        host.hold(host.spec(["touch", str(tmp_path / "ran")], stdin=b"x" * (CHANNEL_BYTES + 1), channel=True))

    assert caught.value.nothing_ran
    assert not (tmp_path / "ran").exists()


SECOND_WORKER = """
import sys
from pathlib import Path
from shared.process.channel import Word, tell
print(tell(Path(sys.argv[1]), Word("i7", 7, b"x" * 5000)).result)
"""


@pytest.mark.req("T02")
def test_two_workers_that_hand_over_the_same_long_input_at_once_both_leave_it_whole(tmp_path: Path) -> None:
    """A worker that was frozen right before its file gets its name, and goes on once another has handed the same over."""
    os.mkfifo(tmp_path / "stdin")
    fd = os.open(tmp_path / "stdin", os.O_RDWR | os.O_NONBLOCK)
    meanwhile: list[str] = []

    def other_comes_first(at: Boundary, side: Side) -> None:
        if (at, side) == (Boundary.CHANNEL_RENAME, Side.BEFORE) and not meanwhile:
            words = [sys.executable, "-c", SECOND_WORKER, str(tmp_path)]
            meanwhile.append(subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip())

    boundary.install(other_comes_first)
    try:
        handed = tell(tmp_path, Word("i7", 7, b"x" * 5000))
    finally:
        boundary.install(None)

    assert (meanwhile, handed.result) == (["accepted"], Delivered.ACCEPTED)
    assert len(os.read(fd, CHANNEL_BYTES).splitlines()) == 2, "the program drops what it was told before"
    assert (tmp_path / "input-7").read_bytes() == b"x" * 5000
    os.close(fd)
