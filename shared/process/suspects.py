"""Which running processes may belong to an attempt: for a person to read, never to signal by.

psutil enumerates and describes; identity, session and ancestry come from our own reader. Rule: research "process truth" §4.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from shared.ids import AttemptId
from shared.model.evidence import ProcessIdentity
from shared.model.stop import Suspect
from shared.process import procfs

COMMAND_LIMIT = 500


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    ppid: int
    group: int
    session: int
    start_ticks: int
    state: str


def find_suspects(
    home: Path, attempt_id: AttemptId, shim: ProcessIdentity | None, child: ProcessIdentity | None
) -> tuple[tuple[Suspect, ...], int]:
    """Processes that any evidence ties to the attempt, by pid, and of how many the environment could not be read.

    An environment that names another home with TENURE_HOME belongs to that home's attempt of the same name.
    """
    table = _snapshot()
    suspects, unreadable = [], 0
    for process in table.values():
        matched = _match(process, table, shim, child)
        carries = _carries(process.pid, attempt_id, home)
        if carries:
            matched.append("environment")
        unreadable += carries is None
        if matched:
            suspects.append(_describe(process, tuple(matched)))
    return tuple(sorted(suspects, key=lambda suspect: suspect.pid)), unreadable


def _snapshot() -> dict[int, _Process]:
    """Every live process but this one and the kernel's threads."""
    table = {}
    for pid in psutil.pids():
        try:
            fields = procfs.stat_fields(pid)
        except OSError:
            continue
        ppid, group, session = (int(fields[index]) for index in (procfs.PPID, procfs.PGRP, procfs.SESSION))
        is_kernel_thread = pid == 2 or ppid == 2
        if is_kernel_thread or pid == os.getpid() or procfs.is_ended(pid, fields):
            continue
        state = fields[procfs.STATE].decode()
        table[pid] = _Process(pid, ppid, group, session, int(fields[procfs.START_TICKS]), state)
    return table


def _match(
    process: _Process, table: dict[int, _Process], shim: ProcessIdentity | None, child: ProcessIdentity | None
) -> list[str]:
    matched = []
    for name, identity in (("shim", shim), ("child", child)):
        if identity is None:
            continue
        if _is(process, identity):
            matched.append(name)
        elif _is_below(process, table, identity):
            matched.append(f"below {name}")
    if child is not None and process.start_ticks >= child.start_ticks and not _is(process, child):
        if process.session == child.pid:
            matched.append("session")
        if process.group == child.pid:
            matched.append("group")
    return matched


def _is(process: _Process, identity: ProcessIdentity) -> bool:
    return (process.pid, process.start_ticks) == (identity.pid, identity.start_ticks)


def _is_below(process: _Process, table: dict[int, _Process], identity: ProcessIdentity) -> bool:
    seen = {process.pid}
    parent = table.get(process.ppid)
    while parent is not None and parent.pid not in seen:
        if _is(parent, identity):
            return True
        seen.add(parent.pid)
        parent = table.get(parent.ppid)
    return False


def _carries(pid: int, attempt_id: AttemptId, home: Path) -> bool | None:
    """Whether the process's environment names the attempt; None when it cannot be read, which is not an absence."""
    try:
        environment = psutil.Process(pid).environ()
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):
        return None
    if environment.get("TENURE_ATTEMPT") != attempt_id:
        return False
    named = environment.get("TENURE_HOME")
    return named is None or os.path.realpath(named) == os.path.realpath(home)


def _describe(process: _Process, matched: tuple[str, ...]) -> Suspect:
    uid, command = -1, ""
    try:
        found = psutil.Process(process.pid)
        uid = found.uids().real
        command = " ".join(found.cmdline()) or f"[{found.name()}]"
    except (psutil.Error, OSError):
        pass  # it went in the meantime: what was seen of it is still worth showing
    return Suspect(process.pid, process.ppid, uid, process.start_ticks, process.state, command[:COMMAND_LIMIT], matched)
