"""Lines of keys in a TOML text, against texts whose every line is known."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config.locate import KeyPath, locate


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2\n", ("b",), 2),
        ("\n\n# a = 0\n  a = 1", ("a",), 4),
        ("[t]\na = 1\n[u]\na = 2", ("u", "a"), 4),
        ("[t]\na = 1\n[u]\na = 2", ("u",), 3),
        ("[t.u]\na = 1\n[t]\nb = 2", ("t",), 3),
        ("[t.u]\na = 1", ("t",), 1),
        ("[ t . 'u' ]\na = 1", ("t", "u", "a"), 2),
        ("a.b.c = 1\na.b.d = 2", ("a", "b", "d"), 2),
        ("a.b.c = 1\na.b.d = 2", ("a", "b"), 1),
        ('"a.b" = 1\na.b = 2', ("a", "b"), 2),
        ('"a.b" = 1\na.b = 2', ("a.b",), 1),
        ('x = 0\n"\\u0061" = 1', ("a",), 2),
        ("'a\"b' = 1\nc = 2", ("c",), 2),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t", 0, "a"), 2),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t", 1, "a"), 4),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t", 1), 3),
        ("[[t]]\n[t.u]\na = 1\n[[t]]\n[t.u]\na = 2", ("t", 1, "u", "a"), 6),
        ("[[t]]\n[[t.u]]\n[[t.u]]\n[[t]]\n[[t.u]]\na = 2", ("t", 1, "u", 0, "a"), 6),
        ("a = { b = 1, c = { d = 2 } }\ne = 3", ("a", "c", "d"), 1),
        ("a = [\n  1, # one\n  # two\n  2,\n]\nb = 3", ("a", 1), 4),
        ("a = [\n  1, # one\n  # two\n  2,\n]\nb = 3", ("b",), 6),
        ("a = [{ b = 1 },\n{ b = 2 }]", ("a", 1, "b"), 2),
        ("a = [[1,\n2], [\n3]]", ("a", 1, 0), 3),
        ('a = """\nb = 1\n"""\nb = 2', ("b",), 4),
        ("a = '''\nb = 1\n'''\nb = 2", ("b",), 4),
        ('a = """x""\\""""""\nb = 2', ("b",), 2),
        ("a = '''x'''''\nb = 2", ("b",), 2),
        ('a = """"""\nb = 2', ("b",), 2),
        ('a = "\\"[b]"\nb = 2', ("b",), 2),
        ("a = '# no'  # b = 1\nb = 2", ("b",), 2),
        ('a = "]"\nb = ["]", "#,\\"",\n"}"]', ("b", 2), 3),
        ("a = 1979-05-27 07:32:00\nb = [1979-05-27 07:32:00,\n1e3]", ("b", 1), 3),
        ("a = 1\n[t]\nb = 2", ("t", "missing", 3), 2),
        ("a = 1", ("missing",), 1),
    ],
)
def test_a_key_stands_on_its_line(text: str, path: KeyPath, line: int) -> None:
    tomllib.loads(text)

    assert locate(text).line_of(path) == line


@pytest.mark.parametrize(
    ("text", "path", "line", "line_first"),
    [
        ("a = 1\n# x\na = 2", ("a",), 3, 1),
        ("[t]\n[u]\n[t]", ("t",), 3, 1),
        ("a = '''\n'''\n'a' = 2", ("a",), 3, 1),
        ("[t]\na = 1\nb = 2\na = 3", ("t", "a"), 4, 2),
        ("[t.u]\na = 1\n[t]\nu = 2", ("t", "u"), 4, 1),
        ("t = { a = 1, a = 2 }", ("t", "a"), 1, 1),
        ("a = 1\n[a]", ("a",), 2, 1),
        ("[[t]]\na = 1\n[[t]]\na = 1\na = 2", ("t", 1, "a"), 5, 4),
    ],
)
def test_a_second_definition_is_found_with_the_first(text: str, path: KeyPath, line: int, line_first: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)

    duplicate = locate(text).duplicate

    assert duplicate is not None
    assert (duplicate.path, duplicate.line, duplicate.line_first) == (path, line, line_first)


@pytest.mark.parametrize(
    "text", ["a = 1\nb = 2", "[t]\na = 1\n[u]\na = 1", "[[t]]\na = 1\n[[t]]\na = 1", "a.b = 1\na.c = 2", "[t.u]\n[t]"]
)
def test_what_is_defined_once_is_no_duplicate(text: str) -> None:
    tomllib.loads(text)

    assert locate(text).duplicate is None


keys = st.text(st.sampled_from("ab1-. #\"'=[]é\t"), min_size=1, max_size=4)
strings = st.text(st.sampled_from("ab \n#\"'=[]{},\\\r"), max_size=8)
scalars = st.integers(-9, 9) | st.booleans() | st.just(1.5) | strings
trees = st.dictionaries(
    keys,
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
    ),
    max_size=5,
)


@dataclass
class Writer:
    """Writes a tree as TOML in a way that `draw` chooses, and notes each key's line."""

    draw: Any
    text: str = ""
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def put(self, text: str) -> None:
        self.text += text

    def note(self, path: KeyPath) -> None:
        self.lines[path] = self.text.count("\n") + 1

    def chance(self) -> bool:
        return bool(self.draw(st.booleans()))

    def key(self, name: str) -> str:
        literal = "'" not in name and self.chance()
        bare = name.isascii() and all(letter.isalnum() or letter == "-" for letter in name)
        return name if bare and self.chance() else f"'{name}'" if literal else quoted(name)

    def value(self, path: KeyPath, value: object) -> None:
        if isinstance(value, dict):
            self.put("{ ")
            for index, (name, inner) in enumerate(value.items()):
                self.put(", " if index else "")
                self.note((*path, name))
                self.put(f"{self.key(name)} = ")
                self.value((*path, name), inner)
            self.put(" }")
        elif isinstance(value, list):
            self.put("[")
            for index, inner in enumerate(value):
                self.put('\n # ], [x] "\n ' if self.chance() else " ")
                self.note((*path, index))
                self.value((*path, index), inner)
                self.put(",")
            self.put("]")
        elif isinstance(value, bool):
            self.put("true" if value else "false")
        elif isinstance(value, str):
            lines = '"""\n' + "\n".join(quoted(line)[1:-1] for line in value.split("\n")) + '"""'
            self.put(lines if self.chance() else quoted(value))
        else:
            self.put(str(value))

    def table(self, path: KeyPath, header: str, tree: dict[str, Any]) -> None:
        later = []
        for name, value in tree.items():
            if isinstance(value, dict) and self.chance():
                later.append((name, value))
                continue
            self.put("  " if self.chance() else "# [x]\n")
            self.note((*path, name))
            self.put(f"{self.key(name)} = ")
            self.value((*path, name), value)
            self.put(" # a = 1\n" if self.chance() else "\n")
        for name, inner in later:
            below = f"{header}.{self.key(name)}" if header else self.key(name)
            self.note((*path, name))
            self.put(f"[{below}]\n")
            self.table((*path, name), below, inner)


def quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(sign, sign) for sign in text) + '"'


@given(st.data(), trees)
def test_every_key_of_any_document_stands_on_its_line(data: st.DataObject, tree: dict[str, Any]) -> None:
    writer = Writer(data.draw)
    writer.table((), "", tree)
    assert tomllib.loads(writer.text) == tree

    positions = locate(writer.text)

    assert positions.duplicate is None
    assert {path: positions.line_of(path) for path in positions.offsets} == writer.lines


@given(st.text(st.sampled_from("ab.=[]{}\"'#,\n\\ 1"), max_size=40))
def test_no_text_makes_it_fail(text: str) -> None:
    assert locate(text).line_of(("a", 0)) >= 1
