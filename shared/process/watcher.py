"""Being told when processes end, without polling: one thread waits on all their pidfds.

A pidfd that was open before the end also yields the exit status of a process that is not our child (Linux 6.15+), which is
what makes the end of an orphan known. Rule: research "process truth" D9, §3.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import threading
from collections.abc import Callable, Hashable

from shared.model.evidence import ProcessIdentity
from shared.process.identity import is_alive, zombie_status

_PIDFD_GET_INFO = 0xC040FF0B  # _IOWR(0xFF, 11, 64 bytes)
_PIDFD_INFO_EXIT = 1 << 3
_INFO = struct.Struct("QQ11Ii")


class Watcher:
    """Watches processes by key; `on_exit(key)` is called once for each end, from the watching thread.

    Safe to use from any thread. A watched key keeps its pidfd, and with it the exit status, until `unwatch`.
    """

    def __init__(self, on_exit: Callable[[Hashable], None]) -> None:
        self._on_exit = on_exit
        self._lock = threading.Lock()
        self._watched: dict[Hashable, tuple[int, ProcessIdentity]] = {}
        self._keys: dict[int, Hashable] = {}
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def watch(self, key: Hashable, identity: ProcessIdentity) -> bool:
        """Watch a process, in place of whatever the key watched before.

        Returns: False when it is gone already or cannot be seen; nothing is watched then and `on_exit` will not be called.
        """
        self.unwatch(key)
        try:
            fd = os.pidfd_open(identity.pid)
        except OSError:
            return False
        if not is_alive(identity):  # after the open: from here on the descriptor cannot mean another process
            os.close(fd)
            return False
        with self._lock:
            self._watched[key] = (fd, identity)
            self._keys[fd] = key
            self._epoll.register(fd, select.EPOLLIN)
        return True

    def unwatch(self, key: Hashable) -> None:
        """Look away and forget the exit status; a key that is not watched is ignored."""
        with self._lock:
            watched = self._watched.pop(key, None)
            if watched is None:
                return
            fd = watched[0]
            if self._keys.pop(fd, None) is not None:
                self._epoll.unregister(fd)
            os.close(fd)

    def exit_status(self, key: Hashable) -> int | None:
        """How a watched process ended, negative for a signal; None when it has not, or the kernel does not say.

        Ask again later after None: the status may appear only once the process has been reaped.
        """
        with self._lock:
            watched = self._watched.get(key)
            if watched is None:
                return None
            fd, identity = watched
            status = _status_by_pidfd(fd)
            if status is None:
                status = zombie_status(identity)
            return _status_by_pidfd(fd) if status is None else status  # reaped between the two questions

    def has_ended(self, key: Hashable) -> bool:
        """Whether a watched process has ended, told or not; True also for a key that is not watched. One cheap look, for
        whoever cannot rely on having been told.
        """
        with self._lock:
            watched = self._watched.get(key)
            return watched is None or _has_ended(watched[0])

    def close(self) -> None:
        """Stop watching and end the thread; `on_exit` is not called afterwards."""
        os.eventfd_write(self._bell, 1)
        if self._thread is not threading.current_thread():
            self._thread.join()
        with self._lock:
            for fd, _ in self._watched.values():
                os.close(fd)
            self._watched.clear()
            self._keys.clear()
            if not self._epoll.closed:
                self._epoll.close()
                os.close(self._bell)

    def _run(self) -> None:
        while True:
            ready = self._epoll.poll()
            if any(fd == self._bell for fd, _ in ready):
                return
            for fd, _ in ready:
                with self._lock:
                    if fd not in self._keys or not _has_ended(fd):
                        continue  # unwatched since, and perhaps another process has the number now
                    key = self._keys.pop(fd)
                    self._epoll.unregister(fd)
                self._on_exit(key)


def _has_ended(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _status_by_pidfd(fd: int) -> int | None:
    """The status of a reaped process from a pidfd that was opened before; None before the end, and before Linux 6.15."""
    buffer = bytearray(_INFO.pack(_PIDFD_INFO_EXIT, *([0] * 13)))
    try:
        fcntl.ioctl(fd, _PIDFD_GET_INFO, buffer, True)  # noqa: FBT003 - the signature is the standard library's
    except OSError:
        return None
    mask, *_, status = _INFO.unpack(buffer)
    return os.waitstatus_to_exitcode(status) if mask & _PIDFD_INFO_EXIT else None
