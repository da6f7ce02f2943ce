"""An output in pieces: whole lines come out of it however it was cut, each once, and what is no line is passed over and told."""

from __future__ import annotations

import json

import pytest

from shared.model.declaration import DeclarationKind
from shared.model.stream import Place, Refusal, RefusalCode, Took
from shared.model.usage import Usage
from worker.agents.lines import LINE_BYTES_MAX, Line, lines_of
from worker.agents.messages import Heard, hear, understand
from worker.agents.reading import read_stretch

OUTPUT = b'{"type":"log"}\n\nnot json\n{"type":"consumed","inputs":[3,4]}\n{"type":"later"}\nlast'


def in_pieces(data: bytes, size: int) -> tuple[Place, list[Line], list[Refusal]]:
    """Read a growing output by looks at it that reach so many bytes further each time."""
    place, lines, refusals = Place(), [], []
    for end in [*range(size, len(data), size), len(data)]:
        place, found, passed = lines_of(place, place.offset, data[place.offset : end], at_end=False)
        lines += found
        refusals += passed
    return place, lines, refusals


@pytest.mark.parametrize("size", range(1, 30))
def test_every_line_comes_once_wherever_the_output_is_cut(size: int) -> None:
    place, lines, refusals = in_pieces(OUTPUT, size)

    assert [(line.number, line.data) for line in lines] == [
        (1, b'{"type":"log"}'),
        (3, b"not json"),
        (4, b'{"type":"consumed","inputs":[3,4]}'),
        (5, b'{"type":"later"}'),
    ]
    assert (place.lines, place.offset, refusals) == (5, len(OUTPUT) - len(b"last"), [])


def test_the_last_line_without_an_end_counts_once_nothing_follows() -> None:
    place, lines, _ = lines_of(Place(), 0, b"one\ntwo", at_end=True)

    assert [line.data for line in lines] == [b"one", b"two"]
    assert place == Place(7, 2)
    assert lines_of(Place(), 0, b"one\ntwo", at_end=False)[0] == Place(4, 1), "control: it may go on"


@pytest.mark.parametrize("cut", [1, 1000, LINE_BYTES_MAX, LINE_BYTES_MAX + 1, LINE_BYTES_MAX + 7])
def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_counts(cut: int) -> None:
    data = b"a\n" + b"x" * (LINE_BYTES_MAX + 5) + b"\nb\n"

    place, lines, refusals = in_pieces(data, max(cut, 100))

    assert [(line.number, line.data) for line in lines] == [(1, b"a"), (3, b"b")]
    assert [(refusal.line, refusal.code) for refusal in refusals] == [(2, RefusalCode.OVERSIZE)]
    assert place == Place(len(data), 3)


def test_the_longest_line_is_one() -> None:
    _, lines, refusals = lines_of(Place(), 0, b"x" * LINE_BYTES_MAX + b"\n", at_end=False)

    assert (len(lines), refusals) == (1, [])


def test_bytes_that_were_dropped_are_told_and_what_follows_them_is_passed_over_up_to_the_next_line() -> None:
    place, lines, refusals = lines_of(Place(10, 2), 50, b"half of one\nwhole\n", at_end=False)

    assert [line.data for line in lines] == [b"whole"]
    assert [(refusal.code, refusal.why[:8]) for refusal in refusals] == [(RefusalCode.LOST, "40 bytes")]
    assert place.offset == 50 + 18


# --- what a line means


def heard(text: str | bytes) -> Heard | Refusal:
    data = text.encode() if isinstance(text, str) else text
    return hear(Line(7, data), "out.1", understand)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"no json", RefusalCode.NOT_JSON),
        (b'{"type":"log"', RefusalCode.NOT_JSON),
        (b'{"type":"log","type":"log"}', RefusalCode.NOT_JSON),
        (b'{"type":"usage","units":{"usd":NaN}}', RefusalCode.NOT_JSON),
        (b"[" * 60_000, RefusalCode.NOT_JSON),
        (b'{"type":"usage","units":{"usd":1e99999999999999999999}}', RefusalCode.NOT_JSON),
        (b'{"type":"usage","units":{"usd":1e999}}', RefusalCode.INVALID),
        (b'{"type":"log","text":"\xff"}', RefusalCode.NOT_UTF8),
        (b'{"type":"log","text":"\x00"}', RefusalCode.NUL),
        (b'{"type":"log","text":"\\u0000"}', RefusalCode.NUL),
        (b'{"type":"log","text":"\\ud800"}', RefusalCode.SURROGATE),
        (b'{"type":"log","\\udfff":1}', RefusalCode.SURROGATE),
        (b"[]", RefusalCode.INVALID),
        (b"3", RefusalCode.INVALID),
        (b'{"type":3}', RefusalCode.INVALID),
        (b'{"no":"type"}', RefusalCode.INVALID),
        (b'{"type":"turn","status":"Not Lower"}', RefusalCode.INVALID),
        (b'{"type":"result"}', RefusalCode.INVALID),
        (b'{"type":"result","outcome":"waiting"}', RefusalCode.INVALID),
        (b'{"type":"result","outcome":"completed","permanent":true}', RefusalCode.INVALID),
        (b'{"type":"consumed","inputs":[]}', RefusalCode.INVALID),
        (b'{"type":"consumed","inputs":["1"]}', RefusalCode.INVALID),
        (b'{"type":"consumed","inputs":[true]}', RefusalCode.INVALID),
        (b'{"type":"usage","units":{"usd":"lots"}}', RefusalCode.INVALID),
        (b'{"type":"wait"}', RefusalCode.INVALID),
        (b'{"type":"not_accepting"}', RefusalCode.INVALID),
        (b'{"type":"not_accepting","id":"i1","more":1}', RefusalCode.INVALID),
    ],
)
def test_a_line_that_is_no_message_is_refused_by_its_kind(data: bytes, code: RefusalCode) -> None:
    refusal = heard(data)

    assert isinstance(refusal, Refusal)
    assert (refusal.line, refusal.code) == (7, code)
    assert 0 < len(refusal.why) <= 200


def test_a_surrogate_pair_that_is_whole_is_a_character() -> None:
    assert isinstance(heard('{"type":"log","text":"\\ud83d\\ude00"}'), Heard)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"type":"turn","status":"done","comment":"x"}', DeclarationKind.TURN),
        ('{"type":"wait","timer":"5m","resume":true}', DeclarationKind.WAIT),
        ('{"type":"result","outcome":"completed","summary":"x","artifacts":["a"]}', DeclarationKind.OUTCOME),
        ('{"type":"result","outcome":"failed","permanent":true}', DeclarationKind.OUTCOME),
        ('{"type":"result","outcome":"failed","retry":{"unknown":true}}', DeclarationKind.OUTCOME),
        ('{"type":"result","outcome":"handoff"}', DeclarationKind.OUTCOME),
    ],
)
def test_what_a_program_declares_has_a_key_of_its_line(text: str, kind: DeclarationKind) -> None:
    found = heard(text)

    assert isinstance(found, Heard)
    assert [(one.key, one.kind) for one in found.declarations] == [("out.1.7", kind)]


@pytest.mark.req("B02")
def test_an_amount_is_charged_as_it_was_said_however_many_digits_it_has() -> None:
    used = heard('{"type":"usage","units":{"usd":123456789012.123456789012,"n":0.10,"tiny":1e-30}}')

    charged = Usage.from_plain({"n": "0.1", "tiny": "0.000000000001", "usd": "123456789012.123456789012"})
    assert used == Heard(usage=charged)


def test_messages_that_are_not_known_are_counted_and_mean_nothing() -> None:
    assert heard('{"type":"later","any":"thing"}') == Heard(unknown="later")
    assert heard('{"type":"log","text":"x"}') == Heard()
    assert heard("  ") == Heard()
    assert heard('{"type":"consumed","inputs":[3]}') == Heard(consumed=(3,))
    used = heard('{"type":"usage","units":{"usd":0.25,"tokens":100}}')
    assert used == Heard(usage=Usage.from_plain({"usd": "0.25", "tokens": "100"}))
    assert heard('{"type":"not_accepting","id":"i3"}') == Heard(declined=("i3",))


# --- a stretch


def test_a_stretch_says_all_of_it_and_where_it_ends() -> None:
    lines = [
        '{"type":"turn","status":"done"}',
        "broken",
        '{"type":"consumed","inputs":[2,2]}',
        '{"type":"x"}',
        '{"type":"usage","units":{"usd":0.1,"n":1}}',
        '{"type":"x"}',
        '{"type":"usage","units":{"usd":0.2}}',
    ]
    data = "\n".join(lines).encode() + b"\nhalf"

    stretch = read_stretch(Place(), 0, data, understand, pin_epoch=4, at_end=False)

    assert (stretch.before, stretch.after) == (Place(), Place(len(data) - 4, 7))
    assert stretch.usage == Usage.from_plain({"n": "1", "usd": "0.3"})
    assert (stretch.consumed, stretch.unknown) == ((Took(3, (2, 2)),), (("x", 2),))
    assert [refusal.line for refusal in stretch.refusals] == [2]
    assert [(one.line, one.declaration.key) for one in stretch.said] == [(1, "out.4.1")]
    assert json.loads(stretch.said[0].declaration.body)["status"] == "done"
