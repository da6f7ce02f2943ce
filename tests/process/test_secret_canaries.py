"""A secret by every door there is: found in the environment of its own job, and nowhere else. Case C072, E10.

Searched are every file of the home and of its backup, what `up` logs, what every command says, and every process's command line. What
is documented as stored (`--env`, `--input`) is in the store, and shown by no command.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared import cli
from tests.support.up_sites import UpSite
from tests.support.waiting import wait_until

FILE, VARIABLE, PLAIN, INPUT = (f"s3cr3t-canary-{door}" for door in ("file", "variable", "plain", "input"))
SECRETS = (FILE, VARIABLE)
"""By reference: stored nowhere. The others are stored, and shown nowhere."""
STEADY = "echo $$ > NOTES/pid; read -r line < NOTES/valve; exit 3"
SPEAKER = """
echo "$TENURE_TOKEN" >> NOTES/tokens
"$TENURE_COMMAND" tool input > NOTES/inputs
TENURE_TOKEN=wrong "$TENURE_COMMAND" tool turn refused && exit 9
"$TENURE_COMMAND" tool turn review --comment done && "$TENURE_COMMAND" tool usage tokens=5 || exit 8
[ -n "$TENURE_WAKE" ] && exit 0
"$TENURE_COMMAND" tool wait --event go.on --resume
"""


def config(notes: Path) -> str:
    def job(name: str, script: str, *more: str) -> str:
        text = script.replace("NOTES", str(notes)).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        head = [f"[binding.{name}]", f'command = ["sh", "-c", "{text}"]', *more, f"[binding.{name}.secrets]"]
        return "\n".join([*head, f'KEY = "file:{notes / "key"}"', 'WORD = "env:CANARY"', ""])

    steady = job("steady", STEADY)
    return f"""
[settings]
lease = "6s"
{steady}
{job("late", "sleep 60", 'timeout = "1s"', 'grace = "1s"')}
{job("speaker", SPEAKER)}
{job("agent", 'read -r line; echo "$line" > NOTES/start; exit 0', 'executor = "agent"')}
[binding.broken]
command = ["./nosuch"]
[binding.broken.secrets]
KEY = "file:{notes / "key"}"
[binding.unreadable]
command = ["true"]
[binding.unreadable.secrets]
KEY = "file:{notes / "open"}"
[[budget]]
unit = "tokens"
max = 3
per = "work"
period = "life"
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder outside the home: the secret, and what jobs note."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, mode in (("key", 0o600), ("open", 0o644)):
        (folder / name).write_text(FILE)
        (folder / name).chmod(mode)
    os.mkfifo(folder / "valve")
    return folder


@pytest.fixture
def site(tmp_path: Path, notes: Path) -> UpSite:
    return UpSite(tmp_path, config(notes))


@pytest.fixture
def valve(notes: Path) -> Iterator[int]:
    hold = os.open(notes / "valve", os.O_RDWR)
    yield hold
    os.close(hold)


def files_with(folder: Path, word: str) -> list[str]:
    """Files below a folder that hold these bytes."""
    return [str(path) for path in sorted(folder.rglob("*")) if path.is_file() and word.encode() in path.read_bytes()]


def processes_with(word: str, name: str) -> list[int]:
    """Processes in whose `cmdline` or `environ` it is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                if word.encode() in (entry / name).read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def everything_said(site: UpSite, capfd: pytest.CaptureFixture[str]) -> str:
    """What every command that reads says, as text and as JSON, about everything. Called here, as that takes a tenth of the time."""
    works: list[dict[str, Any]] = site.json("work", "list")["items"]
    attempts = [each["id"] for work in works for each in site.json("work", "show", work["id"])["attempts"]]
    lines = [
        ["status"],
        ["doctor"],
        ["capacity"],
        ["budget", "list"],
        ["gate", "list"],
        ["binding", "list"],
        ["work", "list"],
    ]
    lines += [["events", "--limit", "10000"], ["store", "check"]]
    lines += [["work", "show", work["id"]] for work in works] + [["attempt", "show", name] for name in attempts]
    for line in [*lines, *([*line, "--json"] for line in lines), *(["work", "logs", work["id"]] for work in works)]:
        cli.main(["--home", str(site.home), *line])
    said = capfd.readouterr()
    return said.out + said.err


@pytest.mark.req("E10")
def test_a_secret_is_in_the_environment_of_its_job_and_nowhere_else(
    site: UpSite, notes: Path, valve: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with site.up("--verbose", env={**os.environ, "CANARY": VARIABLE}):
        steady = site.submit("steady", "--env", f"PLAIN={PLAIN}", "--input", INPUT)
        others = [site.submit(name) for name in ("late", "broken", "agent")]
        no_secret = site.submit("unreadable")
        speaker = site.submit("speaker", "--input", INPUT)
        wait_until(lambda: (notes / "pid").exists() and (notes / "pid").read_text() != "", "the job runs")
        job = int((notes / "pid").read_text())
        for word in SECRETS:
            assert job in processes_with(word, "environ"), "control: it has what it is to have"
            assert processes_with(word, "cmdline") == []
        jobs = processes_with("TENURE_ATTEMPT=", "environ")
        assert set(processes_with(FILE, "environ")) <= {*jobs, *processes_with("TENURE_ATTEMPT=", "environ")}
        site.await_state(speaker, "waiting")
        holder = site.json("work", "show", steady)["attempts"][0]["worker"]
        [pid] = [worker["pid"] for worker in site.json("status")["workers"] if worker["id"] == holder]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: site.json("work", "show", steady)["attempts"][0]["epoch"] == 2, "it was taken over")
        assert site.call("event", "publish", "go.on").returncode == 0
        wait_until(lambda: site.json("work", "show", speaker)["reason"] == "over_budget", "it used more than it may")
        assert site.call("work", "release", speaker).returncode == 0
        for work in (speaker, *others):
            site.await_state(work, "completed", "failed", "held")
        assert site.call("store", "backup", str(site.folder / "copy.db")).returncode == 0
        said = everything_said(site, capfd)
        os.write(valve, b"go\n")
        site.await_state(steady, "failed")
        said += everything_said(site, capfd)
        assert processes_with(VARIABLE, "cmdline") == processes_with(FILE, "cmdline") == []

    tokens = (notes / "tokens").read_text().split()
    assert len(tokens) == 2, "one for each launch of the one that went on"
    for word in (*SECRETS, *tokens):
        assert files_with(site.home, word) == [], word
        assert word not in said
        assert word.encode() not in site.log.read_bytes() + (site.folder / "copy.db").read_bytes()
    assert "belt.token_refused" in site.log.read_text(), "control: what was refused was told"
    for word in (PLAIN, INPUT):
        assert files_with(site.home, word) != [], "control: it is documented as stored, and the search finds it"
        assert word not in said
        assert word.encode() not in site.log.read_bytes()
    assert "PLAIN=***" in said
    assert "KEY from file:" in said, "control: its reference is told"
    assert "No such file" in site.json("work", "show", others[1])["attempts"][0]["error"]
    assert "run environment unavailable" in site.json("work", "show", no_secret)["attempts"][0]["error"]


def test_a_drill_reports_nothing_of_the_environment_it_was_called_in(tmp_path: Path, site: UpSite) -> None:
    import subprocess

    from tests.support.checkout import tool

    result, page = tmp_path / "result.json", tmp_path / "page.html"
    env = {**os.environ, "CANARY": VARIABLE}
    words = [str(tool("tenure")), "drill", "simulate", "--seeds", "2", "--result", str(result)]
    done = subprocess.run(words, env=env, capture_output=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = subprocess.run(
        [str(tool("tenure")), "drill", "report", str(result), "--page", str(page)],
        env=env, capture_output=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr

    assert VARIABLE.encode() not in done.stdout + done.stderr + result.read_bytes() + page.read_bytes()
    assert b"seed" in result.read_bytes(), "control"


def test_the_store_knows_a_token_by_its_digest_alone(site: UpSite) -> None:
    with sqlite3.connect(f"file:{site.home}/store.db?mode=ro", uri=True) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(attempt)")]
    assert [name for name in columns if "token" in name] == ["token_sha256"]
