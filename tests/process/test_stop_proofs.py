"""Stops: what is proven, by which rule, and what is shown when nothing proves it."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from pathlib import Path

import pytest

from shared.ids import AttemptId
from shared.model.evidence import LockState, Pin
from shared.model.stop import StopResult
from shared.process.evidence import any_child_record
from shared.process.identity import identify, is_alive
from shared.process.stopper import prove_stopped, stop
from tests.process.launch_host import Host, attempt_of
from tests.process.test_shim_stragglers import DAEMON, IGNORES_TERM
from tests.support.waiting import wait_until

FORKER = """
import os
for _ in range(3):
    os.fork()
while True:
    if os.fork() == 0:
        os.setsid()
    else:
        os._exit(0)
"""


def stop_pinned(host: Host, pin: Pin, *, grace_s: float = 1.0, ordered: bool = True) -> StopResult:
    return stop(host.attempts, attempt_of(pin), pin, True, grace_s, ordered=ordered)


def prove_pinned(host: Host, pin: Pin) -> StopResult:
    return prove_stopped(host.attempts, attempt_of(pin), pin, True)


def kill_shim(host: Host, pin: Pin) -> None:
    os.kill(pin.shim.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pin.shim), "the shim is dead")


class TestStopped:
    """S1: the shim saw its tree empty, whatever the tree did against it."""

    def test_a_polite_job(self, host: Host) -> None:
        pin = host.start(["sleep", "60"])

        result = stop_pinned(host, pin)

        assert (result.proof, result.suspects) == ("S1", ())
        assert result.exit is not None
        assert (result.exit.status, result.exit.stop) == (-15, "request")

    def test_a_job_that_ignores_term_is_killed_after_its_grace(self, host: Host) -> None:
        pin = host.start(["sh", "-c", f"trap '' TERM; echo ready; {IGNORES_TERM}"], grace_s=0.1)
        wait_until(lambda: host.out(pin) == "ready\n", "the trap is set")

        result = stop_pinned(host, pin, grace_s=0.1)

        assert result.proof == "S1"
        assert result.exit is not None
        assert result.exit.status == -9

    def test_a_job_may_end_in_its_own_way_within_the_grace(self, host: Host) -> None:
        pin = host.start(["sh", "-c", "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done"])
        wait_until(lambda: host.out(pin) == "ready\n", "the trap is set")

        result = stop_pinned(host, pin)

        assert result.exit is not None
        assert (result.exit.status, result.exit.stop) == (4, "request")
        assert host.out(pin) == "ready\nbye\n"

    @pytest.mark.parametrize("who", ["shim", "child"])
    def test_a_stopped_process_is_continued_first(self, host: Host, who: str) -> None:
        pin = host.start(["sleep", "60"])
        child = host.evidence(pin).child
        assert child is not None
        os.kill(pin.shim.pid if who == "shim" else child.pid, signal.SIGSTOP)

        result = stop_pinned(host, pin)

        assert result.proof == "S1"
        assert result.exit is not None
        assert result.exit.status == -15

    def test_daemons_without_marks_are_found_by_their_ancestry(self, host: Host) -> None:
        pin = host.start([sys.executable, "-I", "-S", "-c", DAEMON + "\nos.execv('/bin/sleep', ['sleep', '60'])"])
        wait_until(lambda: _command(host, pin) == "sleep", "the daemon is away")

        assert stop_pinned(host, pin).proof == "S1"

    def test_a_program_that_forks_away_from_every_signal(self, host: Host) -> None:
        pin = host.start([sys.executable, "-I", "-S", "-c", FORKER], grace_s=0.05)

        assert stop_pinned(host, pin, grace_s=0.05).proof == "S1"

    def test_one_that_has_ended_by_itself_is_proven_without_a_signal(self, host: Host) -> None:
        pin = host.run(["sh", "-c", "exit 3"])

        for result in (prove_pinned(host, pin), stop_pinned(host, pin)):
            assert result.proof == "S1"
            assert result.exit is not None
            assert (result.exit.status, result.exit.stop) == (3, None)

    def test_a_stop_that_was_cut_short_is_taken_up_again(self, host: Host) -> None:
        pin = host.start(["sleep", "60"])
        os.kill(pin.shim.pid, signal.SIGTERM)

        assert stop_pinned(host, pin).proof == "S1"
        assert stop_pinned(host, pin).proof == "S1"

    def test_a_shim_that_does_not_deliver_is_helped_from_outside(self, host: Host) -> None:
        """It was launched with a grace of a minute; the stop has less time than that."""
        pin = host.start(["sh", "-c", f"trap '' TERM; echo ready; {IGNORES_TERM}"], grace_s=60)
        wait_until(lambda: host.out(pin) == "ready\n", "the trap is set")

        result = stop_pinned(host, pin, grace_s=0.0)

        assert result.proof == "S1"
        assert result.exit is not None
        assert result.exit.status == -9


class TestHeld:
    """S0 and S1b: nothing was ever let through the gate."""

    def test_a_held_shim_is_killed_under_a_stop_order(self, host: Host) -> None:
        held = host.hold(host.spec(["true"]))

        result = stop_pinned(host, held.pin)

        assert (result.proof, result.exit) == ("S1b", None)
        assert stop_pinned(host, held.pin).proof == "S1b"
        held.close()

    def test_a_held_shim_that_is_stopped_is_killed_too(self, host: Host) -> None:
        held = host.hold(host.spec(["true"]))
        os.kill(held.pin.shim.pid, signal.SIGSTOP)

        assert stop_pinned(host, held.pin, grace_s=0.0).proof == "S1b"
        held.close()

    def test_without_a_stop_order_a_held_shim_is_left_to_its_gate(self, host: Host) -> None:
        held = host.hold(host.spec(["true"]))

        result = stop_pinned(host, held.pin, ordered=False)

        assert result.proof is None
        assert "S1b: no stop order" in result.tried
        assert [(suspect.pid, suspect.matched) for suspect in result.suspects] == [(held.pin.shim.pid, ("shim",))]
        assert host.evidence(held.pin).lock is LockState.HELD
        held.close()

    def test_an_exec_that_failed_left_nothing(self, host: Host) -> None:
        assert prove_pinned(host, host.run(["no-such-command"])).proof == "S1"

    def test_without_a_pin_nothing_of_an_isolated_executor_ran(self, host: Host) -> None:
        held = host.hold(host.spec(["true"]))
        attempt_id = attempt_of(held.pin)

        assert prove_stopped(host.attempts, attempt_id, None, True).proof == "S0"
        assert stop(host.attempts, attempt_id, None, True, 1.0, ordered=True).proof == "S0"
        held.close()

    @pytest.mark.parametrize(
        ("isolated", "prepare", "why"),
        [
            (False, "nothing", "S0: its executor does not hold what it launches at a gate"),
            (True, "run", "S0: a child registered itself"),
            (True, "remove", "S0: its directories could not be read"),
        ],
    )
    def test_without_a_pin_anything_else_is_unproven(self, host: Host, isolated: bool, prepare: str, why: str) -> None:
        attempt_id = attempt_of(host.run(["true"]))
        if prepare == "nothing":
            attempt_id = attempt_of(host.hold(host.spec(["true"])).pin)
        if prepare == "remove":
            host.attempts.rename(host.home / "elsewhere")

        result = stop(host.attempts, attempt_id, None, isolated, 1.0, ordered=True)

        assert result.proof is None
        assert why in result.tried


class TestOtherBoot:
    """S3: nothing outlives a restart of the host."""

    def test_a_pin_of_another_boot_is_stopped(self, host: Host) -> None:
        pin = host.start(["sleep", "60"])
        old = dataclasses.replace(pin, shim=dataclasses.replace(pin.shim, boot_id="another"))

        assert stop_pinned(host, old).proof == "S3"
        assert is_alive(pin.shim), "a pid of another boot is never signalled"
        assert stop_pinned(host, pin).proof == "S1"


class TestUnproven:
    """Whatever is not proven names what may be left and why each rule failed."""

    def test_a_living_job_is_not_proven_stopped_and_gets_no_signal(self, host: Host) -> None:
        pin = host.start(["sleep", "60"])
        child = host.evidence(pin).child
        assert child is not None

        wait_until(lambda: _command(host, pin) == "sleep", "the child has become the job")

        result = prove_pinned(host, pin)

        inside = ("cgroup",) if host.launcher.leaves else ()
        assert result.proof is None
        assert [line.partition(":")[0] for line in result.tried if line[0] == "S"] == [
            "S0",
            "S3",
            "S1",
            "S1b",
            "S2",
            "S5",
        ]
        assert {suspect.pid: suspect.matched for suspect in result.suspects} == {
            pin.shim.pid: ("shim",),
            child.pid: ("below shim", "child", *inside, "environment", "tree.lock"),
        }
        assert is_alive(child)

    def test_a_daemon_left_by_a_dead_shim_is_stopped_with_the_child(self, host: Host) -> None:
        pin = host.start(["sh", "-c", "setsid sleep 61 & echo $!; exec sleep 60"])
        escaped = identify(int(wait_until(lambda: host.out(pin), "the daemon is named")))
        host.tell(escaped.pid)
        kill_shim(host, pin)
        child = host.evidence(pin).child
        assert child is not None

        result = stop_pinned(host, pin)

        assert (is_alive(child), is_alive(escaped)) == (False, False)
        assert (result.terms, result.kills) == (2, 0)
        assert escaped.pid not in [suspect.pid for suspect in result.suspects]
        assert result.proof in {"S2", "S5", None}, "what else runs on this host may look like an orphan of it"

    def test_an_attempt_of_the_same_name_in_another_home_is_no_suspect(self, host: Host, tmp_path: Path) -> None:
        here = host.start(["sh", "-c", "setsid sleep 61 & exec sleep 60"], attempt_id="w5.1")
        there = host.start(["sleep", "60"], attempt_id="w5.1", epoch=2, env={"TENURE_HOME": str(tmp_path / "other")})
        wait_until(lambda: _command(host, there) == "sleep", "the child has become the job")

        suspects = prove_pinned(host, here).suspects

        assert {here.shim.pid} < {suspect.pid for suspect in suspects}
        other = host.evidence(there).child
        assert other is not None
        assert not {other.pid, there.shim.pid} & {suspect.pid for suspect in suspects}

    def test_a_child_that_ignores_term_below_a_dead_shim_is_killed_with_its_group(self, host: Host) -> None:
        pin = host.start(["sh", "-c", "trap '' TERM; sleep 62 & echo $!; while :; do sleep 0.01; done"])
        left = identify(int(wait_until(lambda: host.out(pin), "the trap is set")))
        host.tell(left.pid)
        kill_shim(host, pin)

        result = stop_pinned(host, pin, grace_s=0.05)

        child = host.evidence(pin).child
        assert child is not None
        assert (is_alive(child), is_alive(left)) == (False, False)
        assert result.kills >= 2

    def test_a_directory_that_is_not_the_pinned_one_proves_nothing(self, host: Host) -> None:
        pin = host.run(["true"])
        other = dataclasses.replace(pin, directory_ino=pin.directory_ino + 1)

        result = stop_pinned(host, other)

        assert result.proof is None
        assert "S1: the pinned directory is missing or is another one" in result.tried
        assert stop_pinned(host, pin).proof == "S1"

    def test_a_pid_that_belongs_to_another_process_now_is_never_signalled(self, host: Host) -> None:
        bystander = host.start(["sleep", "60"])
        pin = host.start(["sh", "-c", "exec sleep 60"])
        reused = dataclasses.replace(pin, shim=dataclasses.replace(bystander.shim, start_ticks=1))

        stop_pinned(host, reused, grace_s=0.0)

        assert is_alive(bystander.shim)


class TestForgottenLaunch:
    """A launch that the store knows no more, and that ran: nothing is proven, and its directory is looked for once."""

    @pytest.fixture
    def looks(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """From which epoch on, at each look at the names of all directories."""
        found: list[int] = []
        real = any_child_record

        def looking(attempts_dir: Path, attempt_id: AttemptId, since_epoch: int = 1) -> bool | None:
            found.append(since_epoch)
            return real(attempts_dir, attempt_id, since_epoch)

        monkeypatch.setattr("shared.process.prover.any_child_record", looking)
        return found

    def test_one_that_ran_keeps_every_record_from_proving_the_stop(self, host: Host, looks: list[int]) -> None:
        pin = host.run(["true"])
        later = host.attempts / f"{attempt_of(pin)}.{pin.epoch + 7}"
        later.mkdir()
        (later / "child.json").write_text("{}")

        result = prove_pinned(host, pin)

        told = "a child registered itself in a launch whose pin is not in the store"
        assert result.proof is None
        assert f"S1: {told}" in result.tried
        assert looks == [pin.epoch + 1]
        (later / "child.json").unlink()
        looks.clear()
        assert prove_pinned(host, pin).proof == "S1", "the control: a launch that ran nothing"
        assert looks == [pin.epoch + 1]

    def test_a_stop_that_is_on_record_looks_once(self, host: Host, looks: list[int]) -> None:
        pin = host.run(["true"])

        assert stop_pinned(host, pin).proof == "S1"
        assert looks == [pin.epoch + 1]

    def test_what_still_runs_is_not_looked_for(self, host: Host, looks: list[int]) -> None:
        pin = host.start(["sleep", "60"])

        assert prove_pinned(host, pin).proof is None
        assert looks == []


def _command(host: Host, pin: Pin) -> str:
    child = host.evidence(pin).child
    assert child is not None
    return Path(f"/proc/{child.pid}/comm").read_text().strip()
