"""An agent for drills: streams numbered lines, notes every input that it sees outside the home, and leaves some unconsumed.

Arguments: the file for its notes, how many lines it streams, how many inputs it consumes before it ends with the next one read and
not consumed. Without a further input it ends once all lines are out and `end` was told.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from chaos.random_drill.speaker import Reader


def main(notes: str, lines: int, consumes: int) -> None:
    """Speak docs/agent-protocol.md until enough was consumed."""
    attempt, said, taken, seen = os.environ["TENURE_ATTEMPT"], 0, 0, set()
    with open(notes, "a", buffering=1, encoding="utf-8") as file:
        while True:
            if said < lines:
                message = {"type": "usage", "units": {"n": 1}} if said % 10 == 9 else {"type": "log", "n": said}
                print(json.dumps(message), flush=True)
                said += 1
            told = read_message(0 if said < lines else None)
            if told is None:
                continue
            inputs = told["inputs"] if told["type"] == "start" else [told]
            for one in inputs:
                name = one.get("id", "start")
                if name != "start" and name in seen:
                    file.write(f"again {attempt} {one['number']} {name} {one['body']}\n")
                    continue
                seen.add(name)
                file.write(f"seen {attempt} {one['number']} {name} {one['body']}\n")
                if name != "start" and taken >= consumes:
                    sys.exit(0)
                print(json.dumps({"type": "consumed", "inputs": [one["number"]]}), flush=True)
                taken += name != "start"
                if one["body"] == "end":
                    sys.exit(0)


READER = Reader()


def read_message(timeout_s: float | None) -> dict[str, Any] | None:
    """The next message; None: there is none in that time."""
    line = READER.line(timeout_s)
    return None if line is None else json.loads(line)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
