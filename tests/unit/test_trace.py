"""How formulas come to their values: by hand, and against the evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from arenagen.evaluate import EvaluationError, Value, evaluate
from arenagen.formula import parse, spell
from arenagen.load import load
from arenagen.sizing import Sizing, complete_inputs
from arenagen.trace import evaluated, value_text, work
from strategies import configs, limits

ROOT = Path(__file__).resolve().parents[2]
METRALE = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")


class Given:
    """A scope of some names; `double` is its only function."""

    def __init__(self, **values: Value) -> None:
        self.values = values

    def value(self, name: str) -> Value:
        return self.values[name]

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        assert name == "double"
        (number,) = arguments
        assert isinstance(number, int)
        return 2 * number


class OnlyLists:
    """A scope for texts in which numbers stand for all names but those of lists."""

    def __init__(self, scope: Sizing) -> None:
        self.scope = scope

    def value(self, name: str) -> Value:
        value = self.scope.value(name)
        assert isinstance(value, tuple), name
        return value

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        raise AssertionError(name)


SCOPE = Given(
    a=7, b=3, zero=0, on=True, off=False, kind="moe", kinds=("moe", "mlp"), steps=(1, 4)
)


@pytest.mark.parametrize(
    "formula, chain",
    [
        ("a", ["a", "7"]),
        ("12", ["12"]),
        ("a * b", ["a * b", "7 * 3", "21"]),
        (
            "align(max(a, b), 4)",
            ["align(max(a, b), 4)", "align(max(7, 3), 4)", "align(7, 4)", "8"],
        ),
        # A sum has three parts, of which the last is a product.
        (
            "a + b - a * b",
            ["a + b - a * b", "7 + 3 - 7 * 3", "7 + 3 - 21", "-11"],
        ),
        ("a * (b + 1)", ["a * (b + 1)", "7 * (3 + 1)", "7 * 4", "28"]),
        ("a - (b - 1)", ["a - (b - 1)", "7 - (3 - 1)", "7 - 2", "5"]),
        ("a // b // 2", ["a // b // 2", "7 // 3 // 2", "2 // 2", "1"]),
        ("-a", ["-a", "-7"]),
        ("(b - a) * b", ["(b - a) * b", "(3 - 7) * 3", "-4 * 3", "-12"]),
        # What is not looked at keeps its names: it may have no value.
        (
            "a // zero if zero > 0 else b",
            ["a // zero if zero > 0 else b", "a // zero if 0 > 0 else 3", "3"],
        ),
        (
            "a + 1 if on else a // zero",
            [
                "a + 1 if on else a // zero",
                "7 + 1 if True else a // zero",
                "7 + 1",
                "8",
            ],
        ),
        (
            "off and a // zero > 1",
            ["off and a // zero > 1", "False and a // zero > 1", "False"],
        ),
        (
            "on or a // zero > 1",
            ["on or a // zero > 1", "True or a // zero > 1", "True"],
        ),
        ("kind in kinds", ["kind in kinds", '"moe" in kinds', "True"]),
        (
            "count(kinds, 'moe') * len(kinds)",
            ['count(kinds, "moe") * len(kinds)', "1 * 2", "2"],
        ),
        ("next_in(steps, b)", ["next_in(steps, b)", "4"]),
        ("double(a + 1) + 1", ["double(a + 1) + 1", "16 + 1", "17"]),
        ("not on", ["not on", "not True", "False"]),
        ("kind == 'a\"b'", ["kind == 'a\"b'", '"moe" == \'a"b\'', "False"]),
    ],
)
def test_a_chain_by_hand(formula: str, chain: list[str]) -> None:
    worked = work(parse(formula), SCOPE)
    texts = [*worked.chain]
    if texts[-1] != value_text(worked.value):
        texts.append(value_text(worked.value))
    assert texts == chain


def test_what_is_not_looked_at_is_not_among_the_parts() -> None:
    expr = parse("a if on else double(b)")
    assert [spell(each) for each in evaluated(expr, SCOPE)] == ["on", "a", spell(expr)]
    expr = parse("off and double(b) > 0")
    assert [spell(each) for each in evaluated(expr, SCOPE)] == ["off", spell(expr)]


def test_a_formula_without_a_value_has_no_chain() -> None:
    with pytest.raises(EvaluationError, match="divides 7 by zero"):
        work(parse("a // zero"), SCOPE)


@settings(max_examples=60, deadline=None)
@given(configs(), limits())
def test_every_text_of_a_chain_has_the_value_of_the_formula(
    config: dict[str, Any], limits: dict[str, int]
) -> None:
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()}
    scope = Sizing(METRALE, complete_inputs(METRALE, fields, limits, {}, {}))
    for let in METRALE.lets:
        worked = work(let.value.expr, scope)
        assert worked.value == evaluate(let.value.expr, scope)
        for text in worked.chain[1:]:
            assert evaluate(parse(text), OnlyLists(scope)) == worked.value, text
