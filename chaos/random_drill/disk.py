"""A small disk of its own for a random drill, which can really be filled."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from shared.errors import UsageError

MEBIBYTES = 96
BLOCKS = (65_536, 4_096)
FULL_WORDS = "is full"
"""What tenure says of a disk that is."""


class SmallDisk:
    """A file system in memory at a folder of the drill's. Needs the right to mount.

    Attributes:
        folder: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        """Make the folder and the file system.

        Raises:
            UsageError: nothing can be mounted here.
        """
        folder.mkdir(parents=True)
        options = f"size={MEBIBYTES}m,mode=700"
        mount = ["mount", "-t", "tmpfs", "-o", options, "tenure-drill", str(folder)]
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise UsageError(
                f"no file system can be mounted here: {made.stderr.strip()}",
                hint="it takes root; run without --small-disk",
            )
        self.folder = folder

    def close(self) -> None:
        """Take it away; what it held lies in the folder from then on, for whoever looks."""
        kept = self.folder.with_name(f"{self.folder.name}-kept")
        shutil.copytree(self.folder, kept, symlinks=True, ignore=_sockets)
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        self.folder.rmdir()
        kept.rename(self.folder)


def fill(path: Path) -> None:
    """Take every block that is left."""
    with path.open("wb", buffering=0) as file:
        for size in BLOCKS:
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def _sockets(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if not os.path.isfile(os.path.join(folder, name)) and not os.path.isdir(os.path.join(folder, name))
    ]
