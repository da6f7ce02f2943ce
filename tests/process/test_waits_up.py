"""Programs that speak by their tool belt, park and are woken, with real processes; and deaths around it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from chaos.harness import DRILL_ID
from shared.boundary import Boundary, Side
from tests.support.checkout import tool
from tests.support.small_disks import small_disk, take_all_files
from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

TOOL = str(tool("tenure"))

CONFIG = f"""
[binding.turns]
command = ["sh", "-c", '"$0" tool turn done --comment "all good"; "$0" tool outcome completed --summary ok; exit 3', "{TOOL}"]
[binding.waits]
command = ["sh", "-c", '''
if [ -n "$TENURE_WAKE" ]; then echo "woken $TENURE_WAKE"; exit 0; fi
echo first
"$0" tool wait --event review.given --correlate pr-7 --resume''', "{TOOL}"]
[binding.dozes]
command = ["sh", "-c", '[ -n "$TENURE_WAKE" ] || "$0" tool wait --timer 1s --resume', "{TOOL}"]
[binding.hands_on]
command = ["sh", "-c", 'if [ "$TENURE_ATTEMPT" = "$TENURE_WORK.1" ]; then "$0" tool wait --event go; else cat; fi', "{TOOL}"]
[binding.reads]
command = ["sh", "-c", '"$0" tool input', "{TOOL}"]
[binding.guesses]
command = ["sh", "-c", 'printf %s "$TENURE_TOKEN" > "$TENURE_HOME/../token"; TENURE_TOKEN=guess "$0" tool turn done; echo "said $?"', "{TOOL}"]
[binding.late]
command = ["sh", "-c", 'touch "$TENURE_HOME/../started"; while [ ! -e "$TENURE_HOME/../go" ]; do sleep 0.05; done; "$0" tool turn done', "{TOOL}"]
"""


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    return UpSite(tmp_path, CONFIG)


def armed(site: UpSite, boundary: Boundary, side: Side) -> dict[str, str]:
    (site.home / "drill").write_text(DRILL_ID)
    return {"TENURE_ARM": f"{boundary}:{side}:KILL", "TENURE_DRILL": DRILL_ID}


def hit_and_disarmed(site: UpSite) -> None:
    """Somebody was killed there; whoever starts from now on goes past it."""
    wait_until((site.home / "drill.log").exists, "the boundary was reached")
    (site.home / "drill").unlink()


def kinds(site: UpSite) -> list[str]:
    return [event["kind"] for event in site.json("events", "--limit", "1000")["items"]]


def attempts(site: UpSite, work: str) -> list[tuple[str, int]]:
    return [(one["state"], one["epoch"]) for one in site.json("work", "show", work)["attempts"]]


def publish(site: UpSite, kind: str, *words: str) -> int:
    said = site.call("event", "publish", kind, *words)
    assert said.returncode == 0, said.stderr
    return int(said.stdout)


@pytest.mark.req("O06", "O15")
def test_a_job_ends_its_turn_and_says_how_it_ended(site: UpSite) -> None:
    with site.up():
        work = site.submit("turns", "--correlate", "pr-7", "--correlate", "pr-8")
        site.await_state(work, "completed")

    items = site.json("events", "--limit", "1000")["items"]
    told = [event["data"] for event in items if event["kind"] == "execution.turn"]
    assert [(one["correlate"], one["status"], one["comment"]) for one in told] == [
        ("pr-7", "done", "all good"), ("pr-8", "done", "all good"),
    ]  # fmt: skip


@pytest.mark.req("O08", "E10")
def test_a_job_parks_holds_no_slot_and_goes_on_when_it_is_woken(site: UpSite) -> None:
    with site.up():
        work = site.submit("waits")
        site.await_state(work, "waiting")
        assert site.pool()["in_use"] == 0
        assert site.printed(work) == b"first\n"
        publish(site, "review.given", "--correlate", "pr-8")
        seq = publish(site, "review.given", "--correlate", "pr-7", "--data", '{"ok": true}')
        site.await_state(work, "completed")

    assert attempts(site, work) == [("succeeded", 2)]
    first, last = site.printed(work).decode().splitlines()
    assert first == "first"
    assert json.loads(last.removeprefix("woken ")) == {
        "seq": seq, "type": "review.given", "correlate": "pr-7", "data": {"ok": True},
    }  # fmt: skip


@pytest.mark.req("O08", "F01")
def test_a_job_whose_resume_the_host_cannot_launch_goes_on_once_it_can(tmp_path: Path) -> None:
    """The store has room, the launch has none: the same attempt is resumed later, and does not begin from scratch."""
    with small_disk(tmp_path / "disk", "64m", files=400) as disk:
        site = UpSite(disk, CONFIG)
        with site.up():
            work = site.submit("waits")
            site.await_state(work, "waiting")
            took = take_all_files(disk)
            seq = publish(site, "review.given", "--correlate", "pr-7")
            wait_until(lambda: "attempt.put_off" in kinds(site), "its resume has come to nothing")
            shown = site.json("work", "show", work)
            told = site.call("work", "show", work).stdout.decode()
            for path in took:
                path.unlink()
            site.await_state(work, "completed")

        assert (shown["state"], shown["waits_for"]["woken_by"]) == ("waiting", seq)
        assert shown["waits_for"]["resumed_at"] is not None
        assert "another resume, at" in told
        assert "No space left on device" in told
        [(state, epoch)] = attempts(site, work)
        assert (state, epoch) == ("succeeded", 2 + kinds(site).count("attempt.put_off"))
        first, woken = site.printed(work).decode().splitlines()
        assert (first, json.loads(woken.removeprefix("woken "))["seq"]) == ("first", seq)


@pytest.mark.req("O08")
def test_a_timer_wakes_a_job(site: UpSite) -> None:
    with site.up():
        work = site.submit("dozes")
        site.await_state(work, "completed")

    assert attempts(site, work) == [("succeeded", 2)]
    assert kinds(site).count("wait.elapsed") == 1


@pytest.mark.req("O08")
def test_a_wait_without_resume_is_the_next_attempt_s(site: UpSite) -> None:
    with site.up():
        work = site.submit("hands_on")
        site.await_state(work, "waiting")
        publish(site, "go", "--data", '"now"')
        site.await_state(work, "completed")

    assert attempts(site, work) == [("handed_off", 1), ("succeeded", 1)]
    assert json.loads(site.printed(work))["data"] == "now"


@pytest.mark.req("O15")
def test_a_job_reads_its_inputs(site: UpSite) -> None:
    with site.up():
        work = site.submit("reads", "--input", "hello")
        site.await_state(work, "completed")

    assert json.loads(site.printed(work)) == {"number": 1, "pending": False, "text": "hello"}


@pytest.mark.req("O15", "E10")
def test_a_wrong_token_is_refused_and_the_right_one_is_stored_nowhere(site: UpSite) -> None:
    with site.up():
        work = site.submit("guesses")
        site.await_state(work, "completed")

    assert site.printed(work) == b"said 1\n"
    assert "execution.turn" not in kinds(site)
    assert site.log.read_text().count("belt.token_refused") == 1
    stored = b"".join(path.read_bytes() for path in site.home.rglob("*") if path.is_file())
    token = (site.folder / "token").read_bytes()
    assert len(token) == 64
    assert token not in stored + site.log.read_bytes()
    assert hashlib.sha256(token).hexdigest().encode() in stored, "control: its digest is"


@pytest.mark.req("O08", "T05")
def test_a_parked_work_is_cancelled_at_once(site: UpSite) -> None:
    with site.up():
        work = site.submit("waits")
        site.await_state(work, "waiting")
        assert site.call("work", "cancel", work, "--wait", "20s").returncode == 0
        publish(site, "review.given", "--correlate", "pr-7")

    assert site.state(work) == "cancelled"
    assert attempts(site, work) == [("cancelled", 1)]


@pytest.mark.req("O08", "M01")
@pytest.mark.parametrize("side", Side)
def test_a_worker_killed_around_the_park_parks_the_job_once(site: UpSite, side: Side) -> None:
    with site.up(env=armed(site, Boundary.PARK_COMMIT, side)):
        work = site.submit("waits")
        hit_and_disarmed(site)
        site.await_state(work, "waiting")
        publish(site, "review.given", "--correlate", "pr-7")
        site.await_state(work, "completed")

    assert Boundary.PARK_COMMIT in (site.home / "drill.log").read_text()
    assert kinds(site).count("attempt.parked") == 1
    assert site.printed(work).count(b"woken") == 1


@pytest.mark.req("O15", "M01")
@pytest.mark.parametrize("side", Side)
def test_a_worker_killed_around_a_declaration_records_it_once(site: UpSite, side: Side) -> None:
    """The program asks again until somebody answers: the next worker, who has bound its belt anew."""
    with site.up(env=armed(site, Boundary.DECLARE_COMMIT, side)):
        work = site.submit("late")
        wait_until((site.folder / "started").exists, "the job runs")
        (site.folder / "go").touch()
        hit_and_disarmed(site)
        site.await_state(work, "completed")

    assert Boundary.DECLARE_COMMIT in (site.home / "drill.log").read_text()
    told = kinds(site)
    assert (told.count("declaration.recorded"), told.count("execution.turn")) == (1, 1)


@pytest.mark.req("O08", "M01", "L01")
@pytest.mark.parametrize("side", Side)
def test_a_coordinator_killed_around_a_wake_resumes_once(site: UpSite, side: Side) -> None:
    with site.up(env=armed(site, Boundary.WAKE_COMMIT, side)):
        work = site.submit("waits")
        site.await_state(work, "waiting")
        publish(site, "review.given", "--correlate", "pr-7")
        hit_and_disarmed(site)
        site.await_state(work, "completed")

    assert Boundary.WAKE_COMMIT in (site.home / "drill.log").read_text()
    assert kinds(site).count("attempt.woken") == 1
    assert site.printed(work).count(b"woken") == 1


@pytest.mark.req("O08", "K04")
def test_what_is_parked_outlives_everybody(site: UpSite) -> None:
    with site.up():
        work = site.submit("waits")
        site.await_state(work, "waiting")
    publish(site, "review.given", "--correlate", "pr-7")
    assert site.state(work) == "waiting"

    with site.up():
        site.await_state(work, "completed")


@pytest.mark.req("O08", "M01")
@pytest.mark.parametrize(("side", "counted"), [(Side.BEFORE, 0), (Side.AFTER, 1)])
def test_a_publisher_killed_at_its_commit_published_or_did_not(site: UpSite, side: Side, counted: int) -> None:

    env = {**os.environ, **armed(site, Boundary.EVENT_COMMIT, side)}
    done = subprocess.run(site.argv("event", "publish", "go"), env=env, check=False, capture_output=True)

    assert done.returncode == -9
    assert kinds(site).count("event.published") == counted


@pytest.mark.req("O15")
def test_the_tool_outside_of_a_job_says_so(site: UpSite) -> None:
    said = site.call("tool", "turn", "done")

    assert said.returncode == 2
    assert b"no job of tenure" in said.stderr
    assert b"called by a job" in said.stderr


@pytest.mark.req("O08", "V01")
def test_show_says_what_a_work_waits_for(site: UpSite) -> None:
    with site.up():
        work = site.submit("waits", "--correlate", "pr-7")
        site.await_state(work, "waiting")
        shown = site.json("work", "show", work)
        text = site.call("work", "show", work).stdout.decode()
        site.call("work", "cancel", work)

    assert (shown["waits_for"]["event"], shown["waits_for"]["correlate"], shown["correlate"]) == (
        "review.given", "pr-7", ["pr-7"],
    )  # fmt: skip
    assert "event review.given about pr-7 since" in text
