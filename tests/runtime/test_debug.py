"""The debug arena: guards behind every buffer, poison in it, and what finds a write.

A kernel is played by a function that writes through the backend: what lies behind a
buffer of a debug arena is its guard, so that host memory, which refuses any write
outside an allocation, lets it happen. Sizes are the oracle's.
"""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from support import (
    DENSE_CASE,
    DIRTY,
    MOE_CASE,
    NAMES,
    QWEN3_NEXT,
    Backend,
    Call,
    Case,
    DriverBackend,
    MakeBackend,
    Spy,
    assert_gone,
    buffers_of,
    cleared,
    limits,
    new_stream,
    read,
    soil,
)

import oracle
from metrale_arena import (
    BUFFERS,
    NULL,
    AllocationError,
    ArenaError,
    BackendError,
    BufferArena,
    ConfigError,
    Debug,
    DevicePtr,
    GpuBackend,
    HostBackend,
    Overrun,
    Region,
    ReleasedError,
)
from metrale_arena.runtime.debug import Guards
from metrale_arena.runtime.memory import Places, new_memory
from metrale_arena.runtime.pointer import released_arena

pytest_plugins = ["driver.plugin"]

# M = 40, so that a kernel of 16-row tiles works on 48 rows.
NEXT_CASE = Case(QWEN3_NEXT, limits(40))
CASES = {"dense": DENSE_CASE, "everything": MOE_CASE, "qwen3_next": NEXT_CASE}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
# Of moe_fp8_scratch for 20 rows of 80 bytes and 40 experts' rows: behind each region,
# where it ends and the bytes up to the next multiple of 256.
MOE_GAPS = {
    "moe_fp8_scratch": {
        "activation": (1600, 192),
        "scales": (1792 + 160, 96),
        "worklist": (2048 + 48, 208),
    }
}
every_placement = pytest.mark.parametrize("placement", ["separate", "slab"])


def up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def write(gpu: GpuBackend, ptr: DevicePtr, content: bytes) -> None:
    gpu.copy_h2d(ptr, content)


def behind(arena: BufferArena, name: str, offset: int = 0) -> DevicePtr:
    """The address so many bytes behind the end of a buffer."""
    ptr: DevicePtr = getattr(arena, name)
    return ptr.offset(getattr(arena, f"{name}_bytes") + offset)


# What it looks like from outside


@every_placement
@every_case
def test_a_fresh_arena_has_no_overruns(
    case: Case, placement: str, gpu: Backend
) -> None:
    with case.build(gpu, placement=placement, debug=Debug()) as arena:
        assert arena.check_guards(gpu.default_stream) == ()
        soil(gpu, arena)
        assert arena.check_guards(gpu.default_stream) == ()
    assert gpu.live_bytes == 0


@every_placement
@every_case
def test_sizes_accessors_and_alignment_are_those_of_any_arena(
    case: Case, placement: str, gpu: Backend
) -> None:
    with case.build(gpu, placement=placement, debug=Debug(guard=13)) as arena:
        assert arena.sizes.as_dict() == case.expected
        assert arena.sizes.total_bytes == case.total
        found = {name: nbytes for name, _, nbytes in buffers_of(arena)}
        assert found == case.expected
        assert {name for name, ptr, _ in buffers_of(arena) if ptr} == set(case.live)
        assert all(ptr % 256 == 0 for _, ptr, _ in buffers_of(arena))
    assert_gone(arena)
    assert gpu.live_bytes == 0


@pytest.mark.parametrize("guard", [1, 8, 256, 1000])
def test_every_allocation_is_its_buffer_and_a_guard(guard: int, gpu: Backend) -> None:
    spy = Spy(gpu)
    with MOE_CASE.build(spy, debug=Debug(guard=guard)):
        asked = [nbytes for (nbytes,) in spy.made("alloc")]
    assert asked == [nbytes + guard for nbytes in MOE_CASE.live.values()]


@pytest.mark.parametrize("guard", [1, 8, 256, 1000])
def test_in_a_slab_the_next_buffer_begins_behind_the_guard(
    guard: int, gpu: Backend
) -> None:
    with MOE_CASE.build(gpu, placement="slab", debug=Debug(guard=guard)) as arena:
        live = sorted((ptr, nbytes) for _, ptr, nbytes in buffers_of(arena) if ptr)
        place = live[0][0]
        for ptr, nbytes in live:
            assert ptr == place
            place = up(ptr + nbytes + guard, 256)
        last, nbytes = live[-1]
        assert gpu.live_bytes == last + nbytes + guard - live[0][0]


@every_placement
def test_guards_count_against_the_free_memory(placement: str) -> None:
    live = MOE_CASE.live
    needed = MOE_CASE.total + 100 * len(live)
    if placement == "slab":
        # In the slab's own order the last buffer is the last of the schema.
        *_, last = live.values()
        needed = sum(up(n + 100, 256) for n in live.values()) - up(last + 100, 256)
        needed += last + 100
    debug = Debug(guard=100)
    with MOE_CASE.build(HostBackend(needed), placement=placement, debug=debug):
        pass
    spy = Spy(HostBackend(needed - 1))
    with pytest.raises(AllocationError) as caught:
        MOE_CASE.build(spy, placement=placement, debug=debug)
    assert caught.value.buffer is None
    assert caught.value.nbytes == needed
    assert spy.made("alloc") == []


@every_placement
@pytest.mark.parametrize("poison", [0xA5, 0, 255])
def test_a_buffer_is_poisoned_unless_it_is_filled(
    poison: int, placement: str, gpu: Backend
) -> None:
    debug = Debug(poison=poison)
    with MOE_CASE.build(gpu, placement=placement, debug=debug) as arena:
        for name, ptr, nbytes in buffers_of(arena):
            if ptr:
                wanted = bytes([0 if name == "norm_unit_w" else poison]) * nbytes
                for start, size in MOE_GAPS.get(name, {}).values():
                    guard = (debug.pattern * size)[:size]
                    wanted = wanted[:start] + guard + wanted[start + size :]
                assert read(gpu, ptr, nbytes) == wanted, name


def test_a_guard_spells_itself(gpu: Backend) -> None:
    with DENSE_CASE.build(gpu, debug=Debug(guard=20)) as arena:
        found = read(gpu, behind(arena, "residual"), 20)
    assert found == b"[guard]\xf7[guard]\xf7[gua"


def test_sizes_that_are_there_already_are_guarded_too(gpu: Backend) -> None:
    sizes = MOE_CASE.sizes()
    with MOE_CASE.build_from(sizes, gpu, debug=Debug()) as arena:
        write(gpu, behind(arena, "logits", 3), b"\0")
        (overrun,) = arena.check_guards(gpu.default_stream)
    assert (overrun.buffer, overrun.first, overrun.reach) == ("logits", 3, 4)


# What it finds


@every_placement
def test_one_byte_too_many_is_found_behind_every_buffer(
    placement: str, gpu: Backend
) -> None:
    live = NEXT_CASE.live
    assert len(live) == 33
    with NEXT_CASE.build(gpu, placement=placement, debug=Debug()) as arena:
        for name, nbytes in live.items():
            place = behind(arena, name)
            intact = read(gpu, place, 1)
            write(gpu, place, b"\x01")
            (overrun,) = arena.check_guards(gpu.default_stream)
            assert overrun.buffer == name
            assert overrun.nbytes == nbytes
            assert (overrun.first, overrun.reach) == (0, 1)
            assert overrun.found == b"\x01"
            write(gpu, place, bytes(intact))
        assert arena.check_guards(gpu.default_stream) == ()


def run_tiles(gpu: GpuBackend, out: DevicePtr, rows: int, row: bytes) -> None:
    """A GEMM of 16-row tiles that writes a row into each row of its last tile too."""
    write(gpu, out, row * up(rows, 16))


@every_placement
def test_a_kernel_that_writes_16_row_tiles_overruns_a_buffer_of_m_rows(
    placement: str, gpu: Backend
) -> None:
    # 8 rows of 2048 BF16 too many, which the guard has room for.
    debug = Debug(guard=8 * 2048 * 2)
    row = b"\x80\x3f" * 2048
    with NEXT_CASE.build(gpu, placement=placement, debug=debug) as arena:
        # moe_output has align(M, 16) rows, norm_output has M.
        run_tiles(gpu, arena.moe_output, 40, row)
        assert arena.check_guards(gpu.default_stream) == ()
        run_tiles(gpu, arena.norm_output, 40, row)
        (overrun,) = arena.check_guards(gpu.default_stream)
        assert overrun.buffer == "norm_output"
        assert overrun.nbytes == 40 * 2048 * 2
        assert (overrun.first, overrun.reach) == (0, 8 * 2048 * 2)
        assert overrun.found == row * 8
        assert str(overrun).startswith(
            "norm_output: bytes 0 to 32767 behind its 160.00 KiB (163840 bytes) "
            "changed to 80 3f 80 3f 80 3f 80 3f 80 3f 80 3f 80 3f 80 3f ...; the "
            "guard ends there, after 32768 bytes, and more may follow"
        )


def test_a_write_far_beyond_its_guard_is_seen_in_every_guard_that_it_crosses() -> None:
    gpu = HostBackend()
    with NEXT_CASE.build(gpu, placement="slab", debug=Debug()) as arena:
        # ssm_ba, 64 BF16 a row, and ssm_gates, [2, 32] F32 a row, follow one another.
        size, gates = 40 * 64 * 2, 40 * 2 * 32 * 4
        assert arena.ssm_gates_bytes == gates
        start = arena.ssm_deinterleaved
        assert arena.ssm_ba == start - up(size + 256, 256)
        ctypes.memset(arena.ssm_ba, 0, start - arena.ssm_ba + 4)
        (overrun,) = arena.check_guards(0)
    assert (overrun.buffer, overrun.reach) == ("ssm_ba", overrun.guard)
    assert overrun.behind == "ssm_deinterleaved"


@every_placement
@pytest.mark.parametrize(("first", "length"), [(0, 256), (5, 1), (100, 28), (255, 1)])
def test_how_far_a_write_went(
    first: int, length: int, placement: str, gpu: Backend
) -> None:
    with MOE_CASE.build(gpu, placement=placement, debug=Debug()) as arena:
        write(gpu, behind(arena, "hc_comb", first), bytes(length))
        (overrun,) = arena.check_guards(gpu.default_stream)
    assert (overrun.first, overrun.reach) == (first, first + length)
    assert overrun.found == bytes(length)


def test_bytes_that_are_left_alone_in_between_are_shown_too(gpu: Backend) -> None:
    with MOE_CASE.build(gpu, debug=Debug()) as arena:
        write(gpu, behind(arena, "residual", 1), b"\0")
        write(gpu, behind(arena, "residual", 6), b"\0")
        write(gpu, behind(arena, "logits", 9), b"\1\2")
        found = arena.check_guards(gpu.default_stream)
    assert found == (
        Overrun("residual", "", 20 * 64 * 2, 1, 7, 256, "", b"\0uard\0"),
        Overrun("logits", "", 20 * 40 * 2, 9, 11, 256, "", b"\1\2"),
    )


def test_in_a_slab_a_write_in_front_of_a_buffer_is_found(gpu: Backend) -> None:
    with NEXT_CASE.build(gpu, placement="slab", debug=Debug(guard=1)) as arena:
        # hidden_states comes first, residual second: 40 * 2048 BF16 each, then one
        # guard byte and 255 more up to the next multiple of 256.
        assert arena.residual == arena.hidden_states + 163840 + 256
        write(gpu, DevicePtr(arena.residual - 2), b"\0\0")
        (overrun,) = arena.check_guards(gpu.default_stream)
    assert overrun == Overrun(
        "hidden_states", "", 163840, 254, 256, 256, "residual", b"\0\0"
    )
    assert str(overrun) == (
        "hidden_states: bytes 254 to 255 behind its 160.00 KiB (163840 bytes) changed "
        "to 00 00; the guard ends there, after 256 bytes, and more may follow, or "
        "something wrote in front of residual, which comes next"
    )


def test_one_byte_as_text() -> None:
    overrun = Overrun("token_ids", "", 256, 7, 8, 256, "", b"\x2a")
    text = "token_ids: byte 7 behind its 256 bytes changed to 2a"
    assert str(overrun) == text
    assert pickle.loads(pickle.dumps(overrun)) == overrun
    overrun = Overrun("token_ids", "", 256, 0, 1, 1, "", b"\x2a")
    assert str(overrun) == (
        "token_ids: byte 0 behind its 256 bytes changed to 2a; the guard ends there, "
        "after 1 byte, and more may follow"
    )


@pytest.mark.parametrize("guard", [1, 7, 8, 9, 4097])
def test_a_guard_of_any_length_is_checked_to_its_last_byte(
    guard: int, gpu: Backend
) -> None:
    with DENSE_CASE.build(gpu, debug=Debug(guard=guard)) as arena:
        assert arena.check_guards(gpu.default_stream) == ()
        write(gpu, behind(arena, "lora_hact", guard - 1), b"\0")
        (overrun,) = arena.check_guards(gpu.default_stream)
    assert (overrun.first, overrun.reach, overrun.guard) == (guard - 1, guard, guard)


def test_a_copy_of_poison_is_found_whatever_the_poison() -> None:
    for poison in range(256):
        gpu = HostBackend()
        debug = Debug(guard=8, poison=poison)
        with Case({}, limits(1)).build(gpu, debug=debug) as arena:
            write(gpu, behind(arena, "token_ids"), bytes([poison]) * 8)
            (overrun,) = arena.check_guards(0)
            assert overrun.reach == 8


def test_work_that_is_pending_on_the_stream_is_waited_for(gpu: Backend) -> None:
    stream = new_stream(gpu)
    with MOE_CASE.build(gpu, debug=Debug()) as arena:
        gpu.memset_async(arena.moe_output, 1, arena.moe_output_bytes + 4, stream)
        if isinstance(gpu, DriverBackend):
            assert gpu.simulated.pending() == 1
        (overrun,) = arena.check_guards(stream)
    assert (overrun.buffer, overrun.reach) == ("moe_output", 4)


# Between the regions of a buffer


@every_placement
@pytest.mark.parametrize("region", MOE_GAPS["moe_fp8_scratch"])
def test_a_write_behind_a_region_is_found_on_request(
    region: str, placement: str, gpu: Backend
) -> None:
    start, nbytes = MOE_GAPS["moe_fp8_scratch"][region]
    following = {
        "activation": "moe_fp8_scratch.scales",
        "scales": "moe_fp8_scratch.worklist",
        "worklist": "moe_fp8_scratch.total_tiles",
    }[region]
    stream = gpu.default_stream
    with MOE_CASE.build(gpu, placement=placement, debug=Debug()) as arena:
        layout = arena.moe_fp8_scratch(rows=20)
        assert getattr(layout, region).end == start
        assert arena.check_guards(stream, gaps=True) == ()
        for offset in (0, nbytes - 1):
            place = arena.moe_fp8_scratch.offset(start + offset)
            intact = read(gpu, place, 1)
            write(gpu, place, b"\x01")
            assert arena.check_guards(stream) == ()
            size = getattr(layout, region).nbytes
            where = ("moe_fp8_scratch", region, size, offset, offset + 1, nbytes)
            assert arena.check_guards(stream, gaps=True) == (
                Overrun(*where, following, b"\x01"),
            )
            write(gpu, place, bytes(intact))
        # Its own bytes, and no other, of every region.
        for part in layout:
            if isinstance(part, Region):
                gpu.memset(part.ptr, 0, part.nbytes)
        assert arena.check_guards(stream, gaps=True) == ()


def test_a_region_as_text() -> None:
    overrun = Overrun("slab", "scales", 160, 0, 2, 96, "slab.worklist", b"\0\0")
    assert str(overrun) == (
        "slab.scales: bytes 0 to 1 behind its 160 bytes changed to 00 00"
    )


def test_a_smaller_pass_writes_where_the_gaps_are(gpu: Backend) -> None:
    with MOE_CASE.build(gpu, debug=Debug()) as arena:
        # 12 rows end at byte 960, the scales begin at 1024 and the worklist at 1280.
        layout = arena.moe_fp8_scratch(rows=12)
        gpu.memset(layout.worklist.ptr, 0, layout.worklist.nbytes)
        gpu.memset(layout.total_tiles.ptr, 0, layout.total_tiles.nbytes)
        layout = arena.moe_fp8_scratch(rows=19)
        gpu.memset(layout.scales.ptr, 0, layout.scales.nbytes)
        assert arena.check_guards(gpu.default_stream) == ()
        assert arena.check_guards(gpu.default_stream, gaps=True) != ()


def test_zeros_in_a_buffer_that_zeroing_clears_are_no_finding(
    monkeypatch: pytest.MonkeyPatch, gpu: Backend
) -> None:
    name, stream = "moe_fp8_scratch", gpu.default_stream
    changes: list[tuple[dict[str, Any], int]] = [
        ({}, 3),
        ({"groups": ("zero_all",)}, 0),
        ({"region_groups": (("zero_all", "scales"),)}, 0),
    ]
    for change, findings in changes:
        info = BUFFERS[name]._replace(**change)
        monkeypatch.setattr("metrale_arena.arena.BUFFERS", {**BUFFERS, name: info})
        with MOE_CASE.build(gpu, debug=Debug()) as arena:
            gpu.memset(arena.moe_fp8_scratch, 0, arena.moe_fp8_scratch_bytes)
            assert len(arena.check_guards(stream, gaps=True)) == findings
            if change:
                write(gpu, arena.moe_fp8_scratch.offset(1700), b"\x02")
                (overrun,) = arena.check_guards(stream, gaps=True)
                assert (overrun.first, overrun.reach) == (100, 101)


class Inner(NamedTuple):
    rows: int
    one: Region
    two: Region | None


class Outer(NamedTuple):
    head: Region
    inner: Inner
    nbytes: int


class LaidOut(DevicePtr):
    """A pointer to a buffer that a layout with a layout inside fills."""

    def __call__(self) -> Outer:
        head = Region(self.offset(0), 0, 5, "u8", (5,))
        one = Region(self.offset(8), 0, 3, "u8", (3,))
        return Outer(head, Inner(1, one, one._replace(ptr=self.offset(16))), 19)


@pytest.mark.parametrize("change", [{}, {"fill": b"\0"}, {"carved": True}])
def test_regions_of_a_layout_inside_a_layout_are_named_by_both(
    change: dict[str, Any],
) -> None:
    gpu = HostBackend()
    memory = new_memory(
        "separate", gpu, Places({"x": 256}, "x", {}), (19,), 0, "test", 8
    )
    ptr = LaidOut(*memory.allocate(released_arena))
    info = BUFFERS["hidden_states"]._replace(groups=(), **change)
    guards = Guards(gpu, Debug(guard=8), memory, [("x", ptr, 19)], {"x": info})
    gpu.memset(ptr, 0, 19)
    found = [(each.region, each.guard) for each in guards.check(0, gaps=True)]
    # What is filled or carved is not the layout's alone.
    assert found == ([] if change else [("head", 3), ("inner.one", 5)])
    assert guards.check(0, gaps=False) == ()
    assert memory.free() == ()


def test_sizes_that_hold_no_whole_pass_have_no_gaps(gpu: Backend) -> None:
    sizes = MOE_CASE.sizes()._replace(moe_fp8_scratch=1000)
    with MOE_CASE.build_from(sizes, gpu, debug=Debug()) as arena:
        gpu.memset(arena.moe_fp8_scratch, 0, 1000)
        assert arena.check_guards(gpu.default_stream, gaps=True) == ()


# What stays as it was


@every_placement
@pytest.mark.parametrize("tokens", [None, 1, 17, 20])
def test_zeroing_clears_the_same_bytes_and_no_guard(
    tokens: int | None, placement: str, gpu: Backend
) -> None:
    group = oracle.METRALE_ZERO_ALL
    with MOE_CASE.build(gpu, placement=placement, debug=Debug()) as arena:
        soil(gpu, arena)
        if tokens is None:
            arena.zero_all(gpu.default_stream)
        else:
            arena.zero_all_rows(gpu.default_stream, tokens=tokens)
        assert cleared(gpu, arena) == MOE_CASE.due(group, tokens)
        assert arena.check_guards(gpu.default_stream) == ()
        assert all(len(entry.buffers) == 1 for entry in arena.zero_plan(tokens))
        soil(gpu, arena)
        arena.zero_prefill_essentials(gpu.default_stream)
        assert cleared(gpu, arena) == MOE_CASE.due(oracle.METRALE_ZERO_PREFILL)
        assert arena.check_guards(gpu.default_stream) == ()


@every_placement
def test_a_slab_that_is_carved_to_its_end_ends_at_its_guard(
    placement: str, gpu: Backend
) -> None:
    with MOE_CASE.build(gpu, placement=placement, debug=Debug()) as arena:
        nbytes = arena.ssm_rowwise_w_bf16_bytes
        piece = arena.carve_ssm_rowwise_w_bf16(nbytes)
        with pytest.raises(ArenaError, match="0 bytes left"):
            arena.carve_ssm_rowwise_w_bf16(1)
        gpu.memset(piece, DIRTY, nbytes)
        assert arena.check_guards(gpu.default_stream) == ()


def test_views_end_where_the_buffer_does(gpu: Backend) -> None:
    with MOE_CASE.build(gpu, debug=Debug()) as arena:
        assert arena.tensor("hidden_states").shape == (20, 64)
        assert arena.tensor("scratch").nbytes == arena.scratch_bytes


def test_without_debug_construction_asks_for_nothing_more(gpu: Backend) -> None:
    spy = Spy(gpu)
    with MOE_CASE.build(spy, debug=None) as arena:
        (weight,) = spy.made("memset")
        assert weight == (arena.norm_unit_w, 0, arena.norm_unit_w_bytes)
        assert [nbytes for (nbytes,) in spy.made("alloc")] == [*MOE_CASE.live.values()]
        # The free memory, the allocations, and the weight that is filled.
        assert len(spy.calls) == 1 + len(MOE_CASE.live) + 1


def test_without_debug_there_is_nothing_to_check(gpu: Backend) -> None:
    spy = Spy(gpu)
    with DENSE_CASE.build(spy) as arena:
        spy.calls.clear()
        with pytest.raises(ConfigError) as caught:
            arena.check_guards(gpu.default_stream)
        assert spy.calls == []
    assert str(caught.value) == (
        "buffer arena: no guards to check; construct it with debug=Debug()"
    )


@pytest.mark.parametrize("debug", [None, Debug()])
def test_a_released_arena_has_no_guards(debug: Debug | None, gpu: Backend) -> None:
    arena = DENSE_CASE.build(gpu, debug=debug)
    arena.release()
    with pytest.raises(ReleasedError, match="check_guards after release"):
        arena.check_guards(gpu.default_stream)


@every_placement
def test_a_wrapped_backend_sees_calls_of_the_protocol_only(
    placement: str, gpu: Backend
) -> None:
    spy = Spy(gpu)
    with MOE_CASE.build(spy, placement=placement, debug=Debug()) as arena:
        live = len(MOE_CASE.live)
        # norm_unit_w is filled with one memset instead of being poisoned by one; three
        # gaps lie in moe_fp8_scratch.
        counts = {"free_memory": 1, "memset": live, "copy_h2d": live + 3}
        counts["alloc"] = 1 if placement == "slab" else live
        made = {call.method for call in spy.calls}
        assert {method: len(spy.made(method)) for method in made} == counts
        spy.calls.clear()
        stream = new_stream(gpu)
        arena.check_guards(stream)
        assert spy.calls[0] == Call("synchronize", (stream,))
        assert {call.method for call in spy.calls[1:]} == {"copy_d2h"}
        assert len(spy.calls[1:]) == live


@every_placement
@pytest.mark.parametrize("method", ["alloc", "memset", "copy_h2d"])
def test_construction_that_fails_anywhere_frees_everything(
    method: str, placement: str, make_gpu: MakeBackend
) -> None:
    gpu = make_gpu(1 << 30)
    calls = 1 if (method, placement) == ("alloc", "slab") else len(MOE_CASE.live)
    calls += 3 * (method == "copy_h2d")
    for failing in range(calls):

        def fault(call: Call, earlier: int, at: int = failing) -> None:
            if call.method == method and earlier == at:
                raise BackendError("no more")

        with pytest.raises(ArenaError, match="no more"):
            MOE_CASE.build(Spy(gpu, fault), placement=placement, debug=Debug())
        assert gpu.live_bytes == 0


def test_every_guard_is_freed_with_its_buffer(gpu: Backend) -> None:
    spy = Spy(gpu)
    with MOE_CASE.build(spy, debug=Debug()) as arena:
        owned = [ptr for _, ptr, _ in buffers_of(arena) if ptr]
    assert [ptr for (ptr,) in spy.made("free")] == owned
    assert gpu.live_allocations == 0


def test_an_arena_of_empty_buffers_has_no_guards(gpu: Backend) -> None:
    spy = Spy(gpu)
    sizes = DENSE_CASE.sizes()._replace(**dict.fromkeys(NAMES, 0))
    with DENSE_CASE.build_from(sizes, spy, debug=Debug()) as arena:
        assert arena.hidden_states == NULL
        assert arena.check_guards(gpu.default_stream) == ()
    assert {call.method for call in spy.calls} == {"free_memory", "synchronize"}


# The record


def test_debug_is_an_immutable_record() -> None:
    debug = Debug()
    assert debug == Debug(guard=256, poison=0xA5)
    assert repr(debug) == "Debug(guard=256, poison=165)"
    assert hash(debug) == hash(Debug())
    with pytest.raises(AttributeError):
        debug.guard = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Debug(guard=0), "guard is 0; at least 1"),
        (lambda: Debug(guard=-8), "guard is -8; at least 1"),
        (lambda: Debug(guard=True), "guard is True (bool), not an int"),
        (
            lambda: Debug(guard=1.5),  # type: ignore[arg-type]
            "guard is 1.5 (float), not an int",
        ),
        (lambda: Debug(poison=256), "poison is 256; from 0 to 255"),
        (lambda: Debug(poison=-1), "poison is -1; from 0 to 255"),
    ],
)
def test_what_is_no_guard_and_no_poison_is_refused(
    make: Callable[[], Debug], text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("debug", "shown"), [(True, "True (bool)"), (False, "False (bool)"), (8, "8 (int)")]
)
def test_what_is_no_debug_is_refused_before_anything_is_allocated(
    debug: Any, shown: str, gpu: Backend
) -> None:
    spy = Spy(gpu)
    with pytest.raises(ConfigError) as caught:
        DENSE_CASE.build(spy, debug=debug)
    assert str(caught.value) == f"debug is {shown}, not a Debug, nor None"
    assert spy.calls == []


def test_no_byte_of_a_guard_is_poison() -> None:
    for poison in range(256):
        pattern = Debug(poison=poison).pattern
        assert len(pattern) == 8
        assert poison not in pattern
