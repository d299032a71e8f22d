"""Formulas as Python text: the text means what `evaluate` says, and fails with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenagen.emit import Emitter, never_less, positive_when, product
from arenagen.evaluate import EvaluationError, Value, evaluate
from arenagen.formula import (
    Binary,
    Bool,
    Call,
    Compare,
    Expr,
    IfElse,
    Int,
    Logic,
    Name,
    Str,
    Unary,
    parse,
    spell,
)
from runtime import numeric
from runtime.errors import SizeError

# Names that no check keeps from being negative are in small letters; STEP and BACK
# are constants.
COUNTS = ("heads", "width", "tokens")
SIGNED = ("split", "other")
CONSTANTS = {"STEP": 16, "BACK": -2, "NONE": 0}
KINDS = ("dense", "sparse", "other")
TILES = (-8, 1, 4, 16, 64)
HELPERS = {
    name: getattr(numeric, name)
    for name in ("align", "cdiv", "clamp", "floordiv", "modulo", "next_in")
}


def emitter(helpers: Sequence[str] = ()) -> Emitter:
    def call(name: str, arguments: tuple[Expr, ...]) -> Expr:
        return Call(f"own_{name}", arguments)

    return Emitter(Name, call, CONSTANTS, lambda name: name in COUNTS)


def emitted(text: str, facts: frozenset[str] = frozenset()) -> str:
    return emitter().text(parse(text), "what", facts)


class Values:
    """The scope of `evaluate`: a mapping, and one function that doubles."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values

    def value(self, name: str) -> Value:
        return self.values[name]

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        (number,) = arguments
        assert isinstance(number, int)
        return 2 * number


@pytest.mark.parametrize(
    ("formula", "python"),
    [
        ("tokens * width + 1", "tokens * width + 1"),
        ("align(tokens, 16)", "(tokens + 15) // 16 * 16"),
        ("align(tokens, STEP)", "(tokens + STEP - 1) // STEP * STEP"),
        ("align(tokens, 1)", "tokens * 1"),
        ("cdiv(tokens, 16)", "(tokens + 15) // 16"),
        ("cdiv(tokens, 1)", "tokens"),
        ("cdiv(tokens, STEP)", "(tokens + STEP - 1) // STEP"),
        ("cdiv(tokens + 1, max(width, 1))", "-(-(tokens + 1) // max(width, 1))"),
        (
            "align(tokens, max(width, 1))",
            "-(-tokens // max(width, 1)) * max(width, 1)",
        ),
        ("align(tokens, width)", 'align(tokens, width, "what: align(tokens, width)")'),
        ("cdiv(tokens, BACK)", 'cdiv(tokens, BACK, "what: cdiv(tokens, BACK)")'),
        ("cdiv(tokens, -2)", 'cdiv(tokens, -2, "what: cdiv(tokens, -2)")'),
        ("clamp(tokens, 1, 16)", "min(max(tokens, 1), 16)"),
        ("clamp(tokens, BACK, STEP)", "min(max(tokens, BACK), STEP)"),
        (
            "clamp(tokens, 1, width)",
            'clamp(tokens, 1, width, "what: clamp(tokens, 1, width)")',
        ),
        (
            "clamp(tokens, STEP, BACK)",
            'clamp(tokens, STEP, BACK, "what: clamp(tokens, STEP, BACK)")',
        ),
        ("max(tokens)", "tokens"),
        ("min(tokens, 1)", "min(tokens, 1)"),
        ("len(kinds)", "len(kinds)"),
        ("count(kinds, 'dense')", 'kinds.count("dense")'),
        (
            "count(kinds, 'dense', word)",
            'kinds.count("dense") + kinds.count(word)',
        ),
        ("2 * count(kinds, 'a', 'b')", '2 * (kinds.count("a") + kinds.count("b"))'),
        (
            "next_in(TILES, tokens)",
            'next_in(TILES, tokens, "what: next_in(TILES, tokens)")',
        ),
        ("twice(tokens)", "own_twice(tokens)"),
    ],
)
def test_calls_are_written_out_where_that_is_sure(formula: str, python: str) -> None:
    assert emitted(formula) == python


@pytest.mark.parametrize(
    ("formula", "python"),
    [
        ("tokens // 2", "tokens // 2"),
        ("tokens % STEP", "tokens % STEP"),
        ("tokens // width", 'floordiv(tokens, width, "what: tokens // width")'),
        ("tokens % width", 'modulo(tokens, width, "what: tokens % width")'),
        ("tokens // NONE", 'floordiv(tokens, NONE, "what: tokens // NONE")'),
        ("tokens // BACK", 'floordiv(tokens, BACK, "what: tokens // BACK")'),
        ("tokens // (width + 1)", "tokens // (width + 1)"),
        (
            "tokens // (split + 1)",
            'floordiv(tokens, split + 1, "what: tokens // (split + 1)")',
        ),
        ("tokens // (1 + heads * width)", "tokens // (1 + heads * width)"),
        ("tokens // max(split, 1)", "tokens // max(split, 1)"),
        ("tokens // min(2, STEP)", "tokens // min(2, STEP)"),
        (
            "tokens // min(2, width)",
            'floordiv(tokens, min(2, width), "what: tokens // min(2, width)")',
        ),
        ("tokens // align(1 + width, 16)", "tokens // ((1 + width + 15) // 16 * 16)"),
        ("tokens // (2 - 1)", 'floordiv(tokens, 2 - 1, "what: tokens // (2 - 1)")'),
        ("tokens // width if width > 0 else 0", "tokens // width if width > 0 else 0"),
        ("tokens // width if 0 < width else 0", "tokens // width if width > 0 else 0"),
        (
            "tokens // width if width != 0 else 0",
            "tokens // width if width != 0 else 0",
        ),
        (
            "tokens // split if split != 0 else 0",
            "tokens // split if split != 0 else 0",
        ),
        (
            "0 if width == 0 else tokens // width",
            "0 if width == 0 else tokens // width",
        ),
        (
            "0 if width <= 0 else tokens // width",
            "0 if width <= 0 else tokens // width",
        ),
        (
            "0 if not width > 0 else tokens // width",
            "0 if width <= 0 else tokens // width",
        ),
        (
            "tokens // width if width >= 2 else 0",
            "tokens // width if width >= 2 else 0",
        ),
        (
            "tokens // width if width >= 0 else 0",
            'floordiv(tokens, width, "what: tokens // width") if width >= 0 else 0',
        ),
        (
            "0 if width > 0 else tokens // width",
            '0 if width > 0 else floordiv(tokens, width, "what: tokens // width")',
        ),
        (
            "tokens // width if width > 0 and heads > 0 else 0",
            "tokens // width if width > 0 and heads > 0 else 0",
        ),
        (
            "tokens // width if width > 0 or heads > 0 else 0",
            'floordiv(tokens, width, "what: tokens // width") '
            "if width > 0 or heads > 0 else 0",
        ),
        (
            "0 if width == 0 or heads == 0 else tokens // (width * heads)",
            "0 if width == 0 or heads == 0 else tokens // (width * heads)",
        ),
        ("width > 0 and tokens // width > 2", "width > 0 and tokens // width > 2"),
        ("width == 0 or tokens // width > 2", "width == 0 or tokens // width > 2"),
        (
            "tokens // width > 2 and width > 0",
            'floordiv(tokens, width, "what: tokens // width") > 2 and width > 0',
        ),
        (
            "tokens // (width if width > 0 else 1)",
            "tokens // (width if width > 0 else 1)",
        ),
        (
            "align(tokens, split) if split > 0 else 0",
            "(tokens + split - 1) // split * split if split > 0 else 0",
        ),
        (
            "align(tokens, split) if split != 0 else 0",
            'align(tokens, split, "what: align(tokens, split)") if split != 0 else 0',
        ),
        (
            "align(tokens, width) if width != 0 else 0",
            "(tokens + width - 1) // width * width if width != 0 else 0",
        ),
    ],
)
def test_a_division_is_written_out_where_its_divisor_is_sure(
    formula: str, python: str
) -> None:
    assert emitted(formula) == python


def test_facts_from_outside_count_like_those_of_a_gate() -> None:
    assert emitted("tokens // width", frozenset({"width"})) == "tokens // width"
    assert emitted("tokens // heads", frozenset({"width"})).startswith("floordiv")


def test_the_helpers_that_a_text_needs_are_collected() -> None:
    writer = emitter()
    writer.text(parse("align(1, 2) + cdiv(1, width) + 7 % 2"), "a")
    assert writer.helpers == {"cdiv"}
    writer.text(parse("next_in(TILES, 7 // width)"), "b")
    assert writer.helpers == {"cdiv", "floordiv", "next_in"}


@pytest.mark.parametrize(
    ("formula", "python"),
    [
        ("not width == 2", "width != 2"),
        ("not width < 2", "width >= 2"),
        ("not word in kinds", "word not in kinds"),
        ("not not width > 2", "width > 2"),
        ("not (width > 2 and heads > 2)", "not (width > 2 and heads > 2)"),
        ("2 < width", "width > 2"),
        ("2 == width", "width == 2"),
        ("-2 >= width", "width <= -2"),
        ("STEP <= width", "width >= STEP"),
        ("2 * STEP > width", "width < 2 * STEP"),
        ("2 > STEP", "STEP < 2"),
        ("'dense' == word", 'word == "dense"'),
        ("'dense' in kinds", '"dense" in kinds'),
        ("STEP > 2", "STEP > 2"),
        ("2 * width > heads", "2 * width > heads"),
        ("True if width > 2 else False", "width > 2"),
        ("False if width > 2 else True", "width <= 2"),
        (
            "width > 2 and heads > 2 or tokens > 2",
            "(width > 2 and heads > 2) or tokens > 2",
        ),
    ],
)
def test_conditions_are_written_as_ruff_wants_them(formula: str, python: str) -> None:
    assert emitted(formula) == python


@pytest.mark.parametrize(
    ("condition", "when_true", "when_false"),
    [
        ("n > 0", {"n"}, set()),
        ("n >= 1", {"n"}, set()),
        ("n > 7", {"n"}, set()),
        ("n == 7", {"n"}, set()),
        ("n == 0", set(), {"n != 0"}),
        ("n != 0", {"n != 0"}, set()),
        ("n <= 0", set(), {"n"}),
        ("0 < n", {"n"}, set()),
        ("0 >= n", set(), {"n"}),
        ("n >= 0", set(), set()),
        ("n < 7", set(), set()),
        ("n + 1 > 0", set(), set()),
        ("not n > 0", set(), {"n"}),
        ("n > 0 and m > 0", {"n", "m"}, set()),
        ("n == 0 or m == 0", set(), {"n != 0", "m != 0"}),
        ("n > 0 or m > 0", set(), set()),
        ("n in tiles", set(), set()),
    ],
)
def test_what_a_condition_says_of_its_names(
    condition: str, when_true: set[str], when_false: set[str]
) -> None:
    assert positive_when(parse(condition), True) == when_true
    assert positive_when(parse(condition), False) == when_false


def test_a_product_leaves_out_the_ones() -> None:
    one, two, width = Int(1), Int(2), Name("width")
    assert spell(product([])) == "1"
    assert spell(product([one, one])) == "1"
    assert spell(product([one, width, one, two])) == "width * 2"
    assert spell(product([Binary("+", width, one), two])) == "(width + 1) * 2"


# The text against the tree

numbers: st.SearchStrategy[Expr] = st.one_of(
    st.integers(0, 20).map(Int),
    st.sampled_from([*COUNTS, *SIGNED, *CONSTANTS]).map(Name),
)
texts: st.SearchStrategy[Expr] = st.one_of(
    st.sampled_from(KINDS).map(Str), st.just(Name("word"))
)
truths: st.SearchStrategy[Expr] = st.one_of(
    st.booleans().map(Bool), st.just(Name("gated"))
)


def _call(name: str, *arguments: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.tuples(*arguments).map(lambda parts: Call(name, tuple(parts)))


def _formulas(depth: int) -> tuple[st.SearchStrategy[Expr], st.SearchStrategy[Expr]]:
    """Integer and truth formulas that `infer` would pass."""
    if depth == 0:
        return numbers, truths
    number, truth = _formulas(depth - 1)
    several = st.lists(number, min_size=1, max_size=3).map(tuple)
    words = st.lists(texts, min_size=1, max_size=3)
    kinds, tiles = st.just(Name("kinds")), st.just(Name("TILES"))
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    integers: st.SearchStrategy[Expr] = st.one_of(
        number,
        st.builds(Unary, st.just("-"), number),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "%"]), number, number),
        st.builds(IfElse, truth, number, number),
        st.builds(Call, st.sampled_from(["min", "max"]), several),
        _call("align", number, number),
        _call("cdiv", number, number),
        _call("clamp", number, number, number),
        _call("next_in", tiles, number),
        _call("len", kinds),
        _call("twice", number),
        words.map(lambda items: Call("count", (Name("kinds"), *items))),
    )
    conditions: st.SearchStrategy[Expr] = st.one_of(
        truth,
        st.builds(Compare, order, number, number),
        st.builds(Compare, order, st.sampled_from(COUNTS).map(Name), st.just(Int(0))),
        st.builds(Compare, st.sampled_from(["in", "not in"]), texts, kinds),
        st.builds(Compare, st.sampled_from(["in", "not in"]), number, tiles),
        st.builds(Unary, st.just("not"), truth),
        st.builds(
            Logic,
            st.sampled_from(["and", "or"]),
            st.lists(truth, min_size=2, max_size=3).map(tuple),
        ),
    )
    return integers, conditions


formulas, gates = _formulas(3)
inputs = st.fixed_dictionaries(
    {
        **dict.fromkeys(COUNTS, st.integers(0, 40)),
        **dict.fromkeys(SIGNED, st.integers(-5, 20)),
        "gated": st.booleans(),
        "word": st.sampled_from(KINDS),
        "kinds": st.lists(st.sampled_from(KINDS), max_size=6).map(tuple),
        "TILES": st.just(TILES),
        **{name: st.just(value) for name, value in CONSTANTS.items()},
    }
)


def outcome_of_tree(tree: Expr, values: Mapping[str, Value]) -> Value | None:
    """The value, or None where there is none."""
    try:
        return evaluate(tree, Values(values))
    except EvaluationError:
        return None


def outcome_of_text(text: str, values: Mapping[str, Any]) -> Value | None:
    """What Python makes of the text; only a SizeError may be raised."""
    scope = {**HELPERS, **values, "own_twice": lambda number: 2 * number}
    try:
        value: Value = eval(
            text, {"__builtins__": {"min": min, "max": max, "len": len}}, scope
        )
    except SizeError:
        return None
    return value


@settings(max_examples=1500)
@given(formulas, inputs)
def test_the_text_gives_what_the_tree_gives(
    tree: Expr, values: Mapping[str, Value]
) -> None:
    text = emitter().text(tree, "what")
    assert outcome_of_text(text, values) == outcome_of_tree(tree, values)


@settings(max_examples=500)
@given(gates, inputs)
def test_the_text_of_a_gate_gives_what_the_tree_gives(
    tree: Expr, values: Mapping[str, Value]
) -> None:
    text = emitter().text(tree, "what")
    found = outcome_of_text(text, values)
    assert (type(found), found) == (
        type(outcome_of_tree(tree, values)),
        outcome_of_tree(tree, values),
    )


@settings(max_examples=500)
@given(st.sampled_from(COUNTS), formulas, inputs)
def test_the_text_behind_a_gate_gives_what_the_tree_gives(
    name: str, tree: Expr, values: Mapping[str, Value]
) -> None:
    for condition in (
        Compare(">", Name(name), Int(0)),
        Compare("!=", Name(name), Int(0)),
        Compare("==", Name(name), Int(3)),
    ):
        if not evaluate(condition, Values(values)):
            continue
        facts = positive_when(condition, True)
        text = emitter().text(tree, "what", facts)
        assert outcome_of_text(text, values) == outcome_of_tree(tree, values)


@settings(max_examples=500)
@given(formulas, inputs)
def test_what_is_shown_positive_is_positive(
    tree: Expr, values: Mapping[str, Value]
) -> None:
    value = outcome_of_tree(tree, values)
    if value is None:
        return
    assert isinstance(value, int)
    writer = emitter()
    if writer.positive(tree, frozenset()):
        assert value > 0
    if writer.nonzero(tree, frozenset()):
        assert value != 0
    if writer.at_least_0(tree):
        assert value >= 0


# Bounds


@pytest.mark.parametrize(
    ("left", "right", "shown"),
    [
        ("7", "7", True),
        ("7", "8", False),
        ("24 * heads", "20 * heads", True),
        ("20 * heads", "24 * heads", False),
        ("heads + width", "heads", True),
        ("heads - width", "heads", False),
        ("2 * (heads + 3)", "heads * 2 + 6", True),
        ("heads * width + heads", "width * heads", True),
        ("STEP * heads", "16 * heads", True),
        ("BACK + heads", "heads", False),
        ("64 + split", "64", False),
        ("64 + split", "split + 60", True),
        ("100 + -heads", "50", False),
        ("100 - -heads", "50", True),
        ("64 + max(heads, 1)", "64", False),
        ("64 + max(heads, 1)", "max(heads, 1)", True),
        ("64 + twice(heads)", "64", False),
        ("heads * split", "0", False),
    ],
)
def test_a_bound_is_shown_or_not(left: str, right: str, shown: bool) -> None:
    found = never_less(
        parse(left), parse(right), CONSTANTS, lambda name: name in COUNTS
    )
    assert found == shown


@settings(max_examples=500, deadline=None)
@given(formulas, formulas, formulas, inputs)
def test_a_bound_that_is_shown_holds(
    left: Expr, right: Expr, more: Expr, values: Mapping[str, Value]
) -> None:
    # A common part makes bounds that can be shown.
    for high, low in ((left, right), (Binary("+", left, more), left)):
        if never_less(high, low, CONSTANTS, lambda name: name in COUNTS):
            above, below = outcome_of_tree(high, values), outcome_of_tree(low, values)
            if isinstance(above, int) and isinstance(below, int):
                assert above >= below


def test_a_size_is_checked_where_it_may_be_negative() -> None:
    def natural(text: str) -> str:
        return spell(emitter().natural(parse(text), "what"))

    assert natural("heads * width") == "heads * width"
    assert natural("heads - 1") == 'natural(heads - 1, "what: heads - 1")'
    assert natural("split") == 'natural(split, "what: split")'
    assert natural("max(split, 0)") == "max(split, 0)"
    assert "natural" not in natural("next_in(TILES, heads)")
    assert "natural" in natural("next_in(TILES, split)")


def test_counts_of_a_call_are_checked_one_by_one() -> None:
    writer = Emitter(
        Name,
        Call,
        CONSTANTS,
        lambda name: name in COUNTS,
        counts=lambda name: (True, False) if name == "block" else (),
    )
    assert writer.text(parse("block(heads - 1, gated)"), "what") == (
        'block(natural(heads - 1, "what: heads - 1"), gated)'
    )
    assert writer.text(parse("block(heads, split > 1)"), "what") == (
        "block(heads, split > 1)"
    )
    assert writer.text(parse("twice(heads - 1)"), "what") == "twice(heads - 1)"


@pytest.mark.parametrize(
    ("formula", "checked"),
    [
        ("policy", True),
        ("heads if policy == BACK else policy", True),
        ("heads if policy == BACK else width if policy == -1 else policy", True),
        ("heads if policy == BACK else width if policy == LESS else policy", False),
        ("policy if policy != LESS else 3", True),
        ("heads if policy == LESS else policy * 2 if policy != BACK else 1", False),
        ("policy if policy == BACK else heads", True),
        ("heads if policy == LESS else other if policy == BACK else policy", True),
    ],
)
def test_a_name_is_a_size_where_its_negative_values_are_told_apart(
    formula: str, checked: bool
) -> None:
    """`policy` is -2 at least, and `-1` is no constant but a negation."""
    emitter = Emitter(
        Name,
        Call,
        {"BACK": -2, "LESS": -1},
        lambda name: name in COUNTS,
        least=lambda name: {"policy": -2}.get(name),
    )
    tree = emitter.natural(parse(formula), "what")
    assert (isinstance(tree, Call) and tree.name == "natural") == checked
