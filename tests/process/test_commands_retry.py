"""`tenure submit --key|--kind|w41`, `tenure work retry|hold|release`, `tenure binding`: what they say, refuse and leave alone."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from shared.ids import WorkId
from shared.model.settings import Binding, Config, RetryPolicy
from shared.model.work import WorkKind, WorkState
from tests.support.command_homes import CommandHome
from tests.support.stores import EXHAUSTED, FAILED

CONFIG = Config(
    bindings=(
        Binding("feed", ("cat",), kind=WorkKind.STANDING),
        Binding("once", ("true",), retry=RetryPolicy(delays_us=(300_000_000,), on=("failure",))),
    )
)


def said(home: CommandHome, *words: str, code: int = 0) -> str:
    answer = home.call(*words)
    assert answer.code == code, answer
    return answer.out if code == 0 else answer.err


def shown(home: CommandHome, work_id: str) -> dict[str, Any]:
    found = json.loads(said(home, "work", "show", work_id, "--json"))
    assert isinstance(found, dict)
    return found


@pytest.fixture
def fed(home: CommandHome) -> CommandHome:
    home.store.write(lambda tx: tx.activate_config(CONFIG.to_json(), CONFIG.digest, "/tenure.toml"))
    return home


@pytest.mark.req("E12", "O01")
def test_a_standing_work_is_fed_by_its_id(fed: CommandHome) -> None:
    work_id = said(fed, "submit", "feed").strip()
    assert (shown(fed, work_id)["state"], shown(fed, work_id)["kind"]) == ("idle", "standing")

    assert said(fed, "submit", work_id, "--input", "one", "--key", "k").strip() == work_id
    assert said(fed, "submit", work_id, "--input", "one", "--key", "k").strip() == work_id

    assert shown(fed, work_id)["state"] == "ready"
    assert len(fed.store.read(lambda tx: tx.pending_inputs(WorkId(work_id), limit=9))) == 1
    assert "belongs to" in said(fed, "submit", work_id, "--input", "two", "--key", "k", code=1)
    for words in (["--input", "x", "--scope", "ops"], [], ["--input", "x", "--", "ls"]):
        said(fed, "submit", work_id, *words, code=2)
    once = said(fed, "submit", "once").strip()
    assert "runs once" in said(fed, "submit", once, "--input", "x", code=1)
    assert shown(fed, said(fed, "submit", "feed", "--kind", "run_once").strip())["kind"] == "run_once"


@pytest.mark.req("O01")
def test_a_key_is_accepted_once_and_only_for_one_content(fed: CommandHome) -> None:
    first = said(fed, "submit", "once", "--key", "nightly")

    assert said(fed, "submit", "once", "--key", "nightly") == first
    assert len(fed.works()) == 1
    assert "other content" in said(fed, "submit", "once", "--key", "nightly", "--priority", "1", code=1)
    for key in ("", "a\nb", "x" * 201):
        said(fed, "submit", "once", "--key", key, code=2)
    assert said(fed, "submit", "once", "--key", "x" * 200) != first, "control"


@pytest.mark.req("V03", "O14")
def test_hold_release_and_retry_say_what_became_of_the_work(fed: CommandHome) -> None:
    work_id = said(fed, "submit", "once").strip()
    assert "is held" in said(fed, "work", "hold", work_id, "--reason", "wait for Ann")
    assert "wait for Ann" in said(fed, "work", "show", work_id)
    assert shown(fed, work_id)["hold"]["reason"] == "wait for Ann"
    assert "held already" in said(fed, "work", "hold", work_id, code=1)
    assert "no attempt yet" in said(fed, "work", "retry", work_id, code=1)

    assert "is ready" in said(fed, "work", "release", work_id)

    assert "no person holds" in said(fed, "work", "release", work_id, code=1)
    for verb in ("hold", "release", "retry"):
        assert "no work w99" in said(fed, "work", verb, "w99", code=1)
        said(fed, "work", verb, "nonsense", code=2)


@pytest.mark.req("F03", "V03")
def test_a_binding_is_quarantined_and_released_with_a_reason(fed: CommandHome) -> None:
    said(fed, "binding", "quarantine", "once", code=2)
    assert "no binding 'onec'" in said(fed, "binding", "quarantine", "onec", "--reason", "x", code=1)
    assert "quarantined" in said(fed, "binding", "quarantine", "once", "--reason", "broken")
    items = {item["binding"]: item for item in json.loads(said(fed, "binding", "list", "--json"))["items"]}
    assert (items["once"]["quarantined"], items["once"]["reason"], items["feed"]["quarantined"]) == (
        True,
        "broken",
        False,
    )
    assert "bindings.quarantined" in fed.call("doctor").out
    [need] = json.loads(said(fed, "status", "--json"))["needs_you"]
    assert (need["kind"], need["subject"]) == ("quarantined", "once")

    assert "released" in said(fed, *shlex.split(need["step"])[3:]), "what status says to do can be done as it stands"

    assert "not quarantined" in said(fed, "binding", "release", "once", "--reason", "mended", code=1)
    assert "bindings.quarantined" not in fed.call("doctor").out


@pytest.mark.req("B06", "C04")
def test_what_nothing_is_left_to_try_for_is_among_what_needs_a_person(home: CommandHome) -> None:
    key = home.launch(home.staff())
    home.store.write(lambda tx: tx.finish(key, FAILED, replace(EXHAUSTED, state=WorkState.HELD)))

    [need] = json.loads(said(home, "status", "--json"))["needs_you"]

    assert (need["kind"], need["subject"], need["step"]) == (
        "exhausted",
        "w1",
        f"tenure --home {home.home} work retry w1",
    )
    told = said(home, "work", "show", "w1")
    assert f"next       try it again, or `work cancel`: tenure --home {home.home} work retry w1" in told
    said(home, "work", "hold", "w1", "--reason", "I know")
    assert json.loads(said(home, "status", "--json"))["needs_you"] == []
