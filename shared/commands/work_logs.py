"""`tenure work logs`: what a work wrote, to standard output and standard error; with `--json`, where it lies and how much it is.

Bytes of any kind, up to gigabytes, are no text of a JSON object: whoever wants those reads the streams or the files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.commands.arguments import Parser, add_json, whole_number, work_named
from shared.commands.follow import PAGE, Follower, Launches, attempt_of, outline
from shared.commands.json_views import Json
from shared.commands.open_home import OpenHome, opened
from shared.commands.output import Outputs, RawSink, SafeSink, Sink, say_dropped
from shared.commands.render import print_json
from shared.errors import NotFoundError, UsageError
from shared.ids import WorkId
from shared.model.attempt import Attempt
from shared.process.output import first_kept

DETACHED = 130
STREAMS = ["out", "err"]
"""Names of a job's outputs in the directory of its launch."""


@dataclass(frozen=True, slots=True)
class Written:
    """One output of one launch.

    Attributes:
        stream: One of `STREAMS`.
        size: Bytes written so far. `dropped`: of these the first so many are kept no more.
    """

    attempt: Attempt
    epoch: int
    stream: str
    path: Path
    size: int
    dropped: int


def logs(argv: list[str], home: str | None) -> int:
    """Copy what a work wrote, or tell where it is.

    Raises:
        UsageError: the command line is wrong. NotFoundError: no such work, or attempt.
    """
    parser = Parser(
        "tenure work logs",
        "What a work wrote, byte by byte: its output to standard output, its errors to standard error.",
        "On a terminal, control characters are shown as escapes unless --raw is given.\n"
        "With --json nothing is copied: it lists the files of every launch, how long each is, and how much of its head was dropped.",
    )
    parser.add_argument("work", nargs="?", metavar="W", help="its id: w41")
    parser.add_argument("--attempt", metavar="N", help="only this attempt; else the last one that was launched")
    parser.add_argument("--stdout", action="store_true", help="only its standard output")
    parser.add_argument("--stderr", action="store_true", help="only its standard error, to standard output")
    parser.add_argument("--follow", action="store_true", help="go on until the work has ended; all its attempts")
    parser.add_argument("--raw", action="store_true", help="to a terminal too, byte by byte")
    add_json(parser)
    given = parser.parse(argv)
    work_id = work_named(given.work, "tenure work logs")
    if given.stdout and given.stderr:
        raise UsageError("tenure work logs: --stdout or --stderr, or neither for both")
    if given.json and (given.follow or given.raw):
        raise UsageError(
            "tenure work logs: --json lists what is there, and copies none of it", hint="without --follow and --raw"
        )
    number = None if given.attempt is None else whole_number(given.attempt, "--attempt", least=1, most=10**9)
    if given.json:
        streams = ["err"] if given.stderr else ["out"] if given.stdout else STREAMS
        with opened(home) as door:
            found = _written(door, _attempts(door, work_id, number), streams)
        print_json({"items": [_view(one) for one in found], "next": None})
        return 0
    if given.stderr:
        sinks = [("err", _sink(1, raw=given.raw))]
    else:
        sinks = [("out", _sink(1, raw=given.raw))]
        sinks += [] if given.stdout else [("err", _sink(2, raw=given.raw))]
    with opened(home) as door:
        return _copy(door, work_id, sinks, number=number, follow=given.follow)


def _copy(door: OpenHome, work_id: WorkId, sinks: list[tuple[str, Sink]], *, number: int | None, follow: bool) -> int:
    chosen = _chosen(door, work_id, number)
    outputs = Outputs(door.place.attempts, sinks, say_dropped)
    try:
        if not follow:
            outputs.point_at(_last_launches(door, work_id, chosen))
            outputs.drain()
            return 0
        end = Follower(door, work_id, outputs, _say, number=number).run()
    except KeyboardInterrupt:
        return DETACHED
    finally:
        outputs.close()
    if end.line is not None:
        _say(end.line, None)
    return 0


def _chosen(door: OpenHome, work_id: WorkId, number: int | None) -> Attempt | None:
    """The attempt of that number; None where none was named. Raises NotFoundError: no such work, or attempt."""
    door.store.read(lambda tx: outline(tx, work_id))
    if number is None:
        return None
    chosen = door.store.read(lambda tx: attempt_of(tx, work_id, number))
    if chosen is None:
        raise NotFoundError(f"{work_id} has no attempt {number}", hint=f"`{door.command(f'work show {work_id}')}`")
    return chosen


def _attempts(door: OpenHome, work_id: WorkId, number: int | None) -> list[Attempt]:
    """The attempts of a Work, or the one of that number. Raises NotFoundError."""
    chosen = _chosen(door, work_id, number)
    return door.store.read(lambda tx: tx.attempts(work_id)) if chosen is None else [chosen]


def _last_launches(door: OpenHome, work_id: WorkId, chosen: Attempt | None) -> list[str]:
    """The folders of that attempt; None: of the last one that was launched, looked for from the end."""
    launches, before = Launches(door.place.attempts), None
    if chosen is not None:
        return launches.of([chosen])
    while page := door.store.read(lambda tx: tx.last_attempts(work_id, before=before, limit=PAGE)):  # noqa: B023
        for attempt in reversed(page):
            if names := launches.of([attempt]):
                return names
        before = page[0].number
    return []


def _written(door: OpenHome, attempts: Sequence[Attempt], streams: Sequence[str]) -> list[Written]:
    """The outputs that are there, in the order of attempts and launches."""
    launches, found = Launches(door.place.attempts), []
    for attempt in attempts:
        for name in launches.of([attempt]):
            for stream in streams:
                path = door.place.attempts / name / stream
                with suppress(FileNotFoundError), path.open("rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    dropped = min(size, first_kept(file.fileno(), 0))
                    found.append(Written(attempt, int(name.rpartition(".")[2]), stream, path, size, dropped))
    return found


def _view(one: Written) -> Json:
    return {
        "attempt": one.attempt.id,
        "epoch": one.epoch,
        "stream": one.stream,
        "path": str(one.path),
        "bytes": one.size,
        "dropped": one.dropped,
    }


def _sink(fd: int, *, raw: bool) -> Sink:
    return RawSink(fd) if raw or not os.isatty(fd) else SafeSink(fd)


def _say(line: str, advice: str | None) -> None:
    print(f"tenure: {line}", file=sys.stderr)
    if advice is not None:
        print(f"  {advice}", file=sys.stderr, flush=True)
