"""A job's output on its way to a reader: whole, in order, and harmless to a terminal."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.commands.output import CHUNK_BYTES, Outputs, RawSink, SafeSink


class Kept:
    """A sink that keeps."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = False
        self.missed: list[tuple[int, int]] = []

    def write(self, data: bytes) -> None:
        self.data += data

    def miss(self, _file: str, count: int) -> None:
        self.missed.append((len(self.data), count))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def shown(pipe: tuple[int, int], *parts: bytes) -> str:
    sink = SafeSink(pipe[1])
    for part in parts:
        sink.write(part)
    sink.close()
    return os.read(pipe[0], 65536).decode()


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([b"plain\n"], "plain\n"),
        ([b"a\tb\n"], "a\tb\n"),
        ([b"dos\r\nline\n"], "dos\nline\n"),
        ([b"dos\r", b"\nline\n"], "dos\nline\n"),
        ([b"over\rwritten\n"], "over\\rwritten\n"),
        ([b"end\r"], "end\\r"),
        ([b"\x1b]0;title\x07x"], "\\e]0;title\\x07x"),
        (["é".encode()[:1], "é".encode()[1:]], "é"),
        ([b"\xff\n"], "\\xff\n"),
        ([b"half \xc3"], "half \\xc3"),
        (["\u202e".encode()], "\\u202e"),
    ],
)
def test_terminal_is_shown_control_characters(pipe: tuple[int, int], parts: list[bytes], text: str) -> None:
    assert shown(pipe, *parts) == text


def test_raw_bytes_pass_as_they_are(pipe: tuple[int, int]) -> None:
    RawSink(pipe[1]).write(b"\x1b[2J\xff\r\n")

    assert os.read(pipe[0], 100) == b"\x1b[2J\xff\r\n"


def test_reader_that_has_left_is_told_of() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        with pytest.raises(BrokenPipeError):
            RawSink(write).write(b"x")
    finally:
        os.close(write)


@pytest.fixture
def sink() -> Kept:
    return Kept()


@pytest.fixture
def outputs(tmp_path: Path, sink: Kept) -> Iterator[Outputs]:
    outputs = Outputs(tmp_path, [("out", sink)], sink.miss)
    yield outputs
    outputs.close()


def write(folder: Path, data: bytes) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / "out").open("ab") as file:
        file.write(data)


def test_file_is_read_on_from_where_it_was(tmp_path: Path, outputs: Outputs, sink: Kept) -> None:
    outputs.point_at(["w1.1.1"])
    assert not outputs.pump()  # there is no file yet

    write(tmp_path / "w1.1.1", b"one ")
    assert outputs.pump()
    write(tmp_path / "w1.1.1", b"two")
    outputs.point_at(["w1.1.1"])
    assert outputs.pump()
    assert not outputs.pump()

    assert sink.data == b"one two"


def test_launches_follow_each_other_each_read_to_its_end(tmp_path: Path, outputs: Outputs, sink: Kept) -> None:
    write(tmp_path / "w1.1.1", b"first ")
    outputs.point_at(["w1.1.1"])
    outputs.pump()
    write(tmp_path / "w1.1.1", b"its end ")
    write(tmp_path / "w1.2.1", b"second")

    outputs.point_at(["w1.1.1", "w1.2.1"])
    outputs.drain()

    assert sink.data == b"first its end second"


def test_large_output_comes_whole(tmp_path: Path, outputs: Outputs, sink: Kept) -> None:
    data = os.urandom(3 * CHUNK_BYTES + 17)
    write(tmp_path / "w1.1.1", data)

    outputs.point_at(["w1.1.1"])
    outputs.drain()

    assert sink.data == data


def test_sinks_are_closed(tmp_path: Path, sink: Kept) -> None:
    Outputs(tmp_path, [("out", sink)], sink.miss).close()

    assert sink.closed


def drop(path: Path, size: int) -> None:
    """Punch the head out, as the ring of a capped output does."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    with path.open("r+b") as file:
        if libc.fallocate(file.fileno(), 3, 0, size) != 0:
            pytest.skip("this file system keeps no holes")


def test_dropped_head_is_told_and_the_tail_is_whole(tmp_path: Path, outputs: Outputs, sink: Kept) -> None:
    data = os.urandom(5 * 4096)
    write(tmp_path / "w1.1.1", data)
    drop(tmp_path / "w1.1.1" / "out", 8192)

    outputs.point_at(["w1.1.1"])
    outputs.drain()

    assert sink.data == data[8192:]
    assert sink.missed == [(0, 8192)]


def test_reader_that_is_overtaken_goes_on_behind_the_hole(tmp_path: Path, outputs: Outputs, sink: Kept) -> None:
    first, second = os.urandom(4096), os.urandom(4 * 4096)
    write(tmp_path / "w1.1.1", first)
    outputs.point_at(["w1.1.1"])
    outputs.drain()
    write(tmp_path / "w1.1.1", second)
    drop(tmp_path / "w1.1.1" / "out", 3 * 4096)

    outputs.drain()

    assert sink.data == first + second[8192:]
    assert sink.missed == [(4096, 8192)]


def test_nothing_dropped_nothing_said(tmp_path: Path, outputs: Outputs, sink: Kept) -> None:
    write(tmp_path / "w1.1.1", b"\0" * 20_000)
    outputs.point_at(["w1.1.1"])
    outputs.drain()

    assert (sink.data, sink.missed) == (b"\0" * 20_000, [])


def test_output_that_the_job_cut_itself_is_read_on(tmp_path: Path, outputs: Outputs, sink: Kept) -> None:
    write(tmp_path / "w1.1.1", b"long before")
    outputs.point_at(["w1.1.1"])
    outputs.drain()
    os.truncate(tmp_path / "w1.1.1" / "out", 0)
    assert not outputs.pump()
    write(tmp_path / "w1.1.1", b"after")
    outputs.drain()

    assert sink.data == b"long beforeafter"
