"""What an agent wrote and nobody read before its attempt was ended: read by whoever carries out the stop, before that is reported.

Whoever ends an attempt (its holder out of time, the leader, a person) does not have to hear its program; what that consumed is
charged all the same, and what it declared of its end is not applied: the attempt was fenced before. While the exclusion is held
nothing else of the Work starts, so this never comes too late. Rule: requirements B03, T02; docs/agent-protocol.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from shared.errors import OperationError, UnreadableError, UnsupportedError
from shared.model.evidence import Pin
from shared.model.host import StopOrder
from shared.model.stream import WHY_CHARS_MAX, Place, Refusal, RefusalCode, Stretch
from shared.store.contract import ReadTx, Tx
from worker.agents.reading import READ_BYTES, read_stretch
from worker.batch import Change, Undone
from worker.executors.contract import Executor, is_listened_to, language_of, told_of
from worker.pool import Completion
from worker.ports import Ports

log = logging.getLogger(__name__)

BLIND_MAX = 3
"""So many tries of a stop wait for an output that cannot be looked at; then it is told as lost, and the slot is not held for it."""
UNPROVEN_BYTES_MAX = 64 * 1024 * 1024
"""Read in one try of what may still be writing; the next try reads on."""


@dataclass(slots=True)
class Unread:
    """The rest of an output, being read.

    Attributes:
        is_over: Nothing writes any more: a last line without its end is one.
        place: Recorded up to there.
        bytes_left: At most so much more is read in this try; None: all there is.
        then: What follows once it is read. `lost`: instead, when somebody else settled the stop meanwhile. `blind`: instead, with
            the reason, when it could not be looked at, and the stop is to be tried again.
    """

    order: StopOrder
    pin: Pin
    executor: Executor
    is_over: bool
    place: Place
    bytes_left: int | None
    then: Callable[[], None]
    lost: Callable[[], None]
    blind: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Found:
    """One look at it. `is_last`: nothing is left to read in this try."""

    stretch: Stretch
    is_last: bool


class UnreadOutputs:
    """Reads what was left unread, order by order."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._reading: dict[int, Unread] = {}

    def read(
        self,
        order: StopOrder,
        *,
        is_over: bool,
        then: Callable[[], None],
        lost: Callable[[], None],
        blind: Callable[[str], None],
    ) -> None:
        """Read up to the end, then go on; at once where nobody listened to the program, or it never ran.

        Args:
            is_over, then, lost, blind: See `Unread`.
        """
        found = self._ports.store.read(lambda tx: self._rest(tx, order))
        if found is None:
            then()
            return
        pin, executor, place = found
        bytes_left = None if is_over else UNPROVEN_BYTES_MAX
        self._reading[order.id] = Unread(order, pin, executor, is_over, place, bytes_left, then, lost, blind)
        self._look(self._reading[order.id])

    def heard(self, completion: Completion, order_id: int) -> None:
        """A look is over: record what it found."""
        unread = self._reading.get(order_id)
        if unread is None:
            return  # told twice
        found, error = completion.result, completion.error
        if isinstance(error, OSError) and unread.order.tries < BLIND_MAX:
            del self._reading[order_id]
            unread.blind(f"its output cannot be read: {error.strerror}")
            return
        if isinstance(error, OSError):
            found = _lost(unread.place, f"the rest cannot be read: {error.strerror}")
        elif isinstance(error, (OperationError, UnsupportedError)):
            found = _lost(unread.place, f"not understood: {told_of(error)}")
        elif error is not None:
            raise error
        assert isinstance(found, Found), "the task returns what it found"
        if found.stretch.after == found.stretch.before and not found.stretch.refusals:
            self._recorded(unread, found)
        else:
            self._ports.batch.add(self._recording(unread, found))

    def _rest(self, tx: ReadTx, order: StopOrder) -> tuple[Pin, Executor, Place] | None:
        """Whose output is to be read, how it is understood, and from where on; None: there is none."""
        try:
            attempt, snapshot = tx.attempt(order.attempt_id), tx.snapshot(order.attempt_id)
        except UnreadableError:
            return None
        if attempt is None or attempt.pin is None or snapshot is None or attempt.epoch != order.epoch:
            return None
        executor = self._ports.executors.get(snapshot.registration)
        if executor is None or not is_listened_to(executor):
            return None
        stored = tx.stream(attempt.id)
        is_same = stored is not None and stored.pin_epoch == attempt.pin.epoch
        return attempt.pin, executor, stored.place if stored is not None and is_same else Place()

    def _look(self, unread: Unread) -> None:
        host, pin, place, executor = self._ports.host, unread.pin, unread.place, unread.executor
        is_over, bytes_left = unread.is_over, unread.bytes_left

        def look() -> Found:
            piece = host.read_output(pin, place.offset, READ_BYTES)
            is_end = len(piece.data) < READ_BYTES
            at_end = is_over and is_end
            language = language_of(executor)
            stretch = read_stretch(place, piece.offset, piece.data, language, pin_epoch=pin.epoch, at_end=at_end)
            return Found(stretch, is_end or (bytes_left is not None and bytes_left <= len(piece.data)))

        self._ports.stops.submit(("unread", unread.order.id), look)

    def _recording(self, unread: Unread, found: Found) -> Change:
        order, stretch, pin_epoch = unread.order, found.stretch, unread.pin.epoch

        def apply(tx: Tx) -> None:
            tx.report_late(order.attempt_id, expected_epoch=order.epoch, pin_epoch=pin_epoch, stretch=stretch)

        def undone(error: Undone) -> None:
            log.info("output.settled_elsewhere", extra={"attempt": order.attempt_id, "why": str(error)})
            del self._reading[order.id]
            unread.lost()

        def happened(tx: ReadTx) -> bool:
            stored = tx.stream(order.attempt_id)
            return stored is not None and (stored.pin_epoch, stored.place) == (pin_epoch, stretch.after)

        return Change(apply, lambda: self._recorded(unread, found), undone, happened)

    def _recorded(self, unread: Unread, found: Found) -> None:
        if unread.bytes_left is not None:
            unread.bytes_left -= found.stretch.after.offset - unread.place.offset
        unread.place = found.stretch.after
        if not found.is_last:
            self._look(unread)
            return
        del self._reading[unread.order.id]
        unread.then()


def _lost(place: Place, why: str) -> Found:
    """A last look that found nothing but that the rest is lost."""
    refusal = Refusal(place.lines + 1, RefusalCode.LOST, why[:WHY_CHARS_MAX])
    return Found(Stretch(place, place, refusals=(refusal,)), is_last=True)
