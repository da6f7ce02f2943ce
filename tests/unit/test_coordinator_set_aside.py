"""What cannot start hides nothing that can: full scopes, bindings that are gone or in quarantine, set aside and looked at again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator import aside
from shared.model.settings import Binding, Config, ScopeConfig, Settings
from shared.model.work import NewWork, Reason, WorkState
from tests.support.sites import Head, Site
from tests.support.starts import A_PASS, MANY, between_look_and_claim, running, states, submit


@pytest.fixture
def head(site: Site) -> Head:
    """Who leads."""
    head = site.head()
    head.settle()
    return head


IN_THE_QUEUE = {
    (WorkState.READY, None),
    (WorkState.READY, Reason.CAPACITY_JOB_CONCURRENCY),
    (WorkState.READY, Reason.NO_WORKER),
}


@pytest.mark.req("C01")
def test_a_full_scope_hides_nothing_however_many_wait_in_it(site: Site, head: Head) -> None:
    scopes = (ScopeConfig("ops", 1), ScopeConfig("ops/backup"))
    site.configure(Config(settings=Settings(job_concurrency=10), scopes=scopes))
    site.bench()
    inside = submit(site, MANY, scope="ops/backup")
    outside = submit(site, 2, scope="dev")

    head.step()
    started_at_once = [site.work(work_id).state for work_id in outside]
    site.settle()
    site.elapse(1)

    assert started_at_once == [WorkState.RUNNING] * 2, "what lies in a scope found full is not looked at again"
    assert states(site, outside) == [(WorkState.RUNNING, None)] * 2
    assert states(site, inside[:2]) == [(WorkState.RUNNING, None), (WorkState.READY, Reason.CAPACITY_SCOPE)]


@pytest.mark.req("S01", "C04")
def test_works_whose_binding_is_gone_hide_nothing_however_many_they_are(site: Site, head: Head) -> None:
    lost = submit(site, MANY, binding="gone")
    (fine,) = submit(site, 1)
    site.bench()

    site.settle()
    site.elapse(1)

    assert site.work(fine).state is WorkState.RUNNING
    assert set(states(site, lost)) == {(WorkState.READY, Reason.UNSUPPORTED_GENERATION)}


@pytest.mark.req("S01", "E02")
def test_works_whose_binding_is_gone_start_once_a_configuration_has_it_and_are_looked_at_no_more_until_then(
    site: Site, head: Head
) -> None:
    lost, elsewhere = submit(site, 4 * MANY, binding="back"), submit(site, 1, binding="gone")
    site.bench()
    site.settle()
    (urgent,) = submit(site, 1)
    before = len(site.done(head.me))
    head.step()
    assert site.work(urgent).state is WorkState.RUNNING, "in the first pass, however many wait for a configuration"
    assert not {"hold_back", "requeue"} & set(site.done(head.me)[before:]), "and none of those is told anew"

    site.configure(Config(settings=Settings(job_concurrency=3), bindings=(Binding("back", ("true",)),)))
    site.settle()

    assert running(site, lost) == lost[:2]
    assert set(states(site, lost[2:])) <= IN_THE_QUEUE
    assert states(site, elsewhere) == [(WorkState.READY, Reason.UNSUPPORTED_GENERATION)], "the control: still gone"


@pytest.mark.req("S01", "E02")
def test_a_configuration_that_came_while_works_were_set_aside_is_not_missed(site: Site, head: Head) -> None:
    """They are marked by a pass that knew the old one; the next pass knows the new one, and looks at what was marked meanwhile."""
    site.bench()
    head.settle()
    (lost,) = submit(site, 1, binding="back")
    between_look_and_claim(head, lambda: site.configure(Config(bindings=(Binding("back", ("true",)),))))

    site.settle()

    assert site.work(lost).state is WorkState.RUNNING


@pytest.mark.req("S01", "E02")
def test_what_was_said_under_a_configuration_is_not_written_under_the_next(site: Site, head: Head) -> None:
    """That its binding is gone was true, and is noted late: by then it has its binding, and lies too far back to be looked at."""
    site.bench()
    site.configure(Config(settings=Settings(job_concurrency=1)))
    submit(site, 1)
    site.settle()
    (lost,) = submit(site, 1, binding="back")
    head.step()
    submit(site, MANY, priority=9)
    site.configure(Config(settings=Settings(job_concurrency=1), bindings=(Binding("back", ("true",)),)))

    site.settle()
    site.elapse(2)

    assert site.work(lost).reason is not Reason.UNSUPPORTED_GENERATION


@pytest.mark.req("S01", "E02")
def test_a_new_leader_looks_again_at_what_the_one_before_set_aside(site: Site, head: Head) -> None:
    """It may have ended between a new configuration and its look at them."""
    lost = submit(site, aside.BOUND + 1, binding="back")
    head.settle()
    site.kill(head)
    site.configure(Config(bindings=(Binding("back", ("true",)),)))
    heir = site.head()

    heir.step()
    assert set(states(site, lost[:-1])) <= IN_THE_QUEUE
    assert site.work(lost[-1]).reason is Reason.UNSUPPORTED_GENERATION, "a pass looks at a bounded number …"
    heir.step()

    assert set(states(site, lost)) <= IN_THE_QUEUE, "… and the next one follows at once"
    assert heir.step() > site.clock.now().mono_us, "and then it rests"


@pytest.mark.req("F03", "S01")
def test_works_that_inherit_a_binding_in_quarantine_hide_nothing_and_start_when_it_ends_or_they_inherit_another(
    site: Site, head: Head
) -> None:
    bindings = (Binding("bad", ("false",)), Binding("good", ("true",)))
    scopes = {
        binding: (ScopeConfig("ops", binding=binding), ScopeConfig("dev", binding="bad")) for binding in ("bad", "good")
    }
    settings = Settings(job_concurrency=3)
    site.configure(Config(settings, scopes["bad"], bindings))
    site.world.store.write(lambda tx: tx.quarantine_binding("bad", by="test", reason="it fails"))
    inherit = NewWork("ops", None, None, (), "/", None, "test", 1)
    ops = [site.world.store.write(lambda tx: tx.submit(inherit, "jobs")) for _ in range(4 * MANY)]
    dev = site.world.store.write(lambda tx: tx.submit(replace(inherit, scope="dev"), "jobs"))
    site.bench()
    site.settle()
    (fine,) = submit(site, 1)

    head.step()

    assert site.work(fine).state is WorkState.RUNNING, "in the first pass, however many are held back"
    assert set(states(site, [*ops, dev])) == {(WorkState.READY, Reason.QUARANTINED)}
    site.configure(Config(settings, scopes["good"], bindings))
    site.settle()
    assert running(site, ops) == ops[:2]
    assert set(states(site, ops[2:])) <= IN_THE_QUEUE
    assert states(site, [dev]) == [(WorkState.READY, Reason.QUARANTINED)], "the control: it inherits what it did"
    site.world.store.write(lambda tx: tx.release_binding("bad", by="test", reason="mended"))
    site.settle()
    assert set(states(site, [dev])) <= IN_THE_QUEUE


@pytest.mark.req("F03", "S05")
def test_a_set_aside_work_that_cannot_be_read_is_told_and_starts_once_it_can(site: Site, head: Head) -> None:
    (lost,) = submit(site, 1, binding="back")
    site.bench()
    head.settle()
    with site.world.outsider() as outsider:
        outsider.execute("UPDATE work SET env = '[', revision = revision + 1 WHERE id = ?", (lost,))
    site.configure(Config(bindings=(Binding("back", ("true",)),)))
    site.settle()
    site.elapse(2)  # the mark is written late
    marked = site.world.store.read(lambda tx: tx.unreadable_rows(after=None, limit=9))
    assert [(row.table, row.key) for row in marked] == [("work", lost)]

    with site.world.outsider() as outsider:
        outsider.execute("UPDATE work SET env = '[]', revision = revision + 1 WHERE id = ?", (lost,))
    site.settle()

    assert site.work(lost).state is WorkState.RUNNING


@pytest.mark.req("F03", "S01")
def test_works_in_quarantine_hide_nothing_and_are_not_looked_at_again_and_again(site: Site, head: Head) -> None:
    site.configure(Config(bindings=(Binding("bad", ("false",)),)))
    held_back = submit(site, 4 * MANY, binding="bad", priority=1)
    site.world.store.write(lambda tx: tx.quarantine_binding("bad", by="test", reason="it fails"))
    site.settle()
    site.elapse(1)  # the reasons are written late
    site.bench()
    (fine,) = submit(site, 1)

    head.step()

    assert set(states(site, held_back)) == {(WorkState.READY, Reason.QUARANTINED)}
    assert site.work(fine).state is WorkState.RUNNING, "in the first pass, however many are held back"
    site.world.store.write(lambda tx: tx.release_binding("bad", by="test", reason="mended"))
    head.settle()
    started = running(site, held_back)
    assert started == held_back[: len(started)]
    assert started, "the control: once it is released"


@pytest.mark.req("S01")
def test_looking_at_many_that_cannot_start_comes_to_rest_and_still_sees_what_is_new_at_the_front(
    site: Site, head: Head
) -> None:
    submit(site, A_PASS, binding="gone")
    site.bench()
    head.step()  # cut short

    (urgent,) = submit(site, 1, priority=9)
    head.step()

    assert site.work(urgent).state is WorkState.RUNNING
    head.settle()
