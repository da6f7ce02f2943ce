"""Which binding a Work runs under: its own, one of its scope chain, or none; and what its grants add."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from shared.model.attempt import Snapshot
from shared.model.instant import US_PER_S
from shared.model.settings import (
    OUTPUT_MAX_BYTES,
    Binding,
    Config,
    Grant,
    RetryPolicy,
    SandboxConfig,
    ScopeConfig,
    Settings,
)
from shared.model.work import NewWork, Work
from shared.policy.binding import Unresolved, binding_of, resolve
from tests.unit.test_binding import WORK

CAREFUL = Binding(
    name="careful",
    command=("./careful.sh",),
    env=(("LEVEL", "1"),),
    secrets=(("API_KEY", "env:KEY"),),
    cwd="/srv",
    timeout_us=5 * US_PER_S,
    grace_us=2 * US_PER_S,
    retry=RetryPolicy(delays_us=(US_PER_S,), on=("failure", "timeout")),
    replay="safe",
    sandbox=SandboxConfig(writable=("/srv",)),
    output_max_bytes=8192,
    grants=(
        Grant("deploy", env=(("TARGET", "prod"),), secrets=(("TOKEN", "file:/run/token"),), writable=("/opt", "/srv")),
        Grant("network", env=(("PROXY", "on"),)),
    ),
)
LOOSE = Binding(name="loose", command=("./loose.sh",))
CONFIG = Config(
    settings=Settings(output_max_bytes=4096),
    scopes=(
        ScopeConfig("ops", binding="careful"),
        ScopeConfig("ops/backup", concurrency=1),
        ScopeConfig("ops/loose", binding="loose"),
        ScopeConfig("other"),
    ),
    bindings=(CAREFUL, LOOSE),
)
BARE = replace(WORK, binding=None, command=("true",))
PLAIN = replace(WORK, binding=None, command=None)


def pinned(work: Work, config: Config = CONFIG) -> Snapshot:
    snapshot = resolve(work, config, generation=1, folder="/etc", inputs=())
    assert snapshot is not None
    return snapshot


def unresolved(work: Work | NewWork, config: Config = CONFIG) -> Unresolved:
    reason = binding_of(work, config)
    assert isinstance(reason, Unresolved)
    if isinstance(work, Work):
        assert resolve(work, config, generation=1, folder="/", inputs=()) is None
    return reason


@pytest.mark.req("E02")
@pytest.mark.parametrize(
    ("scope", "binding"),
    [
        ("ops", "careful"),
        ("ops/backup", "careful"),
        ("ops/unknown/deep", "careful"),
        ("ops/loose", "loose"),
        ("ops/loose/deep", "loose"),
        ("opsy", None),
        ("other", None),
        ("", None),
    ],
)
def test_a_bare_command_takes_the_binding_of_the_nearest_scope(scope: str, binding: str | None) -> None:
    snapshot = pinned(replace(BARE, scope=scope))

    assert (snapshot.binding, snapshot.command) == (binding, ("true",))


@pytest.mark.req("E02")
def test_a_bare_command_replaces_the_inherited_command_and_keeps_the_rest() -> None:
    snapshot = pinned(BARE)

    assert snapshot.command == ("true",)
    assert (snapshot.env, snapshot.secrets, snapshot.cwd) == (CAREFUL.env, CAREFUL.secrets, "/srv")
    assert (snapshot.timeout_us, snapshot.grace_us, snapshot.output_max_bytes) == (5 * US_PER_S, 2 * US_PER_S, 8192)
    assert snapshot.sandbox == CAREFUL.sandbox
    assert (snapshot.retry_delays_us, snapshot.retry_on) == ((US_PER_S,), ("failure", "timeout"))


def test_what_was_said_of_one_command_s_replay_is_not_said_of_another() -> None:
    assert pinned(PLAIN).replay == "safe", "control"
    assert pinned(BARE).replay == "never"
    assert pinned(replace(BARE, binding="careful")).replay == "never"


@pytest.mark.req("E02")
def test_work_without_binding_or_command_runs_its_scope_s_binding() -> None:
    assert pinned(PLAIN).command == CAREFUL.command
    assert "those above it name none" in unresolved(replace(PLAIN, scope="other")).message


@pytest.mark.req("E02")
def test_a_work_s_own_binding_goes_before_its_scope_s() -> None:
    assert pinned(replace(PLAIN, binding="loose")).binding == "loose"


def test_a_binding_that_is_not_there_is_named_with_those_that_are() -> None:
    found = unresolved(replace(PLAIN, binding="lose"))

    assert found == Unresolved("no binding 'lose'", "lose", ("careful", "loose"))
    assert unresolved(PLAIN, replace(CONFIG, bindings=(LOOSE,))).word == "careful", "nor is it replaced by another"


def test_without_a_word_of_the_binding_the_settings_hold() -> None:
    snapshot = pinned(replace(BARE, scope="other"))

    assert (snapshot.output_max_bytes, snapshot.registration) == (4096, "shell@1")
    assert (snapshot.secrets, snapshot.sandbox, snapshot.grants, snapshot.retry_on) == ((), None, (), ())
    assert pinned(BARE, Config()).output_max_bytes == OUTPUT_MAX_BYTES


@pytest.mark.req("E11")
@pytest.mark.req("O05")
def test_the_timeout_is_the_bindings_else_the_settings_and_retried_only_if_listed() -> None:
    assert (pinned(BARE).timeout_us, "timeout" in pinned(BARE).retry_on) == (5 * US_PER_S, True)
    unlisted = replace(CONFIG, bindings=(replace(CAREFUL, timeout_us=None, retry=RetryPolicy()), LOOSE))
    assert (pinned(BARE, unlisted).timeout_us, pinned(BARE, unlisted).retry_on) == (3600 * US_PER_S, ("failure",))


@pytest.mark.req("E18")
def test_a_grant_applies_to_work_that_asks_for_it_and_to_no_other() -> None:
    granted, plain = pinned(replace(PLAIN, grants=("deploy",))), pinned(PLAIN)

    assert granted.grants == ("deploy",)
    assert granted.env == (("LEVEL", "1"), ("TARGET", "prod"))
    assert granted.secrets == (("API_KEY", "env:KEY"), ("TOKEN", "file:/run/token"))
    assert granted.sandbox == SandboxConfig(writable=("/opt", "/srv"))
    assert (plain.grants, plain.env, plain.secrets) == ((), CAREFUL.env, CAREFUL.secrets)
    assert plain.sandbox == CAREFUL.sandbox


@pytest.mark.req("E18")
def test_the_order_of_grants_and_a_repeated_one_change_nothing() -> None:
    found = {pinned(replace(PLAIN, grants=(*order, order[0]))) for order in permutations(("deploy", "network"))}

    assert [snapshot.grants for snapshot in found] == [("deploy", "network")]


@pytest.mark.req("E18")
def test_a_grant_that_the_binding_has_not_starts_nothing_and_says_why() -> None:
    assert pinned(replace(PLAIN, grants=("deploy",))).grants == ("deploy",), "control"

    found = unresolved(replace(PLAIN, grants=("deploy", "root")))

    assert found == Unresolved("binding careful has no grant 'root'", "root", ("deploy", "network"))
    bare = unresolved(replace(BARE, scope="other", grants=("deploy",)))
    assert bare.message == "a command without a binding has no grant 'deploy'"
    assert "no grant 'deploy'" in unresolved(replace(PLAIN, binding="loose", grants=("deploy",))).message


@pytest.mark.req("E18")
def test_a_grant_of_files_needs_no_sandbox_to_be_taken() -> None:
    config = replace(CONFIG, bindings=(replace(CAREFUL, sandbox=None),))

    assert pinned(replace(PLAIN, grants=("deploy",)), config).sandbox is None


@pytest.mark.req("E18")
def test_a_work_s_environment_wins_over_a_grant_s() -> None:
    work = replace(PLAIN, grants=("deploy",), env=(("TARGET", "test"),))

    assert dict(pinned(work).env)["TARGET"] == "test"


@pytest.mark.req("E10")
def test_a_work_cannot_put_a_value_of_its_own_in_place_of_a_secret() -> None:
    own = (("TOKEN", "guess"),)
    assert dict(pinned(replace(PLAIN, env=own)).env)["TOKEN"] == "guess", "control: without the grant it is no secret"

    found = unresolved(replace(PLAIN, env=own, grants=("deploy",)))

    assert found.message == "TOKEN is a secret of binding careful; the work may not bring its own"


@pytest.mark.req("E10")
def test_a_snapshot_holds_where_secrets_lie_and_survives_storing() -> None:
    snapshot = pinned(replace(PLAIN, grants=("deploy", "network")))

    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    assert '["API_KEY","env:KEY"]' in snapshot.to_json()


def test_a_snapshot_of_before_these_fields_is_still_read() -> None:
    old = (
        '{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],'
        '"env":[["A","1"]],"cwd":"/","timeout_us":1,"grace_us":1,"retry_delays_us":[],"replay":"never","inputs":[]}'
    )

    snapshot = Snapshot.from_json(old)

    assert (snapshot.env, snapshot.registration, snapshot.sandbox) == ((("A", "1"),), "shell@1", None)
    assert snapshot.output_max_bytes == OUTPUT_MAX_BYTES


def test_a_work_to_be_handed_in_is_judged_like_a_stored_one() -> None:
    new = NewWork("ops", None, ("true",), (), "/", None, "test", grants=("root",))

    assert unresolved(new).message == unresolved(replace(BARE, grants=("root",))).message
    assert isinstance(binding_of(replace(new, grants=()), CONFIG), Binding)
