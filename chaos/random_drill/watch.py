"""What is seen of a random drill while it goes on: who is held, and when each process surely lived."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from chaos.harness import COORDINATOR, Harness
from chaos.random_drill.processes import Processes
from chaos.recording import look
from chaos.seen import Life, Look
from shared.ids import Incarnation
from shared.model.host import WorkerState
from shared.store.contract import Event, ReadTx

LOOK_EVERY_S = 0.3


@dataclass(slots=True)
class Watch:
    """Attributes:
    looks: In order; see `Look`.
    """

    harness: Harness
    processes: Processes
    looks: list[Look] = field(default_factory=list)
    _blows: int = 0
    _were_able: bool = False
    _due_s: float = 0.0

    def look(self) -> None:
        """Look, now and then."""
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + LOOK_EVERY_S
        unharmed = len(self.processes.blows) == self._blows and self.processes.is_settled
        self._blows = len(self.processes.blows)

        def read(tx: ReadTx) -> Look:
            are_able = unharmed and self._are_there(tx)
            able, self._were_able = are_able and self._were_able, are_able
            return look(tx, at_us=tx.now.mono_us, able=able)

        self.looks.append(self.harness.read(read))

    def _are_there(self, tx: ReadTx) -> bool:
        """Whether one of ours leads, and one of ours may take anything over."""
        leader, pids = tx.leader(), self.processes.pids
        leads = leader is not None and leader.pid in pids and leader.owner.startswith(COORDINATOR)
        return leads and any(
            worker.state is WorkerState.LIVE and worker.identity.pid in pids for worker in tx.workers()
        )


def lives(processes: Processes, events: tuple[Event, ...]) -> tuple[Life, ...]:
    """When each registered worker of a drill surely lived, as far as the drill knows.

    It is known by its pid, among those of that pid by the last one started before it registered. One that ended by itself is left
    out: when it did is not known.
    """
    found = []
    for event in events:
        if event.kind == "worker.registered":
            own = [each for each in processes.terms if each.pid == event.data.get("pid") and each.from_seq < event.seq]
            if own and not own[-1].failed:
                until = own[-1].until_seq
                who = Incarnation(str(event.data["worker"]))
                found.append(Life(who, event.seq, None if until is None else max(until, event.seq)))
    return tuple(found)
