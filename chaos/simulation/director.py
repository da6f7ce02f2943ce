"""Whoever stands outside: starts what died, asks for what people ask for, does the harm of the plan, and sees when all is at rest."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from functools import partial

from chaos.history import History, Job, Life, Look, Seen, look, record
from chaos.simulation.actors import Stage
from chaos.simulation.baton import Actor, Baton
from chaos.simulation.harm import EVERYBODY, Harm, Kind
from chaos.simulation.homes import Homes
from chaos.simulation.jobs import FOREVER_US
from chaos.simulation.jobs import Job as Behaviour
from chaos.simulation.processes import KILL, Process
from chaos.witness import Mark
from shared.boundary import Boundary, Side, Victims
from shared.errors import RefusedError, StoreBusyError
from shared.ids import AttemptId, Incarnation, WorkId, work_of
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import Config
from shared.model.work import NewWork
from shared.policy.settle import ending_of_status
from shared.store.contract import PERSON, Store
from shared.store.settling import change_after

LOOK_TURNS = 40
LOOK_US = 500 * US_PER_MS
RESTART_MOST_US = 1_500 * US_PER_MS
SUBMIT_MOST_US = 2 * US_PER_S
ASK_MOST_US = 8 * US_PER_S
HARMABLE = ("coordinator", "worker", "zygote", "shim", "child", "other")
SERVICES = ("coordinator", "worker")


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
        self._asked: list[NewWork] = []
        self._mistaken: set[WorkId] = set()
        self._harmed: set[WorkId] = set()
        self._has_rebooted = False
        self._cancelled: set[WorkId] = set()
        self._to_cancel: list[int] = []
        self._names: dict[Process, str] = {}
        self._lives: list[Life] = []
        self._looks: list[Look] = []
        self._is_disturbed = True
        self._was_able = False
        self._next_look_us = 0
        self._looked_turn = 0

    def prepare(self) -> None:
        """Start everybody."""
        stage = self.stage
        for number, behaviour in enumerate(self._behaviours, start=1):
            command = stage.jobs.command(number, behaviour)
            if behaviour.is_safe:  # its binding's own command: with another, it would not be known to be safe
                self._asked.append(NewWork(behaviour.scope, f"safe-{number}", None, (), "/", None, "a person"))
            else:
                binding = "short" if behaviour.lasts_us >= FOREVER_US else "plain"
                self._asked.append(NewWork(behaviour.scope, binding, command, (), "/", None, "a person"))
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
        process = self.stage.table.new("person", "person")
        process.start(lambda: self._ask(process))

    def _ended(self, process: Process) -> None:
        """Somebody ended: start it anew after a while; keep what the checks want to know of it."""
        if process.role in SERVICES:
            self._is_disturbed = True
            for name, (holder, _) in self.stage.locks.items():
                if holder is process:
                    self._lives.append(Life(Incarnation(name), self.stage.born[name], self.stage.last_seq()))
        if process in self._names:
            name = self._names.pop(process)
            self._start_later(name)

    def _start_later(self, name: str) -> None:
        self._baton.later(1 + int(self._chance.random() * RESTART_MOST_US), lambda: self._start_again(name))

    def _start_again(self, name: str) -> None:
        if name == "coordinator":
            self._start_coordinator()
        else:
            self._start_worker(name)

    # --- what people ask for

    def _ask(self, process: Process) -> None:
        store = self.stage.open(process)
        submitted = self.stage.look(lambda tx: tx.last_work_number())
        while True:
            busy = submitted < len(self._asked)
            pause_us = SUBMIT_MOST_US // len(self._asked) if busy else ASK_MOST_US
            self._baton.sleep(1 + int(self._chance.random() * pause_us))
            try:
                self._settle_unknown(store)
                self._confirm_unproven(store)
                if submitted < len(self._asked):
                    work = self._asked[submitted]
                    store.write(lambda tx, work=work: tx.submit(work, "jobs"))  # type: ignore[misc]
                    submitted += 1
                while self._to_cancel and self._to_cancel[0] <= submitted:
                    work_id = WorkId(f"w{self._to_cancel[0]}")
                    self._cancelled.add(work_id)
                    store.write(lambda tx, work_id=work_id: tx.cancel_work(work_id, by="a person", reason="enough"))  # type: ignore[misc]
                    self._to_cancel.pop(0)
                    if work_id in self._mistaken:
                        self._confirm_another(store, work_id)
            except StoreBusyError:
                continue
            except RefusedError:
                del self._to_cancel[:1]  # it has ended

    def _confirm_another(self, store: Store, work_id: WorkId) -> None:
        """Say that a Work is stopped, at the epoch that it was at before somebody took it over: it must be refused."""
        attempts = self.stage.look(lambda tx: tx.attempts(work_id))
        if attempts and attempts[-1].epoch > 1:
            last, word = attempts[-1], "I saw it stop"
            with suppress(RefusedError):
                store.write(
                    lambda tx: tx.confirm_stopped(
                        last.id, expected_epoch=last.epoch - 1, proof=PERSON, by="a person", reason=word
                    )
                )

    def _confirm_unproven(self, store: Store) -> None:
        """Say that something is stopped whose records are gone, so that no search can prove it, once nothing of it lives."""
        for order in self.stage.look(lambda tx: tx.stop_orders()):
            if order.tries > 1 and work_of(order.attempt_id) in self._harmed and not self._has_living(order.attempt_id):
                store.write(
                    lambda tx, order=order: tx.confirm_stopped(  # type: ignore[misc]
                        order.attempt_id, expected_epoch=order.epoch, proof=PERSON, by="a person", reason="seen"
                    )
                )

    def _has_living(self, attempt_id: AttemptId) -> bool:
        """Whether anything of an attempt lives, or may yet begin to."""
        lines = [line for line in self.stage.jobs.lines if line.attempt_id == attempt_id]
        began = {line.pid for line in lines if line.mark in (Mark.START, Mark.CHILD)}
        gone = {line.pid for line in lines if line.mark is Mark.GONE}
        return bool(began - gone) or self._may_still_run(attempt_id)

    def _settle_unknown(self, store: Store) -> None:
        """Say how an attempt ended that was left to a person, as the witness tells it, once nothing of it lives."""
        for attempt in self.stage.look(lambda tx: tx.needs_person(limit=10)):
            if self._has_living(attempt.id):
                continue
            behaviour = self._behaviours[int(attempt.work_id[1:]) - 1]
            has_ended = any(line.mark is Mark.END and line.attempt_id == attempt.id for line in self.stage.jobs.lines)
            ending = ending_of_status(behaviour.status if has_ended else -KILL, None)
            store.write(
                lambda tx, attempt=attempt, ending=ending: tx.reconcile(  # type: ignore[misc]
                    attempt.id,
                    expected_epoch=attempt.epoch,
                    ending=ending,
                    change=change_after(tx, attempt.id, ending),
                    by="a person",
                    reason="seen",
                )
            )

    def _may_still_run(self, attempt_id: AttemptId) -> bool:
        return any(each.launch.startswith(f"{attempt_id}.") for each in self.stage.table.living())

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
                return harm.code
        return None

    def _on_step(self, actor: Actor, boundary: Boundary, side: Side) -> str:
        process = actor.thread
        assert isinstance(process, Process), "actors are threads of processes"
        self.reached[boundary, side, ""] += 1
        said = ""
        key = (process.role, boundary, side)
        waiting = self._hits.get(key)
        if waiting:
            self._came[key] += 1
            for harm in [each for each in waiting if each.nth == self._came[key]]:
                waiting.remove(harm)
                said = self._strike(harm, process)
                self.reached[boundary, side, harm.kind] += 1
        while self._blows and self._blows[0].step <= self._baton.steps:
            if (
                self._blows[0].role == ""
                and process.role not in HARMABLE
                and self._blows[0].kind in (Kind.CRASH, Kind.PAUSE)
            ):
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
            case Kind.RIVAL:
                self.stage.start_coordinator()
            case Kind.CANCEL | Kind.MISTAKE:
                if harm.kind is Kind.MISTAKE:
                    self._mistaken.add(WorkId(f"w{harm.work}"))
                self._to_cancel.append(harm.work)
                self._to_cancel.sort()
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
            if each.launch and harm.kind is not Kind.PAUSE:
                self._harmed.add(work_of(AttemptId(each.launch.rpartition(".")[0])))
            if harm.kind is Kind.TEAR:
                self.stage.disk.tear(each.launch)
            elif harm.kind is Kind.CRASH:
                each.end(-KILL)
            elif each.is_alive:
                each.stop(harm.us)
        return str(harm)

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
        self._baton.later(2, self._start_person)

    # --- looking

    def is_over(self, *, elapsed_us: int, steps: int) -> bool:
        """Whether everything is at rest, or the bounds are reached."""
        baton = self._baton
        if baton.mono_us >= self._next_look_us:
            self._look()
        if baton.turns - self._looked_turn < LOOK_TURNS:
            return False
        self._looked_turn = baton.turns
        if baton.elapsed_us > elapsed_us or baton.steps > steps:
            return True
        if self.stage.look(lambda tx: tx.last_work_number()) < len(self._asked) or self._to_cancel:
            return False
        idle = self.stage.look(lambda tx: tx.idle_state())
        self.is_at_rest = idle.live == 0 and idle.waiting == 0
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

    def record(self) -> History:
        """Everything the checks look at."""
        for name, (process, _) in self.stage.locks.items():
            if process.is_alive:
                self._lives.append(Life(Incarnation(name), self.stage.born[name], None))
        seen = Seen(
            faults=tuple(self.stage.faults),
            gos=tuple(self.stage.gos),
            lives=tuple(self._lives),
            looks=tuple(self._looks),
        )
        return record(
            self.stage.observer,
            lambda _attempt: "",
            jobs=[self._job(number) for number in range(1, len(self._asked) + 1)],
            lines=self.stage.jobs.lines,
            config=self._config,
            seen=seen,
        )

    def _job(self, number: int) -> Job:
        behaviour = self._behaviours[number - 1]
        work_id = WorkId(f"w{number}")
        is_harmed = work_id in self._harmed or self._has_rebooted
        return Job(
            work_id,
            behaviour.status,
            cancelled=work_id in self._cancelled,
            cannot_run=behaviour.is_missing,
            may_time_out=behaviour.lasts_us >= FOREVER_US or self._has_rebooted,
            may_be_killed=is_harmed,
            may_need_person=is_harmed,
            may_run_again=behaviour.is_safe,
            output=None,
        )
