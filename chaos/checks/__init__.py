"""What must hold after any drill: pure functions over a recorded history, each with a test in which it alone fires.

A check returns a sentence for everything it finds wrong; none means that it holds. Its name is its id in reports. Rule: design §9;
requirements M01, R02, R10, R11, E03, C03, L01, D02.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.checks import (
    actors,
    budgets,
    chains,
    inputs,
    jobs,
    launches,
    order,
    quiet,
    retries,
    routines,
    slots,
    speech,
    spoken,
    used,
    wakes,
    words,
)
from chaos.history import History

Check = Callable[[History], list[str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be: the check that fired, and what it saw."""

    check: str
    what: str

    def __str__(self) -> str:
        return f"{self.check}: {self.what}"


CHECKS: tuple[Check, ...] = (
    jobs.jobs_are_one_set,
    jobs.started_jobs_came_to_their_end,
    jobs.statuses_are_true,
    jobs.outputs_are_whole,
    inputs.inputs_are_kept,
    inputs.no_input_is_lost,
    inputs.no_input_is_consumed_twice,
    retries.retries_are_not_spent,
    retries.retries_come_from_accepted_events,
    retries.retries_keep_the_policy,
    launches.one_launch_of_a_work_lives,
    launches.launches_follow_their_pin,
    launches.gates_open_under_a_live_pin,
    launches.nothing_that_ran_is_relaunched,
    launches.success_has_evidence,
    slots.attempts_wait_for_proof,
    slots.capacity_is_kept,
    slots.slots_are_kept,
    slots.slots_are_freed_on_proof,
    slots.nothing_is_stuck,
    wakes.waits_end,
    wakes.resumes_follow_their_wait,
    wakes.nothing_that_ran_is_put_off,
    speech.every_line_is_heard_once,
    speech.the_belt_keeps_its_word,
    speech.ends_are_as_declared,
    speech.turns_are_told_of_what_ended,
    speech.usage_is_all_that_was_reported,
    chains.handoffs_go_on_once,
    chains.chains_keep_within_their_depth,
    words.intents_end_once,
    words.fates_are_true,
    words.words_reach_whom_they_are_for,
    words.inputs_are_dropped_as_their_binding_says,
    words.interrupts_are_fenced_first,
    words.waits_end_by_what_they_wait_for,
    budgets.starts_keep_to_their_budgets,
    budgets.usage_is_charged_once,
    budgets.gates_admit_before_the_first_start,
    used.usage_is_what_was_said,
    used.starts_keep_to_what_was_said,
    used.holds_take_no_slot,
    spoken.every_input_is_seen,
    spoken.inputs_are_read_in_order,
    spoken.takes_are_as_said,
    spoken.intents_are_told_the_truth,
    spoken.inputs_are_given_up_as_bound,
    spoken.intents_reach_whom_they_are_for,
    spoken.nothing_is_read_after_it_took_effect,
    spoken.attempts_end_as_they_said,
    spoken.attempts_follow_what_was_said,
    spoken.turns_are_told_once,
    spoken.wakes_are_told,
    spoken.nothing_said_is_refused,
    routines.quarantined_bindings_start_nothing,
    routines.failures_quarantine_their_binding,
    routines.losses_quarantine_their_binding,
    routines.lost_workers_are_counted,
    order.changefeed_has_no_gap,
    order.tables_follow_the_changefeed,
    order.ends_happen_once,
    order.nothing_follows_the_end,
    order.epochs_only_rise,
    order.generations_only_rise,
    order.one_leader_at_a_time,
    quiet.only_the_quiet_are_ended,
    quiet.the_quiet_are_ended,
    actors.nothing_is_neglected,
    actors.only_the_dead_are_buried,
    actors.nobody_writes_into_the_past,
    actors.no_actor_broke,
)


def examine(history: History) -> list[Finding]:
    """Everything that any check finds wrong."""
    return [Finding(check.__name__, what) for check in CHECKS for what in check(history)]
