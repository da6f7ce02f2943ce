"""Small file systems that a test can really fill; they need the right to mount, and are skipped without it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str, *, files: int | None = None) -> Iterator[Path]:
    """A new file system at a new folder, its size as `mount` takes it (`12m`), with room for so many files."""
    folder.mkdir()
    options = f"size={size}" if files is None else f"size={size},nr_inodes={files}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def take_all_files(folder: Path) -> list[Path]:
    """Make empty files until there is no room for another one, whatever room for bytes is left."""
    made: list[Path] = []
    while True:
        path = folder / f"file-{len(made)}"
        try:
            path.touch(exist_ok=False)
        except OSError:
            return made
        made.append(path)


def fill(path: Path) -> None:
    """Take every block that is left."""
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
