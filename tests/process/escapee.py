"""A job that tries to get away from its shim in one way: `escapee.py KIND PIDFILE CGROUP SETPRIV`.

The process that is to be found writes its pid, then becomes `sleep`. The main process stays until it is stopped. Standard library
only, no `site`: it runs in the place of a job.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

SLEEP = ["/bin/sleep", "60"]
OTHER_UID = "1"


def note() -> None:
    """Write who is to be found."""
    with open(f"{pid_file}.tmp", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(f"{pid_file}.tmp", pid_file)


def close_everything() -> None:
    os.closerange(0, 1024)


def is_daemon() -> bool:
    """Fork twice and leave the session; True in the daemon."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True


def become_sleep(environment: dict[str, str]) -> None:
    os.execve(SLEEP[0], SLEEP, environment)


def change_user(environment: dict[str, str]) -> None:
    """As root by oneself; else by a program that may."""
    words = [setpriv, "--reuid", OTHER_UID, "--regid", OTHER_UID, "--clear-groups", *SLEEP]
    os.execve(setpriv, words, environment)


kind, pid_file, group, setpriv = sys.argv[1:5]
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
match kind:
    case "plain":
        note()
    case "background":
        if os.fork() == 0:
            note()
            become_sleep(dict(os.environ))
    case "setsid":
        if os.fork() == 0:
            os.setsid()
            note()
            become_sleep(dict(os.environ))
    case "daemon":
        if is_daemon():
            note()
            become_sleep(dict(os.environ))
    case "daemon_env":
        if is_daemon():
            note()
            become_sleep({})
    case "daemon_files":
        if is_daemon():
            note()
            close_everything()
            become_sleep(dict(os.environ))
    case "daemon_env_files":
        if is_daemon():
            note()
            close_everything()
            become_sleep({})
    case "daemon_uid":
        if is_daemon():
            note()
            change_user(dict(os.environ))
    case "daemon_uid_env_files":
        if is_daemon():
            note()
            close_everything()
            change_user({})
    case "pid_namespace":
        if is_daemon():
            note()
            own_users = [] if os.getuid() == 0 else ["--user"]
            os.execvp("unshare", ["unshare", *own_users, "--fork", "--pid", *SLEEP])
    case "other_cgroup":
        if is_daemon():
            fd = os.open(f"{group}/cgroup.procs", os.O_WRONLY)
            os.write(fd, b"0")
            note()
            close_everything()
            become_sleep({})
    case "by_another":
        link = socket.socket(socket.AF_UNIX)
        link.connect(f"{os.path.dirname(pid_file)}/servant")
        link.send(pid_file.encode())
        link.recv(1)
    case _:
        sys.exit(f"no such kind: {kind}")
while True:
    signal.pause()
