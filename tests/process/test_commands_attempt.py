"""`tenure attempt`: the whole story of one attempt, and its cancel."""

from __future__ import annotations

import os

import pytest

from shared.ids import Incarnation, WorkId
from shared.model.attempt import Phase
from shared.model.instant import US_PER_S
from tests.support.command_homes import Ask, CommandHome, Launch, ending, unproven

SECOND_US = US_PER_S


@pytest.mark.req("V02")
def test_story_of_an_attempt_that_changed_hands(home: CommandHome, ask: Ask) -> None:
    first = home.staff()
    second = home.worker("worker-2")
    key = home.accepted(first)
    phases = [Phase("environment", 1, 2, "ok"), Phase("secrets", 2, None, None)]
    home.store.write(lambda tx: tx.record_phases(key, phases))
    home.store.write(lambda tx: tx.pin(key, home.pin(key)))
    home.release(key)
    key = home.take_over(key, second)
    home.adopt(key)
    home.end(key, ending(7))

    said = ask("attempt", "show", "w1.1", "--json").json

    assert (said["work"], said["id"], said["state"], said["exit_code"]) == ("w1", "w1.1", "failed", 7)
    assert (said["exclusion"], said["exclusion_proof"], said["stop_order"]) == ("released", "S1", None)
    assert [(each["epoch"], each["worker"], each["recovered"]) for each in said["segments"]] == [
        (1, first, False),
        (2, second, True),
    ]
    assert said["segments"][0]["phases"] == [
        {
            "name": "environment",
            "began_at": "1970-01-01T00:00:00.000001Z",
            "ended_at": "1970-01-01T00:00:00.000002Z",
            "outcome": "ok",
        },
        {"name": "secrets", "began_at": "1970-01-01T00:00:00.000002Z", "ended_at": None, "outcome": None},
    ]
    assert [(said[name]) for name in ("segments_dropped", "budget_left_ms", "deadline", "cancellations")] == [
        0,
        None,
        None,
        [],
    ]
    kinds = [event["kind"] for event in said["events"]]
    assert [kind for kind in kinds if kind.startswith("attempt.")] == [
        "attempt.claimed",
        "attempt.accepted",
        "attempt.pinned",
        "attempt.taken_over",
        "attempt.accepted",
        "attempt.adopted",
        "attempt.failed",
    ]
    text = ask("attempt", "show", "w1.1").out
    assert text.startswith("w1.1  failed  exit code 7\n")
    assert "recovering → running" in text
    assert "environment  0ms" in text
    assert "under way, as far as it was told" in text


def test_time_that_is_left_counts_down(home: CommandHome, ask: Ask) -> None:
    home.running(home.staff())
    home.clock.advance(-600 * SECOND_US)
    before = ask("attempt", "show", "w1.1", "--json").json

    assert 0 < before["budget_left_ms"] <= 3_600_000
    assert before["deadline"] > before["started_at"]
    assert "time left  " in ask("attempt", "show", "w1.1").out


@pytest.mark.req("R12", "V02")
def test_unproven_stop_shows_each_rule_and_each_suspect(home: CommandHome, ask: Ask) -> None:
    unproven(home)

    said = ask("attempt", "show", "w1.1", "--json").json["stop_order"]
    assert (said["tries"], said["finding"]["tried"][0]) == (1, "S1: no exit record")
    text = ask("attempt", "show", "w1.1").out
    rows = [line.split() for line in text.splitlines()]
    assert ["no", "proof", "S5:", "a", "process", "could", "not", "be", "read"] in rows
    assert ["4242", "7", "65534", "99", "D", "session,", "environment", "stuck", "--name", "'\\e[2J'"] in rows
    assert 'attempt confirm-stopped w1.1 --epoch 1 --reason "…"' in text


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("w1.2", 1, "there is no attempt w1.2: w1 has 1 attempt"),
        ("w2.1", 1, "there is no attempt w2.1: w2 was never started"),
        ("w9.1", 1, "there is no work w9 in this home"),
        ("w1", 2, "'w1' is no attempt's id"),
        ("1.1", 2, "'1.1' is no attempt's id"),
    ],
)
def test_unknown_attempt_is_one_line(home: CommandHome, ask: Ask, name: str, code: int, message: str) -> None:
    home.running(home.staff())
    home.submit()

    said = ask("attempt", "show", name)

    assert (said.code, said.out) == (code, "")
    assert message in said.err.splitlines()[0]
    assert ask("attempt", "show", "w1.1").code == 0


@pytest.mark.req("X01")
@pytest.mark.parametrize("words", [("attempt", "cancel"), ("work", "cancel")])
def test_cancel_of_one_attempt_goes_from_requested_to_settled(
    home: CommandHome, ask: Ask, words: tuple[str, str]
) -> None:
    worker = home.staff()
    key = home.running(worker)

    said = ask(*words, "w1.1", "--reason", "wrong branch", "--wait", "0s")

    assert said.code == 0
    assert "w1.1 cancelled; the stop of w1.1 is ordered and not proven yet: its slot stays held" in said.out
    assert "acknowledged  not yet: no worker has taken the stop order" in said.out
    order = home.store.read(lambda tx: tx.stop_orders())[0]
    home.store.write(lambda tx: tx.take_stop_order(order.id, worker, lease_us=SECOND_US))
    (record,) = ask("attempt", "show", "w1.1", "--json").json["cancellations"]
    assert (record["scope"], record["attempt"], record["epoch"], record["reason"]) == (
        "attempt",
        "w1.1",
        1,
        "wrong branch",
    )
    assert (record["requested_by"], record["acknowledged_by"], record["settled_at"]) == (
        f"uid {os.getuid()} via {' '.join(words)}",
        worker,
        None,
    )
    assert "settled       not yet: the stop is not proven" in ask("attempt", "show", "w1.1").out

    home.confirm(key)

    (record,) = ask("work", "show", "w1", "--json").json["cancellations"]
    assert (record["result"], record["settled_at"] is not None) == ("stopped S1", True)
    assert "stopped S1" in ask("work", "show", "w1").out


@pytest.mark.req("X01")
def test_cancel_hits_no_other_attempt_than_the_one_named(home: CommandHome, ask: Ask, uncertain: Launch) -> None:
    ask("attempt", "reconcile", "w1.1", "--again", "--reason", "safe")
    home.confirm(uncertain.key)
    second = home.running(Incarnation("worker-1.1"), WorkId("w1"))

    said = ask("attempt", "cancel", "w1.1")

    assert (said.code, said.out) == (1, "")
    assert "w1.1 has already ended: failed; w1.2 is the one that goes on" in said.err
    assert home.attempt(second.attempt_id).ended_at_us is None

    assert ask("attempt", "cancel", "w1.2", "--wait", "0s").code == 0
    assert home.states() == {WorkId("w1"): "cancelled"}


@pytest.mark.req("X01")
def test_cancel_settles_what_waits_for_a_person(home: CommandHome, ask: Ask, uncertain: Launch) -> None:
    said = ask("attempt", "cancel", "w1.1", "--wait", "0s", "--json").json

    assert (said["state"], said["state_before"], said["exclusion"]) == ("cancelled", "running", "held")
    assert said["cancellation"]["result"] is None


def test_cancel_of_an_attempt_takes_no_work(home: CommandHome, ask: Ask) -> None:
    home.running(home.staff())

    assert ask("attempt", "cancel", "w1").code == 2
    assert ask("work", "cancel", "w1", "--wait", "0s").code == 0
