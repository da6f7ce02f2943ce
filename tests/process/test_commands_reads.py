"""What `work`, `status` and `capacity` say about a store, for programs and for people."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess

import pytest

from shared.commands import status, work_list
from shared.commands.work_facts import ATTEMPTS_SHOWN
from shared.ids import WorkId
from shared.model.instant import US_PER_S
from shared.model.stop import StopResult, Suspect
from shared.model.work import NewWork, Reason, WorkState
from shared.policy.capacity import Wait
from shared.process.filelock import IncarnationLock
from shared.store.contract import Registration
from tests.support.command_homes import Ask, CommandHome, Said, ending
from tests.support.stores import EXHAUSTED, FAILED, RETURNED, UNPROVEN, identity

ODD = ("sh", "-c", "echo 'it'; sleep 1\n", "\x1b[31m", "caf\udce9")


def suspected(home: CommandHome) -> WorkId:
    """A work that failed, with processes left of it."""
    worker = home.staff()
    key = home.running(worker)
    home.store.write(lambda tx: tx.finish(key, UNPROVEN, EXHAUSTED))
    order = home.store.read(lambda tx: tx.stop_orders())[0]
    home.store.write(lambda tx: tx.take_stop_order(order.id, worker, lease_us=30 * US_PER_S))
    suspect = Suspect(4242, 1, 0, 1, "D", "stuck --name '\x1b[2J'", ("session",))
    result = StopResult(None, (suspect,), ("S1: no exit record",), None)
    home.store.write(lambda tx: tx.report_unproven(order.id, worker, result, retry_us=US_PER_S))
    return WorkId("w1")


# --- work show


def test_finished_work_as_programs_read_it(home: CommandHome, ask: Ask) -> None:
    first = home.staff()
    second = home.worker("worker-2")
    key = home.running(first)
    home.release(key)
    key = home.take_over(key, second)
    home.adopt(key)
    home.end(key, ending(7))

    work = ask("work", "show", "w1", "--json").json

    assert {name: work[name] for name in ("id", "state", "scope", "binding", "reason")} == {
        "id": "w1",
        "state": "failed",
        "scope": "",
        "binding": None,
        "reason": "exhausted",
    }
    (attempt,) = work["attempts"]
    told = ("number", "state", "epoch", "worker", "exit_code", "signal", "exclusion", "exclusion_proof")
    assert [attempt[name] for name in told] == [1, "failed", 2, second, 7, None, "released", "S1"]
    marks = ("epoch", "worker", "invoke", "isolated", "recovered", "relaunched")
    assert [[segment[name] for name in marks] for segment in attempt["segments"]] == [
        [1, first, "called", True, False, False],
        [2, second, None, False, True, False],
    ]
    for times in (attempt, *({**each, "started_at": each["began_at"]} for each in attempt["segments"])):
        assert times["started_at"].endswith("Z")
        assert times["ended_at"].endswith("Z")


def test_of_many_attempts_the_last_are_shown_and_the_others_page_by_page(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    work_id = home.submit()
    for _ in range(ATTEMPTS_SHOWN + 3):
        key = home.running(worker, work_id)
        home.store.write(lambda tx, key=key: tx.finish(key, FAILED, RETURNED))  # type: ignore[misc]

    def numbers(*options: str) -> tuple[list[int], int | None]:
        said = ask("work", "show", work_id, *options, "--json").json
        return [attempt["number"] for attempt in said["attempts"]], said["next"]

    assert numbers() == (list(range(4, ATTEMPTS_SHOWN + 4)), 4)
    assert numbers("--before", "4") == ([1, 2, 3], None)
    assert numbers("--before", "4", "--attempts", "2") == ([2, 3], 2)
    assert numbers("--attempts", "23") == (list(range(1, ATTEMPTS_SHOWN + 4)), None)
    assert numbers("--before", "1") == ([], None)
    text = ask("work", "show", work_id).out
    assert f"earlier attempts: tenure --home {home.home} work show {work_id} --before 4" in text
    assert ("w1.3 " in text, "w1.4 " in text) == (False, True)
    assert "earlier attempts" not in ask("work", "show", work_id, "--before", "4").out
    listed = ask("work", "list", "--json").json["items"]
    assert [(len(work["attempts"]), work["next"]) for work in listed] == [(ATTEMPTS_SHOWN, 4)]
    assert ask("work", "show", work_id, "--before", "0").code == 2


def test_signal_is_a_number_and_leaves_no_exit_code(home: CommandHome, ask: Ask) -> None:
    home.end(home.running(home.staff()), ending(-9))

    (attempt,) = ask("work", "show", "w1", "--json").json["attempts"]

    assert (attempt["exit_code"], attempt["signal"]) == (None, 9)


def test_every_key_is_there_whatever_the_state(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    home.end(home.running(worker), ending(0))
    home.running(worker)
    home.claimed(worker)
    home.submit()
    home.abandon(home.running(worker))

    works = ask("work", "list", "--json").json["items"]

    assert len({frozenset(work) for work in works}) == 1
    attempts = [attempt for work in works for attempt in work["attempts"]]
    assert len({frozenset(attempt) for attempt in attempts}) == 1
    assert {attempt["state"] for attempt in attempts} == {"succeeded", "running", "launching", "recovery_required"}
    running = next(attempt for attempt in attempts if attempt["state"] == "running")
    assert (running["ended_at"], running["exit_code"], running["signal"]) == (None, None, None)
    assert (running["lease"]["owner"], running["lease"]["live"]) == (worker, True)


def test_command_that_is_no_text_is_still_json_and_harmless_text(home: CommandHome, ask: Ask) -> None:
    odd = NewWork("default", None, ODD, (("K", "a\x1bb"),), "/tmp", None, "a test")
    home.store.write(lambda tx: tx.submit(odd, "jobs"))

    assert ask("work", "show", "w1", "--json").json["command"] == list(ODD)
    text = ask("work", "show", "w1").out
    assert "\x1b" not in text
    assert "command    sh -c $'echo \\'it\\'; sleep 1\\n' $'\\e[31m' $'caf\\xe9'" in text
    assert "env        K=***" in text


def test_why_it_waits_is_said(home: CommandHome, ask: Ask) -> None:
    work_id = home.submit()
    home.as_leader(lambda tx: tx.hold_back([Wait(work_id, Reason.CAPACITY_JOB_CONCURRENCY, "jobs")]))

    assert ask("work", "show", "w1", "--json").json["reason"] == "capacity_job_concurrency"
    assert ask("work", "show", "w1").out.startswith("w1  ready  capacity_job_concurrency: pool jobs is full\n")
    assert "ready (capacity_job_concurrency)" in ask("work", "list").out


def test_unproven_stop_names_its_suspects(home: CommandHome, ask: Ask) -> None:
    suspected(home)

    (attempt,) = ask("work", "show", "w1", "--json").json["attempts"]
    assert (attempt["exclusion"], attempt["exclusion_proof"]) == ("held", None)
    assert attempt["stop_order"]["finding"]["suspects"][0]["pid"] == 4242

    text = ask("work", "show", "w1").out
    assert "unproven after 1 try, slot held" in text
    assert "tried    S1: no exit record" in text
    assert "suspect  pid 4242 (D) stuck --name '\\e[2J'  by session" in text


def test_unknown_outcome_says_what_a_person_can_do(home: CommandHome, ask: Ask) -> None:
    home.abandon(home.running(home.staff()))

    text = ask("work", "show", "w1").out

    assert "recovery_required" in text
    assert "nobody saw how it ended" in text
    assert f"(tenure --home {home.home} attempt reconcile w1.1)" in text


# --- work list


def test_list_goes_on_behind_its_cursor(home: CommandHome, ask: Ask) -> None:
    for _ in range(5):
        home.submit()

    pages: list[list[str]] = []
    cursor: int | None = 0
    while cursor is not None:
        page = ask("work", "list", "--limit", "2", "--after", str(cursor), "--json").json
        pages.append([work["id"] for work in page["items"]])
        cursor = page["next"]

    assert pages == [["w1", "w2"], ["w3", "w4"], ["w5"]]
    assert f"more: tenure --home {home.home} work list --after 2" in ask("work", "list", "--limit", "2").out


def test_list_of_some_states(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    home.end(home.running(worker), ending(0))
    home.running(worker)
    home.submit()

    def listed(*states: str) -> list[str]:
        words = [word for state in states for word in ("--state", state)]
        return [work["id"] for work in ask("work", "list", *words, "--json").json["items"]]

    assert listed("running") == ["w2"]
    assert listed("completed", "ready") == ["w1", "w3"]
    assert listed("cancelled") == []


@pytest.mark.req("V01", "C04")
def test_list_by_reason_scope_and_binding(home: CommandHome, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    home.staff()
    works = [home.submit(scope=scope) for scope in ("ops", "ops/backup", "opsy", "ops", "other")]
    waits = [Wait(works[0], Reason.NO_WORKER, None), Wait(works[3], Reason.CAPACITY_SCOPE, "ops")]
    home.as_leader(lambda tx: tx.hold_back(waits))
    named = NewWork("ops", "backup", None, (), None, None, "a test")
    home.store.write(lambda tx: tx.submit(named, "jobs"))

    def listed(*words: str) -> tuple[list[str], int | None]:
        said = ask("work", "list", *words, "--json").json
        return [work["id"] for work in said["items"]], said["next"]

    assert listed("--scope", "ops") == (["w1", "w2", "w4", "w6"], None)
    assert listed("--scope", "ops", "--limit", "2") == (["w1", "w2"], 2)
    assert listed("--scope", "ops", "--limit", "2", "--after", "2") == (["w4", "w6"], None)
    assert listed("--reason", "no_worker", "--reason", "capacity_scope") == (["w1", "w4"], None)
    assert listed("--reason", "no_worker", "--scope", "other") == ([], None)
    assert listed("--binding", "backup") == (["w6"], None)
    assert "scope ops is full" in ask("work", "show", "w4").out

    monkeypatch.setattr(work_list, "LOOKED_AT_MAX", 2)
    assert listed("--binding", "backup") == ([], 2)
    assert ask("work", "list", "--binding", "backup").out == f"more: tenure --home {home.home} work list --after 2\n"


def test_empty_list_says_how_to_begin(home: CommandHome, ask: Ask) -> None:
    assert ask("work", "list").out == f"no work yet; tenure --home {home.home} run -- echo hello makes some\n"
    assert ask("work", "list", "--json").json == {"items": [], "next": None, "unreadable": []}


# --- work logs


def test_logs_are_the_bytes_each_to_its_stream(home: CommandHome) -> None:
    key = home.launch(home.staff())
    home.say(key, b"out \xff\x1b[31m\n")
    home.say(key, b"err\n", "err")

    done = [home.argv("work", "logs", "w1", *words) for words in ([], ["--stderr"], ["--stdout"])]
    said = [subprocess.run(argv, capture_output=True, check=True, timeout=60) for argv in done]

    assert [(each.stdout, each.stderr) for each in said] == [
        (b"out \xff\x1b[31m\n", b"err\n"),
        (b"err\n", b""),
        (b"out \xff\x1b[31m\n", b""),
    ]


def test_logs_of_a_work_that_has_none_are_empty(home: CommandHome, ask: Ask) -> None:
    home.submit()

    assert ask("work", "logs", "w1") == Said(0, "", "")


@pytest.mark.parametrize(("raw", "shown"), [(False, b"\\e[31mred\r\n"), (True, b"\x1b[31mred\r\n")])
def test_terminal_gets_control_characters_only_when_asked_for(home: CommandHome, raw: bool, shown: bytes) -> None:
    key = home.launch(home.staff())
    home.say(key, b"\x1b[31mred\n")
    main, other = pty.openpty()
    try:
        argv = home.argv("work", "logs", "w1", *(["--raw"] if raw else []))
        subprocess.run(argv, stdout=other, stderr=other, check=True, timeout=60)
        assert os.read(main, 100) == shown  # the terminal itself makes \r\n of \n
    finally:
        os.close(main)
        os.close(other)


# --- work cancel


@pytest.mark.req("T05")
def test_cancel_of_what_waits_ends_it_at_once(home: CommandHome, ask: Ask) -> None:
    home.submit()

    assert ask("work", "cancel", "w1") == Said(0, "w1 cancelled; it was ready, nothing was running\n", "")
    assert home.states() == {"w1": WorkState.CANCELLED}

    again = ask("work", "cancel", "w1")
    assert (again.code, again.out) == (1, "")
    assert "w1 has already ended: cancelled" in again.err


@pytest.mark.req("T05")
def test_cancel_of_what_runs_orders_its_stop_and_says_so(home: CommandHome, ask: Ask) -> None:
    key = home.running(home.staff())

    said = ask("work", "cancel", "w1", "--reason", "wrong branch", "--json").json

    assert (said["state_before"], said["attempt"], said["exclusion"]) == ("running", "w1.1", "held")
    assert said["stop_order"]["why"] == "cancelled: wrong branch"
    order = home.store.read(lambda tx: tx.stop_orders())[0]
    assert (order.attempt_id, order.ordered_by) == (key.attempt_id, f"uid {os.getuid()} via work cancel")


# --- status, capacity


def test_status_of_a_home_where_nothing_is_up(home: CommandHome, ask: Ask) -> None:
    said = ask("status")

    assert said.code == 0
    assert said.out.startswith(f"nothing is up; start it: tenure --home {home.home} up\n")
    said = ask("status", "--json").json
    assert (said["coordinator"], said["workers"], said["last_pass"]) == (None, [], None)


def test_status_of_a_home_at_work(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    home.running(worker)
    home.abandon(home.running(worker))
    home.submit()

    said = ask("status", "--json").json

    assert said["coordinator"] == {"id": home.leader, "pid": 1, "generation": 1}
    (told,) = said["workers"]
    assert [told[name] for name in ("id", "pid", "slots", "in_use")] == [worker, 100, 64, 1]
    assert (said["works"]["running"], said["works"]["ready"]) == (2, 1)
    assert [attempt["id"] for attempt in said["running"]] == ["w1.1"]
    assert [attempt["id"] for attempt in said["recovery_required"]] == ["w2.1"]
    text = ask("status").out
    assert "up" not in text.splitlines()[0]
    assert "leads, generation 1" in text
    assert "live  1 of 64 slots in use" in text
    assert "needs you" in text


def test_status_shows_unproven_stops(home: CommandHome, ask: Ask) -> None:
    suspected(home)

    (order,) = ask("status", "--json").json["unproven_stops"]

    assert (order["attempt"], order["tries"]) == ("w1.1", 1)
    assert "its tree may live  1 try" in ask("status").out


@pytest.mark.req("V01", "X01")
def test_status_tells_what_is_being_cancelled_from_what_is_unproven(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    home.running(worker)
    home.end(home.running(worker), ending(7, proof=None))
    home.cancel(WorkId("w1"))

    said = ask("status", "--json").json

    assert [order["attempt"] for order in said["cancelling"]] == ["w1.1"]
    assert [order["attempt"] for order in said["unproven_stops"]] == ["w2.1"]
    assert said["capped"] == []
    text = ask("status").out
    assert text.index("cancelling") < text.index("stop not proven yet")


def test_lists_that_are_cut_off_are_named(home: CommandHome, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = home.staff()
    monkeypatch.setattr(status, "SHOWN_MAX", 1)
    for _ in range(2):
        home.running(worker)
        home.abandon(home.running(worker))

    said = ask("status", "--json").json

    assert said["capped"] == ["running", "recovery_required"]
    assert [len(said[name]) for name in said["capped"]] == [1, 1]
    assert "only the first 1 are shown: running, recovery_required" in ask("status").out


def test_dead_are_not_shown_though_their_rows_are_live(home: CommandHome, ask: Ask) -> None:
    """A row outlives its process; its lock does not."""
    worker = home.store.write(lambda tx: tx.next_incarnation("worker-1"))
    with IncarnationLock.take(home.home / "run" / f"{worker}.lock") as lock:
        who = identity(os.getpid(), home.clock.now().boot_id)
        registration = Registration(worker, "worker-1", who, None, lock.device, lock.inode, 4, ("shell@1",))
        home.store.write(lambda tx: tx.register_worker(registration))
        assert [each["id"] for each in ask("status", "--json").json["workers"]] == [worker]

    assert ask("status", "--json").json["workers"] == []


def test_reads_wait_for_no_writer(home: CommandHome, ask: Ask) -> None:
    home.running(home.staff())
    with (home.home / "queue.lock").open("r+b") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        for words in (["status"], ["capacity"], ["work", "list"], ["work", "show", "w1"], ["work", "logs", "w1"]):
            assert ask(*words).code == 0
