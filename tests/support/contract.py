"""What the store's contract offers, by name, whichever of its parts it is in."""

from __future__ import annotations

from shared.store.agent_contract import AgentTransitions
from shared.store.contract import ReadTx, Tx


def _names(kind: type) -> frozenset[str]:
    return frozenset(name for part in kind.__mro__ for name in vars(part) if not name.startswith("_"))


TRANSITIONS = _names(Tx) - _names(ReadTx)
"""All of them, and the few questions that only a write asks."""
TRANSITIONS_OF_AGENTS = frozenset(name for name in vars(AgentTransitions) if not name.startswith("_"))
