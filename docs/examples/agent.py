"""A small agent: says each input back, and takes what is sent to it while it works. Speaks docs/agent-protocol.md.

Run it as `executor = "agent"` with `command = ["python3", "agent.py", "3"]`: it ends once it has taken so many inputs.
"""

import json
import sys


def say(**message: object) -> None:
    """Write one message: one line, flushed at once."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def body_of(message: dict) -> str:
    """The text of an input, which is in the message or in the file that it names."""
    if "file" in message:
        with open(message["file"], encoding="utf-8", errors="replace") as file:
            return file.read()
    return message["body"]


def main(wanted: int) -> None:
    """Work until so many inputs are taken, or an interrupt comes."""
    taken, seen = 0, set()
    for line in sys.stdin:
        message = json.loads(line)
        inputs = []
        match message["type"]:
            case "start":
                if "inputs_file" in message:
                    with open(message["inputs_file"], encoding="utf-8") as file:
                        message["inputs"] = json.load(file)
                inputs = message["inputs"]
            case "input" if message["id"] not in seen:  # the same one may come twice
                seen.add(message["id"])
                inputs = [message]
            case "interrupt":
                say(type="result", outcome="failed", summary="interrupted")
                return
        for one in inputs:
            say(type="log", text=f"input {one['number']}: {body_of(one)[:1000]}")
            say(type="consumed", inputs=[one["number"]])
            taken += 1
        if taken >= wanted:
            say(type="usage", units={"tokens": 10 * taken})
            say(type="turn", status="done", comment=f"took {taken}")
            say(type="result", outcome="completed", summary=f"took {taken} inputs")
            return


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
