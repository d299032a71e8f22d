"""Wrapped lines, against the standard library's."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenagen.wrapping import wrapped

words = st.text('ab-\\"\N{BULLET}', min_size=1, max_size=12)
spaces = st.sampled_from([" "] * 12 + ["  ", "\n", "\t", "\N{NO-BREAK SPACE}"])
texts = st.lists(st.tuples(words, spaces)).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)


@given(st.one_of(texts, texts.map(str.strip)), st.integers(8, 30), st.integers(0, 4))
def test_lines_break_as_in_textwrap(text: str, width: int, less: int) -> None:
    indent = " " * less
    theirs = textwrap.wrap(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    ours = wrapped(text, width, width - less)
    assert ours[:1] + [indent + line for line in ours[1:]] == theirs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a", ["a"]),
        ("abcd ef", ["abcd ef"]),
        ("abcd efg", ["abcd", "efg"]),
        ("abcdefghij k", ["abcdefghij", "k"]),
        ("a bc def ghij klmno pq", ["a bc", "def", "ghij", "klmno", "pq"]),
    ],
)
def test_lines_are_as_long_as_they_may_be(text: str, expected: list[str]) -> None:
    assert wrapped(text, 7, 6) == expected
