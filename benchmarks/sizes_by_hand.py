"""The sizes of the Metrale arena as a careful person would write them by hand.

One straight line: every field is read once, what gates switch off is not computed, and
hardly a term twice. A test holds it equal to the emitted calculator, its yardstick.
"""

from __future__ import annotations

from metrale_arena import BufferSizes, Levers, ModelConfig, SizeError, Target
from metrale_arena.constants import (
    DECODE_META_MIN_ROWS,
    FP8_BLOCK,
    FP8_ROW_TILE,
    GATEUP_FUSED_MAX_M,
    GDN_CHUNK,
    GDN_HEAD_DIM,
    GDN_SPARE_CHUNKS,
    GLM_MODEL_TYPES,
    HC_GEMM_MAX_TOKENS,
    HC_SPLIT_MAX_TOKENS,
    LOGITS_SPARE_ROWS,
    MIN_KERNEL_ROWS,
    MROPE_STREAMS,
    PLACEHOLDER_BYTES,
    Q8_BLOCK,
    Q8_SPARE_BYTES,
    Q12_SIZING_STREAMS,
    QSA_SELECT_TOKENS,
    SCRATCH_META_OFFSET,
    SCRATCH_MIN_BYTES,
    SPLITK_AUTO,
    SPLITK_LEGACY,
    SPLITK_MAX_SPLITS,
    UNPAGED_BLOCKS,
    VERIFY_ROW_CAP,
)
from metrale_arena.functions import (
    q2_dequant_scratch_bytes,
    q12_batched_scratch_bytes,
    ssm_rowwise_w_bf16_bytes_for,
)
from metrale_arena.layouts import chunk_meta_bytes, decode_meta_bytes, moe_fp8_bytes
from metrale_arena.runtime.numeric import MAX_SIZE, check_int
from metrale_arena.target import DEFAULT_TARGET


def sizes_by_hand(
    config: ModelConfig,
    *,
    max_batch_tokens: int,
    max_seq_len: int,
    kv_block_size: int,
    max_batch_size: int,
    levers: Levers,
    target: Target = DEFAULT_TARGET,
) -> BufferSizes:
    check_int("max_batch_tokens", max_batch_tokens, 1)
    check_int("max_seq_len", max_seq_len, 1)
    check_int("kv_block_size", kv_block_size, 0)
    check_int("max_batch_size", max_batch_size, 1)
    M = max_batch_tokens
    hidden = config.hidden_size
    inter = config.intermediate_size
    heads = config.num_attention_heads
    kv_heads = config.num_key_value_heads
    head_dim = config.head_dim
    key_heads = config.linear_num_key_heads
    key_dim = config.linear_key_head_dim
    value_heads = config.linear_num_value_heads
    value_dim = config.linear_value_head_dim
    experts = config.num_experts
    top_k = config.num_experts_per_tok
    latent = config.moe_latent_size
    mamba_heads = config.mamba_num_heads
    state = config.ssm_state_size
    n_groups = config.n_groups
    mrope = config.mrope_interleaved
    kv_lora = config.kv_lora_rank
    rope_dim = config.qk_rope_head_dim
    hc_mult = config.hc_mult
    rank = config.adapter_max_rank

    M2 = M * 2
    M_pad = (M + FP8_ROW_TILE - 1) // FP8_ROW_TILE * FP8_ROW_TILE
    q_mul = 2 if config.attn_gated else 1
    q_width = heads * head_dim
    gdn_width = value_heads * value_dim
    qkvz = 2 * key_heads * key_dim + 2 * gdn_width
    inner = mamba_heads * config.mamba_head_dim
    xbc = inner + 2 * n_groups * state
    max_dim = max(hidden, inner)
    fp8_width = max(hidden, q_width, inner, gdn_width)
    blocks = max_seq_len // kv_block_size + 1 if kv_block_size > 0 else UNPAGED_BLOCKS
    meta_rows = max(DECODE_META_MIN_ROWS, max_batch_size)
    rows2 = (
        (max(M, MIN_KERNEL_ROWS) + FP8_ROW_TILE - 1) // FP8_ROW_TILE * FP8_ROW_TILE * 2
    )

    hidden_states = M2 * hidden
    rows_qkvz = M_pad * qkvz * 2
    if kv_lora > 0:
        absorbed = M2 * heads * (kv_lora + rope_dim)
        q_latent = M2 * config.q_lora_rank
        k_rope = M2 * rope_dim
        q_rope = M2 * heads * rope_dim
    else:
        absorbed = q_latent = k_rope = q_rope = 0
    if experts > 0:
        gate_logits = M2 * (experts + config.zero_expert_num)
        gate_logits_f32 = gate_logits * 2
        router_in = hidden_states * 2
        routed = rows2 * top_k
        expert_out = max(routed * config.moe_intermediate_size, rows2 * inter)
        expert_down = routed * (latent if latent > 0 else hidden)
        act_q8 = act_a = act_scale = act_scale_k = gate_up = 0
        moe_fp8 = moe_fp8_bytes(config, M)
    else:
        gate_logits = gate_logits_f32 = router_in = PLACEHOLDER_BYTES
        expert_out = rows2 * inter
        expert_down = rows2 * hidden
        width = max(hidden, inter)
        act_q8 = (
            M * ((width + Q8_BLOCK - 1) // Q8_BLOCK * Q8_BLOCK) * 4 + Q8_SPARE_BYTES
        )
        act_a = M_pad * width
        act_scale = M_pad * (width // 32) * 4
        act_scale_k = width // FP8_BLOCK * M_pad * 4
        gate_up = (
            (GATEUP_FUSED_MAX_M + FP8_ROW_TILE - 1)
            // FP8_ROW_TILE
            * FP8_ROW_TILE
            * (2 * inter)
            * 2
        )
        moe_fp8 = 0
    slots = levers.attn_decode_splitk
    if slots == SPLITK_LEGACY:
        slots = max(target.sm_count, 1)
    else:
        if slots == SPLITK_AUTO:
            wanted = max(-(-(2 * target.sm_count) // max(heads, 1)), 1)
            slots = min(wanted, SPLITK_MAX_SPLITS)
        slots = max(meta_rows, 1) * max(heads, 1) * slots
    if hc_mult > 0:
        hc_width = hc_mult * hidden
        hc_streams = M * hc_width * 4
        hc_post = max(M * hc_mult * 4, 256)
        hc_comb = max(M * hc_mult * hc_mult * 4, 256)
    else:
        hc_streams = hc_post = hc_comb = PLACEHOLDER_BYTES
    if hc_mult > 0 and config.hc_lowrank > 0:
        split = min(M, HC_SPLIT_MAX_TOKENS)
        gemm = min(M, HC_GEMM_MAX_TOKENS) * 2
        lowrank = config.hc_lowrank
        hc_scratch = max(
            split * 4 * (hc_width + lowrank),
            gemm * (2 * hc_width + lowrank + hc_mult),
        )
    else:
        hc_scratch = PLACEHOLDER_BYTES
    topk, ratio = config.index_topk, config.index_compress_ratio
    if topk > 0 and ratio > 0:
        index_heads, index_dim = config.index_n_heads, config.index_head_dim
        qsa = QSA_SELECT_TOKENS * (
            (index_heads + 1) * index_dim * 2
            + index_heads * index_dim * 4
            + (max_seq_len + ratio - 1) // ratio * 4
            + topk // ratio * 4
        )
    else:
        qsa = PLACEHOLDER_BYTES
    chunks = (M + GDN_CHUNK - 1) // GDN_CHUNK
    if value_heads > 0 and key_dim == GDN_HEAD_DIM and value_dim == GDN_HEAD_DIM:
        fla = (
            (chunks + GDN_SPARE_CHUNKS)
            * value_heads
            * (GDN_CHUNK * (key_dim * 2 + value_dim * 4 + 4) + key_dim * value_dim * 2)
        )
    else:
        fla = 0
    if mamba_heads > 0 and state > 0:
        chunks += 1
        ssd = chunks * GDN_CHUNK * 4 * (mamba_heads * 2 + max(n_groups, 1) * GDN_CHUNK)
    else:
        ssd = 0
    if rank > 0:
        xa = M2 * rank
        delta = M2 * max(hidden, inter, q_mul * q_width)
        hact = M2 * inter
        seq_slot = M * 4
    else:
        xa = delta = hact = seq_slot = 0
    q2_act = 0
    if levers.gguf_native_q2_mmq:
        width = (max(hidden, inter, q_width) + Q8_BLOCK - 1) // Q8_BLOCK * Q8_BLOCK
        q2_act = M * width * 4 + Q8_SPARE_BYTES
    q2 = q2_dequant_scratch_bytes(config) if levers.gguf_native_q2 else 0
    rowwise = 0
    if levers.fp8_rowwise:
        rowwise = ssm_rowwise_w_bf16_bytes_for(config, levers.fp8_rowwise)
    streams = MROPE_STREAMS if mrope else 1
    fp8_scale = M_pad * ((fp8_width + FP8_BLOCK - 1) // FP8_BLOCK) * 4
    kv_rows = kv_heads * head_dim * 2
    spare = LOGITS_SPARE_ROWS

    found = BufferSizes(
        hidden_states,
        hidden_states,
        M2 * max_dim,
        M_pad * ((heads * q_mul + 2 * kv_heads) * head_dim) * 2,
        max(M2 * q_width, M2 * inner, absorbed),
        gate_logits,
        gate_logits_f32,
        router_in,
        M_pad * hidden * 2,
        min(M, max(VERIFY_ROW_CAP, meta_rows + spare)) * config.vocab_size * 2,
        max(
            rows_qkvz,
            M2 * (inner + xbc + mamba_heads),
            (M + M_pad) * kv_rows,
            M2 * config.shared_expert_intermediate_size,
            256,
        ),
        max(M2 * 2 * value_heads, M2 * latent, q_latent, k_rope, 256),
        max(rows_qkvz, M2 * xbc, M2 * q_width, absorbed, 256),
        max(M * 2 * value_heads * 4, 256),
        max(M * qkvz * 4, q_rope, 256),
        max(
            M * top_k * 8 + chunk_meta_bytes(M, streams, blocks),
            SCRATCH_META_OFFSET + decode_meta_bytes(meta_rows, blocks),
            SCRATCH_META_OFFSET + decode_meta_bytes(VERIFY_ROW_CAP, blocks),
            q12_batched_scratch_bytes(
                Q12_SIZING_STREAMS,
                max(1, (M + Q12_SIZING_STREAMS - 1) // Q12_SIZING_STREAMS),
                top_k,
                mrope,
            ),
            SCRATCH_MIN_BYTES,
        ),
        expert_out,
        expert_out,
        expert_down,
        slots * (head_dim + 2) * 4,
        max(M2 * config.o_groups * config.o_lora_rank, 256),
        max_dim * 2,
        hc_streams,
        hc_post,
        hc_comb,
        hc_scratch,
        qsa,
        fla,
        ssd,
        max(M * 4, 256),
        act_q8,
        act_a,
        act_scale,
        act_scale_k,
        gate_up,
        M_pad * fp8_width,
        moe_fp8,
        fp8_scale,
        fp8_scale,
        q2,
        xa,
        delta,
        hact,
        seq_slot,
        q2_act,
        rowwise,
        0,
    )
    if max(found) > MAX_SIZE:
        raise SizeError(f"{max(found)} bytes")
    if config.model_type in GLM_MODEL_TYPES and levers.glm_arena_trim:
        return found._replace(
            qkv_output=0,
            attn_output=0,
            gate_logits=0,
            gate_logits_f32=0,
            moe_router_in_f32=0,
            ssm_qkvz=0,
            ssm_ba=0,
            ssm_deinterleaved=0,
            ssm_gates=0,
            ssm_conv_out_f32=0,
            expert_gate_out=0,
            expert_up_out=0,
            expert_down_out=0,
            gdn_fla_scratch=0,
            fp8_act=0,
            fp8_act_scale=0,
            fp8_act_scale_kmajor=0,
            moe_fp8_scratch=0,
            trimmed=(
                found.qkv_output
                + found.attn_output
                + found.gate_logits
                + found.gate_logits_f32
                + found.moe_router_in_f32
                + found.ssm_qkvz
                + found.ssm_ba
                + found.ssm_deinterleaved
                + found.ssm_gates
                + found.ssm_conv_out_f32
                + found.expert_gate_out
                + found.expert_up_out
                + found.expert_down_out
                + found.gdn_fla_scratch
                + found.fp8_act
                + found.fp8_act_scale
                + found.fp8_act_scale_kmajor
                + found.moe_fp8_scratch
            ),
        )
    return found
