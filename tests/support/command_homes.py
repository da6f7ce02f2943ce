"""A home for the commands of `tenure`, whose store a test moves by the same transitions as coordinator and worker do.

Its clock is a little ahead of the host's, which a command in another process reads: so what is live here stays so there for as
long as a test may wait.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared import cli
from shared.clock import SystemClock
from shared.ids import Incarnation, WorkId, attempt_directory
from shared.model.attempt import AttemptState, Ending, FailureClass, LeaseKey
from shared.model.event import NewEvent
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.instant import US_PER_S
from shared.model.settings import Config
from shared.model.stop import StopResult, Suspect
from shared.model.work import WorkState
from shared.process.identity import boot_id, pid_namespace
from shared.store.contract import Store, Tx
from shared.store.settling import change_after
from shared.store.sqlite.store import open_store
from tests.support.declarations import WAIT_TO_RESUME
from tests.support.processes import Reaper
from tests.support.stores import EXHAUSTED, SQLITE, UNPROVEN, World
from tests.support.waiting import wait_until

AHEAD_US = 30 * US_PER_S


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandHome(World):
    """A home on the host's clock, with the commands as a user calls them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SQLITE, folder)
        (self.home / "store.db").chmod(0o600)  # as `create` leaves it, whatever a copied template has
        now = SystemClock().now()
        self.clock.reboot(now.boot_id)
        self.clock.advance(now.mono_us + AHEAD_US - self.clock.now().mono_us)
        self.clock.step_wall(now.wall_us - self.clock.now().wall_us)
        self.folder = folder

    def open(self, **options: Any) -> Store:
        """As `World.open`, but patient: a command in another process may hold the queue for a moment."""
        store = open_store(self.home, self.clock, ring=self._ring, wait_s=10, **options)
        self._stores.append(store)
        return store

    # --- calling

    def call(self, *words: str | Path, stdin: bytes = b"", env: dict[str, str] | None = None) -> Said:
        """Run a command to its end, in a process of its own."""
        done = subprocess.run(
            self.argv(*words),
            cwd=self.folder,
            input=stdin,
            env={**os.environ, **(env or {})},
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def argv(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-P", "-m", "shared.cli", "--home", str(self.home), *map(str, words)]

    # --- what coordinator and worker would do

    def activate(self, config: Config) -> None:
        self.store.write(
            lambda tx: tx.activate_config(config.to_json(), config.digest, str(self.folder / "tenure.toml"))
        )

    def staff(self) -> Incarnation:
        """A leader and a worker, as far as the store can tell."""
        self.take_lead()
        return self.worker()

    def launch(self, worker: Incarnation, work_id: WorkId | None = None) -> LeaseKey:
        """A job that runs, with its directory; its outputs are the test's to write."""
        key = self.running(worker, work_id)
        self.directory(key).mkdir(parents=True)
        return key

    def directory(self, key: LeaseKey) -> Path:
        """Of its latest launch: those who adopt it work in the same one."""
        launch = self.attempt(key.attempt_id).launch_epoch
        return self.home / "attempts" / attempt_directory(key.attempt_id, launch)

    def park(self, key: LeaseKey) -> None:
        """The job ends, to go on after a wait."""
        self.store.write(lambda tx: tx.declare(key, [WAIT_TO_RESUME]))
        outcome = self.outcome(key)
        self.store.write(lambda tx: tx.park(key, outcome, proof="S1"))

    def launch_again(self, key: LeaseKey, worker: Incarnation) -> LeaseKey:
        """What it waited for comes, and it runs at the next epoch, in a directory of its own."""
        self.store.write(lambda tx: tx.publish(NewEvent("tick", None, "null", "a test")))
        resumed = self.resumed(key, worker)
        self.store.write(lambda tx: tx.accept(resumed, invoke_isolated=True))
        self.store.write(lambda tx: tx.pin(resumed, self.pin(resumed)))
        self.directory(resumed).mkdir(parents=True)
        return resumed

    def say(self, key: LeaseKey, data: bytes, file: str = "out") -> None:
        """The job writes."""
        with (self.directory(key) / file).open("ab") as output:
            output.write(data)

    def adopt(self, key: LeaseKey) -> None:
        """Whoever took the attempt over accepts it and finds it running."""
        self.store.write(lambda tx: tx.accept(key, invoke_isolated=None))
        self.store.write(lambda tx: tx.adopt(key, why="its shim holds the lock"))

    def end(self, key: LeaseKey, ending: Ending) -> None:
        """The job ends, and its Work is settled as a worker would."""

        def finish(tx: Tx) -> None:
            tx.finish(key, ending, change_after(tx, key.attempt_id, ending))

        self.store.write(finish)

    def abandon(self, key: LeaseKey) -> None:
        """Nobody can know what became of it."""
        self.store.write(lambda tx: tx.require_recovery(key, why="nobody saw how it ended", proof=None))

    def cancel(self, work_id: WorkId) -> None:
        self.store.write(lambda tx: tx.cancel_work(work_id, by="a test", reason="wrong branch"))

    def works(self) -> list[WorkId]:
        """All there are."""
        return [work.id for work in self.store.read(lambda tx: tx.works(states=(), after=0, limit=1000))]

    def states(self) -> dict[WorkId, WorkState]:
        found = self.store.read(lambda tx: tx.works(states=(), after=0, limit=1000))
        return {work.id: work.state for work in found}


Ask = Callable[..., Said]
"""Runs a command of this home inside the test: `ask("work", "list")`."""


def asking(home: CommandHome, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Commands without a process of their own."""

    def ask(*words: str) -> Said:
        code = cli.main(["--home", str(home.home), *words])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return ask


def unproven(home: CommandHome) -> LeaseKey:
    """An attempt that failed, with a process left that cannot be told apart from it."""
    worker = home.staff()
    key = home.running(worker)
    home.store.write(lambda tx: tx.finish(key, UNPROVEN, EXHAUSTED))
    order = home.store.read(lambda tx: tx.stop_orders())[0]
    home.store.write(lambda tx: tx.take_stop_order(order.id, worker, lease_us=30 * US_PER_S))
    suspect = Suspect(4242, 7, 65534, 99, "D", "stuck --name '\x1b[2J'", ("session", "environment"))
    tried = ("S1: no exit record", "S5: a process could not be read")
    result = StopResult(None, (suspect,), tried, None)
    home.store.write(lambda tx: tx.report_unproven(order.id, worker, result, retry_us=US_PER_S))
    return key


class Launch:
    """A launch whose files are as a shim left them; `hold` takes its lock, as a shim that lives does."""

    def __init__(
        self,
        home: CommandHome,
        worker: Incarnation,
        work_id: WorkId | None = None,
        *,
        shim: ProcessIdentity | None = None,
    ) -> None:
        self.key = home.accepted(worker, work_id)
        self.folder = home.directory(self.key)
        self.folder.mkdir(parents=True)
        lock = self.folder / "lock"
        lock.touch()
        shim = shim or ProcessIdentity(2**22 - 1, 5, boot_id(), pid_namespace())
        pin = Pin(1, self.folder.name, shim, self.folder.stat().st_ino, lock.stat().st_ino)
        home.store.write(lambda tx: tx.pin(self.key, pin))
        self._lock = os.open(lock, os.O_RDWR | os.O_CLOEXEC)

    def hold(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def let_go(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def write(self, name: str, record: dict[str, object]) -> None:
        (self.folder / name).write_text(json.dumps(record))

    def close(self) -> None:
        os.close(self._lock)


def ending(status: int | None, *, proof: str | None = "S1") -> Ending:
    """How a job ends that exits so, negative for a signal."""
    if status == 0:
        return Ending(AttemptState.SUCCEEDED, 0, None, None, proof, "ended")
    return Ending(AttemptState.FAILED, status, FailureClass.KNOWN, "it failed", proof, "ended")


def failed_to_run(error: str, failure: FailureClass = FailureClass.PERMANENT) -> Ending:
    """How a job ends of which nothing ran."""
    return Ending(AttemptState.FAILED, None, failure, error, "S1", "nothing ran")


class Running:
    """A command under way, its two outputs in files of the test's folder."""

    def __init__(self, reaper: Reaper, home: CommandHome, words: Sequence[str], *, cwd: Path | None = None) -> None:
        self._out = home.folder / "said.out"
        self._err = home.folder / "said.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = reaper.start(home.argv(*words), cwd=cwd or home.folder, stdout=out, stderr=err)

    @property
    def out(self) -> bytes:
        return self._out.read_bytes()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def wait_out(self, data: bytes) -> None:
        wait_until(lambda: self.out == data, f"{data!r} on standard output")

    def wait_err(self, text: str) -> None:
        wait_until(lambda: text in self.err, f"{text!r} on standard error")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        return self.process.wait(timeout=30)


@contextmanager
def command_home(folder: Path) -> Iterator[CommandHome]:
    """A home that is closed at the end."""
    home = CommandHome(folder)
    try:
        yield home
    finally:
        home.close()
