"""Negative controls of the conformance suite: remove one guard, and the cases named here must fail, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from shared.model.attempt import Snapshot
from shared.model.stream import Place
from shared.store import settling
from shared.store.sqlite import cancels, chains, charging, commands, controls, takeover, wakes
from shared.store.sqlite.connection import Connection, Params, Row
from shared.store.sqlite.coordination import Coordination
from shared.store.sqlite.queue import Queue
from shared.store.sqlite.reads import Reads
from shared.store.sqlite.reporting import Reporting
from shared.store.sqlite.work_reads import WorkReads
from tests.contract.store_cases import CASES
from tests.contract.store_cases.fences import SPOILERS, TRANSITIONS
from tests.contract.test_stores import MODULES
from tests.support.stores import SQLITE, World, ram_folder

assert MODULES


@dataclass(frozen=True)
class Control:
    """A guard, how it is taken away, and which cases must then fail."""

    name: str
    remove: Callable[[pytest.MonkeyPatch], None]
    fails: frozenset[str]


def _rewrite(old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Take a fragment out of every statement; it must be found in at least one."""

    def remove(patch: pytest.MonkeyPatch) -> None:
        original = Connection.rows

        def rows(self: Connection, sql: str, params: Params = ()) -> list[Row]:
            return original(self, sql.replace(old, new), params)

        patch.setattr(Connection, "rows", rows)

    return remove


def _replace(owner: type, name: str, stand_in: object) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(owner, name, stand_in)


def _of(spoiler: str, *others: str) -> frozenset[str]:
    return frozenset({f"{transition}_{spoiler}_is_refused" for transition in TRANSITIONS} | set(others))


assert {"by_a_stranger", "at_the_expiry_instant"} <= set(SPOILERS)


def _endless(depth: int, _pinned: Snapshot) -> int:
    return depth + 1


def _without_limit(patch: pytest.MonkeyPatch) -> None:
    for module in (chains, settling):
        patch.setattr(module, "derive", _endless)


CONTROLS = (
    Control(
        "a result counts under whatever token",
        _rewrite("AND fate = 'dispatched' AND token = :token", "AND fate = 'dispatched'"),
        frozenset({"a_result_under_an_older_token_changes_nothing"}),
    ),
    Control(
        "a stretch is recorded from wherever it begins",
        _replace(Place, "__ne__", lambda *_: False),
        frozenset(
            {
                "a_late_report_is_charged_once_and_applies_nothing_else",
                "a_stretch_is_recorded_once_and_where_the_last_one_ended",
            }
        ),
    ),
    Control(
        "a program takes what it was never handed",
        _rewrite("AND attempt_id = :attempt AND tries > 0)", "AND attempt_id = :attempt)"),
        frozenset(
            {
                "an_input_taken_before_an_end_that_spends_inputs_is_spent_when_that_is_read_late",
                "a_program_cannot_take_what_it_was_never_handed",
                "a_line_that_names_a_stranger_is_refused_and_all_around_it_counts",
                "a_stranger_that_is_read_late_is_refused_and_the_report_counts",
            }
        ),
    ),
    Control(
        "a program is believed of whatever input it names",
        _replace(Reporting, "_not_handed", lambda *_, **__: []),
        frozenset(
            {
                "a_belt_that_names_a_stranger_is_refused_and_keeps_nothing_of_that_word",
                "an_input_that_an_earlier_attempt_took_effect_with_is_a_stranger_by_the_belt",
                "what_was_taken_before_a_park_may_be_named_after_it",
                "a_line_that_names_a_stranger_is_refused_and_all_around_it_counts",
                "an_input_may_be_named_again_by_a_later_line_and_a_later_holder",
                "what_its_belt_took_is_no_stranger_to_its_lines",
                "a_stranger_that_is_read_late_is_refused_and_the_report_counts",
                "a_crowd_of_strangers_is_one_short_line",
            }
        ),
    ),
    Control(
        "the intents of an attempt stay open when it has ended",
        _rewrite("AND settled_at_us IS NULL RETURNING number, fate", "AND 0 RETURNING number, fate"),
        frozenset(
            {
                "work_goes_on_with_attempt_2_while_an_accepted_input_is_not_consumed",
                "an_intent_is_never_told_to_a_later_attempt",
                "a_cancel_returns_what_its_attempt_was_still_to_be_told",
            }
        ),
    ),
    Control(
        "an intent is due while its attempt does not run",
        _rewrite("AND a.state = 'running' AND l.owner", "AND l.owner"),
        frozenset({"an_intent_for_a_launching_attempt_waits", "a_result_under_an_older_token_changes_nothing"}),
    ),
    Control(
        "a chain has no limit",
        _without_limit,
        frozenset(
            {
                "a_chain_of_handoffs_stops_at_the_limit_with_its_outcome_kept",
                "a_new_root_begins_a_new_chain_where_one_had_stopped",
                "a_chain_too_long_skips_the_turn_and_keeps_the_outcome",
                "two_works_that_wake_each_other_for_ever_stop_at_the_limit",
            }
        ),
    ),
    Control(
        "a retry forgets its chain",
        _rewrite("depth = max(depth, (SELECT depth FROM attempt WHERE id = :attempt))", "depth = depth"),
        frozenset({"a_retry_is_as_deep_as_what_it_tries_again"}),
    ),
    Control(
        "a transaction ends as many waits as there are",
        lambda patch: patch.setattr(wakes, "WAKES_MAX", 10_000),
        frozenset(
            {
                "one_transaction_ends_a_bounded_number_of_waits_and_passes_end_the_rest",
                "a_pass_is_bounded_too_and_says_that_there_is_more",
                "several_events_of_one_transaction_share_its_bound",
                "each_wait_ends_by_the_first_event_it_waited_for",
                "a_timer_that_is_due_meanwhile_gives_way_to_the_event_that_had_come",
                "nobody_s_wait_is_lost_when_some_end_otherwise_meanwhile",
                "a_turn_s_events_are_bounded_as_any_other_s_and_wake_not_their_own_work",
            }
        ),
    ),
    Control(
        "an event overtakes the one before it",
        _rewrite("SELECT 1 FROM waking WHERE type = ?", "SELECT 1 FROM waking WHERE 0 AND type = ?"),
        frozenset({"each_wait_ends_by_the_first_event_it_waited_for"}),
    ),
    Control(
        "an event is not known again by its key",
        _rewrite("FROM published WHERE key = ?", "FROM published WHERE 0 AND key = ?"),
        frozenset({"an_event_published_again_under_its_key_is_the_same_event", "a_key_is_refused_for_another_event"}),
    ),
    Control(
        "a budget is never full",
        lambda patch: patch.setattr(charging, "first_full", lambda *_: None),
        frozenset(
            {
                "a_persons_retry_does_not_lift_what_a_budget_holds",
                "starts_stop_at_the_limit_counting_what_is_in_flight",
                "a_day_ends_at_midnight_utc_and_a_turn_counts_in_the_window_of_its_admission",
                "a_release_admits_exactly_one_turn_and_it_is_charged",
                "a_pass_is_spent_by_the_next_admission_even_within_the_budget",
                "input_queues_while_it_is_held",
                "a_persons_hold_on_top_is_lifted_on_its_own",
                "cancelling_what_is_held_ends_the_hold",
                "the_next_start_of_anything_settles_what_is_staged",
                "a_limit_lowered_below_what_is_used_is_told_by_the_hold",
                "a_budgets_hold_does_not_spend_the_gates_pass",
            }
        ),
    ),
    Control(
        "a notice is told as often as a line is met",
        _rewrite(
            "ON CONFLICT DO NOTHING RETURNING kind", "ON CONFLICT DO UPDATE SET told_at_us = :wall RETURNING kind"
        ),
        frozenset(
            {
                "a_limit_lowered_below_what_is_used_is_told_by_the_hold",
                "a_budget_of_all_scopes_is_told_in_each_scope_that_meets_it",
                "crossing_a_line_is_told_once_naming_the_work_as_data",
            }
        ),
    ),
    Control(
        "what was staged before a budget was known counts for it too",
        _rewrite("SELECT since_staged FROM budget", "SELECT since_staged * 0 FROM budget"),
        frozenset({"a_ledger_counts_from_when_its_budget_was_first_configured"}),
    ),
    Control(
        "a start spends no pass",
        _rewrite("attempts_used = :number, permits = ''", "attempts_used = :number"),
        frozenset(
            {
                "a_release_admits_exactly_one_turn_and_it_is_charged",
                "a_pass_is_spent_by_the_next_admission_even_within_the_budget",
                "admitting_leaves_a_pass_that_one_start_spends",
                "a_budgets_hold_does_not_spend_the_gates_pass",
            }
        ),
    ),
    Control(
        "a person's settling frees by the proof it names itself",
        lambda patch: patch.setattr(cancels, "replace", lambda ending, **_: ending),
        frozenset({"without_a_recorded_proof_a_persons_settling_frees_nothing"}),
    ),
    Control(
        "a timeout of the lapsed does not ask whether time is left",
        lambda patch: patch.setattr(takeover, "budget_left_us", lambda *_: 0),
        frozenset({"with_a_live_lease_or_time_left_nothing_is_timed_out"}),
    ),
    Control(
        "the fence does not ask for the owner",
        _rewrite("l.attempt_id = attempt.id AND l.owner = :owner", "l.attempt_id = attempt.id"),
        _of("by_a_stranger"),
    ),
    Control(
        "the expiry instant still counts as live",
        _rewrite("l.expires_mono_us > :mono", "l.expires_mono_us >= :mono"),
        _of(
            "at_the_expiry_instant",
            "renew_at_the_expiry_instant_extends_nothing",
            "a_live_attempt_is_not_recovered_until_the_expiry_instant",
            "recoverable_attempts_are_listed_behind_a_cursor",
            "the_leader_itself_may_recover_to_end_an_attempt",
            "the_next_due_is_the_earliest_of_lapse_overdue_claim_and_backoff",
            "with_a_live_lease_or_time_left_nothing_is_timed_out",
        ),
    ),
    Control(
        "a renewal sets the expiry instead of keeping the later one",
        _rewrite("max(expires_mono_us, :mono + :lease)", ":mono + :lease"),
        frozenset({"renew_survives_clock_step_back", "renew_with_a_shorter_lease_shortens_nothing"}),
    ),
    Control(
        "a renewal extends what was never accepted",
        _rewrite("AND l.accepted_at_us IS NOT NULL RETURNING attempt_id", "RETURNING attempt_id"),
        frozenset({"renew_extends_accepted_live_leases"}),
    ),
    Control(
        "a claim does not look at what it was decided on",
        _replace(Coordination, "_changed", lambda *_: None),
        frozenset(
            {
                "a_claim_by_a_pass_that_is_not_there_is_refused",
                "what_a_gate_said_to_another_state_of_the_work_holds_nothing",
                "a_claim_decided_on_an_older_work_is_refused",
                "a_held_work_does_not_start_until_it_is_released",
                "a_claim_of_a_cancelled_work_is_refused",
                "a_second_claim_on_one_decision_is_refused",
                "a_claim_decided_on_other_inputs_is_refused",
                "a_claim_decided_on_another_configuration_is_refused",
                "a_claim_for_a_worker_that_went_is_refused",
                "a_claim_for_a_worker_of_another_boot_is_refused",
                "a_claim_for_a_worker_without_the_pinned_executor_is_refused",
                "several_claims_share_a_transaction_and_one_refusal_undoes_no_other",
            }
        ),
    ),
    Control(
        "a claim does not ask for an unproven attempt before it",
        _replace(Reads, "unexcluded", lambda *_: None),
        frozenset(
            {
                "no_next_attempt_starts_beside_an_unproven_one",
                "a_retry_that_fired_still_waits_for_the_proof_of_the_stop",
                "an_interrupt_fences_the_attempt_and_leaves_its_work_ready_with_every_input",
                "a_person_s_retry_of_what_is_not_to_be_retried_is_refused_and_changes_nothing",
                "a_cancel_of_one_attempt_ends_exactly_it_and_settles_its_work",
                "without_a_recorded_proof_a_persons_settling_frees_nothing",
                "a_timeout_may_leave_its_work_to_be_tried_again_once_the_stop_is_proven",
            }
        ),
    ),
    Control(
        "a takeover does not compare the epoch it was decided on",
        _rewrite("AND epoch = :epoch AND ended_at_us IS NULL\n    AND EXISTS", "AND ended_at_us IS NULL AND EXISTS"),
        frozenset(
            {"a_takeover_decided_on_an_older_epoch_is_refused", "a_timeout_decided_on_an_older_epoch_is_refused"}
        ),
    ),
    Control(
        "leading does not compare the generation",
        _rewrite("WHERE owner = :owner AND generation = :generation AND boot_id", "WHERE owner = :owner AND boot_id"),
        frozenset({"an_old_leader_writes_nothing_more"}),
    ),
    Control(
        "a timer fires though it is not due",
        lambda patch: patch.setattr(controls, "is_due", lambda *_: True),
        frozenset({"only_the_leader_fires_and_only_what_is_due", "a_backoff_ends_by_elapsed_time_and_not_before"}),
    ),
    Control(
        "a person's retry does not ask what state the work is in",
        _replace(controls.Controls, "_refuse_retry", lambda *_: None),
        frozenset(
            {
                "a_persons_retry_does_not_lift_what_a_budget_holds",
                "a_person_s_retry_of_what_is_not_to_be_retried_is_refused_and_changes_nothing",
                "a_work_that_is_ready_again_is_not_retried_twice",
                "standing_work_that_rests_after_a_failure_is_retried_with_what_it_had",
            }
        ),
    ),
    Control(
        "a key does not ask for the content it was accepted with",
        lambda patch: [
            patch.setattr(commands, name, lambda *_: "") for name in ("work_digest", "input_digest")
        ].clear(),
        frozenset(
            {
                "a_key_answers_the_same_request_with_the_same_work_and_refuses_another",
                "an_input_s_key_answers_the_same_input_once_and_refuses_another",
            }
        ),
    ),
    Control(
        "nobody asks which bindings are quarantined",
        _replace(WorkReads, "quarantined", lambda *_: frozenset()),
        frozenset(
            {
                "a_binding_that_costs_three_workers_is_quarantined_and_what_runs_of_it_is_left_alone",
                "nobody_is_quarantined_for_deaths_that_several_may_have_caused_or_where_it_is_switched_off",
                "a_binding_whose_works_keep_failing_is_quarantined_until_a_person_releases_it",
                "a_success_in_between_begins_the_row_anew",
                "what_was_set_aside_for_a_quarantine_that_has_ended_is_found",
            }
        ),
    ),
    Control(
        "a death is counted on claims that were never accepted",
        _rewrite("AND l.accepted_at_us IS NOT NULL AND l.boot_id = :boot", "AND l.boot_id = :boot"),
        frozenset({"what_is_no_death_of_the_holder_counts_as_none"}),
    ),
    Control(
        "a death is counted whatever boot the worker was of",
        _rewrite("AND l.accepted_at_us IS NOT NULL AND l.boot_id = :boot", "AND l.accepted_at_us IS NOT NULL"),
        frozenset({"what_is_no_death_of_the_holder_counts_as_none"}),
    ),
    Control(
        "a pin does not end a row of deaths",
        _rewrite("workers_lost_in_row = 0\n", "workers_lost_in_row = workers_lost_in_row\n"),
        frozenset(
            {
                "a_row_of_lost_workers_ends_with_a_pin_and_with_one_that_held_it_for_long",
            }
        ),
    ),
    Control(
        "the queue lock is not taken",
        _replace(Queue, "_try", lambda _: True),
        frozenset({"a_held_queue_keeps_writers_out"}),
    ),
)


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name.replace(" ", "_"))
def test_removing_a_guard_fails_its_cases_and_no_other(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    control.remove(monkeypatch)

    failed = {name for name in CASES if not _passes(name)}

    assert failed == control.fails


def _passes(name: str) -> bool:
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        try:
            CASES[name].run(world)
        except (Exception, pytest.fail.Exception):  # noqa: BLE001 - whatever fails a case fails it
            return False
        finally:
            world.close()
    return True
