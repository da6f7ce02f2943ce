"""`tenure drill report`: one page out of the results of drills."""

from __future__ import annotations

from pathlib import Path

from chaos import results
from chaos.report.page import page
from chaos.report.verdict import verdict
from chaos.written import require_writable, write_private
from shared.commands.arguments import Parser
from shared.commands.render import escaped
from shared.errors import UsageError

PAGE_NAME = "drills.html"


def main(argv: list[str]) -> int:
    """Make the page; 0 once it is written, whatever it shows.

    Raises:
        UsageError: the command line is wrong. ConfigError: a file is no result; nothing was written.
    """
    parser = Parser(
        "tenure drill report",
        "Make one page out of results that drills wrote with --result; it needs no network and no other file.",
        "exit code: 0 the page is written, whatever it shows; 2 the command line or a file is wrong",
    )
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULT", help="files that --result named")
    parser.add_argument("--page", type=Path, default=Path(PAGE_NAME), metavar="FILE", help="the page (%(default)s)")
    given = parser.parse(argv)
    if not given.results:
        raise UsageError("tenure drill report: which results?", hint="`tenure drill matrix --result FILE` writes one")
    require_writable(given.page, "--page")
    found = [results.read(path) for path in given.results]
    write_private(given.page, page(found))
    for path, result in zip(given.results, found, strict=True):
        print(escaped(f"{path}: {result.drill}: {verdict([result]).line}"))
    print(escaped(f"page: {given.page}"))
    return 0
