"""What lies in each buffer: the layouts of the reference, worked out by hand here.

Every use of every buffer is asked for passes of 1 to M tokens, on host memory and on
the simulated driver; the offsets, bytes and shapes that it must give are arithmetic
written out in this file.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import (
    GLM,
    MOE,
    MOE_CASE,
    Backend,
    Case,
    DriverBackend,
    Fields,
    PaperBackend,
    limits,
    no_count,
)

import strategies
from arenagen.naming import POINTER_MEMBERS
from driver.simulated import Driver
from metrale_arena import (
    BUFFERS,
    NULL,
    BufferArena,
    ConfigError,
    DevicePtr,
    HostBackend,
    LayoutError,
    Levers,
    ModelConfig,
    Region,
    ReleasedError,
    SizeError,
    required_bytes,
)
from metrale_arena.pointers import ScratchPtr
from metrale_arena.runtime.pointer import BufferPtr

pytest_plugins = ["driver.plugin"]

# Offset, bytes, element type and shape of each region, by its path.
Parts = dict[str, tuple[int, int, str, tuple[int, ...]]]


@pytest.fixture(params=["host", "driver"])
def gpu(request: pytest.FixtureRequest) -> Backend:
    if request.param == "host":
        return HostBackend(total_memory=1 << 31)
    driver: Driver = request.getfixturevalue("simulated_driver")
    return DriverBackend(driver, 1 << 31)


def up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def parts_of(part: Any, base: int, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every region of a part by its path, its offset counted from the buffer."""
    if isinstance(part, Region):
        yield path, (part.ptr - base, part.nbytes, part.dtype, part.shape)
        return
    for name, value in zip(part._fields, part, strict=True):
        if isinstance(value, tuple):
            yield from parts_of(value, base, f"{path}.{name}" if path else name)


def assert_laid(part: Any, ptr: DevicePtr, capacity: int, expected: Parts) -> None:
    found = dict(parts_of(part, ptr))
    assert found == expected
    ends = [offset + nbytes for offset, nbytes, _, _ in expected.values()]
    assert part.nbytes == max(ends) <= capacity
    if isinstance(part, Region):
        assert (part.ptr, part.offset) == (ptr, 0)


# The uses of one shape: element type, bytes of one element, dimensions for t tokens.

H, HD, Q = 64, 16, 2
RANK, ROPE = 8, 4
# 2 * 1 key head * 128 + 2 * 1 value head * 128
QKVZ = 512
# 2 heads of 8, then x, B and C: 16 + 2 * 1 * 4, then all with dt: 16 + 24 + 2
INNER, XBC, IN_PROJ = 16, 24, 42

SHAPES: dict[tuple[str, str], tuple[str, int, Callable[[int], tuple[int, ...]]]] = {
    ("attn_output", "attention"): ("bf16", 2, lambda t: (t, Q, HD)),
    ("attn_output", "mamba2"): ("bf16", 2, lambda t: (t, INNER)),
    ("attn_output", "absorbed_mla"): ("bf16", 2, lambda t: (t, Q, RANK + ROPE)),
    ("ssm_qkvz", "qkvz"): ("bf16", 2, lambda t: (up(t, 16), QKVZ)),
    ("ssm_qkvz", "mamba2_in_proj"): ("bf16", 2, lambda t: (t, IN_PROJ)),
    ("ssm_qkvz", "shared_expert_up"): ("bf16", 2, lambda t: (t, 80)),
    ("ssm_ba", "ba"): ("bf16", 2, lambda t: (t, 2)),
    ("ssm_ba", "moe_latent"): ("bf16", 2, lambda t: (t, 0)),
    ("ssm_ba", "q_latent"): ("bf16", 2, lambda t: (t, 12)),
    ("ssm_ba", "k_rope"): ("bf16", 2, lambda t: (t, ROPE)),
    ("ssm_deinterleaved", "qkvz"): ("bf16", 2, lambda t: (up(t, 16), QKVZ)),
    ("ssm_deinterleaved", "mamba2_conv"): ("bf16", 2, lambda t: (t, XBC)),
    ("ssm_deinterleaved", "q_copy"): ("bf16", 2, lambda t: (t, Q * HD)),
    ("ssm_deinterleaved", "absorbed_q"): ("bf16", 2, lambda t: (t, Q, RANK + ROPE)),
    ("ssm_conv_out_f32", "conv"): ("f32", 4, lambda t: (t, QKVZ)),
    ("ssm_conv_out_f32", "q_rope"): ("bf16", 2, lambda t: (t, Q, ROPE)),
    ("expert_gate_out", "routed"): ("bf16", 2, lambda t: (up(max(t, 3), 16), 2, 24)),
    ("expert_gate_out", "dense"): ("bf16", 2, lambda t: (up(max(t, 3), 16), 48)),
    ("expert_up_out", "routed"): ("bf16", 2, lambda t: (up(max(t, 3), 16), 2, 24)),
    ("expert_up_out", "dense"): ("bf16", 2, lambda t: (up(max(t, 3), 16), 48)),
    ("expert_down_out", "routed"): ("bf16", 2, lambda t: (up(max(t, 3), 16), 2, H)),
}


def test_uses_of_one_shape_from_one_token_to_all(gpu: Backend) -> None:
    with Case(MOE, limits(40)).build(gpu) as arena:
        for (buffer, use), (dtype, item, shape) in SHAPES.items():
            ptr = getattr(arena, buffer)
            capacity = getattr(arena, f"{buffer}_bytes")
            for tokens in range(1, 41):
                dims = shape(tokens)
                nbytes = item
                for dim in dims:
                    nbytes *= dim
                expected = {"": (0, nbytes, dtype, dims)}
                assert_laid(getattr(ptr, use)(tokens), ptr, capacity, expected)
                assert arena.required_bytes(buffer, use, tokens=tokens) == nbytes
            assert getattr(ptr, use)() == getattr(ptr, use)(tokens=40)


def chunk_meta(at: int, t: int, streams: int, blocks: int) -> Parts:
    slots = up(4 * streams * t, 8)
    table = slots + 8 * t
    length = table + 4 * blocks
    return {
        "meta.positions": (at, 4 * streams * t, "u32", (streams, t)),
        "meta.slots": (at + slots, 8 * t, "i64", (t,)),
        "meta.block_table": (at + table, 4 * blocks, "i32", (blocks,)),
        "meta.seq_len": (at + length, 4, "i32", (1,)),
    }


@pytest.mark.parametrize(("mrope", "streams"), [(False, 1), (True, 3)])
def test_scratch_of_a_prefill_chunk(mrope: bool, streams: int, gpu: Backend) -> None:
    case = Case({**MOE, "mrope_interleaved": mrope}, limits(200, 100, 16))
    with case.build(gpu) as arena:
        for t in range(1, 201):
            # Two experts a token: 2 * 4 bytes of ids, then of weights. 100 // 16 + 1
            # blocks.
            expected: Parts = {
                "topk_ids": (0, 8 * t, "u32", (t, 2)),
                "topk_weights": (8 * t, 8 * t, "f32", (t, 2)),
                **chunk_meta(16 * t, t, streams, 7),
            }
            part = arena.scratch.prefill(tokens=t)
            assert_laid(part, arena.scratch, arena.scratch_bytes, expected)
            # Offsets of the metadata count from its own start.
            assert part.meta.slots.offset == up(4 * streams * t, 8)
            assert part.meta.slots.ptr == part.meta.positions.ptr + up(
                4 * streams * t, 8
            )


def decode_meta(rows: int, blocks: int) -> Parts:
    at = 32768
    return {
        "meta.positions": (at, 4 * rows, "u32", (rows,)),
        "meta.seq_slot": (at + 4 * rows, 4 * rows, "i32", (rows,)),
        "meta.slots": (at + 8 * rows, 8 * rows, "i64", (rows,)),
        "meta.seq_lens": (at + 16 * rows, 4 * rows, "i32", (rows,)),
        "meta.block_table": (
            at + 24 * rows,
            4 * rows * blocks,
            "i32",
            (rows, blocks),
        ),
    }


@pytest.mark.parametrize("batch", [1, 32, 33, 64, 200])
def test_scratch_of_a_decode_step_and_of_a_verify_pass(
    batch: int, gpu: Backend
) -> None:
    with Case(MOE, limits(8, 4096, 16, batch)).build(gpu) as arena:
        # 4096 // 16 + 1 blocks.
        for tokens in (None, 1, 8):
            decode = arena.scratch.decode(tokens)
            expected = decode_meta(max(32, batch), 257)
            assert_laid(decode, arena.scratch, arena.scratch_bytes, expected)
            assert decode.nbytes == 32768 + (24 + 4 * 257) * max(32, batch)
            verify = arena.scratch.verify(tokens)
            expected = decode_meta(160, 257)
            assert_laid(verify, arena.scratch, arena.scratch_bytes, expected)


def test_a_smaller_batch_is_laid_out_by_the_same_formula(gpu: Backend) -> None:
    with Case(MOE, limits(8, 4096, 16, 64)).build(gpu) as arena:
        scratch, nbytes = arena.scratch, arena.scratch_bytes
        for batch, rows in ((8, 32), (33, 33), (63, 63), (64, 64)):
            part = scratch.decode(max_batch_size=batch)
            assert_laid(part, scratch, nbytes, decode_meta(rows, 257))
        part = scratch.decode(max_batch_size=40, max_seq_len=47, kv_block_size=16)
        assert_laid(part, scratch, nbytes, decode_meta(40, 3))
        # Without pages a sequence has 256 blocks.
        part = scratch.decode(kv_block_size=0)
        assert_laid(part, scratch, nbytes, decode_meta(64, 256))
        chunk = scratch.prefill(5, max_seq_len=31)
        assert_laid(
            chunk,
            scratch,
            nbytes,
            {
                "topk_ids": (0, 40, "u32", (5, 2)),
                "topk_weights": (40, 40, "f32", (5, 2)),
                **chunk_meta(80, 5, 1, 2),
            },
        )


@pytest.mark.parametrize(("mrope", "streams"), [(False, 1), (True, 3)])
def test_scratch_of_batched_prefill(mrope: bool, streams: int, gpu: Backend) -> None:
    case = Case({**MOE, "mrope_interleaved": mrope}, limits(600))
    with case.build(gpu) as arena:
        for t in range(1, 601):
            # Eight streams of as many tokens each.
            chunk = max(1, -(-t // 8))
            total = 8 * chunk
            nbytes = (
                up(total * 2 * 8, 64)
                + 8 * max(16 * chunk + 64, 4096)
                + streams * up(4 * total, 8)
                + up(8 * total, 8)
                + 2 * up(8 * 8, 8)
                + up(4 * 9, 8)
                + up(4 * 8, 8)
                + 8 * 8
            )
            part = arena.scratch.staging(t)
            expected: Parts = {"": (0, nbytes, "u8", (nbytes,))}
            assert_laid(part, arena.scratch, arena.scratch_bytes, expected)


def test_keys_then_values_of_a_prefill(gpu: Backend) -> None:
    """Values begin behind the keys of the pass, and have padded rows."""
    with Case(MOE, limits(70)).build(gpu) as arena:
        for t in range(1, 71):
            part = arena.ssm_qkvz.prefill_kv(t)
            expected: Parts = {
                "k": (0, t * 16 * 2, "bf16", (t, 16)),
                "v": (t * 16 * 2, up(t, 16) * 16 * 2, "bf16", (up(t, 16), 16)),
            }
            assert_laid(part, arena.ssm_qkvz, arena.ssm_qkvz_bytes, expected)


@pytest.mark.parametrize("tokens", [1, 40, 64, 65, 100, 2047, 2048, 2049, 2500])
def test_low_rank_hyper_connections(tokens: int, gpu: Backend) -> None:
    # Two streams of 4, rank 3; the paths take 64 and 2048 tokens at most.
    fields = {"hidden_size": 4, "hc_mult": 2, "hc_lowrank": 3}
    with Case(fields, limits(tokens)).build(gpu) as arena:
        ptr, nbytes = arena.hc_lowrank_scratch, arena.hc_lowrank_scratch_bytes
        for asked in {1, tokens // 2, tokens} - {0}:
            t = min(asked, 64)
            expected: Parts = {
                "normed": (0, t * 8 * 4, "f32", (t, 8)),
                "low": (t * 8 * 4, t * 3 * 4, "f32", (t, 3)),
            }
            assert_laid(ptr.split(asked), ptr, nbytes, expected)
            t = min(asked, 2048)
            expected = {
                "normed": (0, t * 16, "bf16", (t, 8)),
                "up_pre": (t * 16, t * 16, "bf16", (t, 8)),
                "low": (t * 32, t * 6, "bf16", (t, 3)),
                "inj_pre": (t * 38, t * 4, "bf16", (t, 2)),
            }
            assert_laid(ptr.gemm(asked), ptr, nbytes, expected)
        assert max(ptr.split().nbytes, ptr.gemm().nbytes) == nbytes


@pytest.mark.parametrize("seq_len", [1, 4, 5, 4096])
def test_selection_of_sparse_attention(seq_len: int, gpu: Backend) -> None:
    # One head of 4, 16 keys in groups of 4; 2048 tokens whatever the pass holds.
    with Case(MOE, limits(5, seq_len)).build(gpu) as arena:
        groups = -(-seq_len // 4)
        qk, post, scores = 2048 * 8 * 2, 2048 * 4 * 4, 2048 * groups * 4
        expected: Parts = {
            "qk": (0, qk, "bf16", (2048, 8)),
            "q_post": (qk, post, "f32", (2048, 1, 4)),
            "scores": (qk + post, scores, "f32", (2048, groups)),
            "lists": (qk + post + scores, 2048 * 4 * 4, "i32", (2048, 4)),
        }
        ptr, nbytes = arena.qsa_select_scratch, arena.qsa_select_scratch_bytes
        for tokens in (None, 1, 5):
            assert_laid(ptr(tokens), ptr, nbytes, expected)
        assert ptr().nbytes == nbytes


def test_chunked_gdn_prefill(gpu: Backend) -> None:
    fields = {
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
    }
    with Case(fields, limits(200)).build(gpu) as arena:
        ptr, nbytes = arena.gdn_fla_scratch, arena.gdn_fla_scratch_bytes
        for t in range(1, 201):
            n = (-(-t // 64) + 16) * 2
            wide, state = n * 64 * 128 * 2, n * 128 * 128 * 2
            expected: Parts = {
                "w": (0, wide, "bf16", (n, 64, 128)),
                "u": (wide, wide, "bf16", (n, 64, 128)),
                "s": (2 * wide, state, "bf16", (n, 128, 128)),
                "uc": (2 * wide + state, wide, "bf16", (n, 64, 128)),
                "gc": (3 * wide + state, n * 64 * 4, "f32", (n, 64)),
            }
            assert_laid(ptr(tokens=t), ptr, nbytes, expected)
        assert ptr(7).w.ptr == ptr
        assert ptr().nbytes == nbytes


def test_chunked_mamba2_scan(gpu: Backend) -> None:
    fields = {"mamba_num_heads": 3, "ssm_state_size": 4, "n_groups": 2}
    with Case(fields, limits(200)).build(gpu) as arena:
        ptr, nbytes = arena.ssd_scratch, arena.ssd_scratch_bytes
        for t in range(1, 201):
            chunks = -(-t // 64) + 1
            steps = 3 * chunks * 64 * 4
            square = chunks * 2 * 64 * 64 * 4
            expected: Parts = {
                "dt": (0, steps, "f32", (3, chunks, 64)),
                "da_cumsum": (steps, steps, "f32", (3, chunks, 64)),
                "cb": (2 * steps, square, "f32", (chunks, 2, 64, 64)),
            }
            assert_laid(ptr(t), ptr, nbytes, expected)
        assert ptr().nbytes == nbytes


def test_a_grouped_fp8_layer_of_the_worked_example() -> None:
    fields: Fields = {
        "hidden_size": 2048,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    }
    gpu = PaperBackend()
    with Case(fields, limits(64)).build(gpu) as arena:
        for rows, starts in (
            (1, (5120, 5376, 136960, 136964)),
            (64, (327680, 337920, 470528, 470532)),
        ):
            part = arena.moe_fp8_scratch(rows)
            found = (
                part.scales.offset,
                part.worklist.offset,
                part.total_tiles.offset,
                part.nbytes,
            )
            assert found == starts
            assert part.activation.offset == 0
            assert part.small_worklist is part.small_total_tiles is None
        assert arena.moe_fp8_scratch_bytes == 470532
        assert arena.moe_fp8_scratch(**arena.moe_fp8_scratch.most).nbytes == 470532


# Pointers


def test_pointers_with_uses_are_plain_integers(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        for name in ("scratch", "attn_output", "gdn_fla_scratch", "moe_fp8_scratch"):
            ptr = getattr(arena, name)
            assert isinstance(ptr, DevicePtr)
            assert ptr == int(ptr) and hash(ptr) == hash(int(ptr))
            assert type(ptr + 1) is int
            assert ptr.offset(16) == ptr + 16
            assert ptr.to_bytes(8, "little") == int(ptr).to_bytes(8, "little")
            assert pickle.loads(pickle.dumps(ptr)) == ptr
            assert name in BufferArena.__slots__
        gpu.memset(arena.scratch, 1, 4)
        held = arena.scratch
    assert arena.scratch == NULL and arena.scratch.is_null
    for pointer in (held, arena.scratch):
        with pytest.raises(ReleasedError) as caught:
            pointer.prefill(3)
        assert caught.value.label == BufferArena.label
        assert not caught.value.dropped
        assert str(caught.value) == (
            "buffer arena: scratch.prefill(tokens=3) after release; "
            "its memory is gone, build a new arena"
        )
    with pytest.raises(ReleasedError, match=r": gdn_fla_scratch\(\) after release;"):
        arena.gdn_fla_scratch()


def test_a_buffer_that_was_absent_is_released_with_its_arena(gpu: Backend) -> None:
    arena = Case({"hidden_size": 8}, limits(4)).build(gpu)
    with pytest.raises(LayoutError, match="it is not allocated in this arena"):
        arena.ssd_scratch(2)
    arena.release()
    with pytest.raises(ReleasedError, match=r"ssd_scratch\(tokens=2\) after release;"):
        arena.ssd_scratch(2)


def test_a_pointer_of_no_arena_has_no_memory() -> None:
    with pytest.raises(LayoutError) as caught:
        ScratchPtr.NULL.prefill(3)
    assert str(caught.value) == (
        "scratch: no room for prefill(tokens=3): "
        "it is not allocated in this arena (0 bytes)"
    )


def test_no_use_may_take_the_name_of_a_member_of_its_pointer() -> None:
    members = {name for name in dir(BufferPtr) if not name.startswith("_")}
    assert "bind" in members
    assert members <= POINTER_MEMBERS


def test_a_pointer_keeps_no_arena_alive() -> None:
    arena = MOE_CASE.build()
    held = arena.scratch
    arena.release()
    del arena
    with pytest.raises(ReleasedError) as caught:
        held.decode()
    assert caught.value.dropped
    assert str(caught.value) == (
        "buffer arena: scratch.decode() after release, "
        "as nothing held the arena; build a new one and keep it"
    )


# Refusals


def refusal(ask: Callable[[], object]) -> str:
    with pytest.raises(LayoutError) as caught:
        ask()
    return str(caught.value)


def test_more_than_the_arena_holds_is_refused(gpu: Backend) -> None:
    # 64 KiB of scratch: prefill of 20 tokens takes far less.
    with Case(MOE, limits(20, 64, 16, 32)).build(gpu) as arena:
        scratch = arena.scratch
        # 21 tokens: ids and weights 336, positions 84 up to 88, slots 168, table and
        # length 24.
        assert refusal(lambda: scratch.prefill(21)) == (
            "scratch: no room for prefill(tokens=21) (616 bytes), at most tokens=20: "
            "it has 64.00 KiB (65536 bytes)"
        )
        assert refusal(lambda: scratch.decode(21, max_batch_size=33)) == (
            "scratch: no room for decode(tokens=21, max_batch_size=33) (34220 bytes), "
            "at most tokens=20, max_batch_size=32: it has 64.00 KiB (65536 bytes)"
        )
        # 65 blocks of one token: (24 + 4 * 65) * 160 behind byte 32768.
        assert refusal(lambda: scratch.verify(kv_block_size=1)) == (
            "scratch: no room for verify(kv_block_size=1) (78208 bytes): "
            "it has 64.00 KiB (65536 bytes)"
        )
        # Every accessor takes tokens and holds them against the limit.
        assert "at most tokens=20" in refusal(lambda: scratch.verify(21))
        assert "at most tokens=20" in refusal(lambda: arena.qsa_select_scratch(21))
        assert "attention(tokens=1099511627776)" in refusal(
            lambda: arena.attn_output.attention(1 << 40)
        )
        for bad in (0, -1, True, 2.0, "3"):
            with pytest.raises(ConfigError) as caught:
                scratch.prefill(bad)  # type: ignore[arg-type]
            assert str(caught.value) == no_count("tokens", bad, 1)
        with pytest.raises(ConfigError, match=r"max_batch_size is 0; at least 1"):
            scratch.decode(max_batch_size=0)
        with pytest.raises(TypeError):
            scratch.staging(max_seq_len=1)  # type: ignore[call-arg]


def test_a_use_whose_gate_is_false_is_refused_with_the_gate(gpu: Backend) -> None:
    with Case({"hidden_size": 8}, limits(4)).build(gpu) as arena:
        assert refusal(lambda: arena.ssm_ba.q_latent(3)) == (
            "ssm_ba: no room for q_latent(tokens=3), whose gate is false "
            "(kv_lora_rank > 0): it has 256 bytes"
        )
        # A placeholder has memory and no regions.
        assert refusal(lambda: arena.hc_lowrank_scratch.split()) == (
            "hc_lowrank_scratch: no room for split(), whose gate is false "
            "(hc_mult > 0 and hc_lowrank > 0): it has 256 bytes"
        )
        assert refusal(lambda: arena.qsa_select_scratch()) == (
            "qsa_select_scratch: no room for its regions, whose gate is false "
            "(index_topk > 0 and index_compress_ratio > 0): it has 256 bytes"
        )
        assert refusal(lambda: arena.ssd_scratch(2)) == (
            "ssd_scratch: no room for tokens=2: "
            "it is not allocated in this arena (0 bytes)"
        )
        assert arena.required_bytes("ssm_ba", "q_latent") == 0


def test_a_trimmed_buffer_offers_nothing(gpu: Backend) -> None:
    with Case(GLM, limits(4)).build(gpu) as arena:
        assert arena.attn_output == NULL
        assert refusal(arena.attn_output.attention) == (
            "attn_output: no room for attention(): "
            "it is not allocated in this arena (0 bytes)"
        )
        # A trim alone leaves a shape of some bytes without memory.
        assert refusal(lambda: arena.tensor("attn_output", tokens=2)) == (
            "attn_output has no memory here: emptied by a trim, or by the sizes that "
            "were given"
        )
        arena.scratch.prefill(4)


def test_sizes_that_are_smaller_hold_smaller_passes(gpu: Backend) -> None:
    # 2 heads of 16: 64 bytes a token.
    case = Case(MOE, limits(20))
    sizes = case.sizes()._replace(attn_output=64 * 7, gdn_fla_scratch=256)
    with case.build_from(sizes, gpu) as arena:
        assert arena.attn_output.attention(7).nbytes == 448
        assert refusal(lambda: arena.attn_output.attention(8)) == (
            "attn_output: no room for attention(tokens=8) (512 bytes): "
            "it has 448 bytes"
        )
        assert "attention() (1280 bytes): it has 448 bytes" in refusal(
            arena.attn_output.attention
        )
        assert "its regions (" in refusal(arena.gdn_fla_scratch)


# required_bytes


def test_required_bytes_says_whether_a_batch_fits() -> None:
    case = Case(MOE, limits(20, 4096, 16, 32))
    with case.build(PaperBackend()) as arena:

        def needed(t: int) -> int:
            # Two experts a token, one stream, 4096 // 16 + 1 blocks.
            return 16 * t + up(4 * t, 8) + 8 * t + 4 * 257 + 4

        for tokens in (1, 20, 21, 16384):
            found = arena.required_bytes("scratch", "prefill", tokens=tokens)
            assert found == needed(tokens)
        assert arena.required_bytes("scratch", "prefill") == needed(20)
        assert arena.required_bytes("scratch", "prefill", tokens=20) <= (
            arena.scratch_bytes
        )
        big = arena.required_bytes("scratch", "prefill", tokens=1 << 20)
        assert big > arena.scratch_bytes
        decode = arena.required_bytes("scratch", "decode", max_batch_size=300)
        assert decode == 32768 + (24 + 4 * 257) * 300
        assert (
            required_bytes(
                case.model,
                "scratch",
                "decode",
                max_batch_tokens=1,
                max_seq_len=10,
                kv_block_size=0,
                max_batch_size=300,
                levers=Levers(),
            )
            == 32768 + (24 + 4 * 256) * 300
        )


def test_required_bytes_of_a_whole_buffer_are_its_size() -> None:
    case = Case(MOE, limits(20))
    with case.build(PaperBackend()) as arena:
        for name in BUFFERS:
            assert arena.required_bytes(name) == case.expected[name]
            rows = arena.required_bytes(name, tokens=7)
            assert rows == case.expected_for(7)[name]
        assert arena.required_bytes("gdn_fla_scratch", tokens=65) == (
            case.expected_for(65)["gdn_fla_scratch"]
        )


def test_required_bytes_of_what_there_is_not() -> None:
    with MOE_CASE.build(PaperBackend()) as arena:
        with pytest.raises(ConfigError) as caught:
            arena.required_bytes("scrath")
        assert str(caught.value) == (
            "no buffer is named 'scrath'; did you mean 'scratch'?"
        )
        with pytest.raises(ConfigError) as caught:
            arena.required_bytes("z")
        known = ", ".join(BUFFERS)
        assert str(caught.value) == f"no buffer is named 'z'; known: {known}"
        with pytest.raises(ConfigError) as caught:
            arena.required_bytes("scratch", "prefil")
        assert str(caught.value) == (
            "scratch has no use named 'prefil'; known: prefill, decode, verify, staging"
        )
        with pytest.raises(ConfigError) as caught:
            arena.required_bytes("gdn_fla_scratch", "w")
        assert str(caught.value) == (
            "gdn_fla_scratch has no use named 'w'; known: none"
        )
        with pytest.raises(ConfigError, match="tokens is 0; at least 1"):
            arena.required_bytes("scratch", "prefill", tokens=0)
        with pytest.raises(SizeError, match=r"scratch\.prefill: .* more than 2\*\*63"):
            arena.required_bytes("scratch", "prefill", tokens=1 << 62)


# Views


def test_a_view_that_there_is_not_says_why() -> None:
    with Case({"hidden_size": 8}, limits(4)).build() as arena:

        def told(name: str, **asked: Any) -> str:
            return refusal(lambda: arena.tensor(name, **asked))

        # Neither is a matter of room, and neither says so.
        assert told("ssm_ba", use="baa") == (
            "ssm_ba has no use 'baa'; its uses: ba, moe_latent, q_latent, k_rope; "
            "did you mean 'ba'?"
        )
        assert told("ssm_ba", use="z") == (
            "ssm_ba has no use 'z'; its uses: ba, moe_latent, q_latent, k_rope"
        )
        assert told("hidden_states", use="decode") == (
            "hidden_states has no uses; leave use out"
        )
        assert told("ssm_ba", use="q_latent") == (
            "ssm_ba has no shape as q_latent here: its gate is false, or it holds "
            "regions; with a shape here: ba, moe_latent"
        )
        assert told("fp8_act_scale_kmajor", tokens=2) == (
            "fp8_act_scale_kmajor is not token-major: it has no rows of a pass; "
            "leave tokens out"
        )
        assert told("hidden_states", tokens=5) == (
            "hidden_states: no room for a view of 5 tokens; a pass has 1 to 4: "
            "it has 64 bytes"
        )
        assert told("lora_xa") == (
            "lora_xa: no room for a view; its gate is false: adapter_max_rank > 0: "
            "it is not allocated in this arena (0 bytes)"
        )
        # Without heads its shape has no elements, with a trim or without.
        assert told("attn_output") == (
            "attn_output: no room for a view: "
            "it is not allocated in this arena (0 bytes)"
        )
        with pytest.raises(ConfigError) as caught:
            arena.tensor("hiden_states")
        assert str(caught.value) == (
            "tensor: no buffer is named 'hiden_states'; did you mean 'hidden_states'?"
        )


# Any model


@settings(max_examples=60)
@given(
    fields=strategies.configs(),
    asked=strategies.limits(),
    switches=strategies.levers(),
    share=st.fractions(0, 1),
)
def test_no_two_regions_overlap_and_all_lie_inside(
    fields: Fields, asked: dict[str, Any], switches: dict[str, Any], share: Any
) -> None:
    case = Case(fields, asked, switches)
    with case.build(PaperBackend()) as arena:
        most = asked["max_batch_tokens"]
        tokens = max(1, int(share * most))
        for name in BUFFERS:
            ptr = getattr(arena, name)
            capacity = getattr(arena, f"{name}_bytes")
            uses = [each for each in dir(ptr) if (name, each) in USES]
            offers = {use: getattr(ptr, use) for use in uses}
            if callable(ptr) and name != "moe_fp8_scratch":
                offers[None] = ptr
            for use, offer in offers.items():
                needed = arena.required_bytes(name, use, tokens=tokens)
                try:
                    part = offer(tokens)
                except LayoutError as error:
                    assert not ptr or "whose gate is false" in str(error)
                    continue
                regions = sorted(
                    (offset, offset + nbytes)
                    for _, (offset, nbytes, _, _) in parts_of(part, ptr)
                )
                assert all(end <= start for (_, end), (start, _) in pairwise(regions))
                assert regions[0][0] >= 0
                assert max(end for _, end in regions) == part.nbytes == needed
                assert part.nbytes <= capacity


# Every use of the reference, as its table names them here.
USES = {
    *SHAPES,
    ("expert_down_out", "dense"),
    ("ssm_qkvz", "prefill_kv"),
    *(("scratch", use) for use in ("prefill", "decode", "verify", "staging")),
    *(("hc_lowrank_scratch", use) for use in ("split", "gemm")),
}


def test_a_model_needs_no_arena_to_be_asked() -> None:
    model = ModelConfig(hidden_size=8, num_attention_heads=2, head_dim=4)
    nbytes = required_bytes(model, "attn_output", "attention", **limits(11))
    assert nbytes == 11 * 2 * 4 * 2
