"""Whoever stands outside: starts what died, asks for what people ask for, does the harm of the plan, and sees when all is at rest."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial

from chaos.history import History
from chaos.job import Job
from chaos.recording import Known, look, record
from chaos.seen import Life, Look, Seen, Tick
from chaos.simulation.actors import Stage
from chaos.simulation.baton import Actor, Baton
from chaos.simulation.harm import EVERYBODY, WORDS, Harm, Kind
from chaos.simulation.homes import Homes
from chaos.simulation.jobs import FOREVER_US
from chaos.simulation.jobs import Job as Behaviour
from chaos.simulation.person import HELD, Person
from chaos.simulation.processes import KILL, Process
from chaos.simulation.programs import AGENT
from chaos.simulation.setback import Setback
from shared.boundary import Boundary, Side, Victims
from shared.ids import AttemptId, Incarnation, WorkId, work_of
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import Config
from shared.model.work import NewWork, WorkKind
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS
from shared.store.contract import ReadTx

LOOK_TURNS = 40
LOOK_US = 500 * US_PER_MS
PUT_BACK_MOST_US = 3 * US_PER_S
RESTART_MOST_US = 1_500 * US_PER_MS
HARMABLE = ("coordinator", "worker", "zygote", "shim", "child", "other")
SERVICES = ("coordinator", "worker")
SAID = frozenset({Kind.CANCEL, Kind.MISTAKE, Kind.RETRY, Kind.HOLD, *WORDS})
COMMITS = frozenset(boundary for boundary in Boundary if boundary.endswith("_commit"))


class Director:
    """One history's outside.

    Attributes:
        struck: Harm that found its place, in that order.
        is_at_rest: Everything asked for is settled, or left to a person.
    """

    def __init__(
        self,
        homes: Homes,
        baton: Baton,
        plan: tuple[Harm, ...],
        jobs: tuple[Behaviour, ...],
        config: Config,
        *,
        workers: int,
        seed: int,
    ) -> None:
        self._baton = baton
        self._chance = random.Random(f"{seed}/director")
        self._config = config
        self._behaviours = jobs
        self._workers = workers
        self.struck: list[Harm] = []
        self.reached: Counter[tuple[Boundary, Side, str]] = Counter()
        self._last: dict[Process, tuple[Boundary, Side]] = {}
        self.is_at_rest = False
        self._hits: dict[tuple[str, Boundary, Side], list[Harm]] = {}
        self._faults: dict[tuple[str, str], list[Harm]] = {}
        self._came: Counter[object] = Counter()
        for harm in plan:
            if harm.boundary is not None and harm.side is not None:
                self._hits.setdefault((harm.role, harm.boundary, harm.side), []).append(harm)
            elif harm.kind is Kind.FAULT:
                self._faults.setdefault((harm.role, harm.point), []).append(harm)
        timed = [harm for harm in plan if harm.boundary is None and harm.kind is not Kind.FAULT]
        self._blows = sorted((harm for harm in timed if harm.step), key=lambda harm: harm.step)
        self._timed = [harm for harm in timed if not harm.step]
        self.stage = Stage(homes.path, baton, self._fault, homes.warm.connect)
        self.stage.table.on_end = self._ended
        self.stage.table.keeps_status = self._chance.random() < 0.5
        self.stage.lost_rings = self._chance.choice((0.0, 0.0, 0.2, 1.0))
        baton.on_step = self._on_step
        self._person = Person(self.stage, jobs, self._chance)
        self._has_rebooted = False
        self._is_refused = False
        self._is_putting_back = False
        self._names: dict[Process, str] = {}
        self._lives: list[Life] = []
        self._looks: list[Look] = []
        self._ticks: list[Tick] = []
        goes_back = any(harm.kind in (Kind.OLDER, Kind.RESTORE) for harm in plan)
        self._setback = Setback(homes, self.stage, self._lives) if goes_back else None
        self.stage.on_refusal = self._refused
        self._is_disturbed = True
        self._was_able = False
        self._next_look_us = 0
        self._looked_turn = 0

    def prepare(self) -> None:
        """Start everybody."""
        stage = self.stage
        for number, behaviour in enumerate(self._behaviours, start=1):
            command = stage.jobs.command(number, behaviour)
            if behaviour.needs_binding:  # with its command: of another one, what it says does not hold
                kind = WorkKind.STANDING if behaviour.inputs else WorkKind.RUN_ONCE
                work = NewWork(behaviour.scope, f"own-{number}", None, (), "/", None, "a person", kind=kind)
                pool = POOL_AGENTS if behaviour.voice == AGENT else POOL_JOBS
                self._person.asked.append((replace(work, correlate=behaviour.keys), pool))
            else:
                binding = "short" if behaviour.lasts_us >= FOREVER_US else "plain"
                work = NewWork(behaviour.scope, binding, command, (), "/", None, "a person")
                self._person.asked.append((work, POOL_JOBS))
        self._start_coordinator()
        for number in range(1, self._workers + 1):
            self._start_worker(f"worker-{number}")
        self._start_person()
        for harm in self._timed:
            self._baton.later(harm.at_us, partial(self._blow_at, harm))

    # --- who works here

    def _start_coordinator(self) -> None:
        if not any(process.role == "coordinator" for process in self.stage.table.living()):
            self._names[self.stage.start_coordinator()] = "coordinator"

    def _start_worker(self, name: str) -> None:
        self._names[self.stage.start_worker(name)] = name

    def _start_person(self) -> None:
        self._names[self._person.start()] = "person"

    def _ended(self, process: Process) -> None:
        """Somebody ended: start it anew after a while; keep what the checks want to know of it."""
        if process.role in SERVICES:
            self._is_disturbed = True
            for name, (holder, _) in self.stage.locks.items():
                if holder is process:
                    self._lives.append(Life(Incarnation(name), self.stage.born[name], self.stage.last_seq()))
        name = self._names.pop(process, "")
        if (
            name or process.role == "coordinator"
        ):  # also after a second one, beside which the first was not started again
            self._start_later(name or "coordinator")

    def _start_later(self, name: str) -> None:
        self._baton.later(1 + int(self._chance.random() * RESTART_MOST_US), lambda: self._start_again(name))

    def _start_again(self, name: str) -> None:
        if name == "coordinator":
            self._start_coordinator()
        elif name == "person":
            self._start_person()
        else:
            self._start_worker(name)

    # --- harm

    def _fault(self, process: Process, where: str) -> int | None:
        point, _, sql = where.partition(" ")
        if sql == "BEGIN" or not self._faults:
            return None
        key = (process.role, point)
        waiting = self._faults.get(key)
        if not waiting:
            return None
        self._came[key] += 1
        for harm in waiting:
            if harm.nth == self._came[key]:
                waiting.remove(harm)
                self.struck.append(harm)
                self._is_disturbed = True
                self._count_harm(process, harm)
                return harm.code
        return None

    def _on_step(self, actor: Actor, boundary: Boundary, side: Side) -> str:
        process = actor.thread
        assert isinstance(process, Process), "actors are threads of processes"
        self.reached[boundary, side, ""] += 1
        self._last[process] = boundary, side
        if boundary in COMMITS and side is Side.AFTER:
            self.stage.commits += 1
        if (
            boundary is Boundary.QUEUE_LOCK and self.stage.queue.holder is process
        ):  # nobody else commits until it lets go
            self._ticks.append(Tick(self.stage.last_seq(), self._baton.elapsed_us))
        if self._setback is not None:
            self._setback.note(process, boundary, side)
        said = ""
        key = (process.role, boundary, side)
        waiting = self._hits.get(key)
        if waiting:
            self._came[key] += 1
            for harm in [each for each in waiting if each.nth == self._came[key]]:
                waiting.remove(harm)
                is_of_process = harm.kind in (Kind.CRASH, Kind.PAUSE, Kind.TEAR)
                said = self._strike(harm, process) if is_of_process else self._blow(harm, process)
        while self._blows and self._blows[0].step <= self._baton.steps:
            if (
                self._blows[0].role == ""
                and process.role not in HARMABLE
                and self._blows[0].kind in (Kind.CRASH, Kind.PAUSE)
            ):
                break
            if self._blows[0].kind is Kind.RESTORE and self._setback is not None and self._setback.is_in_use:
                break
            harm = self._blows.pop(0)
            said = self._blow(harm, process) or said
        return said

    def _blow(self, harm: Harm, process: Process | None) -> str:
        match harm.kind:
            case Kind.WALL:
                self._baton.wall_us += harm.us
            case Kind.REBOOT:
                self._reboot(harm)
            case Kind.OLDER | Kind.RESTORE:
                if not self._go_back(harm):
                    return ""
            case Kind.RIVAL:
                self.stage.start_coordinator()
            case _ if harm.kind in SAID:
                self._person.want(harm)
            case Kind.DRAIN:
                asked = [each for each in self._living(harm.role) if each in self.stage.stops]
                if not asked:
                    return ""
                self._is_disturbed = True
                self.stage.stops[self._chance.choice(asked)].ask(harm.us / US_PER_S, "asked")
            case _:
                victims = self._living(harm.role)
                if not harm.role and process is not None:
                    victims = [process]
                if not victims:
                    return ""
                if harm.role != EVERYBODY:
                    victims = [self._chance.choice(victims)]
                return [self._strike(harm, victim) for victim in victims][-1]
        self.struck.append(harm)
        return str(harm)

    def _blow_at(self, harm: Harm) -> None:
        self._blow(harm, None)

    def _living(self, role: str) -> list[Process]:
        roles = SERVICES if role == EVERYBODY else (role,)
        return [each for each in self.stage.table.living() if each.role in roles]

    def _strike(self, harm: Harm, process: Process) -> str:
        if not self.struck or self.struck[-1] is not harm:  # everybody is struck by the same one
            self.struck.append(harm)
        hit = [process] if harm.victims is not Victims.WORKER else []
        if harm.victims is not Victims.SELF and process.worker is not None:
            hit.insert(0, process.worker)
        self._is_disturbed = True
        for each in hit:
            self._count_harm(each, harm)
            if each.launch and harm.kind is not Kind.PAUSE:
                self._person.harmed.add(work_of(AttemptId(each.launch.rpartition(".")[0])))
            if harm.kind is Kind.TEAR:
                self.stage.disk.tear(each.launch)
            elif harm.kind is Kind.CRASH:
                each.end(-KILL)
            elif each.is_alive:
                each.stop(harm.us)
        return str(harm)

    def _count_harm(self, process: Process, harm: Harm) -> None:
        if process in self._last:
            self.reached[(*self._last[process], harm.kind)] += 1

    def _reboot(self, harm: Harm) -> None:
        self._has_rebooted = True
        self._is_disturbed = True
        self._names.clear()
        self.stage.table.reboot()
        self.stage.disk.lose_power(self._chance)
        self._baton.reboot(harm.us)
        self._next_look_us = 0
        for name in ("coordinator", *(f"worker-{number}" for number in range(1, self._workers + 1))):
            self._start_later(name)
        self._start_later("person")

    def _go_back(self, harm: Harm) -> bool:
        setback = self._setback
        assert setback is not None, "the plan has it"
        if setback.has_happened or (harm.kind is Kind.RESTORE and setback.is_in_use):
            return False
        if harm.kind is Kind.OLDER:
            self._reboot(harm)
        self._is_disturbed = True
        self.stage.is_older = self._person.is_forgetful = setback.cut(harm.commits)
        return self.stage.is_older or harm.kind is Kind.OLDER

    def _refused(self) -> None:
        """A coordinator found the store older than its home: the person puts the newest copy back.

        If it was that one, or something was launched with the older one meanwhile, no copy knows of everything: it stays refused.
        """
        setback = self._setback
        if setback is None or not setback.has_happened:
            return  # its coordinator says so itself, and that is judged
        if setback.is_undone or setback.has_launched_since:
            self._is_refused = True
        elif not self._is_putting_back:
            self._is_putting_back = True
            self._baton.later(1 + int(self._chance.random() * PUT_BACK_MOST_US), self._put_back)

    def _put_back(self) -> None:
        assert self._setback is not None, "it was refused"
        if self._setback.has_launched_since:
            self._is_refused = True
            return
        self._is_disturbed = True
        for process in self.stage.table.living():
            if process.role in (*SERVICES, "person"):
                process.end(-KILL)
        self._setback.undo()

    # --- looking

    def is_over(self, *, elapsed_us: int, steps: int) -> bool:
        """Whether everything is at rest, or the bounds are reached."""
        baton = self._baton
        if self._is_refused:
            self.is_at_rest = True
            return True
        if baton.mono_us >= self._next_look_us:
            self._look()
        if baton.turns - self._looked_turn < LOOK_TURNS:
            return False
        self._looked_turn = baton.turns
        if baton.elapsed_us > elapsed_us or baton.steps > steps:
            return True
        if not self._person.is_done:
            return False
        if self.stage.is_older and self._living("child"):
            return False  # a job that the store forgot is left to a person, and runs on
        self.is_at_rest = self.stage.known(is_at_rest)
        return self.is_at_rest

    def why_restless(self) -> str:
        """What keeps it from rest."""
        idle = self.stage.look(lambda tx: tx.idle_state())
        orders = self.stage.look(lambda tx: tx.stop_orders())
        return f"after {self._baton.elapsed_us / US_PER_S:.0f} s: {idle}, stop orders {[order.attempt_id for order in orders]}"

    def _look(self) -> None:
        """Keep who is held now, and whether somebody was able to change it since."""
        self._next_look_us = self._baton.mono_us + LOOK_US
        able = self._is_able()
        self._looks.append(
            self.stage.look(
                lambda tx: look(
                    tx, at_us=self._baton.elapsed_us, able=able and self._was_able and not self._is_disturbed
                )
            )
        )
        self._was_able = able
        self._is_disturbed = False

    def _is_able(self) -> bool:
        living = [process for process in self.stage.table.living() if process.role in (*SERVICES, "person")]
        if any(process.stopped_until_us for process in living):
            return False
        leads = any(process.is_alive and leader.leads for process, leader in self.stage.coordinators)
        present = {process.identity for process in living if process.role == "worker"}
        workers = self.stage.look(lambda tx: tx.workers())
        return leads and any(worker.identity in present and worker.state == "live" for worker in workers)

    def close(self) -> None:
        """End everything."""
        self.stage.close()
        if self._setback is not None:
            self._setback.close()

    def record(self) -> History:
        """Everything the checks look at."""
        for name, (process, _) in self.stage.locks.items():
            if process.is_alive:
                self._lives.append(Life(Incarnation(name), self.stage.born[name], None))
        setback, memory = self._setback, self.stage.jobs.memory
        seen = Seen(
            backwards=() if setback is None else tuple(setback.backwards),
            lost=() if setback is None else setback.lost,
            faults=tuple(self.stage.faults),
            gos=tuple(self.stage.gos),
            lives=tuple(self._lives),
            looks=tuple(self._looks),
            ticks=() if self._is_time_unsure else tuple(self._ticks),
            said=tuple(memory.said.values()),
            told=tuple(memory.told),
            accepted=() if setback is not None and setback.has_happened else tuple(self._person.wishes.accepted),
        )
        jobs = [self._job(number) for number in range(1, len(self._person.asked) + 1)]
        known = Known(jobs, self.stage.jobs.lines, self._config, seen)
        return record(self.stage.observer, lambda _attempt: "", known)

    @property
    def _is_time_unsure(self) -> bool:
        """Whether nobody can tell how much time elapsed: across a boot that is by the wall clock, and here that was set; or when the
        numbers of events were given twice.
        """
        has_stepped = any(harm.kind is Kind.WALL for harm in self.struck)
        return (self._has_rebooted and has_stepped) or (self._setback is not None and self._setback.has_happened)

    def _job(self, number: int) -> Job:
        behaviour, words = self._behaviours[number - 1], self._person.words
        work_id = WorkId(f"w{number}")
        is_harmed = work_id in self._person.harmed or self._has_rebooted
        was_forgotten = self._setback is not None and self._setback.has_happened
        lost = () if self._setback is None else self._setback.lost
        was_stopped = any(event.kind == "stop.ordered" and event.work_id == work_id for event in lost)
        return Job(
            work_id,
            behaviour.status,
            cancelled=work_id in self._person.cancelled | words.cancelled,
            cannot_run=behaviour.is_missing,
            may_time_out=behaviour.lasts_us >= FOREVER_US or self._has_rebooted,
            may_be_killed=is_harmed or was_stopped,  # by a stop that its store has forgotten
            may_need_person=is_harmed or was_forgotten,
            may_stay_open=self._is_refused,
            may_run_again=behaviour.needs_binding or work_id in words.injected | words.interrupted,
            is_overheard=bool(behaviour.voice),
            interrupted=work_id in words.interrupted,
            statuses=behaviour.statuses,
            is_standing=bool(behaviour.inputs),
            is_held=behaviour.is_held and behaviour.is_retried,
            may_be_retried=work_id in self._person.wishes.retried | words.retried,
            output=None,
        )


def is_at_rest(tx: ReadTx) -> bool:
    """Nothing goes on, and nothing waits but for whom a person would have to be asked."""
    idle = tx.idle_state()
    return idle.live == 0 and idle.waiting == 0 and not tx.held_for(HELD, limit=1)
