"""What `tenure doctor` and `tenure attempt show` say of an agent's lines, provoked; beside it the same home without the fault."""

from __future__ import annotations

import pytest

from shared.commands import findings_agents
from shared.model.instant import US_PER_S
from shared.model.stream import Place, Refusal, RefusalCode, Stretch, Took
from tests.support.command_homes import Ask, CommandHome
from tests.support.examinations import Found
from tests.support.stores import COMPLETED, SUCCEEDED

pytestmark = pytest.mark.usefixtures("quiet")

REFUSED = Stretch(Place(), Place(10, 1), refusals=(Refusal(1, RefusalCode.NOT_JSON, "it is no JSON"),))
UNKNOWN = Stretch(Place(10, 1), Place(20, 2), unknown=(("later\x1b[0m", 3),))


@pytest.mark.req("V04", "O02")
def test_lines_of_agents_that_are_not_understood(home: CommandHome, found: Found, ask: Ask) -> None:
    key = home.running(home.staff())
    home.store.write(lambda tx: tx.follow(key, 1, Stretch(Place(), Place(0, 0))))
    assert found() == {}, "control: it was read, and nothing is wrong with it"

    home.store.write(lambda tx: tx.follow(key, 1, REFUSED))
    home.store.write(lambda tx: tx.follow(key, 1, UNKNOWN))

    assert found() == {"agents.lines": "warning"}
    said = ask("doctor").out
    assert f"{key.attempt_id}, which runs: 1 line refused, the last of them line 1 (not_json: it is no JSON)" in said
    assert "unknown types later\\e[0m (3)" in said
    assert f"attempt show {key.attempt_id} has the lines" in said
    shown = ask("attempt", "show", key.attempt_id).out
    assert "line 1  not_json: it is no JSON" in shown
    assert "later\\e[0m (3)" in shown


@pytest.mark.req("V04", "S02")
def test_what_ended_long_ago_is_history(home: CommandHome, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    key = home.running(home.staff())
    home.store.write(lambda tx: tx.follow(key, 1, REFUSED))
    home.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))
    assert "agents.lines" in found(), "it ended just now"

    monkeypatch.setattr(findings_agents, "RECENT_US", -US_PER_S)  # what ended by now ended long ago

    assert "agents.lines" not in found()


@pytest.mark.req("V04", "O02")
def test_a_line_that_names_an_input_of_nobody(home: CommandHome, found: Found, ask: Ask) -> None:
    key = home.running(home.staff())
    own = home.store.read(lambda tx: tx.snapshot(key.attempt_id)).inputs  # type: ignore[union-attr]
    home.store.write(lambda tx: tx.follow(key, 1, Stretch(Place(), Place(10, 1), (Took(1, own),))))
    assert found() == {}, "control: what it was handed"

    home.store.write(lambda tx: tx.follow(key, 1, Stretch(Place(10, 1), Place(20, 2), (Took(2, (999,)),))))

    assert found() == {"agents.lines": "warning"}
    why = f"not_handed: consumed: {key.attempt_id} was never handed input 999"
    assert f"1 line refused, the last of them line 2 ({why})" in ask("doctor").out
    assert f"line 2  {why}" in ask("attempt", "show", key.attempt_id).out
