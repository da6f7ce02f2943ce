"""Where each key of a TOML text stands; tomllib keeps no positions.

A lexical walk that knows TOML's tokens and tables and none of its values. It is given texts that tomllib reads, and for
those every key, table and list element gets its place. Given a text that tomllib refuses, it keeps what came before the
spot it cannot read; that is enough to name the first of two equal keys.

Paths are those of the parsed value: `("binding", "backup", "command", 0)`, list elements and the tables of an array
of tables by their index.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_COMMENT = re.compile(r"[ \t]*(?:#[^\n]*)?")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]+")
_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})', re.DOTALL),
    re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key or table defined a second time.

    Attributes:
        line, line_first: 1-based lines of the second and of the first definition.
    """

    path: KeyPath
    line: int
    line_first: int


@dataclass(slots=True)
class Positions:
    """Offsets of keys in one text.

    Attributes:
        offsets: For each path where its own name (or the `[` of its table) stands, else the first name that implies it.
        duplicate: The first thing defined twice; None when nothing was.
    """

    text: str
    offsets: dict[KeyPath, int] = field(default_factory=dict)
    duplicate: Duplicate | None = None

    def offset_of(self, path: KeyPath) -> int:
        """Offset of a path, or of the nearest thing around it that stands in the text; 0 when there is none."""
        for length in range(len(path), 0, -1):
            offset = self.offsets.get(path[:length])
            if offset is not None:
                return offset
        return 0

    def line_of(self, path: KeyPath) -> int:
        """1-based line of `offset_of(path)`."""
        return self.line_at(self.offset_of(path))

    def line_at(self, offset: int) -> int:
        """1-based line of an offset."""
        return self.text.count("\n", 0, offset) + 1


def locate(text: str) -> Positions:
    """Positions of everything in a text whose lines end in a line feed alone."""
    walk = _Walk(text)
    try:
        walk.document()
    except (_UnreadableError, RecursionError):
        pass  # the text's first fault is tomllib's to name; what was found before it stands
    return walk.positions


class _UnreadableError(Exception):
    """The walk met a token it does not know."""


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.positions = Positions(text)
        self.defined: dict[KeyPath, int] = {}  # what may not be defined again, with its offset
        self.counts: dict[KeyPath, int] = {}  # arrays of tables and the tables they have so far

    def document(self) -> None:
        table: KeyPath = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_COMMENT)
            if self.at < len(self.text):
                self._expect("\n")

    def _header(self) -> KeyPath:
        start = self.at
        many = self.text.startswith("[[", start)
        self.at += 2 if many else 1
        parts = self._key()
        self._expect("]]" if many else "]")
        path: KeyPath = ()
        for part in parts[:-1]:
            path = self._latest((*path, part))
            self._mention(path, start)
        path = (*path, parts[-1])
        if many:
            self._mention(path, start)
            index = self.counts.get(path, 0)
            self.counts[path] = index + 1
            path = (*path, index)
        self._define(path, start)
        return path

    def _latest(self, path: KeyPath) -> KeyPath:
        count = self.counts.get(path)
        return path if count is None else (*path, count - 1)

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = table
        parts = self._key()
        for part in parts[:-1]:
            path = (*path, part)
            self._mention(path, start)
        path = (*path, parts[-1])
        self._define(path, start)
        self._expect("=")
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        """A dotted key's parts, spaces around it skipped."""
        parts = []
        while True:
            self._skip(_SPACE)
            if self.text.startswith(('"', "'"), self.at):
                parts.append(self._string_value())
            else:
                parts.append(self._take(_BARE_KEY))
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        if self.text.startswith("[", self.at):
            self._list(path)
        elif self.text.startswith("{", self.at):
            self._inline_table(path)
        elif self.text.startswith(('"', "'"), self.at):
            self._string()
        else:
            self._take(_BARE_VALUE)

    def _list(self, path: KeyPath) -> None:
        self._expect("[")
        index = 0
        self._skip(_BLANK)
        while not self.text.startswith("]", self.at):
            self._mention((*path, index), self.at)
            self._value((*path, index))
            index += 1
            self._skip(_BLANK)
            if not self.text.startswith("]", self.at):
                self._expect(",")
                self._skip(_BLANK)
        self._expect("]")

    def _inline_table(self, path: KeyPath) -> None:
        self._expect("{")
        self._skip(_BLANK)  # line ends are allowed from TOML 1.1 on
        while not self.text.startswith("}", self.at):
            self._pair(path)
            self._skip(_BLANK)
            if not self.text.startswith("}", self.at):
                self._expect(",")
                self._skip(_BLANK)
        self._expect("}")

    def _string(self) -> str:
        for pattern in _STRINGS:
            found = pattern.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
                return found[0]
        raise _UnreadableError

    def _string_value(self) -> str:
        raw = self._string()
        try:
            return str(tomllib.loads(f"key = {raw}")["key"])
        except tomllib.TOMLDecodeError as error:
            raise _UnreadableError from error

    def _define(self, path: KeyPath, offset: int) -> None:
        first = self.defined.setdefault(path, offset)
        if first == offset:
            self.positions.offsets[path] = offset
        elif self.positions.duplicate is None:
            line_at = self.positions.line_at
            self.positions.duplicate = Duplicate(path, line_at(offset), line_at(first))

    def _mention(self, path: KeyPath, offset: int) -> None:
        self.positions.offsets.setdefault(path, offset)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        self.at = self.at if found is None else found.end()
        return self.at

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _UnreadableError
        self.at = found.end()
        return found[0]

    def _expect(self, token: str) -> None:
        if not self.text.startswith(token, self.at):
            raise _UnreadableError
        self.at += len(token)
