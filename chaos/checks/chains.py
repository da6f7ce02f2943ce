"""What attempts set off themselves: a handoff goes on once, where its binding says so, and no chain is longer than allowed.

Rule: requirements O06, O07.
"""

from __future__ import annotations

from collections import Counter

from chaos.checks.speech import REFUSED, last_words, launch_ends
from chaos.history import History
from shared.ids import AttemptId

TURN, HANDOFF = "execution.turn", "execution.handoff"


def handoffs_go_on_once(history: History) -> list[str]:
    """A launch that hands off has one event and one input for the next attempt, unless its chain is too long; no other has."""
    found = []
    told: Counter[tuple[AttemptId | None, int | None]] = Counter()
    inputs = Counter(event.data.get("cause") for event in history.events if event.kind == "input.accepted")
    for event in history.events:
        if event.kind == HANDOFF:
            told[event.attempt_id, event.epoch] += 1
            if inputs[event.seq] != 1:
                found.append(f"{event.attempt_id} hands off (event {event.seq}), {inputs[event.seq]} inputs come of it")
    refused = {
        (event.attempt_id, event.epoch)
        for event in history.events
        if event.kind == REFUSED and event.data["derived"] == "handoff"
    }
    words = last_words(history)
    expected = set()
    for launch, end in launch_ends(history).items():
        last = words.get(launch)
        snapshot = history.snapshots.get(launch[0])
        hands_off = last is not None and last.kind == "result" and last.fields["outcome"] == "handoff"
        if hands_off and snapshot is not None and snapshot.continues:
            expected.add((end.attempt_id, end.epoch))
    overheard = {job.work_id for job in history.jobs if job.is_overheard}
    found += [f"{name} epoch {epoch} goes on {count} times" for (name, epoch), count in told.items() if count > 1]
    found += [f"{name} epoch {epoch} hands off, and nothing goes on" for name, epoch in expected - {*told} - refused]
    mine = {one for one in told if one[0] is not None and one[0].partition(".")[0] in overheard}
    return found + [f"{name} epoch {epoch} goes on, and did not hand off" for name, epoch in mine - expected]


def chains_keep_within_their_depth(history: History) -> list[str]:
    """What an attempt sets off is no deeper than it pinned; what is refused would have been."""
    found = []
    for event in history.events:
        snapshot = None if event.attempt_id is None else history.snapshots.get(event.attempt_id)
        if snapshot is None or event.kind not in (TURN, HANDOFF, REFUSED):
            continue
        depth = int(str(event.data["depth"]))
        if (depth > snapshot.depth_max) != (event.kind == REFUSED):
            found.append(
                f"{event.kind} of {event.attempt_id} (event {event.seq}) is {depth} deep, allowed are {snapshot.depth_max}"
            )
    return found
