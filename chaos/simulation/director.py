"""Whoever stands outside of a history: brings everybody together, sees when all is at rest, and keeps what is known then."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from chaos.history import History
from chaos.job import Job
from chaos.recording import Known, record
from chaos.seen import Seen
from chaos.simulation.actors import Stage
from chaos.simulation.baton import Baton
from chaos.simulation.harm import Harm, Kind
from chaos.simulation.homes import Homes
from chaos.simulation.jobs import FOREVER_US, binding_number
from chaos.simulation.jobs import Job as Behaviour
from chaos.simulation.lookout import Lookout
from chaos.simulation.person import HELD, Person
from chaos.simulation.processes import KILL
from chaos.simulation.programs import AGENT
from chaos.simulation.setback import Setback
from chaos.simulation.striker import Striker
from chaos.simulation.supervisor import SERVICES, Supervisor
from shared.boundary import Boundary, Side
from shared.ids import WorkId
from shared.model.instant import US_PER_S
from shared.model.settings import Config
from shared.model.work import NewWork, WorkKind
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS
from shared.store.contract import ReadTx

LOOK_TURNS = 40
PUT_BACK_MOST_US = 3 * US_PER_S


class Director:
    """One history's outside.

    Attributes:
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
        self.is_at_rest = False
        self._is_refused = False
        self._is_putting_back = False
        self._looked_turn = 0
        self.stage = stage = Stage(homes.path, baton, homes.warm.connect)
        stage.table.keeps_status = self._chance.random() < 0.5
        stage.lost_rings = self._chance.choice((0.0, 0.0, 0.2, 1.0))
        stage.on_refusal = self._refused
        self._person = Person(stage, jobs, self._chance)
        self._lookout = Lookout(stage)
        names = tuple(f"worker-{number}" for number in range(1, workers + 1))
        self._supervisor = Supervisor(stage, self._person, self._lookout, self._chance, workers=names)
        goes_back = any(harm.kind in (Kind.OLDER, Kind.RESTORE) for harm in plan)
        self._setback = Setback(homes, stage, self._supervisor.lives) if goes_back else None
        self._striker = Striker(plan, stage, self._person, self._lookout, self._supervisor, self._setback, self._chance)
        stage.fault = self._striker.fault
        baton.on_step = self._striker.on_step

    @property
    def struck(self) -> tuple[Harm, ...]:
        """Harm that found its place, in that order."""
        return tuple(self._striker.struck)

    @property
    def reached(self) -> Counter[tuple[Boundary, Side, str]]:
        """See `Outcome.reached`."""
        return self._striker.reached

    def prepare(self) -> None:
        """Start everybody."""
        for number, behaviour in enumerate(self._behaviours, start=1):
            self._person.asked.append(self._wanted(number, behaviour))
        self._supervisor.start()
        self._striker.prepare()

    def _wanted(self, number: int, behaviour: Behaviour) -> tuple[NewWork, str]:
        """The Work that runs a job, and its pool."""
        command = self.stage.jobs.command(number, behaviour)
        if not behaviour.needs_binding:
            binding = "short" if behaviour.lasts_us >= FOREVER_US else "plain"
            return NewWork(behaviour.scope, binding, command, (), "/", None, "a person"), POOL_JOBS
        # With the binding's own command: of another one, what it says does not hold.
        kind = WorkKind.STANDING if behaviour.inputs else WorkKind.RUN_ONCE
        binding = f"own-{binding_number(self._behaviours, number)}"
        work = NewWork(behaviour.scope, binding, None, (), "/", None, "a person", kind=kind)
        pool = POOL_AGENTS if behaviour.voice == AGENT else POOL_JOBS
        return replace(work, correlate=behaviour.keys), pool

    # --- a store that went back in time

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
        self._lookout.disturb()
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
        self._lookout.look_if_due()
        if baton.turns - self._looked_turn < LOOK_TURNS:
            return False
        self._looked_turn = baton.turns
        if baton.elapsed_us > elapsed_us or baton.steps > steps:
            return True
        if not self._person.is_done:
            return False
        if self.stage.is_older and any(process.role == "child" for process in self.stage.table.living()):
            return False  # a job that the store forgot is left to a person, and runs on
        self.is_at_rest = self.stage.known(is_at_rest)
        return self.is_at_rest

    def why_restless(self) -> str:
        """What keeps it from rest."""
        idle = self.stage.look(lambda tx: tx.idle_state())
        orders = self.stage.look(lambda tx: tx.stop_orders())
        return f"after {self._baton.elapsed_us / US_PER_S:.0f} s: {idle}, stop orders {[order.attempt_id for order in orders]}"

    def close(self) -> None:
        """End everything."""
        self.stage.close()
        if self._setback is not None:
            self._setback.close()

    # --- what is known

    def record(self) -> History:
        """Everything the checks look at."""
        setback, memory = self._setback, self.stage.jobs.memory
        seen = Seen(
            backwards=() if setback is None else tuple(setback.backwards),
            lost=() if setback is None else setback.lost,
            faults=tuple(self.stage.faults),
            gos=tuple(self.stage.gos),
            lives=(*self._supervisor.lives, *self._supervisor.survivors()),
            looks=tuple(self._lookout.looks),
            ticks=() if self._is_time_unsure else tuple(self._lookout.ticks),
            said=tuple(memory.said.values()),
            told=tuple(memory.told),
            written=tuple(memory.written),
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
        was_forgotten = self._setback is not None and self._setback.has_happened
        return (self._striker.has_rebooted and has_stepped) or was_forgotten

    def _job(self, number: int) -> Job:
        behaviour, words = self._behaviours[number - 1], self._person.words
        work_id = WorkId(f"w{number}")
        has_rebooted = self._striker.has_rebooted
        is_harmed = work_id in self._person.harmed or has_rebooted
        was_forgotten = self._setback is not None and self._setback.has_happened
        lost = () if self._setback is None else self._setback.lost
        was_stopped = any(event.kind == "stop.ordered" and event.work_id == work_id for event in lost)
        return Job(
            work_id,
            behaviour.status,
            cancelled=work_id in self._person.cancelled | words.cancelled,
            cannot_run=behaviour.is_missing,
            may_time_out=behaviour.lasts_us >= FOREVER_US or bool(behaviour.idle_us) or has_rebooted,
            may_be_killed=is_harmed or was_stopped,  # by a stop that its store has forgotten
            may_need_person=is_harmed or was_forgotten,
            may_stay_open=self._is_refused,
            may_be_given_up=bool(self._config.settings.workers_lost_max),
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
