"""Hand inputs to running agents: claim the intents, write outside any transaction, tell what came of it under the same token.

One hand-over at a time for each attempt, its inputs in their order. Rule: design §6; requirements T01–T03.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from shared.errors import LeaseLostError
from shared.ids import AttemptId
from shared.model.attempt import LeaseKey
from shared.model.instant import US_PER_MS
from shared.model.intent import Delivered, DueIntent, Fate
from shared.process.channel import Handed, Word
from shared.store.contract import ReadTx, Tx
from worker.batch import Change, Undone
from worker.holding import Holding, Phase
from worker.pool import Completion
from worker.ports import Ports

log = logging.getLogger(__name__)

INTENTS_AT_ONCE = 64
PAUSE_US = 250 * US_PER_MS
"""Before a program that had no room for a line is tried again."""


@dataclass(slots=True)
class Round:
    """One hand-over. `tokens`: of the intents that were taken, by number."""

    key: LeaseKey
    intents: Sequence[DueIntent]
    tokens: dict[int, int]


class Controls:
    """Acts on the intents of the attempts held here."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._rounds: dict[AttemptId, Round] = {}
        self._again_mono_us: dict[AttemptId, int] = {}

    def take(self, tx: ReadTx) -> None:
        """Queue taking what is due, for attempts that run under our eyes and have no hand-over going on."""
        self._again_mono_us = {name: at for name, at in self._again_mono_us.items() if tx.now.mono_us < at}
        due = tx.due_intents(self._ports.me, limit=INTENTS_AT_ONCE)
        for attempt_id, group in groupby(sorted(due, key=_of_attempt), key=_of_attempt):
            intents = list(group)
            holding = self._ports.current(AttemptId(attempt_id), intents[0].epoch)
            if holding is None or holding.phase is not Phase.WATCHING or holding.pin is None:
                continue
            if holding.attempt_id in self._rounds or holding.attempt_id in self._again_mono_us:
                continue
            self._rounds[holding.attempt_id] = Round(holding.key, intents, {})
            self._ports.batch.add(self._taking(holding, self._rounds[holding.attempt_id]))

    def delivered(self, completion: Completion, attempt_id: AttemptId) -> None:
        """A hand-over is over: tell what came of it."""
        if completion.error is not None:
            raise completion.error
        current, results = self._rounds[attempt_id], completion.result
        assert isinstance(results, dict), "the task returns what came of each intent"
        self._ports.batch.add(self._telling(current, results))

    def next_due(self) -> list[int]:
        """When programs that had no room are tried again."""
        return list(self._again_mono_us.values())

    def _taking(self, holding: Holding, current: Round) -> Change:
        executor = self._ports.executors[holding.assignment.snapshot.registration]

        def apply(tx: Tx) -> None:
            current.tokens.clear()
            for due in current.intents:
                token = tx.dispatch(current.key, due.intent.number)
                if token is not None and executor.takes_input:
                    current.tokens[due.intent.number] = token
                elif token is not None:
                    why = f"{executor.name} takes no input while it runs"
                    tx.acknowledge(current.key, due.intent.number, token=token, result=Delivered.NOT_ACCEPTING, why=why)

        def happened(tx: ReadTx) -> bool:
            """Only with its tokens in hand may it go on: an unknown commit is taken again under new ones."""
            found = [tx.intent(number) for number in current.tokens]
            return bool(found) and all(
                intent is not None and intent.fate is Fate.DISPATCHED and intent.token == current.tokens[intent.number]
                for intent in found
            )

        return Change(apply, lambda: self._hand_over(holding, current), lambda _: self._forget(current), happened)

    def _hand_over(self, holding: Holding, current: Round) -> None:
        pin, host = holding.pin, self._ports.host
        words = [
            Word(due.intent.id, due.intent.input or 0, due.body)
            for due in current.intents
            if due.intent.number in current.tokens
        ]
        if pin is None or not words:
            self._forget(current)
            return
        numbers = list(current.tokens)

        def hand_over() -> dict[int, Handed]:
            return dict(zip(numbers, host.hand_over(pin, words), strict=True))

        self._ports.launches.submit(("deliver", current.key.attempt_id), hand_over)

    def _telling(self, current: Round, results: dict[int, Handed]) -> Change:
        key = current.key

        def apply(tx: Tx) -> None:
            for number, handed in results.items():
                tx.acknowledge(key, number, token=current.tokens[number], result=handed.result, why=handed.why)

        def undone(error: Undone) -> None:
            if isinstance(error, LeaseLostError):
                self._forget(current)  # whoever holds it now hands over again, under the same identities
            else:
                self._ports.batch.add(self._telling(current, results))

        def happened(tx: ReadTx) -> bool:
            found = (tx.intent(number) for number in results)
            return not any(
                intent is not None and intent.fate is Fate.DISPATCHED and intent.token == current.tokens[intent.number]
                for intent in found
            )

        def told() -> None:
            if any(handed.result is Delivered.LATER for handed in results.values()):
                self._again_mono_us[key.attempt_id] = self._ports.clock.now().mono_us + PAUSE_US
            log.info("input.handed_over", extra={"attempt": key.attempt_id, "epoch": key.epoch, "count": len(results)})
            self._forget(current)

        return Change(apply, told, undone, happened)

    def _forget(self, current: Round) -> None:
        if self._rounds.get(current.key.attempt_id) is current:
            del self._rounds[current.key.attempt_id]


def _of_attempt(due: DueIntent) -> str:
    assert due.intent.attempt_id is not None, "what is due has somebody it is for"
    return due.intent.attempt_id
