"""Whatever is wrong in what programs say, through both doors: a typed refusal, the rest counts, the end is recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.model.declaration import DECLARATIONS_MAX
from tests.support.up_sites import UpSite

AGENT = r"""
import sys
lines = [
    b"no json",
    b'{"type": "log", "text": "\xff"}',
    b'{"type": "log", "text": "\x00"}',
    b'{"type": "log", "text": "\\u0000"}',
    b'{"type": "result", "outcome": "completed", "summary": "\\ud800"}',
    b'{"type": "turn", "status": "done", "comment": "' + b"x" * 70000 + b'"}',
    b'{"type": "usage", "units": {"usd": -1}}',
    b'{"type": "usage", "units": {"usd": NaN}}',
    b'{"type": "usage", "units": {"turns": 1}}',
    b'{"type": "result", "outcome": "completed", "summary": "' + b"x" * 9000 + b'"}',
    b'{"type": "wait", "timer": "0001-01-01T00:00:00+23:00"}',
    b'{"type": "later"}',
    b'{"type": "consumed", "inputs": [999]}',
    b'{"type": "usage", "units": {"usd": 0.5}}',
]
lines += [b'{"type": "turn", "status": "t%d"}' % number for number in range(258)]
lines += [LAST]
sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
"""
FINISHED = 'b\'{"type": "result", "outcome": "completed", "summary": "all the same"}\''
PAST = 'b\'{"type": "result", "outcome": "failed", "retry": {"reset_at": "2001-01-01T00:00:00Z"}}\''

JOB = r"""
import json, os, socket, subprocess, sys
folder = os.open(os.environ["TENURE_BELT"], os.O_RDONLY)
def ask(line):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.settimeout(30)
        door.connect(f"/proc/self/fd/{folder}/belt.sock")
        try:
            door.sendall(line)
        except OSError:
            pass
        return json.loads(door.makefile("rb").readline())
count = 0
def say(kind, body, **more):
    global count
    count += 1
    asked = {"token": os.environ["TENURE_TOKEN"], "key": f"k-{count}", "kind": kind, "body": body, **more}
    answer = ask(json.dumps(asked).encode() + b"\n")
    return answer["error"]["code"] if "error" in answer else "recorded"
def tool(*words):
    return subprocess.run([os.environ["TENURE_COMMAND"], "tool", *words], stderr=subprocess.DEVNULL).returncode
read = subprocess.run([os.environ["TENURE_COMMAND"], "tool", "input"], stdout=subprocess.PIPE).stdout
own = [str(json.loads(line)["number"]) for line in read.splitlines()]
print(json.dumps({
    "malformed": ask(b"{\n")["error"]["code"],
    "oversize": ask(b"x" * 300000 + b"\n")["error"]["code"],
    "wrong token": say("turn", {"status": "done"}, token="guess"),
    "NUL": say("turn", {"status": "done", "comment": "a\0b"}),
    "half a pair": say("outcome", {"kind": "completed", "summary": "\ud800"}),
    "too long": say("outcome", {"kind": "completed", "summary": "x" * 9000}),
    "over 64 KiB": say("outcome", {"kind": "completed", "artifacts": ["ä" * 1000] * 40}),
    "unit": say("usage", {"units": {"turns": 1}}),
    "amount": say("usage", {"units": {"usd": -1}}),
    "kind": say("shout", {}),
    "before the calendar": say("wait", {"timer": "0001-01-01T00:00:00+23:00"}),
    "stranger": say("consumed", {"inputs": [999]}),
    "too many": [say("turn", {"status": f"t{number}"}) for number in range(258)][-3:],
    "still": say("usage", {"units": {"usd": 0.5}}),
    "tool, bad unit": tool("usage", "attempts=1"),
    "tool, bad status": tool("turn", "Not Lower"),
    "tool, no text": tool("turn", "done", "--comment", b"\xff"),
    "tool, no number": tool("usage", "usd=lots"),
    "tool, stranger": tool("input", "--took", "999"),
    "tool, its own": tool("input", "--took", *own),
    "tool, a unit twice": tool("usage", "usd=1", "usd=2"),
    "tool, good": tool("outcome", *sys.argv[1:]),
}))
"""
TOLD = {
    "malformed": "declaration_invalid",
    "oversize": "declaration_invalid",
    "wrong token": "token_refused",
    "NUL": "declaration_invalid",
    "half a pair": "declaration_invalid",
    "too long": "declaration_invalid",
    "over 64 KiB": "declaration_invalid",
    "unit": "usage_invalid",
    "amount": "usage_invalid",
    "kind": "declaration_invalid",
    "before the calendar": "declaration_invalid",
    "stranger": "not_handed",
    "too many": ["recorded", "too_many", "too_many"],
    "still": "recorded",
    "tool, bad unit": 1,
    "tool, bad status": 1,
    "tool, no text": 2,
    "tool, no number": 1,
    "tool, stranger": 1,
    "tool, its own": 0,
    "tool, a unit twice": 2,
    "tool, good": 0,
}

CONFIG = f"""
[binding.agent]
executor = "agent"
command = ["{sys.executable}", "FOLDER/agent.py"]
[binding.past]
executor = "agent"
command = ["{sys.executable}", "FOLDER/past.py"]
[binding.job]
command = ["{sys.executable}", "FOLDER/job.py", "completed", "--summary", "all the same"]
[binding.late]
command = ["{sys.executable}", "FOLDER/job.py", "failed", "--retry-at", "2001-01-01T00:00:00Z"]
"""
EARLIER = ["not_utf8", "nul", "nul", "surrogate", "oversize", "invalid", "not_json", "invalid", "invalid", "invalid"]


@pytest.fixture
def site(tmp_path: Path) -> UpSite:
    (tmp_path / "agent.py").write_text(AGENT.replace("LAST", FINISHED))
    (tmp_path / "past.py").write_text(AGENT.replace("LAST", PAST))
    (tmp_path / "job.py").write_text(JOB)
    return UpSite(tmp_path, CONFIG.replace("FOLDER", str(tmp_path)))


def attempt(site: UpSite, work: str) -> Any:
    return site.json("attempt", "show", f"{work}.1")


def applied(site: UpSite, work: str) -> Any:
    [found] = [one["data"] for one in attempt(site, work)["events"] if one["kind"] == "outcome.applied"]
    return found


@pytest.mark.req("O02", "O06", "O10", "O15", "B02")
def test_an_agent_s_bad_lines_are_refused_each_by_its_code_and_the_rest_counts(site: UpSite) -> None:
    with site.up("--workers", "1"):
        work, past = site.submit("agent"), site.submit("past")
        site.await_state(work, "completed")
        site.await_state(past, "failed", "backoff")

    ended = attempt(site, work)
    stream = ended["stream"]
    assert (stream["refused"], stream["unknown"]) == (14, {"later": 1})
    assert [one["code"] for one in stream["refusals"]] == ["not_json", *EARLIER, "not_handed", "too_many", "too_many"]
    assert [one["line"] for one in stream["refusals"]][-3:] == [
        13,
        14 + DECLARATIONS_MAX + 1,
        14 + DECLARATIONS_MAX + 2,
    ]
    assert stream["refusals"][-3]["why"] == f"consumed: {work}.1 was never handed input 999"
    assert (ended["state"], ended["usage"]) == ("succeeded", {"usd": "0.5"})
    assert applied(site, work)["summary"] == "all the same"
    hinted = attempt(site, past)
    assert hinted["state"] == "failed"
    assert hinted["error"] == "declared failed; its retry hint lies in the past"
    assert "agents.lines" in site.call("doctor").stdout.decode()


@pytest.mark.req("O15", "B02", "O10")
def test_what_a_job_says_wrongly_by_its_belt_is_refused_each_by_its_code_and_the_rest_counts(site: UpSite) -> None:
    with site.up("--workers", "1"):
        work, late = site.submit("job", "--input", "x"), site.submit("late", "--input", "x")
        site.await_state(work, "completed")
        site.await_state(late, "failed", "backoff")

    assert json.loads(site.printed(work)) == TOLD
    ended = attempt(site, work)
    assert (ended["state"], ended["usage"]["usd"]) == ("succeeded", "0.5")
    assert applied(site, work)["summary"] == "all the same"
    assert [one["code"] for one in ended["stream"]["refusals"]] == ["too_many", "too_many"], "a person sees it as well"
    assert "by its belt (too_many" in site.call("doctor").stdout.decode()
    assert attempt(site, late)["error"] == "declared failed; its retry hint lies in the past"


@pytest.mark.req("E03")
def test_an_input_that_is_too_large_is_refused_at_the_door_and_nothing_of_it_is_kept(site: UpSite) -> None:
    (site.folder / "big").write_bytes(b"x" * (1024 * 1024 + 1))
    before = site.json("events")["items"]

    said = site.call("submit", "agent", "--input", f"@{site.folder / 'big'}")

    assert said.returncode == 2
    assert b"1 MiB" in said.stderr or b"1048576" in said.stderr
    assert site.json("events")["items"] == before
    (site.folder / "big").write_bytes(b"x" * 1024 * 1024)
    assert site.call("submit", "agent", "--input", f"@{site.folder / 'big'}").returncode == 0, "control"
