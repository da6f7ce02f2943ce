"""The two outputs of a job on their way to a reader: files that only grow, read by offset, written on byte by byte.

Of a capped output the head may be gone by the time it is read; how much is said where it is missing, never in its place. To a
terminal, `SafeSink` shows control characters instead of sending them, because a job's output may be anybody's.
"""

from __future__ import annotations

import codecs
import os
import select
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from shared.commands.render import escaped
from shared.process.output import Piece, read_open

CHUNK_BYTES = 256 * 1024


class Sink(Protocol):
    """Where bytes of a job go."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None:
        """Give out what was kept back; the descriptor stays open."""


class RawSink:
    """Writes every byte as it is. Raises BrokenPipeError when the reader has left."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: bytes) -> None:
        """Write all of it; waits for a slow reader, also on a descriptor that does not block."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                select.select([], [self._fd], [])

    def close(self) -> None:
        """Nothing is kept back."""


class SafeSink:
    """Shows control characters as escapes, but for tab and the end of a line; so, too, bytes that are no UTF-8."""

    def __init__(self, fd: int) -> None:
        self._raw = RawSink(fd)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
        self._kept = ""

    def write(self, data: bytes) -> None:
        """See `Sink`; half a character, and a carriage return that may belong to a line's end, wait for the next call."""
        self._put(self._decoder.decode(data))

    def close(self) -> None:
        """See `Sink`."""
        self._put(self._decoder.decode(b"", final=True) + "")
        kept, self._kept = self._kept, ""
        self._raw.write(escaped(kept, keep="\t\n").encode())

    def _put(self, text: str) -> None:
        text = self._kept + text
        self._kept = "\r" if text.endswith("\r") else ""
        shown = escaped(text.removesuffix("\r").replace("\r\n", "\n"), keep="\t\n")
        self._raw.write(shown.encode())


class Tail:
    """One file that grows, read from its start; it may not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._offset = 0

    def read(self) -> Piece:
        """What has come since, at most one chunk; no data when that is nothing. A piece that begins later than the one before
        ended comes behind a gap.
        """
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return Piece(self._offset, b"")
        piece = read_open(self._fd, self._offset, CHUNK_BYTES)
        if piece.data:
            self._offset = piece.end
        else:
            self._offset = min(self._offset, os.fstat(self._fd).st_size)  # a job may cut its own output
        return piece

    @property
    def offset(self) -> int:
        """Where the next piece begins when nothing is missing."""
        return self._offset

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def say_dropped(file: str, count: int) -> None:
    """Tell on standard error that bytes of an output are kept no more, before what comes behind them."""
    stream = {"out": "standard output", "err": "standard error"}[file]
    print(f"tenure: {stream}: {count} bytes dropped before this", file=sys.stderr, flush=True)


class Outputs:
    """The outputs of a Work, launch after launch, to their sinks.

    A launch that was let through its gate keeps its directory through every adoption; there is another one only where nothing
    ran, or once it had ended and was resumed. So what is read is whole and comes once.
    """

    def __init__(
        self, attempts_dir: Path, sinks: Sequence[tuple[str, Sink]], say_dropped: Callable[[str, int], None]
    ) -> None:
        """Take the sinks: (file name, where its bytes go).

        Args:
            say_dropped: Told of bytes that are kept no more, before what comes behind them: (file name, how many).
        """
        self._attempts_dir = attempts_dir
        self._sinks = sinks
        self._say_dropped = say_dropped
        self._done: set[str] = set()
        self._current: str | None = None
        self._tails: list[tuple[str, Tail, Sink]] = []

    def point_at(self, directories: Sequence[str]) -> None:
        """Take up the launches to be read, in order; an earlier one is read to its end before the next."""
        for name in directories:
            if name != self._current and name not in self._done:
                self.drain()
                self._leave()
                self._current = name
                self._tails = [(file, Tail(self._attempts_dir / name / file), sink) for file, sink in self._sinks]

    def pump(self) -> bool:
        """Pass on what has come, at most one chunk of each; False when that was nothing."""
        moved = False
        for file, tail, sink in self._tails:
            expected = tail.offset
            piece = tail.read()
            if piece.data:
                if piece.offset > expected:
                    self._say_dropped(file, piece.offset - expected)
                sink.write(piece.data)
                moved = True
        return moved

    def drain(self) -> None:
        """Pass on everything there is."""
        while self.pump():
            pass

    def close(self) -> None:
        """Give descriptors back and out what sinks kept."""
        self._leave()
        for _, sink in self._sinks:
            sink.close()

    def _leave(self) -> None:
        for _, tail, _ in self._tails:
            tail.close()
        if self._current is not None:
            self._done.add(self._current)
        self._current, self._tails = None, []
