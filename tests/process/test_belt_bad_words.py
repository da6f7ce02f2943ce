"""What a running job says and cannot be: refused where it is said, in one line, with the job's end recorded all the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.process import bad_declarations
from tests.support.up_sites import UpSite

CONFIG = f"""
[binding.wrong]
command = ["{sys.executable}", "{bad_declarations.__file__}", "NOTES"]
[binding.right]
command = ["sh", "-c", "\\"$TENURE_COMMAND\\" tool turn done --comment fine && \\"$TENURE_COMMAND\\" tool usage tokens=5"]
"""


@pytest.mark.req("O06", "O15", "B02")
def test_nothing_of_it_is_recorded_and_each_refusal_says_what_is_wrong(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    site = UpSite(tmp_path, CONFIG.replace("NOTES", str(notes)))
    with site.up():
        wrong = site.submit("wrong", "--correlate", "k")
        site.await_state(wrong, "completed", "failed", "waiting", "held")
        right = site.submit("right", "--correlate", "k")
        site.await_state(right, "completed")

    answers = json.loads(notes.read_text())
    assert set(answers) == set(bad_declarations.WORDS)
    for name, (code, out, err) in answers.items():
        assert (code in (1, 2), out) == (True, ""), (name, code, err)
        assert 1 <= len(err.splitlines()) <= 2, name
        assert len(err) < 1_500, name
    code, _, err = answers["an input of nobody"]
    assert (code, err) == (1, f"tenure: input 999 is not {wrong}.1's, and not waiting for {wrong}\n")
    [attempt] = site.json("work", "show", wrong)["attempts"]
    assert (attempt["state"], attempt["exit_code"]) == ("succeeded", 0), "its end says what it says"
    assert set(attempt["usage"]) == {"minutes"}
    turns = [event for event in site.json("events", "--limit", "10000")["items"] if event["kind"] == "execution.turn"]
    assert [event["attempt"] for event in turns] == [f"{right}.1"], "control: what can be is told"
    assert site.json("work", "show", right)["attempts"][0]["usage"]["tokens"] == "5"
