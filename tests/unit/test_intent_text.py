"""The fate of an intent in words, with which attempt has its input now."""

from __future__ import annotations

import pytest

from shared.commands.intent_text import fate_text
from shared.ids import AttemptId, WorkId
from shared.model.intent import Fate, Intent, IntentKind

FIRST, NEXT = AttemptId("w1.1"), AttemptId("w1.2")


@pytest.mark.req("T02")
@pytest.mark.parametrize(
    ("fate", "given_to", "told"),
    [
        (Fate.RETURNED, None, "returned: it waits for the next attempt"),
        (Fate.RETURNED, NEXT, "returned; w1.2 was given it"),
        (Fate.NOT_ACCEPTING, None, "not accepted: it waits for the next attempt"),
        (Fate.NOT_ACCEPTING, NEXT, "not accepted; w1.2 was given it"),
        (Fate.CONSUMED, FIRST, "consumed"),
        (Fate.CONSUMED, None, "consumed, and given back: it waits for the next attempt"),
        (Fate.CONSUMED, NEXT, "consumed, and given back; w1.2 was given it"),
        (Fate.ACCEPTED, None, "handed over, not consumed yet"),
        (Fate.DROPPED, None, "dropped, as its binding says"),
    ],
)
def test_a_fate_says_who_has_the_input(fate: Fate, given_to: AttemptId | None, told: str) -> None:
    intent = Intent(7, IntentKind.INJECT, WorkId("w1"), FIRST, 3, fate, 1, 1, "me", 0, 0, None, given_to)

    assert fate_text(intent) == told
