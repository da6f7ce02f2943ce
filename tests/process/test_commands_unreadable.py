"""What the commands say of rows that cannot be read, and that a home with them goes on."""

from __future__ import annotations

import json

import pytest

from shared.model.settings import DEFAULT
from tests.support.command_homes import Ask, CommandHome
from tests.support.damage import NO_TEXT, damage
from tests.support.examinations import Found

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_damaged_work_is_listed_by_its_name_and_the_others_as_ever(home: CommandHome, ask: Ask) -> None:
    for _ in range(3):
        home.submit()
    whole = ask("work", "list", "--json").json
    assert (len(whole["items"]), whole["unreadable"]) == (3, [])
    damage(home.home, "UPDATE work SET command = 'hunter2' WHERE id = 'w2'")

    listed = ask("work", "list", "--json")
    assert [work["id"] for work in listed.json["items"]] == ["w1", "w3"]
    assert listed.json["unreadable"] == [{"table": "work", "key": "w2", "column": "command"}]
    assert "w2  unreadable  column command" in ask("work", "list").out
    shown = ask("work", "show", "w2", "--json")
    assert (shown.code, json.loads(shown.err)["error"]["code"]) == (1, "unreadable")
    assert "hunter2" not in listed.out + shown.err + ask("doctor").out + ask("status").out


def test_status_names_damaged_rows_and_shows_the_rest(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    home.running(worker)
    home.running(worker)
    assert ask("status", "--json").json["unreadable"] == []
    damage(
        home.home,
        "UPDATE work SET env = 'x' WHERE id = 'w1'",
        "UPDATE snapshot SET body = 'x' WHERE attempt_id = 'w2.1'",
    )

    said = ask("status", "--json")

    assert [attempt["id"] for attempt in said.json["running"]] == ["w2.1"]
    assert said.json["running"][0]["command"] is None
    assert said.json["unreadable"] == [{"table": "work", "key": "w1", "column": "env"}]
    assert "cannot be read" in ask("status").out


@pytest.mark.req("S05")
@pytest.mark.parametrize(
    ("severity", "statement", "named", "step"),
    [
        (
            "error",
            "UPDATE work SET grants = 'x' WHERE id = 'w1'",
            "row of work cannot be read and is left out: w1",
            "work cancel w1",
        ),
        (
            "error",
            "UPDATE config SET body = 'x'",
            "row of config cannot be read and is left out: 1 (column body)",
            "apply",
        ),
        (
            "warning",
            "UPDATE event SET data = '' WHERE seq = 1",
            "row of event cannot be read and is left out: 1",
            "put a backup back",
        ),
        (
            "error",
            f"UPDATE snapshot SET body = {NO_TEXT} WHERE attempt_id = 'w1.1'",
            "w1.1 (column body)",
            "attempt show w1.1",
        ),
        (
            "error",
            "UPDATE worker SET executors = '1' WHERE number = 1",
            "worker-1.1 (column executors)",
            "start that worker again",
        ),
    ],
)
def test_doctor_names_each_damaged_row_and_what_to_do(
    home: CommandHome, found: Found, ask: Ask, severity: str, statement: str, named: str, step: str
) -> None:
    home.activate(DEFAULT)
    home.running(home.staff())
    assert found() == {}
    damage(home.home, statement)

    codes = found()
    assert codes["rows.unreadable"] == severity
    said = ask("doctor").out
    assert named in said
    assert step in said
    assert ask("store", "check").code == 1
    assert "unreadable: " in ask("store", "check").out


@pytest.mark.req("S05")
def test_a_damaged_configuration_refuses_what_is_new_until_the_file_is_applied_again(
    home: CommandHome, found: Found, ask: Ask
) -> None:
    (home.folder / "tenure.toml").write_text("[settings]\n")
    assert ask("apply", str(home.folder / "tenure.toml")).code == 0
    damage(home.home, "UPDATE config SET body = 'x'")

    refused = ask("submit", "--", "true")
    assert refused.code == 1
    assert "cannot be read" in refused.err
    assert ask("doctor").code == 1
    applied = ask("apply")
    assert (applied.code, "generation 2 is active" in applied.out) == (0, True)
    assert found()["rows.unreadable"] == "warning", "what was replaced is history"

    assert ask("submit", "--", "true").code == 0
