"""No effect without a boundary, no boundary without an effect: what the linter's list of names cannot see.

The linter leaves whole folders to the owners of a dangerous thing, and sees no method of a value. Here every use is looked at, by
file and function; what stands outside the wrappers of `shared/boundary.py` stands in `EXCEPTIONS` with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from shared.boundary import Boundary
from tests.support.checkout import ROOMS, ROOT
from tests.support.effects import EFFECTS, STORES, Effect, effects_in

OWNERS = {
    "shared/boundary.py": EFFECTS,
    "shared/store/sqlite/connection.py": frozenset({".raw"}),
}
"""Where an effect itself lives."""

BEGINS_HOME = "the first of a home: an interrupted beginning is completed by the next one"
UNMARKED = "takes back a home that was begun in this call; what is left is completed by the next `init`"
PROBE = "tries what this host can do; ends before anything depends on it"
LEAF = "an empty cgroup leaf means nothing; a sweep removes it"
BELT = "a socket that nobody listens at means nothing; the next holder binds it anew"
OWN_CHILD = "ends an unreaped child of its own that holds nothing"
HARM = "the harm itself: a stranger to tenure holds the lock"
UP = "a child of `tenure up`, which starts it again or ends with it; its own boundaries are inside it"

EXCEPTIONS = {
    ("chaos/crowd/copies.py", "Copies.attempts", "COMMIT"): "fills the store of a measure, which nobody else has open",
    ("chaos/random_drill/holder.py", "hold", "fcntl.flock"): HARM,
    ("worker/belt.py", "BeltServer._listen", "os.unlink"): BELT,
    ("worker/belt.py", "BeltServer._drop_listener", "os.unlink"): BELT,
    ("shared/child.py", "_be_visible", ".write_text()"): "names this process in the kernel's list",
    ("shared/commands/configure.py", "_write_new", ".write_text()"): "a draft that nobody reads",
    (
        "shared/commands/configure.py",
        "_write_new",
        ".hardlink_to()",
    ): "a person's file: it is there whole, or not at all",
    ("shared/commands/configure.py", "_write_new", ".unlink()"): "a draft that nobody reads",
    ("shared/commands/store.py", "_dated_target", ".mkdir()"): "an empty folder for backups",
    ("shared/home.py", "create_home", ".mkdir()"): BEGINS_HOME,
    ("shared/home.py", "remove_empty_home", ".rmdir()"): UNMARKED,
    ("shared/home.py", "remove_empty_home", ".unlink()"): UNMARKED,
    ("shared/presence.py", "hold_up", "os.ftruncate"): "the pid in it is for people; the lock is what counts",
    ("shared/presence.py", "hold_child", ".mkdir()"): "an empty folder of locks",
    ("shared/presence.py", "forget_child", ".unlink()"): "a free lock file means nothing; a reader removes it",
    ("shared/presence.py", "_remove_if_free", ".unlink()"): "a free lock file means nothing; a reader removes it",
    ("shared/process/cgroup.py", "Entry.fork", "os.fork"): "handed to `boundary.fork` as the way to do it",
    ("shared/process/cgroup.py", "_make", "os.mkdir"): LEAF,
    ("shared/process/cgroup.py", "enter", "os.mkdir"): LEAF,
    ("shared/process/cgroup.py", "remove", "os.rmdir"): LEAF,
    ("shared/process/cgroup.py", "_remove_below", "os.rmdir"): LEAF,
    ("shared/process/launcher.py", "ZygoteLauncher._exec_shim", ".kill()"): OWN_CHILD,
    ("shared/process/launcher.py", "_Zygote.close", ".kill()"): OWN_CHILD,
    ("shared/process/launcher.py", "_python", "subprocess.Popen"): "between the sides of ZYGOTE_EXEC or SHIM_SPAWN",
    ("shared/process/leaves.py", "_can_move", "os.mkdir"): PROBE,
    ("shared/process/leaves.py", "_can_move", "subprocess.Popen"): PROBE,
    ("shared/process/record.py", "reserve", "os.posix_fallocate"): "space of a record that has no name yet",
    ("shared/process/sandbox.py", "why_not", "subprocess.run"): PROBE,
    ("shared/process/service.py", "_properties", "subprocess.run"): "asks systemd, changes nothing",
    ("shared/process/shim.py", "_become_job", "os.execvpe"): "between the sides of CHILD_EXEC, which the shim sees",
    ("shared/store/sqlite/ballast.py", "Ballast._make", "os.posix_fallocate"): "space of a file that has no name yet",
    ("shared/store/sqlite/ballast.py", "Ballast._make", ".unlink()"): "space of a file that has no name yet",
    ("shared/store/sqlite/inspect.py", "backup", ".unlink()"): "a copy that came to nothing",
    ("shared/store/sqlite/inspect.py", "_open", ".raw"): "reads only",
    ("shared/store/sqlite/readable.py", "unreadable", ".raw"): "reads only",
    ("shared/store/sqlite/migrate.py", "_migrate", ".raw"): "inside a transaction that MIGRATE_COMMIT ends",
    (
        "shared/store/sqlite/store.py",
        "create",
        ".unlink()",
    ): "parts of a store that has no name yet, or has another one",
    ("shared/supervise.py", "Supervisor._start", "multiprocessing.Process"): UP,
    ("shared/supervise.py", "Supervisor.end_now", ".kill()"): UP,
    ("shared/supervise.py", "Supervisor._next_phase", ".kill()"): UP,
    ("shared/supervise.py", "Supervisor._next_phase", ".terminate()"): UP,
    ("shared/wake.py", "Bell.__init__", "os.unlink"): "a bell: losing one costs a bounded wait",
    ("shared/wake.py", "Bell.also_as", "os.unlink"): "a bell: losing one costs a bounded wait",
    ("shared/wake.py", "Bell.also_as", "os.symlink"): "a bell: losing one costs a bounded wait",
    ("shared/wake.py", "Bell.close", "os.unlink"): "a bell: losing one costs a bounded wait",
    ("worker/worker.py", "Worker.step", ".commit()"): "the batch's own method, which calls `Store.write`",
}


def counts(room: str, file: str, effect: Effect) -> bool:
    """Whether the use is held to the rule: not the owner's own; of a harness, only what it does to stores and locks."""
    if effect.name in OWNERS.get(file, ()):
        return False
    if effect.name == ".raw":
        return file.startswith("shared/store/")
    return room != "chaos" or effect.name in STORES


def found_in(room: str, file: str, source: str) -> set[tuple[str, str, str]]:
    return {(file, each.function, each.name) for each in effects_in(source) if counts(room, file, each)}


def sources(rooms: Iterable[str] = ROOMS) -> list[tuple[str, str, Path]]:
    return [(room, str(path.relative_to(ROOT)), path) for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.req("M03")
def test_every_effect_goes_through_a_wrapper_that_asks_for_its_boundary() -> None:
    found = set().union(*(found_in(room, file, path.read_text()) for room, file, path in sources()))

    assert found - set(EXCEPTIONS) == set(), "cross a boundary there, or say why none is needed"
    assert set(EXCEPTIONS) - found == set(), "an exception for nothing"


@pytest.mark.req("M03")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from os import kill\nkill(1, 9)", "os.kill"),
        ("import os as o\no.rename('a', 'b')", "os.rename"),
        ("import os\nend = os.kill", "os.kill"),
        ("from fcntl import flock as take\ntake(1, 2)", "fcntl.flock"),
        ("import subprocess\nsubprocess.Popen(['a'])", "subprocess.Popen"),
        ("from subprocess import run\nrun(['a'])", "subprocess.run"),
        ("path.rename(target)", ".rename()"),
        ("path.replace(target)", ".replace()"),
        ("path.unlink(missing_ok=True)", ".unlink()"),
        ("target.hardlink_to(draft)", ".hardlink_to()"),
        ("connection.execute('COMMIT')", "COMMIT"),
        ("connection.raw.execute(' commit;')", "COMMIT"),
        ("db.rows('END')", "COMMIT"),
        ("connection.commit()", ".commit()"),
        ("database.conn.commit()", ".commit()"),
        ("connection.executescript(text)", ".executescript()"),
        ("process.kill()", ".kill()"),
    ],
)
def test_effect_is_seen_however_it_is_written(text: str, name: str) -> None:
    assert Effect("<module>", name) in effects_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "text.replace('a', 'b')",
        "import dataclasses\ndataclasses.replace(it, a=1)",
        "from shared import boundary\nboundary.kill(1, 9, at)",
        "from shared.boundary import rename\nrename('a', 'b', at)",
        "connection.commit([at])",
        "connection.execute('SELECT 1')",
        "harness.kill(running)",
        "import os\nos.getpid()",
    ],
)
def test_what_is_no_effect_passes(text: str) -> None:
    assert effects_in(text) == []


def test_an_effect_is_named_by_the_function_it_stands_in() -> None:
    text = "import os\nclass A:\n    def b(self):\n        def c():\n            os.fork()\n"

    assert effects_in(text) == [Effect("A.b.c", "os.fork")]


# --- every name is crossed


def crossed_in(source: str) -> set[str]:
    """Boundaries that a text hands to something that crosses them: an argument of a call, or a constant named `…_AT`."""
    tree = ast.parse(source)
    given: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id.endswith("_AT") for t in node.targets
        ):
            given.append(node.value)
    listed = [each for one in given for each in (one.elts if isinstance(one, ast.List | ast.Tuple) else [one])]
    return {
        each.attr
        for each in listed
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "Boundary"
    }


@pytest.mark.req("M03")
def test_every_boundary_is_crossed_by_some_code() -> None:
    product = set().union(
        *(crossed_in(path.read_text()) for _, _, path in sources(("shared", "coordinator", "worker")))
    )

    assert {each.name for each in Boundary} - product == set(), "a name that no effect has"


def test_a_boundary_that_is_only_listed_is_not_crossed() -> None:
    assert crossed_in("FIRST = frozenset({Boundary.CLAIM_COMMIT})") == set()
    assert crossed_in(
        "EXIT_AT = (Boundary.EXIT_SYNC,)\nfork(Boundary.CHILD_FORK)\ncommit(c, [Boundary.PIN_COMMIT])"
    ) == {
        "EXIT_SYNC",
        "CHILD_FORK",
        "PIN_COMMIT",
    }
