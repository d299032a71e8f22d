"""Where regions lie: what divides a formula, and which regions collide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from arenagen.check import check
from arenagen.divisors import Divisors
from arenagen.evaluate import EvaluationError, evaluate
from arenagen.formula import Binary, Call, Compare, Expr, IfElse, Int, Name, Unary
from arenagen.load import load
from arenagen.sizing import Inputs, Sizing
from arenagen.symbols import Symbols

HEAD = """
arena: {class: A, package: a, label: a, doc: An arena.}
limits:
  tokens: {symbol: M, tokens: true, doc: Tokens of a pass.}
  seqs: {LIMIT, doc: Sequences.}
config:
  width: {doc: A width.}
  heads: {doc: Heads.}
constants:
  TILE: {value: 16, doc: A tile.}
  BACK: {value: -6, doc: Negative.}
  TILES: {value: [8, 12, 64], doc: Tiles.}
let:
  padded: {value: "align(M, TILE)", doc: Padded tokens.}
  words: {value: 4 * width * M, doc: Words.}
functions:
  twice: {doc: Twice., parameters: {n: {doc: A count.}}, value: n * 2}
"""
SCHEMA = load(
    HEAD.replace("LIMIT, ", "")
    + "buffers: {b: {doc: B., bytes: padded + words + twice(BACK)}}\n",
    "a.yaml",
)
SYMBOLS = Symbols(SCHEMA)
NAMES = ("M", "seqs", "width", "heads", "TILE", "BACK", "padded", "words")


def _calls(inner: SearchStrategy[Expr]) -> SearchStrategy[Expr]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from("+-*"), inner, inner).map(lambda e: Binary(*e)),
        st.tuples(st.sampled_from(("//", "%")), inner, st.integers(1, 40)).map(
            lambda e: Binary(e[0], e[1], Int(e[2]))
        ),
        st.tuples(st.sampled_from(("min", "max")), two).map(lambda e: Call(*e)),
        st.tuples(st.sampled_from(("align", "cdiv")), inner, st.integers(1, 40)).map(
            lambda e: Call(e[0], (e[1], Int(e[2])))
        ),
        inner.map(lambda e: Call("twice", (e,))),
        inner.map(lambda e: Unary("-", e)),
        two.map(lambda e: IfElse(Compare(">", Name("width"), Int(9)), *e)),
        st.integers(0, 64).map(lambda n: Call("next_in", (Name("TILES"), Int(n)))),
    )


FORMULAS = st.recursive(
    st.one_of(st.integers(0, 300).map(Int), st.sampled_from(NAMES).map(Name)),
    _calls,
    max_leaves=12,
)
VALUES = st.integers(0, 1000)


@given(formula=FORMULAS, tokens=VALUES, seqs=VALUES, width=VALUES, heads=VALUES)
def test_what_is_said_to_divide_a_formula_divides_it(
    formula: Expr, tokens: int, seqs: int, width: int, heads: int
) -> None:
    inputs = Inputs(
        {"width": width, "heads": heads}, {"tokens": tokens, "seqs": seqs}, {}, {}
    )
    try:
        value = evaluate(formula, Sizing(SCHEMA, inputs))
    except EvaluationError:
        return
    divisors = Divisors(SYMBOLS)
    divisor = divisors.divisor(divisors.terms(formula))
    assert isinstance(value, int)
    assert value == 0 if divisor == 0 else value % divisor == 0
    # Where a condition fixes a name, what is shown holds for its number.
    fixed = Compare("==", Name("width"), Int(width))
    divisor = divisors.divisor(divisors.where(divisors.terms(formula), [fixed]))
    assert value == 0 if divisor == 0 else value % divisor == 0


@pytest.mark.parametrize(
    ("formula", "divisor"),
    [
        # 4 bytes of ids and 4 of weights for each of M * heads.
        ("4 * M * heads + 4 * M * heads", 8),
        ("(M + width) * 2 + 6 * (M - width)", 4),
        ("words + 8 * seqs", 4),
        ("padded * 3", 48),
        ("min(12 * M, 8 * seqs)", 4),
        ("twice(6 * M)", 12),
        ("(64 * M + 32) // 16", 2),
        ("64 * M // 128", 1),
        ("next_in(TILES, M)", 4),
        ("M - M", 0),
    ],
)
def test_divisors_by_hand(formula: str, divisor: int) -> None:
    text = f"buffers: {{b: {{doc: B., bytes: '{formula}'}}}}\n"
    schema = load(HEAD.replace("LIMIT, ", "") + text, "a.yaml")
    extent = schema.buffers[0].extent
    divisors = Divisors(Symbols(schema))
    terms = divisors.terms(extent.value.expr)  # type: ignore[union-attr]
    assert divisors.divisor(terms) == divisor


REGIONS = """
        positions: {dtype: u32, shape: [ROWS], doc: P.}
        seq_slot: {dtype: i32, shape: [ROWS], at: 128, doc: S.}
        slots: {dtype: i64, shape: [ROWS], at: 256, doc: S.}
        seq_lens: {dtype: i32, shape: [ROWS], at: 512, doc: L.}
        table: {dtype: i32, shape: [ROWS, width], at: 768, doc: T.}
"""


def overlaps(limit: str, rows: str) -> list[str]:
    """What is said of the block of fixed 32-row offsets for so many rows."""
    text = HEAD.replace("LIMIT", limit)
    text += "buffers:\n  meta:\n    doc: Metadata.\n    regions:"
    schema = load(text + REGIONS.replace("ROWS", rows), "a.yaml")
    return [each.message for each in check(schema) if each.code == "AR081"]


@pytest.mark.parametrize(
    ("limit", "rows", "at"),
    [
        ("minimum: 1", "64", "width=1"),
        ("minimum: 1", "seqs", "width=1, seqs=64"),
        ("minimum: 1, maximum: 64", '"max(32, seqs)"', "width=1, seqs=64"),
        ("minimum: 64, maximum: 64", "seqs", "width=1, seqs=64"),
        ("minimum: 1, default: 8", "8 * heads", "heads=8, width=1"),
    ],
)
def test_offsets_of_32_rows_used_for_64(limit: str, rows: str, at: str) -> None:
    """The block that spoilt its sequence lengths: slots end at 768, they begin at 512.

    Positions are 4 bytes of each row, slots 8: 64 rows of them are bytes [256, 768).
    """
    found = overlaps(limit, rows)
    assert found == [
        f"`positions` and `seq_slot` of `meta` both claim the bytes [128, 256) at {at}",
        f"`seq_slot` and `slots` of `meta` both claim the bytes [256, 384) at {at}",
        f"`slots` and `seq_lens` of `meta` both claim the bytes [512, 768) at {at}",
    ]


@pytest.mark.parametrize(
    ("limit", "rows"),
    [
        ("minimum: 1", "32"),
        ("minimum: 1, maximum: 32", "seqs"),
        ("minimum: 1", '"min(seqs, 32)"'),
    ],
)
def test_offsets_of_32_rows_used_for_32(limit: str, rows: str) -> None:
    assert overlaps(limit, rows) == []


def test_a_limit_between_two_powers_of_two_is_tried() -> None:
    # 33 rows of 4 bytes end at 132.
    assert overlaps("minimum: 1, maximum: 33", "seqs")[0] == (
        "`positions` and `seq_slot` of `meta` both claim the bytes [128, 132) "
        "at width=1, seqs=33"
    )


def counters(dtype: str, at: str, gate: str = "") -> list[str]:
    """What is said of a counter for each head with a word behind it."""
    text = HEAD.replace("LIMIT", "minimum: 1") + (
        "buffers:\n  launch:\n    doc: Counters.\n    regions:\n"
        f"      counters: {{dtype: {dtype}, {gate}shape: [heads], doc: C.}}\n"
        f"      word: {{at: {at}, bytes: 8, doc: W.}}\n"
    )
    schema = load(text, "a.yaml")
    return [each.message for each in check(schema) if each.code == "AR081"]


@pytest.mark.parametrize("at", [4, 252, 256, 512, 1024, 100_000, 1 << 21])
@pytest.mark.parametrize(("dtype", "nbytes"), [("u8", 1), ("bf16", 2), ("u32", 4)])
def test_counts_that_reach_a_fixed_place_are_tried(
    at: int, dtype: str, nbytes: int
) -> None:
    found = counters(dtype, str(at))
    if at // nbytes >= 1 << 20:
        # No model has so many of anything.
        assert found == []
        return
    assert len(found) == 1
    heads = int(found[0].rsplit("=", 1)[1])
    assert heads * nbytes > at
    assert f"both claim the bytes [{at}, " in found[0]


def test_a_place_by_a_name_and_a_count_that_a_gate_reads() -> None:
    assert counters("u32", "32 * TILE")[0].endswith("[512, 516) at heads=129")
    assert counters("u32", "seqs * 512")[0].endswith("heads=129, seqs=1")
    assert counters("u32", "256", "when: heads > 0, ")[0].endswith("at heads=65")
    assert counters("u32", "4 * heads", "when: heads > 0, ") == []


def test_two_inputs_at_once_are_tried() -> None:
    # Neither alone leaves 32 rows: 8 by 8 are 64.
    found = overlaps("minimum: 1, maximum: 16", '"min(seqs, 8) * min(heads, 8)"')
    assert found and "heads=8" in found[0]
