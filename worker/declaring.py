"""What programs ask by their belt, done in the step: declarations are recorded under the lease, inputs are read. Rule: O15."""

from __future__ import annotations

import base64
import logging

from shared.errors import LeaseLostError, NotWrittenError
from shared.model.attempt import LeaseKey
from shared.model.stream import BELT, WHY_CHARS_MAX, Refusal, RefusalCode
from shared.model.work import Input
from shared.store.contract import ReadTx, Tx
from worker.batch import Change, Undone
from worker.belt import RETRY, Request, refusal
from worker.holding import Holding
from worker.pool import Completion
from worker.ports import Ports

log = logging.getLogger(__name__)

PAGE_BYTES = 1024 * 1024
PAGE_INPUTS = 64


class Declarings:
    """Answers the belts' requests."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def asked(self, holding: Holding | None, completion: Completion) -> None:
        """A program asked something; whoever lost its attempt meanwhile sends it to the next holder."""
        request = completion.result
        assert isinstance(request, Request)
        if holding is None:
            self._ports.belt.answer(request.connection, RETRY)
        elif request.declaration is None:
            told = self._ports.store.read(lambda tx: _inputs(tx, holding, request.inputs_after))
            self._ports.belt.answer(request.connection, told)
        else:
            self._ports.batch.add(self._recording(holding, request))

    def _recording(self, holding: Holding, request: Request) -> Change:
        declaration, belt, key = request.declaration, self._ports.belt, holding.key
        assert declaration is not None

        def apply(tx: Tx) -> None:
            tx.declare(key, [declaration])

        def done() -> None:
            log.info("declaration.recorded", extra=_facts(holding, declaration.kind))
            belt.answer(request.connection, {"recorded": declaration.key})

        def undone(error: Undone) -> None:
            is_for_next_holder = isinstance(error, LeaseLostError) and not error.has_ended
            if is_for_next_holder or isinstance(error, NotWrittenError):
                belt.answer(request.connection, RETRY)
                return
            log.warning("declaration.refused", extra={**_facts(holding, declaration.kind), "why": error.code})
            if error.code == RefusalCode.TOO_MANY:
                self._ports.batch.add(_noting(key, str(error)))
            belt.answer(request.connection, refusal(error.code, str(error)))

        def happened(tx: ReadTx) -> bool:
            return any(one.declaration == declaration for one in tx.declarations(key.attempt_id))

        return Change(apply, done, undone, happened)


def _noting(key: LeaseKey, why: str) -> Change:
    """Let a person see what there was no room for; a refused write only leaves that untold."""
    refusal = Refusal(BELT, RefusalCode.TOO_MANY, why[:WHY_CHARS_MAX])

    def apply(tx: Tx) -> None:
        tx.note_refusal(key, refusal)

    return Change(apply, lambda: None, lambda _: None, lambda _: True)


def _facts(holding: Holding, kind: str) -> dict[str, object]:
    return {"attempt": holding.attempt_id, "epoch": holding.key.epoch, "kind": kind}


def _inputs(tx: ReadTx, holding: Holding, after: int) -> dict[str, object]:
    """A page of the attempt's inputs and of those that wait, by number."""
    mine = set(holding.assignment.snapshot.inputs)
    pending = tx.pending_inputs(holding.assignment.attempt.work_id, limit=1_024)
    numbers = sorted(number for number in mine.union(pending) if number > after)
    page: list[dict[str, object]] = []
    size = 0
    for number in numbers[:PAGE_INPUTS]:
        for found in tx.inputs([number]):
            size += len(found.body)
            if page and size > PAGE_BYTES:
                return {"inputs": page, "more": True}
            page.append({"number": number, "pending": number not in mine, **_body(found)})
    return {"inputs": page, "more": len(numbers) > PAGE_INPUTS}


def _body(found: Input) -> dict[str, str]:
    try:
        return {"text": found.body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(found.body).decode("ascii")}
