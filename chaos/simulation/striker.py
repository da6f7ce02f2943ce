"""Does the harm of a plan: strikes whoever comes to its place, fails the store there, and does at a step or a time what is due then."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

from chaos.simulation.actors import Stage
from chaos.simulation.baton import Actor
from chaos.simulation.harm import EVERYBODY, WORDS, Harm, Kind
from chaos.simulation.lookout import Lookout
from chaos.simulation.person import Person
from chaos.simulation.processes import KILL, Process
from chaos.simulation.setback import Setback
from chaos.simulation.supervisor import SERVICES, Supervisor
from shared.boundary import Boundary, Side, Victims
from shared.ids import AttemptId, work_of
from shared.model.instant import US_PER_S

HARMABLE = ("coordinator", "worker", "zygote", "shim", "child", "other")
SAID = frozenset({Kind.CANCEL, Kind.MISTAKE, Kind.RETRY, Kind.HOLD, *WORDS})
COMMITS = frozenset(boundary for boundary in Boundary if boundary.endswith("_commit"))


class Striker:
    """Whoever does harm.

    Attributes:
        struck: Harm that found its place, in that order.
        reached: See `Outcome.reached`.
        has_rebooted: The host went down.
    """

    def __init__(
        self,
        plan: tuple[Harm, ...],
        stage: Stage,
        person: Person,
        lookout: Lookout,
        supervisor: Supervisor,
        setback: Setback | None,
        chance: random.Random,
    ) -> None:
        self.struck: list[Harm] = []
        self.reached: Counter[tuple[Boundary, Side, str]] = Counter()
        self.has_rebooted = False
        self._stage = stage
        self._baton = stage.baton
        self._person = person
        self._lookout = lookout
        self._supervisor = supervisor
        self._setback = setback
        self._chance = chance
        self._last: dict[Process, tuple[Boundary, Side]] = {}
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

    def prepare(self) -> None:
        """Let what is to happen at a time happen then."""
        for harm in self._timed:
            self._baton.later(harm.at_us, partial(self._blow_at, harm))

    def fault(self, process: Process, where: str) -> int | None:
        """How the library is to fail there; see `FaultSeam`."""
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
                self._lookout.disturb()
                self._count(process, harm)
                return harm.code
        return None

    def on_step(self, actor: Actor, boundary: Boundary, side: Side) -> str:
        """See `Baton.on_step`."""
        process = actor.thread
        assert isinstance(process, Process), "actors are threads of processes"
        self.reached[boundary, side, ""] += 1
        self._last[process] = boundary, side
        if boundary in COMMITS and side is Side.AFTER:
            self._stage.commits += 1
        if (
            boundary is Boundary.QUEUE_LOCK and self._stage.queue.holder is process
        ):  # nobody else commits until it lets go
            self._lookout.tick()
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
        while self._blows and self._blows[0].step <= self._baton.steps and self._has_place(self._blows[0], process):
            said = self._blow(self._blows.pop(0), process) or said
        return said

    def _has_place(self, harm: Harm, process: Process) -> bool:
        """Whether it can be done where that process just came to; else a step later."""
        if harm.role == "" and process.role not in HARMABLE and harm.kind in (Kind.CRASH, Kind.PAUSE):
            return False
        return harm.kind is not Kind.RESTORE or self._setback is None or not self._setback.is_in_use

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
                self._stage.start_coordinator()
            case Kind.FILL:
                self._stage.disk.full_until_us = self._baton.elapsed_us + harm.us
            case _ if harm.kind in SAID:
                self._person.want(harm)
            case Kind.DRAIN:
                asked = [each for each in self._living(harm.role) if each in self._stage.stops]
                if not asked:
                    return ""
                self._lookout.disturb()
                self._stage.stops[self._chance.choice(asked)].ask(harm.us / US_PER_S, "asked")
            case _:
                return self._strike_some(harm, process)
        self.struck.append(harm)
        return str(harm)

    def _strike_some(self, harm: Harm, process: Process | None) -> str:
        """Strike whoever is meant: everybody, one of a role, or who has the baton; nothing is said where nobody is."""
        victims = self._living(harm.role)
        if not harm.role and process is not None:
            victims = [process]
        if not victims:
            return ""
        if harm.role != EVERYBODY:
            victims = [self._chance.choice(victims)]
        return [self._strike(harm, victim) for victim in victims][-1]

    def _blow_at(self, harm: Harm) -> None:
        self._blow(harm, None)

    def _living(self, role: str) -> list[Process]:
        roles = SERVICES if role == EVERYBODY else (role,)
        return [each for each in self._stage.table.living() if each.role in roles]

    def _strike(self, harm: Harm, process: Process) -> str:
        if not self.struck or self.struck[-1] is not harm:  # everybody is struck by the same one
            self.struck.append(harm)
        hit = [process] if harm.victims is not Victims.WORKER else []
        if harm.victims is not Victims.SELF and process.worker is not None:
            hit.insert(0, process.worker)
        self._lookout.disturb()
        for each in hit:
            self._count(each, harm)
            if each.launch and harm.kind is not Kind.PAUSE:
                self._person.harmed.add(work_of(AttemptId(each.launch.rpartition(".")[0])))
            if harm.kind is Kind.TEAR:
                self._stage.disk.tear(each.launch)
            elif harm.kind is Kind.CRASH:
                each.end(-KILL)
            elif each.is_alive:
                each.stop(harm.us)
        return str(harm)

    def _count(self, process: Process, harm: Harm) -> None:
        if process in self._last:
            self.reached[(*self._last[process], harm.kind)] += 1

    def _reboot(self, harm: Harm) -> None:
        self.has_rebooted = True
        self._supervisor.stand_down()
        self._stage.table.reboot()
        self._stage.disk.lose_power(self._chance)
        self._stage.jobs.memory.lose(self._stage.disk)
        self._baton.reboot(harm.us)
        self._lookout.reboot()
        self._supervisor.reboot()

    def _go_back(self, harm: Harm) -> bool:
        setback = self._setback
        assert setback is not None, "the plan has it"
        if setback.has_happened or (harm.kind is Kind.RESTORE and setback.is_in_use):
            return False
        if harm.kind is Kind.OLDER:
            self._reboot(harm)
        self._lookout.disturb()
        self._stage.is_older = self._person.is_forgetful = setback.cut(harm.commits)
        return self._stage.is_older or harm.kind is Kind.OLDER
