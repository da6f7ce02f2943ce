"""What a result says of the host it was had on, as `tenure doctor` sees it."""

from __future__ import annotations

import os
import platform
import shutil

from chaos.results import Host
from shared.commands.findings_place import EXIT_STATUS_KERNEL, kernel_version
from shared.process import cgroup, sandbox
from shared.store.sqlite.driver import library_version


def probe() -> Host:
    """Look at this host. Blocks: some milliseconds, for a sandbox that is tried."""
    release = os.uname().release
    group = cgroup.own_directory()
    bwrap = sandbox.find_bwrap(os.environ.get("PATH", os.defpath))
    return Host(
        kernel=release,
        machine=os.uname().machine,
        cpus=len(os.sched_getaffinity(0)),
        python=platform.python_version(),
        sqlite=".".join(map(str, library_version())),
        uid=os.getuid(),
        cgroup=group is not None and os.access(group, os.W_OK),
        pidfd_exit=kernel_version(release) >= EXIT_STATUS_KERNEL,
        strace=shutil.which("strace") is not None,
        bubblewrap=bwrap is not None and sandbox.why_not(bwrap) is None,
    )
