"""The configuration that is in force, also when the active one cannot be read.

Then nothing starts: what an attempt would pin is not known. What runs goes on, and is recovered, by the newest configuration that
can be read; coordinator and workers each find the same one. Rule: requirement S05.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import UnreadableError
from shared.model.settings import DEFAULT, Config
from shared.store.contract import ConfigGeneration, ReadTx

LOOKED_BACK_MAX = 64


@dataclass(frozen=True, slots=True)
class ActiveConfig:
    """What is in force.

    Attributes:
        generation: The active one; None when none was ever activated.
        config: What it says; or, when it cannot be read, what the newest one before it says, or the defaults.
        fault: Why it cannot be read; None: it can.
    """

    generation: ConfigGeneration | None
    config: Config
    fault: UnreadableError | None = None

    @property
    def number(self) -> int | None:
        """Of the active generation."""
        return None if self.generation is None else self.generation.number


NONE = ActiveConfig(None, DEFAULT)
"""Nothing was ever activated."""


def active_config(tx: ReadTx) -> ActiveConfig:
    """The configuration in force."""
    return in_force(tx, tx.config())


def in_force(tx: ReadTx, generation: ConfigGeneration | None) -> ActiveConfig:
    """What is in force while that generation is the active one."""
    if generation is None:
        return NONE
    try:
        return ActiveConfig(generation, generation.config())
    except UnreadableError as error:
        fault = error
    for number in range(generation.number - 1, max(0, generation.number - 1 - LOOKED_BACK_MAX), -1):
        older = tx.config(number)
        if older is not None and older.is_readable:
            return ActiveConfig(generation, older.config(), fault)
    return ActiveConfig(generation, DEFAULT, fault)
