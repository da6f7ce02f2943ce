"""`tenure run`: hand in a command and follow it, as if it ran here: its output as it comes, its exit code.

The job belongs to the workers from the moment it is handed in. Whatever happens to this process, and to theirs, it goes on.

Rule: design §12.
"""

from __future__ import annotations

import os
import shlex
import sys

from shared.commands.arguments import Parser, split_command
from shared.commands.follow import Follower
from shared.commands.open_home import OpenHome, opened, working_folder
from shared.commands.outcome import TENURE_FAILED
from shared.commands.output import Outputs, RawSink, say_dropped
from shared.commands.request import add_request_options, cause_of, hand_in, new_work
from shared.errors import IndeterminateError, StoreBusyError, TenureError, UsageError
from shared.ids import WorkId
from shared.model.work import NewWork

DETACHED = 130  # 128 + SIGINT

_EPILOG = """\
The output comes as it is written, each stream to its own; the job reads nothing unless --input gives it something.
With nothing up it says so and waits. Ctrl-C only detaches, and so does a reader that leaves: the job goes on.

exit code:
  the job's own, or 128+N when signal N ended it
  125  tenure failed, the work was cancelled or timed out, or what became of it is unknown; a line says which
  126  the command could not be executed    127  there is no such command
  130  detached by Ctrl-C; the job goes on"""


def main(argv: list[str], *, home: str | None) -> int:
    """Run a command; the exit code of design §12.

    Raises:
        UsageError: the command line is wrong; nothing was handed in.
        StoreUnavailableError: the home or its store cannot be used; nothing was handed in.
    """
    wanted = parse(argv)
    with opened(home) as door:
        try:
            work_id = _hand_in(door, wanted)
        except IndeterminateError as error:
            _say(f"whether the work was accepted is unknown: {error}", f"look: {door.command('work list')}")
            return TENURE_FAILED
        except KeyboardInterrupt:
            _say("interrupted while handing the work in", f"whether it was accepted: {door.command('work list')}")
            return DETACHED
        return _follow(door, work_id)


def parse(argv: list[str]) -> NewWork:
    """The Work that a command line asks for.

    Raises:
        UsageError: it is wrong.
    """
    own, command = split_command(argv)
    parser = Parser("tenure run", "Hand in a command and follow it: its output as it comes, its exit code.", _EPILOG)
    parser.usage = "tenure run [options] -- CMD [ARG …]"
    parser.add_argument("--binding", metavar="B", help="take executor, limits and environment from this binding")
    add_request_options(parser)
    given, extra = parser.parse_known_args(own)
    stray = [word for word in extra if not word.startswith("-")]
    if stray and command is None and extra[0] == stray[0]:
        raise UsageError("the command goes behind --", hint=f"tenure run -- {shlex.join(own[own.index(stray[0]) :])}")
    if extra:
        parser.refuse(extra)
    if command is None and given.binding is None and given.scope is None:
        raise UsageError("the command is missing", hint="put it behind --: tenure run -- echo hello")
    return new_work(given, command, binding=given.binding, cwd=str(working_folder()), via="run")


def _hand_in(door: OpenHome, wanted: NewWork) -> WorkId:
    """Submit it, however long the store is busy; nothing is written while it is."""
    said, cause = False, cause_of(door.place.path, os.environ)
    while True:
        try:
            return door.store.write(lambda tx: hand_in(tx, wanted, cause=cause))
        except StoreBusyError as error:
            if not said:
                said = True
                _say(f"the store is busy, waiting: {error}", None)


def _follow(door: OpenHome, work_id: WorkId) -> int:
    outputs = Outputs(door.place.attempts, [("out", RawSink(1)), ("err", RawSink(2))], say_dropped)
    again = door.command(f"work logs --follow {work_id}")
    try:
        end = Follower(door, work_id, outputs, _say).run()
    except KeyboardInterrupt:
        _say(f"detached; {work_id} goes on", f"follow it again: {again}")
        return DETACHED
    except TenureError as error:
        _say(f"{work_id} cannot be followed any more: {error}", f"it goes on by itself; follow it again: {again}")
        return TENURE_FAILED
    finally:
        outputs.close()
    if end.line is not None:
        _say(end.line, None if end.advice is None else f"see: {door.command(end.advice)}")
    return end.code


def _say(line: str, advice: str | None) -> None:
    print(f"tenure: {line}", file=sys.stderr)
    if advice is not None:
        print(f"  {advice}", file=sys.stderr, flush=True)
