"""The door of the commands to a home: found, checked, its store opened and closed again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared import boundary
from shared.clock import Clock, SystemClock
from shared.errors import UsageError
from shared.home import Home, check_home, find_home
from shared.store.contract import Store
from shared.wake import Ringer


@dataclass(frozen=True, slots=True)
class OpenHome:
    """A home in use by a command.

    Attributes:
        named: The value of `--home`; None when it was not given.
    """

    place: Home
    store: Store
    clock: Clock
    named: str | None

    def command(self, words: str) -> str:
        """A command for the user to type, for this very home."""
        return command_for(self.named, words)


def command_for(named: str | None, words: str) -> str:
    """`tenure WORDS`, with `--home` when that was how the home was named."""
    return f"tenure {words}" if named is None else f"tenure --home {shlex.quote(named)} {words}"


def place_of_home(named: str | None) -> Home:
    """The home a command is meant for, checked.

    Raises:
        UsageError: there is none. StoreUnavailableError: it cannot be used.
    """
    return check_home(find_home(named, os.environ, working_folder()))


@contextmanager
def opened(named: str | None) -> Iterator[OpenHome]:
    """The home and its store, with bells, until the block ends.

    Raises: as `place_of_home`, and StoreUnavailableError for the store.
    """
    from shared.store.sqlite.store import open_store

    place = place_of_home(named)
    boundary.arm(place.path)
    clock = SystemClock()
    with closing(Ringer(place.run)) as ring, closing(open_store(place.path, clock, ring=ring)) as store:
        yield OpenHome(place, store, clock, named)


def working_folder() -> Path:
    """The folder this command was called in.

    Raises:
        UsageError: it was removed.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(f"the working directory cannot be used: {error.strerror}") from error
