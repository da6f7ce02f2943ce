"""Cases in which other systems went wrong, tried from outside as a user would: one `tenure up`, its commands, real jobs."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.up_sites import UpSite, alive
from tests.support.waiting import wait_until

CONFIG = """\
[settings]
job_concurrency = 1
lease = "5s"

[binding.short]
command = ["sleep", "300"]
timeout = "1s"
grace = "1s"

[binding.gated]
command = ["true"]
approval = true

[[budget]]
unit = "turns"
max = 1
per = "scope"
period = "life"
scope = "costly"

[binding.capped]
command = ["sh", "-c", "yes 0123456 | head -c 1000000; echo END"]
output_max = "64KiB"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpSite]:
    site = UpSite(tmp_path_factory.mktemp("cases"), CONFIG)
    with site.up():
        yield site


# --- STOP


@pytest.mark.req("X01", "R12")
def test_cancel_ends_the_whole_tree_before_it_says_stopped(site: UpSite) -> None:
    """C033: the shell is not the work."""
    script = "echo $$; sleep 600 & echo $!; sh -c 'sleep 600 & echo $!; wait' & wait"
    work = site.submit("--", "sh", "-c", script)
    wait_until(lambda: len(site.printed(work).split()) == 3, "every process of the job has told its pid")
    pids = [int(word) for word in site.printed(work).split()]
    assert all(alive(pid) for pid in pids)

    said = site.json("work", "cancel", work, "--wait", "30s")

    assert (said["exclusion"], said["cancellation"]["result"]) == ("released", f"stopped {said['exclusion_proof']}")
    assert not any(alive(pid) for pid in pids)
    stages = [said["cancellation"][name] for name in ("requested_at", "acknowledged_at", "settled_at")]
    assert stages == sorted(stages)
    again = site.submit("--", "true")
    assert site.await_state(again, "completed", "failed") == "completed"


def test_run_ends_though_a_background_child_keeps_its_output(site: UpSite) -> None:
    """C037: what the job leaves behind is ended, and is no reason to wait."""
    said = site.call("run", "--", "sh", "-c", "sleep 300 & echo $!")

    assert said.returncode == 0
    assert not alive(int(said.stdout))


# --- OUTPUT


@pytest.mark.parametrize("size", [0, 65_535, 65_536, 300_000])
def test_line_of_any_length_comes_whole(site: UpSite, size: int) -> None:
    """C042: and without an end of the line."""
    said = site.call("run", "--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x")
    assert (said.returncode, len(said.stdout)) == (0, size)


def test_output_that_is_no_text_is_kept_as_it_is(site: UpSite) -> None:
    """C044: recording the end does not depend on what the job wrote."""
    odd = b"a\0b \xed\xa0\x80 \xc3"
    path = site.folder / "odd"
    path.write_bytes(odd)
    work = site.submit("--", "sh", "-c", f"cat {path}; cat {path} >&2; exit 3")

    assert site.await_state(work, "completed", "failed") == "failed"
    said = site.call("work", "logs", work)
    assert (said.stdout, said.stderr) == (odd, odd)
    assert site.json("attempt", "show", f"{work}.1")["exit_code"] == 3


def test_control_sequences_reach_a_terminal_as_text_and_raw_as_they_are(site: UpSite) -> None:
    """C046: title, clipboard, screen; a reason that looks like more lines of ours."""
    work = site.submit("--", "printf", r"\033]0;x\007\033[2J\033]52;c;QQ==\007")
    site.await_state(work, "completed")
    main, other = pty.openpty()
    try:
        subprocess.run(site.argv("work", "logs", work), stdout=other, stderr=other, check=True, timeout=60)
        assert os.read(main, 1000) == rb"\e]0;x\x07\e[2J\e]52;c;QQ==\x07"
    finally:
        os.close(main)
        os.close(other)
    assert site.printed(work) == b"\x1b]0;x\x07\x1b[2J\x1b]52;c;QQ==\x07"

    forged = site.submit("--", "sleep", "300")
    site.await_state(forged, "running")
    said = site.call("work", "cancel", forged, "--wait", "20s", "--reason", "no\n\x1b[1mw9 completed\x1b[0m")
    assert b"\x1b" not in said.stdout
    assert b"no\\n\\e[1mw9 completed" in site.call("attempt", "show", f"{forged}.1").stdout


def test_capped_output_keeps_its_end_and_says_what_is_missing(site: UpSite) -> None:
    said = site.call("run", "--binding", "capped")
    assert said.returncode == 0
    assert said.stdout.endswith(b"0123456\nEND\n")
    work = site.json("work", "list", "--binding", "capped", "--limit", "1000")["items"][-1]["id"]
    printed = b"0123456\n" * 125_000 + b"END\n"

    for words in ((), ("--follow",), ("--raw",)):
        said = site.call("work", "logs", work, *words)
        kept = said.stdout
        assert kept == printed[-len(kept) :]
        assert 64 * 1024 <= len(kept) < 64 * 1024 + 4096 * 2
        assert (
            said.stderr == f"tenure: standard output: {len(printed) - len(kept)} bytes dropped before this\n".encode()
        )


# --- SLOT


@pytest.mark.req("C03", "C05", "O05")
def test_slot_comes_free_however_its_holder_ends(site: UpSite) -> None:
    """C053: one slot; cancelled, out of time, killed, not there to be run: each time the next one starts."""
    first, second, third, fourth, last = (
        site.submit("--", "sleep", "300"),
        site.submit("short"),
        site.submit("--", "sleep", "300"),
        site.submit("--", "/no/such/program"),
        site.submit("--", "true"),
    )
    site.await_state(first, "running")
    wait_until(lambda: site.pool()["waiting"] == 4, "the others wait for the pool")
    assert site.pool()["holders"] == [f"{first}.1"]

    site.call("work", "cancel", first, "--wait", "20s")
    site.await_state(second, "failed")
    site.await_state(third, "running")
    wait_until(lambda: site.json("attempt", "show", f"{third}.1")["state"] == "running", "it runs")
    record = json.loads((site.home / "attempts" / f"{third}.1.1" / "child.json").read_text())
    os.kill(record["child"]["pid"], signal.SIGKILL)
    site.await_state(last, "completed")

    ends = [site.json("attempt", "show", f"{work}.1") for work in (first, second, third, fourth, last)]
    assert [end["state"] for end in ends] == ["cancelled", "timed_out", "failed", "failed", "succeeded"]
    assert [end["exclusion"] for end in ends] == ["released"] * 5
    assert (ends[2]["signal"], ends[3]["failure"]) == (9, "permanent")
    assert (site.pool()["in_use"], site.pool()["waiting"]) == (0, 0)


@pytest.mark.req("C03", "G03", "G04", "B04")
def test_what_a_gate_or_a_budget_holds_takes_no_slot_and_gives_none_back(site: UpSite) -> None:
    """C053, its last two: with one slot, what is held first starts later or never, and hides nothing behind it."""
    refused, admitted = site.submit("gated"), site.submit("gated")
    spent, over = (site.submit("--scope", "costly", "--", "true") for _ in range(2))
    last = site.submit("--", "true")

    for work, state in (
        (refused, "held"),
        (admitted, "held"),
        (spent, "completed"),
        (over, "held"),
        (last, "completed"),
    ):
        site.await_state(work, state)

    assert (site.pool()["in_use"], site.pool()["waiting"]) == (0, 0)
    assert [each["subject"] for each in site.json("status")["needs_you"]] == [refused, admitted, over]
    assert site.call("gate", "refuse", refused, "--reason", "no").returncode == 0
    assert site.state(refused) == "cancelled"
    assert site.call("gate", "admit", admitted).returncode == 0
    assert site.call("work", "release", over).returncode == 0
    for work in (admitted, over):
        site.await_state(work, "completed")
    assert site.json("work", "show", refused)["attempts"] == []
    assert (site.pool()["in_use"], site.pool()["waiting"]) == (0, 0)


# --- CANCEL


@pytest.mark.req("X01", "X02", "T05")
@pytest.mark.parametrize("length", ["0", "0.05", "300"])
def test_cancel_is_true_whatever_it_meets(site: UpSite, length: str) -> None:
    """C059: cancelled means gone, and whoever came too late is told so."""
    mark = site.folder / f"mark-{length}"
    for _ in range(4):
        work = site.submit("--", "sh", "-c", f"echo $$ >> {mark}; sleep {length}")
        said = site.call("work", "cancel", work, "--wait", "30s", "--json")

        pids = [int(word) for word in mark.read_text().split()] if mark.exists() else []
        assert not any(alive(pid) for pid in pids)
        assert len(pids) <= 1
        if said.returncode == 0:
            assert json.loads(said.stdout)["state"] == site.state(work) == "cancelled"
        else:
            assert b"already ended" in said.stderr
            assert site.state(work) == "completed"
        with contextlib.suppress(FileNotFoundError):
            mark.unlink()


# --- HOST


def test_doctor_has_no_complaint_about_a_home_at_work(site: UpSite) -> None:
    said = json.loads(site.call("doctor", "--json").stdout)

    assert {each["code"] for each in said["findings"] if each["severity"] in {"error", "unknown"}} == set()
