"""What each buffer reads: by hand, through lets, functions, layouts and trims."""

from __future__ import annotations

from pathlib import Path

from arenagen.load import load
from arenagen.reads import buffer_reads, readers
from arenagen.symbols import Symbols

ROOT = Path(__file__).resolve().parents[2]
METRALE = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
SYMBOLS = Symbols(METRALE)


def reads(name: str) -> set[str]:
    return set(buffer_reads(SYMBOLS, SYMBOLS.buffers[name]))


def test_limits_go_by_their_own_name_and_lets_are_followed() -> None:
    assert reads("logits") == {
        "max_batch_tokens",
        "VERIFY_ROW_CAP",
        "meta_rows",
        "DECODE_META_MIN_ROWS",
        "max_batch_size",
        "LOGITS_SPARE_ROWS",
        "vocab_size",
    }


def test_a_gate_a_placeholder_and_a_trim_count() -> None:
    assert reads("gate_logits_f32") == {
        "num_experts",
        "PLACEHOLDER_BYTES",
        "max_batch_tokens",
        "router_width",
        "zero_expert_num",
        "model_type",
        "GLM_MODEL_TYPES",
        "glm_arena_trim",
    }


def test_functions_are_followed() -> None:
    found = reads("ssm_rowwise_w_bf16")
    assert {"ssm_rowwise_w_bf16_bytes_for", "ssm_rowwise_w_bf16_layer_bytes"} <= found
    assert {"fp8_rowwise", "num_ssm_layers", "gdn_value_dim", "hidden_size"} <= found
    # A parameter is no name of the schema.
    assert "enabled" not in found


def test_layouts_are_followed() -> None:
    found = reads("moe_fp8_scratch")
    assert {"moe_fp8", "MOE_TILE_COLUMNS", "FP8_BLOCK", "max_batch_tokens"} <= found
    assert not {"rows", "expanded", "width", "column_tiles"} & found
    assert {"chunk_meta", "decode_meta"} <= reads("scratch")


def test_readers_are_in_schema_order() -> None:
    table = readers(METRALE)
    assert table["meta_rows"] == ("logits", "scratch", "splitk_workspace")
    assert table["decode_meta"] == ("scratch",)
    assert table["splitk_slots"] == table["sm_count"] == ("splitk_workspace",)
    assert "DECODE_META_MAX_ROWS" not in table
