"""A program that speaks, as a simulated process: it plays the part of its script that is its turn, and bears witness to what it says.

An agent writes lines and reads its channel; a job uses the tool belt. Rule: docs/agent-protocol.md; design §6.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from chaos.simulation.baton import Baton
from chaos.simulation.belt import NobodyAnsweredError, ask
from chaos.simulation.files import Directory, Disk
from chaos.simulation.processes import KILL, Process
from chaos.simulation.programs import AGENT, Act, Deed, Part, reset_of
from chaos.speech import END, GARBAGE, NOISE, Said, Told, Written
from shared.ids import AttemptId
from shared.process.launcher import LaunchSpec

JSON = Mapping[str, object]
NO_JSON = '{"type": "turn", "status": '


@dataclass(eq=False)
class Memory:
    """What all programs of a history said and were told.

    Attributes:
        said: By a number of its own, in order: what is being said may still change.
        written: When agents began, and wrote to their outputs, in order.
        places: Of each line of an output, by the number of what it says: the directory, and where the line ends there.
    """

    said: dict[int, Said] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    places: dict[int, tuple[str, int]] = field(default_factory=dict)

    def keep(self, said: Said) -> int:
        """Keep it; returns its number."""
        number = len(self.said)
        self.said[number] = said
        return number

    def lose(self, disk: Disk) -> None:
        """A power cut has taken the ends of some outputs: note whose lines are not whole any more."""
        for number, (name, end) in self.places.items():
            directory = disk.directories.get(name)
            if directory is None or len(directory.output) < end:
                self.said[number] = replace(self.said[number], is_cut=True)

    def last_written(self, launch: str) -> Written | None:
        """When that launch wrote last, by the name of its directory."""
        return next((one for one in reversed(self.written) if f"{one.attempt_id}.{one.epoch}" == launch), None)


@dataclass(eq=False)
class Speaker:
    """One launch of a program.

    Attributes:
        held: Inputs that it was given and did not say yet that it took; `seen`: ids of intents that it was told.
    """

    baton: Baton
    disk: Disk
    memory: Memory
    child: Process
    spec: LaunchSpec
    directory: Directory
    voice: str
    last_seq: Callable[[], int | None]
    lines: int = 0
    held: list[int] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def play(self, part: Part) -> int:
        """Do what the part says; returns the status to end with."""
        self._begin()
        status = part.status
        for number, deed in enumerate(part.deeds, start=1):
            self._do(deed, f"d{self.spec.epoch}.{number}")
            if deed.act is Act.HALF:
                status = -KILL
                break
        self._witness(END, str(status))
        return status

    def _begin(self) -> None:
        told = self.spec.env.get("TENURE_WAKE")
        if self.voice == AGENT:
            self._note_time(is_start=True)
            start = self._read(0)
            assert start is not None, "the launch wrote it before the program began"
            self.held += [int(one["number"]) for one in start["inputs"]]  # type: ignore[attr-defined]
            told = None if start["wake"] is None else json.dumps(start["wake"])
        self._hear("start", tuple(self.held), wake=None if told is None else int(json.loads(told)["seq"]))

    def _do(self, deed: Deed, key: str) -> None:
        match deed.act:
            case Act.SLEEP:
                self.baton.sleep(deed.us)
            case Act.TAKE:
                self._take(deed)
            case Act.NOISE:
                for _ in range(deed.count):
                    self._write(NOISE, {"type": "thought"})
            case Act.GARBAGE:
                self._garble()
            case Act.PIECES:
                self._write("turn", {"type": "turn", "status": deed.word}, pause_us=deed.us)
            case Act.UNENDED:
                self._write("turn", {"type": "turn", "status": deed.word}, pause_us=deed.us, is_ended=False)
            case Act.HALF:
                self._write(GARBAGE, NO_JSON, pause_us=deed.us, is_ended=False)
            case Act.CONSUME:
                self._consume(key)
            case _:
                kind, body = self._message(deed)
                self._say(kind, body, key)

    def _message(self, deed: Deed) -> tuple[str, JSON]:
        match deed.act:
            case Act.TURN:
                return "turn", {"status": deed.word}
            case Act.USAGE:
                return "usage", {"units": {"tokens": deed.count}}
            case Act.WAIT:
                event = {"type": deed.word, **({"correlate": deed.key} if deed.key else {})}
                timer = {"timer": f"{deed.us // 1000}ms"} if deed.us else {}
                return "wait", {**({"event": event} if deed.word else {}), **timer, "resume": deed.flag}
            case _:
                return "result", self._result(deed.word)

    def _result(self, word: str) -> JSON:
        if word in ("completed", "handoff", "failed"):
            return {"outcome": word}
        if word == "permanent":
            return {"outcome": "failed", "permanent": True}
        reset_us = reset_of(word, self.baton.wall_us)
        if reset_us is None:
            return {"outcome": "failed", "retry": {"unknown": True}}
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=reset_us)
        return {"outcome": "failed", "retry": {"reset_at": at.isoformat()}}

    # --- saying

    def _say(self, kind: str, body: JSON, key: str) -> None:
        if self.voice == AGENT:
            self._write(kind, {"type": kind, **body})
        else:
            self._declare(kind, body, key)

    def _write(self, kind: str, message: JSON | str, *, pause_us: int = 0, is_ended: bool = True) -> None:
        """Write one line, in two writes where there is a pause."""
        text = message if isinstance(message, str) else json.dumps(message)
        line = text.encode() + (b"\n" if is_ended else b"")
        self.lines += 1
        self.baton.hand_over()
        if pause_us:
            half, line = line[: len(line) // 2], line[len(line) // 2 :]
            self._append(half)
            number = self._witness(GARBAGE, "", line=self.lines)
            self.memory.places[number] = self.directory.name, len(self.directory.output)
            self.baton.sleep(pause_us)
            self._append(line)
            self.memory.said[number] = replace(self.memory.said[number], kind=kind, body=text)
        else:
            self._append(line)
            number = self._witness(kind, text, line=self.lines)
        self.memory.places[number] = self.directory.name, len(self.directory.output)

    def _append(self, data: bytes) -> None:
        self.directory.output += data
        self._note_time()

    def _declare(self, kind: str, body: JSON, key: str) -> None:
        told = {"kind": "outcome", "body": _outcome(body)} if kind == "result" else {"kind": kind, "body": body}
        number = self._witness(kind, json.dumps(body), key=key)
        try:
            answer = ask(self.baton, self.disk, self.spec.env, {"key": key, **told})
        except NobodyAnsweredError:
            return
        if answer.get("recorded") == key:
            self.memory.said[number] = replace(self.memory.said[number], is_answered=True)

    def _garble(self) -> None:
        if self.voice == AGENT:
            self._write(GARBAGE, NO_JSON)
            return
        wrong = {**self.spec.env, "TENURE_TOKEN": "another one"}
        try:
            ask(self.baton, self.disk, wrong, {"key": "wrong", "kind": "turn", "body": {"status": "wrong"}})
        except NobodyAnsweredError:
            return

    def _consume(self, key: str) -> None:
        if self.voice == AGENT:
            if self.held:
                self._write("consumed", {"type": "consumed", "inputs": self.held})
            self.held = []
            return
        try:
            page = ask(self.baton, self.disk, self.spec.env, {"ask": "inputs", "after": 0})
        except NobodyAnsweredError:
            return
        numbers = [one["number"] for one in page.get("inputs", ())]  # type: ignore[attr-defined]
        if numbers:
            self._declare("consumed", {"inputs": numbers}, key)

    # --- being told

    def _take(self, deed: Deed) -> None:
        """Take what comes in that time; say of each that it is taken, at the end, or refuse it at once."""
        until_us = self.baton.mono_us + deed.us
        taken: list[int] = []
        while (message := self._read(until_us)) is not None:
            if message["type"] == "interrupt":
                self._hear("interrupt", ())
                continue
            name, number = str(message["id"]), int(str(message["number"]))
            is_new = name not in self.seen
            self.seen.add(name)
            self._hear("input", (number,), intent=int(name[1:]))
            if deed.flag:
                self._write("not_accepting", {"type": "not_accepting", "id": name})
            elif is_new:
                taken.append(number)
        if taken:
            self._write("consumed", {"type": "consumed", "inputs": taken})

    def _read(self, until_us: int) -> JSON | None:
        """The next line of the channel; None: there is none by then."""
        channel = self.directory.channel
        assert channel is not None, "an agent has one"
        while not channel.lines:
            if self.baton.mono_us >= until_us:
                return None
            channel.written.wait(until_us)
        found: JSON = json.loads(channel.lines.pop(0))
        return found

    # --- bearing witness

    @property
    def _attempt(self) -> AttemptId:
        return AttemptId(self.spec.attempt_id)

    def _witness(self, kind: str, body: str, *, line: int | None = None, key: str = "") -> int:
        seq = self.last_seq() or 0
        said = Said(self._attempt, self.spec.epoch, kind, body, line, key, line is not None, seq)
        return self.memory.keep(said)

    def _note_time(self, *, is_start: bool = False) -> None:
        self.memory.written.append(Written(self._attempt, self.spec.epoch, self.baton.elapsed_us, is_start))

    def _hear(self, kind: str, inputs: tuple[int, ...], *, intent: int | None = None, wake: int | None = None) -> None:
        self.memory.told.append(Told(self._attempt, self.spec.epoch, kind, self.last_seq() or 0, inputs, intent, wake))


def _outcome(body: JSON) -> JSON:
    return {("kind" if name == "outcome" else name): value for name, value in body.items()}
