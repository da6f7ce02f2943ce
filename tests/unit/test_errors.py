"""The one error tree: what each class tells a caller, and that all of it survives pickling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest

# Errors that other modules add to the tree are classes of it once those modules are imported.
import shared.home
import shared.process.launcher  # noqa: F401
from shared.errors import (
    ChainTooLongError,
    ConfigError,
    DeclarationError,
    FenceViolationError,
    IndeterminateError,
    KeyReusedError,
    LeadershipLostError,
    LeaseLostError,
    NotFoundError,
    NotWrittenError,
    OperationError,
    RefusedError,
    SecretUnavailableError,
    StoreBusyError,
    StoreUnavailableError,
    TenureError,
    UnreadableError,
    UnsupportedError,
    UsageError,
)
from shared.process.launcher import LaunchError

SAMPLES: list[TenureError] = [
    TenureError("plain"),
    RefusedError("already ended", hint="tenure work show w1", code="already_ended"),
    NotFoundError("no work w9"),
    UnreadableError("work", "w1", "command"),
    LeaseLostError("w1.2", 3, 4),
    LeaseLostError("w1.2", 3, None, "expired"),
    LeadershipLostError(4, 5),
    LeadershipLostError(4, None),
    KeyReusedError("nightly-3", "w41"),
    DeclarationError("turn: `status` is missing"),
    StoreBusyError("the queue was held for 10 s"),
    StoreUnavailableError("schema_newer", "schema 9, this version reads 3", hint="use a newer tenure"),
    IndeterminateError("COMMIT was not answered"),
    NotWrittenError("its commit did not reach the store"),
    FenceViolationError("UNIQUE attempt(work_id)"),
    ConfigError("needs a unit", source="tenure.toml", line=7, key="settings.lease", hint='"30s"'),
    ConfigError("is no file", source="tenure.toml"),
    ConfigError("is wrong"),
    UsageError("no command given"),
    UnsupportedError("no cgroups here"),
    OperationError("workspace 7 is gone", code="workspace_gone"),
    ChainTooLongError("w41.2", 101, 100),
    SecretUnavailableError("API_KEY", "file", "others may read it (mode 0644)"),
    SecretUnavailableError(None, "env", "it is not set"),
    LaunchError("ready", "the shim died", nothing_ran=False, exists=True),
]


def classes_below(kind: type[TenureError]) -> Iterator[type[TenureError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from classes_below(child)


def test_every_class_of_the_tree_has_a_sample_here() -> None:
    ours = {kind for kind in classes_below(TenureError) if not kind.__module__.startswith("tests.")}

    assert ours == {type(sample) for sample in SAMPLES}


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_with_all_its_facts(error: TenureError, protocol: int) -> None:
    twin = pickle.loads(pickle.dumps(error, protocol))

    assert type(twin) is type(error)
    assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))
    assert (twin.code, twin.exit_code, twin.hint) == (error.code, error.exit_code, error.hint)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_copying_and_a_second_pickling(error: TenureError) -> None:
    twin = copy.deepcopy(pickle.loads(pickle.dumps(error)))

    assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))


def test_facts_of_a_lost_lease_are_kept_and_told() -> None:
    error = LeaseLostError("w1.2", 3, 4, "revoked")

    assert (error.attempt_id, error.epoch_held, error.epoch_current) == ("w1.2", 3, 4)
    assert str(error) == "lease of w1.2 at epoch 3 is lost (current epoch 4, revoked)"


def test_facts_of_a_lost_leadership_are_kept_and_told() -> None:
    error = LeadershipLostError(4, 5)

    assert (error.generation_held, error.generation_current) == (4, 5)
    assert str(error) == "generation 4 no longer leads (current generation 5)"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConfigError("m", source="f", line=7, key="k"), "f:7: m"),
        (ConfigError("m", source="f"), "f: m"),
        (ConfigError("m"), "m"),
        (StoreUnavailableError("corrupt", "m"), "m"),
    ],
)
def test_an_error_is_one_line_that_says_where(error: TenureError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize(
    ("kind", "exit_code", "code"),
    [
        (RefusedError, 1, "refused"),
        (NotFoundError, 1, "not_found"),
        (UnreadableError, 1, "unreadable"),
        (LeaseLostError, 1, "lease_lost"),
        (LeadershipLostError, 1, "leadership_lost"),
        (NotWrittenError, 1, "not_written"),
        (StoreBusyError, 1, "store_busy"),
        (IndeterminateError, 1, "indeterminate"),
        (FenceViolationError, 1, "fence_violation"),
        (UnsupportedError, 1, "unsupported"),
        (ConfigError, 2, "config"),
        (UsageError, 2, "usage"),
        (StoreUnavailableError, 3, "failed"),
    ],
)
def test_a_class_says_what_a_command_exits_with(kind: type[TenureError], exit_code: int, code: str) -> None:
    assert (kind.exit_code, kind.code) == (exit_code, code)


def test_only_what_state_refuses_is_a_refusal() -> None:
    refusals = {kind for kind in classes_below(TenureError) if issubclass(kind, RefusedError)}

    assert refusals >= {RefusedError, NotFoundError, LeaseLostError, LeadershipLostError}
    assert not refusals & {StoreBusyError, StoreUnavailableError, IndeterminateError, FenceViolationError, ConfigError}
