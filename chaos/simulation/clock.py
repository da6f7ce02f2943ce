"""The virtual clock and the simulated doorbell, as a process sees them."""

from __future__ import annotations

from chaos.simulation.baton import Baton, Signal
from shared.clock import WaitEnd, Wake
from shared.model.instant import Instant


class SimulatedBell:
    """A doorbell; see `shared.wake.Bell`. `names`: what it answers to."""

    def __init__(self, baton: Baton, name: str) -> None:
        self.names = [name]
        self.is_rung = False
        self.rung = Signal(baton)

    def ring(self) -> None:
        """Wake whoever waits on it."""
        self.is_rung = True
        self.rung.notify()

    def fileno(self) -> int:
        """See `Wake.fileno`; only the simulated clock waits on it."""
        raise NotImplementedError("a simulated bell has no descriptor")

    def drain(self) -> None:
        """See `Wake.drain`."""
        self.is_rung = False


class SimulatedClock:
    """Implements `Clock` on the baton's time."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton

    def now(self) -> Instant:
        """See `Clock.now`."""
        return self._baton.now()

    def wait(self, until_mono_us: int, wake: Wake | None) -> WaitEnd:
        """See `Clock.wait`."""
        baton = self._baton
        if not isinstance(wake, SimulatedBell):
            baton.park(until_mono_us)
            return WaitEnd.DEADLINE
        if not wake.is_rung and until_mono_us > baton.mono_us:
            wake.rung.wait(until_mono_us)
        else:
            baton.hand_over()
        if wake.is_rung:
            wake.drain()
            return WaitEnd.WOKEN
        return WaitEnd.DEADLINE
