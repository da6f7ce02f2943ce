"""Running processes that may belong to an attempt, described for a person. psutil describes; who they are is settled before."""

from __future__ import annotations

from collections.abc import Mapping

import psutil

from shared.model.stop import Suspect
from shared.process.marks import waits_in
from shared.process.snapshot import Process, Snapshot

COMMAND_LIMIT = 500


def describe(table: Snapshot, matched: Mapping[int, tuple[str, ...]]) -> tuple[Suspect, ...]:
    """Suspects by pid, each with what points at it."""
    return tuple(_describe(table.table[pid], marks) for pid, marks in sorted(matched.items()))


def _describe(process: Process, marks: tuple[str, ...]) -> Suspect:
    uid, command = -1, ""
    try:
        found = psutil.Process(process.pid)
        uid = found.uids().real
        command = " ".join(found.cmdline()) or f"[{found.name()}]"
    except (psutil.Error, OSError):
        pass  # it went in the meantime: what was seen of it is still worth showing
    return Suspect(
        pid=process.pid,
        ppid=process.ppid,
        uid=uid,
        started_ticks=process.start_ticks,
        state=process.state,
        command_line=command[:COMMAND_LIMIT],
        matched=marks,
        waits_in=waits_in(process.pid) if process.state == "D" else None,
    )
