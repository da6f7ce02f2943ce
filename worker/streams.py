"""Follow what running agents say: read on in their output, and record each stretch under the lease, whole and once.

How far it was read is in the store with what was found, so whoever takes the attempt over goes on exactly there. Before an end is
written, everything up to the end of the output is read. Rule: design §6; requirements O02, O15, T02.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from shared.errors import DeclarationError, LeaseLostError, RefusedError
from shared.model.instant import US_PER_MS, US_PER_S, Instant
from shared.model.stream import Place, Refusal, RefusalCode, Stream
from shared.store.contract import ReadTx, Tx
from worker.agents.reading import READ_BYTES, Reading, read_stretch
from worker.batch import Change
from worker.holding import Following, Holding, Phase
from worker.pool import Completion
from worker.ports import Ports, lease_in_force

log = logging.getLogger(__name__)

PAUSE_MIN_US = 20 * US_PER_MS
PAUSE_MAX_US = US_PER_S


@dataclass(frozen=True, slots=True)
class Look:
    """One look at an output. `end`: up to where it reaches; `is_last`: nothing lay behind it at that time."""

    reading: Reading
    end: int
    is_last: bool
    looked_mono_us: int


class Streams:
    """Reads the outputs of the agents held here."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def begin(self, holding: Holding) -> None:
        """Follow a running attempt from where its output was read to; of an executor that is not listened to, nothing."""
        pin = holding.pin
        executor = self._ports.executors[holding.assignment.snapshot.registration]
        if pin is None or executor.language is None:
            return
        if holding.following is None or holding.following.pin_epoch != pin.epoch:
            now_us = self._ports.clock.now().mono_us
            holding.following = Following(pin.epoch, self._stored(holding, pin.epoch), now_us, now_us)

    def step(self, now: Instant) -> None:
        """Look where it is time to."""
        for holding in list(self._ports.holdings.values()):
            following = holding.following
            if following is not None and holding.phase is Phase.WATCHING and now.mono_us >= following.due_mono_us:
                self._look(holding, following)

    def drain(self, holding: Holding, then: Callable[[], None]) -> None:
        """Read up to the end of the output of a program that is gone, then go on; at once where nobody listens to it."""
        self.begin(holding)
        following = holding.following
        if following is None:
            then()
            return
        holding.phase = Phase.DRAINING
        following.then = then
        self._look(holding, following)

    def is_idle(self, holding: Holding) -> bool:
        """Whether the program has said nothing for longer than it may: looked at after that time, there was nothing."""
        following, idle_us = holding.following, holding.assignment.snapshot.idle_us
        if following is None or idle_us is None or following.is_reading:
            return False
        return following.looked_mono_us >= following.heard_mono_us + idle_us

    def heard(self, holding: Holding | None, completion: Completion) -> None:
        """A look is over: record what it found."""
        if completion.error is not None:
            raise completion.error
        look = completion.result
        following = None if holding is None else holding.following
        if holding is None or following is None or not isinstance(look, Look):
            return
        if look.end > following.end:
            following.end, following.heard_mono_us = look.end, look.looked_mono_us
        following.looked_mono_us = look.looked_mono_us
        stretch = look.reading.stretch
        if stretch.after == stretch.before and not stretch.refusals:
            self._recorded(holding, following, look)
        else:
            self._ports.batch.add(self._recording(holding, following, look))

    def next_due(self) -> list[int]:
        """When to look again, of each output that nobody is looking at."""
        return [
            holding.following.due_mono_us
            for holding in self._ports.holdings.values()
            if holding.following is not None and holding.phase is Phase.WATCHING and not holding.following.is_reading
        ]

    def _look(self, holding: Holding, following: Following) -> None:
        if following.is_reading:
            return
        pin, place, draining = holding.pin, following.place, following.then is not None
        language = self._ports.executors[holding.assignment.snapshot.registration].language
        assert pin is not None, "nothing is followed without a pin"
        assert language is not None, "nor of an executor that is not listened to"
        host, clock = self._ports.host, self._ports.clock

        def look() -> Look:
            now_us = clock.now().mono_us
            piece = host.read_output(pin, place.offset, READ_BYTES)
            is_last = len(piece.data) < READ_BYTES
            reading = read_stretch(
                place, piece.offset, piece.data, language, pin_epoch=pin.epoch, at_end=draining and is_last
            )
            return Look(reading, piece.end, is_last, now_us)

        following.is_reading, following.drains = True, draining
        self._ports.launches.submit(("read", holding.key), look)

    def _recording(self, holding: Holding, following: Following, look: Look) -> Change:
        key, stretch, declarations = holding.key, look.reading.stretch, look.reading.declarations

        def apply(tx: Tx) -> None:
            tx.follow(key, following.pin_epoch, stretch)
            if declarations:
                tx.declare(key, declarations)

        def refused(error: RefusedError) -> None:
            if isinstance(error, LeaseLostError):
                self._ports.lose(holding, error)
            elif isinstance(error, DeclarationError):
                self._ports.batch.add(self._recording(holding, following, _without_declarations(look, error)))
            else:
                following.is_reading = False
                following.place = self._stored(holding, following.pin_epoch)

        def happened(tx: ReadTx) -> bool:
            stored = tx.stream(key.attempt_id)
            return stored is not None and stored.place == stretch.after and lease_in_force(tx, key)

        return Change(apply, lambda: self._recorded(holding, following, look), refused, happened)

    def _recorded(self, holding: Holding, following: Following, look: Look) -> None:
        following.is_reading = False
        following.place = look.reading.stretch.after
        has_moved = look.reading.stretch.after != look.reading.stretch.before
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


def _without_declarations(look: Look, error: DeclarationError) -> Look:
    """What the store refused of a stretch is told as refused, by its last line; the rest of the stretch counts."""
    stretch = look.reading.stretch
    refusal = Refusal(stretch.after.lines, RefusalCode.INVALID, str(error)[:200])
    kept = replace(stretch, refusals=(*stretch.refusals, refusal))
    return replace(look, reading=replace(look.reading, stretch=kept, declarations=()))
