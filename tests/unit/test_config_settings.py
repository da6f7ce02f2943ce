"""The configuration as values: defaults, canonical JSON, limits, names."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config.loader import parse
from shared.errors import UnsupportedError
from shared.model.budget import Budget, Per, Period
from shared.model.settings import (
    DEFAULT,
    Binding,
    Config,
    Grant,
    RetryPolicy,
    SandboxConfig,
    ScopeConfig,
    Settings,
    is_binding_name,
    is_scope_name,
    pool_of,
    registration_of,
    scope_chain,
)
from shared.model.work import WorkKind

S = 1_000_000

texts = st.text(st.characters(codec="utf-8"), max_size=8)
retries = st.builds(
    RetryPolicy,
    delays_us=st.lists(st.integers(S, 10 * S), min_size=1, max_size=3).map(tuple),
    on=st.sampled_from([("failure",), ("timeout",), ("failure", "timeout")]),
)
pairs = st.dictionaries(texts, texts, max_size=2).map(lambda found: tuple(sorted(found.items())))
paths = st.lists(texts, max_size=2).map(tuple)
bindings = st.builds(
    Binding,
    name=st.sampled_from(["a", "b"]),
    command=st.lists(texts, min_size=1, max_size=3).map(tuple),
    env=pairs,
    secrets=pairs,
    cwd=st.none() | texts,
    timeout_us=st.none() | st.integers(S, 10 * S),
    retry=st.none() | retries,
    replay=st.sampled_from(["never", "safe"]),
    sandbox=st.none()
    | st.builds(SandboxConfig, read_only=paths, writable=paths, network=st.booleans(), private_tmp=st.booleans()),
    output_max_bytes=st.none() | st.integers(0, 9),
    grants=st.lists(
        st.builds(Grant, name=st.sampled_from(["g", "h"]), env=pairs, secrets=pairs, writable=paths), max_size=2
    ).map(tuple),
)
configs = st.builds(
    Config,
    settings=st.builds(Settings, concurrency=st.integers(0, 9), lease_us=st.integers(S, 9 * S)),
    scopes=st.lists(
        st.builds(
            ScopeConfig,
            name=st.sampled_from(["a", "a/b"]),
            concurrency=st.none() | st.integers(0, 9),
            binding=st.none() | st.sampled_from(["a", "b"]),
        ),
        max_size=2,
    ).map(tuple),
    bindings=st.lists(bindings, max_size=2).map(tuple),
)


@pytest.mark.req("E01")
def test_defaults_are_those_of_the_requirement() -> None:
    settings = DEFAULT.settings

    assert (settings.concurrency, settings.lease_us, settings.timeout_us) == (4, 60 * S, 3600 * S)
    assert RetryPolicy().attempts_max == 3


@pytest.mark.req("E01")
def test_a_configuration_cannot_be_changed_after_it_was_made() -> None:
    with pytest.raises(AttributeError):
        DEFAULT.settings.concurrency = 9  # type: ignore[misc]

    assert hash(DEFAULT) == hash(Config())


@given(configs)
def test_a_stored_configuration_is_the_same_value(config: Config) -> None:
    again = Config.from_json(config.to_json())

    assert again == config
    assert again.digest == config.digest


def test_an_argument_that_is_no_utf8_survives_storing() -> None:
    config = Config(bindings=(Binding("a", ("cat", "\udcff")),))

    assert config.to_json().isascii()
    assert Config.from_json(config.to_json()) == config


def test_the_digest_tells_two_configurations_apart() -> None:
    other = Config(settings=Settings(concurrency=5))

    assert DEFAULT.digest == Config().digest
    assert DEFAULT.digest != other.digest


def test_a_newer_stored_format_is_unsupported_never_guessed() -> None:
    raw = json.loads(DEFAULT.to_json())
    assert Config.from_json(json.dumps(raw)) == DEFAULT

    with pytest.raises(UnsupportedError, match="format 2"):
        Config.from_json(json.dumps(raw | {"format": 2}))


@pytest.mark.parametrize(
    "text", ["", "[]", "7", '{"format":1}', '{"format":1,"settings":{"pace":1},"scopes":[],"bindings":[]}']
)
def test_a_damaged_stored_configuration_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Config.from_json(text)


def test_a_scope_counts_against_its_ancestors() -> None:
    assert scope_chain("ops/backup/db") == ("ops", "ops/backup", "ops/backup/db")
    assert scope_chain("ops") == ("ops",)
    assert scope_chain("") == ()


@pytest.mark.req("C01")
def test_scope_limits_are_those_of_the_whole_chain() -> None:
    config = Config(scopes=(ScopeConfig("ops", 2), ScopeConfig("ops/backup"), ScopeConfig("ops/backup/db", 0)))

    assert config.scope_limits("ops/backup/db") == (("ops", 2),)
    assert config.scope_limits("ops/other/deep") == (("ops", 2),)
    assert config.scope_limits("opsy") == ()


@pytest.mark.req("C02")
def test_each_pool_has_its_own_limit() -> None:
    config = Config(settings=Settings(concurrency=3, job_concurrency=7))

    assert config.pool_limit(pool_of("shell")) == 7
    assert config.pool_limit("agents") == 3
    with pytest.raises(UnsupportedError):
        pool_of("docker")


def test_a_binding_is_found_by_its_name() -> None:
    binding = Binding("a", ("true",))
    config = Config(bindings=(binding,))

    assert config.binding("a") is binding
    assert config.binding("b") is None
    assert binding.pool == "jobs"


@pytest.mark.req("E02")
def test_the_nearest_scope_that_names_a_binding_counts() -> None:
    scopes = (ScopeConfig("ops", binding="a"), ScopeConfig("ops/b"), ScopeConfig("ops/b/c", binding="c"))
    config = Config(scopes=scopes)

    chain = ("", "ops", "ops/b", "ops/b/x", "ops/b/c", "ops/b/c/d", "opsy")
    assert [config.scope_binding(scope) for scope in chain] == [None, "a", "a", "a", "c", "c", None]


@pytest.mark.req("E09")
def test_an_executor_is_registered_with_its_version() -> None:
    assert registration_of("shell") == "shell@1"
    with pytest.raises(UnsupportedError):
        registration_of("docker")


def test_a_grant_is_found_by_its_name() -> None:
    grant = Grant("g")
    binding = Binding("a", ("true",), grants=(grant,))

    assert binding.grant("g") is grant
    assert binding.grant("h") is None


def test_a_configuration_stored_before_a_key_existed_is_read_with_its_default() -> None:
    raw = json.loads(Config(scopes=(ScopeConfig("a"),), bindings=(Binding("a", ("true",)),)).to_json())
    del raw["settings"]["output_max_bytes"], raw["scopes"][0]["binding"]
    for key in ("secrets", "sandbox", "grants", "output_max_bytes"):
        del raw["bindings"][0][key]

    assert Config.from_json(json.dumps(raw)).binding("a") == Binding("a", ("true",))


@pytest.mark.parametrize("name", ["ops", "ops/backup", "Ops2/a.b/c_d-e", "0", "/".join(["a"] * 16)])
def test_scope_names(name: str) -> None:
    assert is_scope_name(name)


@pytest.mark.parametrize(
    "name", ["", "/", "/ops", "ops/", "a//b", ".", "a/..", "a b", "ä", "a\n", "a" * 64, "/".join(["a"] * 17)]
)
def test_names_no_scope_can_have(name: str) -> None:
    assert not is_scope_name(name)


@pytest.mark.parametrize("name", ["backup", "b", "Back_up-2.x", "w", "w0", "w41x"])
def test_binding_names(name: str) -> None:
    assert is_binding_name(name)


@pytest.mark.parametrize("name", ["", "2x", "-x", "a/b", "a b", "w41", "ä", "a\n", "a" * 64])
def test_names_no_binding_can_have(name: str) -> None:
    assert not is_binding_name(name)


@pytest.mark.req("B01")
def test_a_budget_is_read_exactly_and_kept_so() -> None:
    text = """
[settings]
approval = ["standing", "run_once"]
[binding.a]
command = ["true"]
approval = true
[[budget]]
unit = "usd"
max = 20.10
[[budget]]
unit = "tokens"
max = "1000000.000000000001"
per = "all"
period = "week"
warn_at = 0.1
[[budget]]
unit = "turns"
max = 3
per = "work"
period = "day"
scope = "ops/backup"
"""

    config = parse(text, source="tenure.toml", folder=Path("/etc/x"))

    assert config.budgets == (
        Budget("usd", Decimal("20.1")),
        Budget("tokens", Decimal("1000000.000000000001"), Per.ALL, Period.WEEK, None, Decimal("0.1")),
        Budget("turns", Decimal(3), Per.WORK, Period.DAY, "ops/backup"),
    )
    assert config.settings.approval == (WorkKind.RUN_ONCE, WorkKind.STANDING)
    assert config.bindings[0].approval
    assert Config.from_json(config.to_json()) == config
    assert config.digest == parse(text.replace("20.10", "20.1"), source="t", folder=Path("/etc/x")).digest


@pytest.mark.req("B01")
def test_a_configuration_stored_before_there_were_budgets_is_still_read() -> None:
    stored = json.loads(Config(bindings=(Binding("a", ("true",)),)).to_json())
    del stored["budgets"], stored["settings"]["approval"], stored["bindings"][0]["approval"]

    config = Config.from_json(json.dumps(stored))

    assert (config.budgets, config.settings.approval, config.bindings[0].approval) == ((), (), False)
