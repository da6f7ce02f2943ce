"""A job's view of the host, narrowed by bubblewrap: a plan as a value, its digest for the record, its words for the command.

The plan is pure; what it means is pinned by its digest. The sandbox takes nothing from a stop or its proof: whatever runs in it
is still a descendant of the shim, in the leaf of its launch, with its marks. Rule: requirement R14.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass

from shared.errors import UnsupportedError

PLAN_FORMAT = 2  # of the digest; raised when the same plan comes to mean something else
PROBE_BOUND_S = 10.0


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """What a job sees.

    Attributes:
        read_only, writable: Absolute folders and files of the host, seen at their own places; of two that contain each other the
            inner one counts. Whatever none of them covers is not there, but for a `/dev` of the usual devices and `/proc`.
        network: The host's network; without it there is only a loopback of its own.
        private_tmp: An empty `/tmp` of its own, gone with the job; writable folders below `/tmp` are seen in it.
        pid_namespace: It sees no processes but its own, and its first one's end ends them all.
    """

    read_only: tuple[str, ...]
    writable: tuple[str, ...]
    network: bool
    private_tmp: bool
    pid_namespace: bool = True

    @property
    def digest(self) -> str:
        """SHA-256 of the plan in its canonical form, in hex."""
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    @property
    def canonical(self) -> str:
        """The plan as JSON, the same for plans that mean the same."""
        facts = {
            **asdict(self),
            "read_only": sorted(set(self.read_only)),
            "writable": sorted(set(self.writable)),
            "format": PLAN_FORMAT,
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))

    def words(self, bwrap: str, cwd: str, own: str | None = None) -> tuple[str, ...]:
        """What goes before the job's own words.

        Not `--die-with-parent`: a job outlives its shim, and is adopted.

        Args:
            own: The folder of this very launch, seen read-only whatever the plan covers: its belt is a socket in it, which whoever
                holds the attempt next binds anew, and inputs too long for a line are files of it. Part of every plan, so it is
                not in the digest. None: it is not shown.

        Raises:
            UnsupportedError: a path is not absolute, or is both read-only and writable.
        """
        binds = self._binds()
        words = [bwrap, "--unshare-ipc", "--unshare-uts"]
        words += [] if self.network else ["--unshare-net"]
        words += ["--unshare-pid"] if self.pid_namespace else []
        for path, option in binds:
            if path == "/":
                words += [option, path, path]
        words += ["--dev", "/dev", *(["--proc", "/proc"] if self.pid_namespace else ["--ro-bind", "/proc", "/proc"])]
        words += ["--tmpfs", "/tmp"] if self.private_tmp else []  # noqa: S108 - the sandbox's own
        for path, option in binds:
            is_hidden = self.private_tmp and option == "--ro-bind" and _is_at_or_below(path, "/tmp")  # noqa: S108
            if path != "/" and not is_hidden:
                words += [option, path, path]
        if own is not None and not any(_is_at_or_below(own, path) for path in self.writable):
            words += ["--ro-bind", own, own]
        return (*words, "--chdir", cwd, "--")

    def _binds(self) -> list[tuple[str, str]]:
        """Every bind with its option, outer folders first."""
        both = set(self.read_only) & set(self.writable)
        if both:
            raise UnsupportedError(f"{min(both)} cannot be both read-only and writable")
        options = [(path, "--ro-bind") for path in set(self.read_only)] + [
            (path, "--bind") for path in set(self.writable)
        ]
        for path, _ in options:
            if not os.path.isabs(path) or os.path.normpath(path) != path:
                raise UnsupportedError(f"a sandbox needs absolute paths without detours, not {path}")
        return sorted(options, key=lambda bind: (bind[0].count("/") if bind[0] != "/" else 0, bind[0]))


def find_bwrap(path: str) -> str | None:
    """Where bubblewrap is, among the folders of a PATH; None when it is not installed."""
    return shutil.which("bwrap", path=path)


def why_not(bwrap: str) -> str | None:
    """Run something in the smallest sandbox; why that does not work here (a kernel without user namespaces, say), or None.

    Blocks: some milliseconds, at most 10 s.
    """
    plan = SandboxPlan(read_only=("/",), writable=(), network=False, private_tmp=True)
    try:
        done = subprocess.run(
            [*plan.words(bwrap, "/"), "/bin/sh", "-c", "exit 0"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_BOUND_S,
            check=False,
            env={},
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return str(fault)
    if done.returncode == 0:
        return None
    return done.stderr.decode("utf-8", "replace").strip() or f"bwrap ended with status {done.returncode}"


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
