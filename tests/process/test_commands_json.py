"""What commands answer with `--json`: every read has it, and every command that hands something in or decides something."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from shared.cli import COMMANDS, load
from shared.errors import StoreUnavailableError, UsageError
from shared.model.settings import Binding, Config
from shared.model.work import WorkKind
from tests.support.command_homes import Ask, CommandHome, ending

CONFIG = Config(bindings=(Binding("backup", ("true",)), Binding("feed", ("cat",), kind=WorkKind.STANDING)))
READS = [
    *("status", "capacity", "doctor", "events", "budget list", "gate list", "binding list"),
    *("work list", "work show", "work logs", "attempt show", "store check"),
]
WORDS = [
    *("submit", "apply", "event publish", "binding release", "binding quarantine", "gate admit", "gate refuse"),
    *(f"work {verb}" for verb in ("cancel", "retry", "hold", "release", "inject", "interrupt")),
    *(f"attempt {verb}" for verb in ("cancel", "reconcile", "confirm-stopped")),
    *(f"store {verb}" for verb in ("backup", "adopt", "migrate")),
]


ELSEWHERE = {
    "init": "makes a home, and says so",
    "up": "runs until it is ended; its log is JSON with --log-json",
    "coordinator": "as `up`",
    "worker": "as `up`",
    "run": "its output is the job's",
    "tool": "inside a job; `input` prints JSON lines by itself",
    "drill": "writes JSON to the file that --result names, and reads it for `report`",
}
"""Commands without it, and why."""


def test_no_command_is_forgotten() -> None:
    known = {name for group in COMMANDS.values() for name in group} - {*ELSEWHERE}
    verbs = set()
    for name in known:
        try:
            load(name)(["--help"], home=None)
            load(name)([], home="/no/such/home")
        except (SystemExit, StoreUnavailableError, UsageError) as error:
            found = re.fullmatch(rf"tenure {name}: (.*)\?", str(error))
            verbs |= {f"{name} {verb}" for verb in re.split(", | or ", found[1])} if found else {name}

    assert {"event publish" if verb == "event" else verb for verb in verbs} == {*READS, *WORDS}


@pytest.mark.req("V01", "V03")
@pytest.mark.parametrize("name", [*READS, *WORDS])
def test_it_takes_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = name.split()
    with suppress(SystemExit):
        load(first)([*rest, "--help"], home=None)

    assert "--json" in capsys.readouterr().out


# --- submit


@pytest.mark.req("O01", "V03")
def test_submit_tells_the_work_its_input_and_whether_its_key_was_known(home: CommandHome, ask: Ask) -> None:
    home.activate(CONFIG)
    line = ["submit", "backup", "--input", "x", "--key", "k", "--json"]

    first, again, other = ask(*line).json, ask(*line).json, ask("submit", "backup", "--json").json

    assert first == {"id": "w1", "input": 1, "key": "k", "known": False}
    assert again == first | {"known": True}
    assert other == {"id": "w2", "input": 2, "key": None, "known": False}
    key = home.launch(home.staff())
    home.end(key, ending(0))
    assert ask(*line).json == again, "also once that has been done"
    assert ask("submit", "backup", "--input", "x", "--key", "k").out == "w1\n", "control: without --json, the id alone"


@pytest.mark.req("O01", "V03")
def test_submit_tells_of_a_further_input(home: CommandHome, ask: Ask) -> None:
    home.activate(CONFIG)
    assert ask("submit", "feed", "--key", "f", "--json").json == {"id": "w1", "input": None, "key": "f", "known": False}

    line = ["submit", "w1", "--input", "x", "--key", "k", "--json"]
    first, again = ask(*line).json, ask(*line).json

    assert first == {"id": "w1", "input": 1, "key": "k", "known": False}
    assert again == first | {"known": True}
    assert ask("submit", "feed", "--key", "f", "--json").json["input"] is None, (
        "what came later is not what it came with"
    )
    said = ask("submit", "w1", "--input", "y", "--key", "k", "--json")
    assert (said.code, said.out, json.loads(said.err)["error"]["code"]) == (1, "", "key_reused")


# --- binding


@pytest.mark.req("F03", "V03")
def test_binding_quarantine_and_release_tell_how_it_stands(home: CommandHome, ask: Ask) -> None:
    home.activate(CONFIG)

    quarantined = ask("binding", "quarantine", "backup", "--reason", "broken", "--json").json
    [listed] = [one for one in ask("binding", "list", "--json").json["items"] if one["binding"] == "backup"]
    released = ask("binding", "release", "backup", "--reason", "mended", "--json").json

    assert (quarantined["binding"], quarantined["quarantined"], quarantined["reason"]) == ("backup", True, "broken")
    assert quarantined["why"] == "broken"
    assert quarantined["by"].endswith("via binding quarantine")
    assert listed.items() <= quarantined.items()
    assert (released["quarantined"], released["failures"], released["why"]) == (False, 0, "mended")
    assert released.keys() == quarantined.keys()


# --- logs


@pytest.mark.req("V02")
def test_logs_list_the_files_of_every_launch(home: CommandHome, ask: Ask) -> None:
    worker = home.staff()
    work = home.submit()
    assert ask("work", "logs", work, "--json").json == {"items": [], "next": None}
    first = home.launch(worker, work)
    home.say(first, b"one\xff\n")
    home.say(first, b"oops", file="err")
    home.park(first)
    second = home.launch_again(first, worker)
    home.say(second, b"two")

    items = ask("work", "logs", work, "--json").json["items"]

    assert [(one["attempt"], one["epoch"], one["stream"], one["bytes"], one["dropped"]) for one in items] == [
        ("w1.1", 1, "out", 5, 0),
        ("w1.1", 1, "err", 4, 0),
        ("w1.1", 2, "out", 3, 0),
    ]
    assert [Path(one["path"]).read_bytes() for one in items] == [b"one\xff\n", b"oops", b"two"]
    assert [one["stream"] for one in ask("work", "logs", work, "--stderr", "--json").json["items"]] == ["err"]
    assert {one["stream"] for one in ask("work", "logs", work, "--stdout", "--json").json["items"]} == {"out"}
    assert ask("work", "logs", work, "--attempt", "1", "--json").json["items"] == items
    said = ask("work", "logs", work, "--attempt", "2", "--json")
    assert (said.code, json.loads(said.err)["error"]["code"]) == (1, "not_found")


@pytest.mark.req("V02")
def test_logs_tell_how_much_of_the_head_was_dropped(home: CommandHome, ask: Ask) -> None:
    key = home.launch(home.staff())
    size = 1024 * 1024
    with (home.directory(key) / "out").open("wb") as out:
        out.truncate(size)
        out.seek(size)
        out.write(b"the rest\n")

    [item] = ask("work", "logs", "w1", "--json").json["items"]

    assert (item["bytes"], item["dropped"]) == (size + len("the rest\n"), size)


@pytest.mark.parametrize("option", ["--follow", "--raw"])
def test_logs_as_json_copy_nothing(home: CommandHome, ask: Ask, option: str) -> None:
    home.submit()

    said = ask("work", "logs", "w1", "--json", option)

    assert (said.code, said.out) == (2, "")
    assert "--json lists what is there" in json.loads(said.err)["error"]["message"]


# --- apply


def test_apply_tells_what_differs(home: CommandHome, ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('[binding.one]\ncommand = ["true"]\n')
    first = ask("apply", str(file), "--json").json
    file.write_text('[settings]\nconcurrency = 7\n[binding.two]\ncommand = ["true"]\n')

    checked = ask("apply", str(file), "--check", "--json").json
    applied = ask("apply", str(file), "--json").json
    again = ask("apply", str(file), "--json").json

    differs = {"new": ["binding two"], "changed": ["settings.concurrency"], "gone": ["binding one"]}
    facts = {"source": str(file), "valid": True, "generation": first["generation"]}
    assert checked == facts | {"activated": False, "same": False} | differs
    assert applied == facts | {"generation": first["generation"] + 1, "activated": True, "same": False} | differs
    nothing: dict[str, object] = {"new": [], "changed": [], "gone": []}
    assert again == applied | {"activated": False, "same": True} | nothing
    file.write_text("[binding.two]\ncomand = 1\n")
    said = ask("apply", str(file), "--check", "--json")
    assert (said.code, said.out, json.loads(said.err)["error"]["code"]) == (2, "", "config")
