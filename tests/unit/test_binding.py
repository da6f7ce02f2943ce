"""What an attempt pins: the active binding, what the Work replaces of it, and nothing that can still change."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from itertools import product

import pytest

from shared.errors import UnsupportedError
from shared.ids import WorkId
from shared.model.attempt import Snapshot
from shared.model.instant import US_PER_S
from shared.model.settings import Binding, Config, RetryPolicy, Settings
from shared.model.work import Work, WorkKind, WorkState
from shared.policy.binding import resolve

BACKUP = Binding(name="backup", command=("./backup.sh", "--full"))
CONFIG = Config(settings=Settings(timeout_us=3600 * US_PER_S), bindings=(BACKUP,))
WORK = Work(
    id=WorkId("w1"),
    number=1,
    scope="ops/backup",
    binding="backup",
    command=None,
    env=(),
    cwd=None,
    pool="jobs",
    state=WorkState.READY,
    reason=None,
    priority=0,
    revision=3,
    ready_seq=1,
    attempts_used=0,
    admission_failures=0,
    backoff_since=None,
    backoff_us=None,
    submitted_by="uid 1000",
    submitted_at_us=0,
    ended_at_us=None,
)
BARE = replace(WORK, binding=None, command=("true",))


def pinned(work: Work = WORK, **changes: object) -> Snapshot:
    config = replace(CONFIG, bindings=(replace(BACKUP, **changes),))  # type: ignore[arg-type]
    snapshot = resolve(work, config, generation=7, folder="/etc/jobs", inputs=(4, 5))
    assert snapshot is not None
    return snapshot


def test_a_binding_is_pinned_with_its_generation_and_inputs() -> None:
    assert pinned() == Snapshot(
        generation=7,
        binding="backup",
        scope="ops/backup",
        pool="jobs",
        executor="shell",
        isolated=True,
        command=("./backup.sh", "--full"),
        env=(),
        cwd="/etc/jobs",
        timeout_us=3600 * US_PER_S,
        grace_us=10 * US_PER_S,
        retry_delays_us=(),
        replay="never",
        inputs=(4, 5),
        trigger=4,
        quarantine_after=5,
    )


def test_a_bare_command_pins_the_defaults() -> None:
    snapshot = resolve(BARE, Config(), generation=None, folder="/", inputs=())

    assert snapshot is not None
    assert (snapshot.binding, snapshot.generation, snapshot.command, snapshot.cwd) == (None, None, ("true",), "/")
    assert (snapshot.timeout_us, snapshot.executor, snapshot.pool) == (3600 * US_PER_S, "shell", "jobs")


def test_a_work_s_command_replaces_its_binding_s() -> None:
    assert pinned(replace(WORK, command=("./other.sh",))).command == ("./other.sh",)
    assert pinned().command == BACKUP.command, "control"


@pytest.mark.parametrize(("own", "bound"), list(product((None, "/run"), (None, "/srv"))))
def test_the_binding_s_folder_goes_before_the_caller_s_before_the_file_s(own: str | None, bound: str | None) -> None:
    assert pinned(replace(WORK, cwd=own), cwd=bound).cwd == (bound or own or "/etc/jobs")


def test_a_work_s_environment_is_added_to_its_binding_s_and_wins() -> None:
    work = replace(WORK, env=(("B", "work"), ("D", "")))

    assert pinned(work, env=(("A", "bound"), ("B", "bound"))).env == (("A", "bound"), ("B", "work"), ("D", ""))
    assert pinned(env=(("B", "bound"),)).env == (("B", "bound"),), "control"


@pytest.mark.req("E11")
def test_a_binding_s_timeout_replaces_the_default() -> None:
    assert pinned(timeout_us=5 * US_PER_S).timeout_us == 5 * US_PER_S
    assert pinned(timeout_us=None).timeout_us == 3600 * US_PER_S, "control"


@pytest.mark.req("E08", "O07")
def test_whether_a_handoff_goes_on_and_how_deep_is_pinned_for_standing_work() -> None:
    standing = replace(WORK, kind=WorkKind.STANDING)
    deep = replace(CONFIG, settings=Settings(causal_depth=7))

    assert pinned(standing, continues=True).continues
    assert not pinned(standing).continues, "control: off unless its binding says so"
    assert not pinned(WORK, continues=True).continues, (
        "a work that runs once is completed by its handoff, whatever its binding is for"
    )
    found = resolve(standing, deep, generation=7, folder="/", inputs=())
    assert found is not None
    assert (found.depth_max, pinned().depth_max) == (7, 100)


@pytest.mark.req("E08")
def test_grace_retry_and_replay_are_pinned() -> None:
    retry = RetryPolicy(delays_us=(1 * US_PER_S, 2 * US_PER_S))

    snapshot = pinned(grace_us=3 * US_PER_S, retry=retry, replay="safe")

    assert (snapshot.grace_us, snapshot.retry_delays_us, snapshot.replay) == (3 * US_PER_S, retry.delays_us, "safe")


@pytest.mark.req("E09")
def test_a_binding_that_the_configuration_no_longer_has_is_replaced_by_nothing() -> None:
    assert resolve(WORK, CONFIG, generation=7, folder="/", inputs=()) is not None, "control"

    assert resolve(WORK, Config(), generation=8, folder="/", inputs=()) is None
    assert resolve(replace(WORK, command=("true",)), Config(), generation=8, folder="/", inputs=()) is None


def test_an_unknown_executor_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="quantum"):
        pinned(executor="quantum")


@pytest.mark.req("E01")
def test_what_was_pinned_does_not_change_with_what_it_was_made_of() -> None:
    env, inputs, command = {"A": "1"}, [1, 2], ["true"]
    work = replace(BARE, command=tuple(command), env=tuple(env.items()))
    snapshot = resolve(work, CONFIG, generation=1, folder="/", inputs=tuple(inputs))
    assert snapshot is not None

    env["A"] = "2"
    inputs.append(3)
    command[0] = "false"

    assert (snapshot.env, snapshot.inputs, snapshot.command) == ((("A", "1"),), (1, 2), ("true",))
    for name in Snapshot.__slots__:
        with pytest.raises(FrozenInstanceError):
            setattr(snapshot, name, None)
        hash(getattr(snapshot, name))  # nothing mutable inside either


@pytest.mark.req("E01")
def test_a_new_configuration_leaves_what_was_pinned_alone() -> None:
    before = pinned()

    after = pinned(command=("./new.sh",), timeout_us=1)

    assert before.command == BACKUP.command
    assert after.command == ("./new.sh",), "control: new attempts use the current one"


def test_a_snapshot_is_read_back_as_it_was_written() -> None:
    for snapshot in (pinned(), pinned(replace(WORK, env=(("K", "é\udcff"),)), retry=RetryPolicy(), cwd="/srv")):
        assert Snapshot.from_json(snapshot.to_json()) == snapshot
