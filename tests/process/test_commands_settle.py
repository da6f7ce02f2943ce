"""`tenure attempt reconcile` and `confirm-stopped`: what only a person can settle; beside each refusal its control."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.instant import US_PER_S
from shared.model.settings import Exponential, SandboxConfig
from shared.store.contract import Claimed
from tests.support.command_homes import Ask, CommandHome, Launch, ending, unproven

SECOND_US = US_PER_S


@pytest.mark.req("E18", "E10", "V02")
def test_what_an_attempt_pinned_is_shown_and_of_secrets_only_the_reference(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    request = home.request(home.submit(scope="ops"), worker)
    pinned = replace(
        request.snapshot,
        binding="backup",
        command=("sh", "-c", "echo \x1b[2J"),
        env=(("LEVEL", "a b"),),
        secrets=(("API_KEY", "file:/run/secrets/key"),),
        grants=("deploy",),
        sandbox=SandboxConfig(writable=("/srv",)),
        retry_delays_us=(300 * SECOND_US,),
        retry_on=("failure",),
        output_max_bytes=0,
    )
    assert isinstance(home.as_leader(lambda tx: tx.claim(replace(request, snapshot=pinned))), Claimed)

    said = ask("attempt", "show", "w1.1", "--json").json["pinned"]

    assert said["env"] == {"LEVEL": "a b"}
    assert said["secrets"] == {"API_KEY": "file:/run/secrets/key"}
    assert (said["grants"], said["binding"], said["retry_delays_ms"]) == (["deploy"], "backup", [300_000])
    assert said["sandbox"] == {"read_only": ["/"], "writable": ["/srv"], "network": False, "private_tmp": True}
    text = ask("attempt", "show", "w1.1").out
    assert "\x1b" not in text
    for line in (
        "env       LEVEL='a b'",
        "secret    API_KEY from file:/run/secrets/key",
        "grants    deploy",
        "limits    time 1h, grace 10s, output unbounded",
        "sandbox   reads /, writes /srv",
        "retry     after 5m; on failure",
        "replay    never: an unknown outcome waits for a person",
    ):
        assert line in text


@pytest.mark.req("F02", "V02")
def test_waits_that_are_drawn_are_shown_by_their_bounds(home: CommandHome, ask: Ask) -> None:
    request = home.request(home.submit(), home.staff())
    drawn = Exponential(10 * SECOND_US, 600 * SECOND_US, 6)
    pinned = replace(request.snapshot, retry_delays_us=(), retry_exponential=drawn, retry_on=("failure",))
    assert isinstance(home.as_leader(lambda tx: tx.claim(replace(request, snapshot=pinned))), Claimed)

    text = ask("attempt", "show", "w1.1").out

    told = ask("attempt", "show", "w1.1", "--json").json["pinned"]["retry_exponential"]
    assert told == {"base_ms": 10_000, "max_ms": 600_000, "attempts": 6}
    assert "retry     6 attempts, each wait drawn up to a bound that doubles from 10s to 10m; on failure" in text


@pytest.mark.req("V03", "M02")
def test_reconcile_without_a_word_shows_the_evidence_and_changes_nothing(
    home: CommandHome, ask: Ask, uncertain: Launch
) -> None:
    before = home.everything()

    said = ask("attempt", "reconcile", "w1.1")

    assert said.code == 0
    for line in ("nobody saw how it ended", "free: its shim is gone", "none was ever registered", "--finished CODE"):
        assert line in said.out
    told = ask("attempt", "reconcile", "w1.1", "--json").json
    assert (told["settled"], told["by"], told["state"]) == (False, None, "recovery_required")
    assert (told["evidence"]["lives"], told["evidence"]["pinned"]["lock"]) == (False, "free")
    assert home.everything() == before


@pytest.mark.req("V03")
@pytest.mark.parametrize(
    ("words", "state", "work_state", "exit_code", "signal", "failure"),
    [
        (["--finished", "0"], "succeeded", "completed", 0, None, None),
        (["--finished", "3"], "failed", "failed", 3, None, "known"),
        (["--signal", "9"], "failed", "failed", None, 9, "known"),
        (["--failed"], "failed", "failed", None, None, "known"),
        (["--again"], "failed", "ready", None, None, "ambiguous"),
    ],
)
def test_reconcile_settles_by_a_persons_word(
    home: CommandHome,
    ask: Ask,
    uncertain: Launch,
    words: list[str],
    state: str,
    work_state: str,
    exit_code: int | None,
    signal: int | None,
    failure: str | None,
) -> None:
    said = ask("attempt", "reconcile", "w1.1", *words, "--reason", "the report is complete", "--json").json

    assert (said["settled"], said["state"], said["work_state"]) == (True, state, work_state)
    assert (said["exclusion"], said["exclusion_proof"]) == ("held", None)
    told = ask("attempt", "show", "w1.1", "--json").json
    assert (told["exit_code"], told["signal"], told["failure"]) == (exit_code, signal, failure)
    (event,) = [event for event in told["events"] if event["kind"] == f"attempt.{state}"]
    assert event["data"]["by"] == f"uid {os.getuid()} via attempt reconcile"
    assert event["data"]["reason"] == "the report is complete"

    again = ask("attempt", "reconcile", "w1.1", *words, "--reason", "x")
    assert (again.code, again.out) == (1, "")
    assert "w1.1 does not wait for a person: it has ended" in again.err


@pytest.mark.req("R10", "V03")
def test_again_waits_for_the_proof_of_the_stop(home: CommandHome, ask: Ask, uncertain: Launch) -> None:
    said = ask("attempt", "reconcile", "w1.1", "--again", "--reason", "it is safe to repeat")

    assert "its slot stays held until its stop is proven" in said.out
    assert "w1 is ready: attempt 2 follows once the stop is proven" in said.out
    worker = Incarnation("worker-1.1")
    assert not isinstance(home.try_claim(WorkId("w1"), worker), Claimed)

    home.confirm(uncertain.key)

    assert isinstance(home.try_claim(WorkId("w1"), worker), Claimed)


def test_again_with_a_recorded_proof_is_free_at_once(home: CommandHome, ask: Ask) -> None:
    key = home.running(home.staff())
    home.store.write(lambda tx: tx.require_recovery(key, why="it ran, and nobody saw how it ended", proof="S5"))

    assert "proven by S5 when it was left to a person" in ask("attempt", "reconcile", "w1.1").out
    said = ask("attempt", "reconcile", "w1.1", "--again", "--reason", "it is safe to repeat")

    assert "its slot is free, proof S5" in said.out
    assert "attempt 2 follows next" in said.out


@pytest.mark.req("M02", "X03")
def test_reconcile_is_refused_while_its_process_lives(home: CommandHome, ask: Ask, uncertain: Launch) -> None:
    uncertain.hold()
    before = home.everything()

    said = ask("attempt", "reconcile", "w1.1", "--finished", "0", "--reason", "I think so")

    assert (said.code, said.out) == (1, "")
    assert "w1.1 has not ended: its shim holds the attempt's lock" in said.err
    assert "attempt cancel w1.1" in said.err
    assert home.everything() == before
    assert "It lives." in ask("attempt", "reconcile", "w1.1").out

    uncertain.let_go()

    assert ask("attempt", "reconcile", "w1.1", "--finished", "0", "--reason", "it wrote all").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--finished", "0"], 'why? Say it with --reason "…"'),
        (["--finished", "0", "--reason", "  "], 'why? Say it with --reason "…"'),
        (["--finished", "256", "--reason", "x"], "--finished must be a whole number from 0 to 255"),
        (["--signal", "0", "--reason", "x"], "--signal must be a whole number from 1 to 64"),
        (["--failed", "--again", "--reason", "x"], "it can end in one way only"),
        (["--reason", "x"], "a reason for what?"),
    ],
)
def test_bad_word_changes_nothing(
    home: CommandHome, ask: Ask, uncertain: Launch, words: list[str], message: str
) -> None:
    before = home.everything()

    said = ask("attempt", "reconcile", "w1.1", *words)

    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert home.everything() == before


def test_reconcile_of_what_runs_is_refused(home: CommandHome, ask: Ask) -> None:
    home.running(home.staff())

    said = ask("attempt", "reconcile", "w1.1", "--failed", "--reason", "x")

    assert said.code == 1
    assert "w1.1 does not wait for a person: it is running" in said.err


def test_reconcile_without_a_pin_tells_what_its_directories_say(home: CommandHome, ask: Ask) -> None:
    key = home.accepted(home.staff())
    home.abandon(key)

    said = ask("attempt", "reconcile", "w1.1")

    assert "none ever registered, so nothing ran" in said.out
    assert ask("attempt", "reconcile", "w1.1", "--json").json["evidence"]["child_record_seen"] is False


@pytest.mark.req("R11", "X03")
def test_a_persons_word_frees_the_slot_and_shows_what_it_overrides(home: CommandHome, ask: Ask) -> None:
    unproven(home)

    said = ask("attempt", "confirm-stopped", "w1.1", "--epoch", "1", "--reason", "the machine was unplugged")

    assert said.code == 0
    assert said.out.startswith("w1.1 counts as stopped, on your word for epoch 1; its slot is free\n")
    for line in ("S1: no exit record", "4242", "evidence now"):
        assert line in said.out
    told = ask("attempt", "show", "w1.1", "--json").json
    assert (told["exclusion"], told["exclusion_proof"], told["stop_order"]) == ("released", "person", None)
    (event,) = [event for event in told["events"] if event["kind"] == "attempt.stop_confirmed"]
    assert event["data"] == {
        "proof": "person",
        "by": f"uid {os.getuid()} via attempt confirm-stopped",
        "reason": "the machine was unplugged",
    }
    assert ask("capacity", "--json").json["holders"] == []

    again = ask("attempt", "confirm-stopped", "w1.1", "--epoch", "1", "--reason", "again")
    assert (again.code, again.out) == (1, "")
    assert "the slot of w1.1 is free already; it is so by a person's word" in again.err
    assert "not proven; a person's word freed the slot" in ask("attempt", "show", "w1.1").out


def test_a_persons_word_as_programs_read_it(home: CommandHome, ask: Ask) -> None:
    unproven(home)

    said = ask("attempt", "confirm-stopped", "w1.1", "--epoch", "1", "--reason", "unplugged", "--json").json

    assert (said["id"], said["exclusion"], said["exclusion_proof"]) == ("w1.1", "released", "person")
    assert said["overridden"]["stop_order"]["finding"]["suspects"][0]["pid"] == 4242
    assert said["overridden"]["evidence"]["pinned"]["directory_proven"] is False


def _running(home: CommandHome) -> AttemptId:
    return home.running(home.staff()).attempt_id


def _uncertain(home: CommandHome) -> AttemptId:
    key = home.running(home.staff())
    home.abandon(key)
    return key.attempt_id


def _proven(home: CommandHome) -> AttemptId:
    key = home.running(home.staff())
    home.end(key, ending(0))
    return key.attempt_id


@pytest.mark.req("R11", "X03")
@pytest.mark.parametrize(
    ("prepare", "epoch", "message", "hint"),
    [
        (_running, "1", "w1.1 has not ended: it is running", "attempt cancel w1.1"),
        (_uncertain, "1", "what became of it is unknown", "attempt reconcile w1.1"),
        (_proven, "1", "it is proven stopped: S1", "attempt show w1.1"),
        (lambda home: unproven(home).attempt_id, "2", "w1.1 is at epoch 1, not 2", "attempt show w1.1"),
    ],
)
def test_word_is_refused_where_it_may_hit_something_else(
    home: CommandHome, ask: Ask, prepare: Any, epoch: str, message: str, hint: str
) -> None:
    name = prepare(home)
    before = home.everything()

    said = ask("attempt", "confirm-stopped", name, "--epoch", epoch, "--reason", "sure")

    assert (said.code, said.out) == (1, "")
    assert message in said.err
    assert hint in said.err
    assert home.everything() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "of which epoch?"),
        (["--epoch", "x", "--reason", "y"], "--epoch must be a whole number"),
        (["--epoch", "1"], 'why? Say it with --reason "…"'),
    ],
)
def test_word_needs_its_epoch_and_its_reason(home: CommandHome, ask: Ask, words: list[str], message: str) -> None:
    unproven(home)
    before = home.everything()

    said = ask("attempt", "confirm-stopped", "w1.1", *words)

    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert home.everything() == before
