"""What a check of `doctor` says: findings, each with a stable code, a severity, and one safe next step.

No step deletes rows or starts ambiguous work again. A check that could not look raises, which is a finding of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.commands.open_home import command_for
from shared.home import Home

NAMED_MAX = 20


class Severity(StrEnum):
    """How bad it is; `unknown`: it could not be looked at."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be. `next_step`: one safe thing to do."""

    code: str
    severity: Severity
    message: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Patient:
    """A home under examination. `named`: the value of `--home`."""

    place: Home
    named: str | None

    def command(self, words: str) -> str:
        """A command for the user to type, for this very home."""
        return command_for(self.named, words)


NOTHING = "nothing needs to be done"
