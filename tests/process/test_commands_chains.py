"""What commands say of chains that were stopped and of handoffs that go on; `tenure event publish --key`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import LeaseKey
from shared.model.work import WorkKind, WorkState
from shared.store.contract import Tx
from shared.store.settling import change_after
from tests.support.command_homes import Ask, CommandHome
from tests.support.declarations import HANDED_OFF, HANDOFF, TURN
from tests.support.examinations import Found

quiet = pytest.mark.usefixtures("quiet")


def stopped(home: CommandHome, owner: Incarnation | None = None, depth_max: int = 0) -> LeaseKey:
    """A standing work whose handoff went on, or would have been a link too many."""
    owner = owner or home.staff()
    work_id = home.submit(kind=WorkKind.STANDING, input_=b"begin")
    request = home.request(work_id, owner)
    pinned = replace(request.snapshot, continues=True, depth_max=depth_max, kind=WorkKind.STANDING)
    home.as_leader(lambda tx: tx.claim(replace(request, snapshot=pinned)))
    key = LeaseKey(AttemptId(f"{work_id}.1"), 1, owner)
    home.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
    home.store.write(lambda tx: tx.pin(key, home.pin(key)))
    home.store.write(lambda tx: tx.declare(key, [TURN, HANDOFF]))
    outcome = home.outcome(key)

    def finish(tx: Tx) -> None:
        tx.finish(key, HANDED_OFF, change_after(tx, key.attempt_id, HANDED_OFF, None, outcome), outcome=outcome)

    home.store.write(finish)
    return key


@quiet
@pytest.mark.req("O06", "O07", "V04")
def test_a_chain_that_was_stopped_is_found_with_what_to_do(home: CommandHome, found: Found, ask: Ask) -> None:
    key = stopped(home)

    assert found() == {"chains.stopped": "warning"}
    said = ask("doctor").out
    assert "a chain of more than 0 links was stopped at 1 work: w1; w1.1 ended without its handoff" in said
    assert "submit w1 --input TEXT" in said
    assert ask("submit", "w1", "--input", "go on").code == 0
    home.claimed(key.owner, WorkId("w1"))
    assert "chains.stopped" not in found(), "something else has come of it since"


@quiet
@pytest.mark.req("O07", "V04")
def test_a_handoff_that_went_on_is_nothing_to_find(home: CommandHome, found: Found) -> None:
    stopped(home, depth_max=1)

    assert home.work(WorkId("w1")).state is WorkState.READY
    assert "chains.stopped" not in found()


@pytest.mark.req("O06", "O07", "V02")
def test_show_tells_what_an_attempt_did_not_get_and_how_deep_it_is(home: CommandHome, ask: Ask) -> None:
    stopped(home)
    refused = [
        {"derived": derived, "epoch": 1, "depth": 1, "depth_max": 0}
        for derived in ("handoff", "turn")
    ]  # fmt: skip

    attempt, work = ask("attempt", "show", "w1.1", "--json").json, ask("work", "show", "w1", "--json").json

    for told in (attempt, work["attempts"][0]):
        assert told["depth"] == 0
        assert [{key: one[key] for key in refused[0]} for one in told["chain_refusals"]] == refused
        assert all(one["refused_at"].endswith("Z") for one in told["chain_refusals"])
    assert (attempt["pinned"]["continue"], attempt["pinned"]["causal_depth"]) == (True, 0)
    for words in (("attempt", "show", "w1.1"), ("work", "show", "w1")):
        assert "too long at epoch 1: its handoff would be link 1 of 0" in ask(*words).out
    [event] = [one for one in ask("events", "--json").json["items"] if one["data"].get("derived") == "handoff"]
    assert (event["kind"], event["attempt"], event["data"]["limit"]) == ("causality.refused", "w1.1", 0)


@pytest.mark.req("O07", "V02")
def test_show_of_an_attempt_that_another_set_off_tells_its_depth(home: CommandHome, ask: Ask) -> None:
    key = stopped(home, depth_max=5)
    home.claimed(key.owner, WorkId("w1"))

    told = ask("attempt", "show", "w1.2", "--json").json

    assert (told["depth"], told["chain_refusals"]) == (1, [])
    assert "1 link from what somebody asked for" in ask("attempt", "show", "w1.2").out
    assert "somebody asked for" not in ask("attempt", "show", "w1.1").out, "control: that one is a root"


@pytest.mark.req("O06", "O07")
def test_what_a_job_hands_in_is_refused_at_the_limit_in_one_line(home: CommandHome) -> None:
    key = home.running(home.staff())
    inside = {"TENURE_ATTEMPT": key.attempt_id, "TENURE_HOME": str(home.home)}
    asked = (("submit", "--", "true"), ("event", "publish", "build.done"))
    for words in asked:
        assert home.call(*words, env=inside).code == 0
    told = [one.data for one in home.store.read(lambda tx: tx.events(after=0, limit=999)) if "cause" in one.data]
    assert [(data["cause"], data["depth"]) for data in told] == [("w1.1", 1), ("w1.1", 1)]
    stopped_at = stopped(home, key.owner)

    for words in asked:
        refused = home.call(*words, env=inside | {"TENURE_ATTEMPT": stopped_at.attempt_id})
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 2)
        assert f"what {stopped_at.attempt_id} asks for would be link 1 of a chain that may have 0" in refused.err
        elsewhere = {"TENURE_ATTEMPT": stopped_at.attempt_id, "TENURE_HOME": str(home.folder / "other")}
        assert home.call(*words, env=elsewhere).code == 0, "control: a job of another home is somebody outside"


# --- publish


@pytest.mark.req("O06")
def test_an_event_is_published_once_under_its_key(home: CommandHome, ask: Ask) -> None:
    words = ("event", "publish", "build.done", "--correlate", "pr-7", "--data", '{"ok": true}', "--key", "build-7")
    first = ask(*words)

    assert ask(*words) == first
    assert ask(*words, "--json").json == {
        "seq": int(first.out), "type": "build.done", "correlate": "pr-7", "key": "build-7",
    }  # fmt: skip
    assert ask(*words[:-1], "build-8").out != first.out, "control"
    events = ask("events", "--json").json["items"]
    assert [event["data"]["key"] for event in events if event["kind"] == "event.published"] == ["build-7", "build-8"]


@pytest.mark.req("O06")
def test_a_key_with_other_content_is_refused_in_one_line(home: CommandHome) -> None:
    seq = home.call("event", "publish", "build.done", "--key", "build-7").out.strip()

    refused = home.call("event", "publish", "build.failed", "--key", "build-7")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"tenure: the key 'build-7' belongs to event {seq}, which was handed in with other content\n"
    as_json = home.call("event", "publish", "build.failed", "--key", "build-7", "--json")
    assert json.loads(as_json.err)["error"]["code"] == "key_reused"
    assert (
        len(home.store.read(lambda tx: [one for one in tx.events(after=0, limit=99) if one.kind == "event.published"]))
        == 1
    )


@pytest.mark.req("O06")
@pytest.mark.parametrize("key", ["", "a\nb", "k" * 201])
def test_a_key_that_is_none_is_a_mistake_of_the_command_line(home: CommandHome, key: str) -> None:
    said = home.call("event", "publish", "build.done", "--key", key)

    assert (said.code, said.out) == (2, "")
    assert "--key" in said.err


@pytest.mark.parametrize("kind", ["execution.handoff", "execution.turn"])
def test_what_tenure_publishes_nobody_else_does(home: CommandHome, kind: str) -> None:
    said = home.call("event", "publish", kind)

    assert (said.code, "published by tenure alone" in said.err) == (2, True)
