"""What the person of a history says of Works between their attempts: further inputs, try again, hold, go on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from chaos.seen import Accepted
from chaos.simulation.actors import Stage
from chaos.simulation.jobs import Job as Behaviour
from shared.errors import NotFoundError, RefusedError
from shared.ids import WorkId, work_id
from shared.model.work import Reason, Work, WorkState
from shared.store.contract import ReadTx, Store, Tx
from shared.store.values import Routine

PERSON = "a person"
FEEDS = 0.6
ANSWER_LOST = 0.3
RETRIES_TRIED = 4
HELD_LOOKS = 3
ROUTINES_MAX = 100
WORKS_MAX = 100


class Wishes:
    """Everything that is still to be said, and what was answered.

    Attributes:
        accepted: The answers that were heard.
        retried: Works that a person asked to be tried again.
    """

    def __init__(self, stage: Stage, behaviours: Sequence[Behaviour], chance: random.Random) -> None:
        self._stage = stage
        self._chance = chance
        self._to_feed = {number: job.inputs for number, job in enumerate(behaviours, start=1) if job.inputs}
        self._fed = dict.fromkeys(self._to_feed, 0)
        self._to_retry: dict[int, int] = {}
        self._to_hold: list[int] = []
        self._held: dict[int, int] = {}
        self.accepted: list[Accepted] = []
        self.retried: set[WorkId] = set()

    def retry(self, work: int) -> None:
        """Want the how-manieth Work tried again, as soon as that is possible."""
        self._to_retry[work] = RETRIES_TRIED

    def hold(self, work: int) -> None:
        """Want it held for a while."""
        self._to_hold.append(work)

    @property
    def is_done(self) -> bool:
        """Nothing is left to say."""
        said = self._to_feed or self._to_retry or self._to_hold or self._held
        return not (said or self._quarantined() or self._still_held())

    def act(self, store: Store, *, submitted: int) -> None:
        """Say some of it, of Works up to that number.

        Raises:
            StoreBusyError: the rest is said another time.
        """
        self._feed(store, submitted)
        self._hold_some(store, submitted)
        for number in [each for each in self._to_retry if each <= submitted]:
            self.retried.add(work_id(number))
            self._to_retry[number] -= 1
            is_taken = self._say(store, partial(_retry, name=work_id(number)))
            if is_taken or self._to_retry[number] <= 0:  # a busy store may have swallowed the last try
                del self._to_retry[number]
        for binding in self._quarantined():
            self._say(store, partial(_mend, binding=binding))
        for name in self._still_held():
            self._say(store, partial(_release, name=name))

    def _feed(self, store: Store, submitted: int) -> None:
        """Hand in the next input of each Work under its key; where no answer is heard, the same once more the next time."""
        for number in [each for each in self._to_feed if each <= submitted]:
            if self._chance.random() >= FEEDS:
                continue
            name, key = work_id(number), f"{number}-{self._fed[number] + 1}"
            body = key.encode()
            try:
                given = store.write(lambda tx: tx.add_input(name, body, by=PERSON, key=key))  # noqa: B023 - called at once
            except (RefusedError, NotFoundError):
                del self._to_feed[number]  # it was cancelled, or the store forgot it
                continue
            if self._chance.random() < ANSWER_LOST:
                continue
            self.accepted.append(Accepted(name, given, key))
            self._fed[number] += 1
            if self._fed[number] == self._to_feed[number]:
                del self._to_feed[number]

    def _hold_some(self, store: Store, submitted: int) -> None:
        for number in [each for each in self._held if each <= submitted]:
            self._held[number] -= 1
            if not self._held[number]:
                self._held[number] = 1  # until it is said
                self._say(store, partial(_release, name=work_id(number)))
                del self._held[number]
        for number in [each for each in self._to_hold if each <= submitted and each not in self._held]:
            is_held = self._say(store, partial(_hold, name=work_id(number)))
            self._to_hold.remove(number)
            if is_held:
                self._held[number] = self._chance.randint(1, HELD_LOOKS)

    def _quarantined(self) -> list[str]:
        return [one.binding for one in self._stage.known(_look)[0] if one.quarantined_at_us is not None]

    def _still_held(self) -> list[WorkId]:
        """Works whose release was said, and which the store holds all the same: it has lost that word."""
        held = self._stage.known(_look)[1]
        return [work.id for work in held if work.reason is Reason.HOLD and work.number not in self._held]

    def _say(self, store: Store, transition: Callable[[Tx], None]) -> bool:
        """Whether it was taken; what is refused changes nothing."""
        with suppress(RefusedError, NotFoundError):
            store.write(transition)
            return True
        return False


def _look(tx: ReadTx) -> tuple[list[Routine], list[Work]]:
    return tx.routines(limit=ROUTINES_MAX), tx.works(states=(WorkState.HELD,), after=0, limit=WORKS_MAX)


def _retry(tx: Tx, *, name: WorkId) -> None:
    tx.retry_work(name, by=PERSON, reason="again")


def _hold(tx: Tx, *, name: WorkId) -> None:
    tx.hold_work(name, by=PERSON, reason="wait")


def _release(tx: Tx, *, name: WorkId) -> None:
    tx.release_work(name, by=PERSON, reason="go on")


def _mend(tx: Tx, *, binding: str) -> None:
    tx.release_binding(binding, by=PERSON, reason="mended")
