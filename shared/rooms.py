"""All rooms of tenure must come from one folder; a namesake in front of one of them gets one clear line.

The rooms have everyday names, so a folder of the user's that holds a `worker.py` or a `shared/` can come first on the import
path. Standard library only, and loadable by path: it has to work when the `shared` that Python finds is not ours.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("shared", "coordinator", "worker")


def require_one_folder() -> None:
    """Exit with status 1 and one line on standard error unless every room comes from this file's folder.

    Imports no room. Called first by each entry point.
    """
    complaint = find_intruder(Path(__file__).resolve().parent.parent)
    if complaint is not None:
        print(f"tenure: {complaint}", file=sys.stderr)
        raise SystemExit(1)


def find_intruder(folder: Path) -> str | None:
    """Say which room would be imported from somewhere else than `folder`, and what to do; None when all is well."""
    for room in ROOMS:
        found = _origin(room)
        if found is None:
            return f"its package {room!r} is missing from {folder}: install tenure again"
        if found.parent != folder:
            return (
                f"Python takes {room!r} from {found.parent}, not from {folder}:"
                " leave that folder, or take it out of PYTHONPATH"
            )
    return None


def _origin(room: str) -> Path | None:
    """Where Python finds the room: the package's folder, or the file of a plain module; None when nowhere."""
    try:
        spec = find_spec(room)
    except ValueError:  # something put a module without a spec under our name
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.origin else None
