"""How a job reaches `tenure`: where its own environment has none, and from inside a sandbox; with real processes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from shared.process.sandbox import find_bwrap, why_not
from tests.support.checkout import ROOT
from tests.support.up_sites import UpSite

SAY = '"$TENURE_COMMAND" tool turn done && "$TENURE_COMMAND" tool input'


def test_a_job_that_has_no_tenure_on_its_path_is_told_where_it_is(tmp_path: Path) -> None:
    site = UpSite(tmp_path, f"""[binding.says]\ncommand = ["sh", "-c", 'command -v tenure && exit 9; {SAY}']\n""")
    with site.up(env={**os.environ, "PATH": "/usr/bin:/bin"}):
        work = site.submit("says", "--input", "hello")
        site.await_state(work, "completed", "failed")

    assert json.loads(site.printed(work))["text"] == "hello"
    assert "execution.turn" in [event["kind"] for event in site.json("events")["items"]]


@pytest.fixture
def bwrap() -> None:
    found = find_bwrap(os.environ.get("PATH", ""))
    reason = "bubblewrap is not installed" if found is None else why_not(found)
    if reason is not None:
        pytest.skip(f"no sandbox here: {reason}")


PLANS = {
    "everything is seen": "{ write = [BELOW_TMP] }",
    "the home is not seen": '{ read = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "PYTHON", "ROOT"], write = ["VENV"] }',
    "a tmp shared with the host": "{ tmp = false }",
}


@pytest.mark.req("O15", "R14")
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.usefixtures("bwrap")
def test_a_job_in_a_sandbox_reaches_its_belt(tmp_path: Path, plan: str) -> None:
    site = UpSite(tmp_path, SANDBOXED.replace("PLAN", _existing(PLANS[plan])))
    with site.up():
        work = site.submit("says", "--input", "hello")
        site.await_state(work, "completed", "failed")
        talks = site.submit("talks", "--input", "x" * 5000)
        site.await_state(talks, "completed", "failed")

    assert json.loads(site.printed(work).splitlines()[-1])["text"] == "hello"
    assert b"refused" in site.printed(work), "control: its own folder is not for it to change"
    assert "execution.turn" in [event["kind"] for event in site.json("events")["items"]]
    assert site.state(talks) == "completed", "an input that is too long for a line is read from its file"


SANDBOXED = f"""
[binding.says]
command = ["sh", "-c", 'touch "$TENURE_BELT/mine" 2>&- || echo refused; {SAY}']
cwd = "/"
sandbox = PLAN
[binding.talks]
executor = "agent"
cwd = "/"
command = ["sh", "-c", 'read -r start; file=$(echo "$start" | sed "s/.*\\"file\\":\\"\\([^\\"]*\\)\\".*/\\\\1/"); test "$(wc -c < "$file")" = 5000']
sandbox = PLAN
"""


def _existing(plan: str) -> str:
    """The plan for this host: without folders that it does not have, and with those that hold its Python, below `/tmp` or not."""
    below_tmp = [
        path for path in (sys.prefix, str(ROOT)) if path.startswith("/tmp/")
    ]  # seen only where it may be changed
    plan = plan.replace("BELOW_TMP", ", ".join(f'"{path}"' for path in below_tmp))
    if str(ROOT) in below_tmp:
        plan = plan.replace(', "ROOT"]', "]").replace('["VENV"]', '["VENV", "ROOT"]')
    plan = plan.replace("VENV", sys.prefix).replace("ROOT", str(ROOT))
    plan = plan.replace("PYTHON", str(Path(sys.executable).resolve().parents[1]))
    for folder in ("/lib64", "/opt"):
        if not Path(folder).exists():
            plan = plan.replace(f'"{folder}", ', "")
    return plan
