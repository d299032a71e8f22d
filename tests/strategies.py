"""Hypothesis strategies for model configs, server limits and levers.

Fields are drawn in the groups that gate one another, each group as a real model has
it or as anything at all, so that gates meet in every combination and a gate that is
off still sits beside large widths. Every field of the reference is always present.
It must not know the size formulas.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Fields = dict[str, object]

MODEL_TYPES = ("", "llama", "glm5_next", "glm5_next_text", "qwen3_next")
LAYER_KINDS = (
    "full_attention",
    "sliding_attention",
    "sparse_attention",
    "linear_attention",
    "mamba",
    "moe",
    "mlp",
)


def _size(*real: int, odd: int = 300) -> SearchStrategy[int]:
    """Zero, a width as models have it, or any number up to `odd`."""
    return st.one_of(st.just(0), st.sampled_from(real), st.integers(0, odd))


def _on(*real: int, odd: int = 300) -> SearchStrategy[int]:
    """As `_size`, never zero."""
    return st.one_of(st.sampled_from(real), st.integers(1, odd))


def _fields(**fields: SearchStrategy[Any]) -> SearchStrategy[Fields]:
    return st.fixed_dictionaries(fields)


_trunk = _fields(
    model_type=st.sampled_from(MODEL_TYPES),
    hidden_size=_size(2048, 2560, 2688, 4096, 5120, 7168, 8192, odd=9000),
    intermediate_size=_size(1856, 5120, 14336, 18432, 28672, odd=30000),
    vocab_size=_size(32000, 128256, 151936, 248320, odd=300000),
    adapter_max_rank=_size(8, 16, 64, 256),
    mrope_interleaved=st.booleans(),
)

_attention = _fields(
    num_attention_heads=_size(16, 24, 32, 64, 96, 128, odd=130),
    num_key_value_heads=_size(1, 2, 4, 8, 64, 128, odd=130),
    head_dim=_size(64, 80, 128, 192, 256, 512, odd=520),
    attn_gated=st.booleans(),
)

_layers = st.one_of(
    _fields(
        num_hidden_layers=_size(28, 40, 45, 48, 61, 80, odd=100),
        full_attention_interval=st.integers(0, 8),
        layer_types=st.just([]),
    ),
    _fields(
        num_hidden_layers=_size(28, 40, 45, 48, 61, 80, odd=100),
        full_attention_interval=st.integers(0, 8),
        layer_types=st.lists(st.sampled_from(LAYER_KINDS), min_size=1, max_size=24),
    ),
)

_linear = st.one_of(
    _fields(
        linear_num_key_heads=_size(16, 32, 64, odd=70),
        linear_key_head_dim=st.just(128),
        linear_num_value_heads=_size(16, 32, 48, 64, odd=70),
        linear_value_head_dim=st.just(128),
    ),
    _fields(
        linear_num_key_heads=_size(16, 32, 64, odd=70),
        linear_key_head_dim=_size(64, 128, 256),
        linear_num_value_heads=_size(16, 32, 48, 64, odd=70),
        linear_value_head_dim=_size(64, 128, 256),
    ),
)

_experts = _fields(
    num_experts=st.one_of(
        st.just(0), st.just(256), _on(8, 32, 128, 255, 257, 288, 512, odd=520)
    ),
    num_experts_per_tok=_size(1, 2, 4, 6, 8, 10, 22, odd=24),
    moe_intermediate_size=_size(512, 640, 768, 1856, 2048, odd=5000),
    shared_expert_intermediate_size=_size(512, 640, 2048, 3712, 8192, odd=9000),
    zero_expert_num=_size(1, 128, 256),
    moe_latent_size=_size(1024, 2048, 3584, odd=4000),
)

_mamba = st.one_of(
    _fields(
        mamba_num_heads=_on(24, 64, 128, odd=130),
        mamba_head_dim=_on(64, 128, odd=130),
        ssm_state_size=_on(16, 128, 256, odd=260),
        n_groups=_size(1, 8, odd=10),
    ),
    _fields(
        mamba_num_heads=_size(24, 64, 128, odd=130),
        mamba_head_dim=_size(64, 128, odd=130),
        ssm_state_size=_size(16, 128, 256, odd=260),
        n_groups=_size(1, 8, odd=10),
    ),
)

_latent_attention = _fields(
    kv_lora_rank=st.one_of(st.just(0), _on(256, 512, odd=600)),
    q_lora_rank=_size(768, 1024, 1536, odd=1600),
    qk_rope_head_dim=_size(32, 64, 128),
    o_groups=_size(1, 8, 16, odd=20),
    o_lora_rank=_size(512, 1024, odd=1100),
)

_hyper_connections = _fields(
    hc_mult=st.one_of(st.just(0), _on(1, 2, 4, odd=9)),
    hc_lowrank=st.one_of(st.just(0), _on(64, 320, odd=400)),
)

_indexer = _fields(
    index_n_heads=_size(4, 32, 64, odd=70),
    index_head_dim=_size(64, 128),
    index_topk=st.one_of(st.just(0), _on(512, 2048, odd=2100)),
    index_compress_ratio=st.one_of(st.just(0), _on(1, 4, 128)),
)


def _merged(groups: tuple[Fields, ...]) -> Fields:
    return {name: value for group in groups for name, value in group.items()}


def configs() -> SearchStrategy[Fields]:
    """Canonical config fields, all of them, by name."""
    return st.tuples(
        _trunk,
        _attention,
        _layers,
        _linear,
        _experts,
        _mamba,
        _latent_attention,
        _hyper_connections,
        _indexer,
    ).map(_merged)


def limits() -> SearchStrategy[dict[str, Any]]:
    """The four limits; the token limit crowds around the edges of rows and tiles."""
    return st.fixed_dictionaries(
        {
            "max_batch_tokens": st.one_of(
                st.integers(1, 20),
                st.integers(63, 65),
                st.integers(8191, 8193),
                st.integers(1, 20000),
            ),
            "max_seq_len": st.one_of(
                st.sampled_from((1, 4096, 65536)), st.integers(1, 200000)
            ),
            "kv_block_size": st.one_of(
                st.sampled_from((0, 1, 16, 64)), st.integers(0, 64)
            ),
            "max_batch_size": st.one_of(
                st.sampled_from((1, 31, 32, 33, 159, 160)), st.integers(1, 300)
            ),
        }
    )


def levers() -> SearchStrategy[dict[str, Any]]:
    """Keyword arguments for the switches that a server reads from its variables."""
    return st.fixed_dictionaries(
        {
            "native_q2": st.booleans(),
            "native_q2_mmq": st.booleans(),
            "fp8_rowwise": st.booleans(),
            "glm_trim": st.booleans(),
            "splitk": st.one_of(
                st.sampled_from(("legacy", "auto")), st.integers(1, 16)
            ),
        }
    )
