"""Columns of a row to values, and values to what a column holds.

A column that says nothing of sense raises UnreadableError, which names it and never what it holds: its content may be anything,
also a secret of somebody. Rule: requirement S05.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shared.errors import UnreadableError, UnsupportedError
from shared.store.sqlite.connection import DamagedRow, Row

T = TypeVar("T")

_encode = json.JSONEncoder(separators=(",", ":")).encode  # `json.dumps` with separators makes an encoder at each call
BLOBS = ("body",)
"""Columns that may hold bytes: inputs; a snapshot or configuration that is bytes is no JSON to its decoder."""


def json_text(value: object) -> str:
    """Compact JSON in ASCII: an argument that is no UTF-8 is a lone surrogate, which a TEXT column would refuse."""
    return _encode(value)


def key_of_row(table: str, row: Row, *columns: str) -> str:
    """The row's key as one word; of a row of a damaged answer every text has to be text."""
    key = "/".join(str(row[column]) for column in columns or ("id",))
    if isinstance(row, DamagedRow):
        for column, found in zip(row.keys(), row, strict=True):
            if isinstance(found, bytes) and column not in BLOBS:
                raise UnreadableError(table, key, column)
    return key


def as_text(row: Row) -> Mapping[str, Any]:
    """A row by its columns, with signs of replacement in a text that is none."""
    return {
        column: found.decode(errors="replace") if isinstance(found, bytes) and column not in BLOBS else found
        for column, found in zip(row.keys(), row, strict=True)
    }


def decoded(table: str, key: str, row: Row | Mapping[str, Any], column: str, decode: Callable[[str], T]) -> T:
    """What a column says. Raises UnreadableError: nothing that `decode` understands."""
    try:
        return decode(row[column])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UnsupportedError):
        raise UnreadableError(table, key, column) from None  # the cause would quote what the column holds


def words_of_text(text: str) -> tuple[str, ...]:
    """Words, of a JSON list of them."""
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise ValueError("no list of words")
    return tuple(found)


def pairs_of_text(text: str) -> tuple[tuple[str, str], ...]:
    """Names and values, of a JSON list of pairs."""
    pairs = tuple((name, value) for name, value in json.loads(text))
    if not all(isinstance(word, str) for pair in pairs for word in pair):
        raise ValueError("no names and values")
    return pairs


def object_of_text(text: str) -> dict[str, object]:
    """A JSON object."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found
