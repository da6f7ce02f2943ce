"""What a job prints is what is kept, byte by byte; of too much of it the tail, and how much was dropped is known."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from shared.process import ring
from shared.process.output import Piece, first_kept, read_from
from shared.process.ring import Ring
from tests.process.launch_host import Host
from tests.support.waiting import wait_until

MIB = 1 << 20
LOUD = "import sys\nfor number in range(400_000): sys.stdout.write(f'{number:0127d}\\n')"


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


@pytest.mark.parametrize("output_max", [None, 64 * MIB], ids=["no_cap", "cap"])
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", b""),
        ("import sys; sys.stdout.write('last line')", b"last line"),
        ("import sys; sys.stdout.buffer.write(b'a\\0b\\0\\0')", b"a\0b\0\0"),
        ("import sys; sys.stdout.write('x' * 65_535)", b"x" * 65_535),
        ("import sys; sys.stdout.write('x' * 65_536)", b"x" * 65_536),
        ("import sys; sys.stdout.write('x' * 50_000_000)", b"x" * 50_000_000),
        ("import sys; sys.stdout.buffer.write(b'\\0' * 300_000)", b"\0" * 300_000),
        ("import sys; sys.stdout.write('\\r'.join(f'{n} %' for n in range(100_000)))", None),
    ],
    ids=["nothing", "no_newline", "nul", "64k-1", "64k", "50MB_line", "only_nul", "bar"],
)
def test_stored_is_what_was_printed(host: Host, code: str, expected: bytes | None, output_max: int | None) -> None:
    """Cases C042, C044 and C046."""
    pin = host.run(python(code), output_max=output_max)

    expected = "\r".join(f"{n} %" for n in range(100_000)).encode() if expected is None else expected
    assert (host.folder(pin) / "out").read_bytes() == expected
    record = host.await_end(pin)
    assert (record.status, record.output) == (0, None)


def test_of_too_much_the_tail_is_kept_and_its_offsets_stay(host: Host) -> None:
    pin = host.run(python(LOUD), output_max=4 * MIB)
    path = host.folder(pin) / "out"

    assert path.stat().st_size == 400_000 * 128, "every offset is what it was"
    assert blocks(path) <= 4 * MIB + 2 * ring.BLOCK_BYTES
    piece = read_from(path, 0, 64 * MIB)
    assert piece.offset % ring.BLOCK_BYTES == 0
    assert piece.end == 400_000 * 128
    assert len(piece.data) >= 4 * MIB
    lines = piece.data[-piece.offset % 128 :].splitlines()
    assert [int(line) for line in lines] == list(range(400_000 - len(lines), 400_000))
    assert host.await_end(pin).output is None


def test_it_is_kept_to_its_cap_while_it_is_written(host: Host) -> None:
    """The job itself waits, after each 3 MB, until its output takes less than that again; it ends only if it does."""
    code = (
        "import os, time\n"
        "for _ in range(5):\n"
        "    os.write(1, b'x' * (3 << 20))\n"
        "    while os.fstat(1).st_blocks * 512 > 5 << 19: time.sleep(0.005)\n"
    )
    pin = host.run(python(code), output_max=2 * MIB)

    assert host.await_end(pin).status == 0
    assert (host.folder(pin) / "out").stat().st_size == 15 * MIB


def test_each_stream_has_its_own_cap(host: Host) -> None:
    pin = host.run(python("import os; os.write(1, b'x' * 3_000_000); os.write(2, b'kept')"), output_max=MIB)

    assert (host.folder(pin) / "err").read_bytes() == b"kept"
    assert first_kept_of(host.folder(pin) / "out") > 0


def test_without_a_cap_nothing_is_dropped(host: Host) -> None:
    """The control."""
    pin = host.run(python(LOUD))

    assert read_from(host.folder(pin) / "out", 0, 10) == Piece(0, b"0" * 10)


class Files:
    """The outputs of a job, as its shim sees them."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.out = folder / "out"
        self.err = folder / "err"
        self.out.touch()
        self.err.touch()
        self._directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.ring = Ring(self._directory, {"out": max_bytes, "err": max_bytes})

    def write(self, data: bytes) -> None:
        with self.out.open("ab") as file:
            file.write(data)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO})
    return Files(tmp_path, MIB)


def first_kept_of(path: Path) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        return first_kept(fd, 0)
    finally:
        os.close(fd)


def test_a_quiet_job_costs_no_wake_up_until_it_writes(files: Files) -> None:
    assert files.ring.look() is None
    assert signal.SIGIO not in signal.sigpending()

    files.write(b"something")

    assert signal.sigtimedwait({signal.SIGIO}, 10) is not None
    assert files.ring.look() is not None, "how fast it writes is looked at now"
    assert files.ring.look() is None, "and it is quiet again"


def test_without_such_a_notice_a_quiet_job_is_looked_at_every_five_seconds(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fcntl.fcntl", mock.Mock(side_effect=OSError))

    assert files.ring.look() == 5.0


def test_the_faster_it_writes_the_sooner_it_is_looked_at(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    files.ring.look()

    def due(data: bytes) -> float | None:
        now[0] += 0.1
        files.write(data)
        return files.ring.look()

    slow, fast = due(b"x"), due(b"x" * 200_000)
    assert (slow, fast is not None and fast < 0.2) == (ring.MOST_S, True)


def test_where_the_file_system_cannot_the_output_grows_and_that_is_said_once(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "_libc", mock.Mock(fallocate=mock.Mock(return_value=-1)))
    monkeypatch.setattr("ctypes.get_errno", lambda: 95)
    files.write(b"x" * (3 * MIB))

    assert files.ring.look() is None
    assert files.ring.settle() == "uncapped"
    assert (files.out.stat().st_size, first_kept_of(files.out)) == (3 * MIB, 0)


def test_a_failure_that_may_pass_is_tried_again(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(b"x" * (3 * MIB))
    with monkeypatch.context() as patch:
        patch.setattr(ring, "_libc", mock.Mock(fallocate=mock.Mock(return_value=-1)))
        patch.setattr("ctypes.get_errno", lambda: 28)
        files.ring.look()
    assert first_kept_of(files.out) == 0

    assert files.ring.settle() is None
    assert first_kept_of(files.out) == 2 * MIB


def test_a_job_may_cut_its_own_output(files: Files) -> None:
    files.write(b"x" * (3 * MIB))
    files.ring.look()
    os.truncate(files.out, 0)
    files.write(b"new")

    files.ring.look()

    assert read_from(files.out, 0, 10) == Piece(0, b"new")
    assert files.ring.settle() is None


def test_a_reader_whose_place_was_dropped_goes_on_at_the_first_kept_byte(files: Files) -> None:
    files.write(bytes(range(256)) * (3 * MIB // 256))
    before = read_from(files.out, 100, 10)
    files.ring.look()

    assert before == Piece(100, bytes(range(100, 110)))
    assert read_from(files.out, 110, 3) == Piece(2 * MIB, b"\0\1\2")
    assert read_from(files.out, 3 * MIB, 10) == Piece(3 * MIB, b""), "the end is no hole"


def test_what_is_dropped_while_it_is_read_is_never_taken_for_zeros(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(b"x" * (3 * MIB))
    real = os.pread

    def drop_then_read(fd: int, limit: int, offset: int) -> bytes:
        files.ring.settle()
        return real(fd, limit, offset)

    monkeypatch.setattr(os, "pread", drop_then_read)

    assert read_from(files.out, 0, 5) == Piece(2 * MIB, b"xxxxx")


def test_a_stop_is_heard_while_the_output_is_watched(host: Host) -> None:
    pin = host.start(["sh", "-c", "while :; do echo line; done"], output_max=MIB)
    wait_until(lambda: (host.folder(pin) / "out").stat().st_size > 2 * MIB, "it has printed more than its cap")
    os.kill(pin.shim.pid, signal.SIGTERM)

    record = host.await_end(pin)

    assert (record.status, record.stop) == (-15, "request")
    assert blocks(host.folder(pin) / "out") <= MIB + 2 * ring.BLOCK_BYTES
