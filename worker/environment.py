"""The environment every job starts from. The caller's environment is never recorded; the worker's is filtered here.

Rule: design §6 ("A job's environment"); requirement E10.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

KEPT = ("HOME", "USER", "LANG", "TZ")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def job_environment(own: Mapping[str, str], *, prefix: Path, home: Path) -> dict[str, str]:
    """The base environment of jobs, from the worker's own at its start.

    Args:
        own: The worker's environment.
        prefix: Root of the virtual environment tenure runs in; its `bin` is taken out of PATH.
        home: The home, handed on as TENURE_HOME so that `tenure` inside a job means this one.
    """
    tools = str(prefix / "bin")
    folders = [folder for folder in own.get("PATH", DEFAULT_PATH).split(":") if folder and folder.rstrip("/") != tools]
    kept = {name: own[name] for name in KEPT if name in own}
    return {**kept, "PATH": ":".join(folders) or DEFAULT_PATH, "TENURE_HOME": str(home)}
