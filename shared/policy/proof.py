"""What evidence of a launch proves about its stop. Rule: design §7 (proofs), requirement R11."""

from __future__ import annotations

from shared.model.evidence import Evidence, LockState

S0 = "S0"  # never pinned, isolated executor, no child ever registered
S1 = "S1"  # the shim saw ECHILD, and its lock is free
S1B = "S1b"  # a held shim was killed at its gate, and no child registered
S3 = "S3"  # another boot


def proof_of(evidence: Evidence) -> str | None:
    """The proof of stop that observation alone gives; None: a stop order has to find one. An exit status alone is none."""
    if not evidence.same_boot:
        return S3
    if evidence.exit is not None and evidence.exit.tree_empty and evidence.lock is LockState.FREE:
        return S1
    return None
