"""`tenure worker`, but its executor ends the whole process where it prepares a launch of the binding `fatal`.

What a fault in native code does, or a job so big that the kernel kills who loads it. Called as `tenure` is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from shared.cli import main
from shared.process.launcher import LaunchSpec
from shared.store.contract import Assignment
from worker.executors.shell import ShellExecutor

_prepare = ShellExecutor.prepare


def _prepare_or_die(self: ShellExecutor, assignment: Assignment, layer: Mapping[str, str]) -> LaunchSpec:
    if assignment.snapshot.binding == "fatal":
        os._exit(139)
    return _prepare(self, assignment, layer)


if __name__ == "__main__":
    ShellExecutor.prepare = _prepare_or_die  # type: ignore[method-assign]
    sys.exit(main())
