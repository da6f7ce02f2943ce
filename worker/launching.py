"""Launch, pin, GO: nothing passes the gate before its identity is durable under a live lease. Rule: design §7, steps 1–3."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from shared.errors import OperationError, SecretUnavailableError, StoreUnavailableError, UnsupportedError
from shared.ids import attempt_directory
from shared.model.attempt import AttemptState, Ending, FailureClass
from shared.policy.proof import S0
from shared.process.launcher import HeldLaunch, LaunchError
from shared.store.contract import ReadTx, Tx
from worker.batch import Change
from worker.belt import token_digest
from worker.ending import Endings, tell
from worker.executors.contract import Fault, asked
from worker.holding import Holding, Phase
from worker.pool import Completion
from worker.ports import Ports, lease_in_force
from worker.trail import Trail

log = logging.getLogger(__name__)


class Launches:
    """Takes accepted first launches and relaunches through the gate."""

    def __init__(self, ports: Ports, endings: Endings) -> None:
        self._ports = ports
        self._endings = endings

    def start(self, holding: Holding) -> None:
        """Launch on the pool: ask for the environment layer, bind the sandbox, launch up to READY. Each step is a phase.

        The layer is asked for at each launch, a relaunch included, and never for an adoption. Rule: E10, E15.
        """
        holding.phase = Phase.LAUNCHING
        holding.trail = Trail(self._ports.clock.now)
        ports, assignment, trail = self._ports, holding.assignment, holding.trail
        executor = ports.executors[assignment.snapshot.registration]
        given = self._given(holding)

        def launch() -> HeldLaunch:
            layer: Mapping[str, str] = {}
            if assignment.snapshot.secrets:
                with trail.phase("secrets"):
                    layer = ports.environment_layer(assignment.snapshot)
            layer = {**layer, **given}
            if assignment.snapshot.sandbox is not None:
                with trail.phase("sandbox"):
                    spec = asked("prepare", lambda: executor.prepare(assignment, layer))
            else:
                spec = asked("prepare", lambda: executor.prepare(assignment, layer))
            with trail.phase("executor"), ports.quiet.launching():
                return ports.launcher.launch(spec)

        self._ports.launches.submit(("launch", holding.key), launch)

    def _given(self, holding: Holding) -> Mapping[str, str]:
        """What its program is told of itself, and nothing stores: its token, where its belt is, what woke it. Rule: E10, O08."""
        token = self._ports.new_token()
        directory = attempt_directory(holding.attempt_id, holding.key.epoch)
        given = dict(self._ports.belt.variables(directory, token))
        holding.token_sha256 = token_digest(token) if given else None
        if holding.assignment.wake is not None:
            given["TENURE_WAKE"] = holding.assignment.wake.to_json()
        return given

    def launched(self, holding: Holding | None, completion: Completion) -> None:
        """A launch is READY, or failed.

        Raises:
            StoreUnavailableError: `store_regressed`, the attempt's directory exists already: this store is older than the
                evidence on disk, and the worker must stop.
        """
        held, error = completion.result, completion.error
        if isinstance(held, HeldLaunch):
            self._ready(holding, held)
        elif isinstance(error, LaunchError):
            if error.exists:
                raise StoreUnavailableError("store_regressed", str(error), hint="see `tenure doctor`") from error
            self._failed(holding, f"launch: {error}", S0 if error.nothing_ran else None)
        elif isinstance(error, SecretUnavailableError):
            self._failed(holding, f"run environment unavailable: {error}", S0)
        elif isinstance(error, (OperationError, UnsupportedError)):
            if holding is not None:
                self.refuse(holding, error)
        elif error is not None:
            raise error

    def refuse(self, holding: Holding, error: Fault) -> None:
        """End an attempt whose executor could not prepare its launch: nothing of this one ran. Rule: O04."""
        told = tell(holding, error)
        holding.phase = Phase.LAUNCHING if holding.phase is Phase.ACCEPTING else holding.phase
        self._failed(holding, told, S0)

    def _ready(self, holding: Holding | None, held: HeldLaunch) -> None:
        if holding is not None and (holding.launch is held or holding.pin == held.pin):
            return  # told twice: it is this one's gate
        if holding is None or holding.phase is not Phase.LAUNCHING:
            held.close()
            return
        holding.launch = held
        holding.phase = Phase.PINNING
        key, pin, phases, token_sha256 = holding.key, held.pin, holding.phases(), holding.token_sha256

        def apply(tx: Tx) -> None:
            tx.record_phases(key, phases)
            tx.pin(key, pin, token_sha256=token_sha256)

        def happened(tx: ReadTx) -> bool:
            attempt = tx.attempt(key.attempt_id)
            return attempt is not None and attempt.pin == pin and lease_in_force(tx, key)

        self._ports.batch.add(
            Change(apply, lambda: self._pinned(holding), partial(self._ports.lose, holding), happened)
        )

    def _pinned(self, holding: Holding) -> None:
        """The pin is durable and acknowledged: open the gate, unless time ran out or the lease was lost meanwhile."""
        held = holding.launch
        if held is None or holding.phase is not Phase.PINNING:
            return
        holding.pin = held.pin
        holding.launch = None
        if self._ports.clock.now().mono_us >= min(holding.deadline_mono_us, holding.lease_until_mono_us):
            held.close()
        else:
            if holding.token_sha256 is not None:
                self._ports.belt.bind(holding.key, held.pin.directory, holding.token_sha256)
            try:
                held.go()
            except LaunchError as error:
                log.warning(
                    "launch.gone", extra={"attempt": holding.attempt_id, "epoch": holding.key.epoch, "why": str(error)}
                )
        log.info(
            "attempt.started",
            extra={"attempt": holding.attempt_id, "epoch": holding.key.epoch, "pid": held.pin.shim.pid},
        )
        self._endings.watch(holding)

    def _failed(self, holding: Holding | None, error: str, proof: str | None) -> None:
        if holding is not None and holding.phase is Phase.LAUNCHING:
            self._endings.end(
                holding, Ending(AttemptState.FAILED, None, FailureClass.ADMISSION, error, proof, "launch failed")
            )
