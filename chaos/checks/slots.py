"""Exclusion: a slot is taken once, counted in every limit, and free only on proof."""

from __future__ import annotations

from collections import Counter

from chaos.checks.processes import Process, processes
from chaos.checks.wakes import PARKS, WOKEN
from chaos.history import History
from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, Exclusion
from shared.model.settings import scope_chain
from shared.policy import proof as proofs
from shared.policy.capacity import POOL_JOBS
from shared.policy.steps import is_final_attempt
from shared.store.contract import Event
from shared.store.values import PERSON

PROOFS = frozenset({proofs.S0, proofs.S1, proofs.S1B, proofs.S2, proofs.S3, proofs.S5})
ENDINGS = frozenset(f"attempt.{state}" for state in AttemptState if is_final_attempt(state))


def attempts_wait_for_proof(history: History) -> list[str]:
    """No attempt is claimed while an earlier one of its Work is unfinished or not proven stopped. Rule: E03, R10."""
    found = []
    held: dict[str, set[AttemptId]] = {}
    for event in history.events:
        if event.attempt_id is None:
            continue
        of_work = held.setdefault(work_of(event.attempt_id), set())
        if event.kind == "attempt.claimed":
            found += [
                f"{event.attempt_id} was claimed (event {event.seq}) while {other} was not proven stopped"
                for other in sorted(of_work)
            ]
            of_work.add(event.attempt_id)
        elif frees(event) and event.kind not in PARKS:  # what is parked is not over
            of_work.discard(event.attempt_id)
    return found


def frees(event: Event) -> bool:
    """Whether an event frees the slot of its attempt: a proven end, a park, a proof."""
    ends_proven = event.kind in (*ENDINGS, *PARKS) and event.data.get("proof") is not None
    return ends_proven or event.kind == "attempt.stop_confirmed"


def capacity_is_kept(history: History) -> list[str]:
    """Never more launches with living processes at once than a pool or any scope above them allows, by the witness alone.
    Rule: C01, E07.
    """
    living: list[Process] = []
    found = []
    for process in processes(history):
        living = [other for other in living if other.lives_at(process.began)] + [process]
        for limit in _limits_above(history, process.launch[0]):
            kind, name, most = limit
            running = {other.launch for other in living if limit in _limits_above(history, other.launch[0])}
            if len(running) > most:
                found.append(
                    f"{len(running)} at once in {kind} {name!r} when {process.work_id} started, {most} allowed"
                )
    return found


def _limits_above(history: History, attempt_id: AttemptId) -> list[tuple[str, str, int]]:
    """The limits that an attempt counts against; of one that the store does not know, the limit of jobs."""
    attempt = history.attempts.get(attempt_id)
    pool, scope = (POOL_JOBS, "") if attempt is None else (attempt.pool, attempt.scope)
    pools, scopes = history.limits.pools, history.limits.scopes
    above = [("pool", pool, pools.get(pool, 0)), *(("scope", name, scopes.get(name, 0)) for name in scope_chain(scope))]
    return [limit for limit in above if limit[2] > 0]


def slots_are_kept(history: History) -> list[str]:
    """Never more attempts that hold a slot than a pool or any scope above them allows, by the changefeed. Rule: C01, C03."""
    found = []
    pools: Counter[str] = Counter()
    scopes: Counter[str] = Counter()
    holding: set[AttemptId] = set()
    for event in history.events:
        attempt = None if event.attempt_id is None else history.attempts.get(event.attempt_id)
        if attempt is None:
            continue
        takes = event.kind in ("attempt.claimed", WOKEN) and attempt.id not in holding
        if not (takes or (frees(event) and attempt.id in holding)):
            continue
        step = 1 if takes else -1
        holding ^= {attempt.id}
        pools[attempt.pool] += step
        scopes.update(dict.fromkeys(scope_chain(attempt.scope), step))
        if takes:
            used = {"pool": pools, "scope": scopes}
            found += [
                f"{attempt.id} was given a slot (event {event.seq}) as number {used[kind][name]} in {kind} {name!r}, {most} allowed"
                for kind, name, most in _limits_above(history, attempt.id)
                if used[kind][name] > most
            ]
    return found


def slots_are_freed_on_proof(history: History) -> list[str]:
    """A slot is freed by a proof, for the epoch in which its attempt ended, once nothing of it lives. Rule: R10, R11."""
    found = []
    known = processes(history)
    ended_at: dict[AttemptId, int | None] = {}
    may_be_word = {job.work_id for job in history.jobs if job.may_need_person}
    for event in history.events:
        if event.attempt_id is None:
            continue
        name, proof = event.attempt_id, event.data.get("proof")
        if event.kind in PARKS:
            ended_at[name] = event.epoch
        elif event.kind == WOKEN:
            ended_at.pop(name, None)
        elif event.kind in ENDINGS:
            ended_at.setdefault(name, event.epoch)
        if not frees(event):
            continue
        if proof not in PROOFS and not (proof == PERSON and work_of(name) in may_be_word):
            found.append(f"{name} was freed by {proof!r} (event {event.seq})")
        if event.epoch != ended_at.get(name):
            found.append(f"{name} ended at epoch {ended_at.get(name)}, freed was epoch {event.epoch}")
        found += [
            f"{name} was freed by {proof} (event {event.seq}) while pid {process.pid} lived"
            for process in known
            if process.launch[0] == name and process.lives_at_seq(event.seq)
        ]
    return found


def nothing_is_stuck(history: History) -> list[str]:
    """At rest every attempt is over, its lease gone, its slot free, its stop proven, its cancel settled; unless a person is asked
    for what a person may be needed for.
    """
    found = []
    excused = {job.work_id for job in history.jobs if job.may_need_person}
    open_ = {job.work_id for job in history.jobs if job.may_stay_open}
    for attempt in history.attempts.values():
        is_asked = attempt.work_id in excused and attempt.state is AttemptState.RECOVERY_REQUIRED
        if is_asked or attempt.work_id in open_:
            continue
        lease = history.leases.get(attempt.id)
        if not is_final_attempt(attempt.state):
            found.append(f"{attempt.id} is still {attempt.state}")
        elif attempt.exclusion is not Exclusion.RELEASED and attempt.work_id not in excused:
            found.append(f"{attempt.id} is {attempt.state} and still holds its slot")
        elif lease is not None and lease.revoked_at_us is None:
            found.append(f"{attempt.id} is {attempt.state}, and {lease.owner} still has its lease")
    excused |= open_
    found += [
        f"stop order {order.id} for {order.attempt_id} is open"
        for order in history.open_orders
        if work_of(order.attempt_id) not in excused
    ]
    return found + [
        f"cancel {cancel.id} of {cancel.work_id} is not settled"
        for cancels in history.cancellations.values()
        for cancel in cancels
        if cancel.settled_at_us is None and cancel.work_id not in excused
    ]
