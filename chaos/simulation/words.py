"""What the person of a history says to Works while they run or wait: inputs, interrupts, events; and what it does for them then."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from chaos.seen import Accepted
from chaos.simulation.actors import Stage
from chaos.simulation.harm import Harm, Kind
from chaos.simulation.jobs import Job as Behaviour
from chaos.simulation.jobs import binding_number
from chaos.simulation.programs import EVENTS, KEYS
from shared.errors import NotFoundError, RefusedError
from shared.ids import WorkId, work_id
from shared.model.event import NewEvent
from shared.model.instant import US_PER_S
from shared.model.wait import Awaited, WaitState
from shared.model.work import Reason, Work, WorkState
from shared.store.contract import ReadTx, Store

PERSON = "a person"
ANSWER_LOST = 0.3
ANSWERS = 0.4
TRIES = 4
WORKS_MAX = 100
PATIENCE_US = 30 * US_PER_S
"""A wait for a retry that takes longer than this is cut short."""


class Words:
    """Everything that is still to be said, and to whom it was said.

    Attributes:
        accepted: Inputs that were answered for; shared with `Wishes`.
        injected, interrupted, cancelled, retried: Works of which that was asked.
    """

    def __init__(
        self, stage: Stage, behaviours: Sequence[Behaviour], chance: random.Random, accepted: list[Accepted]
    ) -> None:
        self._stage = stage
        self._chance = chance
        self._behaviours = behaviours
        self._is_needed = any(job.voice for job in behaviours)
        self._to_say: list[Harm] = []
        self._tries: Counter[Harm] = Counter()
        self.accepted = accepted
        self.injected: set[WorkId] = set()
        self.interrupted: set[WorkId] = set()
        self.cancelled: set[WorkId] = set()
        self.retried: set[WorkId] = set()

    def want(self, harm: Harm) -> None:
        """Want something said, once its Work is submitted."""
        self._to_say.append(harm)

    @property
    def is_done(self) -> bool:
        """Nothing is left to say, and nobody waits for something that is the person's to do."""
        return not (self._to_say or (self._is_needed and (self._awaiting() or self._patient() or self._poor())))

    def act(self, store: Store, *, submitted: int) -> None:
        """Say some of it.

        Raises:
            StoreBusyError: the rest is said another time.
        """
        for harm in [each for each in self._to_say if each.work <= submitted]:
            if self._say(store, harm):
                self._to_say.remove(harm)
        if not self._is_needed:
            return
        for awaited in self._awaiting():
            if self._chance.random() < ANSWERS:
                self._publish(store, str(awaited.event_type), awaited.correlate)
        for work in self._patient():
            self.retried.add(work.id)
            with suppress(RefusedError):
                store.write(lambda tx, name=work.id: tx.retry_work(name, by=PERSON, reason="now"))  # type: ignore[misc]
        for work in self._poor():
            self.cancelled.add(work.id)
            with suppress(RefusedError):
                store.write(lambda tx, name=work.id: tx.cancel_work(name, by=PERSON, reason="too dear"))  # type: ignore[misc]

    def _say(self, store: Store, harm: Harm) -> bool:
        """Whether that is done with."""
        name = work_id(harm.work)
        match harm.kind:
            case Kind.INJECT:
                return self._inject(store, harm, name)
            case Kind.INTERRUPT:
                self.interrupted.add(name)
                with suppress(NotFoundError):
                    try:
                        store.write(lambda tx: tx.interrupt(name, by=PERSON, reason="stop that"))
                    except RefusedError:
                        self._tries[harm] += 1
                        return self._tries[harm] >= TRIES
                return True
            case Kind.QUARANTINE:  # until `Wishes` mends it
                binding = f"own-{binding_number(self._behaviours, harm.work)}"
                with suppress(RefusedError):
                    store.write(lambda tx: tx.quarantine_binding(binding, by=PERSON, reason="not that again"))
                return True
            case _:
                self._publish(store, self._chance.choice(EVENTS), self._chance.choice(KEYS) or None)
                return True

    def _inject(self, store: Store, harm: Harm, name: WorkId) -> bool:
        """Under its key; where no answer is heard, the same once more the next time."""
        self.injected.add(name)
        key = f"told-{harm.work}-{harm.step}"
        try:
            intent = store.write(lambda tx: tx.inject(name, key.encode(), by=PERSON, key=key))
        except (RefusedError, NotFoundError):
            return True
        if self._chance.random() < ANSWER_LOST:
            return False
        if intent.input is not None:
            self.accepted.append(Accepted(name, intent.input, key))
        return True

    def _publish(self, store: Store, kind: str, correlate: str | None) -> None:
        store.write(lambda tx: tx.publish(NewEvent(kind, correlate, "null", PERSON)))

    def _awaiting(self) -> list[Awaited]:
        """Waits for an event that a person publishes."""
        return self._stage.known(_find)[0]

    def _patient(self) -> list[Work]:
        """Works whose next attempt is far away."""
        return self._stage.known(_find)[1]

    def _poor(self) -> list[Work]:
        """Works that wait for a budget to have room again, which here never comes."""
        return self._stage.known(_find)[2]


def _find(tx: ReadTx) -> tuple[list[Awaited], list[Work], list[Work]]:
    waiting = tx.works(states=(WorkState.WAITING,), after=0, limit=WORKS_MAX)
    found = [tx.awaited(work.id) for work in waiting]
    awaiting = [
        one for one in found if one is not None and one.state is WaitState.REGISTERED and one.event_type in EVENTS
    ]
    backing_off = tx.works(states=(WorkState.BACKOFF,), after=0, limit=WORKS_MAX)
    patient = [work for work in backing_off if (work.backoff_us or 0) > PATIENCE_US]
    return awaiting, patient, [work for work in waiting if work.reason is Reason.OVER_BUDGET]
