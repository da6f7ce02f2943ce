"""What evidence of a launch proves about its stop. Rule: design §7 (proofs), requirement R11.

Each `why_not_…` says why its rule does not hold; None means that it does.
"""

from __future__ import annotations

from shared.model.evidence import Evidence, LockState
from shared.model.stop import Search

S0 = "S0"  # never pinned, isolated executor, no child ever registered
S1 = "S1"  # the shim saw ECHILD, and its lock is free
S1B = "S1b"  # a held shim was killed at its gate, and no child registered
S2 = "S2"  # its cgroup is empty, and nothing can have left it
S3 = "S3"  # another boot
S5 = "S5"  # the complete orphan scan, exact and empty twice

_DIRECTORY = "the pinned directory is missing or is another one"


def proof_of(evidence: Evidence) -> str | None:
    """The proof of stop that observation alone gives; None: a stop order has to find one. An exit status alone is none."""
    if why_not_s3(evidence) is None:
        return S3
    return S1 if why_not_s1(evidence) is None else None


def proof_of_nothing(evidence: Evidence | None) -> str | None:
    """The proof of stop of a launch of which the verdict was that nothing of it ran. None: its evidence is not all there.

    Args:
        evidence: None: it was never pinned, and no child of it ever registered.
    """
    if evidence is None:
        return S0
    return proof_of(evidence) or (S1B if why_not_s1b(evidence, ordered=True) is None else None)


def why_not_s3(evidence: Evidence) -> str | None:
    """Another boot: nothing outlives a restart of the host."""
    return "the host has not restarted since" if evidence.same_boot else None


def why_not_s1(evidence: Evidence) -> str | None:
    """The shim saw the end of everything below it."""
    if not evidence.directory_proven:
        return _DIRECTORY
    if evidence.exit is None:
        return "the exit record cannot be read" if "exit.json" in evidence.unreadable else "no exit record"
    if not evidence.exit.tree_empty:
        return "the shim was no subreaper, so what it left may live"
    return why_not_free(evidence.lock)


def why_not_s1b(evidence: Evidence, *, ordered: bool) -> str | None:
    """A held shim was killed at its gate under a stop order: nothing ran, and nothing can."""
    if not ordered:
        return "no stop order"
    if not evidence.directory_proven:
        return _DIRECTORY
    if evidence.child is not None or "child.json" in evidence.unreadable:
        return "a child registered itself"
    return why_not_free(evidence.lock)


def why_not_searched(evidence: Evidence) -> str | None:
    """Why looking for what a launch left could prove nothing."""
    if not evidence.directory_proven:
        return _DIRECTORY
    if not evidence.same_pid_ns:
        return "its processes are of another pid namespace"
    if evidence.child is None:
        return (
            "the record of its child cannot be read" if "child.json" in evidence.unreadable else "no child registered"
        )
    return why_not_free(evidence.lock)


def why_not_s2(evidence: Evidence, search: Search) -> str | None:
    """The cgroup is empty. It does not hold who means to leave it, so nothing unaccounted for may be about either; one
    snapshot is enough for that, as what stayed inside cannot have been missed.
    """
    if evidence.leaf is None:
        return "it had no cgroup of its own"
    if search.leaf_empty is None:
        return "its cgroup cannot be seen from here"
    if not search.leaf_empty:
        return "its cgroup is not empty"
    return _why_not_gone(evidence, search)


def why_not_s5(evidence: Evidence, search: Search) -> str | None:
    """The complete scan: nothing is left that a killed shim can have left, whatever it did to hide."""
    if search.leaf_empty is False:
        return "its cgroup is not empty"
    left = _why_not_gone(evidence, search)
    if left is None and not search.exact:
        return "no two exact snapshots: processes were started all the while"
    return left


def _why_not_gone(evidence: Evidence, search: Search) -> str | None:
    if search.blind is not None:
        return search.blind
    if evidence.reapers is None:
        return "it is not known who inherited what its shim left"
    for name, alive in (("shim", search.shim_alive), ("child", evidence.child_alive)):
        if alive is not False:
            return f"its {name} is alive" if alive else f"whether its {name} is alive cannot be seen"
    if search.matched:
        return f"processes that belong to it are left: {search.matched}"
    if search.tree_lock is not LockState.FREE:
        held = search.tree_lock is LockState.HELD
        return "a process holds its tree.lock" if held else "its tree.lock could not be probed"
    if search.orphans:
        return f"processes that nothing accounts for: {search.orphans}"
    return None


def why_not_free(lock: LockState) -> str | None:
    """The lock of the shim, which it holds for life."""
    if lock is LockState.FREE:
        return None
    return "its lock is held" if lock is LockState.HELD else "its lock could not be probed"
