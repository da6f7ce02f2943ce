"""The home: the folder that holds the store, the attempts and the sockets of one tenure.

Found by name or by going up, made with mode 0700, marked as ours, refused when it is somebody else's. Standard library
only, for the commands that must start fast; the environment is given by the caller.

Rule: design §12 (how it is found, where the configuration lies), §4 (0700, relative paths inside).
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import StoreUnavailableError, UsageError

HOME_NAME = ".tenure"
CONFIG_NAME = "tenure.toml"
FORMAT = 1
_MARKER_NAME = "home.json"
_MARKER_BYTES_MAX = 4096
_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of one home lies; says nothing about whether it is there.

    Attributes:
        path: Absolute folder.
    """

    path: Path

    @property
    def marker(self) -> Path:
        """The file that says a folder is a home, and of which format."""
        return self.path / _MARKER_NAME

    @property
    def store(self) -> Path:
        """The database."""
        return self.path / "store.db"

    @property
    def queue_lock(self) -> Path:
        """The file whose lock queues the writers of the store."""
        return self.path / "queue.lock"

    @property
    def run(self) -> Path:
        """Locks of processes and their doorbells."""
        return self.path / "run"

    @property
    def attempts(self) -> Path:
        """One folder for each launch."""
        return self.path / "attempts"

    @property
    def config_path(self) -> Path:
        """Where `init` puts the configuration: beside a folder called `.tenure`, inside any other one."""
        return (self.path.parent if self.path.name == HOME_NAME else self.path) / CONFIG_NAME


def named_home(explicit: str | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The home that was named: by `--home`, else by TENURE_HOME (empty counts as unset); None when none was.

    Raises:
        UsageError: the name is empty or contains a NUL byte.
    """
    name = explicit if explicit is not None else environ.get("TENURE_HOME") or None
    if name is None:
        return None
    if not name or "\0" in name:
        raise UsageError("--home needs a folder")
    full = cwd / name
    # The folder's own name stays (it says where the configuration lies), also when it is a symbolic link.
    return full.resolve() if full.name == ".." else full.parent.resolve() / full.name


def find_home(explicit: str | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The home a command is meant for: the named one, else the nearest `.tenure` going up from `cwd`.

    A named home need not exist; `check_home` tells.

    Raises:
        UsageError: none is named and none is found.
    """
    named = named_home(explicit, environ, cwd)
    if named is not None:
        return named
    for folder in (cwd, *cwd.parents):
        if os.path.isdir(folder / HOME_NAME):  # False, not an error, in a folder that may not be searched
            return folder / HOME_NAME
    raise UsageError(f"no home: no {HOME_NAME} in {cwd} or above it", hint="`tenure init` makes one here")


def home_to_create(explicit: str | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The home that `init` makes: the named one, else `.tenure` right here, also when there is one above."""
    named = named_home(explicit, environ, cwd)
    return cwd / HOME_NAME if named is None else named


def check_home(path: Path) -> Home:
    """The home at `path`, once it is known to be one that this user may use.

    Raises:
        StoreUnavailableError: `not_a_home`: no folder, not marked as a home, of another format, another user's, or
            without the folders that belong in it.
    """
    home = Home(path)
    _refuse_foreign(home)
    _refuse_unmarked(home)
    for folder in (home.run, home.attempts):
        if not os.path.isdir(folder):
            raise _not_a_home(
                f"{path} lacks its folder {folder.name}", f"`tenure --home {shlex.quote(str(path))} init` puts it back"
            )
    return home


def exposed_mode(path: Path) -> int | None:
    """The mode of a home that others than its owner may enter; None when it is private. For `doctor` to report."""
    mode = path.stat().st_mode & 0o777
    return mode if mode & 0o077 else None


def create_home(path: Path) -> tuple[Home, bool]:
    """Make the home, whatever the umask; True when it was not there before.

    A home that is there is left alone but for missing folders in it. An interrupted creation is completed.

    Raises:
        StoreUnavailableError: `not_a_home`: something else is there (nothing is created then), or it cannot be made.
    """
    home = Home(path)
    try:
        fresh = _is_fresh(home)
        if fresh:
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(_MODE)
            _write_marker(home)
        else:
            _refuse_foreign(home)
            _refuse_unmarked(home)
        for folder in (home.run, home.attempts):
            folder.mkdir(exist_ok=True)
            folder.chmod(_MODE)
    except OSError as error:
        raise _not_a_home(f"{error.filename or path} cannot be made: {error.strerror}") from error
    return home, fresh


def remove_empty_home(home: Home) -> None:
    """Take back a home that was just created and in which nothing else has been put; leaves anything else alone."""
    try:
        home.run.rmdir()
        home.attempts.rmdir()
        if [entry.name for entry in os.scandir(home.path)] == [_MARKER_NAME]:
            home.marker.unlink()
            home.path.rmdir()
    except OSError:
        pass  # somebody uses it: then it is no longer ours to remove


def _is_fresh(home: Home) -> bool:
    """Whether a home can be begun here: nothing there, an empty folder, or what an interrupted beginning left."""
    try:
        with os.scandir(home.path) as entries:
            sizes = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries}
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        raise _not_a_home(f"{home.path} is not a folder") from None
    _refuse_foreign(home)
    if sizes.get(_MARKER_NAME):
        return False
    strangers = sorted(set(sizes) - {_MARKER_NAME, CONFIG_NAME})
    if strangers:
        message = f"{home.path} is neither empty nor a home of tenure: it holds {strangers[0]}"
        raise _not_a_home(message, "choose an empty folder, or one that does not exist yet")
    return True


def _refuse_foreign(home: Home) -> None:
    try:
        found = home.path.stat()
    except FileNotFoundError:
        raise _not_a_home(
            f"{home.path} does not exist", f"`tenure --home {shlex.quote(str(home.path))} init` makes it"
        ) from None
    except OSError as error:
        raise _not_a_home(f"{home.path} cannot be used: {error.strerror}") from error
    if not home.path.is_dir():
        raise _not_a_home(f"{home.path} is not a folder")
    if found.st_uid != os.geteuid():
        message = f"{home.path} belongs to user {found.st_uid}, this is user {os.geteuid()}"
        raise _not_a_home(message, "run as that user, or name another home with --home")


def _refuse_unmarked(home: Home) -> None:
    try:
        with home.marker.open("rb") as file:
            marker = json.loads(file.read(_MARKER_BYTES_MAX))
        written = marker["format"]
    except FileNotFoundError:
        message = f"{home.path} is not a home of tenure"
        raise _not_a_home(message, "`tenure init` makes one in an empty folder") from None
    except OSError as error:
        raise _not_a_home(f"{home.marker} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise _not_a_home(f"{home.marker} is damaged", f"write {_marker_text().strip()} into it") from error
    if written != FORMAT:
        message = f"{home.path} is a home of format {written}, this version knows {FORMAT}"
        raise _not_a_home(message, "use the version of tenure that made it")


def _write_marker(home: Home) -> None:
    # O_DSYNC: a power loss must not leave a used home without its mark.
    flags = os.O_WRONLY | os.O_CREAT | os.O_DSYNC | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(home.marker, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, _marker_text().encode())
    finally:
        os.close(descriptor)


def _marker_text() -> str:
    return json.dumps({"format": FORMAT}) + "\n"


def _not_a_home(message: str, hint: str | None = None) -> StoreUnavailableError:
    return StoreUnavailableError("not_a_home", message, hint=hint)
