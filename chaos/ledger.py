"""What a drill has come to so far: it is added to while the drill goes on, so that one cut short leaves what it has."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from chaos.results import Cell, Coverage, Figure, Found, Guard, Host, Result, Story
from shared import DISTRIBUTION
from shared.commands.render import iso
from shared.model.instant import US_PER_MS, Instant, elapsed_us


class Ledger:
    """One drill's book.

    Attributes:
        folder: A temporary folder for its homes; kept when something was found.
        say: Prints a line of progress.
        command: The one command that runs the drill again; set when the seed is known.
    """

    def __init__(self, drill: str, folder: Path, host: Host, began: Instant, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.say = say
        self.command = f"tenure drill {drill}"
        self.seed: int | None = None
        self.totals: dict[str, float] = {}
        self.cells: list[Cell] = []
        self.findings: list[Found] = []
        self.figures: list[Figure] = []
        self.coverage: list[Coverage] = []
        self.guards: list[Guard] = []
        self.stories: list[Story] = []
        self._drill = drill
        self._host = host
        self._began = began

    @property
    def found_something(self) -> bool:
        """A check fired, or a removed guard was not noticed."""
        return bool(
            self.findings or any(cell.findings for cell in self.cells) or any(guard.is_missed for guard in self.guards)
        )

    def result(self, now: Instant, *, cut_short: str = "") -> Result:
        """Everything so far, as a result.

        Args:
            cut_short: Why the drill ended before its end; empty when it did not.
        """
        return Result(
            drill=self._drill,
            version=version(DISTRIBUTION),
            host=self._host,
            command=self.command,
            seed=self.seed,
            began_at=iso(self._began.wall_us) or "",
            took_ms=elapsed_us(self._began, now) // US_PER_MS,
            passed=not self.found_something and not cut_short,
            cut_short=cut_short,
            totals=dict(self.totals),
            cells=tuple(self.cells),
            findings=tuple(self.findings),
            figures=tuple(self.figures),
            coverage=tuple(self.coverage),
            guards=tuple(self.guards),
            stories=tuple(self.stories),
        )
