"""`arenagen explain`: values by hand and from the oracle, and its text exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings

from arenagen.cli import cli
from arenagen.compile import Text, read_schema
from arenagen.errors import ArenagenError
from arenagen.explain import Explanation, Sized, explain
from arenagen.explain_report import explanation_text
from arenagen.model import Schema
from arenagen.sizing import Inputs, SizingError, complete_inputs
from expected_configs import EXPECTED
from oracle import metrale_sizes, metrale_trimmed
from strategies import configs, limits

ROOT = Path(__file__).resolve().parents[2]
METRALE, _ = read_schema(
    Text("metrale.yaml", (ROOT / "schema/metrale.yaml").read_bytes())
)
EMPTY: dict[str, Any] = {"int": 0, "bool": False, "str": "", "list": ()}
QWEN = "Qwen3-Next-80B-A3B-Thinking"
LIMITS = {
    "max_batch_tokens": 8193,
    "max_seq_len": 4096,
    "kv_block_size": 16,
    "max_batch_size": 32,
}


def inputs_of(schema: Schema, fields: Mapping[str, Any], **limits: int) -> Inputs:
    whole = {each.name: EMPTY[each.type] for each in schema.config}
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return complete_inputs(schema, whole | given, limits, {}, {})


def of(name: str, model: str = QWEN, tokens: int | None = None) -> Explanation:
    inputs = inputs_of(METRALE, EXPECTED[model], **LIMITS)
    return explain(METRALE, name, inputs, tokens)


def sized(name: str, model: str = QWEN) -> Sized:
    found = of(name, model).full
    assert found is not None
    return found


# Worked values of Qwen3-Next-80B: h 2048, GDN 16 x 128 keys and 32 x 128 values.


def test_the_winner_the_margin_and_the_steps() -> None:
    found = sized("ssm_qkvz")
    # 8193 rows are padded to 8208; 2 * 16 * 128 + 2 * 32 * 128 = 12288 wide.
    assert found.nbytes == 8208 * 12288 * 2
    # Keys of 8193 rows and values of 8208, 2 heads of 256.
    assert (found.use, found.runner_up) == ("qkvz", "prefill_kv")
    assert found.margin == 8208 * 12288 * 2 - (8193 + 8208) * 512 * 2
    steps = {step.name: step.worked for step in found.steps}
    assert steps["M_pad"].chain == ("align(M, FP8_ROW_TILE)", "align(8193, 16)")
    assert steps["M_pad"].value == 8208
    assert steps["ssm_qkvz_size"].chain[1:] == (
        "2 * 16 * 128 + 2 * 32 * 128",
        "4096 + 8192",
    )
    assert steps["ssm_qkvz_size"].value == 12288
    # A let comes behind those that it reads.
    names = list(steps)
    assert names.index("mamba2_d_inner") < names.index("mamba2_in_proj_size")
    assert len(set(names)) == len(names)
    assert (found.floor_bites, found.trimmed) == (False, 0)


def test_a_pass_of_one_token_touches_the_worked_values() -> None:
    expected = {
        "hidden_states": 4096,
        "qkv_output": 294912,
        "attn_output": 8192,
        "gate_logits": 1024,
        "ssm_qkvz": 393216,
        "ssm_ba": 256,
        "ssm_deinterleaved": 393216,
        "ssm_gates": 256,
    }
    for name, nbytes in expected.items():
        found = of(name, tokens=1)
        assert found.of_pass is not None
        assert (found.tokens, found.of_pass.nbytes) == (1, nbytes), name
        assert found.of_pass.inputs.limits["max_batch_tokens"] == 1


def test_a_pass_counts_the_whole_of_what_is_not_token_major() -> None:
    found = of("logits", tokens=1)
    assert found.of_pass is found.full
    # And of everything, when it is as large as the arena.
    for tokens in (8193, 8194):
        found = of("hidden_states", tokens=tokens)
        assert found.of_pass is found.full


def test_a_floor_that_bites() -> None:
    found = of("ssm_ba", tokens=1).of_pass
    assert found is not None
    # 2 * 32 wide in BF16 is 128 bytes a token; the floor is 256.
    assert (found.nbytes, found.floor_bites) == (256, True)
    assert found.uses[0].extent is not None
    assert found.uses[0].extent.nbytes == 128


def test_a_floor_that_is_just_reached() -> None:
    # 2 * 64 wide in BF16 is 256 bytes a token.
    inputs = inputs_of(METRALE, {"linear_num_value_heads": 64}, **LIMITS)
    found = explain(METRALE, "ssm_ba", inputs, tokens=1).of_pass
    assert found is not None
    assert (found.nbytes, found.floor_bites) == (256, False)


def test_a_use_whose_gate_is_false() -> None:
    found = sized("attn_output")
    mla = found.uses[2]
    assert (mla.name, mla.extent) == ("absorbed_mla", None)
    assert mla.gate is not None
    assert (mla.gate.chain, mla.gate.value) == (("kv_lora_rank > 0", "0 > 0"), False)
    assert found.uses[0].extent is not None
    assert found.uses[0].extent.shape == (8193, 16, 256)
    assert (found.uses[0].extent.dtype, found.uses[0].extent.bits) == ("bf16", 16)


def test_the_placeholder_of_a_gate_that_is_false() -> None:
    found = sized("hc_streams")
    assert (found.nbytes, found.open, found.extent) == (256, False, None)
    assert found.otherwise is not None
    assert (found.otherwise.chain, found.otherwise.value) == (
        ("PLACEHOLDER_BYTES",),
        256,
    )


def test_a_trim_that_empties() -> None:
    found = sized("qkv_output", "GLM-5.3-Flash")
    assert (found.nbytes, found.trimmed) == (0, found.extent and found.extent.nbytes)
    (trim,) = found.trims
    assert trim.gate.value is True
    assert '"glm5_next' in trim.gate.chain[1]
    assert sized("hidden_states", "GLM-5.3-Flash").trims == ()


def test_regions_have_their_offsets() -> None:
    extent = sized("scratch").uses[2].extent
    assert extent is not None
    (meta,) = extent.parts
    assert (meta.offset, meta.placed) == (32768, ("SCRATCH_META_OFFSET",))
    # 160 rows of 257 blocks: 4096 // 16 + 1.
    offsets = [(part.name, part.offset) for part in meta.extent.parts]
    assert offsets == [
        ("positions", 0),
        ("seq_slot", 160 * 4),
        ("slots", 160 * 8),
        ("seq_lens", 160 * 16),
        ("block_table", 160 * 24),
    ]
    assert meta.extent.parts[4].placed == ("24 * rows", "24 * 160")
    assert meta.extent.nbytes == 160 * 24 + 160 * 257 * 4
    # So many are fewer than staging takes.
    assert (sized("scratch").use, sized("scratch").nbytes) == ("staging", 886376)


def test_a_layout_shows_its_lets_and_the_regions_that_are_absent() -> None:
    extent = sized("moe_fp8_scratch").extent
    assert extent is not None
    assert [(step.name, step.worked.value) for step in extent.steps] == [
        ("expanded", 81930),
        ("width", 2048),
        ("column_tiles", 32),
    ]
    # 8193 * 2048 bytes are less than 81930 * 512, which is a multiple of 256.
    activation, scales, worklist, _ = extent.parts
    assert (scales.offset, scales.placed) == (81930 * 512, ("align(41948160, 256)",))
    assert (81930 * 512 + 81930 * 4 * 4) % 256 == 160
    assert worklist.offset == 81930 * 512 + 81930 * 4 * 4 + 96
    assert [name for name, _ in extent.absent] == [
        "small_worklist",
        "small_total_tiles",
    ]
    assert activation.extent.nbytes == 81930 * 512


def test_calls_are_steps_of_their_own() -> None:
    steps = {step.name: step.worked for step in sized("scratch").steps}
    # 8 streams of 1025 tokens, 10 experts each, without MRoPE.
    inner = steps["q12_batched_scratch_bytes_varlen(8, 8200, 1025, 10, False)"]
    assert inner.chain[2] == "656000 + 131712 + 32800 + 65600 + 128 + 40 + 32 + 64"
    assert inner.value == 886376
    outer = steps["q12_batched_scratch_bytes(8, 1025, 10, False)"]
    assert outer.chain[0].startswith("q12_batched_scratch_bytes_varlen(n, n *")
    assert outer.value == 886376


def test_terms_have_values_and_the_buffers_that_share_them() -> None:
    terms = {term.name: term for term in of("logits").terms}
    assert terms["vocab_size"].value == 151936
    assert (terms["vocab_size"].kind, terms["vocab_size"].readers) == ("field", ())
    assert terms["meta_rows"].readers == ("scratch", "splitk_workspace")
    assert terms["meta_rows"].formula == "max(DECODE_META_MIN_ROWS, max_batch_size)"
    assert terms["max_batch_tokens"].value == 8193


@settings(max_examples=8, deadline=None)
@given(configs(), limits())
def test_the_steps_end_in_the_oracles_bytes(
    config: dict[str, Any], limits: dict[str, int]
) -> None:
    inputs = inputs_of(METRALE, config, **limits)
    expected = metrale_sizes(config, **limits)
    trimmed = 0
    for buffer in METRALE.buffers:
        found = explain(METRALE, buffer.name, inputs).full
        assert found is not None
        assert found.nbytes == expected[buffer.name]
        trimmed += found.trimmed
        # What is shown adds up to what is allocated.
        extents = [found.extent, *(use.extent for use in found.uses)]
        shown = max((each.nbytes for each in extents if each is not None), default=0)
        if found.floor is not None:
            assert isinstance(found.floor.value, int)
            assert found.floor_bites == (shown < found.floor.value)
            shown = max(shown, found.floor.value)
        if not found.open:
            assert shown == 0
            shown = int(found.otherwise.value) if found.otherwise else 0  # type: ignore[arg-type]
        assert shown == found.nbytes + found.trimmed
        for each in extents:
            if each is not None and each.shape is not None:
                count = 1
                for dim in each.shape:
                    count *= dim
                assert each.nbytes == count * each.bits // 8
            if each is not None and each.parts:
                last = each.parts[-1]
                assert each.nbytes == last.offset + last.extent.nbytes
    assert trimmed == metrale_trimmed(config, **limits)


def test_every_buffer_of_every_model_has_a_text() -> None:
    for model in ("GLM-5.3-Flash", "Nemotron-3-Nano-30B-A3B", "DeepSeek-V3"):
        for buffer in METRALE.buffers:
            text = explanation_text(of(buffer.name, model, tokens=3), model)
            assert text.startswith(f"{buffer.name}: ")
            assert "\n\n\n" not in text and text.endswith("\n")


# The command, on a small schema.

SMALL = """\
arena: {class: Arena, package: small_arena, label: arena, doc: An arena.}
limits:
  max_tokens:
    {symbol: M, tokens: true, minimum: 1, default: 20, doc: Tokens of a pass.}
config:
  width: {doc: Width of a row.}
  model_type: {type: str, doc: Family.}
constants:
  TILE: {value: 16, doc: Rows of a tile.}
let:
  padded: {value: "align(M, TILE)", doc: Padded rows.}
functions:
  twice: {parameters: {n: {doc: A count.}}, value: 2 * n, doc: The double.}
buffers:
  rows:
    doc: One row per token.
    dtype: bf16
    token_major: true
    uses:
      plain: {shape: [M, width], doc: As they are.}
      tiled: {when: width > 4, shape: [padded, width], doc: Padded.}
  table:
    doc: "A table,\\nof packed numbers."
    when: width > 2
    min_bytes: 64
    dtype: fp4_e2m1
    shape: [padded, 3]
  raw: {doc: Bytes., bytes: twice(width) + 1}
trims:
  none: {doc: A family without rows., when: model_type == 'none', buffers: [rows]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the small schema, its family table and a config."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(
        SMALL.replace("doc: An arena.}", "doc: An arena., families: families.yaml}")
    )
    (tmp_path / "families.yaml").write_text(TABLE)
    (tmp_path / "config.json").write_text('{"model_type": "plain", "width": 5}')
    return tmp_path


TABLE = "families: {plain: {doc: Plain., model_types: [plain, none]}}\n"


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["explain", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_text_of_a_buffer_with_uses(here: Path) -> None:
    found = run("rows", "-s", "small.yaml", "-c", "config.json", "-t", "2").stdout
    assert found == """\
rows: One row per token.
  Token-major.

config.json: max_tokens=20
  320 bytes
  trim none: model_type == "none" = "plain" == "none" = False (does not apply)
  steps
    padded = align(M, TILE) = align(20, 16) = 32
  uses
    plain: bf16 [M, width] = [20, 5] of 2 bytes = 200 bytes
    tiled
      = bf16 [padded, width]
      = [32, 5] of 2 bytes
      = 320 bytes (wins, 120 bytes ahead of plain)
      gate: width > 4 = 5 > 4 = True

a pass of 2 tokens: 160 bytes
  steps
    padded = align(M, TILE) = align(2, 16) = 16
  uses
    plain: bf16 [M, width] = [2, 5] of 2 bytes = 20 bytes
    tiled
      = bf16 [padded, width]
      = [16, 5] of 2 bytes
      = 160 bytes (wins, 140 bytes ahead of plain)
      gate: width > 4 = 5 > 4 = True

depends on
  limit max_tokens = 20: Tokens of a pass.
  config width = 5: Width of a row.
  config model_type = "plain": Family.
  constant TILE = 16: Rows of a tile.
  let padded = 32: Padded rows.

shares
  padded: table
"""


def test_the_text_of_a_floor_and_of_a_gate(here: Path) -> None:
    # 32 rows of 3 elements of 4 bits are 48 bytes.
    options = ("-s", "small.yaml", "-c", "config.json")
    assert run("table", *options, "-t", "1").stdout == """\
table: A table, of packed numbers.
  At least 64 bytes.
  Exists when width > 2, else NULL.

config.json: max_tokens=20
  64 bytes
  gate: width > 2 = 5 > 2 = True (the buffer exists)
  steps
    padded = align(M, TILE) = align(20, 16) = 32
  extent: fp4_e2m1 [padded, 3] = [32, 3] of 4 bits = 48 bytes
  floor: 64 (sets the size)

a pass of 1 token: 64 bytes, the whole buffer, which is not token-major

depends on
  limit max_tokens = 20: Tokens of a pass.
  config width = 5: Width of a row.
  constant TILE = 16: Rows of a tile.
  let padded = 32: Padded rows.

shares
  padded: rows
"""
    whole = "a pass of 21 tokens: 320 bytes, the whole buffer\n"
    assert whole in run("rows", *options, "-t", "21").stdout
    closed = run("table", *options, "--set", "width=2").stdout
    assert "\n  0 bytes\n  gate: width > 2 = 2 > 2 = False (no memory)\n\n" in closed
    # 43,200 rows are padded to 43,216, which is no multiple of a line's width.
    wide = run("rows", *options, "-M", "43200", "--set", "width=5000").stdout
    assert "\n  432,000,000 bytes (411.99 MiB)\n" in wide


def test_a_long_chain_is_on_lines_of_its_own(here: Path) -> None:
    text = (here / "small.yaml").read_text()
    long = "max(width, width + 1, width + 2, width + 3, width + 4, width + 5)"
    (here / "small.yaml").write_text(
        text.replace("bytes: twice(width) + 1", f'bytes: "{long} + 1"')
    )
    found = run("raw", "-s", "small.yaml", "-c", "config.json").stdout
    assert """
  extent
    = max(width, width + 1, width + 2, width + 3, width + 4, width + 5) + 1
    = max(5, 5 + 1, 5 + 2, 5 + 3, 5 + 4, 5 + 5) + 1
    = 10 + 1
    = 11 bytes
""" in found


def test_without_a_config_there_are_symbols_alone(here: Path) -> None:
    assert run("rows", "-s", "small.yaml").stdout == """\
rows: One row per token.
  The largest of plain bf16 [M, width]; tiled bf16 [padded, width] when width > 4.
  Token-major.

depends on
  limit max_tokens: Tokens of a pass.
  config width: Width of a row.
  config model_type: Family.
  constant TILE: Rows of a tile.
  let padded = align(M, TILE): Padded rows.

shares
  padded: table
"""
    data = json.loads(run("rows", "-s", "small.yaml", "--format", "json").stdout)
    assert (data["config"], data["sized"], data["pass"]) == (None, None, None)
    assert data["depends_on"][4]["formula"] == "align(M, TILE)"


def test_a_slab_names_its_method() -> None:
    name = "ssm_rowwise_w_bf16"
    assert of(name).details[-1] == f"Carved by carve_{name}."


def test_json_holds_what_the_text_says(here: Path) -> None:
    options = ("-s", "small.yaml", "-c", "config.json", "--format", "json", "-t", "2")
    data = json.loads(run("rows", *options).stdout)
    assert data["buffer"] == "rows" and data["schema"] == "small_arena"
    assert data["sized"]["limits"] == {"max_tokens": 20}
    assert (data["sized"]["bytes"], data["pass"]["bytes"]) == (320, 160)
    assert (data["sized"]["use"], data["sized"]["margin"]) == ("tiled", 120)
    assert data["sized"]["uses"][1]["extent"]["shape"] == [32, 5]
    assert data["sized"]["uses"][1]["extent"]["element_bits"] == 16
    assert data["sized"]["steps"] == [
        {
            "name": "padded",
            "chain": ["align(M, TILE)", "align(20, 16)"],
            "value": 32,
            "extent": None,
        }
    ]
    width = next(each for each in data["depends_on"] if each["name"] == "width")
    assert (width["value"], width["shared_with"]) == (5, ["table", "raw"])


def test_the_share_of_a_rank() -> None:
    options = ("-s", str(ROOT / "schema/metrale.yaml"), "-M", "8", "--tp", "2")
    config = str(ROOT / "tests/data/Qwen3-32B.json")
    found = run("attn_output", *options, "-c", config).stdout
    assert ", max_batch_size=32, tp=2\n" in found
    # 64 heads of 128, of which a rank has half.
    assert "  config num_attention_heads = 32: " in found
    assert f"\n  {8 * 32 * 128 * 2:,} bytes (64.00 KiB)\n" in found
    found = run("attn_output", *options, "-c", config, "--format", "json").stdout
    assert json.loads(found)["sized"]["tp"] == 2


def test_a_family_that_is_trimmed(here: Path) -> None:
    options = ("-s", "small.yaml", "-c", "config.json", "--set", "model_type=none")
    found = run("rows", *options).stdout
    assert "\n  0 bytes; trimmed 320 bytes\n" in found
    assert '"none" == "none" = True (empties the buffer)' in found


def test_what_cannot_be_explained(here: Path) -> None:
    small = ("-s", "small.yaml")
    config = ("-c", "config.json")
    assert run("row", *small, code=2).stderr == (
        "error: no buffer is named `row`; did you mean `rows`?\n"
    )
    assert run("hidden", *small, code=2).stderr == (
        "error: no buffer is named `hidden`; known here: rows, table, raw\n"
    )
    assert run("padded", *small, code=2).stderr == (
        "error: `padded` is a let, and no buffer; the first that reads it is `rows`\n"
    )
    assert run("width", *small, code=2).stderr == (
        "error: `width` is a config field, and no buffer; the first that reads it is "
        "`rows`\n"
    )
    assert (
        "explain takes one --config" in run("rows", *small, *config * 2, code=2).stderr
    )
    assert "--pass-tokens goes with a --config" in (
        run("rows", *small, "-t", "2", code=2).stderr
    )
    assert run("rows", *small, *config, "-t", "0", code=2).stderr == (
        "error: a pass of 0 tokens; at least 1\n"
    )
    found = run("raw", *small, *config, "--set", f"width={2**62}", code=2)
    assert found.stderr.startswith("error: ") and found.stdout == ""


def test_a_let_without_a_value_that_nothing_needs(here: Path) -> None:
    text = (here / "small.yaml").read_text()
    text = text.replace("let:", "let:\n  per: {value: 12 // width, doc: Per row.}")
    text = text.replace("value: 2 * n", "value: per * n")
    text = text.replace("{doc: Bytes., ", "{doc: Bytes., when: width > 0, ")
    (here / "small.yaml").write_text(text)
    options = ("-s", "small.yaml", "-c", "config.json", "--set", "width=0")
    found = run("raw", *options).stdout
    assert "\n  let per = 12 // width: Per row.\n" in found
    assert "gate: width > 0 = 0 > 0 = False (no memory)" in found
    data = json.loads(run("raw", *options, "--format", "json").stdout)
    assert {"per": None}.items() <= {
        each["name"]: each["value"] for each in data["depends_on"]
    }.items()


def test_a_name_that_no_buffer_reads_is_told_all_the_same() -> None:
    with pytest.raises(ArenagenError) as caught:
        explain(METRALE, "DECODE_META_MAX_ROWS", None)
    assert str(caught.value) == "`DECODE_META_MAX_ROWS` is a constant, and no buffer"


def test_many_buffers_are_not_listed() -> None:
    with pytest.raises(ArenagenError, match=r"`zzz`; 46 buffers are declared$"):
        explain(METRALE, "zzz", None)


def test_sizes_that_do_not_exist_are_refused() -> None:
    inputs = inputs_of(METRALE, {"hidden_size": 2**50}, **LIMITS)
    with pytest.raises(SizingError, match="hidden_states"):
        explain(METRALE, "residual", inputs)
