"""One allocation for all buffers, and the zeroing plans of both placements.

What a plan clears is read back from host memory byte by byte and held against the
oracle's sizes; the fewest memsets are counted by hand from the reference's groups.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import oracle
from metrale_arena import (
    BUFFERS,
    AllocationError,
    BackendError,
    BufferArena,
    ConfigError,
    HostBackend,
    Levers,
    ModelConfig,
    ReleasedError,
    ZeroRange,
)
from metrale_arena.runtime.pointer import released_arena
from runtime.memory import Places, SeparateMemory, SlabMemory, new_memory

NEXT: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 96,
    "vocab_size": 1000,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "attn_gated": True,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 65,
    "max_seq_len": 512,
    "kv_block_size": 16,
    "max_batch_size": 4,
}
DIRTY = 0xA5


def build(gpu: HostBackend, **more: Any) -> BufferArena:
    return BufferArena(ModelConfig(**NEXT), **LIMITS, levers=Levers(), gpu=gpu, **more)


def sizes(tokens: int) -> dict[str, int]:
    return oracle.metrale_sizes(NEXT, **{**LIMITS, "max_batch_tokens": tokens})


def dirty(gpu: HostBackend, arena: BufferArena) -> None:
    for name in BUFFERS:
        if nbytes := getattr(arena, f"{name}_bytes"):
            gpu.memset(getattr(arena, name), DIRTY, nbytes)


def zeros(gpu: HostBackend, arena: BufferArena) -> dict[str, int]:
    """The length of each buffer's zero prefix; the rest must be as it was."""
    found = {}
    for name in BUFFERS:
        if nbytes := getattr(arena, f"{name}_bytes"):
            content = bytearray(nbytes)
            gpu.copy_d2h(content, getattr(arena, name))
            cleared = len(content) - len(content.lstrip(b"\0"))
            assert content[cleared:] == bytes([DIRTY]) * (nbytes - cleared), name
            found[name] = cleared
    return found


@pytest.fixture
def gpu() -> HostBackend:
    return HostBackend()


@pytest.mark.parametrize("placement", ["separate", "slab"])
@pytest.mark.parametrize("tokens", [1, 2, 16, 17, 64, 65, 1000])
def test_rows_clear_the_same_bytes_in_both_placements(
    gpu: HostBackend, placement: Any, tokens: int
) -> None:
    full, rows = sizes(65), sizes(min(tokens, 65))
    with build(gpu, placement=placement) as arena:
        dirty(gpu, arena)
        arena.zero_all_rows(0, tokens=tokens)
        for name, cleared in zeros(gpu, arena).items():
            due = 0
            if name in oracle.METRALE_ZERO_ALL:
                part = name in oracle.METRALE_TOKEN_MAJOR
                due = rows[name] if part else full[name]
            assert cleared == due, name


@pytest.mark.parametrize("placement", ["separate", "slab"])
def test_a_group_is_cleared_and_nothing_else(gpu: HostBackend, placement: Any) -> None:
    full = sizes(65)
    with build(gpu, placement=placement) as arena:
        for method, group in (
            ("zero_all", oracle.METRALE_ZERO_ALL),
            ("zero_prefill_essentials", oracle.METRALE_ZERO_PREFILL),
        ):
            dirty(gpu, arena)
            getattr(arena, method)(0)
            for name, cleared in zeros(gpu, arena).items():
                assert cleared == (full[name] if name in group else 0), name


def test_a_slab_is_one_allocation_with_aligned_buffers_that_never_overlap(
    gpu: HostBackend,
) -> None:
    with build(gpu, placement="slab") as arena:
        assert gpu.live_allocations == 1
        places = sorted(
            (getattr(arena, name), getattr(arena, f"{name}_bytes"))
            for name in BUFFERS
            if getattr(arena, name)
        )
        padding = 0
        for (start, nbytes), (following, _) in pairwise(places):
            assert start % 256 == 0
            assert 0 <= following - (start + nbytes) < 256
            padding += following - (start + nbytes)
        assert gpu.live_bytes == arena.sizes.total_bytes + padding
    assert gpu.live_bytes == 0


def test_sizes_and_accessors_are_those_of_separate_buffers(gpu: HostBackend) -> None:
    with build(gpu) as one, build(gpu, placement="slab") as other:
        assert one.sizes == other.sizes
        for name in BUFFERS:
            assert bool(getattr(one, name)) == bool(getattr(other, name)), name
            bytes_name = f"{name}_bytes"
            assert getattr(one, bytes_name) == getattr(other, bytes_name)


def test_a_slab_clears_each_group_with_one_memset(gpu: HostBackend) -> None:
    with build(gpu, placement="slab") as arena:
        (every,) = arena.zero_plan()
        (essential,) = arena.zero_plan(method="zero_prefill_essentials")
    assert sorted(every.buffers) == sorted(oracle.METRALE_ZERO_ALL)
    assert sorted(essential.buffers) == sorted(oracle.METRALE_ZERO_PREFILL)
    full = sizes(65)
    assert every.nbytes >= sum(full[name] for name in oracle.METRALE_ZERO_ALL)


def test_separate_buffers_take_one_memset_each(gpu: HostBackend) -> None:
    full = sizes(65)
    with build(gpu) as arena:
        plan = arena.zero_plan()
    assert plan == tuple(
        ZeroRange((name,), 0, full[name]) for name in oracle.METRALE_ZERO_ALL
    )


def test_one_row_takes_the_fewest_memsets_that_its_ranges_allow(
    gpu: HostBackend,
) -> None:
    with build(gpu, placement="slab") as arena:
        plan = arena.zero_plan(1)
    # 15 members are cleared in part, so that nothing can follow them without a gap;
    # the three that are cleared in full lie side by side.
    assert len(plan) == 15 + 1
    assert plan[-1].buffers == ("logits", "scratch", "splitk_workspace")


def test_a_plan_knows_its_bytes_and_offsets(gpu: HostBackend) -> None:
    rows = sizes(1)
    with build(gpu, placement="slab") as arena:
        plan = arena.zero_plan(1)
        base = min(getattr(arena, name) for name in BUFFERS if getattr(arena, name))
        for entry in plan:
            assert getattr(arena, entry.buffers[0]) == base + entry.offset
            if len(entry.buffers) == 1:
                assert entry.nbytes == rows[entry.buffers[0]]


def test_a_plan_is_computed_once_per_token_count(
    gpu: HostBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    from metrale_arena.sizes import BufferSizes

    with build(gpu) as arena:
        arena.zero_all_rows(0, tokens=3)

        def refuse(*_: Any, **__: Any) -> None:
            raise AssertionError("a steady step does size arithmetic")

        monkeypatch.setattr(BufferSizes, "from_config", refuse)
        arena.zero_all_rows(0, tokens=3)
        with pytest.raises(AssertionError):
            arena.zero_all_rows(0, tokens=4)


def test_plans_are_kept_for_a_bounded_number_of_token_counts(
    gpu: HostBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    import metrale_arena.arena as module

    monkeypatch.setattr(module, "_MAX_PLANS", 4)
    with build(gpu) as arena:
        for tokens in range(1, 40):
            arena.zero_all_rows(0, tokens=tokens)
            assert len(arena._zero_all_rows) <= 4


def test_a_plan_of_an_unknown_method_is_refused(gpu: HostBackend) -> None:
    with build(gpu) as arena:
        with pytest.raises(ConfigError, match="no plan of 'zero_most' for None tokens"):
            arena.zero_plan(method="zero_most")
        with pytest.raises(ConfigError, match="essentials' for 3 tokens"):
            arena.zero_plan(3, method="zero_prefill_essentials")
        with pytest.raises(ConfigError, match="tokens"):
            arena.zero_plan(0)
    with pytest.raises(ReleasedError, match="zero_plan after release"):
        arena.zero_plan()


def test_an_unknown_placement_is_refused(gpu: HostBackend) -> None:
    with pytest.raises(ConfigError, match="placement: 'pool'; allowed: separate, slab"):
        build(gpu, placement="pool")
    assert gpu.live_bytes == 0


class Shifted(HostBackend):
    """A backend whose allocations are 16 bytes off."""

    def alloc(self, nbytes: int) -> Any:
        return super().alloc(nbytes + 16).offset(16)

    def free(self, ptr: Any) -> None:
        super().free(type(ptr)(ptr - 16))


def test_a_slab_at_an_unaligned_address_is_refused_and_freed() -> None:
    gpu = Shifted()
    with pytest.raises(BackendError, match="is no multiple of 256, which"):
        build(gpu, placement="slab")
    assert gpu.live_bytes == 0


def test_a_buffer_at_an_unaligned_address_is_refused_and_freed() -> None:
    gpu = Shifted()
    message = r"^hidden_states: its address 0x\w+ is no multiple of 256$"
    with pytest.raises(BackendError, match=message):
        build(gpu)
    assert gpu.live_bytes == 0


def test_a_slab_that_cannot_be_had_names_its_bytes_and_the_largest_buffers() -> None:
    class Refusing(HostBackend):
        def alloc(self, nbytes: int) -> Any:
            raise BackendError("no")

    with pytest.raises(AllocationError) as caught:
        build(Refusing(), placement="slab")
    assert caught.value.buffer == "buffer arena slab"
    assert caught.value.nbytes >= sum(sizes(65).values())
    assert caught.value.largest[0][1] == max(sizes(65).values())


@pytest.mark.parametrize("placement", ["separate", "slab"])
def test_a_reserve_must_stay_free(placement: Any) -> None:
    total = sum(sizes(65).values())
    room = total + 64 * 256
    with build(HostBackend(room), placement=placement, reserve=0):
        pass
    gpu = HostBackend(room)
    with pytest.raises(AllocationError) as caught:
        build(gpu, placement=placement, reserve=room)
    assert caught.value.buffer is None
    assert caught.value.reserve == room
    assert "in reserve" in str(caught.value)
    assert gpu.peak_bytes == 0


def test_a_failing_free_of_the_slab_is_reported(gpu: HostBackend) -> None:
    arena = build(gpu, placement="slab")
    base = min(getattr(arena, name) for name in BUFFERS if getattr(arena, name))
    gpu.free(base)
    with pytest.raises(Exception, match="buffer arena slab: BackendError") as caught:
        arena.release()
    assert caught.value.failures[0][0] == "buffer arena slab"  # type: ignore[attr-defined]
    assert all(not getattr(arena, name) for name in BUFFERS)


def test_alignments_beyond_256_are_honoured_and_never_merged_over() -> None:
    gpu = HostBackend()
    places = Places({"x": 256, "y": 4096, "z": 256}, ["x", "z", "y"], {})
    memory = SlabMemory(gpu, places, (3000, 10, 1), 0, "test")
    x, y, z = memory.allocate(released_arena)
    assert (z - x, y - x) == (3072, 4096)
    apart = memory.plan(("x", x, 3000), ("y", y, 10))
    assert [entry.buffers for entry in apart.shown] == [("x",), ("y",)]
    whole = memory.plan(("y", y, 10), ("z", z, 1), ("x", x, 3000))
    assert whole.shown == (ZeroRange(("x", "z", "y"), 0, 4096 + 10),)
    part = memory.plan(("x", x, 2999), ("z", z, 1), ("y", y, 10))
    assert [entry.buffers for entry in part.shown] == [("x",), ("z", "y")]
    assert memory.free() == ()
    assert gpu.live_bytes == 0


def test_an_arena_without_bytes_asks_for_nothing() -> None:
    gpu = HostBackend()
    places = Places({"x": 256}, "x", {})
    for placement in ("separate", "slab"):
        memory = new_memory(placement, gpu, places, (0,), 0, "test")  # type: ignore[arg-type]
        (x,) = memory.allocate(released_arena)
        assert x == 0
        assert memory.plan(("x", x, 0)).shown == ()
        assert memory.free() == ()
    assert gpu.peak_bytes == 0


def test_separate_buffers_are_never_merged_even_side_by_side() -> None:
    gpu = HostBackend()
    places = Places({"x": 256, "y": 256}, "xy", {})
    memory = SeparateMemory(gpu, places, (4096, 4096), 0)
    x, y = memory.allocate(released_arena)
    plan = memory.plan(("x", x, 4096), ("y", y, 4096))
    assert len(plan.ranges) == 2
    assert memory.free() == ()
