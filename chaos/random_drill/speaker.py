"""A program of a random drill that speaks with tenure: as an agent by its protocol, or as a job by its tool belt.

It runs alone, by its path, and imports nothing of tenure. Its one argument is JSON, see `manners.Manner.told`. What it was told it
notes once it has read it; what it says it notes before: see `chaos/notes.py`.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import select
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

Json = dict[str, Any]

REFUSED_STATUS = 70
RESET_S = 3_600
FULL_PAUSE_S = 0.05


class Speaker:
    """What agents and jobs have in common. How they begin, speak and get inputs is their own."""

    def begin(self) -> None:
        """See what it is told first."""
        raise NotImplementedError

    def work(self, scene: Json) -> None:
        """Take inputs."""
        raise NotImplementedError

    def say(self, kind: str, body: Json, key: str) -> None:
        """Say one thing; the key is one and the same for the same thing."""
        raise NotImplementedError

    def __init__(self, manner: Json) -> None:
        self.manner = manner
        self.attempt, self.epoch = os.environ["TENURE_ATTEMPT"], int(os.environ["TENURE_EPOCH"])
        self.used = 0

    def witness(self, mark: str) -> None:
        """Tell the witness: one line, one write."""
        line = f"{mark} {os.environ['TENURE_WORK']} {self.attempt} {self.epoch} {os.getpid()}\n"
        append(self.manner["witness"], line)

    def note(self, word: str, **facts: object) -> None:
        """Note it: one line, one write."""
        told = {"word": word, "attempt": self.attempt, "epoch": self.epoch, "pid": os.getpid(), **facts}
        append(self.manner["notes"], json.dumps(told) + "\n")

    def scene(self) -> Json:
        """What this launch does: one scene for each program of its Work that began before, whichever attempts they were of."""
        begun = f"start {os.environ['TENURE_WORK']} "
        with open(self.manner["witness"], encoding="ascii") as file:
            earlier = sum(line.startswith(begun) for line in file) - 1
        scenes = self.manner["scenes"]
        found: Json = scenes[min(earlier, len(scenes) - 1)]
        return found

    def play(self) -> NoReturn:
        """Begin, work, end."""
        self.witness("start")
        scene = self.scene()
        self.begin()
        for _ in range(scene["uses"]):
            self.use()
        self.work(scene)
        for turn in scene["turns"]:
            status = f"{turn}-{self.epoch}"
            self.note("turn", status=status)
            self.say("turn", {"status": status, "comment": f"of {self.attempt}"}, f"turn-{status}")
        self.end(scene)

    def use(self) -> None:
        """Say what was consumed; amounts differ from launch to launch, and are no round numbers."""
        self.used += 1
        drawn = zlib.crc32(f"{self.attempt}.{self.epoch}.{self.used}".encode())
        units = {"tokens": str(1 + drawn % 40), "usd": f"0.{drawn % 99_991 + 1:05}"}
        self.note("used", units=units)
        self.say("usage", {"units": units}, f"use-{self.epoch}-{self.used}")

    def see(self, number: int, body: bytes, intent: str | None = None) -> None:
        """Note an input that was read."""
        self.note("saw", input=number, intent=intent, sha256=hashlib.sha256(body).hexdigest())

    def end(self, scene: Json) -> NoReturn:
        """Say how it ends, and end."""
        how, status = scene["ends"], scene["status"]
        awaits = [scene.get("event"), scene.get("correlate")] if how in ("parks", "passes on") else None
        self.note("ends", ends=how, exit_status=status, awaits=awaits)
        said = self.ending(scene)
        if said is not None:
            self.say(*said, f"end-{self.epoch}")
        self.leave(status)

    def leave(self, status: int) -> NoReturn:
        """End, and tell the witness."""
        self.witness("end")
        os._exit(status)

    def ending(self, scene: Json) -> tuple[str, Json] | None:
        """What it says of its end: its kind and its body; None: nothing."""
        match scene["ends"]:
            case "silent" | "dies":
                return None
            case "parks" | "passes on":
                event = {"type": scene["event"], "correlate": scene["correlate"]} if scene["event"] else None
                asked = {"ask": scene["ask"]} if scene["ask"] else {}
                return "wait", {**asked, "event": event, "timer": scene["timer"], "resume": scene["ends"] == "parks"}
            case "permanent":
                return "outcome", {"kind": "failed", "permanent": True, "summary": "as planned"}
            case "unknown reset":
                return "outcome", {"kind": "failed", "retry": {"unknown": True}}
            case "known reset":
                return "outcome", {"kind": "failed", "retry": {"reset_at": reset_at()}}
            case kind:
                return "outcome", {"kind": kind, "summary": f"epoch {self.epoch}", "artifacts": [self.attempt]}

    def refused(self, why: str) -> NoReturn:
        """Tenure does not take what was said: nothing more can be done."""
        self.note("refused", why=why)
        self.witness("end")
        os._exit(REFUSED_STATUS)


class Agent(Speaker):
    """Speaks docs/agent-protocol.md."""

    def begin(self) -> None:
        """Read the first message."""
        self.reader, self.seen, self.taken = Reader(), set[str](), 0
        start = json.loads(self.reader.line(None) or b"")
        for key in ("inputs", "wake"):
            if f"{key}_file" in start:
                with open(start[f"{key}_file"], encoding="utf-8") as file:
                    start[key] = json.load(file)
        self.note("began", wake=start["wake"])
        for one in start["inputs"]:
            self.see(one["number"], body_of(one))
        for number in range(self.manner["chatter"]):
            emit({"type": "log", "text": f"{number} " + "x" * (40_000 if number % 7 == 3 else 40)})
            if number % 5 == 4:
                put("this is no message\n")

    def say(self, kind: str, body: Json, _key: str) -> None:
        """One message."""
        message = {"type": kind, **body}
        if kind == "outcome":
            message["type"], message["outcome"] = "result", message.pop("kind")
        emit(message)

    def work(self, scene: Json) -> None:
        """Take what is handed over, until it has been quiet for long enough, or the next one is to be left."""
        if self.manner["shuts"]:
            self.shut()
            time.sleep(scene["listens"])
            return
        while (line := self.reader.line(scene["listens"])) is not None:
            if not self.hear(json.loads(line), scene["leaves"]):
                return

    def shut(self) -> None:
        """Take the pipe away that it is told by."""
        self.note("shut")
        os.unlink(os.readlink("/proc/self/fd/0"))

    def hear(self, message: Json, leaves: int | None) -> bool:
        """Take one message; False: its input is the one that is to be left, after so many that were taken."""
        if message["type"] == "interrupt":
            self.note("ends", ends="interrupted", exit_status=0)
            self.witness("end")
            os._exit(0)
        number, intent = message["number"], message["id"]
        if intent in self.seen:
            self.note("again", input=number, intent=intent)
            return True
        self.seen.add(intent)
        self.see(number, body_of(message), intent)
        if self.manner["declines"]:
            self.note("declined", input=number, intent=intent)
            emit({"type": "not_accepting", "id": intent})
        elif self.taken == leaves:
            return False
        else:
            self.take(number, intent)
            self.taken += 1
        return True

    def take(self, number: int, intent: str) -> None:
        """Say that an input is taken, and what that took."""
        self.note("took", input=number, intent=intent)
        emit({"type": "consumed", "inputs": [number]})
        self.use()


class Job(Speaker):
    """Speaks by `tenure tool`, each time in a process of its own."""

    def begin(self) -> None:
        """See whether this launch goes on after a wait."""
        wake = os.environ.get("TENURE_WAKE")
        self.note("began", wake=None if wake is None else json.loads(wake))

    def say(self, kind: str, body: Json, key: str) -> None:
        """One call of the tool."""
        self.call([*words_of(kind, body), "--key", key])

    def work(self, scene: Json) -> None:
        """See the inputs it was given and those that wait, and take the latter too, where that is its manner."""
        if not self.manner["reads"]:
            return
        pending = []
        for line in self.call(["input"]).splitlines():
            one = json.loads(line)
            body = one["text"].encode() if "text" in one else base64.b64decode(one["base64"])
            self.see(one["number"], body)
            if one["pending"]:
                pending.append(one["number"])
        if pending and scene["takes"]:
            for number in pending:
                self.note("took", input=number)
            self.call(["input", "--took", *map(str, pending), "--key", f"took-{self.epoch}"])

    def call(self, words: Sequence[str]) -> str:
        """Call the tool; gives what it printed."""
        done = subprocess.run(
            [*self.manner["tool"], "tool", *words], check=False, stdin=subprocess.DEVNULL, capture_output=True
        )
        if done.returncode != 0:
            self.refused(f"{words[0]}: {done.returncode} {done.stderr.decode('utf-8', 'replace').strip()[:300]}")
        return done.stdout.decode()


class Reader:
    """Whole lines of standard input."""

    def __init__(self) -> None:
        self.data = b""

    def line(self, timeout_s: float | None) -> bytes | None:
        """The next one; None: there was none for so long."""
        while b"\n" not in self.data:
            ready, _, _ = select.select([0], [], [], timeout_s)
            if not ready:
                return None
            self.data += os.read(0, 65536)
        line, _, self.data = self.data.partition(b"\n")
        return line


def words_of(kind: str, body: Mapping[str, Any]) -> list[str]:
    """What is said, as words of `tenure tool`."""
    match kind:
        case "turn":
            return ["turn", body["status"], "--comment", body["comment"]]
        case "usage":
            return ["usage", *(f"{unit}={amount}" for unit, amount in body["units"].items())]
        case "wait":
            event, timer = body["event"], body["timer"]
            words = ["wait", *(["--event", event["type"]] if event else []), *(["--timer", timer] if timer else [])]
            words += ["--correlate", event["correlate"]] if event and event["correlate"] else []
            words += ["--ask", body["ask"]] if "ask" in body else []
            return words + (["--resume"] if body["resume"] else [])
    words = ["outcome", body["kind"], *(["--summary", body["summary"]] if body.get("summary") else [])]
    words += ["--artifact", body["artifacts"][0]] if body.get("artifacts") else []
    retry = body.get("retry") or {}
    words += ["--retry-unknown"] if "unknown" in retry else []
    words += ["--retry-at", retry["reset_at"]] if "reset_at" in retry else []
    return words + (["--permanent"] if body.get("permanent") else [])


def reset_at() -> str:
    """A time that no drill lasts until."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + RESET_S))


def body_of(message: Mapping[str, Any]) -> bytes:
    """The bytes of an input, which are in the message or in the file that it names."""
    if "file" in message:
        with open(message["file"], "rb") as file:
            return file.read()
    return str(message["body"]).encode()


def emit(message: Mapping[str, object]) -> None:
    """One message to tenure: one line."""
    put(json.dumps(message) + "\n")


def put(text: str) -> None:
    """All of it to standard output, which lies on tenure's disk: while that is full, it waits for room."""
    rest = text.encode()
    while rest:
        try:
            rest = rest[os.write(1, rest) :]
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            time.sleep(FULL_PAUSE_S)


def append(path: str, line: str) -> None:
    """One write, to the end."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os.write(fd, line.encode())
    os.close(fd)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    (Agent if given["door"] == "agent" else Job)(given).play()
