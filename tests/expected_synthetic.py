"""What each file of tests/data/synthetic means to the arena, worked out by hand.

Files of families of which the repository has no published one, in the form of
`expected_configs`: only the fields that differ from their default.
"""

_MOE = ["mamba", "moe", "full_attention", "moe"]

SYNTHETIC: dict[str, dict[str, object]] = {
    "qwen2_moe": {
        "model_type": "qwen2_moe",
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "intermediate_size": 18944,
        "vocab_size": 151936,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "head_dim": 128,  # absent: 3584 / 28
        "num_experts": 64,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2560,
        "shared_expert_intermediate_size": 20480,
    },
    "minimax_m2": {
        "model_type": "minimax_m2",
        "hidden_size": 3072,
        "num_hidden_layers": 4,
        "intermediate_size": 1536,
        "vocab_size": 200064,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "head_dim": 128,  # as given; 3072 / 48 would be 64
        "layer_types": ["full_attention"] * 4,  # attn_type_list
        "num_experts": 256,  # num_local_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1536,  # intermediate_size
        # shared_intermediate_size is 0: no shared expert.
    },
    "minimax_m3": {
        "model_type": "minimax_m3_vl",
        "hidden_size": 6144,
        "num_hidden_layers": 60,
        "intermediate_size": 12288,  # dense_intermediate_size
        "vocab_size": 200064,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,  # as given; 6144 / 64 would be 96
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1536,  # intermediate_size
        "shared_expert_intermediate_size": 1536,  # shared_intermediate_size
        "index_n_heads": 8,
        "index_head_dim": 64,
        "index_topk": 2048,  # 16 blocks of 128 keys
        "index_compress_ratio": 128,  # the keys of a block
    },
    "llama4": {
        "model_type": "llama4",
        "hidden_size": 5120,
        "num_hidden_layers": 4,
        "intermediate_size": 16384,  # intermediate_size_mlp, of the dense layers
        "vocab_size": 202048,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "layer_types": [*["sliding_attention"] * 3, "full_attention"],  # chunked
        "num_experts": 16,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 8192,  # intermediate_size
        "shared_expert_intermediate_size": 8192,  # the shared one is as wide
    },
    "gemma3": {
        "model_type": "gemma3",
        "hidden_size": 2560,
        "num_hidden_layers": 13,
        "intermediate_size": 10240,
        "vocab_size": 262208,  # absent: the class's
        "num_attention_heads": 8,  # absent: the class's
        "num_key_value_heads": 4,  # absent: the class's
        "head_dim": 256,  # absent: the class's; 2560 / 8 would be 320
        # The sixth and the twelfth of 13 layers.
        "layer_types": [
            *[*["sliding_attention"] * 5, "full_attention"] * 2,
            "sliding_attention",
        ],
    },
    "gemma4_dense": {
        "model_type": "gemma4",
        "hidden_size": 5376,
        "num_hidden_layers": 60,
        "intermediate_size": 21504,
        "vocab_size": 262144,
        # 32 queries of 256 beside 16 keys, 32 of 512 beside 4: at 512, 16384 / 512
        # queries and 4096 / 512 keys.
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 512,
        # num_experts and top_k_experts are null: no experts.
    },
    "step3p7": {
        "model_type": "step3p7",
        "hidden_size": 4096,
        "num_hidden_layers": 5,
        "intermediate_size": 11264,  # of the layers that moe_layers_enum leaves out
        "vocab_size": 128896,
        "num_attention_heads": 96,  # of sliding layers, against 64
        "num_key_value_heads": 8,  # num_attention_groups
        "head_dim": 128,  # as given; 4096 / 64 would be 64
        # 8 entries, the last 3 of MTP layers.
        "layer_types": [
            "full_attention",
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
        ],
        "num_experts": 288,  # moe_num_experts
        "num_experts_per_tok": 8,  # moe_top_k
        "moe_intermediate_size": 1280,
        "shared_expert_intermediate_size": 1280,  # share_expert_dim
    },
    "mimo_v2_flash": {
        "model_type": "mimo_v2_flash",
        "hidden_size": 4096,
        "num_hidden_layers": 48,
        "intermediate_size": 16384,
        "vocab_size": 152576,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,  # swa_num_key_value_heads, against 4
        "head_dim": 192,
        "num_experts": 256,  # n_routed_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        # n_shared_experts is null: none.
    },
    "laguna": {
        "model_type": "laguna",
        "hidden_size": 2048,
        "num_hidden_layers": 4,
        "intermediate_size": 8192,
        "vocab_size": 100352,
        "num_attention_heads": 64,  # the most of 48, 64, 64 and 48
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    },
    "glm4v_moe": {
        "model_type": "glm4v_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 46,
        "intermediate_size": 10944,
        "vocab_size": 151552,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 1408,  # 1 * 1408
        # Its MRoPE is not interleaved: one stream.
    },
    "dots1": {
        "model_type": "dots1",
        "hidden_size": 4096,
        "num_hidden_layers": 62,
        "intermediate_size": 10944,
        "vocab_size": 152064,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 128,  # absent: 4096 / 32
        "num_experts": 128,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 2816,  # n_shared_experts 2 * 1408
    },
    **{
        model_type: {
            "model_type": model_type,
            "hidden_size": 6144,
            "num_hidden_layers": 48,
            "intermediate_size": 18432,
            "vocab_size": 153600,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 2048,
            "shared_expert_intermediate_size": 4096,  # num_shared_experts 2 * 2048
        }
        for model_type in ("exaone_moe", "cohere2_moe", "hy_v3")
    },
    "ernie4_5_moe": {
        "model_type": "ernie4_5_moe",
        "hidden_size": 2560,
        "num_hidden_layers": 28,
        "intermediate_size": 12288,
        "vocab_size": 103424,
        "num_attention_heads": 20,
        "num_key_value_heads": 4,
        "head_dim": 128,  # absent: 2560 / 20
        "num_experts": 64,  # moe_num_experts
        "num_experts_per_tok": 6,  # moe_k
        "moe_intermediate_size": 1536,
        "shared_expert_intermediate_size": 3072,  # 2 * 1536
    },
    "aria": {
        "model_type": "aria",
        "hidden_size": 2560,
        "num_hidden_layers": 28,
        "intermediate_size": 1664,
        "vocab_size": 100352,
        "num_attention_heads": 20,
        "num_key_value_heads": 20,
        "head_dim": 128,  # absent: 2560 / 20
        "num_experts": 64,
        "num_experts_per_tok": 6,  # moe_topk
        "moe_intermediate_size": 1664,  # intermediate_size
        "shared_expert_intermediate_size": 3328,  # 2 * 1664
    },
    "hunyuan_v1_moe": {
        "model_type": "hunyuan_v1_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 3,
        "intermediate_size": 3072,
        "vocab_size": 128167,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        # The largest of each list, one entry a layer.
        "num_experts": 64,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 3072,
        "shared_expert_intermediate_size": 3072,  # 1 * 3072
    },
    "kimi_k25": {
        "model_type": "kimi_k25",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "intermediate_size": 18432,
        "vocab_size": 163840,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 192,  # 128 + 64
        "num_experts": 384,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
    },
    "mistral4": {
        "model_type": "mistral4",
        "hidden_size": 4096,
        "num_hidden_layers": 36,
        "intermediate_size": 12288,
        "vocab_size": 131072,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 128,  # 64 + 64
        "num_experts": 128,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,
        "kv_lora_rank": 256,
        "q_lora_rank": 1024,
        "qk_rope_head_dim": 64,
    },
    "deepseek_v32": {
        "model_type": "deepseek_v32",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "intermediate_size": 18432,
        "vocab_size": 129280,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "head_dim": 192,  # 128 + 64
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 2048,
    },
    "glm_moe_dsa": {
        "model_type": "glm_moe_dsa",
        "hidden_size": 6144,
        "num_hidden_layers": 78,
        "intermediate_size": 12288,
        "vocab_size": 154880,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 256,  # 192 + 64; the file says 64, which is the rotary part
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,
        "kv_lora_rank": 512,
        "q_lora_rank": 2048,
        "qk_rope_head_dim": 64,
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 2048,
    },
    "kimi_linear": {
        "model_type": "kimi_linear",
        "hidden_size": 2304,
        "num_hidden_layers": 5,
        "intermediate_size": 9216,
        "vocab_size": 163840,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 192,  # 128 + 64; the file says 72, which is 2304 / 32
        # Layers 1, 2, 3 and 5, counted from 1.
        "layer_types": [
            *["linear_attention"] * 3,
            "full_attention",
            "linear_attention",
        ],
        "linear_num_key_heads": 32,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "num_experts": 256,
        "num_experts_per_tok": 8,  # num_experts_per_token
        "moe_intermediate_size": 1024,
        "shared_expert_intermediate_size": 1024,  # num_shared_experts 1 * 1024
        "kv_lora_rank": 512,
        # q_lora_rank is null: the query has no latent.
        "qk_rope_head_dim": 64,
    },
    "kimi_k3": {
        "model_type": "kimi_k3",
        "hidden_size": 7168,
        "num_hidden_layers": 4,
        "intermediate_size": 18432,
        "vocab_size": 163840,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 192,  # 128 + 64
        "layer_types": [*["linear_attention"] * 3, "full_attention"],
        "linear_num_key_heads": 96,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 96,
        "linear_value_head_dim": 128,
        "num_experts": 896,
        "num_experts_per_tok": 16,
        "moe_intermediate_size": 3072,
        "shared_expert_intermediate_size": 6144,  # 2 * 3072
        "moe_latent_size": 3584,  # routed_expert_hidden_size
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
    },
    "longcat_flash": {
        "model_type": "longcat_flash",
        "hidden_size": 6144,
        "num_hidden_layers": 6,  # num_layers 3, of 2 sublayers each
        "intermediate_size": 12288,  # ffn_hidden_size
        "vocab_size": 131072,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,  # absent: as many as query heads
        "head_dim": 192,  # 128 + 64
        "layer_types": ["full_attention"] * 6,
        "num_experts": 512,
        "num_experts_per_tok": 12,  # moe_topk
        "moe_intermediate_size": 2048,  # expert_ffn_hidden_size
        "zero_expert_num": 256,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
    },
    "granite_moe": {
        "model_type": "granitemoehybrid",
        "hidden_size": 1536,
        "num_hidden_layers": 4,
        "intermediate_size": 512,
        "vocab_size": 100352,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "head_dim": 128,  # absent: 1536 / 12
        "layer_types": ["mamba", "mamba", "full_attention", "mamba"],
        "num_experts": 64,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 512,  # intermediate_size
        "shared_expert_intermediate_size": 1024,  # shared_intermediate_size
        "mamba_num_heads": 48,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 1,
    },
    "granite_dense": {
        "model_type": "granitemoehybrid",
        "hidden_size": 1536,
        "num_hidden_layers": 3,
        "intermediate_size": 4096,  # shared_intermediate_size: no experts
        "vocab_size": 100352,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "layer_types": ["mamba", "full_attention", "mamba"],
        "mamba_num_heads": 48,
        "mamba_head_dim": 64,  # auto: 2 * 1536 / 48
        "ssm_state_size": 128,
        "n_groups": 1,
    },
    "bamba": {
        "model_type": "bamba",
        "hidden_size": 4096,
        "num_hidden_layers": 5,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,  # absent: 4096 / 32
        # Attention in layers 1 and 4, counted from 0.
        "layer_types": [
            "mamba",
            "full_attention",
            "mamba",
            "mamba",
            "full_attention",
        ],
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 1,
    },
    "zamba2": {
        "model_type": "zamba2",
        "hidden_size": 2560,
        "num_hidden_layers": 4,
        "intermediate_size": 10240,
        "vocab_size": 32000,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 160,  # absent: 2 * 2560 / 32
        "layer_types": ["mamba", "mamba", "full_attention", "mamba"],  # hybrid
        "mamba_num_heads": 80,
        "mamba_head_dim": 64,  # absent: 2 * 2560 / 80
        "ssm_state_size": 64,
        "n_groups": 1,
    },
    "falcon_h1": {
        "model_type": "falcon_h1",
        "hidden_size": 3072,
        "num_hidden_layers": 44,
        "intermediate_size": 12288,
        "vocab_size": 130048,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "head_dim": 128,  # as given; 3072 / 12 would be 256
        "mamba_num_heads": 24,
        "mamba_head_dim": 128,  # auto: mamba_d_ssm 3072 / 24, not 2 * 3072 / 24
        "ssm_state_size": 256,
        "n_groups": 1,
    },
    "nemotron_h_super": {
        "model_type": "nemotron_h",
        "hidden_size": 4096,
        "num_hidden_layers": 4,  # null: the length of the list
        "vocab_size": 131072,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "layer_types": _MOE,
        "num_experts": 512,
        "num_experts_per_tok": 22,
        "moe_intermediate_size": 2688,
        "shared_expert_intermediate_size": 5376,
        "moe_latent_size": 1024,
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
    },
    "nemotron_h_puzzle": {
        "model_type": "nemotron_h_puzzle",
        "hidden_size": 8192,
        "num_hidden_layers": 5,  # null: the letters of M-M*-
        "intermediate_size": 32768,
        "vocab_size": 131072,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,  # attention_head_dim
        "layer_types": ["mamba", "mlp", "mamba", "full_attention", "mlp"],
        "mamba_num_heads": 256,
        "mamba_head_dim": 64,
        "ssm_state_size": 256,
        "n_groups": 8,
    },
    "mamba2": {
        "model_type": "mamba2",
        "hidden_size": 4096,
        "num_hidden_layers": 2,
        "vocab_size": 32768,
        "layer_types": ["mamba", "mamba"],
        "mamba_num_heads": 128,  # num_heads; nothing attends
        "mamba_head_dim": 64,  # head_dim
        "ssm_state_size": 128,  # state_size
        "n_groups": 8,
    },
    "falcon_7b": {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_hidden_layers": 32,
        "intermediate_size": 18176,  # absent: 4 * 4544
        "vocab_size": 65024,
        "num_attention_heads": 71,
        "num_key_value_heads": 1,  # multi_query, whatever num_kv_heads says
        "head_dim": 64,  # 4544 / 71
    },
    "falcon_40b": {
        "model_type": "falcon",
        "hidden_size": 8192,
        "num_hidden_layers": 60,
        "intermediate_size": 32768,  # ffn_hidden_size
        "vocab_size": 65024,
        "num_attention_heads": 128,
        "num_key_value_heads": 8,  # new_decoder_architecture: num_kv_heads
        "head_dim": 64,  # 8192 / 128
    },
    "dbrx": {
        "model_type": "dbrx",
        "hidden_size": 6144,  # d_model
        "num_hidden_layers": 40,  # n_layers
        "intermediate_size": 10752,  # ffn_config.ffn_hidden_size
        "vocab_size": 100352,
        "num_attention_heads": 48,  # n_heads
        "num_key_value_heads": 8,  # attn_config.kv_n_heads
        "head_dim": 128,  # 6144 / 48
        "num_experts": 16,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 10752,
    },
    "mistral_params_dense": {
        "model_type": "mistral_params",  # told by its keys
        "hidden_size": 5120,  # dim
        "num_hidden_layers": 40,  # n_layers
        "intermediate_size": 14336,  # hidden_dim
        "vocab_size": 131072,
        "num_attention_heads": 32,  # n_heads
        "num_key_value_heads": 8,  # n_kv_heads
        "head_dim": 128,  # as given; 5120 / 32 would be 160
    },
    "mistral_params_mla": {
        "model_type": "mistral_params",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "intermediate_size": 16384,
        "vocab_size": 131072,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "head_dim": 192,  # 128 + 64; 7168 / 128 would be 56
        "num_experts": 128,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 4096,  # moe.expert_hidden_dim
        "shared_expert_intermediate_size": 4096,  # 1 * 4096
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
    },
    "internvl_chat": {
        "model_type": "qwen2",  # what llm_config says of itself
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "intermediate_size": 18944,
        "vocab_size": 151674,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "head_dim": 128,  # 3584 / 28
    },
}
