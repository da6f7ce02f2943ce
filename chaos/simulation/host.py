"""The simulated host of one worker: its launcher, what it can read of launches, and its stops.

A mirror of `shared/process/{launcher,evidence,stopper,prover,orphans}.py` over simulated files and processes; what the evidence
proves is decided by the real `shared.policy.proof`. Between any two looks the baton may pass on. Rule: design §7, §9.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.simulation.baton import Baton
from chaos.simulation.files import Directory, Disk, FileLock
from chaos.simulation.processes import KILL, TERM, Process, Processes
from shared.boundary import Boundary, Side, reached
from shared.ids import AttemptId
from shared.model.evidence import Evidence, LockState, Pin, ProcessIdentity
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.intent import Delivered
from shared.model.stop import Search, StopResult
from shared.policy import proof
from shared.process.channel import INTERRUPT, Handed, Word, hand_over, input_line, input_message, input_name
from shared.process.orphans import EMPTY, PAUSE_S, TRIES
from shared.process.output import Piece
from shared.process.spec import CHANNEL_BYTES
from shared.process.stopper import END_BOUND_S, KILL_BOUND_S, SHIM_MARGIN_S
from worker.ports import StopTarget
from worker.quiet import Quiet

LOOK_US = 50 * US_PER_MS


class SimulatedHost:
    """See `worker.ports.HostView`."""

    def __init__(self, baton: Baton, table: Processes, disk: Disk, me: Process) -> None:
        self._baton = baton
        self._table = table
        self._disk = disk
        self._me = me

    # --- evidence

    def read_evidence(self, pin: Pin) -> Evidence:
        """See `shared.process.evidence.read_evidence`: the lock first, then the files, then the processes."""
        same_boot = pin.shim.boot_id == self._baton.now().boot_id
        self._baton.hand_over()
        directory = self._disk.pinned(pin)
        if directory is None:
            return Evidence(
                same_boot=same_boot,
                same_pid_ns=True,
                directory_proven=False,
                lock=LockState.UNPROVEN,
                exit=None,
                child=None,
                unreadable=(),
                child_alive=None,
            )
        lock = self._probe(directory.lock, pin.lock_ino)
        self._baton.hand_over()
        exit_record = directory.exit
        self._baton.hand_over()
        child_record = directory.child
        torn = [name for name, record in (("exit.json", exit_record), ("child.json", child_record)) if _is_torn(record)]
        child = None if child_record is None or child_record.is_torn else child_record.value.child
        self._baton.hand_over()
        alive = None if child is None else self._table.is_alive(child)
        self._baton.hand_over()
        return Evidence(
            same_boot=same_boot,
            same_pid_ns=True,
            directory_proven=True,
            lock=lock,
            exit=None if exit_record is None or exit_record.is_torn else exit_record.value,
            child=child,
            unreadable=tuple(torn),
            child_alive=alive,
            child_status=None if child is None or alive is not False else self._table.zombie_status(child),
            reapers=None if child is None else (),
        )

    def child_record_seen(self, attempt_id: AttemptId, since_epoch: int) -> bool | None:
        """See `shared.process.evidence.any_child_record`."""
        self._baton.hand_over()
        for name, directory in list(self._disk.directories.items()):
            epoch = name.removeprefix(f"{attempt_id}.")
            if epoch == name or int(epoch) < since_epoch or directory.child is None:
                continue
            self._baton.hand_over()
            if directory.exit is None:
                return True
            if directory.exit.is_torn:
                return None
            if directory.exit.value.ran:
                return True
        return False

    def _probe(self, lock: FileLock | None, inode: int) -> LockState:
        if lock is None or lock.inode != inode:
            return LockState.UNPROVEN
        reached(Boundary.LOCK_PROBE, Side.BEFORE)
        if not lock.share(self._me):
            return LockState.HELD
        reached(Boundary.LOCK_PROBE, Side.AFTER)
        lock.let_go(self._me)
        return LockState.FREE

    # --- stopping

    def read_output(self, pin: Pin, offset: int, limit: int) -> Piece:
        """See `HostView.read_output`."""
        self._baton.hand_over()
        directory = self._disk.directories.get(pin.directory)
        return Piece(offset, b"" if directory is None else bytes(directory.output[offset : offset + limit]))

    def hand_over(self, pin: Pin, words: list[Word]) -> list[Handed]:
        """See `HostView.hand_over`."""
        return hand_over(words, partial(self._tell, pin))

    def _tell(self, pin: Pin, word: Word) -> Handed:
        """See `shared.process.channel.tell`; what is told here is short."""
        message, content = input_message(word.input, word.body, Path(input_name(word.input)), CHANNEL_BYTES - 256)
        assert content is None, "nobody of a simulation hands in what needs a file"
        return self._say(pin, input_line(word, message))

    def _say(self, pin: Pin, line: bytes) -> Handed:
        """See `shared.process.channel.say`."""
        self._baton.hand_over()
        directory = self._disk.directories.get(pin.directory)
        channel = None if directory is None else directory.channel
        if channel is None or channel.is_broken:
            return Handed(Delivered.FAILED, "ENOENT")
        if not channel.is_read:
            return Handed(Delivered.LATER, "nobody reads it any more; its end will say what follows")
        reached(Boundary.CHANNEL_WRITE, Side.BEFORE)
        if channel.is_full:
            return Handed(Delivered.LATER, "it has not read what it was told before")
        channel.write(line)
        reached(Boundary.CHANNEL_WRITE, Side.AFTER)
        return Handed(Delivered.ACCEPTED)

    def stop(self, target: StopTarget, quiet: Quiet) -> StopResult:
        """See `shared.process.stopper.stop`."""
        pin = target.pin
        if target.is_interrupted and pin is not None:
            self._say(pin, INTERRUPT)
        if pin is None:
            failed = self._why_not_s0(target)
            return StopResult(proof.S0 if failed is None else None, (), () if failed is None else (failed,), None)
        evidence = self.read_evidence(pin)
        if self._by_record(target, pin, evidence) is None:
            self._signal_all(target, pin)
        return self._prove(target, pin, quiet)

    def _why_not_s0(self, target: StopTarget) -> str | None:
        if not target.isolated:
            return "its executor does not hold what it launches at a gate"
        return self._why_seen(target, target.since_epoch)

    def _why_seen(self, target: StopTarget, since_epoch: int) -> str | None:
        seen = self.child_record_seen(target.attempt_id, since_epoch)
        if seen is None:
            return "its directories could not be read"
        return "a child registered itself" if seen else None

    def _by_record(self, target: StopTarget, pin: Pin, evidence: Evidence) -> str | None:
        """See `shared.process.prover.by_record`, under a stop order."""
        if proof.why_not_s3(evidence) is None:
            return proof.S3
        for rule, why_not in (
            (proof.S1, proof.why_not_s1(evidence)),
            (proof.S1B, proof.why_not_s1b(evidence, ordered=True)),
        ):
            if why_not is None and self._why_seen(target, max(target.since_epoch, pin.epoch + 1)) is None:
                return rule
        return None

    def _signal_all(self, target: StopTarget, pin: Pin) -> None:
        evidence = self.read_evidence(pin)
        if not evidence.same_boot:
            return
        grace_us = int(target.grace_s * US_PER_S)
        margin_us = int(SHIM_MARGIN_S * US_PER_S)
        if self._send(pin.shim, TERM):
            self._send(pin.shim, 0)
            self._await_end(pin.shim, grace_us + margin_us)
        if self._table.is_alive(pin.shim):
            self._insist(pin)
        until_us = self._baton.mono_us + margin_us
        while not self._table.is_alive(pin.shim) and self._baton.mono_us < until_us:
            if self.read_evidence(pin).lock is not LockState.HELD:
                break
            self._baton.sleep(LOOK_US)
        evidence = self.read_evidence(pin)
        if evidence.child is None or self._table.is_alive(pin.shim):
            return
        if self._by_record(target, pin, evidence) is not None:
            return
        for process in self._matched(pin, evidence):
            self._send(process.identity, TERM)
        until_us = self._baton.mono_us + grace_us
        while self._matched(pin, evidence) and self._baton.mono_us < until_us:
            self._baton.sleep(LOOK_US)
        self._kill_all(pin, evidence)

    def _insist(self, pin: Pin) -> None:
        evidence = self.read_evidence(pin)
        if evidence.child is None and "child.json" not in evidence.unreadable:
            self._send(pin.shim, KILL)
            self._await_end(pin.shim, int(END_BOUND_S * US_PER_S))
            return
        if not self._kill_all(pin, evidence):
            return
        self._await_end(pin.shim, int(SHIM_MARGIN_S * US_PER_S))
        if self._table.is_alive(pin.shim) and not self._matched(pin, evidence):
            self._send(pin.shim, KILL)
            self._await_end(pin.shim, int(END_BOUND_S * US_PER_S))

    def _kill_all(self, pin: Pin, evidence: Evidence) -> bool:
        until_us = self._baton.mono_us + int(KILL_BOUND_S * US_PER_S)
        while self._baton.mono_us < until_us:
            found = self._matched(pin, evidence)
            if not found:
                return True
            for process in found:
                self._send(process.identity, KILL)
            self._baton.sleep(LOOK_US)
        return False

    def _send(self, identity: ProcessIdentity, number: int) -> bool:
        """Signal exactly that process; 0 is CONT. False when it is gone."""
        process = self._table.find(identity)
        if process is None or not process.is_alive:
            return False
        reached(Boundary.STOP_SIGNAL, Side.BEFORE)
        if number == 0:
            process.resume()
        else:
            process.signal(number)
        reached(Boundary.STOP_SIGNAL, Side.AFTER)
        return True

    def _await_end(self, identity: ProcessIdentity, bound_us: int) -> None:
        until_us = self._baton.mono_us + bound_us
        while self._table.is_alive(identity) and self._baton.mono_us < until_us:
            self._baton.sleep(min(LOOK_US, max(1, until_us - self._baton.mono_us)))

    # --- proving

    def _prove(self, target: StopTarget, pin: Pin, quiet: Quiet) -> StopResult:
        evidence = self.read_evidence(pin)
        rule = self._by_record(target, pin, evidence)
        if rule is not None:
            return StopResult(rule, (), (), evidence.exit)
        failed = proof.why_not_searched(evidence)
        if failed is not None:
            return StopResult(None, (), (failed,), evidence.exit)
        search = self._search(target, pin, evidence, quiet)
        later = max(target.since_epoch, pin.epoch + 1)
        failed = proof.why_not_s5(evidence, search) or self._why_seen(target, later)
        if failed is None:
            return StopResult(proof.S5, (), (), evidence.exit, exact=search.exact)
        return StopResult(None, (), (failed,), evidence.exit, exact=search.exact)

    def _search(self, target: StopTarget, pin: Pin, evidence: Evidence, quiet: Quiet) -> Search:
        matched: list[Process] = []
        orphans: list[Process] = []
        empty = 0
        with quiet.scanning():
            for _ in range(TRIES):
                forks = self._table.forks
                self._baton.hand_over()
                living = self._table.living()
                orphans = [each for each in living if self._is_orphan(each, target, pin)]
                self._baton.hand_over()
                matched = self._matched(pin, evidence)
                empty += forks == self._table.forks and not orphans and not matched
                if empty == EMPTY:
                    break
                self._baton.sleep(int(PAUSE_S * US_PER_S))
        directory = self._disk.pinned(pin)
        return Search(
            blind=None,
            matched=len(matched),
            orphans=len(orphans),
            exact=empty == EMPTY,
            leaf_empty=None,
            tree_lock=self._probe_tree(directory),
            shim_alive=self._table.is_alive(pin.shim),
        )

    def _matched(self, pin: Pin, evidence: Evidence) -> list[Process]:
        """Whoever bears a mark of the launch: what shim or child tell by themselves, what is below them, what shows its origin."""
        above = [self._table.find(each) for each in (pin.shim, evidence.child) if each is not None]
        return [
            each
            for each in self._table.living()
            if each.identity != pin.shim
            and each.launch == pin.directory
            and (each.is_marked or each.identity == evidence.child or any(one in above for one in each.above()))
        ]

    def _is_orphan(self, process: Process, target: StopTarget, pin: Pin) -> bool:
        """See `shared.process.orphans.find_orphans`; what tenure itself started by the supervisor is no child of init."""
        if process.parent is not None or process.role in ("worker", "coordinator", "person"):
            return False
        if process.identity.start_ticks < pin.shim.start_ticks or process.identity in target.workers:
            return False
        own = f"{target.attempt_id}."
        for name, directory in self._disk.directories.items():
            record = directory.child
            if record is None or record.is_torn or name.startswith(own):
                continue
            if process.identity in (record.value.child, record.value.shim):
                return False
        return True

    def _probe_tree(self, directory: Directory | None) -> LockState:
        if directory is None:
            return LockState.UNPROVEN
        lock = directory.tree_lock
        if lock is None:
            return LockState.FREE
        reached(Boundary.LOCK_PROBE, Side.BEFORE)
        if not lock.take(self._me):
            return LockState.HELD
        reached(Boundary.LOCK_PROBE, Side.AFTER)
        lock.let_go(self._me)
        return LockState.FREE


def _is_torn(record: object) -> bool:
    return bool(getattr(record, "is_torn", False))
