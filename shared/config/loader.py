"""From a `tenure.toml` to a `Config`, or to one line that says what is wrong and where.

Of several faults the first in file order is raised, with the number of the others. Sections of later versions are
refused by name, never ignored.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from shared.config.fields import FAULT, kind_of, likely
from shared.config.locate import KeyPath, Positions, locate
from shared.config.schema import FileTable, table_keys
from shared.errors import ConfigError
from shared.model.settings import Config

FILE_BYTES_MAX = 16 * 1024 * 1024
NOT_YET = ("executor", "schedule")

_AT_LINE = re.compile(r" \(at line ([0-9]+), column [0-9]+\)$")
_AT_END = " (at end of document)"
_DUPLICATES = ("Cannot overwrite", "Cannot declare", "Cannot mutate", "Cannot redefine", "Duplicate inline")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_DURATION = re.compile(r"=\s*([0-9]+(?:ms|s|m|h|d))\s*(?:#.*)?$")
_LEADING_ZERO = re.compile(r"=\s*[+-]?0[0-9]+\s*(?:#.*)?$")
_BARE_WORD = re.compile(r"=\s*([A-Za-z_./][^\s#\"'=]*)\s*(?:#.*)?$")
_PLACES = {"settings": "[settings]", "binding": "[binding.NAME]", "sandbox": "[binding.NAME.sandbox]"}
_EXAMPLES = {"command": 'command = ["./backup.sh", "--full"]', "unit": 'unit = "usd"', "max": "max = 20"}


@dataclass(frozen=True, slots=True)
class _Fault:
    message: str
    hint: str | None = None
    unsupported: bool = False


def load(path: Path) -> Config:
    """The configuration in a file, completely checked.

    Raises:
        ConfigError: the file cannot be read or is wrong; `.line` and `.key` say where. Its code is `unsupported` when a
            later version may take it.
    """
    return parse(_read(path), source=str(path), folder=path.absolute().parent)


def parse(text: str, *, source: str, folder: Path) -> Config:
    """The configuration in a text.

    Args:
        text: What a file would hold.
        source: Name for messages.
        folder: Where relative folders are meant from.

    Raises:
        ConfigError: as in `load`.
    """
    text = text.replace("\r\n", "\n")
    raw = _toml(text, source)
    later: list[KeyPath] = [(name,) for name in raw if name in NOT_YET]
    rest = {name: value for name, value in raw.items() if name not in NOT_YET}
    details: list[ErrorDetails] = []
    try:
        table = FileTable.model_validate(rest)
    except ValidationError as error:
        details = error.errors(include_url=False)
    else:
        if not later:
            return table.value(str(folder))
    raise _first(later, details, rest, locate(text), source)


def _read(path: Path) -> str:
    try:
        # Not a pipe or a device: the file is read again by name at the next start.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ConfigError("is not a regular file", source=str(path))
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        hint = "`tenure apply FILE` reads another one, `tenure init` writes a first one" if missing else None
        raise ConfigError(f"cannot be read: {error.strerror}", source=str(path), hint=hint) from error
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"is larger than {FILE_BYTES_MAX // 1024 // 1024} MiB", source=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 text", source=str(path), line=line, hint="save the file as UTF-8") from error


def _toml(text: str, source: str) -> dict[str, object]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except RecursionError as error:
        raise ConfigError("lists or tables are nested too deep", source=source) from error
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, source) from error
    except ValueError as error:  # a number of more digits than Python reads
        long = re.search(rf"[0-9_]{{{sys.get_int_max_str_digits() + 1},}}", text)
        line = None if long is None else text.count("\n", 0, long.start()) + 1
        raise ConfigError("a number has too many digits", source=source, line=line) from error


def _syntax_error(message: str, text: str, source: str) -> ConfigError:
    if message.startswith(_DUPLICATES):
        duplicate = locate(text).duplicate
        if duplicate is not None:
            key = dotted(duplicate.path)
            first = f"{key} is defined twice, first on line {duplicate.line_first}"
            return ConfigError(first, source=source, line=duplicate.line, key=key, hint="keep one of them")
    at_line = _AT_LINE.search(message)
    line = int(at_line[1]) if at_line else text.rstrip("\n").count("\n") + 1
    reason = message.removesuffix(_AT_END if at_line is None else at_line[0])
    return ConfigError(f"not TOML: {reason}", source=source, line=line, hint=_syntax_hint(text.split("\n")[line - 1]))


def _syntax_hint(line: str) -> str | None:
    """What was probably meant on a line that tomllib refuses; None when nothing can be told."""
    duration = _BARE_DURATION.search(line)
    if duration is not None:
        return f'a duration stands in quotes: "{duration[1]}"'
    if _LEADING_ZERO.search(line) is not None:
        return "a number has no 0 in front"
    word = _BARE_WORD.search(line)
    if word is None:
        return None
    switch = word[1].lower()
    if switch in {"true", "false"}:
        return f"write {switch}, in lower case"
    if switch in {"yes", "no", "on", "off"}:
        return f'write true or false, or a text in quotes: "{word[1]}"'
    return f'text stands in quotes: "{word[1][:60]}"'


def _first(
    later: list[KeyPath],
    details: list[ErrorDetails],
    raw: Mapping[str, object],
    positions: Positions,
    source: str,
) -> ConfigError:
    """The first fault in the file, in words; of the others, which may be very many, only how many there are.

    Args:
        later: Sections that a later version takes.
        details: What pydantic found.
        raw: What it was given.
    """
    found: list[tuple[KeyPath, ErrorDetails | None]] = [(path, None) for path in later]
    found += [(_path(detail), detail) for detail in details]
    path, detail = min(found, key=lambda one: positions.offset_of(one[0]))
    first = _not_yet(path) if detail is None else _fault(path, detail, raw)
    others = len(found) - 1
    more = "" if not others else f" (and {others} more fault{'s' if others > 1 else ''} in this file)"
    error = ConfigError(
        first.message + more, source=source, line=positions.line_of(path), key=dotted(path), hint=first.hint
    )
    if first.unsupported:
        error.code = "unsupported"
    return error


def _not_yet(path: KeyPath) -> _Fault:
    hint = "remove that section until a version of tenure takes it"
    return _Fault(f"{dotted(path)} is not supported yet", hint, unsupported=True)


def _path(detail: ErrorDetails) -> KeyPath:
    """Where the fault is; `loc` has `[key]` behind a name that is refused itself."""
    path: KeyPath = tuple(part for part in detail["loc"] if part != "[key]")
    return (*path, *detail["ctx"]["key"]) if detail["type"] == FAULT else path


def _fault(path: KeyPath, detail: ErrorDetails, raw: Mapping[str, object]) -> _Fault:
    """One of pydantic's findings in our words."""
    kind = detail["type"]
    if kind == FAULT:
        context = detail["ctx"]
        inner = context["key"]  # the message of a fault further in follows the table's name
        where = dotted(path) if not inner else f"{dotted(path[: -len(inner)] or path)}:"
        return _Fault(f"{where} {context['fault']}", context["hint"], bool(context["unsupported"]))
    if kind == "extra_forbidden":
        return _unknown_key(path, detail["input"])
    if kind == "missing":
        name = str(path[-1])
        return _Fault(f"{dotted(path[:-1])} has no {name}", _EXAMPLES.get(name))
    wanted = {"list_type": "a list", "dict_type": "a table", "model_type": "a table"}.get(kind)
    if wanted is not None:
        found = "" if "secrets" in path else f", not {kind_of(detail['input'])}"  # it may be a secret itself
        return _Fault(f"{dotted(path)} must be {wanted}{found}", _table_hint(path, raw))
    return _Fault(f"{dotted(path)}: {detail['msg']}")


def _table_hint(path: KeyPath, raw: Mapping[str, object]) -> str | None:
    """How to write a table for those who wrote `[[binding]]`, or `[binding]` without a name; None elsewhere."""
    section = str(path[0])
    if path == ("budget",):
        return "each budget is written [[budget]]"
    if len(path) == 1 and isinstance(raw.get(section), list):
        return f"write [{section}]" if section == "settings" else f"write [{section}.NAME]"
    if len(path) == 2 and section in {"binding", "scope"}:
        return f"each {section} has its own table: [{section}.NAME]"
    if path[2:3] == ("grant",):
        return f"each grant has its own table: [{dotted(path[:3])}.NAME]"
    return None


def _unknown_key(path: KeyPath, value: object) -> _Fault:
    *around, name = path
    keys = table_keys()
    inner = around[2:4] if around[2:3] == ["retry"] else around[2:3]
    kinds = [str(part) for part in (*reversed(inner), *around[:1])]  # binding.a.retry is a retry before it is a binding
    table = next((kind for kind in kinds if kind in keys), "")
    where = f" in {dotted(tuple(around))}" if around else ""
    message = f'unknown key "{name}"{where}'
    near = likely(str(name), keys[table])
    if near is not None:
        return _Fault(message, f'did you mean "{near}"?')
    if table == "scope" and isinstance(value, dict):
        nested = "/".join(str(part) for part in path[1:])
        return _Fault(message, f'a scope below another is written [scope."{nested}"]')
    homes = [where for place, where in _PLACES.items() if name in keys[place]]
    if homes:
        return _Fault(message, f"it belongs in {' or '.join(homes)}")
    return _Fault(message, f"known here: {', '.join(keys[table])}")


def dotted(path: KeyPath) -> str:
    """A path as TOML writes it: `scope."ops/backup".concurrency`, `binding.backup.command[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _BARE_KEY.fullmatch(part) else f'"{part[:60]}"'
            text += f".{name}" if text else name
    return text
