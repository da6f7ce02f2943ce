"""A worker as small as can be around the real launcher, evidence and decision, and a store of one row to fence it.

Each worker is a fork of the test that runs until it is killed. What it decides and when it rests it writes to a trail.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from shared import boundary
from shared.boundary import Boundary
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, Invoke
from shared.model.evidence import LockState, Pin, ProcessIdentity
from shared.policy.recovery import Decision, LaunchFacts, Verdict, decide
from shared.process.evidence import any_child_record, read_evidence
from shared.process.identity import boot_id, pid_namespace
from shared.process.launcher import LaunchError, LaunchSpec, ZygoteLauncher

JOB = 'echo start $TENURE_EPOCH >> "$0"; sleep 0.03; echo end $TENURE_EPOCH >> "$0"; exit 7'
RESTS = "rests"


class FencedError(Exception):
    """Another worker has claimed a higher epoch."""


class Row:
    """The attempt's row: epoch, pin and end, every write fenced by the epoch."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, timeout=20)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS attempt(epoch INTEGER, pin TEXT, ended TEXT) STRICT")

    def claim(self) -> int:
        with self._transaction(None, Boundary.CLAIM_COMMIT):
            if self._db.execute("SELECT count(*) FROM attempt").fetchone()[0] == 0:
                self._db.execute("INSERT INTO attempt VALUES (0, NULL, NULL)")
            self._db.execute("UPDATE attempt SET epoch = epoch + 1")
        epoch: int = self._db.execute("SELECT epoch FROM attempt").fetchone()[0]
        return epoch

    def pin(self, epoch: int, pin: Pin | None) -> None:
        """Pin, or after a proven relaunch unpin."""
        at = Boundary.RELAUNCH_COMMIT if pin is None else Boundary.PIN_COMMIT
        with self._transaction(epoch, at):
            self._db.execute(
                "UPDATE attempt SET pin = ?", (None if pin is None else json.dumps(dataclasses.asdict(pin)),)
            )

    def end(self, epoch: int, how: str) -> None:
        with self._transaction(epoch, Boundary.FINISH_COMMIT):
            self._db.execute("UPDATE attempt SET ended = ?", (how,))

    def read(self) -> tuple[Pin | None, str | None]:
        row = self._db.execute("SELECT pin, ended FROM attempt").fetchone()
        if row is None:
            return None, None
        facts = None if row[0] is None else json.loads(row[0])
        return None if facts is None else Pin(**{**facts, "shim": ProcessIdentity(**facts["shim"])}), row[1]

    def close(self) -> None:
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self, epoch: int | None, at: Boundary) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        if epoch is not None and self._db.execute("SELECT epoch FROM attempt").fetchone()[0] != epoch:
            self._db.execute("ROLLBACK")
            raise FencedError
        yield
        boundary.commit(self._db, [at])


@dataclass
class Trial:
    """One attempt that is launched, hit and taken over."""

    folder: Path
    attempts: Path
    attempt_id: AttemptId
    launcher: ZygoteLauncher

    @property
    def witness(self) -> Path:
        return self.folder / "witness"

    @property
    def log(self) -> Path:
        return self.folder / "drill.log"

    def row(self) -> Row:
        return Row(self.folder / "store")

    def ended(self) -> str | None:
        row = self.row()
        try:
            return row.read()[1]
        finally:
            row.close()

    def starts(self) -> int:
        return self.witness.read_text().count("start") if self.witness.exists() else 0

    def trail(self, epoch: int) -> list[str]:
        """What the worker of this epoch decided, in order, and RESTS once it has nothing more to do."""
        path = self.folder / f"trail.{epoch}"
        return path.read_text().split() if path.exists() else []

    def reached(self) -> list[ProcessIdentity]:
        """Who noted that it reached the armed point, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [
            ProcessIdentity(int(pid), int(ticks), boot_id(), pid_namespace())
            for _, pid, ticks in (line.split() for line in lines)
        ]

    def start_worker(self, order: str | None) -> int:
        """Fork a worker that claims the attempt; returns its pid."""
        pid = os.fork()
        if pid != 0:
            return pid
        try:
            boundary.install(None if order is None else boundary.Trap(order, str(self.log), os.getpid()))
            _Worker(self).work()
        except BaseException:  # noqa: BLE001 - the test reads it
            (self.folder / "crash").write_text(traceback.format_exc())
        finally:
            os._exit(1)


class _Worker:
    """Claims, decides, launches or waits, until the attempt has ended; then rests until it is killed."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._row = trial.row()
        self._trail = trial.folder

    def work(self) -> None:
        epoch = self._row.claim()
        self._trail = self._trial.folder / f"trail.{epoch}"
        pin, ended = self._row.read()
        if epoch == 1:
            self._launch(epoch)
            pin = self._row.read()[0]
        while ended is None:
            decision, status = self._decide(pin)
            self._note(decision.verdict)
            match decision.verdict:
                case Verdict.RELAUNCH:
                    assert self._trial.starts() == 0, f"relaunch of what ran: {decision.why}"
                    self._row.pin(epoch, None)
                    self._launch(epoch)
                    pin = self._row.read()[0]
                case Verdict.ADOPT | Verdict.ADOPT_ORPHAN:
                    assert pin is not None
                    self._wait(pin, decision.verdict)
                case _:
                    ended = f"{decision.verdict}:{status}"
                    self._row.end(epoch, ended)
        self._rest()

    def _decide(self, pin: Pin | None) -> tuple[Decision, int | None]:
        facts = LaunchFacts(
            unfinished_in=AttemptState.LAUNCHING if pin is None else AttemptState.RUNNING,
            pin=pin,
            invoke=Invoke.CALLED,
            isolated=True,
            child_record_seen=any_child_record(self._trial.attempts, self._trial.attempt_id),
        )
        if pin is None:
            return decide(facts, None), None
        evidence = read_evidence(self._trial.attempts, pin)
        decision = decide(facts, evidence)
        return decision, evidence.child_status if evidence.exit is None else evidence.exit.status

    def _launch(self, epoch: int) -> None:
        """Launch once; when it comes to nothing, leave it to the next worker to find out why."""
        spec = LaunchSpec(
            attempt_id=self._trial.attempt_id,
            epoch=epoch,
            argv=("/bin/sh", "-c", JOB, str(self._trial.witness)),
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            stdin=None,
            grace_s=1.0,
        )
        try:
            held = self._trial.launcher.launch(spec)
            pin = held.pin
            self._row.pin(epoch, pin)
            held.go()
        except LaunchError:
            self._rest()
        self._until(lambda: read_evidence(self._trial.attempts, pin).lock is not LockState.HELD)
        record = read_evidence(self._trial.attempts, pin).exit
        if record is None or not record.ran:
            self._rest()

    def _wait(self, pin: Pin, verdict: Verdict) -> None:
        """Wait until what was adopted has ended."""

        def has_ended() -> bool:
            evidence = read_evidence(self._trial.attempts, pin)
            return evidence.lock is not LockState.HELD if verdict is Verdict.ADOPT else evidence.child_alive is False

        self._until(has_ended)

    def _note(self, word: str) -> None:
        fd = os.open(self._trail, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, f"{word}\n".encode())
        os.close(fd)

    def _rest(self) -> NoReturn:
        self._note(RESTS)
        while True:
            signal.pause()

    def _until(self, fact: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not fact():
            assert time.monotonic() < deadline, "hung"
            time.sleep(0.002)
