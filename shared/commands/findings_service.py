"""Checks of how the service manager treats the workers of a home: a setting that kills their jobs, or takes evidence away.

Read from the workers that are up, not from files: what counts is the unit that runs. Rule: issue item "systemd settings that
would kill jobs"; research "process truth" §6.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from shared.commands.attendance import attendance
from shared.commands.findings import Finding, Severity
from shared.commands.open_home import OpenHome
from shared.model.host import Worker
from shared.process import service
from shared.process.identity import is_alive
from shared.process.service import Unit

SPARING = frozenset({"process", "none"})
"""What KillMode may be without a stop of the unit being the end of its jobs."""


def check_service(door: OpenHome) -> list[Finding]:
    """The units of the workers leave their jobs alone.

    Raises:
        OSError: a worker runs in a unit whose settings cannot be asked for.
    """
    workers: dict[Unit, Worker] = {}
    for worker in attendance(door.store, door.place.run).workers:
        unit = service.unit_of(worker.identity.pid) if is_alive(worker.identity) else None
        if unit is not None:
            workers.setdefault(unit, worker)
    found = []
    for unit, worker in workers.items():
        found += _session(unit, worker) if unit.is_session else _unit(unit, worker)
    return found


def _session(unit: Unit, worker: Worker) -> list[Finding]:
    if not service.kills_at_logout():
        return []
    message = (
        f"{worker.id} runs in the login {unit.name}, and this host kills what a login leaves: a logout ends its jobs"
    )
    return [Finding("service.ends_at_logout", Severity.WARNING, message, "run it as a unit, as in scripts/units")]


def _unit(unit: Unit, worker: Worker) -> list[Finding]:
    found = [finding for check in UNIT_CHECKS for finding in check(unit, worker, service.settings_of(unit))]
    if unit.user is not None and not service.lingers(unit.user):
        message = f"{worker.id} runs in a unit of user {unit.user}, who does not linger: the last logout kills its jobs"
        found.append(Finding("service.no_linger", Severity.ERROR, message, f"loginctl enable-linger {unit.user}"))
    return found


def _kill_mode(unit: Unit, worker: Worker, settings: Mapping[str, str]) -> list[Finding]:
    mode = settings.get("KillMode")
    if mode in SPARING:
        return []
    message = f"{unit.name} of {worker.id} has KillMode={mode}: to stop or restart it kills its jobs"
    return [Finding("service.kill_mode", Severity.ERROR, message, _drop_in(unit, "KillMode=process"))]


def _delegate(unit: Unit, worker: Worker, settings: Mapping[str, str]) -> list[Finding]:
    if settings.get("Delegate") == "yes":
        return []
    message = (
        f"{unit.name} of {worker.id} has Delegate=no: jobs get no cgroup of their own, so less of a stop can be proven"
    )
    return [Finding("service.delegate", Severity.WARNING, message, _drop_in(unit, "Delegate=yes"))]


def _oom_policy(unit: Unit, worker: Worker, settings: Mapping[str, str]) -> list[Finding]:
    policy = settings.get("OOMPolicy")
    if policy == "continue":
        return []
    message = (
        f"{unit.name} of {worker.id} has OOMPolicy={policy}: a job that takes too much memory ends the worker with it"
    )
    return [Finding("service.oom_policy", Severity.WARNING, message, _drop_in(unit, "OOMPolicy=continue"))]


UNIT_CHECKS: tuple[Callable[[Unit, Worker, Mapping[str, str]], list[Finding]], ...] = (
    _kill_mode,
    _delegate,
    _oom_policy,
)


def _drop_in(unit: Unit, setting: str) -> str:
    """How to change one setting of a unit without a restart of what it runs."""
    manager = "systemctl --user" if unit.user is not None and unit.user == os.getuid() else "systemctl"
    return f"{manager} edit {unit.name}, add [Service] {setting}, then {manager} daemon-reload"
