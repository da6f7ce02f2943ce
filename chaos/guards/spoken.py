"""How the guards of what programs say and are told are taken away; see `removals.py`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import coordinator.resumes
import worker.belt
import worker.settling
import worker.streams
import worker.unread
from chaos.guards.removals import all_of, in_sql, replaced
from shared.model.attempt import Snapshot
from shared.model.outcome import Outcome, OutcomeKind
from shared.model.stream import Place, Stream
from shared.policy.capacity import Limits, choose_starts
from shared.store import settling
from shared.store.sqlite import agents, chains, ends, wakes


def read_once() -> AbstractContextManager[None]:
    """Whoever takes an agent over reads its output from the beginning, and the store takes it."""

    def anywhere(tx: Any, name: Any, pin_epoch: int, _stretch: Any) -> Stream:
        known = tx.stream(name)
        return known if known is not None and known.pin_epoch == pin_epoch else Stream(pin_epoch)

    return all_of(
        replaced(worker.streams.Streams, "_stored", lambda _streams, _holding, _pin_epoch: Place()),
        replaced(agents.Agents, "_read_up_to", anywhere),
    )


def last_words() -> AbstractContextManager[None]:
    """The end of an agent is written before all that it wrote was read."""
    return replaced(worker.streams.Streams, "drain", lambda _streams, _holding, then: then())


def late_report() -> AbstractContextManager[None]:
    """A stop is reported without a look at what its program wrote and nobody had read."""

    def without(_outputs: Any, _order: Any, *, then: Any, **_others: Any) -> None:
        then()

    return replaced(worker.unread.UnreadOutputs, "read", without)


def belt_token() -> AbstractContextManager[None]:
    """Whoever reaches a belt may speak there."""
    return replaced(worker.belt, "_is_token", lambda _given, _token_sha256: True)


def declared_once() -> AbstractContextManager[None]:
    """What was applied at the end of one launch is applied again at the end of the next."""
    return in_sql(chains, "AND applied_epoch IS NULL RETURNING key", "AND 0 RETURNING key")


def own_event() -> AbstractContextManager[None]:
    """A Work may be woken by what it said itself."""
    return in_sql(wakes, "AND work_id IS NOT :work", "")


def since_declared() -> AbstractContextManager[None]:
    """An event of long ago ends a wait."""
    return in_sql(wakes, "AND seq > :since", "")


def settled_intents() -> AbstractContextManager[None]:
    """The end of an attempt leaves open what it was still to be told."""
    return in_sql(ends, "AND settled_at_us IS NULL RETURNING number, fate", "AND 0 RETURNING number, fate")


def chain_limit() -> AbstractContextManager[None]:
    """Attempts set each other off for ever."""
    return all_of(*(replaced(module, "derive", lambda depth, _pinned: depth + 1) for module in (chains, settling)))


def handoff_asked() -> AbstractContextManager[None]:
    """Every handoff goes on, whatever its binding says."""
    return replaced(settling, "asks_to_continue", _is_handoff)


def _is_handoff(outcome: Outcome | None, _pinned: Snapshot) -> bool:
    return outcome is not None and outcome.kind is OutcomeKind.HANDOFF


def idle_limit() -> AbstractContextManager[None]:
    """Agents may be quiet for ever."""
    return replaced(worker.streams.Streams, "is_idle", lambda _streams, _holding: False)


def idle_since_heard() -> AbstractContextManager[None]:
    """How long an agent may be quiet counts from when it was first listened to, whatever it says."""
    heard = vars(worker.streams.Streams)["heard"]

    def without(streams: Any, holding: Any, completion: Any) -> Any:
        following = None if holding is None else holding.following
        since_us = None if following is None else following.heard_mono_us
        found = heard(streams, holding, completion)
        if following is not None:
            following.heard_mono_us = since_us
        return found

    return replaced(worker.streams.Streams, "heard", without)


def durable_words() -> AbstractContextManager[None]:
    """The end of an agent may outlive a power cut, and what it said before that may not."""
    import chaos.simulation.shim as simulated

    publish = vars(simulated._Shim)["_publish"]
    return replaced(simulated._Shim, "_publish", lambda shim, **_given: publish(shim, out_counts=False))


def handed_in_order() -> AbstractContextManager[None]:
    """What has room is handed over, also behind what had none."""
    import chaos.simulation.host as simulated

    return replaced(simulated, "hand_over", lambda words, tell: [tell(word) for word in words])


def resume_put_off() -> AbstractContextManager[None]:
    """A resume of which nothing ran ends its attempt."""
    return replaced(worker.settling, "put_off_after", lambda *_given: None)


def resume_limit() -> AbstractContextManager[None]:
    """What was parked goes on at once, whether there is a slot or not."""

    def anywhere(ready: Any, usage: Any, _limits: Any, slots: Any) -> Any:
        return choose_starts(ready, usage, Limits({}, {}), slots)

    return all_of(
        replaced(coordinator.resumes, "choose_starts", anywhere),
        replaced(coordinator.resumes, "refusal_in", lambda *_given, **_named: None),
    )
