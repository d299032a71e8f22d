"""Sizes at many values of one limit: those that each value has by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from arenagen.compile import Text, read_schema
from arenagen.load import load
from arenagen.model import Schema
from arenagen.points import Points
from arenagen.record import replace
from arenagen.sizing import (
    ArenaSize,
    Inputs,
    SizingError,
    complete_inputs,
    size_arena,
)
from metrale_arena import ModelConfig
from random_formulas import NoSizeError
from random_schemas import RandomSchema, inputs, schemas

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
SCHEMA = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
VALUES = [1, 2, 3, 7, 16, 17, 64, 65, 160, 161, 2048, 2049, 8192, 10**6, 2**40, 2**62]


def alone(schema: Schema, inputs: Inputs) -> ArenaSize | str:
    """The sizes by themselves, or what is said of their absence."""
    try:
        return size_arena(schema, inputs)
    except SizingError as error:
        return str(error)


def check(schema: Schema, inputs: Inputs, limit: str, values: list[int]) -> int:
    """How many of the values have no sizes; all are as they are by themselves."""
    points, prepared = (Points(schema, inputs, limit) for _ in range(2))
    prepared.prepare(values)
    totals = prepared.totals(values)
    missing = 0
    for value, total in zip(values, totals, strict=True):
        limits = {**inputs.limits, limit: value}
        wanted = alone(schema, replace(inputs, limits=limits))
        try:
            found: ArenaSize | str = points.arena(value)
            assert points.find(value) is found
        except SizingError as error:
            found = str(error)
            assert points.find(value) is None
            missing += 1
        assert found == wanted
        assert prepared.find(value) == points.find(value)
        assert total == (None if isinstance(found, str) else found.total_bytes)
    return missing


@pytest.mark.parametrize("limit", [each.name for each in SCHEMA.limits])
@pytest.mark.parametrize(
    "stem",
    [
        "Qwen3-32B",
        "DeepSeek-V3",
        "GLM-5.3-Flash",
        "Nemotron-3-Nano-30B-A3B",
        "Qwen3-Next-80B-A3B-Thinking",
    ],
)
def test_real_models_have_the_sizes_of_each_value(stem: str, limit: str) -> None:
    config = ModelConfig.from_hf(DATA / f"{stem}.json")
    fields = {each.name: getattr(config, each.name) for each in SCHEMA.config}
    for levers in ({}, {"attn_decode_splitk": -1, "gguf_native_q2_mmq": True}):
        given = complete_inputs(SCHEMA, fields, {}, levers, {})
        check(SCHEMA, given, limit, VALUES)


@settings(
    max_examples=60,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(schemas(), st.data())
def test_random_schemas_have_the_sizes_of_each_value(
    schema: RandomSchema, data: st.DataObject
) -> None:
    model, _ = read_schema(Text("random.yaml", schema.text.encode()))
    for huge in (False, True):
        given = data.draw(inputs(schema, huge=huge))
        try:
            env = schema.environment(*given)
        except NoSizeError:
            continue
        config = {name: env[name] for name in schema.fields}
        whole = complete_inputs(model, config, given.limits, given.levers, given.target)
        for limit in model.limits:
            values = [1, 2, 5, given.limits[limit.name], 30, *([2**50] * huge)]
            check(model, whole, limit.name, values)


SMALL = """
arena: {{class: Arena, package: small_arena, label: small, doc: Small.}}
limits:
  max_tokens: {{symbol: M, tokens: true, minimum: 1, doc: Tokens.}}
  blocks: {{default: 4, minimum: 0, doc: Blocks of a cache.}}
config: {{width: {{doc: Width.}}, gap: {{doc: A gap.}}}}
let:
  half: {{value: M // gap, doc: Part of the tokens.}}
  still: {{value: 100 // gap, doc: Whatever the tokens.}}
functions:
  pages:
    doc: Pages.
    parameters: {{n: {{doc: A number.}}}}
    value: n * width // gap
  first:
    doc: The first of two.
    parameters: {{a: {{doc: A number.}}, b: {{doc: Another.}}}}
    value: a
  sq: {{doc: A square., parameters: {{a: {{doc: A number.}}}}, value: a * a}}
constants: {{STEPS: {{value: [4, 8, 64], doc: Sizes of a graph.}}}}
layouts:
  block:
    doc: A block.
    parameters: {{n: {{doc: Rows.}}}}
    let: {{part: 100 // (n - 3)}}
    regions:
      one: {{doc: One., dtype: u8, shape: [n]}}
      two: {{doc: Two., when: n > 1000000000000000, bytes: part}}
buffers:
  hidden: {{doc: Residual stream., dtype: u8, shape: [M, width]}}
  cache: {{doc: A cache., {cache}}}
trims: {{none: {{doc: A trim., when: {trim}, buffers: [cache]}}}}
"""


def small(cache: str, trim: str = "width > 99", gap: int = 2) -> tuple[Schema, Inputs]:
    schema = load(SMALL.format(cache=cache, trim=trim), "small.yaml")
    config = {"width": 8, "gap": gap}
    return schema, complete_inputs(schema, config, {"max_tokens": 4}, {}, {})


@pytest.mark.parametrize(
    # No value of 2**62 has a size: `hidden` is 8 times as large.
    ("cache", "missing"),
    [
        ("bytes: half", 1),
        ("bytes: still", 1),
        ("bytes: pages(M)", 1),
        ("bytes: 'pages(8) + blocks * 1000'", 1),
        ("bytes: 7 - M", 12),
        ("bytes: 7 - width", 16),
        ("bytes: 'M * 512 if gap > 9 else M // (gap - 2)'", 16),
        ("when: gap > 9, bytes: M // (gap - 2)", 1),
        ("when: M > 9, bytes: M // (gap - 2)", 12),
        ("bytes: 8, min_bytes: M - 3", 3),
        ("bytes: M * 8, otherwise: 5, when: M < 17", 1),
        # An argument that no value is read of, and a let of a layout behind a gate.
        ("bytes: 'first(M, 5 // (M - 2))'", 2),
        ("layout: block, arguments: {n: M}", 2),
        ("layout: block, arguments: {n: M - 2}", 2),
        ("bytes: 'next_in(STEPS, M)'", 9),
        ("bytes: 'clamp(M, M - 64, 64)'", 8),
        (
            "bytes: 'min(M, sq(sq(sq(sq(sq(sq(sq(M))))))))'",
            2,
        ),
        (
            "regions: {one: {doc: A., dtype: u8, shape: [M]}, "
            "two: {doc: B., at: 100, bytes: 8}}",
            8,
        ),
    ],
)
def test_what_is_missing_is_missing_where_it_is_by_itself(
    cache: str, missing: int
) -> None:
    assert check(*small(cache), "max_tokens", VALUES) == missing


def test_a_trim_is_decided_at_each_value() -> None:
    schema, given = small("bytes: 40", "M > 16")
    assert check(schema, given, "max_tokens", VALUES) == 1
    points = Points(schema, given, "max_tokens")
    assert [points.arena(each).trimmed for each in (16, 17)] == [0, 40]


def test_a_trim_that_cannot_be_decided_leaves_no_sizes() -> None:
    schema, given = small("bytes: 40", "M // (M - 7) > 99")
    assert check(schema, given, "max_tokens", VALUES) == 2
    schema, given = small("bytes: 40", "M // (gap - 2) > 99")
    assert check(schema, given, "max_tokens", VALUES) == len(VALUES)


def test_a_let_without_a_value_leaves_no_sizes() -> None:
    schema, given = small("when: width > 9, bytes: still", gap=0)
    assert check(schema, given, "max_tokens", VALUES) == len(VALUES)
    for limit in ("max_tokens", "blocks"):
        schema, given = small("when: width > 9, bytes: half", gap=0)
        assert check(schema, given, limit, VALUES) == len(VALUES)


def test_some_buffers_can_be_asked_for() -> None:
    schema, given = small("bytes: 7 - M")
    points = Points(schema, given, "max_tokens")
    assert points.total_of(5, ["hidden"]) == 40
    assert points.total_of(5, ["hidden", "cache"]) == 42
    assert points.total_of(9, ["hidden"]) == 72
    assert points.total_of(9, ["cache"]) is None


def test_a_value_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, given = small("bytes: half")
    points = Points(schema, given, "max_tokens")
    first = points.arena(6)
    monkeypatch.setattr(Points, "_evaluated", None)
    assert points.arena(6) is first
