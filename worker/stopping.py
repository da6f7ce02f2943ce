"""Carry out stop orders: each under its own lease, ended only by proof. Rule: design §7; requirements R10, R11, R13."""

from __future__ import annotations

import logging

from shared.errors import TenureError, UnreadableError
from shared.ids import AttemptId
from shared.model.attempt import AttemptState
from shared.model.host import StopOrder
from shared.model.instant import US_PER_S
from shared.model.settings import AGENTS
from shared.model.stop import StopResult
from shared.store.contract import ReadTx, Tx
from worker.batch import Change
from worker.pool import Completion
from worker.ports import Ports, StopTarget, exclusion_released
from worker.unread import UnreadOutputs

log = logging.getLogger(__name__)

STOP_LEASE_US = 30 * US_PER_S
RETRY_US = 5 * US_PER_S
GRACE_US = 10 * US_PER_S
"""For a job whose own grace cannot be read."""
ORDERS_AT_ONCE = 4


class Stops:
    """Takes open orders and works on them, a few at a time."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._outputs = UnreadOutputs(ports)
        self._mine: dict[int, StopOrder] = {}
        self._extend_us: dict[int, int] = {}
        self._tried: set[int] = set()

    def take(self, tx: ReadTx) -> None:
        """Queue taking orders that nobody works on, and keeping those that take long."""
        for order_id, due_us in self._extend_us.items():
            if tx.now.mono_us >= due_us:
                self._ports.batch.add(self._extending(self._mine[order_id]))
        room = ORDERS_AT_ONCE - len(self._mine)
        if room <= 0:
            return
        for order in tx.stop_orders(unassigned=True, limit=room):
            if order.id not in self._mine:
                self._mine[order.id] = order
                self._ports.batch.add(self._taking(order))

    def stopped(self, completion: Completion, order_id: int) -> None:
        """One try is over: read what its program wrote and nobody read, then confirm on proof, else report what was found and give
        the order back.
        """
        order = self._mine.get(order_id)
        if order is None or order_id in self._tried:
            return  # told twice
        result, error = completion.result, completion.error
        if isinstance(error, OSError):  # the host could not look; that proves nothing, and the order is tried again
            result, error = StopResult(None, (), (f"the host could not look: {error}",), None), None
        if error is not None:
            raise error
        assert isinstance(result, StopResult), "the task returns what came of the stop"
        self._tried.add(order_id)
        try:
            self._outputs.read(
                order,
                is_over=result.proof is not None,
                then=lambda: self._report(order, result),
                lost=lambda: self._forget(order),
                blind=lambda why: self._report(order, StopResult(None, (), (why,), result.exit)),
            )
        except TenureError:
            self._forget(order)  # its lease lapses, and it is tried again
            raise

    def heard(self, completion: Completion, order_id: int) -> None:
        """A look at an output that nobody had read is over."""
        self._outputs.heard(completion, order_id)

    def _report(self, order: StopOrder, result: StopResult) -> None:
        self._forget(order)
        self._ports.batch.add(self._reporting(order, result))

    def _taking(self, order: StopOrder) -> Change:
        taken = False

        def apply(tx: Tx) -> None:
            nonlocal taken
            taken = tx.take_stop_order(order.id, self._ports.me, lease_us=STOP_LEASE_US)

        def done() -> None:
            if taken:
                self._work_on(order)
            else:
                self._mine.pop(order.id, None)

        def happened(tx: ReadTx) -> bool:
            return any(own.id == order.id for own in tx.stop_orders(owner=self._ports.me))

        return Change(apply, done, lambda _: self._forget(order), happened)

    def _extending(self, order: StopOrder) -> Change:
        """A stop may take twice the grace of its job: keep the order from being worked on twice meanwhile."""

        def apply(tx: Tx) -> None:
            tx.take_stop_order(order.id, self._ports.me, lease_us=STOP_LEASE_US)

        def done() -> None:
            if order.id in self._mine:
                self._keep(order)

        return Change(apply, done, lambda _: None, lambda _: True)

    def _keep(self, order: StopOrder) -> None:
        self._extend_us[order.id] = self._ports.clock.now().mono_us + STOP_LEASE_US // 3

    def _work_on(self, order: StopOrder) -> None:
        self._keep(order)
        host, quiet = self._ports.host, self._ports.quiet
        target = self._ports.store.read(lambda tx: _target(tx, order.attempt_id))
        self._ports.stops.submit(("stop", order.id), lambda: host.stop(target, quiet))

    def _reporting(self, order: StopOrder, result: StopResult) -> Change:
        me, proof = self._ports.me, result.proof

        def apply(tx: Tx) -> None:
            if proof is None:
                tx.report_unproven(order.id, me, result, retry_us=RETRY_US)
            else:
                tx.confirm_stopped(order.attempt_id, expected_epoch=order.epoch, proof=proof, by=me)

        def done() -> None:
            facts = {"attempt": order.attempt_id, "epoch": order.epoch}
            if proof is None:
                log.error(
                    "stop.unproven", extra={**facts, "suspects": len(result.suspects), "tried": "; ".join(result.tried)}
                )
            else:
                log.info("stop.confirmed", extra={**facts, "proof": proof})

        def happened(tx: ReadTx) -> bool:
            return proof is None or exclusion_released(tx, order.attempt_id)

        return Change(apply, done, lambda _: None, happened)

    def _forget(self, order: StopOrder) -> None:
        self._mine.pop(order.id, None)
        self._extend_us.pop(order.id, None)
        self._tried.discard(order.id)


def _target(tx: ReadTx, attempt_id: AttemptId) -> StopTarget:
    attempt = tx.attempt(attempt_id)
    if attempt is None:
        raise LookupError(f"a stop order names {attempt_id}, which is not in the store")
    isolated, grace_us, is_agent = False, GRACE_US, False
    try:
        snapshot = tx.snapshot(attempt_id)
        if snapshot is not None:
            isolated, grace_us = snapshot.isolated, snapshot.grace_us
            is_agent = snapshot.executor in AGENTS
    except UnreadableError:
        pass  # it is stopped all the same; of a launch that was perhaps not held, nothing is proven that needs that
    return StopTarget(
        attempt_id,
        attempt.pin,
        isolated=isolated,
        since_epoch=attempt.launch_epoch,
        grace_s=grace_us / US_PER_S,
        workers=tuple(worker.identity for worker in tx.workers()),
        leader=tx.leader(),
        is_interrupted=is_agent and attempt.state is AttemptState.INTERRUPTED,
    )
