"""A place of its own for stops: a private pid namespace, in which nothing else runs that could be taken for an orphan.

With root, whatever is needed is bound to where everybody can read it, so that the worker may be any user there; without, the
user's own namespaces are tried. Scenes (`tests/process/scenes.py`) run inside, and tell what they found as lines of JSON.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared.process import cgroup
from tests.support.processes import Reaper

ROOT_UID, NOBODY_UID = 0, 65534
CODE = Path(__file__).resolve().parents[2]
BOUND_S = 100.0
_ENTER = """set -e
for place in python code site; do mkdir -p "$1/$place"; mount --bind "$(eval echo \\$BIND_$place)" "$1/$place"; done
shift
eval "$BEFORE"
"$@"
"""
BEFORE = ""
"""What is done inside as root before a scene begins."""
_START = "import sys; sys.path[:0] = sys.argv[1:3]; from tests.process.scenes import main; main(sys.argv[3:])"

Facts = dict[str, Any]


@dataclass(frozen=True)
class Room:
    """Who works there, and whether its jobs get cgroups of their own."""

    uid: int
    with_leaves: bool

    def __str__(self) -> str:
        return f"uid {self.uid} {'with' if self.with_leaves else 'without'} cgroup"


def play(reaper: Reaper, room: Room, scene: str, *arguments: str) -> list[Facts]:
    """Play a scene in a room; what it told, line by line. Skips, with the reason, where there can be no such room."""
    skip_unless_possible(room)
    with _folder() as folder, _delegated(room) as group:
        command = ["/bin/sh", "-c", _ENTER, "sh", str(folder), *_python(folder), scene, str(folder), str(room.uid)]
        command += [group or "", "leaves" if room.with_leaves else "none", *arguments]
        users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        with (folder / "told").open("wb") as told, (folder / "errors").open("wb") as errors:
            process = reaper.start(
                ["unshare", *users, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *command],
                env=_environment(folder),
                cwd=Path("/"),
                stdout=told,
                stderr=errors,
            )
            process.wait(BOUND_S)
        wrong = (folder / "errors").read_text()
        assert process.returncode == 0, wrong
        lines = [json.loads(line) for line in (folder / "told").read_text().splitlines()]
    print(f"{room}, {scene}: {lines[0]}")
    return lines[1:]


def skip_unless_possible(room: Room) -> None:
    """Skip the test, with the reason, where there can be no such room."""
    reason = why_not(room)
    if reason is not None:
        pytest.skip(reason)


def why_not(room: Room) -> str | None:
    """Why there can be no such room here; None when there can."""
    if not _has_namespaces():
        return "no private pid namespace can be had here"
    if os.geteuid() != 0 and room.uid != ROOT_UID:
        return "needs root to become another user"
    if room.with_leaves and not _has_groups():
        return "no cgroup v2 that can be written here"
    return None


def has_other_users() -> bool:
    """Whether a job can become another user there: one's own user namespace knows none."""
    return os.geteuid() == 0


@functools.cache
def _has_namespaces() -> bool:
    users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *users, "--mount", "--pid", "--fork", "--mount-proc", "true"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


@functools.cache
def _has_groups() -> bool:
    own = cgroup.own_directory()
    return own is not None and os.geteuid() == 0 and os.access(own, os.W_OK)


def _python(folder: Path) -> list[str]:
    """Python as it is seen inside, up to the name of the scene."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return [
        str(folder / "python/bin" / name),
        "-I",
        "-S",
        "-B",
        "-c",
        _START,
        str(folder / "code"),
        str(folder / "site"),
    ]


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LD_LIBRARY_PATH": str(folder / "python/lib"),
        "BEFORE": BEFORE,
        "BIND_python": sys.base_prefix,
        "BIND_code": str(CODE),
        "BIND_site": sysconfig.get_path("platlib"),
    }


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tenure-arena-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _delegated(room: Room) -> Iterator[str | None]:
    """A group for the worker, with everything below it in the hands of its user."""
    own = cgroup.own_directory()
    if not room.with_leaves or own is None:
        yield None
        return
    group = Path(tempfile.mkdtemp(prefix="arena-", dir=own))
    (group / "elsewhere").mkdir()
    for path in (group, group / "cgroup.procs", group / "elsewhere", group / "elsewhere/cgroup.procs"):
        os.chown(path, room.uid, room.uid)
    group.chmod(0o755)
    try:
        yield str(group)
    finally:
        cgroup.remove(str(group))
