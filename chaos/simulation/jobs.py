"""What simulated jobs do, and the witness to which they say so."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from chaos.simulation.baton import Baton
from chaos.simulation.files import Directory, Disk, FileLock
from chaos.simulation.processes import Process, Processes
from chaos.simulation.programs import AGENT, BELT, KEYS, LAST, Part, draw_parts
from chaos.simulation.speaking import Memory, Speaker
from chaos.witness import Line, Mark
from shared.ids import AttemptId, work_of
from shared.model.instant import US_PER_MS, US_PER_S
from shared.process.launcher import LaunchSpec

FOREVER_US = 120 * US_PER_S
WORD = "simulated"
SAFE = 0.3
DELAYS_US = (US_PER_S, US_PER_S, 2 * US_PER_S, 5 * US_PER_S)
SCOPES = ("", "", "ops", "ops/backup")
SPEAK = (0.0, 0.0, 0.4, 1.0)
"""How many of a history's jobs speak."""
WORDS = tuple(key for key in KEYS if key)
ALIKE = (0.0, 0.0, 0.6)
"""How many of a history's jobs share the binding of the one before them."""
IDLE_US = (0, 0, 0, US_PER_S, 2 * US_PER_S)


@dataclass(frozen=True, slots=True)
class Job:
    """What a job does when it is left alone.

    Attributes:
        lasts_us: How long its main process runs.
        status: How it ends: 0 to 255, or the negative number of a signal.
        is_missing: There is no such command.
        ignores_term: TERM does not end it, nor what it leaves behind.
        straggler_us: It leaves a process behind that runs so long; 0: none.
        escapes: What it leaves shows no mark of the launch, and is not of its session.
        is_safe: Its binding says that running it again does no harm.
        scope: Of its Work.
        statuses: How its first attempts end, by number, before those that end with `status`.
        delays_us: Its binding tries it again after these waits; () and no `tries`: its binding does not.
        tries: Attempts in all, with waits that double; 0: `delays_us` counts.
        on_timeout: Its binding tries a timeout again too.
        is_held: Once nothing is left to try its binding has it held.
        inputs: It is standing, and gets so many inputs; 0: it runs once.
        voice: It speaks, by this door, and plays one of its parts in each launch; "": it says nothing.
        is_deaf: What it is to be told while it runs cannot be handed to it; `drops`: its binding gives such inputs up.
        keys: Correlation keys of its Work; `goes_on`: where it hands off, the next attempt follows at once.
        idle_us: Its binding ends it when it has been quiet for so long; 0: it may be as quiet as it likes.
        like: The number of the job whose binding it shares, while that is the same; 0: its binding is its own.
    """

    lasts_us: int
    status: int = 0
    is_missing: bool = False
    ignores_term: bool = False
    straggler_us: int = 0
    escapes: bool = False
    is_safe: bool = False
    scope: str = ""
    statuses: tuple[int, ...] = ()
    delays_us: tuple[int, ...] = ()
    tries: int = 0
    on_timeout: bool = False
    is_held: bool = False
    inputs: int = 0
    voice: str = ""
    parts: tuple[Part, ...] = ()
    is_deaf: bool = False
    drops: bool = False
    keys: tuple[str, ...] = ()
    goes_on: bool = False
    idle_us: int = 0
    like: int = 0

    def part(self, launches: int) -> Part:
        """What it does in the launch that comes after so many others."""
        return self.parts[launches] if launches < len(self.parts) else LAST

    def status_of(self, number: int) -> int:
        """How its attempt of that number ends."""
        return self.statuses[number - 1] if number <= len(self.statuses) else self.status

    @property
    def is_retried(self) -> bool:
        """Whether its binding tries it again."""
        return bool(self.delays_us or self.tries)

    @property
    def needs_binding(self) -> bool:
        """What it is depends on a binding of its own, with the command that this runs."""
        return self.is_safe or self.is_retried or bool(self.inputs) or bool(self.voice)


KINDS = ("plain", "missing", "stubborn", "endless", "leaves", "escapes")
USUAL = (12, 1, 2, 2, 3, 3)


def draw_jobs(chance: random.Random, works: int) -> tuple[Job, ...]:
    """So many jobs: each kind as usual, much more often, or not at all; short or long, as the history has it."""
    weights = [weight * chance.choice((0, 1, 1, 4)) for weight in USUAL]
    scale_ms = chance.choice(((1, 20, 200), (20, 200, 1_500), (1_000, 3_000)))
    if not any(weights):
        weights = list(USUAL)
    drawn = [_draw(chance, chance.choices(KINDS, weights)[0], chance.choice(scale_ms)) for _ in range(works)]
    safe = [
        replace(job, is_safe=chance.random() < SAFE and job.lasts_us < FOREVER_US, scope=chance.choice(SCOPES))
        for job in drawn
    ]
    often = chance.choice((0.0, 0.3, 0.8))
    again = [_again(chance, job) if chance.random() < often else job for job in safe]
    speak = chance.choice(SPEAK)
    drawn = [_speaking(chance, job) if chance.random() < speak else job for job in again]
    alike = chance.choice(ALIKE)
    for place in range(1, len(drawn)):
        if drawn[place - 1].needs_binding and chance.random() < alike:
            drawn[place] = replace(drawn[place - 1], like=drawn[place - 1].like or place)
    return tuple(drawn)


def _speaking(chance: random.Random, job: Job) -> Job:
    """The same job, as a program that speaks; how its attempts end is up to its parts."""
    if job.is_missing or job.lasts_us >= FOREVER_US:
        return job
    voice = chance.choice((AGENT, AGENT, BELT))
    return replace(
        job,
        status=0,
        statuses=(),
        voice=voice,
        parts=draw_parts(chance, voice),
        is_deaf=voice == AGENT and chance.random() < 0.2,
        drops=chance.random() < 0.5,
        goes_on=bool(job.inputs) and chance.random() < 0.6,
        keys=tuple(sorted(chance.sample(WORDS, chance.choice((0, 0, 1, 2))))),
        idle_us=chance.choice(IDLE_US) if voice == AGENT else 0,
    )


def _again(chance: random.Random, job: Job) -> Job:
    """The same job, which its binding tries again, or which stands for inputs, or both."""
    fails = tuple(chance.choice((1, 7, -9)) for _ in range(chance.choice((0, 0, 1, 1, 2, 3))))
    again = replace(
        job,
        statuses=fails,
        is_held=chance.random() < 0.3,
        on_timeout=job.lasts_us < FOREVER_US or chance.random() < 0.5,
    )
    way = chance.choice(("delays", "delays", "tries", "inputs", "inputs"))
    if way == "tries":
        return replace(again, tries=chance.choice((2, 3, 4)))
    delays_us = tuple(chance.choice(DELAYS_US) for _ in range(chance.choice((1, 2, 3))))
    if way == "delays":
        return replace(again, delays_us=delays_us)
    return replace(again, inputs=chance.choice((1, 2, 4)), delays_us=delays_us if chance.random() < 0.5 else ())


def _draw(chance: random.Random, kind: str, scale_ms: int) -> Job:
    lasts_us = int(scale_ms * US_PER_MS * (0.5 + chance.random()))
    status = chance.choice((0, 0, 0, 1, 7, -9))
    left_us = int(chance.choice((0.2, 2, 8)) * (0.5 + chance.random()) * US_PER_S)
    ignores_term = chance.random() < 0.3
    match kind:
        case "missing":
            return Job(0, is_missing=True)
        case "stubborn":
            return Job(lasts_us, status, ignores_term=True)
        case "endless":
            return Job(FOREVER_US, ignores_term=ignores_term)
        case "leaves":
            return Job(lasts_us, status, straggler_us=left_us, ignores_term=ignores_term)
        case "escapes":
            return Job(lasts_us, status, straggler_us=left_us, ignores_term=ignores_term, escapes=True)
        case _:
            return Job(lasts_us, status)


def binding_number(jobs: Sequence[Job], number: int) -> int:
    """The number of the job whose binding, and so whose command, the one of that number has."""
    job = jobs[number - 1]
    return job.like if job.like and replace(job, like=0) == jobs[job.like - 1] else number


def command_of(number: int) -> tuple[str, ...]:
    """What a Work of that number runs."""
    return (WORD, str(number))


@dataclass(eq=False)
class Jobs:
    """Runs the jobs of one history.

    Attributes:
        drawn: By the number in its command.
        lines: The witness; `memory`: what those that speak said and were told.
        last_seq: Tells the last event that is committed.
    """

    baton: Baton
    table: Processes
    disk: Disk
    drawn: dict[int, Job] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    last_seq: Callable[[], int | None] = lambda: None

    def command(self, number: int, job: Job) -> tuple[str, ...]:
        """The command of a Work that runs it."""
        self.drawn[number] = job
        return command_of(number)

    def of(self, spec: LaunchSpec) -> Job:
        """What that launch runs."""
        return self.drawn[int(spec.argv[1])]

    def run(self, child: Process, spec: LaunchSpec, job: Job, directory: Directory) -> None:
        """Be the job, from its exec to its end."""
        work_id = work_of(AttemptId(spec.attempt_id))
        launches = sum(line.mark is Mark.START and line.work_id == work_id for line in self.lines)
        self._say(Mark.START, child, spec)
        child.at_end.append(lambda: self._say(Mark.GONE, child, spec))
        if job.straggler_us and directory.tree_lock is not None:
            self._leave_behind(child, spec, job, directory.tree_lock)
        status = job.status_of(int(spec.attempt_id.rpartition(".")[2]))
        if job.voice:
            speaker = Speaker(self.baton, self.disk, self.memory, child, spec, directory, job.voice, self.last_seq)
            status = speaker.play(job.part(launches))
        else:
            self.baton.sleep(job.lasts_us)
        self._say(Mark.END, child, spec)
        child.end(status)

    def _say(self, mark: Mark, process: Process, spec: LaunchSpec) -> None:
        attempt_id = AttemptId(spec.attempt_id)
        self.lines.append(Line(mark, work_of(attempt_id), attempt_id, spec.epoch, process.pid, self.last_seq()))

    def _leave_behind(self, child: Process, spec: LaunchSpec, job: Job, tree_lock: FileLock) -> None:
        left = self.table.new(f"left:{child.launch}", "other", parent=child, worker=child.worker, launch=child.launch)
        left.ignores_term = job.ignores_term
        left.is_marked = not job.escapes
        if not job.escapes:
            tree_lock.share(left)
        self._say(Mark.CHILD, left, spec)
        left.at_end.append(lambda: self._say(Mark.GONE, left, spec))

        def run() -> None:
            self.baton.sleep(job.lasts_us + job.straggler_us)
            left.end(0)

        left.start(run)
