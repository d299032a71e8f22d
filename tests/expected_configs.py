"""What each real config file means to the arena, worked out by hand.

Holds one canonical config a file stem, only the fields that differ from their default
(0, False or empty); a converter is held against it. Widths that the file does not
spell carry their arithmetic. It must never be computed from the files themselves.
"""

_EVERY_FOURTH_FULL = [
    "linear_attention",
    "linear_attention",
    "linear_attention",
    "full_attention",
]

_EVERY_FOURTH_SPARSE = [
    "linear_attention",
    "linear_attention",
    "linear_attention",
    "sparse_attention",  # deepseek_sparse_attention in the file
]

_NEMOTRON_BLOCK = [  # MEMEM*E
    "mamba",
    "moe",
    "mamba",
    "moe",
    "mamba",
    "full_attention",
    "moe",
]

EXPECTED: dict[str, dict[str, object]] = {
    "Llama-3.1-8B": {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,  # absent: 4096 / 32
    },
    "Llama-3.1-70B": {
        "model_type": "llama",
        "hidden_size": 8192,
        "num_hidden_layers": 80,
        "intermediate_size": 28672,
        "vocab_size": 128256,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,  # absent: 8192 / 64
    },
    "Qwen3-32B": {
        "model_type": "qwen3",
        "hidden_size": 5120,
        "num_hidden_layers": 64,
        "intermediate_size": 25600,
        "vocab_size": 151936,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,  # as given; 5120 / 64 would be 80
    },
    "Qwen3-30B-A3B": {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "intermediate_size": 6144,  # every layer is MoE, but the file gives it
        "vocab_size": 151936,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,  # as given; 2048 / 32 would be 64
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
    },
    "Qwen3-Next-80B-A3B-Thinking": {
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "intermediate_size": 5120,
        "vocab_size": 151936,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,  # as given; 2048 / 16 would be 128
        "attn_gated": True,  # no key says so: the family is gated
        "full_attention_interval": 4,  # and no layer_types in the file
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    },
    "Qwen3.5-27B": {
        "model_type": "qwen3_5",  # text_config says qwen3_5_text
        "hidden_size": 5120,
        "num_hidden_layers": 64,
        "intermediate_size": 17408,
        "vocab_size": 248320,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "attn_gated": True,  # attn_output_gate
        "layer_types": _EVERY_FOURTH_FULL * 16,  # 64 layers
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 48,
        "linear_value_head_dim": 128,
        "mrope_interleaved": True,  # in rope_parameters
    },
    "Qwen3.5-35B-A3B": {
        "model_type": "qwen3_5_moe",  # text_config says qwen3_5_moe_text
        "hidden_size": 2048,
        "num_hidden_layers": 40,
        # No intermediate_size: every layer is MoE and the file leaves it out.
        "vocab_size": 248320,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "attn_gated": True,  # attn_output_gate
        "layer_types": _EVERY_FOURTH_FULL * 10,  # 40 layers
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "mrope_interleaved": True,  # in rope_parameters
    },
    "DeepSeek-V3": {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "intermediate_size": 18432,  # of the three leading dense layers
        "vocab_size": 129280,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "head_dim": 192,  # absent: qk_nope_head_dim 128 + qk_rope_head_dim 64
        "num_experts": 256,  # n_routed_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,  # n_shared_experts 1 * 2048
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
    },
    "GLM-5.3-Flash": {
        "model_type": "glm5_next",  # text_config says glm5_next_text
        "hidden_size": 4096,
        "num_hidden_layers": 45,
        "intermediate_size": 12288,  # of the three leading dense layers
        "vocab_size": 154880,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 256,  # 0 in the file: qk_head_dim, qk_nope 256 + qk_rope 0
        "layer_types": [*_EVERY_FOURTH_SPARSE * 11, "linear_attention"],  # 45 layers
        # KDA: one head count and one width for keys and values.
        "linear_num_key_heads": 64,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 64,
        "linear_value_head_dim": 128,
        "num_experts": 288,  # n_routed_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,  # n_shared_experts 1 * 2048
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        # qk_rope_head_dim is 0 in the file: attention without positions.
        "hc_mult": 4,
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 2048,
        "index_compress_ratio": 4,  # index_kpool
    },
    "Nemotron-3-Nano-30B-A3B": {
        "model_type": "nemotron_h",
        "hidden_size": 2688,
        "num_hidden_layers": 52,
        "intermediate_size": 1856,  # no `-` layer uses it, but the file gives it
        "vocab_size": 131072,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,  # as given; 2688 / 32 would be 84
        "layer_types": [  # 5 * 7 + 9 + 4 * 2 = 52 letters
            *_NEMOTRON_BLOCK * 5,
            *["mamba", "moe"] * 3,  # MEMEMEM*E: a block that is one ME longer
            "mamba",
            "full_attention",
            "moe",
            *["mamba", "moe"] * 4,  # MEMEMEME
        ],
        "num_experts": 128,  # n_routed_experts
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1856,
        # moe_shared_expert_intermediate_size; 1 shared expert * 1856 would be half.
        "shared_expert_intermediate_size": 3712,
        "mamba_num_heads": 64,
        "mamba_head_dim": 64,  # inner width 64 * 64 = 4096, not expand 2 * 2688
        "ssm_state_size": 128,
        "n_groups": 8,  # of the SSM; n_group, 1, is the router's
    },
    "Mixtral-8x7B-v0.1": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "intermediate_size": 14336,
        "vocab_size": 32000,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,  # absent: 4096 / 32
        "num_experts": 8,  # num_local_experts
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 14336,  # intermediate_size
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "num_hidden_layers": 24,
        "intermediate_size": 2880,
        "vocab_size": 201088,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,  # as given; 2880 / 64 would be 45
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "num_experts": 32,  # num_local_experts
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 2880,  # intermediate_size
    },
    "Jamba-1.5-Mini": {
        "model_type": "jamba",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "intermediate_size": 14336,
        "vocab_size": 65536,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,  # absent: 4096 / 32
        # attn_layer_period 8, attn_layer_offset 4: layers 4, 12, 20 and 28.
        "layer_types": (["mamba"] * 4 + ["full_attention"] + ["mamba"] * 3) * 4,
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 14336,  # intermediate_size
        # Mamba-1 has no heads: no mamba_num_heads, no ssm_state_size.
    },
    "GLM-4.5-Air": {
        "model_type": "glm4_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 46,
        "intermediate_size": 10944,
        "vocab_size": 151552,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,  # as given; 96 does not divide 4096
        "num_experts": 128,  # n_routed_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 1408,  # n_shared_experts 1 * 1408
    },
    "Kimi-K2-Instruct": {
        "model_type": "kimi_k2",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "intermediate_size": 18432,
        "vocab_size": 163840,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 192,  # absent: 128 + 64
        "num_experts": 384,  # n_routed_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,  # n_shared_experts 1 * 2048
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
    },
    "Qwen3.8-Flash-Next": {
        "model_type": "qwen4_exp",
        "hidden_size": 2560,
        "num_hidden_layers": 48,
        "vocab_size": 248320,
        "num_attention_heads": 24,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "attn_gated": True,  # output_gate_type
        "layer_types": [*["linear_attention"] * 3, "full_attention"] * 12,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 48,
        "linear_value_head_dim": 128,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 640,
        "shared_expert_intermediate_size": 640,
        "mrope_interleaved": True,
        "hc_mult": 4,  # hc_count
        "hc_lowrank": 320,
        "index_n_heads": 4,
        "index_head_dim": 128,
        "index_topk": 2048,  # indexer_budget
        "index_compress_ratio": 4,
    },
    "gemma-4-26B-A4B": {
        "model_type": "gemma4",
        "hidden_size": 2816,
        "num_hidden_layers": 30,
        "intermediate_size": 2112,  # of the dense network beside the experts
        "vocab_size": 262144,
        # Two geometries: 16 queries of 256 beside 8 keys, 16 of 512 beside 2. At 512
        # queries need 16 heads (8192 of 4096 and 8192), keys 4 (2048 of 2048 and 1024).
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 512,  # 2816 / 16 would be 176
        "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5,  # 30 layers
        "num_experts": 128,
        "num_experts_per_tok": 8,  # top_k_experts
        "moe_intermediate_size": 704,
    },
    "DeepSeek-V4-Flash": {
        "model_type": "deepseek_v4",
        "hidden_size": 4096,
        "num_hidden_layers": 43,
        # No intermediate_size: experts in every layer.
        "vocab_size": 129280,
        "num_attention_heads": 64,
        "num_key_value_heads": 1,
        "head_dim": 512,  # as given; 4096 / 64 would be 64
        # 44 compress_ratios, the last one of an MTP layer: 0 0, 4 128 twenty times, 4.
        "layer_types": [
            "sliding_attention",
            "sliding_attention",
            *["sparse_attention", "full_attention"] * 20,
            "sparse_attention",
        ],
        "num_experts": 256,  # n_routed_experts
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,  # n_shared_experts 1 * 2048
        "q_lora_rank": 1024,
        "qk_rope_head_dim": 64,
        "o_groups": 8,
        "o_lora_rank": 1024,
        "hc_mult": 4,
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 512,
    },
}
