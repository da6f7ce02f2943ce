"""Launch, pin, GO: nothing passes the gate before its identity is durable under a live lease. Rule: design §7, steps 1–3."""

from __future__ import annotations

import logging

from shared.errors import RefusedError, StoreUnavailableError
from shared.model.attempt import AttemptState, Ending, FailureClass
from shared.policy.proof import S0
from shared.process.launcher import HeldLaunch, LaunchError
from shared.store.contract import ReadTx, Tx
from worker.batch import Change
from worker.ending import Endings
from worker.holding import Holding, Phase
from worker.pool import Completion
from worker.ports import Ports, lease_in_force

log = logging.getLogger(__name__)


class Launches:
    """Takes accepted first launches and relaunches through the gate."""

    def __init__(self, ports: Ports, endings: Endings) -> None:
        self._ports = ports
        self._endings = endings

    def start(self, holding: Holding) -> None:
        """Launch on the pool, up to READY."""
        holding.phase = Phase.LAUNCHING
        executor = self._ports.executors[holding.assignment.snapshot.registration]
        spec = executor.prepare(holding.assignment)
        self._ports.launches.submit(("launch", holding.key), lambda: self._ports.launcher.launch(spec))

    def launched(self, holding: Holding | None, completion: Completion) -> None:
        """A launch is READY, or failed.

        Raises:
            StoreUnavailableError: `store_regressed`, the attempt's directory exists already: this store is older than the
                evidence on disk, and the worker must stop.
        """
        held = completion.result
        if isinstance(held, HeldLaunch):
            self._ready(holding, held)
        elif isinstance(completion.error, LaunchError):
            self._failed(holding, completion.error)
        elif completion.error is not None:
            raise completion.error

    def _ready(self, holding: Holding | None, held: HeldLaunch) -> None:
        if holding is None or holding.phase is not Phase.LAUNCHING:
            held.close()
            return
        holding.launch = held
        holding.phase = Phase.PINNING
        key, pin = holding.key, held.pin

        def apply(tx: Tx) -> None:
            tx.pin(key, pin)

        def happened(tx: ReadTx) -> bool:
            attempt = tx.attempt(key.attempt_id)
            return attempt is not None and attempt.pin == pin and lease_in_force(tx, key)

        self._ports.batch.add(
            Change(apply, lambda: self._pinned(holding), lambda error: self._lost(holding, error), happened)
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

    def _lost(self, holding: Holding, error: RefusedError) -> None:
        log.warning("lease.lost", extra={"attempt": holding.attempt_id, "epoch": holding.key.epoch, "why": str(error)})
        self._ports.drop(holding)

    def _failed(self, holding: Holding | None, error: LaunchError) -> None:
        if error.exists:
            raise StoreUnavailableError("store_regressed", str(error), hint="see `tenure doctor`") from error
        if holding is None:
            return
        proof = S0 if error.nothing_ran else None
        self._endings.end(
            holding,
            Ending(AttemptState.FAILED, None, FailureClass.ADMISSION, f"launch: {error}", proof, "launch failed"),
        )
