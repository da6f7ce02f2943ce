"""No command writes rows: each goes through the fenced transitions that are meant for people and programs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.contract import TRANSITIONS

COMMANDS = {
    *(
        "submit",
        "add_input",
        "cancel_work",
        "cancel_attempt",
        "reconcile",
        "confirm_stopped",
        "activate_config",
        "publish",
    ),
    *("inject", "interrupt"),
    *("retry_work", "hold_work", "release_work", "quarantine_binding", "release_binding"),
    "settle_gate",
}


def transitions_called(source: str) -> set[str]:
    """Names of transitions that are called on something named tx."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {
        call.attr
        for call in calls
        if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id == "tx"
    } & TRANSITIONS


def sources() -> list[Path]:
    return sorted((ROOT / "shared" / "commands").glob("*.py"))


@pytest.mark.req("V05")
def test_commands_use_the_transitions_of_commands_alone() -> None:
    assert set().union(*(transitions_called(path.read_text()) for path in sources())) == COMMANDS


@pytest.mark.req("V05")
def test_another_transition_would_be_seen() -> None:
    assert transitions_called("store.write(lambda tx: tx.finish(key, ending, change))") == {"finish"}
