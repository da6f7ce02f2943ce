"""Secrets: asked for at each launch and never for an adoption, handed to the job, and found nowhere afterwards."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import pytest

from shared.errors import SecretUnavailableError
from shared.ids import AttemptId
from shared.model.attempt import AttemptState, Exclusion, FailureClass, LeaseKey, Snapshot
from shared.model.settings import Binding, Config
from shared.model.work import WorkState
from shared.process.launcher import LaunchError
from tests.support.sites import Bench, Head, Site

CANARY = "c4n4ry-7f1d-never-stored"
REFERENCE = "env:UPSTREAM_API_KEY"
BINDING = Binding(name="deploy", command=("deploy",), secrets=(("API_KEY", REFERENCE),), replay="safe")
GONE = SecretUnavailableError("API_KEY", "env", "it is not set in the worker's environment")


@pytest.fixture
def head(site: Site) -> Head:
    site.configure(Config(bindings=(BINDING,)))
    head = site.head()
    head.settle()
    return head


@pytest.fixture
def bench(site: Site, head: Head) -> Bench:
    return knowing(site, "worker-1")


def knowing(site: Site, name: str) -> Bench:
    """A worker that can read the secret."""
    bench = site.bench(name)
    bench.layer = lambda _snapshot: {"API_KEY": CANARY}
    site.settle()
    return bench


def unavailable(_snapshot: Snapshot) -> Mapping[str, str]:
    raise GONE


def epochs_asked(bench: Bench) -> int:
    return len(bench.asked)


@pytest.mark.req("E10")
def test_a_secret_is_asked_for_at_the_launch_and_is_in_the_job_s_environment(site: Site, bench: Bench) -> None:
    attempt_id = site.submit("deploy")
    site.settle()

    assert [snapshot.secrets for snapshot in bench.asked] == [(("API_KEY", REFERENCE),)]
    assert site.host.shim(attempt_id).spec.env["API_KEY"] == CANARY


@pytest.mark.req("E10")
def test_nothing_is_asked_for_a_job_without_secrets(site: Site, bench: Bench) -> None:
    site.configure(Config(bindings=(Binding(name="plain", command=("true",)),)))
    attempt_id = site.submit("plain")
    site.settle()

    assert site.attempt(attempt_id).state is AttemptState.RUNNING
    assert bench.asked == []


@pytest.mark.req("E10", "R03")
def test_a_relaunch_asks_anew_and_uses_what_it_is_told_now(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = site.submit("deploy")
    head.settle()
    bench.step()
    bench.launches.run()  # READY, with the old value; its pin is never written
    site.kill(bench)
    other = site.bench("worker-2")
    other.layer = lambda _snapshot: {"API_KEY": "rotated"}

    site.settle()

    assert (site.attempt(attempt_id).epoch, site.attempt(attempt_id).relaunches) == (2, 1)
    assert (epochs_asked(bench), epochs_asked(other)) == (1, 1)
    assert site.host.shim(attempt_id, 2).spec.env["API_KEY"] == "rotated"
    assert site.host.runs(attempt_id) == 1


@pytest.mark.req("E10", "R04")
def test_an_adoption_asks_for_nothing_and_works_where_the_secret_is_gone(site: Site, bench: Bench) -> None:
    attempt_id = site.submit("deploy")
    site.settle()
    site.kill(bench)
    other = site.bench("worker-2")
    other.layer = unavailable

    site.settle()

    assert (site.attempt(attempt_id).state, site.attempt(attempt_id).epoch) == (AttemptState.RUNNING, 2)
    assert (epochs_asked(bench), epochs_asked(other)) == (1, 0)
    assert "adopt" in site.done(other.me)


@pytest.mark.req("E10", "F01")
def test_a_secret_that_cannot_be_read_fails_the_attempt_before_anything_is_launched(site: Site, bench: Bench) -> None:
    bench.layer = unavailable
    attempt_id = site.submit("deploy")
    site.settle()

    attempt = site.attempt(attempt_id)
    assert (attempt.state, attempt.failure) == (AttemptState.FAILED, FailureClass.ADMISSION)
    assert attempt.error == f"run environment unavailable: {GONE}"
    assert (attempt.exclusion, attempt.exclusion_proof) == (Exclusion.RELEASED, "S0")
    assert site.host.shims == {}, "the launcher was not called"
    assert site.host.stopped == [], "and there was nothing to stop"
    assert (site.work(attempt.work_id).state, site.work(attempt.work_id).admission_failures) == (WorkState.BACKOFF, 1)

    bench.layer = lambda _snapshot: {"API_KEY": CANARY}
    site.elapse(1)
    assert site.attempt(f"{attempt.work_id}.2").state is AttemptState.RUNNING, "control: once it is back, so is the job"


@pytest.mark.req("E10", "R03")
def test_a_secret_that_cannot_be_read_at_a_relaunch_fails_it_too(site: Site, head: Head, bench: Bench) -> None:
    attempt_id = site.submit("deploy")
    head.settle()
    bench.step()
    site.kill(bench)
    other = site.bench("worker-2")
    other.layer = unavailable

    site.settle()

    attempt = site.attempt(attempt_id)
    assert (attempt.epoch, attempt.state, attempt.failure) == (2, AttemptState.FAILED, FailureClass.ADMISSION)
    assert (attempt.exclusion_proof, site.host.shims) == ("S0", {})


def lead_a_full_life(site: Site, head: Head, bench: Bench) -> list[AttemptId]:
    """A secret goes through everything that may happen to its job: failed launch, relaunch, adoption, an unknown outcome."""
    first = site.submit("deploy", input_=b"visible input")
    site.host.failing = [LaunchError("spawn", "no more processes")]
    site.settle()
    site.clock.advance(1_000_000)
    head.settle()
    bench.step()
    bench.launches.run()
    site.kill(bench)
    relauncher = knowing(site, "worker-2")
    site.settle()
    site.kill(relauncher)
    adopter = knowing(site, "worker-3")
    site.settle()
    second = AttemptId(first.replace(".1", ".2"))
    shim = site.host.shim(second, 2)
    assert shim.spec.env["API_KEY"] == CANARY
    shim.child_alive = False
    shim.die()
    site.settle()
    site.world.confirm(adopter_key(site, second), proof="S5")
    site.settle()
    third = AttemptId(first.replace(".1", ".3"))
    site.host.shim(third).end(3)
    site.settle()
    site.elapse(2)
    assert adopter.asked, "control: the last attempt asked too"
    return [first, second, third]


def adopter_key(site: Site, attempt_id: AttemptId) -> LeaseKey:
    lease = site.world.store.read(lambda tx: tx.lease(attempt_id))
    assert lease is not None
    return LeaseKey(attempt_id, lease.epoch, lease.owner)


@pytest.mark.req("E10")
def test_the_value_is_in_no_byte_of_the_store_no_event_and_no_log(
    site: Site, head: Head, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    attempts = lead_a_full_life(site, head, bench)

    states = [site.attempt(attempt_id).state for attempt_id in attempts]
    assert states == [AttemptState.FAILED] * 3
    stored = b"".join(path.read_bytes() for path in site.world.home.rglob("*") if path.is_file())
    assert CANARY.encode() not in stored
    for visible in (REFERENCE.encode(), b"visible input"):
        assert visible in stored, "control: what is stored can be found like that"
    told = json.dumps([[event.kind, dict(event.data)] for event in site.events()])
    assert CANARY not in told
    assert "segment.phases" in told, "control"
    logged = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert not [line for line in logged if CANARY in line]
    assert [line for line in logged if attempts[0] in line], "control: what was logged is looked at"
