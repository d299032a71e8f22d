"""The tool's own sizes: against the oracle, by hand, and where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenagen.check import check
from arenagen.commands.schemas import load_checked
from arenagen.evaluate import Value
from arenagen.load import load
from arenagen.model import Lever, Schema
from arenagen.sizing import (
    ArenaSize,
    BufferSize,
    Inputs,
    SizingError,
    complete_inputs,
    read_lever,
    size_arena,
)
from metrale_arena import Levers
from oracle import atlas_sizes, metrale_sizes, metrale_trimmed
from strategies import configs, levers, limits

ROOT = Path(__file__).resolve().parents[2]
METRALE = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
ATLAS = load_checked(ROOT / "schema/atlas.yaml").schema
LEVER_NAMES = {
    "native_q2": "gguf_native_q2",
    "native_q2_mmq": "gguf_native_q2_mmq",
    "fp8_rowwise": "fp8_rowwise",
    "glm_trim": "glm_arena_trim",
}
SPLITS = {"legacy": 0, "auto": -1}


def metrale(
    config: Mapping[str, Any],
    limits: Mapping[str, int],
    levers: Mapping[str, Any],
    target: Mapping[str, int],
) -> ArenaSize:
    """The sizes of the Metrale arena; fields and switches are those of the oracle."""
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in config.items()
    }
    switches = {LEVER_NAMES[key]: levers[key] for key in LEVER_NAMES if key in levers}
    if "splitk" in levers:
        splitk = levers["splitk"]
        switches["attn_decode_splitk"] = SPLITS.get(splitk, splitk)
    return size_arena(
        METRALE, complete_inputs(METRALE, fields, limits, switches, target)
    )


@settings(max_examples=300)
@given(configs(), limits(), levers(), st.sampled_from([1, 48, 132, 148]))
def test_every_size_is_the_oracles(
    config: dict[str, Any],
    limits: dict[str, int],
    levers: dict[str, Any],
    sm_count: int,
) -> None:
    found = metrale(config, limits, levers, {"sm_count": sm_count})
    expected = metrale_sizes(config, **limits, **levers, sm_count=sm_count)
    assert {each.name: each.nbytes for each in found.buffers} == expected
    assert list(expected) == [each.name for each in found.buffers]
    assert found.total_bytes == sum(expected.values())
    assert found.trimmed == metrale_trimmed(
        config, **limits, **levers, sm_count=sm_count
    )


@settings(max_examples=100)
@given(configs(), limits(), st.booleans(), st.sampled_from([1, 48, 132]))
def test_every_size_of_an_extending_schema_is_the_oracles(
    config: dict[str, Any], limits: dict[str, int], q2: bool, sm_count: int
) -> None:
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in config.items()
    }
    switches = {"gguf_native_q2": q2, "gguf_native_q2_mmq": q2}
    inputs = complete_inputs(ATLAS, fields, limits, switches, {"sm_count": sm_count})
    found = size_arena(ATLAS, inputs)
    expected = atlas_sizes(
        config, **limits, native_q2=q2, native_q2_mmq=q2, sm_count=sm_count
    )
    assert [(each.name, each.nbytes) for each in found.buffers] == [*expected.items()]
    assert found.total_bytes == sum(expected.values())
    assert found.trimmed == 0


# Uses, gates and shapes by hand

BASE: dict[str, Any] = {
    each.name: {"int": 0, "bool": False, "str": "", "list": ()}[each.type]
    for each in METRALE.config
}
LIMITS = {
    "max_batch_tokens": 10,
    "max_seq_len": 4096,
    "kv_block_size": 16,
    "max_batch_size": 4,
}


def buffer(name: str, **fields: Any) -> BufferSize:
    arena = metrale(BASE | fields, LIMITS, {}, {})
    (found,) = (each for each in arena.buffers if each.name == name)
    return found


def test_the_largest_use_wins() -> None:
    attention = {"num_attention_heads": 8, "head_dim": 64}  # 512 wide
    mamba = {"mamba_num_heads": 9, "mamba_head_dim": 64}  # 576 wide
    mla = {"kv_lora_rank": 64, "qk_rope_head_dim": 16}  # 8 heads of 80
    assert buffer("attn_output", **attention).use == "attention"
    found = buffer("attn_output", **attention, **mamba)
    assert (found.use, found.nbytes, found.shape) == ("mamba2", 11520, (10, 576))
    found = buffer("attn_output", **attention, **mamba, **mla)
    assert (found.use, found.nbytes) == ("absorbed_mla", 12800)
    assert found.shape == (10, 8, 80)


def test_the_first_of_two_equal_uses_wins() -> None:
    found = buffer(
        "attn_output",
        num_attention_heads=8,
        head_dim=64,
        mamba_num_heads=8,
        mamba_head_dim=64,
    )
    assert (found.use, found.nbytes) == ("attention", 10240)


def test_a_use_behind_a_closed_gate_does_not_win() -> None:
    found = buffer("expert_down_out", hidden_size=4, num_experts_per_tok=100)
    # 16 rows of 4, not of 100 experts.
    assert (found.use, found.nbytes, found.shape) == ("dense", 128, (16, 4))
    found = buffer(
        "expert_down_out", hidden_size=4, num_experts_per_tok=3, num_experts=9
    )
    assert (found.use, found.nbytes, found.shape) == ("routed", 384, (16, 3, 4))


def test_a_floor_leaves_the_shape_alone() -> None:
    found = buffer("token_ids")
    assert (found.nbytes, found.shape, found.dtype) == (256, (10,), "u32")


def test_a_use_without_a_shape_has_none() -> None:
    found = buffer("scratch")
    # 160 rows of 24 bytes and 257 blocks, behind byte 32768.
    assert (found.use, found.nbytes) == ("verify", 32768 + 160 * (24 + 4 * 257))
    assert (found.shape, found.dtype) == (None, "u8")


def test_the_dtype_is_that_of_the_winner() -> None:
    found = buffer(
        "ssm_conv_out_f32", kv_lora_rank=1, num_attention_heads=64, qk_rope_head_dim=64
    )
    assert (found.use, found.dtype, found.nbytes) == ("q_rope", "bf16", 81920)


def test_a_closed_gate_leaves_nothing_or_the_placeholder() -> None:
    found = buffer("lora_xa")
    assert (found.nbytes, found.active, found.shape) == (0, False, None)
    assert found.gate == "adapter_max_rank > 0"
    found = buffer("gate_logits")
    assert (found.nbytes, found.active, found.shape) == (256, False, None)


def test_a_trim_takes_the_bytes_away_and_counts_them() -> None:
    fields = {"hidden_size": 64, "num_attention_heads": 2, "head_dim": 32}
    whole = buffer("qkv_output", **fields)
    assert (whole.nbytes, whole.trimmed, whole.active) == (2048, 0, True)
    trimmed = buffer("qkv_output", **fields, model_type="glm5_next")
    assert (trimmed.nbytes, trimmed.trimmed, trimmed.active) == (0, 2048, False)


# Inputs

SMALL = """
arena: {class: Arena, package: arena, label: arena, doc: An arena.}
target:
  sm_count: {default: 48, doc: Processors.}
limits:
  max_batch_tokens: {symbol: M, tokens: true, minimum: 1, default: 8, doc: Tokens.}
  max_batch_size: {minimum: 2, maximum: 64, doc: Sequences.}
config:
  width: {doc: A width.}
  heads: {doc: Heads.}
levers:
  splits:
    {variable: SPLITS, type: int, words: {auto: 0}, clamp: [1, 16], default: 2, doc: S.}
constants:
  TILES: {value: [1, 4, 16], doc: Tiles.}
let:
  per_head: {value: width // heads, doc: Width of a head.}
functions:
  ratio: {parameters: {n: {doc: A count.}}, value: n // (heads - 2), doc: A ratio.}
layouts:
  block:
    doc: A block.
    parameters: {n: {doc: A count.}}
    let: {part: n % (heads - 3)}
    regions:
      head: {dtype: u8, shape: [part], doc: A head.}
buffers:
  pool: {doc: A pool., bytes: M}
"""


def small(extra: str = "", trims: str = "") -> Schema:
    lines = "".join(f"  {line}\n" for line in extra.splitlines())
    schema = load(SMALL + lines + trims, "small.yaml")
    assert [each for each in check(schema) if each.severity == "error"] == []
    return schema


def inputs(schema: Schema, width: int = 64, heads: int = 8, **given: int) -> Inputs:
    config: dict[str, Value] = {"width": width, "heads": heads}
    split = {"splits": given.pop("splits")} if "splits" in given else {}
    return complete_inputs(schema, config, {"max_batch_size": 4, **given}, split, {})


def refusal(schema: Schema, **given: int) -> str:
    with pytest.raises(SizingError) as error:
        size_arena(schema, inputs(schema, **given))
    return str(error.value)


def test_defaults_complete_the_inputs() -> None:
    found = inputs(small())
    assert found.limits == {"max_batch_tokens": 8, "max_batch_size": 4}
    assert (found.levers, found.target) == ({"splits": 2}, {"sm_count": 48})


@pytest.mark.parametrize(
    ("limits", "levers", "target", "message"),
    [
        (
            {"tokens": 1},
            {},
            {},
            "no limit is named `tokens`; known: max_batch_tokens, max_batch_size",
        ),
        ({}, {"split": 1}, {}, "no lever is named `split`; known: splits"),
        (
            {},
            {},
            {"sms": 1},
            "no target constant is named `sms`; known: sm_count",
        ),
        ({}, {}, {}, "the limit `max_batch_size` has no value and no default"),
        ({"max_batch_size": 1}, {}, {}, "max_batch_size=1; at least 2"),
        ({"max_batch_size": 65}, {}, {}, "max_batch_size=65; at most 64"),
        (
            {"max_batch_size": 4, "max_batch_tokens": 0},
            {},
            {},
            "max_batch_tokens=0; at least 1",
        ),
        ({"max_batch_size": 4}, {}, {"sm_count": 0}, "sm_count=0; at least 1"),
    ],
)
def test_inputs_that_do_not_fit(
    limits: dict[str, int],
    levers: dict[str, int | bool | str],
    target: dict[str, int],
    message: str,
) -> None:
    with pytest.raises(SizingError) as error:
        complete_inputs(small(), {"width": 1, "heads": 1}, limits, levers, target)
    assert str(error.value) == message


def test_a_schema_without_levers_says_that_it_has_none() -> None:
    text = SMALL.replace("levers:", "x:").partition("x:")[0]
    schema = load(text + "buffers: {pool: {doc: A pool., bytes: M}}\n", "none.yaml")
    with pytest.raises(SizingError) as error:
        complete_inputs(schema, {}, {"max_batch_size": 4}, {"splits": 1}, {})
    assert str(error.value) == "no lever is named `splits`; known: none"


# Sizes that do not exist


@pytest.mark.parametrize(
    ("entry", "given", "message"),
    [
        (
            "bad: {doc: Bad., dtype: bf16, shape: [M, width // heads]}",
            {"heads": 0},
            "bad: `width // heads` divides 64 by zero, with width=64, heads=0, "
            "max_batch_tokens=8",
        ),
        (
            "bad: {doc: Bad., bytes: M * per_head}",
            {"heads": 0},
            "per_head: `width // heads` divides 64 by zero, with width=64, heads=0",
        ),
        (
            "bad: {doc: Bad., when: heads > 0, bytes: M * per_head}",
            {"heads": 0},
            "per_head: `width // heads` divides 64 by zero, with width=64, heads=0",
        ),
        (
            "bad: {doc: Bad., bytes: ratio(width)}",
            {"heads": 2},
            "bad: `n // (heads - 2)` divides 64 by zero, with width=64, heads=2",
        ),
        (
            "bad: {doc: Bad., layout: block, arguments: {n: width}}",
            {"heads": 3},
            "bad: `n % (heads - 3)` divides 64 by zero, with width=64, heads=3",
        ),
        (
            'bad: {doc: Bad., bytes: "align(width, heads)"}',
            {"heads": 0},
            "bad: `align(width, heads)` takes steps of 0, with width=64, heads=0",
        ),
        (
            'bad: {doc: Bad., bytes: "align(width, heads - 9)"}',
            {},
            "bad: `align(width, heads - 9)` takes steps of -1, with width=64, heads=8",
        ),
        (
            'bad: {doc: Bad., bytes: "cdiv(width, splits)"}',
            {"splits": 0},
            "bad: `cdiv(width, splits)` takes steps of 0, with width=64, splits=0",
        ),
        (
            'bad: {doc: Bad., bytes: "next_in(TILES, heads)"}',
            {"heads": 17},
            "bad: `next_in(TILES, heads)`: no element reaches 17; the largest is 16, "
            "with heads=17",
        ),
        (
            "bad: {doc: Bad., bytes: width - max_batch_size * sm_count}",
            {},
            "bad: `width - max_batch_size * sm_count` is -128, which is negative, "
            "with width=64, max_batch_size=4, sm_count=48",
        ),
        (
            "bad: {doc: Bad., dtype: f32, shape: [M, width - 65]}",
            {},
            "bad: `width - 65` is -1, which is negative, with width=64, "
            "max_batch_tokens=8",
        ),
        (
            "bad: {doc: Bad., dtype: f32, shape: [M, width]}",
            {"width": 2**60},
            "bad: 36893488147419103232 bytes is more than 2**63 - 1: f32 [M, width], "
            f"with width={2**60}, max_batch_tokens=8",
        ),
        (
            "bad: {doc: Bad., when: width // heads > 1, bytes: 256}",
            {"heads": 0},
            "bad: `width // heads` divides 64 by zero, with width=64, heads=0",
        ),
        (
            "bad: {doc: Bad., when: heads > 0, otherwise: width % heads, bytes: 256}",
            {"heads": 0},
            "bad: `width % heads` divides 64 by zero, with width=64, heads=0",
        ),
        (
            "bad: {doc: Bad., min_bytes: width // heads, bytes: 256}",
            {"heads": 0},
            "bad: `width // heads` divides 64 by zero, with width=64, heads=0",
        ),
        (
            "bad: {doc: Bad., min_bytes: width - 65, bytes: 256}",
            {},
            "bad: `width - 65` is -1, which is negative, with width=64",
        ),
    ],
)
def test_a_size_that_does_not_exist_names_buffer_formula_and_inputs(
    entry: str, given: dict[str, int], message: str
) -> None:
    assert refusal(small(entry), **given) == message


def test_the_largest_size_is_one() -> None:
    schema = small("edge: {doc: The edge., bytes: width}")
    edge = size_arena(schema, inputs(schema, width=2**63 - 1)).buffers[1]
    assert edge.nbytes == 2**63 - 1
    assert refusal(schema, width=2**63).startswith(
        "edge: 9223372036854775808 bytes is more than 2**63 - 1"
    )


def test_a_trim_whose_gate_has_no_value_is_named() -> None:
    trims = "trims:\n  odd: {doc: Odd., when: width // heads > 1, buffers: [pool]}\n"
    assert refusal(small(trims=trims), heads=0) == (
        "the trim odd: `width // heads` divides 64 by zero, with width=64, heads=0"
    )


def test_a_gate_guards_its_formula() -> None:
    schema = small(
        "good: {doc: Good., when: heads > 0, bytes: width // heads}\n"
        "also: {doc: Good., bytes: width // heads if heads > 0 else 1}\n"
        "uses:\n"
        "  doc: Good.\n"
        "  uses: {one: {doc: One., when: heads > 0, bytes: width // heads}}\n"
    )
    found = size_arena(schema, inputs(schema, heads=0))
    assert [each.nbytes for each in found.buffers[1:]] == [0, 1, 0]
    found = size_arena(schema, inputs(schema, heads=16))
    assert [each.nbytes for each in found.buffers[1:]] == [4, 4, 4]


# Levers

texts = st.one_of(
    st.sampled_from(
        [
            *("", "0", "1", "2", "-1", "+1", "++1", "16", "17", " 3 ", "\t5\n", "007"),
            *(
                "legacy",
                "LEGACY",
                " Auto ",
                "auto",
                "off",
                "Off",
                "no",
                "false",
                "true",
            ),
            *("yes", "on", "1.0", "1e1", "0x10", "1_0", "½", "٣", "१२", "²", "+", "-"),
            "9" * 5000,
            "0" * 5000 + "7",
            "1" + "0" * 5000,
            "+" + "0" * 5000,
        ]
    ),
    st.integers(-50, 50).map(str),
    st.text(max_size=6),
)


@pytest.mark.parametrize("lever", METRALE.levers, ids=lambda lever: lever.name)
@settings(max_examples=200)
@given(text=texts)
def test_a_lever_means_what_the_emitted_levers_read(lever: Lever, text: str) -> None:
    emitted = getattr(Levers.from_env({lever.variable: text}), lever.name)
    found = read_lever(lever, text)
    assert (type(found), found) == (type(emitted), emitted)


def test_an_unset_lever_is_its_default() -> None:
    unset = Levers.from_env({})
    for lever in METRALE.levers:
        assert getattr(unset, lever.name) == lever.default
