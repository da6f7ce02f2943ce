"""Follow what running agents say: read on in their output, and record each stretch under the lease, whole and once.

How far it was read is in the store with what was found, so whoever takes the attempt over goes on exactly there. Before an end is
written, everything up to the end of the output is read. Rule: design §6; requirements O02, O15, T02.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from shared.errors import LeaseLostError, OperationError, UnsupportedError
from shared.model.instant import US_PER_MS, US_PER_S, Instant
from shared.model.stream import Place, Refusal, RefusalCode, Stream, Stretch
from shared.store.contract import ReadTx, Tx
from worker.agents.reading import READ_BYTES, read_stretch
from worker.batch import Change, Undone
from worker.executors.contract import Fault, is_listened_to, language_of
from worker.holding import Following, Holding, Phase
from worker.pool import Completion
from worker.ports import Ports, lease_in_force

log = logging.getLogger(__name__)

PAUSE_MIN_US = 20 * US_PER_MS
PAUSE_MAX_US = US_PER_S
UNSEEN_MAX = 3
"""So often the output of a program that has ended is looked for again, before the rest of it is given up. Rule: M04."""
FOLLOWED = (Phase.WATCHING, Phase.DRAINING)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at an output. `end`: up to where it reaches; `is_last`: nothing lay behind it at that time.

    Two moments, as a process may be frozen between its look at the clock and at the output: what was not there had not been written
    by `looked_mono_us`, what was there may have been written as late as `read_mono_us`.
    """

    stretch: Stretch
    end: int
    is_last: bool
    looked_mono_us: int
    read_mono_us: int


class Streams:
    """Reads the outputs of the agents held here."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def begin(self, holding: Holding) -> None:
        """Follow a running attempt from where its output was read to; of an executor that is not listened to, nothing."""
        pin = holding.pin
        executor = self._ports.executors[holding.assignment.snapshot.registration]
        if pin is None or not is_listened_to(executor):
            return
        if holding.following is None or holding.following.pin_epoch != pin.epoch:
            now_us = self._ports.clock.now().mono_us
            holding.following = Following(pin.epoch, self._stored(holding, pin.epoch), now_us, now_us)

    def step(self, now: Instant) -> None:
        """Look where it is time to."""
        for holding in list(self._ports.holdings.values()):
            following = holding.following
            if following is not None and holding.phase in FOLLOWED and now.mono_us >= following.due_mono_us:
                self._look(holding, following)

    def drain(self, holding: Holding, then: Callable[[], None], *, is_over: bool = True) -> None:
        """Read up to the end of the output of a program that is gone, then go on; at once where nobody listens to it.

        Args:
            is_over: Nothing writes any more, so that a last line without its end is one; else that is left for later.
        """
        self.begin(holding)
        following = holding.following
        if following is None:
            then()
            return
        holding.phase = Phase.DRAINING
        following.then, following.unseen, following.is_over = then, 0, is_over
        self._look(holding, following)

    def is_idle(self, holding: Holding) -> bool:
        """Whether the program has said nothing for longer than it may: looked at after that time, there was nothing."""
        following, idle_us = holding.following, holding.assignment.snapshot.idle_us
        if following is None or idle_us is None or following.is_reading:
            return False
        return following.looked_mono_us >= following.heard_mono_us + idle_us

    def heard(self, holding: Holding | None, completion: Completion) -> Fault | None:
        """A look is over: record what it found. Its executor's failure to understand it is returned."""
        look, error = completion.result, completion.error
        following = None if holding is None else holding.following
        if isinstance(error, (OperationError, UnsupportedError)):
            if following is not None:
                following.is_reading = False
            return error
        if error is not None and not isinstance(error, OSError):
            raise error
        if holding is None or following is None:
            return None
        if isinstance(error, OSError):
            self._blind(holding, following, error)
            return None
        assert isinstance(look, Look), "the task returns what it found"
        following.unseen = 0
        if look.end > following.end:
            following.end, following.heard_mono_us = look.end, look.read_mono_us
        following.looked_mono_us = look.looked_mono_us
        stretch = look.stretch
        if stretch.after == stretch.before and not stretch.refusals:
            self._recorded(holding, following, look)
        else:
            self._ports.batch.add(self._recording(holding, following, look))
        return None

    def _blind(self, holding: Holding, following: Following, error: OSError) -> None:
        """The host could not look: that is no answer yet. Of a program that has ended, the rest is given up after some tries, and told."""
        facts = {"attempt": holding.attempt_id, "epoch": holding.key.epoch, "why": str(error.strerror)}
        log.warning("output.unseen", extra=facts)
        following.is_reading = False
        following.unseen += 1
        now_us = self._ports.clock.now().mono_us
        if following.then is None or following.unseen < UNSEEN_MAX:
            following.due_mono_us = now_us + PAUSE_MAX_US
            return
        lost = Refusal(following.place.lines + 1, RefusalCode.LOST, f"the rest cannot be read: {error.strerror}")
        nothing = Stretch(following.place, following.place, refusals=(lost,))
        following.is_reading = following.drains = True
        look = Look(nothing, following.end, is_last=True, looked_mono_us=now_us, read_mono_us=now_us)
        self._ports.batch.add(self._recording(holding, following, look))

    def next_due(self) -> list[int]:
        """When to look again, of each output that nobody is looking at."""
        return [
            holding.following.due_mono_us
            for holding in self._ports.holdings.values()
            if holding.following is not None and holding.phase in FOLLOWED and not holding.following.is_reading
        ]

    def _look(self, holding: Holding, following: Following) -> None:
        if following.is_reading:
            return
        pin, place, draining = holding.pin, following.place, following.then is not None
        is_over = draining and following.is_over
        executor = self._ports.executors[holding.assignment.snapshot.registration]
        assert pin is not None, "nothing is followed without a pin"
        host, clock = self._ports.host, self._ports.clock

        def look() -> Look:
            now_us = clock.now().mono_us
            piece = host.read_output(pin, place.offset, READ_BYTES)
            read_us = clock.now().mono_us
            is_last = len(piece.data) < READ_BYTES
            at_end = is_over and is_last
            language = language_of(executor)
            stretch = read_stretch(place, piece.offset, piece.data, language, pin_epoch=pin.epoch, at_end=at_end)
            return Look(stretch, piece.end, is_last, now_us, read_us)

        following.is_reading, following.drains = True, draining
        self._ports.launches.submit(("read", holding.key), look)

    def _recording(self, holding: Holding, following: Following, look: Look) -> Change:
        key, stretch = holding.key, look.stretch

        def apply(tx: Tx) -> None:
            tx.follow(key, following.pin_epoch, stretch)

        def undone(error: Undone) -> None:
            if isinstance(error, LeaseLostError):
                self._ports.lose(holding, error)
            else:
                following.is_reading = False
                following.place = self._stored(holding, following.pin_epoch)

        def happened(tx: ReadTx) -> bool:
            stored = tx.stream(key.attempt_id)
            return stored is not None and stored.place == stretch.after and lease_in_force(tx, key)

        return Change(apply, lambda: self._recorded(holding, following, look), undone, happened)

    def _recorded(self, holding: Holding, following: Following, look: Look) -> None:
        following.is_reading = False
        following.place = look.stretch.after
        has_moved = look.stretch.after != look.stretch.before
        if following.then is not None:
            if following.drains and look.is_last:
                then, following.then = following.then, None
                then()
            else:
                self._look(holding, following)
            return
        following.pause_us = PAUSE_MIN_US if has_moved else min(PAUSE_MAX_US, 2 * following.pause_us)
        wait_us = 0 if has_moved and not look.is_last else following.pause_us
        following.due_mono_us = self._ports.clock.now().mono_us + wait_us
        idle_us = holding.assignment.snapshot.idle_us
        if idle_us is not None:
            following.due_mono_us = min(
                following.due_mono_us, max(following.heard_mono_us + idle_us, look.looked_mono_us)
            )

    def _stored(self, holding: Holding, pin_epoch: int) -> Place:
        stored: Stream | None = self._ports.store.read(lambda tx: tx.stream(holding.attempt_id))
        return stored.place if stored is not None and stored.pin_epoch == pin_epoch else Place()
