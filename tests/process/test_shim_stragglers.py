"""The shim stays until nothing of the job is left, and only then records the end."""

from __future__ import annotations

import sys

from shared.model.evidence import LockState
from tests.process.launch_host import Host
from tests.support.waiting import wait_until

IGNORES_TERM = "trap '' TERM; while :; do sleep 0.05; done"
# Leaves the session, forgets the environment and closes every descriptor before it sleeps.
DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        os.execve("/bin/sleep", ["sleep", "60"], {})
    os._exit(0)
os.wait()
"""


def test_stragglers_are_ended_after_the_main_child_and_its_status_counts(host: Host) -> None:
    pin = host.run(["sh", "-c", "sleep 60 & exit 3"])

    record = host.await_end(pin)
    assert (record.status, record.stop, record.tree_empty) == (3, "stragglers", True)


def test_stragglers_that_ignore_term_are_killed_after_the_grace(host: Host) -> None:
    pin = host.run(["sh", "-c", "trap '' TERM; (while :; do sleep 0.05; done) & exit 0"], grace_s=0.1)

    record = host.await_end(pin)
    assert (record.status, record.stop, record.tree_empty) == (0, "stragglers", True)


def test_a_daemon_that_hides_from_everything_but_its_ancestry_is_ended_too(host: Host) -> None:
    pin = host.run([sys.executable, "-I", "-S", "-c", DAEMON])

    record = host.await_end(pin)
    assert (record.status, record.stop, record.tree_empty) == (0, "stragglers", True)


def test_a_job_without_stragglers_is_not_stopped(host: Host) -> None:
    record = host.await_end(host.run(["sh", "-c", "sleep 0.01; exit 4"]))

    assert (record.status, record.stop) == (4, None)


def test_a_stopped_straggler_is_continued_so_that_it_hears_term(host: Host) -> None:
    pin = host.start(["sh", "-c", "sh -c 'kill -STOP $$' & sleep 0.2; exit 0"], grace_s=20)

    record = host.await_end(pin)
    assert (record.status, record.stop) == (0, "stragglers")


def test_the_lock_is_held_while_a_straggler_lives(host: Host) -> None:
    pin = host.start(["sh", "-c", "trap '' TERM; (while :; do sleep 0.05; done) & exit 0"], grace_s=0.5)
    child = host.evidence(pin).child
    assert child is not None
    wait_until(lambda: host.evidence(pin).child_alive is False, "the main child has ended")

    evidence = host.evidence(pin)
    assert (evidence.lock, evidence.exit) == (LockState.HELD, None)
    assert host.await_end(pin).tree_empty
