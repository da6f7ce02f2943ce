"""What a person says of one attempt: cancelled, or settled when nobody can know. The slot follows the proof in either case."""

from __future__ import annotations

import pytest

from shared.errors import RefusedError
from shared.ids import AttemptId, WorkId, work_of
from shared.model.attempt import AttemptState, Ending, Exclusion, FailureClass
from shared.model.cancel import Cancellation
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config
from shared.model.stop import StopResult, Suspect
from shared.model.work import Reason, WorkChange, WorkState
from tests.support.sites import Bench, Head, Site
from worker.stopping import RETRY_US

SUSPECT = Suspect(pid=9, ppid=1, uid=0, started_ticks=4, state="D", command_line="dd", matched=("child",))
UNPROVEN = StopResult(None, (SUSPECT,), ("S5: something may live",), None)
PROVEN = StopResult("S5", (), (), None)

AGAIN = WorkChange(WorkState.READY, None, None, 0)
CANCELLED = WorkChange(WorkState.CANCELLED, None, None, 0)
FINISHED = Ending(AttemptState.SUCCEEDED, 0, None, None, None, "settled by ann")
UNKNOWN = Ending(AttemptState.FAILED, None, FailureClass.AMBIGUOUS, "its outcome stays unknown", None, "settled by ann")


@pytest.fixture
def head(site: Site) -> Head:
    site.configure(Config(bindings=(Binding(name="job", command=("job",)),)))
    head = site.head()
    head.settle()
    return head


@pytest.fixture
def bench(site: Site, head: Head) -> Bench:
    bench = site.bench()
    site.settle()
    return bench


@pytest.fixture
def running(site: Site, bench: Bench) -> AttemptId:
    attempt_id = site.submit("job")
    site.settle()
    assert site.attempt(attempt_id).state is AttemptState.RUNNING
    return attempt_id


@pytest.fixture
def unknown(site: Site, bench: Bench, running: AttemptId) -> AttemptId:
    """It waits for a person: its shim and its job were killed together."""
    shim = site.host.shim(running)
    shim.child_alive = False
    shim.die()
    site.settle()
    assert site.attempt(running).state is AttemptState.RECOVERY_REQUIRED
    return running


def cancel(site: Site, attempt_id: AttemptId, change: WorkChange = CANCELLED) -> None:
    """Somebody cancels exactly this attempt."""
    site.world.store.write(lambda tx: tx.cancel_attempt(attempt_id, by="ann", reason="wrong branch", change=change))


def reconcile(site: Site, attempt_id: AttemptId, ending: Ending, change: WorkChange, *, epoch: int = 1) -> None:
    """Somebody says how it ended."""
    site.world.store.write(
        lambda tx: tx.reconcile(
            attempt_id, expected_epoch=epoch, ending=ending, change=change, by="ann", reason="saw the invoice"
        )
    )


def record(site: Site, attempt_id: AttemptId) -> Cancellation:
    (found,) = site.world.store.read(lambda tx: tx.cancellations(work_of(attempt_id)))
    return found


def following(site: Site, attempt_id: AttemptId) -> AttemptId:
    """Attempt N+1, which must be there."""
    work_id: WorkId = work_of(attempt_id)
    assert site.work(work_id).attempts_used == 2
    return AttemptId(f"{work_id}.2")


@pytest.mark.req("X01", "R13", "T05")
def test_a_cancel_of_one_attempt_is_requested_then_acknowledged_with_its_stop_then_terminal_on_the_proof(
    site: Site, bench: Bench, running: AttemptId
) -> None:
    cancel(site, running)

    requested = record(site, running)
    assert (requested.scope, requested.requested_by, requested.reason) == ("attempt", "ann", "wrong branch")
    assert (requested.attempt_id, requested.epoch) == (running, 1)
    assert (requested.acknowledged_at_us, requested.settled_at_us) == (None, None)
    assert site.attempt(running).exclusion is Exclusion.HELD

    site.clock.advance(US_PER_S)
    bench.step()
    acknowledged = record(site, running)
    assert acknowledged.acknowledged_by == bench.me
    assert acknowledged.acknowledged_at_us == requested.requested_at_us + US_PER_S
    assert (acknowledged.settled_at_us, site.attempt(running).exclusion) == (None, Exclusion.HELD)

    bench.settle()
    settled = record(site, running)
    assert (settled.result, settled.settled_at_us is not None) == ("stopped S1", True)
    assert (site.attempt(running).exclusion, site.ends(running)) == (Exclusion.RELEASED, [AttemptState.CANCELLED])


@pytest.mark.req("X01", "X03", "R10")
def test_it_is_not_terminal_while_the_stop_is_not_proven(site: Site, bench: Bench, running: AttemptId) -> None:
    site.host.stops = [UNPROVEN]
    cancel(site, running)

    bench.settle()

    told = record(site, running)
    assert (told.acknowledged_by, told.settled_at_us, told.result) == (bench.me, None, None)
    assert site.attempt(running).exclusion is Exclusion.HELD
    site.elapse(RETRY_US / US_PER_S)
    assert record(site, running).result == "stopped S1", "control: with the proof it is"


@pytest.mark.req("X01", "R10", "C04")
def test_a_work_that_goes_on_after_the_cancel_of_one_attempt_starts_the_next_only_on_the_proof(
    site: Site, bench: Bench, running: AttemptId
) -> None:
    site.host.stops = [UNPROVEN]
    cancel(site, running, AGAIN)
    site.settle()
    site.elapse(1)

    work = site.work(work_of(running))
    assert (work.state, work.reason, work.attempts_used) == (WorkState.READY, Reason.STOP_UNPROVEN, 1)

    site.elapse(RETRY_US / US_PER_S)
    assert site.attempt(following(site, running)).state is AttemptState.RUNNING


@pytest.mark.req("X01", "X02")
def test_a_cancel_hits_exactly_its_attempt_and_only_while_it_is_open(
    site: Site, bench: Bench, running: AttemptId
) -> None:
    cancel(site, running, AGAIN)
    site.settle()
    following(site, running)

    with pytest.raises(RefusedError):
        cancel(site, running)

    assert site.attempt(following(site, running)).state is AttemptState.RUNNING, "the next one is not touched"


@pytest.mark.req("X01", "R05")
def test_an_attempt_that_is_cancelled_while_its_launch_is_held_never_runs(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = site.submit("job")
    head.settle()
    bench.step()
    bench.launches.run()

    cancel(site, attempt_id)
    site.settle()

    assert (site.host.runs(attempt_id), record(site, attempt_id).result) == (0, "stopped S0")


@pytest.mark.req("X01", "X03")
def test_an_attempt_that_waits_for_a_person_can_be_cancelled_too(site: Site, unknown: AttemptId) -> None:
    site.host.stops = [PROVEN]
    cancel(site, unknown)

    site.settle()

    assert site.attempt(unknown).state is AttemptState.CANCELLED
    assert record(site, unknown).result == "stopped S5"


@pytest.mark.req("R10", "R11", "X03")
def test_a_person_s_word_settles_what_nobody_can_know_and_the_slot_still_waits_for_the_proof(
    site: Site, bench: Bench, unknown: AttemptId
) -> None:
    site.host.stops = [UNPROVEN]
    site.settle()
    assert site.host.stopped == [], "control: until then nothing is ordered"

    reconcile(site, unknown, FINISHED, WorkChange(WorkState.COMPLETED, None, None, 0))
    site.settle()

    attempt = site.attempt(unknown)
    assert (attempt.state, attempt.exit_status, attempt.exclusion) == (AttemptState.SUCCEEDED, 0, Exclusion.HELD)
    assert site.work(attempt.work_id).state is WorkState.COMPLETED
    (told,) = [event for event in site.events(unknown) if event.kind == "attempt.succeeded"]
    assert (told.data["by"], told.data["reason"]) == ("ann", "saw the invoice")
    site.host.stops = [PROVEN]
    site.elapse(RETRY_US / US_PER_S)
    assert (site.attempt(unknown).exclusion, site.orders()) == (Exclusion.RELEASED, [])


@pytest.mark.req("R10", "F01", "C04")
def test_again_means_the_next_attempt_once_the_stop_of_the_last_is_proven(
    site: Site, bench: Bench, unknown: AttemptId
) -> None:
    site.host.stops = [UNPROVEN, PROVEN]
    reconcile(site, unknown, UNKNOWN, AGAIN)
    site.settle()
    site.elapse(1)
    work = site.work(work_of(unknown))
    assert (work.state, work.reason, work.attempts_used) == (WorkState.READY, Reason.STOP_UNPROVEN, 1)

    site.elapse(RETRY_US / US_PER_S)

    assert site.attempt(following(site, unknown)).state is AttemptState.RUNNING
    assert [site.host.runs(unknown), site.host.runs(following(site, unknown))] == [1, 1]


@pytest.mark.req("R11")
def test_a_word_about_another_epoch_or_another_state_settles_nothing(site: Site, unknown: AttemptId) -> None:
    before = site.world.everything()

    with pytest.raises(RefusedError):
        reconcile(site, unknown, UNKNOWN, AGAIN, epoch=2)

    assert site.world.everything() == before
    reconcile(site, unknown, UNKNOWN, AGAIN)
    with pytest.raises(RefusedError):
        reconcile(site, unknown, FINISHED, WorkChange(WorkState.COMPLETED, None, None, 0))
    assert site.ends(unknown) == [AttemptState.FAILED], "settled once"


@pytest.mark.req("R10", "R12")
def test_what_a_reboot_proved_stopped_is_free_with_the_word_alone(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = site.submit("job")
    site.settle()
    site.kill(bench)
    site.stall(head)
    site.host.restart()
    site.clock.reboot("boot-2", down_us=30 * US_PER_S)
    site.head()
    site.bench("worker-2")
    site.settle()
    waiting = site.attempt(attempt_id)
    assert (waiting.state, waiting.exclusion_proof) == (AttemptState.RECOVERY_REQUIRED, "S3")

    reconcile(site, attempt_id, UNKNOWN, AGAIN, epoch=2)
    site.settle()

    assert site.attempt(attempt_id).exclusion is Exclusion.RELEASED
    assert site.host.stopped == [], "there was nothing to stop"
    assert site.attempt(following(site, attempt_id)).state is AttemptState.RUNNING
