"""Write what a segment came to, for its attempt and for its Work, in one transaction. Rule: requirements O05–O08, E12, E13."""

from __future__ import annotations

from shared.model.attempt import Ending
from shared.model.outcome import Outcome
from shared.policy.outcome import End, Park, Unproven
from shared.policy.resumption import PutOff
from shared.store.contract import Tx
from shared.store.settling import change_after, put_off_after
from worker.holding import Holding


def write_end(
    tx: Tx, holding: Holding, end: End, *, applied: Outcome | None = None, said: Outcome | None = None
) -> End:
    """Write what a segment came to; returns what that is for the attempt, which a resume that came to nothing does not end.

    Args:
        applied: What its program declared, where the end was seen; None: nothing of it is applied.
        said: The same where it is known, whether it is applied or not; None: it has to be looked up.
    """
    key, pinned = holding.key, holding.assignment.snapshot
    if isinstance(end, Ending):
        end = _unless_put_off(tx, holding, end)
    match end:
        case Park(proof=proof) if applied is not None:
            tx.park(key, applied, proof=proof)
        case PutOff(failed=failed, proof=proof, again=again):
            tx.put_off(key, failed, proof=proof, again=again)
        case Unproven(why=why):
            tx.require_recovery(key, why=why, proof=None)
        case Ending():
            tx.finish(key, end, change_after(tx, key.attempt_id, end, pinned, said), outcome=applied)
    return end


def _unless_put_off(tx: Tx, holding: Holding, ending: Ending) -> End:
    again = put_off_after(tx, holding.assignment.attempt, ending, holding.assignment.snapshot)
    if again is None:
        return ending
    if ending.proof is None:
        return Unproven(f"its resume came to nothing ({ending.error}), and what it left is not proven stopped")
    return PutOff(ending, ending.proof, again)
