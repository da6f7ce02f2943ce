"""The guards of the product by name, and how to take each one away for a while, in this process.

A guard is worth what happens without it: `chaos/simulation/controls.py` takes each away and waits for the check that must fire, by
name. Where a second defence stands behind one, taking the first away alone changes nothing or ends in a refusal; then
`covered_by` says which it is, and a test shows it. Rule: design §9 ("remove one guard, that check, and it by name, must fire").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from chaos.guards import again, bindings, removals, spoken


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard.

    Attributes:
        keeps: What it keeps from happening.
        remove: Takes it away for the time of a `with`; raises LookupError when it is not there.
        caught_by: The check that must fire in a simulation without it; None: none can, and `covered_by` says why.
        entails: Checks that may fire beside that one, since what they look at follows. Anything else fails the control.
        covered_by: The defence behind it, for the sake of which nothing happens without it, or what a simulation lacks; a case of
            its own shows what it refuses.
        alters_schema: It stands in the tables; only a store that is made meanwhile is without it.
    """

    name: str
    keeps: str
    remove: Callable[[], AbstractContextManager[None]]
    caught_by: str | None
    entails: frozenset[str] = frozenset()
    covered_by: str | None = None
    alters_schema: bool = False

    @contextmanager
    def removed(self) -> Iterator[None]:
        """Be without it; it is back afterwards, whatever happens."""
        with self.remove():
            yield


_RAN_TWICE = frozenset(
    {
        "jobs_are_one_set",
        "one_launch_of_a_work_lives",
        "nothing_that_ran_is_relaunched",
        "capacity_is_kept",
        "slots_are_freed_on_proof",
    }
)
_RAN_UNKNOWN = frozenset(
    {
        "launches_follow_their_pin",
        "success_has_evidence",
        "statuses_are_true",
        "retries_are_not_spent",
        "nothing_is_stuck",
        "jobs_are_one_set",
        "no_actor_broke",
        "never_at_rest",
    }
)
"""What follows when something runs that was never pinned: nobody can adopt or stop it, and its slot is never free again."""

_FORGOTTEN = _RAN_TWICE | _RAN_UNKNOWN | {"gates_open_under_a_live_pin", "one_leader_at_a_time", "epochs_only_rise"}
"""What follows when somebody goes on by what the store does not know any more."""

_UNHEARD = frozenset(
    {
        "ends_are_as_declared",
        "turns_are_told_of_what_ended",
        "usage_is_all_that_was_reported",
        "fates_are_true",
        "waits_end",
        "resumes_follow_their_wait",
    }
)
"""What follows when something that was said does not count, or something else does."""

GUARDS: tuple[Guard, ...] = (
    Guard("fence", "a write whose lease is over", removals.fence, "no_actor_broke"),
    Guard(
        "pin_before_go",
        "something that runs and that the store does not know of",
        removals.pin_before_go,
        "gates_open_under_a_live_pin",
        _RAN_UNKNOWN,
    ),
    Guard(
        "lease_at_go", "a gate opened after the lease has lapsed", removals.lease_at_go, "gates_open_under_a_live_pin"
    ),
    Guard(
        "closed_gate",
        "a job whose worker gave its launch up",
        removals.closed_gate,
        "launches_follow_their_pin",
        _RAN_UNKNOWN,
    ),
    Guard(
        "unexcluded_recheck",
        "attempt N+1 beside an unproven N; the unique index behind it refuses",
        removals.unexcluded_recheck,
        "no_actor_broke",
    ),
    Guard(
        "one_unexcluded",
        "attempt N+1 beside an unproven N",
        removals.one_unexcluded,
        "attempts_wait_for_proof",
        _RAN_TWICE,
        alters_schema=True,
    ),
    Guard(
        "claim_recheck",
        "a claim of a Work that has changed; the state tables behind it refuse",
        removals.claim_recheck,
        "no_actor_broke",
    ),
    Guard(
        "pool_limit",
        "more attempts at once than a pool allows",
        removals.pool_limit,
        "slots_are_kept",
        frozenset({"capacity_is_kept"}),
    ),
    Guard(
        "scope_limit",
        "more attempts at once than a scope above them allows",
        removals.scope_limit,
        "slots_are_kept",
        frozenset({"capacity_is_kept"}),
    ),
    Guard("budget_limit", "a start past a budget", removals.budget_limit, "starts_keep_to_their_budgets"),
    Guard(
        "turn_charge",
        "turns that are taken and not counted",
        removals.turn_charge,
        "usage_is_charged_once",
        frozenset({"starts_keep_to_their_budgets"}),
    ),
    Guard("approval", "a first start that nobody approved", removals.approval, "gates_admit_before_the_first_start"),
    Guard(
        "leader_generation",
        "a transition of a leader that was succeeded",
        removals.leader_generation,
        "one_leader_at_a_time",
    ),
    Guard(
        "generation_rises",
        "two leaders of one generation",
        removals.generation_rises,
        "generations_only_rise",
        alters_schema=True,
    ),
    Guard("lock_probe", "the burial of a worker that lives", removals.lock_probe, "only_the_dead_are_buried"),
    Guard("recovery", "an attempt that nobody holds any more", removals.recovery, "nothing_is_neglected", _RAN_UNKNOWN),
    Guard(
        "proof_of_stop",
        "a slot freed by an exit status",
        removals.proof_of_stop,
        "slots_are_freed_on_proof",
        _RAN_TWICE,
    ),
    Guard(
        "confirmed_epoch",
        "a stop confirmed for another epoch",
        removals.confirmed_epoch,
        "slots_are_freed_on_proof",
        frozenset({"epochs_only_rise", "capacity_is_kept"}),
    ),
    Guard(
        "stop_orders",
        "an end without proof that nobody follows up",
        removals.stop_orders,
        "nothing_is_stuck",
        _RAN_UNKNOWN,
    ),
    Guard(
        "uncertain_asks",
        "a second run where nobody knows of the first",
        removals.uncertain_asks,
        "nothing_that_ran_is_relaunched",
        _RAN_TWICE,
    ),
    Guard(
        "unreadable_is_not_absent",
        "a second run where the record of the first is torn",
        removals.unreadable_is_not_absent,
        "nothing_that_ran_is_relaunched",
        _RAN_TWICE,
    ),
    Guard(
        "unknown_is_no_success",
        "success without evidence",
        removals.unknown_is_no_success,
        "success_has_evidence",
        frozenset({"statuses_are_true"}),
    ),
    Guard(
        "unknown_commit",
        "an effect of a commit that never happened",
        removals.unknown_commit,
        "gates_open_under_a_live_pin",
        _RAN_UNKNOWN,
    ),
    Guard(
        "child_record",
        "a second run of what the store forgot to have pinned",
        removals.child_record,
        "nothing_that_ran_is_relaunched",
        _RAN_TWICE,
    ),
    Guard(
        "same_store",
        "a write of what was decided by another past of the store",
        removals.same_store,
        "nobody_writes_into_the_past",
        _FORGOTTEN,
    ),
    Guard("returned_inputs", "an input lost with the attempt that had it", removals.returned_inputs, "inputs_are_kept"),
    Guard(
        "timer_fires_once",
        "an old timer that cuts a later wait short",
        again.timer_fires_once,
        "retries_come_from_accepted_events",
        frozenset({"retries_keep_the_policy", "no_actor_broke"}),
    ),
    Guard("timer_is_due", "a retry before its time", again.timer_is_due, "retries_keep_the_policy"),
    Guard(
        "retry_event",
        "a retry that nobody accepted behind the failure",
        again.retry_event,
        "retries_come_from_accepted_events",
    ),
    Guard(
        "effect_spends_inputs",
        "an input that takes effect twice",
        again.effect_spends_inputs,
        "no_input_is_consumed_twice",
    ),
    Guard(
        "read_once",
        "a line of an agent that counts again for whoever takes it over",
        spoken.read_once,
        "every_line_is_heard_once",
        frozenset({"usage_is_all_that_was_reported", "usage_is_charged_once"}),
    ),
    Guard(
        "last_words",
        "an end written before the last words were read",
        spoken.last_words,
        "every_line_is_heard_once",
        _UNHEARD,
    ),
    Guard(
        "late_report",
        "usage that is charged to nobody, as whoever ended its attempt had not heard of it",
        spoken.late_report,
        "usage_is_all_that_was_reported",
    ),
    Guard("belt_token", "a word of somebody else", spoken.belt_token, "the_belt_keeps_its_word", _UNHEARD),
    Guard(
        "declared_once",
        "what one launch said applied to the next",
        spoken.declared_once,
        "turns_are_told_of_what_ended",
        _UNHEARD | {"waits_end_by_what_they_wait_for", "no_actor_broke", "never_at_rest"},
    ),
    Guard("own_event", "a Work that wakes itself", spoken.own_event, "waits_end_by_what_they_wait_for"),
    Guard(
        "since_declared",
        "a wait ended by what came before it; the schema behind it refuses",
        spoken.since_declared,
        "no_actor_broke",
        _RAN_UNKNOWN | {"started_jobs_came_to_their_end"},
    ),
    Guard(
        "settled_intents",
        "an input that stays on its way to an attempt that is over",
        spoken.settled_intents,
        "intents_end_once",
    ),
    Guard(
        "chain_limit",
        "a chain that is too long",
        spoken.chain_limit,
        "chains_keep_within_their_depth",
        frozenset({"inputs_are_kept", "no_input_is_lost"}),
    ),
    Guard(
        "handoff_asked",
        "a handoff that goes on though its binding does not say so",
        spoken.handoff_asked,
        "handoffs_go_on_once",
        frozenset({"inputs_are_kept", "no_input_is_lost", "jobs_are_one_set"}),
    ),
    Guard(
        "handed_in_order",
        "an input that overtakes one for which there was no room",
        spoken.handed_in_order,
        "words_reach_whom_they_are_for",
    ),
    Guard(
        "durable_words",
        "an end that is known without what was said before it",
        spoken.durable_words,
        "every_line_is_heard_once",
        _UNHEARD | {"success_has_evidence", "handoffs_go_on_once", "usage_is_charged_once"},
    ),
    Guard(
        "quarantine",
        "an attempt of what keeps failing",
        bindings.quarantine,
        "quarantined_bindings_start_nothing",
    ),
    Guard(
        "failures_count",
        "a binding that fails for ever",
        bindings.failures_count,
        "failures_quarantine_their_binding",
    ),
    Guard(
        "success_forgives",
        "a quarantine of what works",
        bindings.success_forgives,
        "failures_quarantine_their_binding",
    ),
    Guard(
        "launch_gives_up",
        "a launch that costs worker after worker",
        bindings.launch_gives_up,
        "lost_workers_are_counted",
    ),
    Guard(
        "pin_begins_anew",
        "a binding that is blamed for what its launch cost",
        bindings.pin_begins_anew,
        "lost_workers_are_counted",
        frozenset({"losses_quarantine_their_binding"}),
    ),
    Guard(
        "blame",
        "a binding whose works cost worker after worker",
        bindings.blame,
        "losses_quarantine_their_binding",
    ),
    Guard(
        "blame_is_certain",
        "a quarantine for what another did",
        bindings.blame_is_certain,
        "losses_quarantine_their_binding",
    ),
    Guard(
        "pinned_fallback",
        "an input given up whose binding says that it waits",
        bindings.pinned_fallback,
        "inputs_are_dropped_as_their_binding_says",
    ),
    Guard(
        "dropped_for_good",
        "an input that comes after it was told to be dropped",
        bindings.dropped_for_good,
        "inputs_are_dropped_as_their_binding_says",
        frozenset({"inputs_are_kept", "no_input_is_lost"}),
    ),
    Guard(
        "idle_limit", "an agent that waits for ever for what nobody gives it", spoken.idle_limit, "the_quiet_are_ended"
    ),
    Guard(
        "idle_since_heard",
        "the end of an agent that speaks",
        spoken.idle_since_heard,
        "only_the_quiet_are_ended",
    ),
    Guard(
        "resume_put_off",
        "a next attempt that does again what was done before a wait",
        spoken.resume_put_off,
        "retries_are_not_spent",
        frozenset({"attempts_follow_what_was_said"}),
    ),
    Guard(
        "resume_limit",
        "a resume beyond a limit",
        spoken.resume_limit,
        "slots_are_kept",
        frozenset({"capacity_is_kept"}),
    ),
    Guard(
        "live_lease",
        "an attempt taken from its living holder",
        removals.live_lease,
        None,
        covered_by="behind it stands the fence: whoever had it is refused from then on, and what it launched is adopted",
    ),
    Guard(
        "unknown_commit_kept",
        "work given up though its commit happened",
        removals.unknown_commit_kept,
        None,
        covered_by="behind it stands the lease: what is dropped is given back at the next renewal, or lapses, and is recovered",
    ),
    Guard(
        "capacity_recheck",
        "a claim beyond a limit that was reached since it was decided",
        removals.capacity_recheck,
        None,
        covered_by="behind it stands the leader's generation: only one leader claims, and its own pass counts what it hands out",
    ),
    Guard(
        "accept_timeout",
        "a claim that waits for a worker that does not take it",
        removals.accept_timeout,
        None,
        covered_by="behind it stands the lease, which lapses by itself, only later",
    ),
    Guard(
        "older_store",
        "work with a store that knows less than lies beside it",
        removals.older_store,
        None,
        covered_by="behind it stand the directory of a launch, which is made once only, and the record of its child",
    ),
    Guard(
        "renewal_never_shorter",
        "a renewal that shortens a lease",
        removals.never_shorter,
        None,
        covered_by="behind it stands the trigger `lease_shorter`; and no simulation asks for a shorter lease",
    ),
    Guard(
        "queue",
        "writers that starve each other",
        removals.queue,
        None,
        covered_by="behind it stands SQLite's own write lock, which keeps them apart, but in no order",
    ),
)
"""Those that a simulation catches first, then those that something stands behind."""


def guard(name: str) -> Guard:
    """The guard of that name. Raises LookupError."""
    for found in GUARDS:
        if found.name == name:
            return found
    raise LookupError(f"no guard is called {name!r}")
