"""What `doctor` looks at: each check is a function that returns findings, none when all is well.

A finding has a stable code, a severity, and one safe next step; no step deletes rows or starts ambiguous work again. A check that
could not look raises, which is a finding of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from shared.commands.attendance import attendance, read_rows
from shared.commands.json_views import finding_of
from shared.commands.open_home import OpenHome, command_for
from shared.commands.render import counted, duration, escaped
from shared.commands.status import OPEN_STATES
from shared.commands.work_text import counted_tries
from shared.home import Home, exposed_mode
from shared.ids import work_of
from shared.model.evidence import LockState
from shared.model.instant import US_PER_S
from shared.model.settings import DEFAULT, Config
from shared.model.work import Reason
from shared.process.filelock import probe
from shared.process.identity import identify
from shared.store.sqlite.ballast import Ballast
from shared.store.sqlite.driver import has_wal_reset_race, library_version
from shared.store.sqlite.inspect import check as inspect_store
from shared.store.sqlite.place import NETWORK_FILESYSTEMS, place_of
from shared.wake import COORDINATOR

NAMED_MAX = 20
FREE_BYTES_LEAST = 100 * 1024 * 1024
PASS_CADENCE_US = 60 * US_PER_S
"""A leader makes a pass at least this often."""
STALE_CADENCES = 2
VOLATILE_FILESYSTEMS = {0x01021994: "tmpfs", 0x858458F6: "ramfs"}
EXIT_STATUS_KERNEL = (6, 15)


class Severity(StrEnum):
    """How bad it is; `unknown`: it could not be looked at."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be. `next_step`: one safe thing to do."""

    code: str
    severity: Severity
    message: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Patient:
    """A home under examination. `named`: the value of `--home`."""

    place: Home
    named: str | None

    def command(self, words: str) -> str:
        """A command for the user to type, for this very home."""
        return command_for(self.named, words)


# --- without the store -----------------------------------------------------------------------------------------------


def check_home_mode(patient: Patient) -> list[Finding]:
    """The home is the owner's alone, and so is the store."""
    found = []
    mode = exposed_mode(patient.place.path)
    if mode is not None:
        message = f"others may enter the home: {patient.place.path} has mode {mode:o}"
        found.append(Finding("home.exposed", Severity.WARNING, message, f"chmod 700 {patient.place.path}"))
    mode = patient.place.store.stat().st_mode & 0o777
    if mode & 0o077:
        message = f"others may read the store: {patient.place.store} has mode {mode:o}"
        found.append(Finding("store.exposed", Severity.WARNING, message, f"chmod 600 {patient.place.store}"))
    return found


def check_disk(patient: Patient) -> list[Finding]:
    """The home is on a local, lasting file system with space left."""
    found = []
    path = patient.place.path
    kind = place_of(path).filesystem
    if kind in NETWORK_FILESYSTEMS:
        message = f"{path} lies on {NETWORK_FILESYSTEMS[kind]}: several hosts could write the store at once"
        found.append(
            Finding("disk.network", Severity.ERROR, message, "make a home on a local disk: tenure --home DIR init")
        )
    if kind in VOLATILE_FILESYSTEMS:
        message = f"{path} lies on {VOLATILE_FILESYSTEMS[kind]}: a reboot takes the store and all evidence with it"
        found.append(Finding("disk.volatile", Severity.WARNING, message, "for work that matters, use a home on a disk"))
    space = os.statvfs(path)
    free = space.f_bavail * space.f_frsize
    if free < FREE_BYTES_LEAST:
        message = f"{free // (1024 * 1024)} MiB are left on the disk of {path}"
        found.append(Finding("disk.low", Severity.WARNING, message, "free some space there"))
    if not Ballast(path).is_there():
        message = (
            "the disk was full: the home's ballast was given up so that ends can be written, and nothing new starts"
        )
        step = "free some space there; with a coordinator up, the ballast comes back and starts resume by themselves"
        found.append(Finding("disk.ballast_missing", Severity.ERROR, message, step))
    return found


def check_sqlite(_: Patient) -> list[Finding]:
    """The library has no known way to lose a commit."""
    version = library_version()
    if not has_wal_reset_race(version):
        return []
    name = ".".join(map(str, version))
    message = f"SQLite {name} may lose a commit when another program checkpoints the store (fixed in 3.51.3); tenure itself does not"
    step = "pip install 'pysqlite3>=0.6.1', and open the store with nothing but tenure until then"
    return [Finding("sqlite.wal_reset_race", Severity.WARNING, message, step)]


def check_kernel(_: Patient) -> list[Finding]:
    """The kernel gives all the evidence that tenure can use."""
    found = []
    if identify(os.getpid()).pidfs_ino is None:
        message = "no pidfs (Linux 6.9): a process is identified by pid, start and boot only, which is enough"
        found.append(Finding("kernel.no_pidfs", Severity.INFO, message, "nothing needs to be done"))
    if kernel_version(os.uname().release) < EXIT_STATUS_KERNEL:
        message = "no exit status of other processes' children (Linux 6.15): a job whose shim is killed ends as recovery_required"
        found.append(Finding("kernel.no_exit_status", Severity.INFO, message, "a newer kernel, where that matters"))
    return found


def kernel_version(release: str) -> tuple[int, int]:
    """Major and minor number of `uname -r`."""
    major, minor, *_ = release.split("-", maxsplit=1)[0].split(".")
    return int(major), int(minor)


# --- with the store --------------------------------------------------------------------------------------------------


def check_integrity(door: OpenHome) -> list[Finding]:
    """Every page, reference and rule of the store."""
    problems = inspect_store(door.place.path)
    if not problems:
        return []
    message = f"the store has {counted(len(problems), 'problem')}; the first: {escaped(problems[0])}"
    return [
        Finding(
            "store.damaged", Severity.ERROR, message, f"keep it as it is and see all: {door.command('store check')}"
        )
    ]


def check_leadership(door: OpenHome) -> list[Finding]:
    """Somebody leads."""
    there = attendance(door.store, door.place.run)
    found = []
    if there.leader is None:
        open_works = bool(door.store.read(lambda tx: tx.works(states=OPEN_STATES, after=0, limit=1)))
        severity = Severity.ERROR if open_works else Severity.WARNING
        message = "no coordinator leads: nothing starts" + (", and works are open" if open_works else "")
        found.append(Finding("leader.none", severity, message, door.command("up")))
    for name in _standbys(door, None if there.leader is None else there.leader.owner):
        message = f"{name} stands by; it takes over when the leader dies"
        found.append(Finding("leader.standby", Severity.INFO, message, "nothing needs to be done"))
    return found


def check_workers(door: OpenHome) -> list[Finding]:
    """Workers are there and give signs of life."""
    rows = door.store.read(read_rows)
    there = attendance(door.store, door.place.run)
    if not there.workers:
        open_works = bool(door.store.read(lambda tx: tx.works(states=OPEN_STATES, after=0, limit=1)))
        severity = Severity.ERROR if open_works else Severity.WARNING
        return [Finding("workers.none", severity, "no worker is up: nothing runs or is adopted", door.command("up"))]
    silence_us = _config(door).settings.lease_us // 3
    found = []
    for worker in there.workers:
        silent_us = rows.now.mono_us - worker.beat_mono_us
        if silent_us >= silence_us:
            pid = worker.identity.pid
            message = f"{worker.id} (pid {pid}) lives but was not heard of for {duration(silent_us)}: stopped, or stuck"
            step = f"kill -CONT {pid}; if that does not help, kill -9 {pid}: its jobs run on and are adopted"
            found.append(Finding("workers.silent", Severity.WARNING, message, step))
    return found


def check_passes(door: OpenHome) -> list[Finding]:
    """The leader makes its passes."""
    last, now = door.store.read(lambda tx: (tx.last_pass(), tx.now))
    if attendance(door.store, door.place.run).leader is None or last is None:
        return []
    found = []
    age_us = now.wall_us - last.started_at_us
    if age_us > STALE_CADENCES * PASS_CADENCE_US:
        message = f"the last pass of the coordinator was {duration(age_us)} ago, it should be one a minute"
        found.append(Finding("passes.stale", Severity.WARNING, message, "look at the coordinator's log"))
    if last.error is not None:
        message = f"the last pass of the coordinator failed: {escaped(last.error)}"
        found.append(Finding("passes.failing", Severity.ERROR, message, "look at the coordinator's log"))
    return found


def check_recovery(door: OpenHome) -> list[Finding]:
    """No attempt waits for a person."""
    waiting = door.store.read(lambda tx: tx.needs_person(limit=NAMED_MAX))
    return [
        Finding(
            "attempts.recovery_required",
            Severity.ERROR,
            f"what became of {attempt.id} is unknown, its slot stays held: {escaped(attempt.error or 'no more is known')}",
            f"see how far it got, then decide: {door.command(f'work show {attempt.work_id}')}",
        )
        for attempt in waiting
    ]


def check_stops(door: OpenHome) -> list[Finding]:
    """Every stop that was tried is proven."""
    found = []
    for order in door.store.read(lambda tx: tx.stop_orders(limit=NAMED_MAX)):
        if not order.tries:
            continue
        finding = finding_of(order) or {}
        suspects = finding.get("suspects")
        count = len(suspects) if isinstance(suspects, list) else 0
        message = f"the stop of {order.attempt_id} is unproven after {counted_tries(order.tries)}, {counted(count, 'suspect')}; its slot stays held"
        show = door.command(f"work show {work_of(order.attempt_id)}")
        step = f"end the suspects if they are its own: {show}; the proof then follows by itself"
        found.append(Finding("stops.unproven", Severity.WARNING, message, step))
    return found


def check_works(door: OpenHome) -> list[Finding]:
    """No ready Work waits for something that will not come by itself."""
    counts = door.store.read(lambda tx: tx.ready_counts(cap=1000))
    lost = sum(count for (_, reason), count in counts.items() if reason == Reason.UNSUPPORTED_GENERATION)
    if not lost:
        return []
    message = f"{counted(lost, 'work')} wait{'s' if lost == 1 else ''} for a binding that the active configuration does not have"
    step = f"apply a configuration that has it, or cancel them: {door.command('work list --state ready')}"
    return [Finding("works.no_binding", Severity.WARNING, message, step)]


PLACE_CHECKS: dict[str, Callable[[Patient], list[Finding]]] = {
    "home": check_home_mode,
    "disk": check_disk,
    "sqlite": check_sqlite,
    "kernel": check_kernel,
}
STORE_CHECKS: dict[str, Callable[[OpenHome], list[Finding]]] = {
    "store": check_integrity,
    "leader": check_leadership,
    "workers": check_workers,
    "passes": check_passes,
    "attempts": check_recovery,
    "stops": check_stops,
    "works": check_works,
}


def _config(door: OpenHome) -> Config:
    active = door.store.read(lambda tx: tx.config())
    return DEFAULT if active is None else Config.from_json(active.body)


def _standbys(door: OpenHome, leader: str | None) -> list[str]:
    names = []
    for path in sorted(door.place.run.glob(f"{COORDINATOR}.*.lock")):
        found = path.stat()
        if path.stem != leader and probe(path, found.st_dev, found.st_ino) is LockState.HELD:
            names.append(path.stem)
    return names
