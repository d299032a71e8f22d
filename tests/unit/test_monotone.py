"""How formulas move with the token limit: what is called rising never falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenagen.check import check
from arenagen.evaluate import EvaluationError, Value, evaluate
from arenagen.formula import (
    Binary,
    Call,
    Compare,
    Expr,
    IfElse,
    Int,
    Logic,
    Name,
    Unary,
    parse,
)
from arenagen.load import load
from arenagen.monotone import Trend, trend
from arenagen.symbols import Symbols

TEXT = """
arena: {class: Arena, package: arena, label: arena, doc: An arena.}
limits:
  tokens: {symbol: M, tokens: true, doc: Tokens of a pass.}
  seqs: {doc: Sequences.}
config:
  width: {doc: A width.}
  heads: {doc: Heads.}
  gated: {type: bool, doc: A gate.}
  kinds: {type: list, doc: Kinds of layers.}
levers:
  splits:
    {variable: SPLITS, type: int, words: {auto: 2}, clamp: [1, 16], doc: Splits.}
  policy:
    {variable: POLICY, type: int, words: {auto: BACK}, clamp: [1, 16], doc: A policy.}
constants:
  TILE: {value: 16, doc: A tile.}
  BACK: {value: -2, doc: Negative.}
  TILES: {value: [0, 8, 64, 512], doc: Tiles.}
let:
  padded: {value: "align(M, TILE)", doc: Padded tokens.}
  spare: {value: 100 - M, doc: What is left.}
  many: {value: M > 5, doc: Whether there are many.}
  chain: {value: padded + padded, doc: Twice.}
functions:
  twice:
    {doc: Twice., parameters: {n: {doc: A count.}}, value: n * 2}
  left:
    {doc: What is left., parameters: {n: {doc: A count.}}, value: 50 - n}
  first:
    doc: The first of two.
    parameters: {n: {doc: A count.}, k: {doc: A count.}}
    value: n
layouts:
  block:
    doc: A block.
    parameters: {rows: {doc: Rows.}}
    let:
      late: early * 2
      early: rows + 1
    regions:
      ids: {dtype: u32, shape: [late, width], doc: Ids.}
      more: {dtype: u8, shape: [3], align: 8, doc: More.}
  shrinking:
    doc: A block that shrinks.
    parameters: {rows: {doc: Rows.}}
    regions:
      rest: {bytes: 900 - rows, doc: The rest.}
  nested:
    doc: A block in a block.
    parameters: {n: {doc: Rows.}}
    regions:
      head: {dtype: u8, shape: [n], doc: A head.}
      inner: {layout: block, arguments: {rows: n}, doc: A block.}
  hidden:
    doc: A shrinking block in a block.
    parameters: {n: {doc: Rows.}}
    regions:
      inner: {layout: shrinking, arguments: {rows: n}, doc: A block.}
  gated_block:
    doc: A block with a gate.
    parameters: {n: {doc: Rows.}}
    regions:
      head: {when: n > 5, dtype: u8, shape: [n], doc: A head.}
  placed:
    doc: A block at a place.
    parameters: {n: {doc: Rows.}}
    regions:
      head: {at: 800 - n, dtype: u8, shape: [4], doc: A head.}
buffers:
  pool:
    doc: Everything.
    dtype: u8
    shape: [chain, width, heads, seqs]
    when: gated and many and len(kinds) > 0 and spare > 0 and splits + policy > 0
"""
SCHEMA = load(TEXT, "monotone.yaml")
SYMBOLS = Symbols(SCHEMA)


def test_the_schema_of_these_tests_is_sound() -> None:
    assert [each for each in check(SCHEMA) if each.severity == "error"] == []


def trend_of(text: str) -> Trend:
    return trend(parse(text), "tokens", SYMBOLS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Names and literals
        ("7", "fixed"),
        ("True", "fixed"),
        ("'x'", "fixed"),
        ("M", "rising"),
        ("tokens", "rising"),
        ("seqs", "fixed"),
        ("width", "fixed"),
        ("splits", "fixed"),
        ("TILE", "fixed"),
        # Lets are followed
        ("padded", "rising"),
        ("spare", "falling"),
        ("many", "unknown"),
        ("chain", "rising"),
        # Signs and sums
        ("-width", "fixed"),
        ("-M", "falling"),
        ("-spare", "rising"),
        ("M + width", "rising"),
        ("width + heads", "fixed"),
        ("M + padded", "rising"),
        ("M + spare", "unknown"),
        ("M - width", "rising"),
        ("width - M", "falling"),
        ("M - spare", "rising"),
        ("M - padded", "unknown"),
        # Products
        ("M * width", "rising"),
        ("M * M", "rising"),
        ("spare * 2", "falling"),
        ("2 * spare", "falling"),
        ("(M - 10) * 2", "rising"),
        ("M * (width - heads)", "unknown"),
        ("M * BACK", "unknown"),
        ("M * policy", "unknown"),
        ("M * splits", "rising"),
        ("(0 - 1) * M", "unknown"),
        ("(M - 10) * (M - 10)", "unknown"),
        ("M * spare", "unknown"),
        ("(width - heads) * 2", "fixed"),
        # Divisions
        ("M // 2", "rising"),
        ("M // width", "rising"),
        ("M // (width - heads)", "unknown"),
        ("M // BACK", "unknown"),
        ("width // heads", "fixed"),
        ("width // (heads - 1)", "fixed"),
        ("width // M", "unknown"),
        ("spare // 2", "falling"),
        ("M % 16", "unknown"),
        ("width % 16", "fixed"),
        # Choices
        ("M if gated else width", "rising"),
        ("M if gated else 2 * M", "rising"),
        ("M if gated else spare", "unknown"),
        ("M if many else 0", "unknown"),
        ("M if M > 5 else 0", "unknown"),
        ("M if gated and width > 0 else 0", "rising"),
        ("M if gated and many else 0", "unknown"),
        ("M if not many else 0", "unknown"),
        # Calls
        ("max(M, width)", "rising"),
        ("min(M, width)", "rising"),
        ("min(spare, width)", "falling"),
        ("max(M, spare)", "unknown"),
        ("clamp(M, 1, width)", "rising"),
        ("clamp(width, 1, M)", "rising"),
        ("clamp(M, 1, spare)", "unknown"),
        ("align(M, 16)", "rising"),
        ("align(M, width)", "rising"),
        ("align(16, M)", "unknown"),
        ("cdiv(M, 16)", "rising"),
        ("cdiv(M, BACK)", "unknown"),
        ("cdiv(1000, M)", "unknown"),
        ("next_in(TILES, M)", "rising"),
        ("next_in(TILES, spare)", "falling"),
        ("next_in(TILES, width)", "fixed"),
        ("len(kinds)", "fixed"),
        ("count(kinds, 'a') * M", "rising"),
        # Products of calls: whether the other factor may be negative
        ("M * max(width - heads, 0)", "rising"),
        ("M * max(width - heads, BACK)", "unknown"),
        ("M * min(width, heads)", "rising"),
        ("M * min(width, policy)", "unknown"),
        ("M * clamp(width - heads, 0, 9)", "rising"),
        ("M * clamp(width - heads, -9, 9)", "unknown"),
        ("M * (width % 5)", "rising"),
        # Functions and layouts of the schema
        ("twice(M)", "rising"),
        ("twice(width)", "fixed"),
        ("left(M)", "falling"),
        ("left(spare)", "rising"),
        ("twice(left(M))", "falling"),
        ("first(M, spare)", "rising"),
        ("first(width, spare)", "fixed"),
        ("block(M)", "rising"),
        ("block(width)", "fixed"),
        ("block(spare)", "falling"),
        ("nested(M)", "rising"),
        ("shrinking(M)", "falling"),
        ("hidden(M)", "falling"),
        ("gated_block(M)", "unknown"),
        ("placed(M)", "falling"),
    ],
)
def test_every_rule(text: str, expected: Trend) -> None:
    assert trend_of(text) == expected


def test_another_limit_may_be_asked_about() -> None:
    assert trend(parse("seqs * width"), "seqs", SYMBOLS) == "rising"
    assert trend(parse("M * width"), "seqs", SYMBOLS) == "fixed"


def test_a_chain_of_lets_that_read_each_other_twice_is_followed_once() -> None:
    lines = ["  a0: {value: M, doc: First.}"]
    lines += [
        f"  a{level}: {{value: a{level - 1} + a{level - 1}, doc: Next.}}"
        for level in range(1, 60)
    ]
    text = TEXT.replace("let:\n", "let:\n" + "\n".join(lines) + "\n", 1)
    symbols = Symbols(load(text, "monotone.yaml"))
    assert trend(parse("a59"), "tokens", symbols) == "rising"


class Inputs:
    """A scope over the schema above, for one token limit."""

    def __init__(self, values: Mapping[str, Value], tokens: int) -> None:
        self.values = {**values, "tokens": tokens}

    def value(self, name: str) -> Value:
        name = SYMBOLS.canonical(name)
        if name in SYMBOLS.lets:
            return evaluate(SYMBOLS.lets[name].value.expr, self)
        if name in SYMBOLS.constants:
            return SYMBOLS.constants[name].value
        return self.values[name]

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        numbers = [value for value in arguments if isinstance(value, int)]
        if name == "block":
            (rows,) = numbers
            ids = 4 * (2 * (rows + 1)) * self.number("width")
            return -(-ids // 8) * 8 + 3
        if name == "nested":
            (rows,) = numbers
            return rows + int(self.call("block", [rows]))  # type: ignore[arg-type]
        if name == "twice":
            return 2 * numbers[0]
        if name == "left":
            return 50 - numbers[0]
        return numbers[0]

    def number(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int)
        return value


leaves: st.SearchStrategy[Expr] = st.one_of(
    st.integers(0, 9).map(Int),
    st.sampled_from(
        ["M", "tokens", "seqs", "width", "splits", "policy", "TILE", "BACK"]
    ).map(Name),
    st.sampled_from(["padded", "spare", "M", "M"]).map(Name),
)
still_gates: st.SearchStrategy[Expr] = st.one_of(
    st.just(Name("gated")),
    st.builds(Compare, st.just(">"), st.sampled_from(["width", "M"]).map(Name), leaves),
)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def call(names: list[str], count: int) -> st.SearchStrategy[Expr]:
        arguments = st.lists(inner, min_size=count, max_size=count).map(tuple)
        return st.builds(Call, st.sampled_from(names), arguments)

    gates = st.one_of(
        still_gates,
        st.builds(Unary, st.just("not"), still_gates),
        st.builds(Compare, st.sampled_from(["<", "==", ">="]), inner, inner),
        st.builds(Logic, st.just("and"), st.tuples(still_gates, still_gates)),
    )
    tiles = st.tuples(st.just(Name("TILES")), inner)
    return st.one_of(
        st.builds(Unary, st.just("-"), inner),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "//"]), inner, inner),
        st.builds(IfElse, gates, inner, inner),
        call(["min", "max", "align", "cdiv", "first"], 2),
        call(["clamp"], 3),
        call(["twice", "left", "block", "nested"], 1),
        st.builds(Call, st.just("next_in"), tiles),
    )


formulas: st.SearchStrategy[Expr] = st.recursive(leaves, _grown, max_leaves=8)
inputs = st.fixed_dictionaries(
    {
        "seqs": st.integers(0, 20),
        "width": st.integers(0, 20),
        "heads": st.integers(0, 20),
        "gated": st.booleans(),
        "splits": st.integers(1, 16),
        "policy": st.sampled_from([-2, 1, 3, 16]),
        "kinds": st.just(()),
    }
)


@settings(max_examples=700)
@given(formulas, inputs, st.lists(st.integers(0, 130), min_size=2, max_size=5))
def test_what_is_said_of_a_formula_holds(
    formula: Expr, values: Mapping[str, Value], tokens: list[int]
) -> None:
    claim = trend(formula, "tokens", SYMBOLS)
    found = []
    for count in sorted(tokens):
        try:
            value = evaluate(formula, Inputs(values, count))
        except EvaluationError:
            continue
        assert isinstance(value, int)
        found.append(value)
    if claim in ("rising", "fixed"):
        assert found == sorted(found)
    if claim in ("falling", "fixed"):
        assert found == sorted(found, reverse=True)
