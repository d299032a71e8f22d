"""The numbers and places of the HTML page, against hand arithmetic and the oracle."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from arenagen.compile import Text, read_schema
from arenagen.model import Schema
from arenagen.page import charts, curve, effects, facts, growth, switches, words
from arenagen.page.curve import FLOOR, NO_MEMORY, UNDEFINED
from arenagen.sizing import Inputs, SizingError, complete_inputs, size_arena
from expected_configs import EXPECTED
from metrale_arena import BUFFERS, BufferArena, HostBackend, Levers, ModelConfig

ROOT = Path(__file__).resolve().parents[2]
METRALE, _ = read_schema(
    Text("metrale.yaml", (ROOT / "schema" / "metrale.yaml").read_bytes())
)
EMPTY = {"int": 0, "bool": False, "str": "", "list": ()}
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 4096,
    "max_seq_len": 4096,
    "kv_block_size": 16,
    "max_batch_size": 4,
}

SMALL = """\
arena: {class: Small, package: small_arena, label: small arena, doc: A small arena.}
limits:
  max_tokens: {symbol: M, tokens: true, minimum: 1, default: 300, doc: Tokens.}
levers:
  wide: {variable: SMALL_WIDE, type: bool, on_when: ["1"], doc: Twice the rows.}
  splits:
    variable: SMALL_SPLITS
    type: int
    words: {"0": 1, single: 1, many: 8}
    clamp: [1, 4]
    default: 1
    doc: Parts.
config:
  width: {doc: Width.}
buffers:
  shared:
    doc: Two uses, a floor, and a gate that a short pass does not reach.
    when: M >= 3
    dtype: u8
    min_bytes: 5200
    uses:
      steep: {shape: [100, M], doc: Wins late.}
      flat: {bytes: 5000 + 10 * M, doc: Wins early.}
  rows:
    doc: Grows with the pass.
    dtype: u8
    shape: [M, width]
  fixed:
    doc: Does not.
    dtype: u8
    shape: [1000, "2 if wide else 1", splits]
  nothing: {doc: Off., when: width > 40, otherwise: 16, dtype: u8, shape: [width]}
trims:
  short: {doc: Not needed., when: width == 7, buffers: [fixed]}
"""


def schema_of(text: str) -> Schema:
    schema, _ = read_schema(Text("small.yaml", text.encode()))
    return schema


def small_inputs(width: int = 40, **limits: int) -> tuple[Schema, Inputs]:
    schema = schema_of(SMALL)
    return schema, complete_inputs(schema, {"width": width}, limits, {}, {})


def metrale_inputs(model: str, **limits: Any) -> Inputs:
    config = {each.name: EMPTY[each.type] for each in METRALE.config}
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in EXPECTED[model].items()
    }
    return complete_inputs(METRALE, config | fields, {**LIMITS, **limits}, {}, {})


def states_to_changes(states: list[str]) -> list[tuple[int, str, str]]:
    """Every change of a state by token count, the first count being 1."""
    return [
        (tokens, before, after)
        for tokens, (before, after) in enumerate(pairwise(states), start=2)
        if before != after
    ]


# Size against the token limit.


def test_samples_are_exact_powers_and_eighths() -> None:
    assert curve.token_counts(1, 20) == [*range(1, 17), 18, 20]
    assert curve.token_counts(5, 5) == [5]
    beyond = [22, 24, 26, 28, 30, 32, 33]
    assert curve.token_counts(3, 33, dense=20) == [*range(3, 21), *beyond]


@given(st.integers(1, 500), st.lists(st.integers(1, 500), max_size=6))
def test_changes_finds_what_counting_finds(most: int, steps: list[int]) -> None:
    def state(tokens: int) -> str:
        return str(sum(tokens >= step for step in steps))

    found = curve.changes(state, sorted({1, most}))
    counted = states_to_changes([state(tokens) for tokens in range(1, most + 1)])
    assert found == counted


def small_state(tokens: int) -> str:
    """What sets `shared`, by hand: off below 3, then a floor of 5,200 bytes."""
    if tokens < 3:
        return NO_MEMORY
    steep, flat = 100 * tokens, 5000 + 10 * tokens
    if max(steep, flat) < 5200:
        return FLOOR
    return "steep" if steep >= flat else "flat"


def test_crossovers_are_those_of_every_token_count() -> None:
    schema, inputs = small_inputs()
    found = curve.size_curve(schema, inputs).crossovers
    wanted = states_to_changes([small_state(tokens) for tokens in range(1, 301)])
    assert [(each.tokens, each.before, each.after) for each in found] == wanted
    assert wanted == [
        (3, NO_MEMORY, FLOOR),
        (20, FLOOR, "flat"),
        (56, "flat", "steep"),
    ]
    assert [each.nbytes for each in found] == [5200, 5200, 5600]


def test_few_tokens_are_all_tried() -> None:
    text = SMALL.replace("min_bytes: 5200", "min_bytes: 1")
    text = text.replace("when: M >= 3", "when: M >= 1")
    text = text.replace("shape: [100, M]", 'bytes: "align(M + 7, 16) * 100"')
    schema = schema_of(text.replace("5000 + 10 * M", "118 * M"))
    inputs = complete_inputs(schema, {"width": 40}, {"max_tokens": 64}, {}, {})
    found = curve.size_curve(schema, inputs).crossovers
    states = [
        "steep" if (tokens + 7 + 15) // 16 * 16 * 100 >= 118 * tokens else "flat"
        for tokens in range(1, 65)
    ]
    # At 41 tokens alone, which no eighth of an octave is, 48 rows are fewer.
    assert states[39:42] == ["steep", "flat", "steep"]
    wanted = states_to_changes(states)
    assert [(each.tokens, each.before, each.after) for each in found] == wanted


def test_the_largest_buffer_by_token_count() -> None:
    schema, inputs = small_inputs()
    found = curve.size_curve(schema, inputs).leaders
    # fixed has 1,000 bytes; shared 5,200 from 3 tokens on, and later 100 a token.
    assert [(each.tokens, each.last, each.buffer, each.nbytes) for each in found] == [
        (1, 2, "fixed", 1000),
        (3, 300, "shared", 5200),
    ]


def scratch_state(fields: Any, tokens: int) -> str:
    """The use that sets scratch, from the oracle's own sizes."""
    blocks = LIMITS["max_seq_len"] // 16 + 1
    block = oracle.decode_meta_offsets
    end = {rows: sum(block(rows, blocks)["block_table"]) for rows in (32, 160)}
    sizes = {
        "prefill": oracle.prefill_scratch_bytes(fields, tokens, blocks),
        "decode": 32768 + end[32],
        "verify": 32768 + end[160],
        "staging": oracle.q12_batched_scratch_bytes(
            8, max(1, -(-tokens // 8)), fields["num_experts_per_tok"], False
        ),
    }
    return max(sizes, key=lambda name: sizes[name])


def test_scratch_changes_hands_where_the_oracle_says() -> None:
    model = "Qwen3-30B-A3B"
    found = curve.size_curve(METRALE, metrale_inputs(model)).crossovers
    scratch = [
        (each.tokens, each.before, each.after)
        for each in found
        if each.buffer == "scratch"
    ]
    fields = EXPECTED[model]
    states = [scratch_state(fields, tokens) for tokens in range(1, 4097)]
    assert scratch == states_to_changes(states)
    assert scratch


@pytest.mark.parametrize("model", ["GLM-5.3-Flash", "Qwen3-32B"])
def test_the_curve_is_the_oracles(model: str) -> None:
    fields = EXPECTED[model]
    most = 3000
    found = curve.size_curve(METRALE, metrale_inputs(model, max_batch_tokens=most))
    sizes = {
        tokens: oracle.metrale_sizes(fields, **{**LIMITS, "max_batch_tokens": tokens})
        for tokens in range(1, most + 1)
    }
    assert [each.tokens for each in found.samples][-1] == most
    for sample in found.samples:
        assert sample.sizes == sizes[sample.tokens]
        assert sample.total == sum(sizes[sample.tokens].values())
    largest = [max(each, key=lambda name: each[name]) for each in sizes.values()]
    changes = [(1, "", largest[0]), *states_to_changes(largest)]
    assert [(each.tokens, each.buffer) for each in found.leaders] == [
        (tokens, name) for tokens, _, name in changes
    ]


def test_token_counts_without_a_size_are_told() -> None:
    text = SMALL.replace("shape: [M, width]", 'shape: [M, "width // (M // 5)"]')
    schema = schema_of(text)
    inputs = complete_inputs(schema, {"width": 40}, {}, {}, {})
    found = curve.size_curve(schema, inputs)
    assert found.missing == (1, 2, 3, 4)
    assert found.samples[0].tokens == 5
    # At 5 tokens rows has 5 * 40 bytes.
    assert [(each.tokens, each.buffer) for each in found.leaders] == [(5, "shared")]
    # The chart begins at 5 tokens, and the crossover at 3 is not in it.
    view = growth.curve_view(schema, facts.find_facts(schema, "small", inputs))
    assert view.note.startswith("There is no size at 4 token counts of")
    assert view.crossings[0].tokens == "3"
    assert view.chart is not None
    assert [each.text for each in view.chart.crossings] == [
        "20: shared, its floor to flat",
        "56: shared, flat to steep",
    ]
    with pytest.raises(SizingError, match="divides 40 by zero"):
        few = complete_inputs(schema, {"width": 40}, {"max_tokens": 4}, {}, {})
        curve.size_curve(schema, few)


def test_a_use_without_a_size_is_a_state_of_its_own() -> None:
    text = SMALL.replace("5000 + 10 * M", "5000 // (M // 5)")
    schema = schema_of(text)
    inputs = complete_inputs(schema, {"width": 40}, {"max_tokens": 20}, {}, {})
    found = curve.size_curve(schema, inputs).crossovers
    assert [(each.tokens, each.before, each.after) for each in found] == [
        (3, NO_MEMORY, UNDEFINED),
        (5, UNDEFINED, FLOOR),
    ]


def test_a_single_token_count_has_no_axes() -> None:
    schema, inputs = small_inputs(max_tokens=1)
    found = curve.size_curve(schema, inputs)
    assert [each.tokens for each in found.samples] == [1]
    assert charts.axes(found.samples, ["rows"]) is None


# Levers, gates and trims.


def test_levers_take_every_other_value_by_one_word() -> None:
    schema, inputs = small_inputs()
    found = effects.lever_effects(schema, size_arena(schema, inputs))
    # Fixed has 1,000 bytes for each part, twice under the lever.
    assert [
        (each.lever.name, each.word, choice.word, choice.changed)
        for each in found
        for choice in each.choices
    ] == [
        ("wide", "off", "on", (("fixed", 1000),)),
        ("splits", "single", "many", (("fixed", 7000),)),
        ("splits", "single", "4", (("fixed", 3000),)),
    ]


def test_a_lever_without_a_size_says_why() -> None:
    text = SMALL.replace('"2 if wide else 1"', '"1000 // (0 if wide else 1)"')
    schema = schema_of(text)
    inputs = complete_inputs(schema, {"width": 40}, {}, {}, {})
    wide, _ = effects.lever_effects(schema, size_arena(schema, inputs))
    (choice,) = wide.choices
    assert choice.total is None
    assert choice.problem.startswith("fixed: `1000 // (0 if wide else 1)` divides")
    row, *_ = switches.lever_views(facts.find_facts(schema, "small", inputs))
    assert (row.change, row.total, row.buffers) == ("no size", "", choice.problem)


@pytest.mark.parametrize(
    ("lever", "argument"),
    [
        ("gguf_native_q2", {"native_q2": True}),
        ("gguf_native_q2_mmq", {"native_q2_mmq": True}),
        ("fp8_rowwise", {"fp8_rowwise": True}),
        ("glm_arena_trim", {"glm_trim": False}),
    ],
)
@pytest.mark.parametrize("model", ["GLM-5.3-Flash", "Qwen3-Next-80B-A3B-Thinking"])
def test_each_bool_lever_costs_what_the_oracle_says(
    model: str, lever: str, argument: Any
) -> None:
    size = size_arena(METRALE, metrale_inputs(model))
    found = {each.lever.name: each for each in effects.lever_effects(METRALE, size)}
    before = oracle.metrale_sizes(EXPECTED[model], **LIMITS)
    after = oracle.metrale_sizes(EXPECTED[model], **LIMITS, **argument)
    (choice,) = found[lever].choices
    assert choice.total == sum(after.values())
    assert dict(choice.changed) == {
        name: after[name] - before[name]
        for name in after
        if after[name] != before[name]
    }


def test_gates_are_on_or_off_for_a_reason() -> None:
    schema, inputs = small_inputs()
    shared, nothing = effects.gate_states(schema, size_arena(schema, inputs))
    assert (shared.gate, shared.on, shared.buffers) == ("M >= 3", True, ("shared",))
    assert shared.reads == (("max_tokens", 300),)
    assert shared.nbytes == 100 * 300
    assert (nothing.gate, nothing.on) == ("width > 40", False)
    assert nothing.reads == (("width", 40),)
    assert nothing.nbytes == 16


@pytest.mark.parametrize(("width", "on"), [(7, True), (40, False)])
def test_a_trim_applies_or_not(width: int, on: bool) -> None:
    schema, inputs = small_inputs(width)
    (trim,) = effects.trim_states(schema, inputs)
    assert (trim.name, trim.on, trim.nbytes) == ("short", on, 1000)
    assert trim.reads == (("width", width),)


# Places.


@pytest.mark.parametrize("model", sorted(EXPECTED))
def test_the_slab_is_that_of_the_emitted_arena(model: str) -> None:
    inputs = metrale_inputs(model, max_batch_tokens=65)
    found = facts.find_facts(METRALE, model, inputs)
    gpu = HostBackend(1 << 50)
    with BufferArena(
        ModelConfig(**EXPECTED[model]),  # type: ignore[arg-type]
        **{**LIMITS, "max_batch_tokens": 65},
        levers=Levers(),
        gpu=gpu,
        placement="slab",
    ) as arena:
        pointers = {name: getattr(arena, name) for name in BUFFERS}
        base = min(pointer for pointer in pointers.values() if pointer)
        offsets = {
            name: pointer - base for name, pointer in pointers.items() if pointer
        }
        assert {each.name: each.offset for each in found.slab} == offsets
        assert found.slab_bytes == gpu.live_bytes
    padding = sum(each.padding for each in found.slab)
    assert found.slab_bytes == found.size.total_bytes + padding


spans = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 900)), min_size=1, max_size=8
)


@given(spans)
def test_pieces_cover_every_buffer_once(gaps: list[tuple[int, int]]) -> None:
    placed, end = [], 0
    for number, (gap, nbytes) in enumerate(gaps):
        placed.append((f"b{number}", end + gap, nbytes))
        end += gap + nbytes
    row = charts.row_bytes(end)
    assert row.bit_count() == 1 and row * charts.MAP_ROWS >= end
    pieces = charts.map_pieces(placed, row)
    for name, offset, nbytes in placed:
        own = [each for each in pieces if each.name == name]
        assert sum(each.width for each in own) * row / 100 == pytest.approx(nbytes)
        first = own[0]
        assert first.row * row + first.start * row / 100 == pytest.approx(offset)
        assert all(each.start + each.width <= 100 + 1e-9 for each in own)
        assert sum(each.widest for each in own) == 1


def test_axes_double_at_equal_steps() -> None:
    samples = [
        curve.Sample(tokens, 4096 * tokens, {"rows": 512 * tokens})
        for tokens in (1, 4, 16)
    ]
    frame = charts.axes(samples, ["rows"])
    assert frame is not None
    assert (frame.low, frame.high) == (512, 131072)
    assert [frame.x(each) for each in (1, 2, 4, 16)] == [0, 25, 50, 100]
    assert [frame.y(each) for each in (131072, 8192, 512)] == [0, 50, 100]
    assert charts.lines(frame, {1: 512, 2: 0, 4: 8192, 16: 131072}) == [
        "0.0,1000.0",
        "500.0,500.0 1000.0,0.0",
    ]


# Words.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, caf\u00e9", "plain text, caf\u00e9"),
        ("a\u202eb\u2066c", "a\\u{202e}b\\u{2066}c"),
        ("nul\x00tab\t", "nul\\u{0}tab\\u{9}"),
        ("half \udc80, zero\u200bwidth", "half \\u{dc80}, zero\\u{200b}width"),
    ],
)
def test_what_does_not_show_is_spelled_out(text: str, shown: str) -> None:
    assert words.visible(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (65536, "65,536"),
        (("a", "b"), "[a, b]"),
        (("linear",) * 36 + ("full",) * 12, "36 linear, 12 full"),
        ("x" * 60, "'" + "x" * 45 + "...'"),
    ],
)
def test_values_are_short(value: object, shown: str) -> None:
    assert words.value_text(value) == shown


def test_differences_have_a_sign() -> None:
    assert words.signed(2048) == "+2.00 KiB"
    assert words.signed(-3) == "\N{MINUS SIGN}3 B"
    assert words.signed(0) == "0 B"
