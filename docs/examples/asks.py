"""An agent that asks a person before it acts, and holds no slot while it waits. Speaks docs/agent-protocol.md.

Run it as `executor = "agent"` with `command = ["python3", "asks.py", "1h"]`: so long it waits for an answer, then it takes it for a no.
"""

import json
import sys


def say(**message: object) -> None:
    """Write one message: one line, flushed at once."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(patience: str) -> None:
    """Ask in the first launch; act by the answer in the one that it wakes."""
    start = json.loads(sys.stdin.readline())
    wake = start["wake"]
    if wake is None:
        # `answer.given` about this attempt is the answer; after that time `wait.elapsed` is what wakes it.
        event = {"type": "answer.given", "correlate": start["attempt"]}
        say(type="wait", ask="Deploy 4.2 to production?", event=event, timer=patience, resume=True)
    elif wake["type"] == "answer.given" and wake["data"] == "yes":
        say(type="turn", status="deployed")
        say(type="result", outcome="completed", summary="deployed, as was answered")
    else:
        why = "nobody answered" if wake["type"] == "wait.elapsed" else f"the answer was {wake['data']}"
        say(type="result", outcome="failed", permanent=True, summary=f"not deployed: {why}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "1h")
