"""What a drill leaves behind: one result, as a value and as a JSON file. The page is made from nothing else.

Fields may be empty and are never missing; a file with an unknown, missing or odd field is refused and the place named.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

from chaos.shapes import ShapeError, shaped
from chaos.written import write_private
from shared.errors import ConfigError

FORMAT = 1
"""Of the file; raised when the same file comes to mean something else."""
BYTES_MAX = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Host:
    """Where a drill ran, and what that host can do.

    Attributes:
        kernel: As `uname -r` says it; `sqlite`: the version of the library in use.
        cpus: Those this process may run on.
        cgroup: A worker started from here can give each job a cgroup of its own.
        pidfd_exit: The kernel tells the exit status of other processes' children (Linux 6.15).
        strace: It is installed, so that single system calls can be made to fail.
        bubblewrap: A sandbox can be made here.
    """

    kernel: str
    machine: str
    cpus: int
    python: str
    sqlite: str
    uid: int
    cgroup: bool
    pidfd_exit: bool
    strace: bool
    bubblewrap: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing that was tried.

    Attributes:
        role: Whose point it is: `coordinator`, `worker`, `shim`, …
        boundary, side: The point.
        harm: What was done there: `KILL`, `STOP`, a store fault …
        victims: Who was harmed: `self`, `everyone` …
        expected, came_to: How it was to converge, and how it did, in words.
        skipped: Why it was not played; empty when it was.
        findings: What the checks found, `CHECK: WHAT` each; none: it passed.
        replay: The one command that plays it again.
    """

    name: str
    role: str
    boundary: str
    side: str
    harm: str
    victims: str
    scene: str
    expected: str
    came_to: str
    took_ms: int
    findings: tuple[str, ...]
    skipped: str
    replay: str


@dataclass(frozen=True, slots=True)
class Found:
    """Something found that belongs to no cell. `check`: the one that fired, by name; `replay`: the command."""

    check: str
    said: str
    replay: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured series, e.g. the time from a worker's kill to the takeover. `unit` is the one of the numbers."""

    name: str
    unit: str
    p50: float
    p99: float
    max: float
    count: int

    @staticmethod
    def of(name: str, unit: str, values: Sequence[float]) -> Figure:
        """The figure of a series of at least one. p50 and p99 are values of the series (nearest rank)."""
        ordered = sorted(values)
        p50, p99 = (ordered[ceil(share * len(ordered)) - 1] for share in (0.50, 0.99))
        return Figure(name, unit, p50, p99, ordered[-1], len(ordered))


@dataclass(frozen=True, slots=True)
class Struck:
    """How many processes were killed, paused, or failed by the store when one side of a boundary was the last they had come to."""

    killed: int = 0
    paused: int = 0
    failed: int = 0


UNSTRUCK = Struck()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often a simulation came to a boundary, on each side of it, and what was done there."""

    boundary: str
    before: int
    after: int
    struck_before: Struck = UNSTRUCK
    struck_after: Struck = UNSTRUCK

    @property
    def is_reached(self) -> bool:
        """On either side: some are told of only when something has come to pass."""
        return bool(self.before or self.after)


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard of the product that was removed on purpose.

    Attributes:
        keeps: What it keeps from happening.
        check: The check that is to fire then; empty where none can.
        seeds: How many histories it took until it did; None: it never did.
        covered: Where no check can fire: what else stands behind the guard; else empty.
    """

    name: str
    keeps: str
    check: str
    seeds: int | None
    covered: str

    @property
    def is_missed(self) -> bool:
        """It was taken away, and nothing noticed."""
        return self.seeds is None and not self.covered


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in a lane, in microseconds since the story began."""

    from_us: int
    to_us: int
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class StoryMark:
    """One instant in a lane."""

    at_us: int
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class Lane:
    """What one participant did. `kind`: `coordinator`, `worker`, `attempt`, `process`, `leader` …"""

    name: str
    kind: str
    spans: tuple[Span, ...]
    marks: tuple[StoryMark, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """One history, drawn as lanes on a shared axis. `seed`: None where it came of none."""

    title: str
    seed: int | None
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything one drill came to.

    Attributes:
        drill: `matrix`, `run` or `simulate`.
        version: Of tenure.
        command: The one command that runs it again.
        began_at: ISO 8601, UTC.
        passed: It came to its end and found nothing.
        cut_short: Why it ended before its end; empty when it did not.
        totals: What was counted, e.g. `kills`, `seeds`, `steps`.
    """

    drill: str
    version: str
    host: Host
    command: str
    seed: int | None
    began_at: str
    took_ms: int
    passed: bool
    cut_short: str
    totals: dict[str, float]
    cells: tuple[Cell, ...]
    findings: tuple[Found, ...]
    figures: tuple[Figure, ...]
    coverage: tuple[Coverage, ...]
    guards: tuple[Guard, ...]
    stories: tuple[Story, ...]

    def to_json(self) -> str:
        """This value as the text of its file. Everything outside ASCII is escaped, so that any text survives."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, allow_nan=False) + "\n"

    @staticmethod
    def from_json(text: str) -> Result:
        """The value that `to_json` wrote.

        Raises:
            ShapeError: it is none; the place in it is named.
        """
        try:
            facts = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            raise ShapeError(f"line {error.lineno}", f"is no JSON: {error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise ShapeError("", f"is no JSON of ours: {error}") from error
        if not isinstance(facts, dict) or "format" not in facts:
            raise ShapeError("", "is no result of a drill")
        if facts.pop("format") != FORMAT:
            raise ShapeError("format", f"is not {FORMAT}: this is a result of another version")
        return shaped(Result, facts)

    def write(self, path: Path) -> None:
        """Write the file, its owner's alone; one that was there is replaced.

        Raises:
            OSError: it cannot be written.
        """
        write_private(path, self.to_json())


def read(path: Path) -> Result:
    """Read a result's file.

    Raises:
        ConfigError: there is none, or it is no result; one line with the file, the place in it and what is wrong there.
    """
    try:
        if path.stat().st_size > BYTES_MAX:
            raise ConfigError(f"is over {BYTES_MAX} bytes, which no result is", source=str(path))
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"is no text: byte {error.start} is no UTF-8", source=str(path)) from error
    try:
        return Result.from_json(text)
    except ShapeError as error:
        raise ConfigError(str(error), source=str(path), hint="`tenure drill … --result FILE` writes one") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_constant(word: str) -> object:
    raise ValueError(f"{word} is no number")
