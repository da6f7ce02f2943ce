"""Who may inherit what a killed shim leaves: found by trying, and written where an adopter reads it."""

from __future__ import annotations

import os
import signal

import pytest

from shared.process import procfs
from tests.process.launch_host import Host
from tests.process.test_stop_proofs import kill_shim
from tests.support.waiting import wait_until


@pytest.mark.req("R12")
@pytest.mark.parametrize("how", ["zygote", "exec"])
def test_the_nearest_subreaper_and_what_is_above_it(host: Host, how: str) -> None:
    """This process is one (`tests/support/processes.py`); the zygote between it and the shim is none."""
    if how == "exec":
        host.forbid_zygote()
    pin = host.start(["sleep", "60"])
    child = host.evidence(pin).child
    assert child is not None

    reapers = host.evidence(pin).reapers

    assert reapers is not None
    assert reapers[0] == (os.getpid(), procfs.start_ticks(os.getpid()))
    assert [list(each) for each in reapers] == procfs.lineage(os.getpid())
    kill_shim(host, pin)
    parents = {pid for pid, _ in reapers} | {1}
    wait_until(lambda: int(procfs.stat_fields(child.pid)[procfs.PPID]) in parents, "the kernel gave it to one of them")


def test_the_lineage_of_a_process(host: Host) -> None:
    pin = host.start(["sleep", "60"])
    child = host.evidence(pin).child
    assert child is not None

    line = procfs.lineage(child.pid)

    assert line[0] == [child.pid, child.start_ticks]
    assert line[1] == [pin.shim.pid, pin.shim.start_ticks]
    assert 1 not in [pid for pid, _ in line]
    os.kill(child.pid, signal.SIGKILL)
    host.await_end(pin)
    with pytest.raises(ProcessLookupError):
        procfs.lineage(child.pid)
