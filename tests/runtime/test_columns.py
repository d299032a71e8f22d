"""Arithmetic over columns: that of ints at every point, and bounds around all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import columns, numeric
from runtime.columns import Bounds, Unsure
from runtime.errors import SizeError

VALUES = (3, 5, 8, 21)
SMALL = st.integers(-60, 60)
Work = Callable[..., Any]


def ascending(value: int) -> int:
    return numeric.next_in(VALUES, value, "values")


# What is done to columns, and the same to the ints of one point.
WORKS: dict[str, tuple[Work, Work]] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "add an int": (lambda a, b: 7 + a + 3, lambda a, b: a + 10),
    "subtract": (lambda a, b: a - b, lambda a, b: a - b),
    "subtract from an int": (lambda a, b: 9 - a, lambda a, b: 9 - a),
    "negate": (lambda a, b: -a, lambda a, b: -a),
    "multiply": (lambda a, b: a * b, lambda a, b: a * b),
    "multiply an int": (lambda a, b: -3 * a, lambda a, b: -3 * a),
    "floordiv": (
        columns.floordiv,
        lambda a, b: numeric.floordiv(a, b, "x"),
    ),
    "floordiv of an int": (
        lambda a, b: columns.floordiv(50, b),
        lambda a, b: numeric.floordiv(50, b, "x"),
    ),
    "floordiv by an int": (lambda a, b: a // 7, lambda a, b: a // 7),
    "modulo": (columns.modulo, lambda a, b: numeric.modulo(a, b, "x")),
    "modulo of an int": (
        lambda a, b: columns.modulo(50, b),
        lambda a, b: numeric.modulo(50, b, "x"),
    ),
    "cdiv": (columns.cdiv, numeric.cdiv),
    "align": (columns.align, numeric.align),
    "natural": (
        lambda a, b: columns.natural(a),
        lambda a, b: numeric.natural(a, "x"),
    ),
    "behind": (columns.behind, lambda a, b: numeric.behind(a, b, "x")),
    "clamp": (
        lambda a, b: columns.clamp(a, b, 20),
        lambda a, b: numeric.clamp(a, b, 20),
    ),
    "next_in": (
        lambda a, b: columns.next_in(VALUES, a),
        lambda a, b: ascending(a),
    ),
    "largest": (lambda a, b: columns.largest(a, 4, b, 9), lambda a, b: max(a, 9, b)),
    "smallest": (lambda a, b: columns.smallest(4, a, b), lambda a, b: min(a, 4, b)),
    "where": (
        lambda a, b: columns.where(a > b, a * 2, b - a),
        lambda a, b: a * 2 if a > b else b - a,
    ),
    "where not": (
        lambda a, b: columns.where(columns.negated(a == b), 1, b),
        lambda a, b: 1 if a != b else b,
    ),
    "both": (
        lambda a, b: columns.where(columns.both(a >= 0, b < 9, a != 4), a, 0),
        lambda a, b: a if a >= 0 and b < 9 and a != 4 else 0,
    ),
    "either": (
        lambda a, b: columns.where(columns.either(a <= 0, True, b == 2), a, 0),
        lambda a, b: a,
    ),
    "contains": (
        lambda a, b: columns.where(columns.contains(VALUES, a), 1, 0),
        lambda a, b: 1 if a in VALUES else 0,
    ),
}


def alone(work: Work, points: list[tuple[int, int]]) -> list[int] | None:
    """What each point gives by itself; None where one gives nothing."""
    try:
        return [work(*point) for point in points]
    except SizeError:
        return None


@pytest.mark.parametrize("name", WORKS)
@settings(max_examples=60, derandomize=True, database=None)
@given(points=st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=20))
def test_columns_hold_what_every_point_gives(
    name: str, points: list[tuple[int, int]]
) -> None:
    over_columns, over_ints = WORKS[name]
    wanted = alone(over_ints, points)
    first, second = np.array(points, np.int64).T
    try:
        with np.errstate(divide="ignore"):
            found = np.broadcast_to(over_columns(first, second), first.shape)
    except Unsure:
        assert wanted is None
        return
    assert found.dtype == np.int64
    assert found.tolist() == wanted


@pytest.mark.parametrize("name", WORKS)
@settings(max_examples=60, derandomize=True, database=None)
@given(points=st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=20))
def test_bounds_hold_every_point(name: str, points: list[tuple[int, int]]) -> None:
    over_columns, over_ints = WORKS[name]
    sides = [Bounds(min(side), max(side)) for side in zip(*points, strict=True)]
    bounds = over_columns(*sides)
    assert bounds.reach >= max(abs(bounds.low), abs(bounds.high))
    for point in points:
        with np.errstate(divide="ignore"):
            try:
                value = over_columns(*np.array([point], np.int64).T)[0]
            except Unsure:
                continue
        assert bounds.low <= value <= bounds.high
        if (wanted := alone(over_ints, [point])) is not None:
            assert bounds.low <= wanted[0] <= bounds.high


@pytest.mark.parametrize("name", WORKS)
def test_ints_stay_ints(name: str) -> None:
    over_columns, over_ints = WORKS[name]
    for point in ((6, 5), (-7, 3), (4, 4), (21, 2)):
        wanted = alone(over_ints, [point])
        try:
            found = [over_columns(*point)]
        except Unsure:
            found = None
        assert found == wanted
        assert found is None or type(found[0]) is int


def test_a_division_by_zero_that_a_gate_leaves_out_is_within_bounds() -> None:
    for low, high in ((0, 0), (0, 4), (-2, 2)):
        divisor = np.arange(low, high + 1)
        quotient, rest = Bounds(-9, 40) // Bounds(low, high), Bounds(0, 9) % Bounds(
            0, 4
        )
        with np.errstate(divide="ignore"):
            for value in (-9, 0, 40):
                found = value // divisor
                assert found.min() >= quotient.low and found.max() <= quotient.high
        assert (rest.low, rest.high) == (0, 4)


@pytest.mark.parametrize(
    "work",
    [
        lambda m: m * 2**60 // 2**60,
        lambda m: m * 2**60 % 7,
        lambda m: columns.smallest(m * 2**60, 7),
        lambda m: columns.largest(m * -(2**60), 7),
        lambda m: columns.where(m * 2**60 > 5, 1, 2),
        lambda m: columns.where(m * 2**60 == 5, 1, 2),
        lambda m: columns.where(m > 1, m * 2**60, 2),
        lambda m: columns.where(m > 1, 0, m - 2**64),
        lambda m: columns.where(columns.both(m > 1, m * 2**60 > 9), 1, 2),
        lambda m: columns.where(columns.either(m > 1, m > 2**63), 1, 2),
        lambda m: columns.where(columns.contains(VALUES, m * 2**60), 1, 2),
        lambda m: columns.where(columns.negated(2**60 * m > 5), 1, 2),
        lambda m: columns.natural(m * 2**60) * 0,
        lambda m: columns.behind(m, m * -(2**60)),
        lambda m: columns.next_in(VALUES, m * 2**60),
        lambda m: columns.clamp(m * 2**60, 1, 9),
        lambda m: -(-m * 2**60) * 0 + 4,
        lambda m: 2**63 // m,
        lambda m: 5 % (m * 2**60),
        lambda m: 9 - m * 2**60 + m * 2**60,
        lambda m: columns.align(m, 2**63),
    ],
)
def test_reach_is_that_of_all_on_the_way(work: Work) -> None:
    assert work(Bounds(1, 8)).reach >= 2**63


def test_bounds_decide_nothing() -> None:
    bounds = Bounds(1, 2)
    with pytest.raises(TypeError, match="Bounds decide nothing"):
        max(bounds, 3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(bounds)


def test_nothing_is_next_in_an_empty_list() -> None:
    with pytest.raises(Unsure):
        columns.next_in((), Bounds(1, 2))


def test_trims_empty_buffers_one_after_the_other() -> None:
    tokens = np.array([1, 5, 9])
    found = columns.trimmed(
        {"a": tokens, "b": 10, "c": tokens * 2},
        (tokens > 4, ("a", "b")),
        (False, ("c",)),
        (tokens > 8, ("b", "c")),
        (True, ("b",)),
    )
    assert {
        name: np.broadcast_to(each, 3).tolist() for name, each in found.items()
    } == {
        "a": [1, 0, 0],
        "b": [0, 0, 0],
        "c": [2, 10, 0],
        "trimmed": [10, 15, 37],
    }
    assert columns.trimmed({"a": 4}) == {"a": 4, "trimmed": 0}
    assert columns.trimmed({"a": 4}, (True, ("a",))) == {"a": 0, "trimmed": 4}
