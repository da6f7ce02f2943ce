"""Checks that need no store: the home, its disk, the libraries, the kernel, the zone data."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path

from shared.commands.findings import NOTHING, Finding, Patient, Severity
from shared.home import exposed_mode
from shared.process import cgroup
from shared.process.identity import identify
from shared.process.procfs import blindness
from shared.store.sqlite.ballast import BALLAST_BYTES, Ballast
from shared.store.sqlite.driver import has_wal_reset_race, library_version
from shared.store.sqlite.place import NETWORK_FILESYSTEMS, place_of

FREE_BYTES_LEAST = 100 * 1024 * 1024
FULL_BYTES = BALLAST_BYTES
FREE_FILES_LEAST = 1_000
VOLATILE_FILESYSTEMS = {0x01021994: "tmpfs", 0x858458F6: "ramfs"}
EXIT_STATUS_KERNEL = (6, 15)
CGROUP_KILL_KERNEL = (5, 14)
ZONE_TRIED = "Europe/Paris"


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
    return found + _space(path)


def _space(path: Path) -> list[Finding]:
    found = []
    space = os.statvfs(path)
    free = space.f_bavail * space.f_frsize
    if free < FULL_BYTES:
        message = f"the disk of {path} is full: nothing can be handed in and nothing starts; what runs goes on"
        found.append(Finding("disk.full", Severity.ERROR, message, "free some space there"))
    elif free < FREE_BYTES_LEAST:
        message = f"{free // (1024 * 1024)} MiB are left on the disk of {path}"
        found.append(Finding("disk.low", Severity.WARNING, message, "free some space there"))
    if space.f_files and space.f_favail < FREE_FILES_LEAST:  # a file system without a fixed number of files says 0
        message = f"room for {space.f_favail} more files is left on the disk of {path}; each attempt makes a few"
        found.append(Finding("disk.few_files", Severity.WARNING, message, "remove some files there"))
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
    """The kernel gives all the evidence that tenure can use; what it does not give makes more stops unprovable, never wrong."""
    found = []
    if identify(os.getpid()).pidfs_ino is None:
        message = "no pidfs (Linux 6.9): a process is identified by pid, start and boot only, which is enough"
        found.append(Finding("kernel.no_pidfs", Severity.INFO, message, NOTHING))
    if kernel_version(os.uname().release) < EXIT_STATUS_KERNEL:
        message = "no exit status of other processes' children (Linux 6.15): a job whose shim is killed ends as recovery_required"
        found.append(Finding("kernel.no_exit_status", Severity.INFO, message, "a newer kernel, where that matters"))
    blind = blindness()
    if blind is not None:
        message = f"{blind}: what a job leaves behind cannot be searched for, so a stop may stay unproven"
        step = "run tenure where /proc shows every process of its pid namespace: mounted there, without hidepid"
        found.append(Finding("kernel.proc_hidden", Severity.WARNING, message, step))
    return found + _groups()


def _groups() -> list[Finding]:
    """A cgroup for each job: it kills a tree at once, and says when that is gone."""
    group = cgroup.own_directory()
    if group is None:
        message = (
            "no cgroup v2 to be seen: the stop of a job whose shim was killed is proven by a search of all processes"
        )
        return [Finding("kernel.no_cgroup", Severity.INFO, message, NOTHING)]
    if not os.access(group, os.W_OK):
        message = f"{group} cannot be written: a worker started from here gives its jobs no cgroup, so less of a stop can be proven"
        step = "run the worker as a unit with Delegate=yes, as in scripts/units"
        return [Finding("kernel.cgroup_read_only", Severity.INFO, message, step)]
    if kernel_version(os.uname().release) < CGROUP_KILL_KERNEL:
        message = "no cgroup.kill (Linux 5.14): a job's tree is frozen and killed one by one"
        return [Finding("kernel.no_cgroup_kill", Severity.INFO, message, NOTHING)]
    return []


def kernel_version(release: str) -> tuple[int, int]:
    """Major and minor number of `uname -r`."""
    major, minor, *_ = release.split("-", maxsplit=1)[0].split(".")
    return int(major), int(minor)


def check_zones(_: Patient) -> list[Finding]:
    """The zone data that schedules are computed with come from the package, and can be read."""
    try:
        version = metadata.version("tzdata")
        readable = (resources.files("tzdata.zoneinfo") / ZONE_TRIED).is_file()
    except (metadata.PackageNotFoundError, ModuleNotFoundError):
        version, readable = None, False
    if readable:
        return []
    message = "no zone data: the package tzdata is missing" if version is None else f"tzdata {version} lacks its data"
    return [Finding("zones.missing", Severity.ERROR, message, "pip install --force-reinstall tzdata")]


PLACE_CHECKS: dict[str, Callable[[Patient], list[Finding]]] = {
    "home": check_home_mode,
    "disk": check_disk,
    "sqlite": check_sqlite,
    "kernel": check_kernel,
    "zones": check_zones,
}
