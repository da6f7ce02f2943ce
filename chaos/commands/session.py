"""What all drills have in common as commands: a folder of their own, `--result` and `--page`, what an interrupt leaves, the exit code.

Rule: design §9 ("writes JSON and a page"), §12.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from chaos import host
from chaos.ledger import Ledger
from chaos.report.page import page
from chaos.results import Result
from chaos.written import require_writable, write_private
from shared.clock import SystemClock
from shared.commands.arguments import Parser
from shared.errors import UsageError

PASSED, FOUND, INTERRUPTED = 0, 1, 130
EXIT_CODES = "exit code: 0 nothing was found, 1 something was, 2 the command line is wrong, 130 interrupted"
RESULT_NAME = "result.json"
INTERRUPT = "interrupted"


def drill(name: str, parser: Parser, argv: list[str], play: Callable[[Namespace, Ledger], None]) -> int:
    """Run a drill as a command, and write what it came to, however it ends.

    Args:
        play: Adds to the ledger while it goes on; an error of its own ends the drill.
    Raises:
        UsageError: the command line is wrong; nothing was done.
    """
    parser.add_argument("--result", type=Path, metavar="FILE", help="write what it came to, as JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write it as a page for a browser")
    given = parser.parse(argv)
    for place, option in ((given.result, "--result"), (given.page, "--page")):
        if place is not None:
            require_writable(place, option)
    clock = SystemClock()
    here = host.probe()
    folder = Path(tempfile.mkdtemp(prefix="tenure-drill-"))
    ledger = Ledger(name, folder, here, clock.now(), _say)
    cut_short = "it failed"
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to end, it cleans up as for Ctrl-C
    try:
        play(given, ledger)
        cut_short = ""
    except KeyboardInterrupt:
        cut_short = INTERRUPT
    except UsageError:
        shutil.rmtree(folder)  # the drill itself refused a value: nothing was done
        raise
    except Exception as error:
        cut_short = f"{type(error).__name__}: {error}"
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        if folder.is_dir():
            _leave(ledger, ledger.result(clock.now(), cut_short=cut_short), given)
    if cut_short:
        return INTERRUPTED
    return FOUND if ledger.found_something else PASSED


def _leave(ledger: Ledger, result: Result, given: Namespace) -> None:
    """Write the result where it is wanted; keep the folder when there is something to be seen in it."""
    if given.result is not None:
        result.write(given.result)
    if given.page is not None:
        write_private(given.page, page([result]))
        _say(f"page: {given.page}")
    if result.passed or (result.cut_short == INTERRUPT and not ledger.found_something):
        shutil.rmtree(ledger.folder)
        return
    result.write(ledger.folder / RESULT_NAME)
    _say(f"kept: {ledger.folder}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
