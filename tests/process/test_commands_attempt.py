"""`tenure attempt`: the whole story of one attempt, and what only a person can settle; beside each refusal its control."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.attempt import LeaseKey, Phase
from shared.model.evidence import Pin, ProcessIdentity
from shared.model.instant import US_PER_S
from shared.model.settings import SandboxConfig
from shared.model.stop import StopResult, Suspect
from shared.process.identity import boot_id, pid_namespace
from shared.store.contract import Claimed
from tests.support.command_homes import Ask, CommandHome, asking, command_home, ending
from tests.support.stores import EXHAUSTED, UNPROVEN

SECOND_US = US_PER_S


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CommandHome]:
    with command_home(tmp_path) as home:
        yield home


@pytest.fixture
def ask(home: CommandHome, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(home, capsys)


def unproven(home: CommandHome) -> LeaseKey:
    """An attempt that failed, with a process left that cannot be told apart from it."""
    worker = home.staff()
    key = home.running(worker)
    home.store.write(lambda tx: tx.finish(key, UNPROVEN, EXHAUSTED))
    order = home.store.read(lambda tx: tx.stop_orders())[0]
    home.store.write(lambda tx: tx.take_stop_order(order.id, worker, lease_us=30 * SECOND_US))
    suspect = Suspect(4242, 7, 65534, 99, "D", "stuck --name '\x1b[2J'", ("session", "environment"))
    tried = ("S1: no exit record", "S5: a process could not be read")
    result = StopResult(None, (suspect,), tried, None)
    home.store.write(lambda tx: tx.report_unproven(order.id, worker, result, retry_us=SECOND_US))
    return key


class Launch:
    """A launch whose files are as a shim left them; `hold` takes its lock, as a shim that lives does."""

    def __init__(self, home: CommandHome, worker: Incarnation, work_id: WorkId | None = None) -> None:
        self.key = home.accepted(worker, work_id)
        self.folder = home.directory(self.key)
        self.folder.mkdir(parents=True)
        lock = self.folder / "lock"
        lock.touch()
        shim = ProcessIdentity(2**22 - 1, 5, boot_id(), pid_namespace())
        pin = Pin(1, self.folder.name, shim, self.folder.stat().st_ino, lock.stat().st_ino)
        home.store.write(lambda tx: tx.pin(self.key, pin))
        self._lock = os.open(lock, os.O_RDWR | os.O_CLOEXEC)

    def hold(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def let_go(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def write(self, name: str, record: dict[str, object]) -> None:
        (self.folder / name).write_text(json.dumps(record))

    def close(self) -> None:
        os.close(self._lock)


@pytest.fixture
def uncertain(home: CommandHome) -> Iterator[Launch]:
    """An attempt nobody knows the outcome of."""
    launch = Launch(home, home.staff())
    home.abandon(launch.key)
    yield launch
    launch.close()


# --- show


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


# --- reconcile


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


# --- confirm-stopped


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


# --- cancel


@pytest.mark.req("X01")
@pytest.mark.parametrize("words", [("attempt", "cancel"), ("work", "cancel")])
def test_cancel_of_one_attempt_goes_from_requested_to_settled(
    home: CommandHome, ask: Ask, words: tuple[str, str]
) -> None:
    worker = home.staff()
    key = home.running(worker)

    said = ask(*words, "w1.1", "--reason", "wrong branch", "--wait", "0")

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

    assert ask("attempt", "cancel", "w1.2", "--wait", "0").code == 0
    assert home.states() == {WorkId("w1"): "cancelled"}


@pytest.mark.req("X01")
def test_cancel_settles_what_waits_for_a_person(home: CommandHome, ask: Ask, uncertain: Launch) -> None:
    said = ask("attempt", "cancel", "w1.1", "--wait", "0", "--json").json

    assert (said["state"], said["state_before"], said["exclusion"]) == ("cancelled", "running", "held")
    assert said["cancellation"]["result"] is None


def test_cancel_of_an_attempt_takes_no_work(home: CommandHome, ask: Ask) -> None:
    home.running(home.staff())

    assert ask("attempt", "cancel", "w1").code == 2
    assert ask("work", "cancel", "w1", "--wait", "0").code == 0
