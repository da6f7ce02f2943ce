"""What a stop, or the search for its proof, found."""

from __future__ import annotations

from dataclasses import dataclass

from shared.model.evidence import ExitRecord


@dataclass(frozen=True, slots=True)
class Suspect:
    """A process that may belong to the attempt.

    Attributes:
        started_ticks: Clock ticks since boot.
        state: One letter of `/proc/PID/stat`, e.g. `D`.
        matched: Which evidence points at it, e.g. `child`, `environment`, `session`.
    """

    pid: int
    ppid: int
    uid: int
    started_ticks: int
    state: str
    command_line: str
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StopResult:
    """The outcome of one try to stop, or to prove stopped.

    Attributes:
        proof: The rule that proved it (`S0`, `S1`, `S1b`, `S3`); None: unproven.
        suspects: Processes that may be what is left; () when proven.
        tried: Each rule that did not prove it, with why, e.g. `S1: no exit record`.
        exit: The exit record, when there is a readable one.
    """

    proof: str | None
    suspects: tuple[Suspect, ...]
    tried: tuple[str, ...]
    exit: ExitRecord | None
