"""What the kernel would refuse at exec, said before anything is created.

Measured on Linux: an argument of 131,071 bytes passes and one of 131,072 fails (MAX_ARG_STRLEN counts the closing NUL);
the same holds for a whole NAME=value. All of them together, with one pointer each, must stay under ARG_MAX.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

ARGUMENT_BYTES_MAX = 131_071
_TOTAL_WITHOUT_LIMIT = (
    6 * 1024 * 1024
)  # the kernel's own cap, three quarters of its 8 MiB stack, when rlimits name none
_POINTER_BYTES = 8
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AROUND = "pass it by file or standard input"


def total_bytes_max() -> int:
    """Most bytes this process could hand to a program as arguments and environment together."""
    limit = os.sysconf("SC_ARG_MAX")
    return min(limit, _TOTAL_WITHOUT_LIMIT) if limit > 0 else _TOTAL_WITHOUT_LIMIT


def argument_fault(argument: str) -> str | None:
    """Why one argument cannot be handed to a program, to be read after its name; None when it can."""
    if "\0" in argument:
        return "contains a NUL byte, which no argument can"
    size = len(os.fsencode(argument))
    if size > ARGUMENT_BYTES_MAX:
        return f"is {size:,} bytes, the kernel takes {ARGUMENT_BYTES_MAX:,} in one argument; {_AROUND}"
    return None


def env_fault(name: str, value: str) -> str | None:
    """Why one environment entry cannot be set; None when it can. `TENURE_…` is what tenure itself tells a job."""
    if _ENV_NAME.fullmatch(name) is None:
        return f'"{name[:60]}" is no name for an environment variable (letters, digits and _, no digit first)'
    if name.startswith("TENURE_"):
        return f"{name} is set by tenure itself; choose another name"
    if "\0" in value:
        return f"the value of {name} contains a NUL byte, which no environment can"
    size = len(os.fsencode(f"{name}={value}"))
    if size > ARGUMENT_BYTES_MAX:
        return f"{name}=… is {size:,} bytes, the kernel takes {ARGUMENT_BYTES_MAX:,} in one entry; {_AROUND}"
    return None


def command_fault(command: Sequence[str], env: Iterable[tuple[str, str]] = ()) -> str | None:
    """Why this command with this environment could never be started; None when nothing is known against it.

    Looks at every argument, every entry and the total. The job's other variables are not known here, so a total just
    below the limit may still be refused by the kernel.
    """
    if not command:
        return "the command is empty"
    if not command[0]:
        return "the program's name is empty"
    entries = tuple(env)
    for index, argument in enumerate(command):
        fault = argument_fault(argument)
        if fault is not None:
            return f"argument {index} {fault}"
    for name, value in entries:
        fault = env_fault(name, value)
        if fault is not None:
            return fault
    return total_fault(command, entries)


def total_fault(command: Sequence[str], env: Iterable[tuple[str, str]]) -> str | None:
    """Why arguments and environment are too large together; None when they are not."""
    texts = [*command, *(f"{name}={value}" for name, value in env)]
    total = sum(len(os.fsencode(text)) + 1 + _POINTER_BYTES for text in texts)
    limit = total_bytes_max()
    if total > limit:
        return f"arguments and environment are {total:,} bytes together, this host takes {limit:,}; {_AROUND}"
    return None
