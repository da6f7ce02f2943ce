"""Claims: what they write, and everything decided before that they recheck."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.errors import FenceViolationError
from shared.ids import Incarnation, attempt_id, work_of
from shared.model.attempt import AttemptState, Exclusion, Invoke, LeaseKey
from shared.model.instant import US_PER_S
from shared.model.work import Reason, WorkState
from shared.policy.capacity import Limits, ReadyWork, Usage, Wait, refusal_in
from shared.store.contract import Claimed, ClaimRefused
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import BACKED_OFF, EXHAUSTED, FAILED, LEASE_US, TIMEOUT_US, UNPROVEN, World, snapshot_for


@case(pytest.mark.req("E03", "E16"))
def a_claim_writes_attempt_lease_segment_snapshot_and_consumption(world: World) -> None:
    owner = world.worker()
    work_id = world.submit(input_=b"data")
    world.rung.clear()

    answer = world.try_claim(work_id, owner)

    assert isinstance(answer, Claimed)
    work, attempt = world.work(work_id), world.attempt(answer.attempt_id)
    assert (work.state, work.attempts_used, work.reason) == (WorkState.RUNNING, 1, None)
    assert (attempt.state, attempt.number, attempt.epoch, attempt.invoke) == (
        AttemptState.LAUNCHING,
        1,
        1,
        Invoke.PENDING,
    )
    assert (attempt.exclusion, attempt.pin, attempt.budget_us) == (Exclusion.HELD, None, TIMEOUT_US)
    lease = world.store.read(lambda tx: tx.lease(attempt.id))
    assert lease is not None
    assert (lease.owner, lease.epoch, lease.accepted_at_us, lease.revoked_at_us) == (owner, 1, None, None)
    assert lease.expires_mono_us == world.clock.now().mono_us + LEASE_US
    [segment] = world.store.read(lambda tx: tx.segments(attempt.id))
    assert (segment.epoch, segment.worker, segment.invoke, segment.recovered, segment.ended_at_us) == (
        1,
        owner,
        Invoke.PENDING,
        False,
        None,
    )
    assert world.store.read(lambda tx: tx.snapshot(attempt.id)) == snapshot_for(work, (1,))
    assert world.store.read(lambda tx: tx.pending_inputs(work_id, limit=10)) == []
    assert world.store.read(lambda tx: tx.usage()) == Usage({("jobs", ""): 1})
    [assignment] = world.store.read(lambda tx: tx.assignments(owner, limit=10))
    assert (assignment.key, assignment.recovery) == (LeaseKey(attempt.id, 1, owner), False)
    assert [one.body for one in assignment.inputs] == [b"data"]
    assert world.rung == [owner]


@case(pytest.mark.req("E16"))
def accept_marks_the_launch_called_and_isolated(world: World) -> None:
    key = world.claimed(world.worker())

    world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))

    attempt = world.attempt(key.attempt_id)
    [segment] = world.store.read(lambda tx: tx.segments(key.attempt_id))
    assert (attempt.invoke, attempt.isolated, segment.invoke, segment.isolated) == (
        Invoke.CALLED,
        True,
        Invoke.CALLED,
        True,
    )


@case(pytest.mark.req("E16"))
def accept_without_a_mark_leaves_the_launch_pending(world: World) -> None:
    key = world.claimed(world.worker())

    world.store.write(lambda tx: tx.accept(key, invoke_isolated=None))

    assert world.attempt(key.attempt_id).invoke is Invoke.PENDING


@case(pytest.mark.req("E02"))
def a_claim_decided_on_an_older_work_is_refused(world: World) -> None:
    work_id = world.submit()
    owner = world.worker()
    request = world.request(work_id, owner)
    world.as_leader(lambda tx: tx.hold_back([Wait(work_id, Reason.NO_WORKER, None)]))
    before = world.everything()

    refused = world.as_leader(lambda tx: tx.claim(request))

    assert refused == ClaimRefused("work", None, None)
    assert world.everything() == before
    assert isinstance(world.try_claim(work_id, owner), Claimed)


@case(pytest.mark.req("E02"))
def a_claim_of_a_cancelled_work_is_refused(world: World) -> None:
    work_id = world.submit()
    request = world.request(work_id, world.worker())
    world.store.write(lambda tx: tx.cancel_work(work_id, by="test", reason="wrong"))

    assert world.as_leader(lambda tx: tx.claim(request)) == ClaimRefused("work", None, None)


@case(pytest.mark.req("E02", "E03"))
def a_second_claim_on_one_decision_is_refused(world: World) -> None:
    work_id = world.submit()
    request = world.request(work_id, world.worker())

    answers = [world.as_leader(lambda tx: tx.claim(request)) for _ in range(2)]

    assert answers == [
        Claimed(world.store.read(lambda tx: tx.attempts(work_id))[0].id),
        ClaimRefused("work", None, None),
    ]


@case(pytest.mark.req("E02"))
def a_claim_decided_on_other_inputs_is_refused(world: World) -> None:
    work_id = world.submit(input_=b"one")
    owner = world.worker()
    request = world.request(work_id, owner)
    stale = replace(request, snapshot=replace(request.snapshot, inputs=()))

    assert world.as_leader(lambda tx: tx.claim(stale)) == ClaimRefused("input", None, None)
    assert isinstance(world.as_leader(lambda tx: tx.claim(request)), Claimed)


@case(pytest.mark.req("E02"))
def a_claim_decided_on_another_configuration_is_refused(world: World) -> None:
    work_id = world.submit()
    owner = world.worker()
    request = world.request(work_id, owner)
    world.store.write(lambda tx: tx.activate_config("{}", "digest", "/tenure.toml"))

    assert world.as_leader(lambda tx: tx.claim(request)) == ClaimRefused("config", None, None)
    assert isinstance(world.try_claim(work_id, owner), Claimed)


@case(pytest.mark.req("E02"))
def a_claim_for_a_worker_that_went_is_refused(world: World) -> None:
    gone, draining, unknown = world.worker("worker-1"), world.worker("worker-2"), Incarnation("worker-9.1")
    work_id = world.submit()
    requests = [world.request(work_id, owner) for owner in (gone, draining, unknown)]
    world.store.write(lambda tx: tx.retire_worker(gone, reason="released"))
    world.store.write(lambda tx: tx.drain_worker(draining))

    answers = world.as_leader(lambda tx: [tx.claim(request) for request in requests])

    assert answers == [ClaimRefused("worker", None, None)] * 3
    assert isinstance(world.try_claim(work_id, world.worker("worker-1")), Claimed)


@case(pytest.mark.req("E02"))
def a_claim_for_a_worker_of_another_boot_is_refused(world: World) -> None:
    owner = world.worker()
    work_id = world.submit()
    world.clock.reboot("boot-2")

    assert world.try_claim(work_id, owner) == ClaimRefused("worker", None, None)
    assert isinstance(world.try_claim(work_id, world.worker()), Claimed)


@case(pytest.mark.req("E08", "E09"))
def a_claim_for_a_worker_without_the_pinned_executor_is_refused(world: World) -> None:
    """Neither the bare name nor another version of it will do."""
    others = [world.worker(f"worker-{n}", executors=has) for n, has in enumerate(((), ("shell",), ("shell@2", "x@1")))]
    owner = world.worker("worker-9", executors=("x@1", "shell@1"))
    work_id = world.submit()
    before = world.everything()[0]

    assert [world.try_claim(work_id, other) for other in others] == [ClaimRefused("worker", None, None)] * 3

    assert world.everything()[0] == before
    assert isinstance(world.try_claim(work_id, owner), Claimed)


@case(pytest.mark.req("C01", "C03", "E07"))
def a_claim_over_the_limit_is_refused_and_names_it(world: World) -> None:
    """The usage that the limit is asked about is the one inside the claim's own transaction."""
    owner = world.worker()
    limits = Limits({"jobs": 2}, {"ops": 1})
    ops, other = world.submit(scope="ops"), world.submit(scope="other")

    def limited(scope: str) -> object:
        work_id = world.submit(scope=scope)
        ready = ReadyWork(work_id, 1, scope, "jobs", "shell", unexcluded=False, resolved=True)
        return world.try_claim(work_id, owner, refusal=lambda usage: refusal_in(ready, usage, limits))

    world.claimed(owner, ops)
    assert limited("ops/backup") == ClaimRefused(None, Reason.CAPACITY_SCOPE, "ops")
    world.claimed(owner, other)
    assert limited("third") == ClaimRefused(None, Reason.CAPACITY_JOB_CONCURRENCY, "jobs")


@case(pytest.mark.req("C03"))
def a_slot_is_held_until_the_stop_is_proven(world: World) -> None:
    owner = world.worker()
    running = world.running(owner)
    unproven = world.ended(owner, UNPROVEN, EXHAUSTED)
    proven = world.ended(owner, FAILED, EXHAUSTED)
    uncertain = world.running(owner)
    world.store.write(lambda tx: tx.require_recovery(uncertain, why="?", proof="S1"))
    assert world.store.read(lambda tx: tx.usage()) == Usage({("jobs", ""): 3})

    world.store.write(lambda tx: tx.confirm_stopped(unproven.attempt_id, expected_epoch=1, proof="S1", by=owner))
    world.store.write(lambda tx: tx.finish(running, FAILED, EXHAUSTED))

    assert world.store.read(lambda tx: tx.usage()) == Usage({("jobs", ""): 1})
    assert world.attempt(uncertain.attempt_id).exclusion is Exclusion.HELD
    assert world.attempt(proven.attempt_id).exclusion is Exclusion.RELEASED


@case(pytest.mark.req("E03", "R10"))
def no_next_attempt_starts_beside_an_unproven_one(world: World) -> None:
    owner = world.worker()
    key = world.ended(owner, UNPROVEN, BACKED_OFF)
    work_id = world.attempt(key.attempt_id).work_id
    world.clock.advance(US_PER_S)
    world.fire(work_id)
    assert world.store.read(lambda tx: tx.unexcluded(work_id)) == key.attempt_id

    assert world.try_claim(work_id, owner) == ClaimRefused(None, Reason.STOP_UNPROVEN, None)

    world.store.write(lambda tx: tx.confirm_stopped(key.attempt_id, expected_epoch=1, proof="S0", by=owner))
    assert world.try_claim(work_id, owner) == Claimed(attempt_id(work_id, 2))


@case(pytest.mark.req("E03"))
def the_next_attempt_gets_the_inputs_of_one_that_took_no_effect(world: World) -> None:
    owner = world.worker()
    work_id = world.submit(input_=b"data")
    first = world.running(owner, work_id)
    world.store.write(lambda tx: tx.finish(first, FAILED, BACKED_OFF))
    world.clock.advance(US_PER_S)
    world.fire(work_id)

    second = world.claimed(owner, work_id)

    assert second.attempt_id == f"{work_id}.2"
    [assignment] = world.store.read(lambda tx: tx.assignments(owner, limit=1))
    assert [one.body for one in assignment.inputs] == [b"data"]
    settled = world.running(owner)
    world.store.write(lambda tx: tx.finish(settled, FAILED, EXHAUSTED))
    assert world.store.read(lambda tx: tx.pending_inputs(work_of(settled.attempt_id), limit=9)) == []


@case(pytest.mark.req("L01"))
def a_leaders_transition_without_leading_is_a_bug(world: World) -> None:
    request = world.request(world.submit(), world.worker())

    with pytest.raises(FenceViolationError, match="without `lead`"):
        world.store.write(lambda tx: tx.claim(request))

    assert isinstance(world.as_leader(lambda tx: tx.claim(request)), Claimed)


@case(pytest.mark.req("E07"))
def several_claims_share_a_transaction_and_one_refusal_undoes_no_other(world: World) -> None:
    owner = world.worker()
    requests = [world.request(world.submit(), owner) for _ in range(3)]
    requests[1] = replace(requests[1], revision=99)

    answers = world.as_leader(lambda tx: [tx.claim(request) for request in requests])

    assert [type(answer) for answer in answers] == [Claimed, ClaimRefused, Claimed]
    assert len(world.store.read(lambda tx: tx.assignments(owner, limit=10))) == 2


@case(pytest.mark.req("C01"))
def a_hold_back_keeps_reason_and_limit_until_the_claim(world: World) -> None:
    work_id = world.submit()
    wait = Wait(work_id, Reason.CAPACITY_SCOPE, "ops")
    world.as_leader(lambda tx: tx.hold_back([wait]))
    held = world.work(work_id)
    assert (held.reason, held.reason_limit) == (Reason.CAPACITY_SCOPE, "ops")

    world.as_leader(lambda tx: tx.hold_back([wait]))
    assert world.work(work_id) == held, "what did not change is not written"

    world.claimed(world.worker(), work_id)
    assert (world.work(work_id).reason, world.work(work_id).reason_limit) == (None, None)
    world.as_leader(lambda tx: tx.hold_back([wait]))
    assert world.work(work_id).reason is None, "only ready Work is held back"


@case(pytest.mark.req("K03"))
def submit_wakes_the_coordinator(world: World) -> None:
    world.rung.clear()

    world.submit()

    assert world.rung == [COORDINATOR]
