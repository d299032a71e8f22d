"""Texts that are typed for levers: what each kind takes, and what is refused."""

from __future__ import annotations

import pytest

from arenagen.compile import Text, read_schema
from arenagen.errors import ArenagenError
from arenagen.lever_texts import clamped, typed_lever

SCHEMA = """\
arena: {class: Arena, package: arena, label: arena, doc: An arena.}
limits: {max_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens.}}
config: {width: {doc: Width of a row.}}
levers:
  wide: {variable: WIDE, type: bool, on_when: ["yes", "1"], doc: A switch.}
  lean: {variable: LEAN, type: bool, off_when: ["0"], doc: Another switch.}
  mode:
    {variable: MODE, type: str, words: {slow: s, fast: f}, default: s, doc: A mode.}
  name: {variable: NAME, type: str, default: x, doc: Any text.}
  kind: {variable: KIND, type: int, words: {a: 1, b: 2}, default: 1, doc: A kind.}
  split: {variable: SPLIT, type: int, clamp: [2, 8], default: 2, doc: A count.}
buffers: {rows: {doc: Rows., dtype: u8, shape: [M, width]}}
"""
LEVERS = {
    lever.name: lever
    for lever in read_schema(Text("small.yaml", SCHEMA.encode()))[0].levers
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("wide", "yes", True),
        ("wide", "0", False),
        ("wide", "False", False),
        ("wide", "true", True),
        ("lean", "0", False),
        ("lean", "1", True),
        ("lean", "false", False),
        ("mode", " Fast", "f"),
        ("name", "", ""),
        ("name", "anything at all", "anything at all"),
        ("kind", "b", 2),
        ("split", " +7 ", 7),
        ("split", "99", 8),
        ("split", "0", 2),
        ("split", "9" * 5000, 8),
    ],
)
def test_what_a_lever_knows(name: str, text: str, value: object) -> None:
    found = typed_lever(LEVERS[name], text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("name", "text", "accepted"),
    [
        ("wide", "Yes", "yes, 1, true, false"),
        ("wide", "", "yes, 1, true, false"),
        ("lean", "off", "0, true, false"),
        ("mode", "s", "slow, fast"),
        ("kind", "2", "a, b"),
        ("split", "-1", "a count from 2 to 8"),
        ("split", "8.0", "a count from 2 to 8"),
    ],
)
def test_what_a_lever_does_not_know(name: str, text: str, accepted: str) -> None:
    with pytest.raises(ArenagenError) as raised:
        typed_lever(LEVERS[name], text)
    assert str(raised.value) == f"--lever {name}={text}: give one of: {accepted}"


@pytest.mark.parametrize(
    ("name", "text", "value", "is_clamped"),
    [
        ("split", "9", 8, True),
        ("split", "1", 2, True),
        ("split", "008", 8, False),
        ("split", "+2", 2, False),
        ("kind", "a", 1, False),
        ("name", "9", "9", False),
    ],
)
def test_a_count_is_clamped(
    name: str, text: str, value: int | str, is_clamped: bool
) -> None:
    assert clamped(LEVERS[name], text, value) is is_clamped
