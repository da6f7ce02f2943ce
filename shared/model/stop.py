"""What a stop, or the search for its proof, found."""

from __future__ import annotations

from dataclasses import dataclass

from shared.model.evidence import ExitRecord, LockState


@dataclass(frozen=True, slots=True)
class Suspect:
    """A process that may belong to the attempt.

    Attributes:
        started_ticks: Clock ticks since boot.
        state: One letter of `/proc/PID/stat`, e.g. `D`.
        matched: Which evidence points at it, e.g. `child`, `environment`, `session`; `orphan`: nothing but that nobody else
            accounts for it.
        waits_in: Where in the kernel it waits, when that is what keeps it from ending.
    """

    pid: int
    ppid: int
    uid: int
    started_ticks: int
    state: str
    command_line: str
    matched: tuple[str, ...]
    waits_in: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """What a look over all processes found of one launch whose shim is gone.

    Attributes:
        blind: Why not every process can be seen; None when all can.
        matched: Processes that evidence ties to the launch.
        orphans: Processes that nothing accounts for, though the launch may have left them.
        exact: It was empty in two snapshots during which nothing on the host forked.
        leaf_empty: Its cgroup is empty; None when it had none, or that cannot be seen.
        tree_lock: `held` while a process that inherited the job's descriptors lives.
        shim_alive: None when it cannot be seen.
    """

    blind: str | None
    matched: int
    orphans: int
    exact: bool
    leaf_empty: bool | None
    tree_lock: LockState
    shim_alive: bool | None


@dataclass(frozen=True, slots=True)
class StopResult:
    """The outcome of one try to stop, or to prove stopped.

    Attributes:
        proof: The rule that proved it (`S0`, `S1`, `S1b`, `S2`, `S3`, `S5`); None: unproven.
        suspects: Processes that may be what is left; () when proven.
        tried: Each rule that did not prove it, with why, e.g. `S1: no exit record`.
        exit: The exit record, when there is a readable one.
        terms, kills: How many processes this try asked to end, and how many it killed; what the shim did is not counted.
        exact: Whether what was searched was a true snapshot; None when nothing was searched.
    """

    proof: str | None
    suspects: tuple[Suspect, ...]
    tried: tuple[str, ...]
    exit: ExitRecord | None
    terms: int = 0
    kills: int = 0
    exact: bool | None = None
