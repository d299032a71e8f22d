"""Second opinion on both arenas: every size worked out again in plain Python.

Written from the reference table alone; it shares no code, data or vocabulary with
the generator, so an agreement between the two means something. A config is a mapping
of canonical field names to values, where an absent field is 0, False or empty.
It must never import arenagen or an emitted package.
"""

from collections.abc import Mapping

Config = Mapping[str, object]
Region = tuple[int, int]  # (byte offset, bytes)

CONFIG_FIELDS = (
    "model_type",
    "hidden_size",
    "num_hidden_layers",
    "intermediate_size",
    "vocab_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "attn_gated",
    "layer_types",
    "full_attention_interval",
    "linear_num_key_heads",
    "linear_key_head_dim",
    "linear_num_value_heads",
    "linear_value_head_dim",
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "zero_expert_num",
    "moe_latent_size",
    "mamba_num_heads",
    "mamba_head_dim",
    "ssm_state_size",
    "n_groups",
    "mrope_interleaved",
    "kv_lora_rank",
    "q_lora_rank",
    "qk_rope_head_dim",
    "o_groups",
    "o_lora_rank",
    "hc_mult",
    "hc_lowrank",
    "index_n_heads",
    "index_head_dim",
    "index_topk",
    "index_compress_ratio",
    "adapter_max_rank",
)

METRALE_TOKEN_MAJOR = (
    "hidden_states",
    "residual",
    "norm_output",
    "qkv_output",
    "attn_output",
    "gate_logits",
    "gate_logits_f32",
    "moe_router_in_f32",
    "moe_output",
    "ssm_qkvz",
    "ssm_ba",
    "ssm_deinterleaved",
    "ssm_gates",
    "ssm_conv_out_f32",
    "expert_gate_out",
    "expert_up_out",
    "expert_down_out",
    "o_latent",
    "hc_streams",
    "hc_post",
    "hc_comb",
    "token_ids",
    "ffn_act_a",
    "ffn_act_scale",
    "fp8_act",
    "fp8_act_scale",
    "lora_xa",
    "lora_delta",
    "lora_hact",
    "lora_seq_slot",
)

METRALE_ZERO_ALL = (
    "hidden_states",
    "residual",
    "norm_output",
    "qkv_output",
    "attn_output",
    "gate_logits",
    "moe_output",
    "logits",
    "ssm_qkvz",
    "ssm_ba",
    "ssm_deinterleaved",
    "ssm_gates",
    "ssm_conv_out_f32",
    "scratch",
    "expert_gate_out",
    "expert_up_out",
    "expert_down_out",
    "splitk_workspace",
)

METRALE_ZERO_PREFILL = (
    "hidden_states",
    "residual",
    "gate_logits",
    "moe_output",
    "expert_gate_out",
    "expert_up_out",
    "expert_down_out",
)

METRALE_CHECKSUM = (
    "hidden_states",
    "residual",
    "norm_output",
    "qkv_output",
    "attn_output",
    "gate_logits",
    "moe_output",
    "ssm_qkvz",
    "ssm_ba",
    "ssm_deinterleaved",
    "ssm_gates",
    "ssm_conv_out_f32",
    "expert_gate_out",
    "expert_up_out",
    "expert_down_out",
    "splitk_workspace",
)

METRALE_TRIMMED = (
    "qkv_output",
    "attn_output",
    "gate_logits",
    "gate_logits_f32",
    "moe_router_in_f32",
    "ssm_qkvz",
    "ssm_ba",
    "ssm_deinterleaved",
    "ssm_gates",
    "ssm_conv_out_f32",
    "expert_gate_out",
    "expert_up_out",
    "expert_down_out",
    "gdn_fla_scratch",
    "fp8_act",
    "moe_fp8_scratch",
    "fp8_act_scale",
    "fp8_act_scale_kmajor",
)

# Atlas clears and probes what Metrale does, but for the essentials of a prefill.
ATLAS_TOKEN_MAJOR = METRALE_TOKEN_MAJOR
ATLAS_ZERO_ALL = METRALE_ZERO_ALL
ATLAS_ZERO_PREFILL = ("hidden_states", "residual")
ATLAS_CHECKSUM = METRALE_CHECKSUM

assert len(set(CONFIG_FIELDS)) == len(CONFIG_FIELDS) == 38
assert len(set(METRALE_TOKEN_MAJOR)) == len(METRALE_TOKEN_MAJOR) == 30
assert len(set(METRALE_ZERO_ALL)) == len(METRALE_ZERO_ALL) == 18
assert len(set(METRALE_ZERO_PREFILL)) == len(METRALE_ZERO_PREFILL) == 7
assert len(set(METRALE_CHECKSUM)) == len(METRALE_CHECKSUM) == 16
assert len(set(METRALE_TRIMMED)) == len(METRALE_TRIMMED) == 18

_TRIMMED_FAMILIES = ("glm5_next", "glm5_next_text")
_ATTENTION_KINDS = ("full_attention", "sliding_attention", "sparse_attention")
_VERIFY_ROWS = 160
_ATLAS_VERIFY_ROWS = 96
_METADATA_AT = 32768  # bytes of scratch in front of the decode and verify blocks
_MIB = 1024 * 1024


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _cdiv(value: int, divisor: int) -> int:
    return -(-value // divisor)


def _int(config: Config, name: str) -> int:
    value = config.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {value!r}")
    return value


def _flag(config: Config, name: str) -> bool:
    value = config.get(name, False)
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {value!r}")
    return value


def _kinds(config: Config) -> list[object]:
    value = config.get("layer_types", ())
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"layer_types must be a list, not {value!r}")
    return list(value)


def ssm_qkvz_size(config: Config) -> int:
    keys = _int(config, "linear_num_key_heads") * _int(config, "linear_key_head_dim")
    return 2 * keys + 2 * gdn_value_dim(config)


def gdn_value_dim(config: Config) -> int:
    heads = _int(config, "linear_num_value_heads")
    return heads * _int(config, "linear_value_head_dim")


def mamba2_d_inner(config: Config) -> int:
    return _int(config, "mamba_num_heads") * _int(config, "mamba_head_dim")


def mamba2_d_xbc(config: Config) -> int:
    groups = _int(config, "n_groups") * _int(config, "ssm_state_size")
    return mamba2_d_inner(config) + 2 * groups


def mamba2_in_proj_size(config: Config) -> int:
    heads = _int(config, "mamba_num_heads")
    return mamba2_d_inner(config) + mamba2_d_xbc(config) + heads


def num_attention_layers(config: Config) -> int:
    kinds = _kinds(config)
    if kinds:
        return sum(kind in _ATTENTION_KINDS for kind in kinds)
    layers = _int(config, "num_hidden_layers")
    interval = _int(config, "full_attention_interval")
    return layers if interval == 0 else layers // interval


def num_ssm_layers(config: Config) -> int:
    kinds = _kinds(config)
    if kinds:
        return kinds.count("linear_attention")
    return _int(config, "num_hidden_layers") - num_attention_layers(config)


def decode_meta_offsets(rows: int, max_blocks: int) -> dict[str, Region]:
    """The decode-metadata block; bytes [20 rows, 24 rows) belong to no region."""
    return {
        "positions": (0, 4 * rows),
        "seq_slot": (4 * rows, 4 * rows),
        "slots": (8 * rows, 8 * rows),
        "seq_lens": (16 * rows, 4 * rows),
        "block_table": (24 * rows, 4 * rows * max_blocks),
    }


def moe_fp8_regions(config: Config, rows: int) -> dict[str, Region]:
    """The FP8 MoE slab for `rows` rows, whatever the arena would refuse to hand out."""
    h = _int(config, "hidden_size")
    experts = _int(config, "num_experts")
    moe = _int(config, "moe_intermediate_size")
    width = max(h, _int(config, "shared_expert_intermediate_size"))
    expanded = rows * _int(config, "num_experts_per_tok")
    columns = _cdiv(max(h, moe), 64)

    sizes = {
        "activation": max(rows * width, expanded * moe),
        "scales": 4 * max(rows * _cdiv(width, 128), expanded * _cdiv(moe, 128)),
        "worklist": 8 * (_cdiv(expanded, 128) + experts + 1) * columns,
        "total_tiles": 4,
    }
    if experts == 256:
        sizes["small_worklist"] = 8 * experts * columns
        sizes["small_total_tiles"] = 4

    regions: dict[str, Region] = {}
    end = 0
    for name, nbytes in sizes.items():
        start = _up(end, 256)
        regions[name] = (start, nbytes)
        end = start + nbytes
    return regions


def _end(regions: Mapping[str, Region]) -> int:
    return max(offset + nbytes for offset, nbytes in regions.values())


def prefill_scratch_bytes(config: Config, tokens: int, max_blocks: int) -> int:
    top_k = 2 * 4 * tokens * _int(config, "num_experts_per_tok")  # ids, then weights
    streams = 3 if _flag(config, "mrope_interleaved") else 1
    metadata = 4 * streams * tokens
    metadata = _up(metadata, 8) + 8 * tokens
    metadata = _up(metadata, 4) + 4 * max_blocks
    metadata = _up(metadata, 4) + 4
    return top_k + metadata


def _scratch(config: Config, tokens: int, meta_rows: int, max_blocks: int) -> int:
    chunk = max(1, _cdiv(tokens, 8))
    return max(
        64 * 1024,
        prefill_scratch_bytes(config, tokens, max_blocks),
        _METADATA_AT + _end(decode_meta_offsets(meta_rows, max_blocks)),
        _METADATA_AT + _end(decode_meta_offsets(_VERIFY_ROWS, max_blocks)),
        q12_batched_scratch_bytes(
            8,
            chunk,
            _int(config, "num_experts_per_tok"),
            _flag(config, "mrope_interleaved"),
        ),
    )


def _hc_lowrank_scratch(config: Config, tokens: int) -> int:
    hc = _int(config, "hc_mult")
    wide = hc * _int(config, "hidden_size")
    low = _int(config, "hc_lowrank")
    few, many = min(tokens, 64), min(tokens, 2048)
    split = 4 * few * wide + 4 * few * low
    gemm = 2 * many * wide + 2 * many * wide + 2 * many * low + 2 * many * hc
    return max(split, gemm)


def _qsa_select_scratch(config: Config, max_seq_len: int) -> int:
    heads = _int(config, "index_n_heads")
    dim = _int(config, "index_head_dim")
    ratio = _int(config, "index_compress_ratio")
    qk = 2 * (heads + 1) * dim
    q_post = 4 * heads * dim
    scores = 4 * _cdiv(max_seq_len, ratio)
    lists = 4 * (_int(config, "index_topk") // ratio)
    return 2048 * (qk + q_post + scores + lists)


def _gdn_fla_scratch(config: Config, tokens: int) -> int:
    kd = _int(config, "linear_key_head_dim")
    vd = _int(config, "linear_value_head_dim")
    tiles = (_cdiv(tokens, 64) + 16) * _int(config, "linear_num_value_heads")
    w, u, s, uc, gc = 2 * 64 * kd, 2 * 64 * vd, 2 * kd * vd, 2 * 64 * vd, 4 * 64
    return tiles * (w + u + s + uc + gc)


def _ssd_scratch(config: Config, tokens: int) -> int:
    chunks = _cdiv(tokens, 64) + 1
    dt = 4 * _int(config, "mamba_num_heads") * chunks * 64
    cb = 4 * chunks * max(_int(config, "n_groups"), 1) * 64 * 64
    return dt + dt + cb  # da_cumsum is shaped like dt


def _splitk_slots(splitk: str | int, heads: int, meta_rows: int, sm_count: int) -> int:
    if splitk == "legacy":
        return max(sm_count, 1)
    if splitk == "auto":
        wanted = _cdiv(2 * sm_count, max(heads, 1))
    elif isinstance(splitk, int):
        wanted = splitk
    else:
        raise ValueError(f"no split-K policy is called {splitk!r}")
    return max(meta_rows, 1) * max(heads, 1) * min(max(wanted, 1), 16)


def q2_dequant_scratch_bytes(config: Config) -> int:
    hd = _int(config, "head_dim")
    q_mul = 2 if _flag(config, "attn_gated") else 1
    widest = max(
        _int(config, "intermediate_size"),
        ssm_qkvz_size(config),
        mamba2_in_proj_size(config),
        _int(config, "num_attention_heads") * q_mul * hd,
        2 * _int(config, "num_key_value_heads") * hd,
    )
    return 2 * widest * _int(config, "hidden_size")


def q12_batched_scratch_bytes_varlen(
    n: int, total_tokens: int, max_chunk_len: int, top_k: int, mrope: bool
) -> int:
    streams = 3 if mrope else 1
    return (
        _up(8 * total_tokens * top_k, 64)
        + n * max(16 * max_chunk_len + 64, 4096)
        + streams * _up(4 * total_tokens, 8)
        + _up(8 * total_tokens, 8)
        + 2 * _up(8 * n, 8)
        + _up(4 * (n + 1), 8)
        + _up(4 * n, 8)
        + 8 * n
    )


def q12_batched_scratch_bytes(n: int, chunk_len: int, top_k: int, mrope: bool) -> int:
    return q12_batched_scratch_bytes_varlen(n, n * chunk_len, chunk_len, top_k, mrope)


def ssm_rowwise_w_bf16_layer_bytes(config: Config) -> int:
    h = _int(config, "hidden_size")
    return 2 * h * ssm_qkvz_size(config) + 2 * h * gdn_value_dim(config)


def ssm_rowwise_w_bf16_bytes_for(config: Config, enabled: bool) -> int:
    if not enabled:
        return 0
    return num_ssm_layers(config) * ssm_rowwise_w_bf16_layer_bytes(config)


def metrale_sizes(
    config: Config,
    *,
    max_batch_tokens: int,
    max_seq_len: int,
    kv_block_size: int,
    max_batch_size: int,
    native_q2: bool = False,
    native_q2_mmq: bool = False,
    fp8_rowwise: bool = False,
    glm_trim: bool = True,
    splitk: str | int = "legacy",
    sm_count: int = 48,
) -> dict[str, int]:
    """Bytes of every buffer, in the order of the table, with the GLM trim applied."""
    m = max_batch_tokens
    h = _int(config, "hidden_size")
    ffn = _int(config, "intermediate_size")
    q = _int(config, "num_attention_heads")
    kv = _int(config, "num_key_value_heads")
    hd = _int(config, "head_dim")
    q_mul = 2 if _flag(config, "attn_gated") else 1
    experts = _int(config, "num_experts")
    top_k = _int(config, "num_experts_per_tok")
    router = experts + _int(config, "zero_expert_num")
    latent = _int(config, "moe_latent_size")
    value_heads = _int(config, "linear_num_value_heads")
    kv_rank = _int(config, "kv_lora_rank")
    rope = _int(config, "qk_rope_head_dim")
    hc = _int(config, "hc_mult")
    rank = _int(config, "adapter_max_rank")
    qkvz = ssm_qkvz_size(config)
    d_inner = mamba2_d_inner(config)

    m_pad = _up(m, 16)
    k_rows = _up(max(m, 3), 16)
    max_dim = max(h, d_inner)
    max_blocks = 256 if kv_block_size == 0 else max_seq_len // kv_block_size + 1
    meta_rows = max(32, max_batch_size)

    moe = experts > 0
    dense = experts == 0
    mla = kv_rank > 0
    lora = rank > 0

    absorbed = 2 * m * q * (kv_rank + rope) if mla else 0
    if moe:
        gate_up_cols = max(top_k * _int(config, "moe_intermediate_size"), ffn)
        expert_gate_up = 2 * k_rows * gate_up_cols
        expert_down = 2 * k_rows * top_k * (latent if latent > 0 else h)
    else:
        expert_gate_up = 2 * k_rows * ffn
        expert_down = 2 * k_rows * h
    dense_wide = max(h, ffn)
    fp8_wide = max(h, q * hd, d_inner, gdn_value_dim(config))
    fp8_scales = 4 * m_pad * _cdiv(fp8_wide, 128)
    lowrank_on = hc > 0 and _int(config, "hc_lowrank") > 0
    indexer_on = (
        _int(config, "index_topk") > 0 and _int(config, "index_compress_ratio") > 0
    )
    gdn_on = (
        value_heads > 0
        and _int(config, "linear_key_head_dim") == 128
        and _int(config, "linear_value_head_dim") == 128
    )
    mamba_on = (
        _int(config, "mamba_num_heads") > 0 and _int(config, "ssm_state_size") > 0
    )

    sizes = {
        "hidden_states": 2 * m * h,
        "residual": 2 * m * h,
        "norm_output": 2 * m * max_dim,
        "qkv_output": 2 * m_pad * (q * q_mul + 2 * kv) * hd,
        "attn_output": max(2 * m * q * hd, 2 * m * d_inner, absorbed),
        "gate_logits": 2 * m * router if moe else 256,
        "gate_logits_f32": 4 * m * router if moe else 256,
        "moe_router_in_f32": 4 * m * h if moe else 256,
        "moe_output": 2 * m_pad * h,
        "logits": (
            2 * min(m, max(_VERIFY_ROWS, meta_rows + 1)) * _int(config, "vocab_size")
        ),
        "ssm_qkvz": max(
            2 * m_pad * qkvz,
            2 * m * mamba2_in_proj_size(config),
            2 * m * kv * hd + 2 * m_pad * kv * hd,
            2 * m * _int(config, "shared_expert_intermediate_size"),
            256,
        ),
        "ssm_ba": max(
            2 * m * 2 * value_heads,
            2 * m * latent,
            2 * m * _int(config, "q_lora_rank") if mla else 0,
            2 * m * rope if mla else 0,
            256,
        ),
        "ssm_deinterleaved": max(
            2 * m_pad * qkvz,
            2 * m * mamba2_d_xbc(config),
            2 * m * q * hd,
            absorbed,
            256,
        ),
        "ssm_gates": max(4 * m * 2 * value_heads, 256),
        "ssm_conv_out_f32": max(4 * m * qkvz, 2 * m * q * rope if mla else 0, 256),
        "scratch": _scratch(config, m, meta_rows, max_blocks),
        "expert_gate_out": expert_gate_up,
        "expert_up_out": expert_gate_up,
        "expert_down_out": expert_down,
        "splitk_workspace": (
            4 * _splitk_slots(splitk, q, meta_rows, sm_count) * (hd + 2)
        ),
        "o_latent": max(
            2 * m * _int(config, "o_groups") * _int(config, "o_lora_rank"), 256
        ),
        "norm_unit_w": 2 * max_dim,
        "hc_streams": 4 * m * hc * h if hc > 0 else 256,
        "hc_post": max(4 * m * hc, 256),
        "hc_comb": max(4 * m * hc * hc, 256),
        "hc_lowrank_scratch": _hc_lowrank_scratch(config, m) if lowrank_on else 256,
        "qsa_select_scratch": (
            _qsa_select_scratch(config, max_seq_len) if indexer_on else 256
        ),
        "gdn_fla_scratch": _gdn_fla_scratch(config, m) if gdn_on else 0,
        "ssd_scratch": _ssd_scratch(config, m) if mamba_on else 0,
        "token_ids": max(4 * m, 256),
        "ffn_act_q8": 4 * m * _up(dense_wide, 256) + _MIB if dense else 0,
        "ffn_act_a": m_pad * dense_wide if dense else 0,
        "ffn_act_scale": 4 * m_pad * (dense_wide // 32) if dense else 0,
        "ffn_act_scale_kmajor": 4 * (dense_wide // 128) * m_pad if dense else 0,
        "ffn_gate_up_fused": 2 * 16 * 2 * ffn if dense else 0,
        "fp8_act": m_pad * fp8_wide,
        "moe_fp8_scratch": _end(moe_fp8_regions(config, m)) if moe else 0,
        "fp8_act_scale": fp8_scales,
        "fp8_act_scale_kmajor": fp8_scales,
        "q2_dequant_scratch": q2_dequant_scratch_bytes(config) if native_q2 else 0,
        "lora_xa": 2 * m * rank if lora else 0,
        "lora_delta": 2 * m * max(h, ffn, q_mul * q * hd) if lora else 0,
        "lora_hact": 2 * m * ffn if lora else 0,
        "lora_seq_slot": 4 * m if lora else 0,
        "q2_act_q8": (
            4 * m * _up(max(h, ffn, q * hd), 256) + _MIB if native_q2_mmq else 0
        ),
        "ssm_rowwise_w_bf16": ssm_rowwise_w_bf16_bytes_for(config, fp8_rowwise),
    }
    assert len(sizes) == 46
    if glm_trim and config.get("model_type", "") in _TRIMMED_FAMILIES:
        sizes.update(dict.fromkeys(METRALE_TRIMMED, 0))
    return sizes


def metrale_trimmed(
    config: Config,
    *,
    max_batch_tokens: int,
    max_seq_len: int,
    kv_block_size: int,
    max_batch_size: int,
    native_q2: bool = False,
    native_q2_mmq: bool = False,
    fp8_rowwise: bool = False,
    glm_trim: bool = True,
    splitk: str | int = "legacy",
    sm_count: int = 48,
) -> int:
    """Bytes that the GLM trim took away: 0 for other families or with it off."""
    if not glm_trim or config.get("model_type", "") not in _TRIMMED_FAMILIES:
        return 0
    untrimmed = metrale_sizes(
        config,
        max_batch_tokens=max_batch_tokens,
        max_seq_len=max_seq_len,
        kv_block_size=kv_block_size,
        max_batch_size=max_batch_size,
        native_q2=native_q2,
        native_q2_mmq=native_q2_mmq,
        fp8_rowwise=fp8_rowwise,
        glm_trim=False,
        splitk=splitk,
        sm_count=sm_count,
    )
    return sum(untrimmed[name] for name in METRALE_TRIMMED)


def _atlas_scratch(config: Config, tokens: int, meta_rows: int, max_blocks: int) -> int:
    mrope = _flag(config, "mrope_interleaved")
    top_k = _int(config, "num_experts_per_tok")
    decode = _end(decode_meta_offsets(meta_rows, max_blocks))
    verify = 2048 + 4 * _ATLAS_VERIFY_ROWS * max_blocks
    return max(
        64 * 1024,
        prefill_scratch_bytes(config, tokens, max_blocks),
        _METADATA_AT + decode,
        _METADATA_AT + verify,
        q12_batched_scratch_bytes(8, max(1, _cdiv(tokens, 8)), top_k, mrope),
    )


def atlas_sizes(
    config: Config,
    *,
    max_batch_tokens: int,
    max_seq_len: int,
    kv_block_size: int,
    max_batch_size: int,
    native_q2: bool = False,
    native_q2_mmq: bool = False,
    sm_count: int = 48,
) -> dict[str, int]:
    """Bytes of every buffer of the Atlas arena, in the order of the table.

    No row is padded, there is no trim, and split-K decode has one slot for each
    multiprocessor.
    """
    m = max_batch_tokens
    h = _int(config, "hidden_size")
    ffn = _int(config, "intermediate_size")
    q_heads = _int(config, "num_attention_heads")
    hd = _int(config, "head_dim")
    q = q_heads * hd
    kv = _int(config, "num_key_value_heads") * hd
    q_mul = 2 if _flag(config, "attn_gated") else 1
    top_k = _int(config, "num_experts_per_tok")
    experts = _int(config, "num_experts")
    routed = experts + _int(config, "zero_expert_num")
    latent = _int(config, "moe_latent_size")
    gdn_heads = _int(config, "linear_num_value_heads")
    rope = _int(config, "qk_rope_head_dim")
    mla = _int(config, "kv_lora_rank") > 0
    absorbed_row = q_heads * (_int(config, "kv_lora_rank") + rope) if mla else 0
    hc = _int(config, "hc_mult")
    rank = _int(config, "adapter_max_rank")
    qkvz = ssm_qkvz_size(config)
    d_inner = mamba2_d_inner(config)

    blocks = max_seq_len // kv_block_size + 1 if kv_block_size else 256
    meta_rows = max(32, max_batch_size)
    k_rows = max(m, 3)
    act = max(h, q, d_inner)
    wide = max(h, ffn)
    if experts:
        up_row = max(top_k * _int(config, "moe_intermediate_size"), ffn)
        down_row = top_k * (latent or h)
    else:
        up_row, down_row = ffn, h
    chunked_gdn = (
        gdn_heads > 0
        and _int(config, "linear_key_head_dim") == 128
        and _int(config, "linear_value_head_dim") == 128
    )
    ssd = _int(config, "mamba_num_heads") > 0 and _int(config, "ssm_state_size") > 0
    indexer = (
        _int(config, "index_topk") > 0 and _int(config, "index_compress_ratio") > 0
    )
    qkvz_row = max(
        qkvz,
        mamba2_in_proj_size(config),
        kv + kv,
        _int(config, "shared_expert_intermediate_size"),
    )
    narrow_row = max(
        2 * gdn_heads, latent, max(_int(config, "q_lora_rank"), rope) if mla else 0
    )
    ordered_row = max(qkvz, mamba2_d_xbc(config), q, absorbed_row)

    sizes = {
        "hidden_states": m * h * 2,
        "residual": m * h * 2,
        "norm_output": m * max(h, d_inner) * 2,
        "qkv_output": m * (q * q_mul + 2 * kv) * 2,
        "attn_output": m * max(q, d_inner, absorbed_row) * 2,
        "gate_logits": m * routed * 2 if experts else 256,
        "gate_logits_f32": m * routed * 4 if experts else 256,
        "moe_router_in_f32": m * h * 4 if experts else 256,
        "moe_output": m * h * 2,
        "logits": min(m, max(_ATLAS_VERIFY_ROWS, meta_rows + 1))
        * _int(config, "vocab_size")
        * 2,
        "ssm_qkvz": max(m * qkvz_row * 2, 256),
        "ssm_ba": max(m * narrow_row * 2, 256),
        "ssm_deinterleaved": max(m * ordered_row * 2, 256),
        "ssm_gates": max(m * 2 * gdn_heads * 4, 256),
        "ssm_conv_out_f32": max(
            m * qkvz * 4, m * q_heads * rope * 2 if mla else 0, 256
        ),
        "scratch": _atlas_scratch(config, m, meta_rows, blocks),
        "expert_gate_out": k_rows * up_row * 2,
        "expert_up_out": k_rows * up_row * 2,
        "expert_down_out": k_rows * down_row * 2,
        "splitk_workspace": max(sm_count, 1) * (hd + 2) * 4,
        "o_latent": max(
            m * _int(config, "o_groups") * _int(config, "o_lora_rank") * 2, 256
        ),
        "norm_unit_w": max(h, d_inner) * 2,
        "hc_streams": m * hc * h * 2 if hc else 256,
        "hc_post": max(m * hc * 4, 256),
        "hc_comb": max(m * hc * hc * 4, 256),
        "hc_lowrank_scratch": (
            _hc_lowrank_scratch(config, m) if hc and _int(config, "hc_lowrank") else 256
        ),
        "qsa_select_scratch": (
            _qsa_select_scratch(config, max_seq_len) if indexer else 256
        ),
        "gdn_fla_scratch": _gdn_fla_scratch(config, m) if chunked_gdn else 0,
        "ssd_scratch": _ssd_scratch(config, m) if ssd else 0,
        "token_ids": max(m * 4, 256),
        "ffn_act_q8": 0 if experts else m * _up(wide, 256) * 4 + _MIB,
        "ffn_act_a": 0 if experts else m * wide,
        "ffn_act_scale": 0 if experts else m * (wide // 32) * 4,
        "fp8_act": m * act,
        "fp8_act_scale": m * _cdiv(act, 128) * 4,
        "q2_dequant_scratch": q2_dequant_scratch_bytes(config) if native_q2 else 0,
        "lora_xa": m * rank * 2,
        "lora_delta": m * max(h, ffn, q_mul * q) * 2 if rank else 0,
        "lora_hact": m * ffn * 2 if rank else 0,
        "lora_seq_slot": m * 4 if rank else 0,
        "q2_act_q8": m * _up(max(wide, q), 256) * 4 + _MIB if native_q2_mmq else 0,
    }
    assert len(sizes) == 41
    return sizes
