"""The home of histories: one folder in memory for each process of ours, given the content of a new home for each history."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

from chaos.simulation.actors import PLACE
from chaos.simulation.baton import Baton
from chaos.simulation.clock import SimulatedClock
from chaos.simulation.warm import WarmConnections
from shared.home import create_home
from shared.model.settings import Config
from shared.store.sqlite.ballast import Ballast
from shared.store.sqlite.driver import sqlite3
from shared.store.sqlite.store import create, open_store

TEMPLATES_MAX = 100


class Homes:
    """One folder and its store, which every history begins anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
        self._clock = SimulatedClock(Baton(random.Random(0)))
        self.path = self._folder / "home"
        create_home(self.path)
        create(self.path, self._clock, place=PLACE)
        self.warm = WarmConnections(self.path / "store.db")
        self._empty = self.warm.copy_to(self._folder / "empty.db")
        self._templates: dict[Config, sqlite3.Connection] = {}

    def begin(self, config: Config) -> None:
        """Make it the home of a new history, with that configuration active."""
        if config not in self._templates and len(self._templates) < TEMPLATES_MAX:
            self._configure(config)
            self._templates[config] = self.warm.copy_to(self._folder / f"template-{len(self._templates)}.db")
        if config in self._templates:
            self.warm.restore(self._templates[config])
        else:
            self._configure(config)
        Ballast(self.path).restore()

    def close(self) -> None:
        """Give all connections back."""
        self.warm.close()
        self._empty.close()
        for template in self._templates.values():
            template.close()

    def _configure(self, config: Config) -> None:
        self.warm.restore(self._empty)
        store = open_store(self.path, self._clock, place=PLACE, connect=self.warm.connect)
        try:
            store.write(lambda tx: tx.activate_config(config.to_json(), config.digest, "/etc/tenure/tenure.toml"))
        finally:
            store.close()


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
_BASES: list[Path] = []
_HOMES: list[Homes] = []


def the_home() -> Homes:
    """The one of this process."""
    if not _HOMES:
        if not _BASES:
            _FOLDERS.append(ram_folder())
            _BASES.append(Path(_FOLDERS[0].name))
        _HOMES.append(Homes(_BASES[0]))
    return _HOMES[0]


def forget_template() -> None:
    """Make the store of the next history anew: the schema of the code has changed."""
    while _HOMES:
        _HOMES.pop().close()


def play_in(folder: Path) -> None:
    """Keep the home in that folder, whose end is the caller's; else in one that ends with this process."""
    _BASES[:] = [folder]


def ram_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder of its own, in memory where there is such a place; its name tells whose it is."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own in it
    return tempfile.TemporaryDirectory(
        prefix=f"tenure-simulation-{os.getpid()}-", dir=memory if memory.is_dir() else None
    )
