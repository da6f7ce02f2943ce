"""A job that says what cannot be, by its belt, and notes how each was answered. Called as: bad_declarations.py NOTES."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

NO_UTF8 = os.fsdecode(b"a\xffb")
LONG = "x" * 70_000

WORDS: dict[str, list[str]] = {
    "status": ["turn", "Done"],
    "empty status": ["turn", ""],
    "no utf8 in a comment": ["turn", "done", "--comment", NO_UTF8],
    "too long a comment": ["turn", "done", "--comment", LONG],
    "no utf8 in a key": ["turn", "done", "--key", NO_UTF8],
    "unknown unit": ["usage", "Tokens=1"],
    "reserved unit": ["usage", "turns=1"],
    "negative": ["usage", "tokens=-1"],
    "no number": ["usage", "tokens=NaN"],
    "huge": ["usage", "tokens=1e308"],
    "no amount": ["usage", "tokens"],
    "past time": ["outcome", "failed", "--retry-at", "yesterday"],
    "no utf8 in a summary": ["outcome", "completed", "--summary", NO_UTF8],
    "too long a summary": ["outcome", "completed", "--summary", LONG],
    "event type": ["wait", "--event", "No Such"],
    "nothing to wait for": ["wait"],
    "no duration": ["wait", "--timer", "soon"],
    "an input of nobody": ["input", "--took", "999"],
    "key without event": ["wait", "--timer", "5s", "--correlate", "k"],
}


def main() -> None:
    answers = {}
    for name, words in WORDS.items():
        command = [os.environ["TENURE_COMMAND"], "tool", *words]
        said = subprocess.run(command, capture_output=True, timeout=60, check=False)
        answers[name] = [said.returncode, said.stdout.decode(), said.stderr.decode()]
    Path(sys.argv[1]).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
