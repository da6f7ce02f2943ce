"""Which unit of the service manager a process belongs to, and what that unit's settings do to the jobs of a worker.

Read only; asks `systemctl` and `loginctl` where they are. Rule: research "process truth" §6 (systemd).
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ANSWER_BOUND_S = 5.0
LINGER_DIR = Path("/var/lib/systemd/linger")
SETTINGS = ("KillMode", "Delegate", "OOMPolicy", "SendSIGHUP")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of systemd.

    Attributes:
        name: With its suffix, `tenure-worker@1.service` or `session-3.scope`.
        user: Of the manager it belongs to: the uid of a user's own, None for the system's.
    """

    name: str
    user: int | None

    @property
    def is_session(self) -> bool:
        """Somebody's login."""
        return self.name.startswith("session-") and self.name.endswith(".scope")


def unit_of(pid: int) -> Unit | None:
    """The unit that a process runs in, by its control group; None when it runs in none.

    Raises:
        OSError: it is gone, or cannot be looked at.
    """
    with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        return unit_in(file.read())


def unit_in(groups: str) -> Unit | None:
    """The same from the text of `/proc/PID/cgroup`: the innermost unit of the hierarchy that systemd keeps."""
    paths = {}
    for line in groups.splitlines():
        number, controllers, path = line.split(":", 2)
        paths["v2" if number == "0" else controllers] = path
    path = paths.get("name=systemd") or paths.get("v2", "/")
    parts = path.strip("/").split("/")
    units = [part for part in parts if part.endswith((".service", ".scope")) and not part.startswith("user@")]
    if not units:
        return None
    manager = next((part for part in parts if part.startswith("user@") and part.endswith(".service")), None)
    uid = None if manager is None else manager.removeprefix("user@").removesuffix(".service")
    return Unit(units[-1], int(uid) if uid is not None and uid.isdigit() else None)


def settings_of(unit: Unit) -> dict[str, str]:
    """What systemd says of the unit: `SETTINGS` by name.

    Raises:
        OSError: nobody could be asked, or there was no answer.
    """
    scope = [] if unit.user is None else ["--user"]
    wanted = [f"--property={name}" for name in SETTINGS]
    return _properties(["systemctl", *scope, "show", *wanted, "--", unit.name])


def kills_at_logout() -> bool:
    """Whether a logout ends every process of the login.

    Raises:
        OSError: nobody could be asked.
    """
    return _properties(["loginctl", "show", "--property=KillUserProcesses"]).get("KillUserProcesses") == "yes"


def lingers(uid: int) -> bool:
    """Whether a user's own units outlive the user's last logout.

    Raises:
        OSError: it cannot be looked up.
    """
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        raise OSError(f"no user {uid} on this host") from None
    return (LINGER_DIR / name).exists()


def _properties(command: Sequence[str]) -> dict[str, str]:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_BOUND_S,
            check=False,
            env=_environment(),
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{command[0]} did not answer within {ANSWER_BOUND_S:.0f} s") from None
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise OSError(f"{command[0]}: {words[0] if words else f'exit code {done.returncode}'}")
    lines = done.stdout.decode(errors="replace").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _environment() -> dict[str, str]:
    kept = ("PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "LD_LIBRARY_PATH")
    return {"LC_ALL": "C", **{name: os.environ[name] for name in kept if name in os.environ}}
