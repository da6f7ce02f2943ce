"""The limit on open files: raised for a worker that holds two pidfds per attempt, put back for its jobs."""

from __future__ import annotations

import functools
import resource


@functools.cache
def inherited_file_limit() -> int:
    """The soft limit this process was started with (the first call must come before a raise; `raise_file_limit` sees to it)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_file_limit() -> int:
    """Raise the soft limit on open files to the hard one; returns the limit now in force."""
    inherited_file_limit()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
