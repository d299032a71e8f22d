"""Bounds of formulas: what is told holds for every input, and the rules one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_monotone import SYMBOLS, Inputs, formulas, inputs, still_gates

from arenagen.bounds import Bounds, Fact, Range, Undefined
from arenagen.evaluate import EvaluationError, Value, evaluate
from arenagen.formula import Compare, Expr, IfElse, Logic, Unary, parse, walk

INF = math.inf


def fact_of(text: str) -> Fact:
    return Bounds(SYMBOLS).fact(parse(text), {})


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("7", 7, 7),
        ("M", 0, INF),
        ("width", 0, INF),
        ("TILE", 16, 16),
        ("splits", 0, 16),
        ("policy", -2, 16),
        ("padded", 0, INF),
        ("spare", -INF, 100),
        ("-M", -INF, 0),
        ("M + 1", 1, INF),
        ("M - width", -INF, INF),
        ("splits * policy", -32, 256),
        ("splits // 2", 0, 8),
        ("policy // 4", -1, 4),
        ("M // policy", -INF, INF),
        ("100 // splits", 6, 100),
        ("1000 // M", 0, 1000),
        ("M % 16", 0, 15),
        ("splits % 17", 0, 16),
        ("policy % width", 0, INF),
        ("cdiv(splits, 3)", 0, 6),
        ("cdiv(1000, M)", 1, 1000),
        ("align(splits, 8)", 0, 23),
        ("min(M, 64)", 0, 64),
        ("max(splits, 4)", 4, 16),
        ("clamp(M, 3, splits)", 3, 16),
        ("next_in(TILES, splits)", 0, 64),
        ("next_in(TILES, 512)", 512, 512),
        ("len(kinds)", 0, INF),
        ("count(kinds, 'a')", 0, INF),
        ("twice(splits)", 0, 32),
        ("left(splits)", 34, 50),
        ("block(M)", 0, INF),
        ("1 if gated else splits", 0, 16),
        ("M if M > 5 else 5", 5, INF),
        ("5 if M > 5 else M", 0, 5),
        ("1 if M >= 0 else 9", 1, 1),
        ("width - 1 if width > 0 else 0", 0, INF),
        ("1 if gated and not gated else 2", 2, 2),
    ],
)
def test_every_rule_of_integers(text: str, low: float, high: float) -> None:
    assert fact_of(text) == Range(low, high)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("True", True),
        ("gated", None),
        ("M >= 0", True),
        ("M > -1", True),
        ("M < 0", False),
        ("M > 0", None),
        ("M == width", None),
        ("M == M", True),
        ("M + 1 != M + 1", False),
        ("splits == 17", False),
        ("splits != 17", True),
        ("splits <= 16", True),
        ("0 <= splits", True),
        ("TILE == 16", True),
        ("TILE in TILES", False),
        ("8 in TILES", True),
        ("policy in TILES", None),
        ("'a' == 'b'", False),
        ("not M < 0", True),
        ("M < 0 and gated", False),
        ("gated and M < 0", False),
        ("M >= 0 or gated", True),
        ("gated or not gated", True),
        ("gated and not gated", False),
        ("width > 5 and width < 3", False),
        ("width <= 5 or width >= 3", True),
        ("width > 0 and width == 0", False),
        ("width > 0 and M // width >= 0", None),
        ("width != 0 and width < 1", False),
        ("width == 3 and width == 4", False),
        ("not (width > 0 or width == 0)", False),
        ("(1 if gated else 2) > 0", True),
    ],
)
def test_every_rule_of_truth_values(text: str, truth: bool | None) -> None:
    assert fact_of(text) is truth


@pytest.mark.parametrize(
    ("text", "part", "why"),
    [
        ("M // (TILE - 16)", "M // (TILE - 16)", "the divisor is zero"),
        ("1 + M % (1 - 1)", "M % (1 - 1)", "the divisor is zero"),
        ("cdiv(M, 0 * 1)", "cdiv(M, 0 * 1)", "the divisor is zero"),
        ("align(M, BACK)", "align(M, BACK)", "the step is less than 1"),
        ("clamp(M, 5, 3)", "clamp(M, 5, 3)", "no integer lies between the bounds"),
        (
            "next_in(TILES, M + 513)",
            "next_in(TILES, M + 513)",
            "no element reaches 513",
        ),
    ],
)
def test_what_is_never_defined(text: str, part: str, why: str) -> None:
    with pytest.raises(Undefined) as raised:
        fact_of(text)
    start, end = raised.value.expr.at
    assert (text[start:end], raised.value.why) == (part, why)


@pytest.mark.parametrize(
    "text",
    [
        "M // 0 if M < 0 else 1",
        "M // (TILE - 16) if TILE > 16 else 1",
        "1 if TILE == 16 or M // (TILE - 16) > 0 else 2",
        "M // width",
    ],
)
def test_what_is_guarded_is_defined(text: str) -> None:
    assert isinstance(fact_of(text), Range)


def test_a_chain_of_products_stays_cheap() -> None:
    text = " * ".join(["9223372036854775807"] * 40)
    assert fact_of(text) == Range(2**160, INF)


class Sized(Inputs):
    """As sizes are computed: no layout has a negative one."""

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        value = super().call(name, arguments)
        if name in SYMBOLS.layouts and isinstance(value, int) and value < 0:
            raise EvaluationError("a negative size")
        return value


gates: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(
        still_gates,
        st.builds(
            Compare, st.sampled_from(["<", "<=", "==", "!=", ">"]), formulas, formulas
        ),
    ),
    lambda inner: st.one_of(
        st.builds(Unary, st.just("not"), inner),
        st.builds(Logic, st.sampled_from(["and", "or"]), st.tuples(inner, inner)),
    ),
    max_leaves=4,
)


@settings(max_examples=700)
@given(st.one_of(formulas, gates), st.lists(inputs, min_size=1), st.integers(0, 130))
def test_what_is_said_of_a_formula_holds(
    formula: Expr, many: list[Mapping[str, Value]], tokens: int
) -> None:
    try:
        fact = Bounds(SYMBOLS).fact(formula, {})
    except Undefined:
        # Told of a part; which is all there is to compute where nothing is chosen.
        if not any(isinstance(part, IfElse | Logic) for part in walk(formula)):
            for values in many:
                with pytest.raises(EvaluationError):
                    evaluate(formula, Sized(values, tokens))
        return
    for values in many:
        try:
            value = evaluate(formula, Sized(values, tokens))
        except EvaluationError:
            continue
        if isinstance(fact, Range):
            assert fact.low <= value <= fact.high  # type: ignore[operator]
        else:
            assert fact in (None, value)
