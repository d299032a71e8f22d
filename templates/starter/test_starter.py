"""The starter arena: sizes by hand, and one arena on host memory.

Needs the package: arenagen generate starter.yaml -o starter_arena
If it lies elsewhere, as in src, pytest finds it with: -o pythonpath=src
"""

from starter_arena import (
    BufferSizes,
    HostBackend,
    Levers,
    ModelConfig,
    StarterArena,
    selfcheck,
)

CONFIG = ModelConfig(
    hidden_size=64,
    intermediate_size=160,
    vocab_size=500,
    num_attention_heads=8,
    num_key_value_heads=2,
    head_dim=8,
)
LIMITS = {"max_batch_tokens": 20, "max_batch_size": 4, "max_seq_len": 100}


def test_sizes_by_hand() -> None:
    sizes = BufferSizes.from_config(CONFIG, **LIMITS, levers=Levers())
    # 20 rows are padded to 32, and 100 tokens take 7 blocks of 16.
    assert sizes.hidden_states == 20 * 64 * 2
    assert sizes.norm_out == 32 * 64 * 2
    assert sizes.qkv == 32 * (8 + 2 + 2) * 8 * 2
    assert sizes.block_table == 4 * 7 * 4
    assert sizes.scratch == 4 * 500 * 4
    assert sizes.logits == 4 * 500 * 4
    assert sizes.log_probs == 0
    assert sizes.total_bytes == sum(sizes.as_dict().values())


def test_the_lever_opens_the_gate() -> None:
    levers = Levers.from_env({"STARTER_ALL_LOGITS": "1"})
    sizes = BufferSizes.from_config(CONFIG, **LIMITS, levers=levers)
    assert sizes.logits == 20 * 500 * 4
    assert sizes.log_probs == 20 * 4


def test_an_arena_leaves_nothing_behind() -> None:
    gpu = HostBackend()
    with StarterArena(CONFIG, **LIMITS, gpu=gpu, levers=Levers()) as arena:
        assert arena.log_probs.is_null
        arena.zero_all_rows(gpu.default_stream, tokens=1)
        assert arena.tensor("hidden_states", tokens=7).shape == (7, 64)
    assert gpu.live_bytes == 0


def test_the_package_checks_itself() -> None:
    report = selfcheck(CONFIG, **LIMITS, levers=Levers())
    assert report.ok, report
