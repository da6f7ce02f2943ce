"""The person of a random drill who lets bindings start again that were quarantined: by a command and by the store in turn."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from chaos.harness import Running
from chaos.random_drill.operator import BUSY_WORDS, Operator
from chaos.random_drill.roster import SUBMITTER
from shared.errors import RefusedError

RELEASED_AFTER_S = 0.8
LOOK_EVERY_S = 0.3
NOT_QUARANTINED = "is not quarantined"
"""How a release is refused when its answer was lost, and it is done already."""


@dataclass(slots=True)
class Quarantines:
    """Attributes:
    done: How often each binding was released.
    """

    operator: Operator
    done: Counter[str] = field(default_factory=Counter)
    _seen_at: dict[str, float] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _look_at: float = 0.0

    def look(self) -> None:
        """See which are quarantined, now and then, and release what has been for long enough."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        names = self._names()
        self._seen_at = {name: self._seen_at.get(name, now) for name in names}
        for name in sorted(names - self._asked):
            if now - self._seen_at[name] >= RELEASED_AFTER_S:
                self._release(name)

    @property
    def is_done(self) -> bool:
        """None is quarantined."""
        return not self._names()

    def _names(self) -> frozenset[str]:
        return self.operator.harness.read(lambda tx: tx.quarantined())

    def _release(self, name: str) -> None:
        if self.done[name] % 2:
            self._call(name)
            return
        with suppress(RefusedError):  # it was not quarantined any more
            self.operator.write(lambda tx: tx.release_binding(name, by=SUBMITTER, reason="drill"))
            self.done[name] += 1

    def _call(self, name: str) -> None:
        self._asked.add(name)

        def ended(running: Running, code: int) -> None:
            self._asked.remove(name)
            told = running.log.read_text()
            if code == 0:
                self.done[name] += 1
            elif not any(words in told for words in (NOT_QUARANTINED, *BUSY_WORDS)):
                self.operator.troubles.append(f"{running.name} ended with {code}: {told.strip()}")

        self.operator.call(f"release-{name}", ["binding", "release", name, "--reason", "drill"], ended)
