"""Kinds of Work, their inputs, keys, a person's hold, and bindings in quarantine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.errors import KeyReusedError, NotFoundError, RefusedError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import LeaseKey
from shared.model.instant import US_PER_S
from shared.model.work import Hold, Reason, RoutineNews, WorkChange, WorkKind, WorkState
from shared.policy.capacity import Wait
from shared.store.contract import Claimed, ClaimRefused
from shared.store.values import ClaimHeld
from shared.wake import COORDINATOR
from tests.contract.store_cases import case
from tests.support.stores import BACKED_OFF, COMPLETED, EXHAUSTED, FAILED, SUCCEEDED, World, new_work

S = WorkState
RESTED = WorkChange(S.IDLE, None, None, 0, spends_inputs=True)
READY_AGAIN = WorkChange(S.READY, None, None, 0, spends_inputs=True)


def standing(world: World, input_: bytes | None = None) -> WorkId:
    return world.submit(kind=WorkKind.STANDING, input_=input_)


def add(world: World, work_id: WorkId, body: bytes = b"data", *, key: str | None = None) -> int:
    return world.store.write(lambda tx: tx.add_input(work_id, body, by="me", key=key))


def pending(world: World, work_id: WorkId) -> list[int]:
    return world.store.read(lambda tx: tx.pending_inputs(work_id, limit=99))


def consumed(world: World, name: AttemptId) -> tuple[int, ...]:
    found = world.store.read(lambda tx: tx.snapshot(name))
    assert found is not None
    return found.inputs


def events(world: World, kind: str) -> list[dict[str, object]]:
    found = world.store.read(lambda tx: tx.events(after=0, limit=1_000))
    return [dict(event.data) for event in found if event.kind == kind]


# --- kinds and inputs


@case(pytest.mark.req("E12"))
def standing_work_rests_until_an_input_and_again_behind_it(world: World) -> None:
    owner = world.worker()
    work_id = standing(world)
    assert (world.work(work_id).state, pending(world, work_id)) == (S.IDLE, [])
    assert world.ready() == []
    world.rung.clear()

    number = add(world, work_id)

    assert (world.work(work_id).state, world.rung) == (S.READY, [COORDINATOR])
    key = world.running(owner, work_id)
    assert consumed(world, key.attempt_id) == (number,)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, RESTED))
    assert (world.work(work_id).state, world.work(work_id).ended_at_us) == (S.IDLE, None)
    assert pending(world, work_id) == []
    again = add(world, work_id)
    key = world.running(owner, work_id)
    assert (key.attempt_id, consumed(world, key.attempt_id)) == (f"{work_id}.2", (again,))


@case(pytest.mark.req("E12"))
def standing_work_handed_in_with_an_input_is_ready(world: World) -> None:
    assert world.work(standing(world, b"")).state is S.READY
    assert world.work(standing(world)).state is S.IDLE, "control"
    assert world.work(world.submit()).state is S.READY, "run-once Work needs none"


@case(pytest.mark.req("O01"))
def input_during_an_attempt_is_the_next_one_s(world: World) -> None:
    owner = world.worker()
    work_id = standing(world, b"first")
    [first] = pending(world, work_id)
    key = world.running(owner, work_id)

    later = [add(world, work_id, b"second"), add(world, work_id, b"third")]

    assert (world.work(work_id).state, pending(world, work_id)) == (S.RUNNING, later)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, READY_AGAIN))
    key = world.running(owner, work_id)
    assert (key.attempt_id, consumed(world, key.attempt_id)) == (f"{work_id}.2", tuple(later))
    assert consumed(world, AttemptId(f"{work_id}.1")) == (first,)


@case(pytest.mark.req("O13"))
def ordinary_input_ends_no_backoff_and_no_hold(world: World) -> None:
    owner = world.worker()
    work_id = standing(world, b"first")
    key = world.running(owner, work_id)
    world.store.write(lambda tx: tx.finish(key, FAILED, BACKED_OFF))

    number = add(world, work_id)

    assert (world.work(work_id).state, world.due()) == (S.BACKOFF, [])
    world.clock.advance(US_PER_S)
    world.fire(work_id)
    assert pending(world, work_id)[-1] == number
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="wait"))
    add(world, work_id)
    assert world.work(work_id).state is S.HELD


@case(pytest.mark.req("E12", "O01"))
def input_for_what_takes_none_is_refused(world: World) -> None:
    once, ended = world.submit(), standing(world)
    world.store.write(lambda tx: tx.cancel_work(ended, by="t", reason="t"))
    before = world.everything()

    for work_id, why in ((once, "runs once"), (ended, "already ended: cancelled")):
        with pytest.raises(RefusedError, match=why):
            add(world, work_id)
    with pytest.raises(NotFoundError):
        add(world, WorkId("w99"))

    assert world.everything() == before
    add(world, standing(world))  # control


# --- keys


@case(pytest.mark.req("O01"))
def a_key_answers_the_same_request_with_the_same_work_and_refuses_another(world: World) -> None:
    first = world.store.write(lambda tx: tx.submit(new_work(input_=b"a"), "jobs", key="k"))
    before = world.everything()

    assert world.store.write(lambda tx: tx.submit(new_work(input_=b"a"), "jobs", key="k")) == first
    assert world.store.read(lambda tx: tx.submission("k")).work_id == first  # type: ignore[union-attr]
    others = (new_work(input_=b"b"), new_work(scope="ops", input_=b"a"), new_work(input_=b"a", priority=1))
    for other in (*others, new_work(input_=b"a", kind=WorkKind.STANDING), new_work()):
        with pytest.raises(KeyReusedError) as caught:
            world.store.write(lambda tx, one=other: tx.submit(one, "jobs", key="k"))  # type: ignore[misc]
        assert (caught.value.key, caught.value.accepted) == ("k", first)
    assert world.everything() == before

    assert world.store.write(lambda tx: tx.submit(new_work(input_=b"a"), "jobs", key="l")) != first, "control"
    same = replace(new_work(input_=b"a"), submitted_by="another")
    assert world.store.write(lambda tx: tx.submit(same, "jobs", key="k")) == first, "who asks is no content"


@case(pytest.mark.req("O01"))
def an_input_s_key_answers_the_same_input_once_and_refuses_another(world: World) -> None:
    work_id, other = standing(world), standing(world)
    number = add(world, work_id, b"a", key="k")
    key = world.running(world.worker(), work_id)
    world.store.write(lambda tx: tx.finish(key, SUCCEEDED, RESTED))

    assert add(world, work_id, b"a", key="k") == number

    assert (world.work(work_id).state, pending(world, work_id)) == (S.IDLE, []), "it was accepted, and is done"
    for target, body in ((work_id, b"b"), (other, b"a")):
        with pytest.raises(KeyReusedError):
            add(world, target, body, key="k")
    with pytest.raises(KeyReusedError):
        world.store.write(lambda tx: tx.submit(new_work(), "jobs", key="k"))
    accepted = world.store.read(lambda tx: tx.submission("k"))
    assert accepted is not None
    assert (accepted.work_id, accepted.input) == (work_id, number)
    assert add(world, work_id, b"a", key="l") != number, "control"


# --- a person's hold


@case(pytest.mark.req("C04", "V03"))
def a_held_work_does_not_start_until_it_is_released(world: World) -> None:
    owner = world.worker()
    work_id = world.submit()

    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="wait for Ann"))

    work = world.work(work_id)
    assert (work.state, work.reason, work.hold) == (
        S.HELD,
        Reason.HOLD,
        Hold("me", "wait for Ann", world.clock.now().wall_us),
    )
    assert world.ready() == []
    assert world.try_claim(work_id, owner) == ClaimRefused("work", None, None)
    assert world.store.read(lambda tx: tx.idle_state()).needs_person == (work_id,)
    world.store.write(lambda tx: tx.release_work(work_id, by="me", reason="she agrees"))
    assert (world.work(work_id).state, world.work(work_id).hold) == (S.READY, None)
    assert isinstance(world.try_claim(work_id, owner), Claimed)
    assert events(world, "hold.set") == [{"by": "me", "reason": "wait for Ann"}]
    assert events(world, "hold.lifted") == [{"by": "me", "reason": "she agrees"}]


@case(pytest.mark.req("V03"))
def a_hold_of_what_rests_or_backs_off_or_runs_ends_where_it_should(world: World) -> None:
    owner = world.worker()
    resting = standing(world)
    backing_off = work_of(world.ended(owner, FAILED, BACKED_OFF).attempt_id)
    running = world.running(owner)
    for work_id in (resting, backing_off, work_of(running.attempt_id)):
        world.store.write(lambda tx, one=work_id: tx.hold_work(one, by="me", reason="wait"))  # type: ignore[misc]
    assert [world.work(one).state for one in (resting, backing_off, work_of(running.attempt_id))] == [
        S.HELD, S.HELD, S.RUNNING,
    ]  # fmt: skip
    world.clock.advance(US_PER_S)
    assert world.due() == []
    held = WorkChange(S.HELD, Reason.HOLD, None, 0)
    world.store.write(lambda tx: tx.finish(running, FAILED, held))

    for work_id in (resting, backing_off, work_of(running.attempt_id)):
        world.store.write(lambda tx, one=work_id: tx.release_work(one, by="me", reason="go"))  # type: ignore[misc]

    assert [world.work(one).state for one in (resting, backing_off, work_of(running.attempt_id))] == [
        S.IDLE, S.READY, S.READY,
    ]  # fmt: skip


@case(pytest.mark.req("V03"))
def a_hold_or_release_that_cannot_be_is_refused_and_changes_nothing(world: World) -> None:
    owner = world.worker()
    done = work_of(world.ended(owner).attempt_id)
    exhausted = work_of(world.ended(owner, FAILED, WorkChange(S.HELD, Reason.EXHAUSTED, None, 0, 3)).attempt_id)
    held, ready = world.submit(), world.submit()
    world.store.write(lambda tx: tx.hold_work(held, by="me", reason="wait"))
    before = world.everything()

    for work_id, why in ((done, "already ended"), (held, "held already, by me")):
        with pytest.raises(RefusedError, match=why):
            world.store.write(lambda tx, one=work_id: tx.hold_work(one, by="you", reason="wait"))  # type: ignore[misc]
    for work_id in (done, ready, exhausted):
        with pytest.raises(RefusedError, match="no person holds"):
            world.store.write(lambda tx, one=work_id: tx.release_work(one, by="you", reason="go"))  # type: ignore[misc]
    for name in ("hold_work", "release_work"):
        with pytest.raises(NotFoundError):
            world.store.write(lambda tx, call=name: getattr(tx, call)(WorkId("w99"), by="you", reason="?"))  # type: ignore[misc]

    assert world.everything() == before


@case(pytest.mark.req("O14"))
def a_hold_goes_with_the_end_of_its_work(world: World) -> None:
    key = world.running(world.worker())
    work_id = work_of(key.attempt_id)
    world.store.write(lambda tx: tx.hold_work(work_id, by="me", reason="wait"))

    world.store.write(lambda tx: tx.finish(key, FAILED, EXHAUSTED))

    assert world.work(work_id).hold is None
    world.store.write(lambda tx: tx.retry_work(work_id, by="me", reason="go"))
    assert world.work(work_id).state is S.READY


# --- quarantine


def end(world: World, *, worked: bool, after: int = 3) -> None:
    """A Work of the binding `backup` ends."""
    key = world.running(world.worker(f"worker-{len(world.rung) + 1}"))
    news = RoutineNews("backup", worked, after)
    ending, change = (SUCCEEDED, COMPLETED) if worked else (FAILED, EXHAUSTED)
    world.store.write(lambda tx: tx.finish(key, ending, replace(change, routine=news)))


def claim_of(world: World, binding: str | None, *, command: bool) -> Claimed | ClaimHeld | ClaimRefused:
    work = replace(new_work(), binding=binding, command=("true",) if command else None)
    work_id = world.store.write(lambda tx: tx.submit(work, "jobs"))
    owner = world.worker(f"worker-{len(world.rung) + 1}")
    request = world.request(work_id, owner)
    return world.as_leader(lambda tx: tx.claim(replace(request, snapshot=replace(request.snapshot, binding=binding))))


@case(pytest.mark.req("F03"))
def a_binding_whose_works_keep_failing_is_quarantined_until_a_person_releases_it(world: World) -> None:
    for _ in range(2):
        end(world, worked=False)
    assert world.store.read(lambda tx: tx.quarantined()) == frozenset()
    end(world, worked=False)

    assert world.store.read(lambda tx: tx.quarantined()) == {"backup"}
    [routine] = world.store.read(lambda tx: tx.routines(limit=9))
    assert (routine.binding, routine.failures, routine.quarantined_by) == ("backup", 3, "tenure")
    assert "3 works of it in a row" in (routine.reason or "")
    assert claim_of(world, "backup", command=False) == ClaimRefused(None, Reason.QUARANTINED, "backup")
    assert isinstance(claim_of(world, "report", command=False), Claimed), "control: another binding"
    assert isinstance(claim_of(world, "backup", command=True), Claimed), "control: a command of its own"
    end(world, worked=True)
    assert world.store.read(lambda tx: tx.quarantined()) == {"backup"}, "what still ran lifts nothing"
    world.store.write(lambda tx: tx.release_binding("backup", by="me", reason="fixed"))
    assert isinstance(claim_of(world, "backup", command=False), Claimed)
    for _ in range(2):
        end(world, worked=False)
    assert world.store.read(lambda tx: tx.quarantined()) == frozenset(), "failures count anew"
    assert len(events(world, "binding.quarantined")) == 1


@case(pytest.mark.req("F03"))
def a_success_in_between_begins_the_row_anew(world: World) -> None:
    for worked in (False, False, True, False, False):
        end(world, worked=worked)
    assert world.store.read(lambda tx: tx.quarantined()) == frozenset()
    end(world, worked=False)
    assert world.store.read(lambda tx: tx.quarantined()) == {"backup"}, "control"


@case(pytest.mark.req("F03", "V03"))
def a_person_may_quarantine_and_release_and_each_only_once(world: World) -> None:
    world.store.write(lambda tx: tx.quarantine_binding("backup", by="me", reason="broken"))
    before = world.everything()
    with pytest.raises(RefusedError, match="quarantined already"):
        world.store.write(lambda tx: tx.quarantine_binding("backup", by="me", reason="broken"))
    assert world.everything() == before
    [routine] = world.store.read(lambda tx: tx.routines(limit=9))
    assert (routine.quarantined_by, routine.reason, routine.failures) == ("me", "broken", 0)
    world.rung.clear()

    world.store.write(lambda tx: tx.release_binding("backup", by="me", reason="fixed"))

    assert world.rung == [COORDINATOR]
    assert world.store.read(lambda tx: tx.routines(limit=9)) == []
    for binding in ("backup", "other"):
        with pytest.raises(RefusedError, match="not quarantined"):
            world.store.write(lambda tx, one=binding: tx.release_binding(one, by="me", reason="fixed"))  # type: ignore[misc]


@case(pytest.mark.req("F03", "V01"))
def what_a_quarantine_holds_back_waits_for_a_person(world: World) -> None:
    held_back, other = world.submit(), world.submit()
    world.store.write(lambda tx: tx.quarantine_binding("backup", by="me", reason="broken"))
    world.as_leader(lambda tx: tx.hold_back([Wait(held_back, Reason.QUARANTINED, "backup")]))

    idle = world.store.read(lambda tx: tx.idle_state())

    assert (idle.waiting, idle.needs_person) == (1, (held_back,))
    key: LeaseKey = world.running(world.worker(), other)
    assert world.store.read(lambda tx: tx.idle_state()).waiting == 0
    assert key.attempt_id == f"{other}.1"


@case(pytest.mark.req("F03", "V03"))
def what_a_released_binding_held_back_waits_again_at_once(world: World) -> None:
    """Before any pass has looked at it: whoever waits for a home to be idle must not go."""
    world.store.write(lambda tx: tx.quarantine_binding("backup", by="me", reason="broken"))
    work_id = world.submit()
    held_back = [Wait(work_id, Reason.QUARANTINED, "backup")]
    world.as_leader(lambda tx: tx.hold_back(held_back))
    before = world.store.read(lambda tx: tx.idle_state())
    assert (before.waiting, before.needs_person) == (0, (work_id,)), "control"

    world.store.write(lambda tx: tx.release_binding("backup", by="me", reason="fixed"))

    after = world.store.read(lambda tx: tx.idle_state())
    assert (after.waiting, after.needs_person) == (1, ())
