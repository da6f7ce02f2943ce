"""Finds the effects in a source text: whatever leaves the world in another state when the process dies right before or after it.

Names are followed through the file's imports, so `from os import kill as end` is `os.kill`. What is called on a value whose type
a text does not tell (`path.rename(…)`, `connection.execute("COMMIT")`) is known by the name of the method and the shape of the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

DURABLE = frozenset(
    {
        *("os.rename", "os.renames", "os.replace", "os.link", "os.symlink", "os.unlink", "os.remove", "shutil.move"),
        *("os.fsync", "os.fdatasync", "os.sync", "fcntl.flock", "fcntl.lockf"),
        *(".rename()", ".replace()", ".unlink()", ".hardlink_to()", ".symlink_to()"),
        *("COMMIT", ".commit()", ".executescript()", ".raw"),
    }
)
"""What others may find after a death: names in folders, what was synced, locks, transactions."""

STORES = frozenset({"fcntl.flock", "fcntl.lockf", "COMMIT", ".commit()", ".executescript()"})
"""Of these, what is done to a store and to locks. A harness's own files are its own affair; these are not."""

FOLDERS = frozenset(
    {
        *("os.mkdir", "os.makedirs", "os.rmdir", "os.removedirs", "shutil.rmtree", "shutil.copy", "shutil.copytree"),
        *("os.truncate", "os.ftruncate", "os.posix_fallocate"),
        *(".mkdir()", ".rmdir()", ".touch()", ".write_text()", ".write_bytes()"),
    }
)
"""Folders and contents."""

PROCESSES = frozenset(
    {
        *("os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp", "os.system", "os.popen"),
        *("os.execv", "os.execve", "os.execvp", "os.execvpe", "os.execl", "os.execle", "os.execlp", "os.execlpe"),
        *("os.kill", "os.killpg", "signal.pidfd_send_signal", "signal.pthread_kill", "signal.raise_signal"),
        *("subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output"),
        *("multiprocessing.Process", ".kill()", ".terminate()", ".send_signal()"),
    }
)
"""Processes that come to be, become something else, or are signalled."""

EFFECTS = DURABLE | FOLDERS | PROCESSES

_WITHOUT_ARGUMENTS = frozenset({"commit", "kill", "terminate"})  # with arguments they are ours, and ask for a boundary
_WITH_ONE = frozenset({"replace", "rename"})  # a text's `replace` takes two
_ANY = frozenset({name[1:-2] for name in EFFECTS if name.startswith(".") and name.endswith("()")})
_RUNS_SQL = frozenset({"execute", "rows", "one", "value"})
_ENDS = ("COMMIT", "END", "RELEASE")


@dataclass(frozen=True, slots=True, order=True)
class Effect:
    """One use. `function`: where it stands, `Class.method`; `<module>` outside of any."""

    function: str
    name: str


def effects_in(source: str) -> list[Effect]:
    """Every use of an effect in that text, in order of appearance."""
    tree = ast.parse(source)
    names = _imported(tree)
    return [Effect(where, name) for where, node in _nodes(tree, ()) for name in _effects_of(node, names)]


def _imported(tree: ast.Module) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                names[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return names


def _nodes(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inside = path
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = (*path, child.name)
        yield ".".join(path) or "<module>", child
        yield from _nodes(child, inside)


def _effects_of(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        dotted = _dotted(node, names)
        if dotted in EFFECTS:
            yield dotted
        elif isinstance(node, ast.Attribute) and node.attr == "raw":
            yield ".raw"
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Attribute) and _dotted(node.func, names) is None and _is_effect(node, node.func.attr):
        yield f".{node.func.attr}()"
    if isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_SQL and _ends_transaction(node.args):
        yield "COMMIT"


def _dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """The full name of something reached through an import; None for anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, names)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _is_effect(call: ast.Call, method: str) -> bool:
    if method in _WITHOUT_ARGUMENTS:
        return not call.args and not call.keywords
    if method in _WITH_ONE:
        return len(call.args) == 1 and not call.keywords
    return method in _ANY


def _ends_transaction(arguments: list[ast.expr]) -> bool:
    first = arguments[0] if arguments else None
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
        return False
    return first.value.strip().upper().partition(" ")[0].rstrip(";") in _ENDS
