"""`tenure gate` and `tenure budget` through the real command, with a coordinator and workers where something has to start."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from shared.ids import WorkId, work_of
from shared.model.budget import Budget, Per
from shared.model.settings import Binding, Config
from shared.model.work import NewWork, Reason
from shared.policy.capacity import Wait
from shared.store.values import GateHold
from tests.support.command_homes import Ask, CommandHome
from tests.support.declarations import TICK
from tests.support.examinations import Found
from tests.support.stores import COMPLETED, SUCCEEDED
from tests.support.up_sites import UpSite

ONE_TURN = Budget("turns", Decimal(1), Per.ALL)
DEPLOY = Binding("deploy", ("./deploy.sh", "--now"), approval=True)


pytestmark = pytest.mark.usefixtures("quiet")


def gated(home: CommandHome) -> WorkId:
    """A Work of `deploy` that waits for approval."""
    home.activate(Config(bindings=(DEPLOY,)))
    work = NewWork("ops", "deploy", None, (), None, b"production", "uid 7 via submit")
    work_id = home.store.write(lambda tx: tx.submit(work, "jobs"))
    home.try_claim(work_id, home.worker(), gate_hold=GateHold("approval", "needs approval of a person"))
    return work_id


def over_budget(home: CommandHome) -> WorkId:
    """A Work that finds the only turn taken."""
    home.activate(Config(budgets=(ONE_TURN,)))
    worker = home.staff()
    home.ended(worker)
    work_id = home.submit(scope="ops")
    home.try_claim(work_id, worker)
    return work_id


@pytest.mark.req("G05", "V03")
def test_gate_list_says_who_waits_and_what_would_run(home: CommandHome, ask: Ask) -> None:
    assert ask("gate", "list").out == "nothing waits at a gate\n"
    work_id = gated(home)

    [item] = ask("gate", "list", "--json").json["items"]

    assert {key: item[key] for key in ("work", "scope", "gate", "binding", "command", "input_bytes")} == {
        "work": work_id,
        "scope": "ops",
        "gate": "approval",
        "binding": "deploy",
        "command": ["./deploy.sh", "--now"],
        "input_bytes": len(b"production"),
    }
    assert item["hold"]["since"].endswith("Z")
    text = ask("gate", "list").out
    assert "./deploy.sh --now" in text
    assert f"gate admit {work_id}" in text


@pytest.mark.req("G04", "G05")
def test_admitting_and_refusing_from_the_command_line(home: CommandHome, ask: Ask) -> None:
    work_id = gated(home)
    assert ask("gate", "refuse", work_id).code == 2, "a refusal says why"
    refused = ask("work", "release", work_id)
    assert (refused.code, f"tenure gate admit {work_id}" in refused.err) == (1, True)

    said = ask("gate", "admit", work_id, "--key", "k1", "--json")

    assert (said.code, said.json["state"], said.json["verdict"]) == (0, "ready", "admitted")
    assert ask("gate", "admit", work_id, "--key", "k1").code == 0
    assert ask("gate", "admit", work_id).code == 1
    other = gated(home)
    assert ask("gate", "refuse", other, "--reason", "not today").code == 0
    view = ask("work", "show", other, "--json").json
    assert (view["state"], view["cancellations"][0]["reason"]) == (
        "cancelled",
        "refused at gate approval: not today",
    )
    assert ask("gate", "admit", "w99").code == 1


@pytest.mark.req("B01", "B06", "V03")
def test_budget_list_says_what_is_used_and_what_is_held(home: CommandHome, ask: Ask) -> None:
    assert ask("budget", "list").out == "no budgets\n"
    work_id = over_budget(home)

    said = ask("budget", "list", "--json").json

    [item] = said["items"]
    assert (item["unit"], item["max"], item["per"], item["period"]) == ("turns", "1", "all", "life")
    assert item["ledgers"] == [{"subject": "", "used": "1", "full": True}]
    assert said["held"] == [work_id]
    assert "1 of 1 turns of all scopes are used" in ask("budget", "list").out


@pytest.mark.req("B01", "B06")
@pytest.mark.parametrize(
    ("per", "scope", "whose"),
    [
        (Per.WORK, "ops", "each in ops"),
        (Per.WORK, None, "each"),
        (Per.SCOPE, "ops", "ops"),
        (Per.SCOPE, None, "each"),
        (Per.ALL, None, "everything"),
    ],
)
def test_budget_list_says_whose_a_budget_is_of_which_nothing_is_used(
    home: CommandHome, ask: Ask, per: Per, scope: str | None, whose: str
) -> None:
    home.activate(Config(budgets=(Budget("usd", Decimal(5), per, scope=scope),)))

    [_, row] = ask("budget", "list").out.splitlines()

    assert re.split(" {2,}", row) == ["usd", per, whose, "life", "0", "5"]


@pytest.mark.req("B04", "B06", "C04")
def test_what_is_held_is_shown_by_work_status_and_doctor(home: CommandHome, ask: Ask, found: Found) -> None:
    work_id = over_budget(home)

    view = ask("work", "show", work_id, "--json").json
    assert (view["state"], view["reason"]) == ("held", "over_budget")
    assert view["start_hold"]["reason"] == "1 of 1 turns of all scopes are used"
    assert found()["budgets.held"] == "warning"
    [need] = ask("status", "--json").json["needs_you"]
    assert (need["kind"], need["subject"], need["step"]) == (
        "over_budget",
        work_id,
        f"tenure --home {home.home} work release {work_id}",
    )
    assert need["step"] in ask("status").out

    assert ask("work", "release", work_id).code == 0

    assert "budgets.held" not in found()
    assert ask("status", "--json").json["needs_you"] == []
    assert "needs you" not in ask("status").out


@pytest.mark.req("B04", "B06", "O08")
def test_what_is_parked_over_budget_is_shown_and_released_like_what_is_held(
    home: CommandHome, ask: Ask, found: Found
) -> None:
    home.activate(Config(budgets=(ONE_TURN,)))
    key = home.parked(home.staff())
    work_id = work_of(key.attempt_id)
    home.store.write(lambda tx: tx.publish(TICK))
    assert ask("work", "release", work_id).code == 1, "control: nothing holds it yet"
    request = replace(home.resume_request(key.attempt_id, key.owner), budgets=(ONE_TURN,))
    home.as_leader(lambda tx: tx.claim_resume(request))

    [need] = ask("status", "--json").json["needs_you"]

    assert (need["kind"], need["subject"], need["step"]) == (
        "over_budget",
        work_id,
        f"tenure --home {home.home} work release {work_id}",
    )
    assert "a budget of turns is used up" in need["why"]
    assert found()["budgets.held"] == "warning"
    assert ask("budget", "list", "--json").json["held"] == [work_id]
    assert ask("work", "release", work_id).code == 0
    assert ask("status", "--json").json["needs_you"] == []
    assert "budgets.held" not in found()


@pytest.mark.req("G05", "C04")
def test_doctor_tells_a_gate_that_holds_from_one_that_does_not_decide(
    home: CommandHome, ask: Ask, found: Found
) -> None:
    held, stuck, other = gated(home), home.submit(), home.submit()
    assert found()["gates.held"] == "info"
    assert "gates.undecided" not in found()

    told = "rates: it failed with TimeoutError"
    home.as_leader(lambda tx: tx.hold_back([Wait(stuck, Reason.GATE_UNDECIDED, told), Wait(other, Reason.HOLD, "x")]))

    assert found()["gates.undecided"] == "error"
    [one] = [each for each in ask("doctor", "--json").json["findings"] if each["code"] == "gates.undecided"]
    assert one["message"] == f"gate {told}; so 1 work cannot start: {stuck}"
    assert f"work cancel {stuck}" in one["next_step"]
    assert f"gate_undecided: gate {told}" in ask("work", "show", stuck).out
    home.store.write(lambda tx: tx.settle_gate(held, holder="approval", verdict="admitted", by="t", reason="t"))
    assert "gates.held" not in found()


@pytest.mark.req("O02", "B02")
def test_an_attempts_usage_is_shown(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    key = home.running(worker)
    home.clock.advance(30_000_000)
    home.store.write(lambda tx: tx.renew(worker, lease_us=60_000_000))

    home.store.write(lambda tx: tx.finish(key, SUCCEEDED, COMPLETED))

    assert ask("attempt", "show", key.attempt_id, "--json").json["usage"] == {"minutes": "0.5"}
    for words in (("work", "show", "w1"), ("attempt", "show", key.attempt_id)):
        assert re.search(r"^  used +30s$", ask(*words).out, flags=re.MULTILINE)


CONFIG = """
[settings]
lease = "5s"
[binding.deploy]
command = ["sh", "-c", "echo deployed"]
approval = true
[binding.look]
command = ["true"]
[[budget]]
unit = "turns"
max = 2
per = "all"
warn_at = 0.5
"""


@pytest.mark.req("G05", "G04", "B04", "B05", "B06")
def test_a_person_approves_and_a_budget_holds_with_everything_up(tmp_path: Path) -> None:
    site = UpSite(tmp_path, CONFIG)
    with site.up():
        deploy, look = site.submit("deploy"), site.submit("look")
        site.await_state(look, "completed")
        site.await_state(deploy, "held")
        assert [item["work"] for item in site.json("gate", "list")["items"]] == [deploy]

        assert site.call("gate", "admit", deploy, "--reason", "looks right").returncode == 0
        site.await_state(deploy, "completed")

        assert site.printed(deploy) == b"deployed\n"
        late = site.submit("look")
        site.await_state(late, "held")
        assert site.json("budget", "list")["items"][0]["ledgers"][0]["used"] == "2"
        assert site.call("work", "release", late).returncode == 0
        site.await_state(late, "completed")
        assert site.json("budget", "list")["items"][0]["ledgers"][0]["used"] == "3"
