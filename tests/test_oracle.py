"""The oracle held against the reference's worked values and against hand arithmetic.

Every expected number is written out as the product or sum that a person would do on
paper, or is a figure of the reference. Also checks that the strategies and the
expected configs speak of the fields that the oracle reads, and of no others.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from expected_configs import EXPECTED
from strategies import configs, levers, limits

DATA = Path(__file__).parent / "data"
MIB = 1048576

QWEN3_NEXT = EXPECTED["Qwen3-Next-80B-A3B-Thinking"]
LLAMA_8B = EXPECTED["Llama-3.1-8B"]
DEEPSEEK = EXPECTED["DeepSeek-V3"]
GLM = EXPECTED["GLM-5.3-Flash"]
NEMOTRON = EXPECTED["Nemotron-3-Nano-30B-A3B"]


def sizes(
    config: oracle.Config,
    tokens: int = 1,
    seq_len: int = 4096,
    block: int = 16,
    batch: int = 32,
    **options: Any,
) -> dict[str, int]:
    return oracle.metrale_sizes(
        config,
        max_batch_tokens=tokens,
        max_seq_len=seq_len,
        kv_block_size=block,
        max_batch_size=batch,
        **options,
    )


def trimmed(config: oracle.Config, **options: Any) -> int:
    return oracle.metrale_trimmed(
        config,
        max_batch_tokens=1,
        max_seq_len=4096,
        kv_block_size=16,
        max_batch_size=32,
        **options,
    )


# Qwen3-Next at one token: M_pad = k_rows = 16, R = 32, max_blocks = 257, QKVZ 12288.
QWEN3_NEXT_ONE_TOKEN = {
    "hidden_states": 4096,
    "residual": 4096,
    "norm_output": 4096,
    "qkv_output": 294912,
    "attn_output": 8192,
    "gate_logits": 1024,
    "gate_logits_f32": 2048,
    "moe_router_in_f32": 8192,
    "moe_output": 65536,  # 16 * 2048 * 2
    "logits": 303872,
    "ssm_qkvz": 393216,
    "ssm_ba": 256,
    "ssm_deinterleaved": 393216,
    "ssm_gates": 256,
    "ssm_conv_out_f32": 49152,  # 12288 * 4, no padding
    "scratch": 201088,  # verify: 32768 + 160 * 24 + 160 * 257 * 4
    "expert_gate_out": 163840,  # 16 * (10 * 512) * 2
    "expert_up_out": 163840,
    "expert_down_out": 655360,  # 16 * 10 * 2048 * 2
    "splitk_workspace": 49536,  # 48 * 258 * 4
    "o_latent": 256,
    "norm_unit_w": 4096,
    "hc_streams": 256,
    "hc_post": 256,
    "hc_comb": 256,
    "hc_lowrank_scratch": 256,
    "qsa_select_scratch": 256,
    "gdn_fla_scratch": 44703744,  # 17 * 32 tiles of 16384 * 3 + 32768 + 256
    "ssd_scratch": 0,
    "token_ids": 256,
    "ffn_act_q8": 0,
    "ffn_act_a": 0,
    "ffn_act_scale": 0,
    "ffn_act_scale_kmajor": 0,
    "ffn_gate_up_fused": 0,
    "fp8_act": 65536,  # 16 * (16 * 256)
    "moe_fp8_scratch": 136964,
    "fp8_act_scale": 2048,  # 16 * 32 * 4
    "fp8_act_scale_kmajor": 2048,
    "q2_dequant_scratch": 0,
    "lora_xa": 0,
    "lora_delta": 0,
    "lora_hact": 0,
    "lora_seq_slot": 0,
    "q2_act_q8": 0,
    "ssm_rowwise_w_bf16": 0,
}


def test_worked_values_in_table_order() -> None:
    assert list(sizes(QWEN3_NEXT).items()) == list(QWEN3_NEXT_ONE_TOKEN.items())
    assert trimmed(QWEN3_NEXT) == 0


def test_batch_size_within_32_rows_changes_nothing() -> None:
    one, most, all_rows = (
        sizes(QWEN3_NEXT, tokens=8192, batch=batch) for batch in (1, 31, 32)
    )
    assert one == most == all_rows


@pytest.mark.parametrize(("batch", "rows"), [(1, 160), (160, 161), (192, 193)])
def test_logits_rows(batch: int, rows: int) -> None:
    got = sizes(QWEN3_NEXT, tokens=8192, batch=batch)
    assert got["logits"] == rows * 151936 * 2


def test_sixteen_row_padding_just_past_8192() -> None:
    got = sizes(LLAMA_8B, tokens=8193)
    assert got["hidden_states"] == 8193 * 4096 * 2
    assert got["qkv_output"] == 8208 * (32 + 2 * 8) * 128 * 2
    assert got["moe_output"] == 8208 * 4096 * 2
    assert got["ssm_qkvz"] == (8193 + 8208) * 8 * 128 * 2  # K, then V
    assert got["ssm_deinterleaved"] == 8193 * 4096 * 2
    assert got["expert_gate_out"] == got["expert_up_out"] == 8208 * 14336 * 2
    assert got["expert_down_out"] == 8208 * 4096 * 2
    assert got["ffn_act_q8"] == 8193 * 14336 * 4 + MIB
    assert got["ffn_act_a"] == 8208 * 14336
    assert got["ffn_act_scale"] == 8208 * 448 * 4
    assert got["ffn_act_scale_kmajor"] == 112 * 8208 * 4
    assert got["ffn_gate_up_fused"] == 16 * 28672 * 2
    assert got["fp8_act"] == 8208 * 4096
    assert got["fp8_act_scale"] == got["fp8_act_scale_kmajor"] == 8208 * 32 * 4
    assert got["moe_fp8_scratch"] == 0


@pytest.mark.parametrize(("tokens", "rows"), [(1, 16), (3, 16), (16, 16), (17, 32)])
def test_expert_rows(tokens: int, rows: int) -> None:
    got = sizes(QWEN3_NEXT, tokens=tokens)
    assert got["expert_gate_out"] == rows * 5120 * 2
    assert got["expert_down_out"] == rows * 10 * 2048 * 2


def test_latent_experts_narrow_the_down_projection() -> None:
    got = sizes({**QWEN3_NEXT, "moe_latent_size": 1024}, tokens=4)
    assert got["expert_down_out"] == 16 * 10 * 1024 * 2
    assert got["ssm_ba"] == 4 * 1024 * 2


def test_placeholders_are_not_floors() -> None:
    dense = sizes({"hidden_size": 64, "zero_expert_num": 900})
    assert dense["gate_logits"] == dense["gate_logits_f32"] == 256
    assert dense["moe_router_in_f32"] == 256
    routed = sizes({"hidden_size": 8, "num_experts": 3, "zero_expert_num": 2})
    assert routed["gate_logits"] == 5 * 2
    assert routed["gate_logits_f32"] == 5 * 4
    assert routed["moe_router_in_f32"] == 8 * 4


def test_an_empty_config_keeps_only_floors_and_constants() -> None:
    nonzero = {name: nbytes for name, nbytes in sizes({}).items() if nbytes}
    assert nonzero == {
        "gate_logits": 256,
        "gate_logits_f32": 256,
        "moe_router_in_f32": 256,
        "ssm_qkvz": 256,
        "ssm_ba": 256,
        "ssm_deinterleaved": 256,
        "ssm_gates": 256,
        "ssm_conv_out_f32": 256,
        "scratch": 201088,
        "splitk_workspace": 48 * 2 * 4,
        "o_latent": 256,
        "hc_streams": 256,
        "hc_post": 256,
        "hc_comb": 256,
        "hc_lowrank_scratch": 256,
        "qsa_select_scratch": 256,
        "token_ids": 256,
        "ffn_act_q8": MIB,
    }


def test_latent_attention() -> None:
    got = sizes(DEEPSEEK, tokens=3)
    assert got["qkv_output"] == 16 * 3 * 128 * 192 * 2
    assert got["attn_output"] == 3 * 128 * (512 + 64) * 2
    assert got["ssm_deinterleaved"] == 3 * 128 * (512 + 64) * 2
    assert got["ssm_qkvz"] == (3 + 16) * 128 * 192 * 2
    assert got["ssm_ba"] == 3 * 1536 * 2
    assert got["ssm_conv_out_f32"] == 3 * 128 * 64 * 2

    plain = sizes({**DEEPSEEK, "kv_lora_rank": 0}, tokens=3)
    assert plain["attn_output"] == plain["ssm_deinterleaved"] == 3 * 128 * 192 * 2
    assert plain["ssm_ba"] == plain["ssm_conv_out_f32"] == 256


def test_k_rope_rows_can_outgrow_the_q_latent() -> None:
    config = {"kv_lora_rank": 1, "q_lora_rank": 32, "qk_rope_head_dim": 64}
    assert sizes(config, tokens=5)["ssm_ba"] == 5 * 64 * 2


def test_mamba2() -> None:
    # d_inner 64 * 64, d_xbc 4096 + 2 * 8 * 128, in_proj 4096 + 6144 + 64.
    got = sizes(NEMOTRON, tokens=65)
    assert got["norm_output"] == 65 * 4096 * 2
    assert got["norm_unit_w"] == 4096 * 2
    assert got["attn_output"] == 65 * 4096 * 2
    assert got["ssm_qkvz"] == 65 * 10304 * 2
    assert got["ssm_deinterleaved"] == 65 * 6144 * 2
    assert got["ssd_scratch"] == 2 * (64 * 3 * 64 * 4) + 3 * 8 * 64 * 64 * 4
    assert got["fp8_act"] == 80 * 4096
    assert got["gdn_fla_scratch"] == 0

    groupless = sizes({**NEMOTRON, "n_groups": 0}, tokens=65)
    assert groupless["ssd_scratch"] == 2 * (64 * 3 * 64 * 4) + 3 * 64 * 64 * 4
    assert sizes({**NEMOTRON, "ssm_state_size": 0})["ssd_scratch"] == 0


def test_shared_expert_can_be_the_widest_user_of_ssm_qkvz() -> None:
    config = {"num_experts": 8, "shared_expert_intermediate_size": 8192}
    assert sizes(config, tokens=17)["ssm_qkvz"] == 17 * 8192 * 2


@pytest.mark.parametrize("field", ["linear_key_head_dim", "linear_value_head_dim"])
def test_gdn_scratch_needs_both_head_dims_at_128(field: str) -> None:
    assert sizes(QWEN3_NEXT, tokens=64)["gdn_fla_scratch"] == 17 * 32 * 82176
    assert sizes(QWEN3_NEXT, tokens=65)["gdn_fla_scratch"] == 18 * 32 * 82176
    assert sizes({**QWEN3_NEXT, field: 64})["gdn_fla_scratch"] == 0


def test_gdn_value_width_sizes_the_fp8_activation() -> None:
    config = {
        "hidden_size": 100,
        "linear_num_value_heads": 2,
        "linear_value_head_dim": 65,
    }
    got = sizes(config)
    assert got["fp8_act"] == 16 * 130
    assert got["fp8_act_scale"] == 16 * 2 * 4


def test_hyper_connections() -> None:
    config = {"hidden_size": 2560, "hc_mult": 4, "hc_lowrank": 320}
    one = sizes(config)
    assert one["hc_streams"] == 4 * 2560 * 4
    assert one["hc_post"] == one["hc_comb"] == 256
    assert one["hc_lowrank_scratch"] == 4 * 10240 + 4 * 320  # split

    many = sizes(config, tokens=8192)
    assert many["hc_post"] == 8192 * 4 * 4
    assert many["hc_comb"] == 8192 * 4 * 4 * 4
    gemm = 2 * (2048 * 10240 * 2) + 2048 * 320 * 2 + 2048 * 4 * 2
    assert many["hc_lowrank_scratch"] == gemm
    narrow = sizes({"hc_mult": 1, "hc_lowrank": 320}, tokens=65)
    assert narrow["hc_lowrank_scratch"] == 64 * 320 * 4  # split, capped at 64 rows
    assert sizes({**config, "hc_lowrank": 0})["hc_lowrank_scratch"] == 256
    assert sizes({**config, "hc_mult": 0})["hc_lowrank_scratch"] == 256


def test_indexer() -> None:
    a_row = 33 * 128 * 2 + 32 * 128 * 4 + 1024 * 4 + 512 * 4
    assert sizes(GLM)["qsa_select_scratch"] == 2048 * a_row
    ragged = sizes(GLM, seq_len=4097)["qsa_select_scratch"]
    assert ragged == 2048 * (a_row + 4)
    assert sizes({**GLM, "index_topk": 0})["qsa_select_scratch"] == 256
    assert sizes({**GLM, "index_compress_ratio": 0})["qsa_select_scratch"] == 256


def test_grouped_output_projection() -> None:
    config = {"o_groups": 8, "o_lora_rank": 1024}
    assert sizes(config, tokens=3)["o_latent"] == 3 * 8 * 1024 * 2


def test_adapters() -> None:
    got = sizes({**QWEN3_NEXT, "adapter_max_rank": 16}, tokens=7)
    assert got["lora_xa"] == 7 * 16 * 2
    assert got["lora_delta"] == 7 * (2 * 16 * 256) * 2  # the gated q projection
    assert got["lora_hact"] == 7 * 5120 * 2
    assert got["lora_seq_slot"] == 7 * 4


def test_a_gate_opens_at_one() -> None:
    config = {
        "hidden_size": 128,
        "num_experts": 1,
        "num_experts_per_tok": 1,
        "moe_latent_size": 1,
        "linear_num_value_heads": 1,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "mamba_num_heads": 1,
        "ssm_state_size": 1,
        "hc_mult": 1,
        "hc_lowrank": 1,
        "index_topk": 1,
        "index_compress_ratio": 1,
        "adapter_max_rank": 1,
    }
    got = sizes(config, tokens=100, seq_len=1)
    assert got["gate_logits"] == 100 * 2
    assert got["expert_down_out"] == 112 * 2
    assert got["ssm_ba"] == 100 * 2 * 2
    assert got["hc_streams"] == 100 * 128 * 4
    assert got["hc_post"] == got["hc_comb"] == 100 * 4
    gemm = 2 * (100 * 128 * 2) + 100 * 2 + 100 * 2
    assert got["hc_lowrank_scratch"] == gemm  # past split's 64 * 128 * 4 + 64 * 4
    assert got["qsa_select_scratch"] == 2048 * (4 + 4)
    assert got["gdn_fla_scratch"] == 18 * 82176
    assert got["ssd_scratch"] == 2 * (3 * 64 * 4) + 3 * 4096 * 4
    assert got["token_ids"] == 100 * 4
    assert got["lora_xa"] == 100 * 2
    assert got["lora_delta"] == 100 * 128 * 2
    mla = {"kv_lora_rank": 1, "q_lora_rank": 3, "num_attention_heads": 2}
    assert sizes(mla, tokens=100)["ssm_ba"] == 100 * 3 * 2
    rope = {"kv_lora_rank": 1, "num_attention_heads": 2, "qk_rope_head_dim": 3}
    assert sizes(rope, tokens=100)["ssm_ba"] == 100 * 3 * 2
    assert sizes(rope, tokens=100)["ssm_conv_out_f32"] == 100 * 2 * 3 * 2


def test_dense_width_can_outgrow_the_routed_experts() -> None:
    config = {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 100,
        "intermediate_size": 300,
    }
    got = sizes({**config, "adapter_max_rank": 4}, tokens=5)
    assert got["expert_gate_out"] == got["expert_up_out"] == 16 * 300 * 2
    assert got["lora_delta"] == 5 * 300 * 2


def test_quantised_activations_take_the_widest_input() -> None:
    wide = {"hidden_size": 513, "intermediate_size": 10, "num_attention_heads": 1}
    got = sizes(wide, tokens=2, native_q2_mmq=True)
    assert got["q2_act_q8"] == got["ffn_act_q8"] == 2 * 768 * 4 + MIB
    assert got["fp8_act_scale"] == 16 * 5 * 4
    assert got["ffn_act_scale"] == 16 * 16 * 4  # 513 // 32 rounds down
    assert got["ffn_act_scale_kmajor"] == 4 * 16 * 4


def test_moe_fp8_regions_of_ragged_widths() -> None:
    config = {
        "hidden_size": 65,
        "num_experts": 3,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 129,
        "shared_expert_intermediate_size": 257,
    }
    # 130 rows: 257 columns are 3 scales, 129 are 2; 2 + 3 + 1 tiles by 3 columns.
    assert oracle.moe_fp8_regions(config, 130) == {
        "activation": (0, 130 * 257),  # 33410, up to 33536
        "scales": (33536, 130 * 3 * 4),  # ends at 35096, up to 35328
        "worklist": (35328, 6 * 3 * 8),
        "total_tiles": (35584, 4),
    }
    # Without the shared expert the routed rows are wider: 65 is 1 scale, 129 are 2.
    routed = {**config, "shared_expert_intermediate_size": 0}
    assert oracle.moe_fp8_regions(routed, 130) == {
        "activation": (0, 130 * 129),  # 16770, up to 16896
        "scales": (16896, 130 * 2 * 4),  # ends at 17936, up to 18176
        "worklist": (18176, 6 * 3 * 8),
        "total_tiles": (18432, 4),
    }


@pytest.mark.parametrize(("rows", "tiles"), [(256, 2), (257, 3), (384, 3)])
def test_moe_fp8_worklist_tiles_of_128_rows(rows: int, tiles: int) -> None:
    config = {"hidden_size": 64, "num_experts": 5, "num_experts_per_tok": 1}
    _, nbytes = oracle.moe_fp8_regions(config, rows)["worklist"]
    assert nbytes == (tiles + 5 + 1) * 1 * 8


def test_staging_rounds_the_chunk_up_and_never_below_one() -> None:
    # 20 tokens over eight streams are chunks of 3; K large enough to beat verify.
    config = {"num_experts_per_tok": 2000}
    staging = 24 * 2000 * 8 + 8 * 4096 + 96 + 192 + 2 * 64 + 40 + 32 + 64
    assert sizes(config, tokens=20)["scratch"] == staging


def test_q2_dequant_of_a_gated_q_projection() -> None:
    config = {"hidden_size": 3, "num_attention_heads": 7, "head_dim": 5}
    gated = {**config, "attn_gated": True}
    assert oracle.q2_dequant_scratch_bytes(config) == 7 * 5 * 3 * 2
    assert oracle.q2_dequant_scratch_bytes(gated) == 2 * 7 * 5 * 3 * 2


GLM_TRIM_ONE_TOKEN = {
    "qkv_output": 16 * 192 * 256 * 2,
    "attn_output": 64 * 512 * 2,
    "gate_logits": 288 * 2,
    "gate_logits_f32": 288 * 4,
    "moe_router_in_f32": 4096 * 4,
    "ssm_qkvz": 16 * 32768 * 2,
    "ssm_ba": 1536 * 2,
    "ssm_deinterleaved": 16 * 32768 * 2,
    "ssm_gates": 2 * 64 * 4,
    "ssm_conv_out_f32": 32768 * 4,
    "expert_gate_out": 16 * 8 * 2048 * 2,
    "expert_up_out": 16 * 8 * 2048 * 2,
    "expert_down_out": 16 * 8 * 4096 * 2,
    "gdn_fla_scratch": 17 * 64 * 82176,
    "fp8_act": 16 * 16384,
    "moe_fp8_scratch": 165380,  # 16384 + 512, 290 * 64 * 8, 4: all multiples of 256
    "fp8_act_scale": 16 * 128 * 4,
    "fp8_act_scale_kmajor": 16 * 128 * 4,
}


def test_glm_trim() -> None:
    assert tuple(GLM_TRIM_ONE_TOKEN) == oracle.METRALE_TRIMMED
    untrimmed = sizes(GLM, glm_trim=False)
    armed = sizes(GLM)
    assert list(armed) == list(untrimmed)
    for name, nbytes in untrimmed.items():
        assert armed[name] == (0 if name in GLM_TRIM_ONE_TOKEN else nbytes)
    removed = {name: untrimmed[name] for name in oracle.METRALE_TRIMMED}
    assert removed == GLM_TRIM_ONE_TOKEN
    assert trimmed(GLM) == sum(GLM_TRIM_ONE_TOKEN.values())
    assert trimmed(GLM, glm_trim=False) == 0
    assert trimmed({**GLM, "model_type": "glm5_next_text"}) == trimmed(GLM)
    assert trimmed({**GLM, "model_type": "glm5"}) == 0


def test_trim_covers_placeholders_too() -> None:
    # Five floors and three placeholders; scratch and the rest stay.
    assert trimmed({"model_type": "glm5_next"}) == 8 * 256


def test_splitk_policies() -> None:
    slot = 258 * 4

    def slots(config: oracle.Config, **options: Any) -> int:
        return sizes(config, **options)["splitk_workspace"] // slot

    assert slots(QWEN3_NEXT) == 48
    assert slots(QWEN3_NEXT, sm_count=132, batch=300) == 132
    assert slots(QWEN3_NEXT, sm_count=0) == 1
    assert slots(QWEN3_NEXT, splitk="auto") == 32 * 16 * 6  # cdiv(96, 16)
    assert slots(QWEN3_NEXT, splitk="auto", sm_count=132) == 32 * 16 * 16  # 17 clamped
    assert slots({**QWEN3_NEXT, "num_attention_heads": 500}, splitk="auto") == 32 * 500
    assert slots({**QWEN3_NEXT, "num_attention_heads": 0}, splitk="auto") == 32 * 16
    assert slots(QWEN3_NEXT, splitk=4, batch=64) == 64 * 16 * 4
    headless = {**QWEN3_NEXT, "num_attention_heads": 0}
    assert slots(headless, splitk="auto", sm_count=4) == 32 * 8
    assert slots(QWEN3_NEXT, splitk="auto", sm_count=0) == 32 * 16
    with pytest.raises(ValueError, match="no split-K policy"):
        slots(QWEN3_NEXT, splitk="both")


def test_scratch_floor() -> None:
    assert sizes({}, seq_len=1)["scratch"] == 65536


def test_scratch_without_blocks_takes_256() -> None:
    verify = 32768 + 160 * 24 + 160 * 256 * 4
    assert sizes({}, block=0, seq_len=200000)["scratch"] == verify


def test_scratch_for_decode_beyond_the_verify_rows() -> None:
    assert sizes({}, batch=300)["scratch"] == 32768 + 300 * 24 + 300 * 257 * 4


def test_scratch_for_batched_prefill_staging() -> None:
    staging = 8192 * 10 * 8 + 8 * (16 * 1024 + 64) + 8192 * 4 + 8192 * 8
    tables = 2 * 64 + 40 + 32 + 64
    got = sizes(QWEN3_NEXT, tokens=8192)["scratch"]
    assert got == staging + tables == 885512
    mrope = {**QWEN3_NEXT, "mrope_interleaved": True}
    assert sizes(mrope, tokens=8192)["scratch"] == 885512 + 2 * 8192 * 4


def test_scratch_prefill_layout() -> None:
    # K = 10: top-K 3 * 10 * 8, positions 12 then 4 of padding, slots, blocks, length.
    config = {"num_experts_per_tok": 10}
    one_stream = 240 + 16 + 24 + 5 * 4 + 4
    assert oracle.prefill_scratch_bytes(config, 3, 5) == one_stream
    # Three streams: positions 36, again 4 of padding.
    mrope = {**config, "mrope_interleaved": True}
    assert oracle.prefill_scratch_bytes(mrope, 3, 5) == 240 + 40 + 24 + 20 + 4


def test_q2_levers() -> None:
    got = sizes(QWEN3_NEXT, native_q2=True, native_q2_mmq=True)
    assert got["q2_dequant_scratch"] == 12288 * 2048 * 2
    assert got["q2_act_q8"] == 5120 * 4 + MIB
    assert oracle.q2_dequant_scratch_bytes(LLAMA_8B) == 14336 * 4096 * 2
    assert oracle.q2_dequant_scratch_bytes(NEMOTRON) == 10304 * 2688 * 2
    wide_kv = {"hidden_size": 3, "num_key_value_heads": 7, "head_dim": 5}
    assert oracle.q2_dequant_scratch_bytes(wide_kv) == 2 * 7 * 5 * 3 * 2
    # 7 * 43 = 301 columns fill two tiles of 256.
    odd = {"num_attention_heads": 7, "head_dim": 43}
    assert sizes(odd, tokens=3, native_q2_mmq=True)["q2_act_q8"] == 3 * 512 * 4 + MIB


def test_rowwise_slab() -> None:
    dims = {
        "hidden_size": 5120,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 48,
        "linear_value_head_dim": 128,
    }
    layer = 167772160 + 62914560
    assert oracle.ssm_rowwise_w_bf16_layer_bytes(dims) == layer
    kinds = ["linear_attention", "mamba", "full_attention", "linear_attention"]
    listed = {**dims, "layer_types": kinds, "num_hidden_layers": 64}
    assert oracle.ssm_rowwise_w_bf16_bytes_for(listed, True) == 2 * layer
    assert oracle.ssm_rowwise_w_bf16_bytes_for(listed, False) == 0
    assert sizes(listed, fp8_rowwise=True)["ssm_rowwise_w_bf16"] == 2 * layer
    every_fourth = {**dims, "num_hidden_layers": 64, "full_attention_interval": 4}
    assert oracle.ssm_rowwise_w_bf16_bytes_for(every_fourth, True) == 48 * layer
    attention_only = {**dims, "num_hidden_layers": 64}
    assert oracle.ssm_rowwise_w_bf16_bytes_for(attention_only, True) == 0


@pytest.mark.parametrize(
    ("stem", "attention", "linear"),
    [
        ("Llama-3.1-8B", 32, 0),
        ("Llama-3.1-70B", 80, 0),
        ("Qwen3-Next-80B-A3B-Thinking", 12, 36),
        ("Qwen3.5-27B", 16, 48),
        ("Qwen3.5-35B-A3B", 10, 30),
        ("GLM-5.3-Flash", 11, 34),
        ("Nemotron-3-Nano-30B-A3B", 6, 0),
    ],
)
def test_layer_counts(stem: str, attention: int, linear: int) -> None:
    assert oracle.num_attention_layers(EXPECTED[stem]) == attention
    assert oracle.num_ssm_layers(EXPECTED[stem]) == linear


def test_decode_meta_at_32_rows() -> None:
    assert oracle.decode_meta_offsets(32, 5) == {
        "positions": (0, 128),
        "seq_slot": (128, 128),
        "slots": (256, 256),
        "seq_lens": (512, 128),
        "block_table": (768, 32 * 5 * 4),
    }


def test_moe_fp8_regions() -> None:
    one = oracle.moe_fp8_regions(QWEN3_NEXT, 1)
    assert one == {
        "activation": (0, 5120),
        "scales": (5120, 160),
        "worklist": (5376, 131584),
        "total_tiles": (136960, 4),  # ends at 136964
    }
    many = oracle.moe_fp8_regions(QWEN3_NEXT, 64)
    assert many == {
        "activation": (0, 327680),
        "scales": (327680, 10240),
        "worklist": (337920, 132608),
        "total_tiles": (470528, 4),  # ends at 470532
    }


def test_moe_fp8_regions_of_256_experts() -> None:
    assert oracle.moe_fp8_regions(DEEPSEEK, 1) == {
        "activation": (0, 8 * 2048),
        "scales": (16384, 8 * 16 * 4),
        "worklist": (16896, 258 * 112 * 8),
        "total_tiles": (248064, 4),
        "small_worklist": (248320, 256 * 112 * 8),
        "small_total_tiles": (477696, 4),
    }
    assert sizes(DEEPSEEK)["moe_fp8_scratch"] == 477700


def test_batched_prefill_staging() -> None:
    # Eight streams of one token, top 10.
    small = 640 + 8 * 4096 + 32 + 64 + 2 * 64 + 40 + 32 + 64
    assert oracle.q12_batched_scratch_bytes(8, 1, 10, False) == small
    assert oracle.q12_batched_scratch_bytes(8, 1, 10, True) == small + 2 * 32
    # Ragged: 33 tokens in three streams, the longest of 20, top 3: 792 up to 832,
    # positions 132 up to 136, four int rows 16, three lengths 12 up to 16.
    ragged = 832 + 3 * 4096 + 136 + 264 + 2 * 24 + 16 + 16 + 24
    varlen = oracle.q12_batched_scratch_bytes_varlen
    assert varlen(3, 33, 20, 3, False) == ragged
    assert varlen(3, 33, 20, 3, True) == ragged + 2 * 136
    # Past 252 tokens a stream's metadata outgrows its 4096 bytes.
    assert varlen(1, 253, 253, 0, False) == 4112 + 1016 + 2024 + 16 + 8 + 8 + 8


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"hidden_size": True}, "hidden_size"),
        ({"attn_gated": 1}, "attn_gated"),
        ({"layer_types": "full_attention"}, "layer_types"),
    ],
)
def test_mistyped_fields_are_refused(config: oracle.Config, field: str) -> None:
    with pytest.raises(TypeError, match=field):
        sizes(config, fp8_rowwise=True)


def test_name_tuples_follow_the_table() -> None:
    order = list(QWEN3_NEXT_ONE_TOKEN)
    for names in (
        oracle.METRALE_TOKEN_MAJOR,
        oracle.METRALE_ZERO_ALL,
        oracle.METRALE_ZERO_PREFILL,
        oracle.METRALE_CHECKSUM,
        oracle.METRALE_TRIMMED,
    ):
        assert list(names) == [name for name in order if name in names]
    assert set(oracle.METRALE_ZERO_PREFILL) < set(oracle.METRALE_ZERO_ALL)
    assert set(oracle.METRALE_CHECKSUM) < set(oracle.METRALE_ZERO_ALL)


def test_expected_configs_hold_canonical_fields_away_from_their_defaults() -> None:
    for stem, config in EXPECTED.items():
        assert set(config) <= set(oracle.CONFIG_FIELDS), stem
        assert all(config.values()), stem
        kinds = config.get("layer_types")
        if isinstance(kinds, list):
            assert len(kinds) == config["num_hidden_layers"], stem
    fixtures = {path.stem for path in DATA.glob("*.json")}
    assert set(EXPECTED) - {"Llama-3.1-70B"} <= fixtures


def test_fixture_model_type_is_the_outer_one() -> None:
    for path in sorted(DATA.glob("*.json")):
        if path.stem in EXPECTED:
            outer = json.loads(path.read_text(encoding="utf-8"))["model_type"]
            assert EXPECTED[path.stem]["model_type"] == outer, path.name


@given(configs(), limits(), levers())
def test_any_draw_sizes_46_buffers(
    config: dict[str, object], limit: dict[str, Any], lever: dict[str, Any]
) -> None:
    assert set(config) == set(oracle.CONFIG_FIELDS)
    got = oracle.metrale_sizes(config, **limit, **lever)
    assert list(got) == list(QWEN3_NEXT_ONE_TOKEN)
    assert all(0 <= nbytes < 2**63 for nbytes in got.values())
    whole = oracle.metrale_sizes(config, **limit, **{**lever, "glm_trim": False})
    removed = oracle.metrale_trimmed(config, **limit, **lever)
    assert sum(whole.values()) == sum(got.values()) + removed


@given(configs(), limits(), levers(), st.integers(1, 40))
def test_token_major_sizes_never_shrink(
    config: dict[str, object], limit: dict[str, Any], lever: dict[str, Any], more: int
) -> None:
    wider = {**limit, "max_batch_tokens": limit["max_batch_tokens"] + more}
    before = oracle.metrale_sizes(config, **limit, **lever)
    after = oracle.metrale_sizes(config, **wider, **lever)
    assert all(before[name] <= after[name] for name in oracle.METRALE_TOKEN_MAJOR)


GATES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "experts": lambda c: c["num_experts"] > 0,
    "256 experts": lambda c: c["num_experts"] == 256,
    "latent attention": lambda c: c["kv_lora_rank"] > 0,
    "hyper-connections": lambda c: c["hc_mult"] > 0 and c["hc_lowrank"] > 0,
    "indexer": lambda c: c["index_topk"] > 0 and c["index_compress_ratio"] > 0,
    "delta net": lambda c: (
        c["linear_num_value_heads"] > 0
        and c["linear_key_head_dim"] == c["linear_value_head_dim"] == 128
    ),
    "mamba": lambda c: c["mamba_num_heads"] > 0 and c["ssm_state_size"] > 0,
    "adapters": lambda c: c["adapter_max_rank"] > 0,
    "layer list": lambda c: bool(c["layer_types"]),
    "trimmed family": lambda c: c["model_type"].startswith("glm5_next"),
}


def test_strategies_reach_every_gate_both_ways() -> None:
    seen: set[tuple[str, bool]] = set()

    @settings(max_examples=300, database=None, derandomize=True)
    @given(configs())
    def draw(config: dict[str, Any]) -> None:
        seen.update((gate, holds(config)) for gate, holds in GATES.items())

    draw()
    assert seen == {(gate, side) for gate in GATES for side in (True, False)}
