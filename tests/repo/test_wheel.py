"""What people install holds every room, whole, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.checkout import ROOMS, ROOT


def test_wheel_holds_every_file_of_the_rooms_and_no_other(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("tenure-*.whl")

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    assert held == {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
