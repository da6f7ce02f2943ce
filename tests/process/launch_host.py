"""A home with a real launcher, and short words for what the tests of this room do with it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from shared import boundary
from shared.ids import AttemptId
from shared.model.evidence import Evidence, ExitRecord, LockState, Pin
from shared.process.evidence import read_evidence
from shared.process.launcher import HeldLaunch, LaunchSpec, ZygoteLauncher
from tests.support.waiting import wait_until

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Owner(Protocol):
    """Owns processes that something else started."""

    def tell(self, pid: int) -> None: ...


class Host:
    """One home, one launcher, and everything it started known to the reaper."""

    def __init__(self, home: Path, reaper: Owner, *, with_leaves: bool = True) -> None:
        self.home = home
        self.attempts = home / "attempts"
        self.attempts.mkdir()
        self.launcher = ZygoteLauncher(self.attempts, home, with_leaves=with_leaves)
        self._reaper = reaper
        self._held: list[HeldLaunch] = []
        self._numbers = iter(range(1, 10_000))

    def spec(
        self,
        argv: Sequence[str],
        *,
        attempt_id: str | None = None,
        epoch: int = 1,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        stdin: bytes | None = None,
        grace_s: float = 1.0,
        output_max: int | None = None,
        channel: bool = False,
        files: tuple[tuple[str, bytes], ...] = (),
    ) -> LaunchSpec:
        return LaunchSpec(
            attempt_id=attempt_id or f"w{next(self._numbers)}.1",
            epoch=epoch,
            argv=tuple(argv),
            env={**ENV, "TENURE_HOME": str(self.home)} if env is None else env,
            cwd=cwd,
            stdin=stdin,
            grace_s=grace_s,
            output_max=output_max,
            channel=channel,
            files=files,
        )

    def hold(self, spec: LaunchSpec) -> HeldLaunch:
        """Launch up to READY."""
        held = self.launcher.launch(spec)
        self._held.append(held)
        self.tell(held.pin.shim.pid)
        return held

    def tell(self, pid: int) -> None:
        """Own a process that a job left behind."""
        self._reaper.tell(pid)

    def start(self, argv: Sequence[str], **more: Any) -> Pin:
        """Launch, say GO, and wait until the job is registered or over."""
        held = self.hold(self.spec(argv, **more))
        held.go()
        wait_until(
            lambda: (self.folder(held.pin) / "child.json").exists() or (self.folder(held.pin) / "exit.json").exists(),
            "the child has registered",
        )
        child = self.evidence(held.pin).child
        if child is not None:
            self.tell(child.pid)
        return held.pin

    def run(self, argv: Sequence[str], **more: Any) -> Pin:
        """Launch, say GO, and wait for the end."""
        pin = self.start(argv, **more)
        self.await_end(pin)
        return pin

    def await_end(self, pin: Pin) -> ExitRecord:
        wait_until(lambda: self.evidence(pin).lock is LockState.FREE, "the shim is gone")
        record = self.evidence(pin).exit
        assert record is not None, os.listdir(self.folder(pin))
        return record

    def evidence(self, pin: Pin) -> Evidence:
        return read_evidence(self.attempts, pin)

    def folder(self, pin: Pin) -> Path:
        return self.attempts / pin.directory

    def out(self, pin: Pin) -> str:
        return (self.folder(pin) / "out").read_text()

    def err(self, pin: Pin) -> str:
        return (self.folder(pin) / "err").read_text()

    def child_record(self, pin: Pin) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.folder(pin) / "child.json").read_text())
        return record

    def arm(self, order: str) -> Path:
        """Arm the shims of later launches as a drill would; returns the log of what was reached."""
        log = self.home / "drill.log"
        boundary.install(boundary.Trap(order, str(log), os.getpid()))
        return log

    def kill_zygote(self) -> int:
        """Kill the zygote and see it dead, though the launcher has not noticed; returns its pid."""
        zygote = self.launcher.zygote_pid
        assert zygote is not None
        os.kill(zygote, signal.SIGKILL)
        os.waitid(os.P_PID, zygote, os.WEXITED | os.WNOWAIT)
        return zygote

    def forbid_zygote(self) -> None:
        """Have every later shim exec'ed, as where a zygote cannot be had."""
        self.launcher._is_zygote_usable = False
        self.kill_zygote()
        self.run(["true"], attempt_id="w9999.1")
        assert self.launcher.zygote_pid is None

    def close(self) -> None:
        boundary.install(None)
        for held in self._held:
            held.close()
        self.launcher.close()


def attempt_of(pin: Pin) -> AttemptId:
    """The attempt that a pin's directory belongs to."""
    return AttemptId(pin.directory.rpartition(".")[0])
