"""The environment every job starts from. The caller's environment is never recorded; the worker's is filtered here.

Rule: design §6 ("A job's environment"); requirement E10.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

KEPT = ("HOME", "USER", "LANG", "TZ")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def job_environment(own: Mapping[str, str], *, prefix: Path, home: Path) -> dict[str, str]:
    """The base environment of jobs, from the worker's own at its start.

    Args:
        own: The worker's environment.
        prefix: Root of the virtual environment tenure runs in; its `bin` is taken out of PATH, and jobs are told by TENURE_COMMAND
            where the command itself is.
        home: The home, handed on as TENURE_HOME so that `tenure` inside a job means this one.
    """
    tools = str(prefix / "bin")
    folders = [folder for folder in own.get("PATH", DEFAULT_PATH).split(":") if folder and folder.rstrip("/") != tools]
    kept = {name: own[name] for name in KEPT if name in own}
    command = _command(prefix, own.get("PATH", DEFAULT_PATH))
    told = {} if command is None else {"TENURE_COMMAND": command}
    return {**kept, "PATH": ":".join(folders) or DEFAULT_PATH, "TENURE_HOME": str(home), **told}


def _command(prefix: Path, path: str) -> str | None:
    """Where the `tenure` of this installation is, as one word; else the one on the worker's own PATH; None: there is none."""
    installed = prefix / "bin" / "tenure"
    return str(installed) if os.access(installed, os.X_OK) else shutil.which("tenure", path=path)
