"""Frozen dataclasses out of JSON, strictly: no key unknown, none missing, no type bent. Pure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import UnionType
from typing import TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_NAMES: dict[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


class ShapeError(ValueError):
    """A value is of another shape. `place`: where, as `cells[3].took_ms`; empty for the whole."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(place, what)
        self.place = place
        self.what = what

    def __str__(self) -> str:
        return f"{self.place} {self.what}".strip()


def shaped(kind: type[T], value: object, place: str = "") -> T:
    """The value as one of that kind: a dataclass, a plain value, a tuple or dict of them, or one of them or None.

    Raises:
        ShapeError: it is none.
    """
    return cast(T, _shaped(kind, value, place))


def _shaped(kind: object, value: object, place: str) -> object:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else _shaped(inner[0], value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise ShapeError(place, "must be a list")
        return tuple(_shaped(inner[0], each, f"{place}[{index}]") for index, each in enumerate(value))
    if origin is dict:
        return {name: _shaped(inner[1], each, _below(place, name)) for name, each in _object(value, place).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind, _object(value, place), place)
    return _plain(cast(type, kind), value, place)


def _dataclass(kind: type, facts: dict[str, object], place: str) -> object:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    for name in names:
        if name not in facts:
            raise ShapeError(_below(place, name), "is missing")
    for name in facts:
        if name not in hints:
            raise ShapeError(_below(place, repr(name)), "is not known here")
    return kind(**{name: _shaped(hints[name], facts[name], _below(place, name)) for name in names})


def _plain(kind: type, value: object, place: str) -> object:
    if kind is float and type(value) is int:
        return value
    if type(value) is not kind:  # a bool is no number here
        raise ShapeError(place, f"must be {_NAMES[kind]}")
    return value


def _object(value: object, place: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ShapeError(place, "must be an object")
    return value


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
