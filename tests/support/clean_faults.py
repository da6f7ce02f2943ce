"""Faults of the clean history, each of which makes one check fire: of slots, the changefeed, actors and budgets; and those of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from chaos.history import History
from chaos.seen import Backward, Fault, Life, Look
from chaos.witness import Mark
from shared.ids import Incarnation, WorkId
from shared.model.attempt import AttemptState, Exclusion
from shared.model.budget import Budget, Per
from shared.model.instant import US_PER_S
from shared.model.work import WorkState
from tests.support.clean_histories import (
    index_of,
    open_order,
    with_changed_event,
    with_changed_lines,
    with_event,
    with_late_ends,
    without_lines,
)
from tests.support.history_faults import (
    A1,
    A2,
    A3,
    A6,
    AGAIN,
    LOST,
    W1,
    W2,
    W3,
    bare_success,
    cut_short,
    ended_by_another,
    go_after_takeover,
    go_of_another_launch,
    go_too_late,
    go_without_pin,
    input_gone,
    input_lost_between_attempts,
    input_waits_though_consumed,
    lost,
    never_started,
    not_cancelled,
    not_submitted,
    other_status,
    output_cut,
    output_twice,
    ran_after_all,
    relaunched_though_it_ran,
    retry_spent,
    second_start,
    started_too_early,
    success_of_a_job_cut_short,
    two_launches_at_once,
    with_attempt,
)

Faulty = Callable[[History], History]


# --- slots


def _claimed_too_early(history: History) -> History:
    """The proof that w4.1 is stopped comes right behind the claim of w4.2."""
    proof, claim = index_of(history, "attempt.stop_confirmed", LOST), index_of(history, "attempt.claimed", AGAIN)
    events = list(history.events)
    events.insert(claim, events.pop(proof))
    return replace(history, events=tuple(replace(event, seq=place + 1) for place, event in enumerate(events)))


def _three_at_once(history: History) -> History:
    return with_late_ends(history, A1, A2)


def _three_at_once_in_a_scope(history: History) -> History:
    roomy = replace(with_attempt(history, A3, scope="ops"), limits=replace(history.limits, pools={}))
    return with_late_ends(roomy, A1, A2)


def _scope_full(history: History) -> History:
    return replace(history, limits=replace(history.limits, scopes={"ops": 1}))


def _pool_full(history: History) -> History:
    return replace(history, limits=replace(history.limits, pools={"jobs": 1}))


def _freed_by_an_exit_status(history: History) -> History:
    return with_changed_event(history, "attempt.failed", A2, data={"proof": "exit status"})


def _freed_on_a_word(history: History) -> History:
    return with_changed_event(history, "attempt.stop_confirmed", LOST, data={"proof": "person"})


def _freed_at_another_epoch(history: History) -> History:
    return with_changed_event(history, "attempt.stop_confirmed", LOST, epoch=2)


def _freed_while_it_lives(history: History) -> History:
    return with_changed_lines(history, Mark.GONE, A3, seq=len(history.events))


def _slot_held(history: History) -> History:
    """With its proof gone from the changefeed too, as that is what freed it."""
    unproven = with_changed_event(history, "attempt.failed", A2, data={"proof": None})
    return with_attempt(unproven, A2, exclusion=Exclusion.HELD)


def unfinished(history: History) -> History:
    """The end of w6.1 never came, and nobody asks for its job any more."""
    place = index_of(history, "attempt.succeeded", A6)
    others = [event for event in history.events[place - 1 :] if event.attempt_id != A6 and event.work_id != "w6"]
    events = (*history.events[: place - 1], *others)
    running = replace(
        history.works[WorkId("w6")],
        state=WorkState.RUNNING,
        ended_at_us=None,
    )
    left = replace(
        history,
        events=tuple(replace(event, seq=at + 1) for at, event in enumerate(events)),
        works={**history.works, running.id: running},
        leases={**history.leases, A6: replace(history.leases[A6], revoked_at_us=None, revoked_reason=None)},
        jobs=tuple(job for job in history.jobs if job.work_id != running.id),
        lives=(),
    )
    left = without_lines(left, A6)
    return with_attempt(left, A6, state=AttemptState.RUNNING, ended_at_us=None, exclusion=Exclusion.HELD)


def _order_open(history: History) -> History:
    return replace(history, open_orders=(open_order(A2),))


def _cancel_unsettled(history: History) -> History:
    cancels = [replace(cancel, settled_at_us=None) for cancel in history.cancellations[W3]]
    return replace(history, cancellations={**history.cancellations, W3: tuple(cancels)})


# --- the changefeed


def _event_missing(history: History) -> History:
    place = index_of(history, "attempt.accepted", A2)
    return replace(history, events=history.events[:place] + history.events[place + 1 :])


def _illegal_step(history: History) -> History:
    return with_changed_event(history, "attempt.adopted", A1, kind="attempt.accepted")


def _other_origin(history: History) -> History:
    return with_changed_event(history, "attempt.adopted", A1, data={"from": "launching"})


def _revoked_twice(history: History) -> History:
    return with_changed_event(history, "attempt.accepted", A2, kind="lease.revoked")


def _second_end(history: History) -> History:
    end = history.events[index_of(history, "attempt.failed", A2)]
    return replace(history, events=(*history.events, replace(end, seq=len(history.events) + 1)))


def _second_end_of_work(history: History) -> History:
    end = next(event for event in history.events if event.kind == "work.failed")
    return replace(history, events=(*history.events, replace(end, seq=len(history.events) + 1)))


def _late_write(history: History) -> History:
    return with_event(history, "attempt.accepted", attempt_id=A2, work_id=W2, epoch=1)


def _epoch_falls(history: History) -> History:
    return with_event(history, "stop.unproven", attempt_id=A1, work_id=W1, epoch=1)


def _segment_missing(history: History) -> History:
    return replace(history, segments={**history.segments, A1: history.segments[A1][1:]})


def _segment_open(history: History) -> History:
    first, second = history.segments[A1]
    return replace(history, segments={**history.segments, A1: (replace(first, ended_at_us=None), second)})


def _same_generation(history: History) -> History:
    return with_event(history, "leader.taken", data={"generation": 2})


def _old_leader_writes(history: History) -> History:
    return with_event(history, "config.activated", data={"generation": 1})


# --- actors


def neglected(history: History) -> History:
    item = frozenset({(A1, 1)})
    looks = [Look(at * 33 * US_PER_S, True, item) for at in range(3)]
    return replace(history, looks=tuple(looks))


def _buried_alive(history: History) -> History:
    return replace(history, lives=(*history.lives, Life(Incarnation("worker-3.1"), 0, None)))


def _written_into_the_past(history: History) -> History:
    return replace(history, backwards=(Backward("worker-1.1", 12, 9),))


def _broke(history: History) -> History:
    return replace(history, faults=(Fault("worker-1.1", "FenceViolationError", "the store refused a statement"),))


# --- budgets and gates


TURNS = Budget("turns", Decimal(99), Per.ALL)


def with_turns(history: History, *, limit: int = 99, missing: int = 0) -> History:
    """As if a budget of that many turns had been in force; its ledger lacks so many."""
    charged = Decimal(len(history.attempts) - missing)
    budget = replace(TURNS, limit=Decimal(limit))
    return replace(history, budgets=(budget,), ledgers={budget: {"": charged}})


def with_approvals(history: History, *, released: bool) -> History:
    """As if w2 had needed approval; `released`: it got it before it started."""
    snapshots = {**history.snapshots, A2: replace(history.snapshots[A2], binding="deploy")}
    gated = replace(history, snapshots=snapshots, approvals=frozenset({"deploy"}))
    if not released:
        return gated
    claim = index_of(gated, "attempt.claimed", A2)
    word = replace(gated.events[claim], kind="gate.released", attempt_id=None, epoch=None, data={})
    events = [*gated.events[:claim], word, *gated.events[claim:]]
    return replace(gated, events=tuple(replace(event, seq=at + 1) for at, event in enumerate(events)))


def _past_its_budget(history: History) -> History:
    return with_turns(history, limit=1)


def _charged_too_little(history: History) -> History:
    return with_turns(history, missing=1)


def _charged_twice(history: History) -> History:
    return with_turns(history, missing=-1)


def _not_approved(history: History) -> History:
    return with_approvals(history, released=False)


FAULTS: dict[str, list[Faulty]] = {
    "jobs_are_one_set": [second_start, never_started, not_submitted, lost],
    "started_jobs_came_to_their_end": [cut_short, ended_by_another],
    "statuses_are_true": [other_status, not_cancelled],
    "outputs_are_whole": [output_cut, output_twice],
    "inputs_are_kept": [input_waits_though_consumed, input_gone, input_lost_between_attempts],
    "retries_are_not_spent": [retry_spent, ran_after_all],
    "one_launch_of_a_work_lives": [two_launches_at_once],
    "launches_follow_their_pin": [started_too_early],
    "gates_open_under_a_live_pin": [go_without_pin, go_of_another_launch, go_too_late, go_after_takeover],
    "nothing_that_ran_is_relaunched": [relaunched_though_it_ran],
    "success_has_evidence": [bare_success, success_of_a_job_cut_short],
    "attempts_wait_for_proof": [_claimed_too_early],
    "capacity_is_kept": [_three_at_once, _three_at_once_in_a_scope],
    "slots_are_kept": [_scope_full, _pool_full],
    "slots_are_freed_on_proof": [
        _freed_by_an_exit_status,
        _freed_on_a_word,
        _freed_at_another_epoch,
        _freed_while_it_lives,
    ],
    "nothing_is_stuck": [_slot_held, unfinished, _order_open, _cancel_unsettled],
    "starts_keep_to_their_budgets": [_past_its_budget],
    "usage_is_charged_once": [_charged_too_little, _charged_twice],
    "gates_admit_before_the_first_start": [_not_approved],
    "changefeed_has_no_gap": [_event_missing],
    "tables_follow_the_changefeed": [_illegal_step, _other_origin, _revoked_twice],
    "ends_happen_once": [_second_end, _second_end_of_work],
    "nothing_follows_the_end": [_late_write],
    "epochs_only_rise": [_epoch_falls, _segment_missing, _segment_open],
    "generations_only_rise": [_same_generation],
    "one_leader_at_a_time": [_old_leader_writes],
    "nothing_is_neglected": [neglected],
    "only_the_dead_are_buried": [_buried_alive],
    "nobody_writes_into_the_past": [_written_into_the_past],
    "no_actor_broke": [_broke],
}
