"""The emitted arena on each backend: built, used, failed and released.

Every list that the arena keeps is held against the oracle: what it allocates, what it
clears, what it reads and what it frees. Memory must be back after whatever happens.
Runs on host memory, and through the real cuda-python bindings on the simulated driver,
where work is queued and memory holds what was there before. A test that takes neither
`gpu`, `make_gpu` nor `roomy` runs once: no backend is asked for anything in it.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import logging
import math
import random
import re
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import (
    ALL_LEVERS,
    DENSE,
    DENSE_CASE,
    DIRTY,
    GLM,
    MOE,
    MOE_CASE,
    NAMES,
    QWEN3_NEXT,
    Backend,
    Call,
    Case,
    DriverBackend,
    Fields,
    Limits,
    MakeBackend,
    Options,
    PaperBackend,
    Spy,
    assert_gone,
    buffers_of,
    cleared,
    covered,
    limits,
    new_stream,
    no_count,
    read,
    soil,
    taken,
)

import oracle
import strategies
from metrale_arena import (
    BUFFERS,
    NULL,
    AllocationError,
    ArenaError,
    BackendError,
    BufferArena,
    BufferSizes,
    CarveError,
    ChecksumReport,
    ChunkMetaLayout,
    ClearError,
    ConfigError,
    DecodeMetaLayout,
    DevicePtr,
    GpuBackend,
    HostBackend,
    LayoutError,
    Levers,
    ModelConfig,
    ModelResource,
    MoeFp8Layout,
    OutOfMemoryError,
    Region,
    ReleasedError,
    ReleaseError,
    Teardown,
    TeardownError,
    chunk_meta_bytes,
    decode_meta_bytes,
    moe_fp8_bytes,
    selfcheck,
)
from metrale_arena.runtime.pointer import BufferPtr

pytest_plugins = ["driver.plugin"]

ZERO_ALL = oracle.METRALE_ZERO_ALL
ZERO_PREFILL = oracle.METRALE_ZERO_PREFILL
PROBED = oracle.METRALE_CHECKSUM
SLAB = "ssm_rowwise_w_bf16"

quiet = settings(
    deadline=None,
    derandomize=True,
    database=None,
    # Examples may share a backend: each gives back all that it took.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

CASES = {
    "dense": DENSE_CASE,
    "everything": MOE_CASE,
    "qwen3_next": Case(QWEN3_NEXT, limits()),
    "glm": Case(GLM, limits()),
    "glm untrimmed": Case(GLM, limits(), {"glm_trim": False}),
    "empty": Case({}, limits()),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

every_placement = pytest.mark.parametrize("placement", ["separate", "slab"])

USES: dict[str, Callable[[BufferArena], object]] = {
    "zero_all": lambda arena: arena.zero_all(0),
    "zero_all_rows": lambda arena: arena.zero_all_rows(0, tokens=1),
    "zero_prefill_essentials": lambda arena: arena.zero_prefill_essentials(0),
    "carve_ssm_rowwise_w_bf16": lambda arena: arena.carve_ssm_rowwise_w_bf16(2),
    "debug_buffer_checksum": (
        lambda arena: arena.debug_buffer_checksum(0, "tag", force=True)
    ),
    "zero_plan": lambda arena: arena.zero_plan(),
}

# A true gate whose formula gives 0: experts without widths, an adapter without rows.
HOLLOW = Case(
    {"num_experts": 4, "adapter_max_rank": 8, "model_type": "llama"},
    limits(3),
    ALL_LEVERS,
)


@pytest.fixture
def roomy(gpu: Backend) -> PaperBackend | DriverBackend:
    """For arenas of many GB: a machine may not back them in full, paper does."""
    return PaperBackend() if isinstance(gpu, HostBackend) else gpu


# Construction


@every_case
def test_every_buffer_is_allocated_once_at_its_size(case: Case, gpu: Backend) -> None:
    spy = Spy(gpu)
    with case.build(spy) as arena:
        asked = [nbytes for (nbytes,) in spy.made("alloc")]
        assert asked == list(case.live.values())
        assert gpu.live_bytes == case.total == arena.sizes.total_bytes
        found = {name: nbytes for name, _, nbytes in buffers_of(arena)}
        assert found == case.expected == arena.sizes.as_dict()
        pointers = {name for name, ptr, _ in buffers_of(arena) if ptr}
        assert pointers == set(case.live)
        assert arena.trimmed == arena.sizes.trimmed


@every_case
def test_a_buffer_without_bytes_is_null_and_is_never_asked_for(
    case: Case, gpu: Backend
) -> None:
    spy = Spy(gpu)
    with case.build(spy) as arena:
        assert 0 not in [nbytes for (nbytes,) in spy.made("alloc")]
        for name, ptr, nbytes in buffers_of(arena):
            assert isinstance(ptr, DevicePtr)
            assert ptr.is_null == (ptr == NULL) == (nbytes == 0), name
            assert case.expected[name] == nbytes


def test_a_true_gate_whose_formula_gives_0_is_null_too(gpu: Backend) -> None:
    hollow = {name for name, nbytes in HOLLOW.expected.items() if not nbytes}
    assert hollow >= {"moe_router_in_f32", "expert_down_out", "lora_delta", SLAB}
    spy = Spy(gpu)
    with HOLLOW.build(spy) as arena:
        asked = [nbytes for (nbytes,) in spy.made("alloc")]
        assert asked == list(HOLLOW.live.values())
        assert all(getattr(arena, name) == NULL for name in hollow)
        spy.calls.clear()
        arena.zero_all(0)
        touched = {ptr for ptr, *_ in spy.made("memset_async")}
        assert touched == {getattr(arena, name) for name in HOLLOW.due(ZERO_ALL)}
    assert gpu.live_bytes == 0


@every_placement
def test_pointers_are_ints_that_lie_apart(placement: str, gpu: Backend) -> None:
    with MOE_CASE.build(gpu, placement=placement) as arena:
        places = sorted((int(ptr), nbytes) for _, ptr, nbytes in buffers_of(arena))
        live = [place for place in places if place[1]]
        assert len(live) == len(MOE_CASE.live)
        for (start, nbytes), (after, _) in pairwise(live):
            assert start + nbytes <= after
        assert all(start % 256 == 0 for start, _ in live)


def test_a_backend_that_gives_plain_ints_makes_device_pointers(gpu: Backend) -> None:
    class Plain(Spy):
        def alloc(self, nbytes: int) -> DevicePtr:
            return int(super().alloc(nbytes))  # type: ignore[return-value]

    with DENSE_CASE.build(Plain(gpu)) as arena:
        assert all(isinstance(ptr, DevicePtr) for _, ptr, _ in buffers_of(arena))
    assert gpu.live_bytes == 0


def test_only_the_norm_weight_is_filled(gpu: Backend) -> None:
    class Soiled(Spy):
        """Device memory starts with what was there before."""

        def alloc(self, nbytes: int) -> DevicePtr:
            ptr = super().alloc(nbytes)
            self.gpu.memset(ptr, DIRTY, nbytes)
            return ptr

    with MOE_CASE.build(Soiled(gpu)) as arena:
        found = cleared(gpu, arena)
        assert found == {"norm_unit_w": MOE_CASE.expected["norm_unit_w"]}


def test_construction_calls_only_what_it_needs(gpu: Backend) -> None:
    spy = Spy(gpu)
    with MOE_CASE.build(spy):
        made = {call.method for call in spy.calls}
        assert made == {"free_memory", "alloc", "memset"}
        assert len(spy.made("memset")) == 1


def test_a_plan_is_made_at_the_first_call_and_kept(
    gpu: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MOE_CASE.build(gpu) as arena:
        plan, made = type(arena._memory).plan, []

        def counted(self: Any, *members: Any, **more: Any) -> Any:
            made.append([name for name, *_ in members])
            return plan(self, *members, **more)

        monkeypatch.setattr(type(arena._memory), "plan", counted)
        for _ in range(2):
            arena.zero_all(gpu.default_stream)
            arena.zero_all_rows(gpu.default_stream, tokens=3)
            arena.zero_all_rows(gpu.default_stream, tokens=20)
            arena.zero_prefill_essentials(gpu.default_stream)
        assert made == [
            [*oracle.METRALE_ZERO_ALL],
            [*oracle.METRALE_ZERO_ALL],
            [*oracle.METRALE_ZERO_PREFILL],
        ]


class Handle:
    """An allocation in a form of its backend's own."""

    def __init__(self, ptr: DevicePtr) -> None:
        self.ptr = ptr

    def __int__(self) -> int:
        return int(self.ptr)


class Many(Spy):
    """A backend of many, one of whose calls may fail as a whole."""

    fail = ""

    def alloc_many(self, sizes: Sequence[int], handles: list[Any]) -> None:
        handles += [self.gpu.alloc(nbytes) for nbytes in sizes]
        if self.fail == "alloc_many":
            raise BackendError("lost")
        if self.fail == "too few":
            self.gpu.free(handles.pop())
        elif self.fail == "too many":
            handles.append(self.gpu.alloc(256))
        elif self.fail == "NULL":
            self.gpu.free(handles[2])
            handles[2] = NULL
        elif self.fail == "NULL and lost":
            self.gpu.free(handles[2])
            handles[2] = NULL
            raise BackendError("lost")
        elif self.fail == "plain":
            handles[:] = [int(ptr) for ptr in handles]
        elif self.fail == "own form":
            handles[:] = map(Handle, handles)

    def free_many(self, handles: Sequence[Any]) -> list[tuple[int, Exception]]:
        if self.fail == "own form":
            assert {*map(type, handles)} == {Handle}
        for handle in handles:
            self.gpu.free(DevicePtr(handle))
        if self.fail == "free_many":
            raise BackendError("lost")
        return []


@every_placement
def test_a_backend_of_many_is_asked_once(placement: str, gpu: Backend) -> None:
    many = Many(gpu)
    with MOE_CASE.build(many, placement=placement) as arena:
        arena.zero_all(gpu.default_stream)
    assert {call.method for call in many.calls}.isdisjoint({"alloc", "free"})
    assert gpu.live_bytes == 0


def test_a_backend_of_many_that_fails_as_a_whole_is_reported(gpu: Backend) -> None:
    many = Many(gpu)
    many.fail = "alloc_many"
    with pytest.raises(AllocationError) as caught:
        MOE_CASE.build(many)
    # All of them were there by then, so that the last is the one that is named.
    assert caught.value.buffer == [*MOE_CASE.live][-1]
    assert gpu.live_bytes == 0
    many.fail = ""
    arena = MOE_CASE.build(many)
    many.fail = "free_many"
    with pytest.raises(ReleaseError) as failed:
        arena.release()
    assert [name for name, _ in failed.value.failures] == list(MOE_CASE.live)


@pytest.mark.parametrize(
    ("fail", "place", "why"),
    [
        ("too few", -1, "alloc_many: {less} addresses for {count} sizes"),
        ("too many", -1, "alloc_many: {more} addresses for {count} sizes"),
        ("NULL", 2, "alloc_many: NULL for {nbytes} bytes"),
        ("NULL and lost", -1, "lost"),
    ],
)
def test_a_backend_of_many_that_gives_wrong_addresses_is_reported(
    gpu: Backend, fail: str, place: int, why: str
) -> None:
    many = Many(gpu)
    many.fail = fail
    with pytest.raises(AllocationError) as caught:
        MOE_CASE.build(many)
    live = [*MOE_CASE.live]
    name, count = live[place], len(live)
    assert caught.value.buffer == name
    nbytes = MOE_CASE.sizes().as_dict()[name]
    told = why.format(less=count - 1, more=count + 1, count=count, nbytes=nbytes)
    assert told in str(caught.value)
    assert not hasattr(caught.value, "__notes__")
    assert gpu.live_bytes == 0


@every_placement
@pytest.mark.parametrize("wrong", [None, "word", -4096])
@pytest.mark.parametrize("lost", [False, True])
def test_a_backend_of_many_that_gives_no_address_is_reported(
    placement: str, gpu: Backend, wrong: Any, lost: bool
) -> None:
    class Wrong(Many):
        free_many = None  # type: ignore[assignment]

        def alloc_many(self, sizes: Sequence[int], handles: list[Any]) -> None:
            super().alloc_many(sizes, handles)
            self.gpu.free(handles[0])
            handles[0] = wrong
            if lost:
                raise BackendError("lost")

    with pytest.raises(AllocationError) as caught:
        MOE_CASE.build(Wrong(gpu), placement=placement)
    what = "NULL" if wrong is None else repr(wrong)
    told = "lost" if lost else f"alloc_many: {what} for {caught.value.nbytes} bytes"
    assert told in str(caught.value)
    assert gpu.live_bytes == 0


def test_half_of_an_optional_protocol_is_none_of_it(gpu: Backend) -> None:
    class Prepares(Spy):
        def prepare_ranges(self, ranges: Any, value: int) -> None:
            pass

    class Sets(Spy):
        def memset_ranges(self, prepared: Any, stream: Any) -> None:
            raise AssertionError

    for half in (Prepares(gpu), Sets(gpu)):
        with MOE_CASE.build(half) as arena:
            arena.zero_all(gpu.default_stream)
            plan = arena.zero_plan()
        assert len(half.made("memset_async")) == len(plan)


@every_placement
@pytest.mark.parametrize("form", ["plain", "own form"])
def test_a_backend_of_many_may_give_addresses_in_other_forms(
    placement: str, form: str, gpu: Backend
) -> None:
    many = Many(gpu)
    many.fail = form
    with MOE_CASE.build(many, placement=placement) as arena:
        assert isinstance(arena.residual.offset(256), DevicePtr)
        arena.zero_all(gpu.default_stream)
    assert gpu.live_bytes == 0


def test_a_backend_may_have_many_allocations_and_single_frees(gpu: Backend) -> None:
    class Single(Many):
        fail = "own form"
        free_many = None  # type: ignore[assignment]

    with MOE_CASE.build(Single(gpu)):
        pass
    assert gpu.live_bytes == 0


# On the host alone: the backend is the default one.
def test_an_arena_without_a_backend_takes_host_memory() -> None:
    with DENSE_CASE.build() as arena:
        arena.zero_all(0)
        assert arena.hidden_states


def test_what_it_was_built_with_is_readable(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        assert arena.config == MOE_CASE.model
        assert arena.sizes == MOE_CASE.sizes()
        assert arena.levers == MOE_CASE.arguments["levers"]
        assert arena.target == MOE_CASE.arguments["target"]
        assert arena.max_batch_tokens == 20
        assert arena.max_seq_len == 4096
        assert arena.kv_block_size == 16
        assert arena.max_batch_size == 32
        assert arena.label == BufferArena.label == "buffer arena"
        assert arena.released is False


def test_levers_are_read_once_at_construction(
    monkeypatch: pytest.MonkeyPatch, gpu: Backend
) -> None:
    monkeypatch.setenv("METRALE_GLM_ARENA_TRIM", "0")
    case = Case({**MOE, "model_type": "glm5_next"}, limits(20), {"glm_trim": False})
    spy = Spy(gpu)
    with BufferArena(case.model, **case.limits, gpu=spy) as arena:
        assert arena.sizes.as_dict() == case.expected
        assert arena.levers == Levers(glm_arena_trim=False)
        monkeypatch.setenv("METRALE_GLM_ARENA_TRIM", "1")
        monkeypatch.setenv("METRALE_SSM_SAVE_DUMP", "1")
        soil(gpu, arena)
        arena.zero_all_rows(0, tokens=1)
        assert cleared(gpu, arena) == case.due(ZERO_ALL, 1)
        assert arena.debug_buffer_checksum(0, "tag") is None


@pytest.mark.parametrize("name", limits())
@pytest.mark.parametrize("from_sizes", [False, True])
def test_a_limit_out_of_range_is_refused_before_any_call(
    name: str, from_sizes: bool, gpu: Backend
) -> None:
    spy = Spy(gpu)
    bounds = {**limits(), name: -1}
    with pytest.raises(ConfigError, match=rf"^{name} is -1; at least"):
        if from_sizes:
            sizes = DENSE_CASE.sizes()
            BufferArena.from_sizes(DENSE_CASE.model, sizes, **bounds, gpu=spy)
        else:
            BufferArena(DENSE_CASE.model, **bounds, gpu=spy)
    assert spy.calls == []


def test_every_accessor_carries_its_own_documentation() -> None:
    for name, info in BUFFERS.items():
        text = inspect.getdoc(getattr(BufferArena, name))
        assert text is not None and text.startswith(info.doc), name
        nbytes = inspect.getdoc(getattr(BufferArena, f"{name}_bytes"))
        assert nbytes == f"Allocated bytes of {name}."


@pytest.mark.parametrize(
    ("method", "group"),
    [
        ("zero_all", ZERO_ALL),
        ("zero_all_rows", ZERO_ALL),
        ("zero_prefill_essentials", ZERO_PREFILL),
        ("debug_buffer_checksum", PROBED),
    ],
)
def test_a_documented_count_is_the_number_of_members(
    method: str, group: tuple[str, ...]
) -> None:
    text = " ".join((inspect.getdoc(getattr(BufferArena, method)) or "").split())
    counts = re.findall(r"(\d+) (?:memsets|buffers)", text)
    assert counts == [str(len(group))]
    if "Members: " in text:
        assert text.partition("Members: ")[2] == ", ".join(group) + "."


def test_the_emitted_selfcheck_passes(gpu: Backend) -> None:
    for case in (DENSE_CASE, MOE_CASE, HOLLOW):
        report = selfcheck(case.model, **case.arguments, gpu=gpu)
        assert report.ok, str(report)
        assert gpu.live_bytes == 0


def test_the_selfcheck_says_what_it_left_out() -> None:
    whole = selfcheck(MOE_CASE.model, **MOE_CASE.arguments, gpu=HostBackend())
    assert whole.left_out == ()
    assert str(whole) == f"selfcheck: {whole.passed} passed, 0 failed"
    # Spy has the methods of GpuBackend and no more.
    report = selfcheck(MOE_CASE.model, **MOE_CASE.arguments, gpu=Spy())
    assert report.ok and report.passed < whole.passed
    why = "views of buffers, since Spy has no dlpack_device"
    assert report.left_out == (why,)
    assert str(report) == (
        f"selfcheck: {report.passed} passed, 0 failed\n  left out: {why}"
    )
    failed = report._replace(failures=("a probe: failed",))
    assert str(failed).splitlines()[1:] == ["  a probe: failed", f"  left out: {why}"]


def test_the_selfcheck_knows_the_packages_own_pointers(gpu: Backend) -> None:
    # One that a user derives is no list of the arena's.
    kinds = [
        type("Mine", (BufferPtr,), {"__module__": __name__, **names})
        for names in ({}, {"_buffer": NAMES[0]})
    ]
    report = selfcheck(MOE_CASE.model, **MOE_CASE.arguments, gpu=gpu)
    assert report.ok, (str(report), kinds)


def test_the_log_line(caplog: pytest.LogCaptureFixture, gpu: Backend) -> None:
    case = Case(
        {"num_attention_heads": 128, "head_dim": 128, "kv_lora_rank": 512}, limits(160)
    )
    expected = case.expected
    assert expected["attn_output"] == 160 * 128 * 512 * 2  # exactly 20 MiB
    assert expected["ssm_deinterleaved"] == 20 * 1048576
    with caplog.at_level(logging.INFO, "metrale_arena"), case.build(gpu):
        pass
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.name.startswith("metrale_arena")
    assert record.getMessage() == (
        f"buffer arena: 160 tokens, {case.total / 1048576:.1f} MiB in all, "
        "attn_output 20.0 MiB, ssm_deinterleaved 20.0 MiB, kv_lora_rank=512"
    )


def test_repr_says_what_it_holds_and_whether_it_still_does(gpu: Backend) -> None:
    case = Case({}, limits(1))
    # scratch, ffn_act_q8, splitk_workspace and fifteen floors or placeholders
    assert case.total == 201088 + 1048576 + 48 * 2 * 4 + 15 * 256 == 1253888
    arena = case.build(gpu)
    assert repr(arena) == "<BufferArena: 1 tokens, 1.20 MiB (1253888 bytes)>"
    arena.release()
    assert repr(arena) == "<BufferArena: 1 tokens, released>"


# Sizes that are already there


def test_from_sizes_allocates_the_given_sizes(gpu: Backend) -> None:
    nbytes = {name: 100 + place for place, name in enumerate(NAMES)}
    nbytes["residual"] = nbytes["logits"] = 0
    sizes = BufferSizes(**nbytes, trimmed=7)
    spy = Spy(gpu)
    with MOE_CASE.build_from(sizes, spy) as arena:
        assert {name: size for name, _, size in buffers_of(arena)} == nbytes
        asked = [size for (size,) in spy.made("alloc")]
        assert asked == [size for size in nbytes.values() if size]
        assert (arena.residual, arena.logits) == (NULL, NULL)
        assert arena.sizes is sizes
        assert arena.trimmed == 7
        soil(gpu, arena)
        arena.zero_all(0)
        assert cleared(gpu, arena) == {
            name: nbytes[name] for name in ZERO_ALL if nbytes[name]
        }
    assert gpu.live_bytes == 0


@every_placement
@pytest.mark.parametrize(
    ("size", "said"),
    [
        (-4, "-4; at least 0"),
        (True, "True (bool), not an int"),
        (1.5, "1.5 (float), not an int"),
        ("64", "'64' (str), not an int"),
        (None, "None (NoneType), not an int"),
    ],
)
@pytest.mark.parametrize("field", ["scratch", "trimmed"])
def test_from_sizes_refuses_what_is_no_count_of_bytes(
    field: str, size: Any, said: str, placement: str, gpu: Backend
) -> None:
    spy = Spy(gpu)
    sizes = DENSE_CASE.sizes()._replace(**{field: size})
    with pytest.raises(ConfigError) as caught:
        DENSE_CASE.build_from(sizes, spy, placement=placement)
    assert str(caught.value) == f"sizes.{field} is {said}"
    assert spy.calls == []


@every_placement
@pytest.mark.parametrize("given_bytes", [64, 300, 20000])
def test_a_pass_never_clears_beyond_the_sizes_that_were_given(
    given_bytes: int, placement: str, gpu: Backend
) -> None:
    sizes = BufferSizes(**dict.fromkeys(NAMES, given_bytes), trimmed=0)
    rows = MOE_CASE.expected_for(2)
    with MOE_CASE.build_from(sizes, gpu, placement=placement) as arena:
        soil(gpu, arena)
        arena.zero_all_rows(0, tokens=2)
        major = oracle.METRALE_TOKEN_MAJOR
        assert cleared(gpu, arena) == {
            name: min(rows[name], given_bytes) if name in major else given_bytes
            for name in ZERO_ALL
        }


@every_placement
def test_an_arena_of_empty_sizes_makes_no_allocation(
    placement: str, gpu: Backend
) -> None:
    spy = Spy(gpu)
    sizes = BufferSizes(**dict.fromkeys(NAMES, 0), trimmed=0)
    with MOE_CASE.build_from(sizes, spy, placement=placement) as arena:
        assert spy.made("alloc") == []
        spy.calls.clear()
        arena.zero_all(0)
        arena.zero_prefill_essentials(0)
        arena.zero_all_rows(0, tokens=1)
        assert_gone(arena)
    assert spy.calls == []
    many = Many(gpu)
    many.fail = "alloc_many"
    with MOE_CASE.build_from(sizes, many, placement=placement) as arena:
        assert_gone(arena)


# Zeroing


@every_placement
@every_case
def test_what_is_cleared_is_what_the_oracle_says_byte_for_byte(
    case: Case, placement: str, gpu: Backend
) -> None:
    most = case.limits["max_batch_tokens"]
    stream = new_stream(gpu)
    with case.build(gpu, placement=placement) as arena:
        soil(gpu, arena)
        assert cleared(gpu, arena) == {}
        arena.zero_all(stream)
        gpu.synchronize(stream)
        assert cleared(gpu, arena) == case.due(ZERO_ALL)
        soil(gpu, arena)
        arena.zero_prefill_essentials(stream)
        gpu.synchronize(stream)
        assert cleared(gpu, arena) == case.due(ZERO_PREFILL)
        # Forth and back, as the ranges of a pass are kept.
        for tokens in (1, 3, most - 1, 1, most, most + 1, 2):
            soil(gpu, arena)
            arena.zero_all_rows(stream, tokens=tokens)
            gpu.synchronize(stream)
            assert cleared(gpu, arena) == case.due(ZERO_ALL, tokens), tokens


@settings(quiet, max_examples=400)
@given(
    config=strategies.configs(),
    bounds=strategies.limits(),
    options=strategies.levers(),
    tokens=st.one_of(st.integers(1, 20), st.integers(1, 21000)),
)
def test_memsets_are_the_oracles_for_any_config(
    config: Fields,
    bounds: Limits,
    options: Options,
    tokens: int,
    roomy: PaperBackend | DriverBackend,
) -> None:
    case = Case(config, bounds, options)
    spy = Spy(roomy)
    stream = new_stream(roomy)
    with case.build(spy) as arena:

        def memsets(call: Callable[[], None]) -> list[tuple[Any, ...]]:
            spy.calls.clear()
            call()
            assert len(spy.made("memset_async")) == len(spy.calls)
            return sorted(spy.made("memset_async"), key=lambda each: int(each[0]))

        def wanted(due: dict[str, int]) -> list[tuple[Any, ...]]:
            calls = [(getattr(arena, name), 0, due[name], stream) for name in due]
            return sorted(calls, key=lambda each: int(each[0]))

        everything = memsets(lambda: arena.zero_all(stream))
        assert everything == wanted(case.due(ZERO_ALL))
        prefill = memsets(lambda: arena.zero_prefill_essentials(stream))
        assert prefill == wanted(case.due(ZERO_PREFILL))
        rows = memsets(lambda: arena.zero_all_rows(stream, tokens=tokens))
        assert rows == wanted(case.due(ZERO_ALL, tokens))
    assert roomy.live_bytes == 0


@settings(quiet, max_examples=400)
@given(
    config=strategies.configs(),
    bounds=strategies.limits(),
    options=strategies.levers(),
    tokens=st.one_of(st.integers(1, 20), st.integers(1, 21000)),
)
def test_a_slab_is_cleared_as_far_as_the_oracle_says_for_any_config(
    config: Fields,
    bounds: Limits,
    options: Options,
    tokens: int,
    roomy: PaperBackend | DriverBackend,
) -> None:
    case = Case(config, bounds, options)
    spy = Spy(roomy)
    with case.build(spy, placement="slab") as arena:
        for call, due in (
            (arena.zero_all, case.due(ZERO_ALL)),
            (arena.zero_prefill_essentials, case.due(ZERO_PREFILL)),
            (
                lambda stream: arena.zero_all_rows(stream, tokens=tokens),
                case.due(ZERO_ALL, tokens),
            ),
        ):
            spy.calls.clear()
            call(0)
            runs = [
                (int(ptr), nbytes) for ptr, _, nbytes, _ in spy.made("memset_async")
            ]
            found = {
                name: covered(runs, ptr, nbytes)
                for name, ptr, nbytes in buffers_of(arena)
            }
            assert {name: nbytes for name, nbytes in found.items() if nbytes} == due
            assert len(runs) <= len(due)
    assert roomy.live_bytes == 0


@pytest.mark.parametrize(
    ("method", "count"), [("zero_all", 18), ("zero_prefill_essentials", 7)]
)
def test_zeroing_enqueues_one_memset_a_member_on_the_callers_stream(
    method: str, count: int, gpu: Backend
) -> None:
    spy = Spy(gpu)
    stream = new_stream(gpu)
    with MOE_CASE.build(spy) as arena:
        spy.calls.clear()
        getattr(arena, method)(stream)
        calls = spy.made("memset_async")
        assert len(calls) == len(spy.calls) == count
        assert {given for *_, given in calls} == {stream}
        assert {value for _, value, *_ in calls} == {0}


def test_trimmed_buffers_are_skipped_by_every_zeroing(
    roomy: PaperBackend | DriverBackend,
) -> None:
    spy = Spy(roomy)
    with Case(GLM, limits(8192)).build(spy) as arena:
        for call, count in (
            (arena.zero_all, 7),  # 18 less the 11 trimmed ones
            (arena.zero_prefill_essentials, 3),  # 7 less 4
            (lambda stream: arena.zero_all_rows(stream, tokens=1), 7),
        ):
            spy.calls.clear()
            call(0)
            assert len(spy.calls) == count
            assert all(ptr for ptr, *_ in spy.made("memset_async"))


def test_one_token_of_8193_clears_16_rows_or_1_and_never_the_whole(
    gpu: Backend,
) -> None:
    case = Case({**MOE, "kv_lora_rank": 0, "mamba_num_heads": 0}, limits(8193))
    spy = Spy(gpu)
    with case.build(spy) as arena:
        spy.calls.clear()
        arena.zero_all_rows(0, tokens=1)
        found: dict[int, int] = {
            ptr: nbytes for ptr, _, nbytes, _ in spy.made("memset_async")
        }

        def of(name: str) -> int:
            return found[getattr(arena, name)]

        # Padded to 16 rows.
        assert of("qkv_output") == 16 * (2 * 2 + 2 * 1) * 16 * 2
        assert of("moe_output") == 16 * 64 * 2
        assert of("ssm_qkvz") == 16 * (2 * 128 + 2 * 128) * 2
        assert of("ssm_deinterleaved") == 16 * 512 * 2
        assert of("expert_gate_out") == of("expert_up_out") == 16 * 2 * 24 * 2
        assert of("expert_down_out") == 16 * 2 * 64 * 2
        # Not padded: one row.
        assert of("hidden_states") == of("residual") == of("norm_output") == 64 * 2
        assert of("attn_output") == 2 * 16 * 2
        assert of("gate_logits") == (4 + 1) * 2
        assert of("ssm_conv_out_f32") == 512 * 4
        # One row is less than the floor.
        assert of("ssm_ba") == of("ssm_gates") == 256
        # Not by tokens, so in full.
        assert of("logits") == 160 * 40 * 2
        assert of("scratch") == arena.scratch_bytes
        assert of("splitk_workspace") == 48 * 18 * 4
        assert len(found) == len(spy.calls) == 18

        in_full = {
            name for name in ZERO_ALL if of(name) == getattr(arena, f"{name}_bytes")
        }
        assert in_full == {"logits", "scratch", "splitk_workspace"}
        assert sum(found.values()) - sum(map(of, in_full)) < 8193 * 64 * 2 / 10


def test_a_pass_is_cleared_in_full_from_the_token_limit_on(gpu: Backend) -> None:
    spy = Spy(gpu)
    with DENSE_CASE.build(spy) as arena:
        spy.calls.clear()
        arena.zero_all(0)
        whole = list(spy.calls)
        for tokens in (5, 6, 1 << 70):
            spy.calls.clear()
            arena.zero_all_rows(0, tokens=tokens)
            assert spy.calls == whole


def test_passes_of_thousands_of_lengths_are_each_cleared_as_far_as_they_go(
    roomy: PaperBackend | DriverBackend,
) -> None:
    spy = Spy(roomy)
    with Case(DENSE, limits(3000)).build(spy) as arena:
        for tokens in (*range(1, 2999), 1, 2998):
            spy.calls.clear()
            arena.zero_all_rows(0, tokens=tokens)
            assert spy.calls[0].arguments == (
                *(arena.hidden_states, 0, tokens * 33 * 2, 0),
            )


NOT_TOKENS = [0, -1, True, 1.0, "1", None]


@pytest.mark.parametrize("tokens", NOT_TOKENS)
def test_a_pass_of_no_tokens_is_refused(tokens: Any, gpu: Backend) -> None:
    spy = Spy(gpu)
    with DENSE_CASE.build(spy) as arena:
        spy.calls.clear()
        with pytest.raises(ConfigError) as caught:
            arena.zero_all_rows(0, tokens=tokens)
        assert spy.calls == []
    assert str(caught.value) == no_count("tokens", tokens, 1)


@pytest.mark.parametrize("tokens", NOT_TOKENS)
def test_a_pass_of_no_tokens_is_refused_after_a_good_one_too(
    tokens: Any, gpu: Backend
) -> None:
    with DENSE_CASE.build(gpu) as arena:
        arena.zero_all_rows(0, tokens=1)
        with pytest.raises(ConfigError) as caught:
            arena.zero_all_rows(0, tokens=tokens)
    assert str(caught.value) == no_count("tokens", tokens, 1)


@pytest.mark.parametrize(
    ("operation", "group"),
    [
        ("zero_all", ZERO_ALL),
        ("zero_all_rows", ZERO_ALL),
        ("zero_prefill_essentials", ZERO_PREFILL),
    ],
)
def test_a_failing_memset_names_its_buffer(
    operation: str, group: tuple[str, ...], gpu: Backend
) -> None:
    sticky = BackendError("sticky")
    for place, name in enumerate(group):

        def fault(call: Call, earlier: int, place: int = place) -> None:
            if call.method == "memset_async" and earlier == place:
                raise sticky

        with (
            MOE_CASE.build(Spy(gpu, fault)) as arena,
            pytest.raises(ClearError) as caught,
        ):
            USES[operation](arena)
        assert caught.value.__cause__ is sticky
        assert caught.value.buffers == (name,)
        assert str(caught.value) == f"{name}: cannot be cleared: sticky"


# Construction that fails


def failing_alloc(place: int, error: BaseException) -> Callable[[Call, int], None]:
    def fault(call: Call, earlier: int) -> None:
        if call.method == "alloc" and earlier == place:
            raise error

    return fault


@pytest.mark.parametrize("case", [DENSE_CASE, MOE_CASE], ids=["dense", "everything"])
@pytest.mark.parametrize(
    "error",
    [OutOfMemoryError(1, 2, 3), BackendError("sticky"), ValueError("odd")],
    ids=lambda error: type(error).__name__,
)
def test_an_allocation_that_fails_anywhere_frees_all_before_it(
    case: Case, error: Exception, make_gpu: MakeBackend
) -> None:
    total = 1 << 30
    held = 0
    largest = sorted(case.live.items(), key=lambda entry: -entry[1])[:5]
    for place, (name, nbytes) in enumerate(case.live.items()):
        gpu = make_gpu(total)
        spy = Spy(gpu, failing_alloc(place, error))
        with pytest.raises(AllocationError) as caught:
            case.build(spy)
        assert gpu.live_bytes == gpu.live_allocations == 0, name
        failure = caught.value
        assert failure.__cause__ is error
        assert (failure.buffer, failure.nbytes) == (name, nbytes)
        assert (failure.free, failure.total) == (total - held, total)
        assert len(spy.made("free")) == place
        assert list(failure.largest) == largest
        text = str(failure)
        assert text.startswith(f"{name}: cannot allocate ")
        assert f"{nbytes} bytes" in text and f"{total - held} bytes" in text
        held += taken(gpu, nbytes)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interrupt_during_construction_frees_all_before_it(
    kind: type[BaseException], make_gpu: MakeBackend
) -> None:
    for place in range(len(DENSE_CASE.live)):
        gpu = make_gpu(1 << 30)
        error = kind("now")
        expected = AllocationError if isinstance(error, Exception) else kind
        with pytest.raises(expected):
            DENSE_CASE.build(Spy(gpu, failing_alloc(place, error)))
        assert gpu.live_bytes == 0


def test_the_text_of_a_failed_allocation(make_gpu: MakeBackend) -> None:
    sizes = BufferSizes(**dict.fromkeys(NAMES, 0), trimmed=0)._replace(
        residual=3000, logits=1048576, lora_xa=5
    )
    error = OutOfMemoryError(1048576, 0, 0)
    gpu = make_gpu(2 << 20)
    with pytest.raises(AllocationError) as caught:
        DENSE_CASE.build_from(sizes, Spy(gpu, failing_alloc(1, error)))
    free = (2 << 20) - taken(gpu, 3000)
    assert str(caught.value) == (
        "logits: cannot allocate 1.00 MiB (1048576 bytes); "
        f"free: 2.00 MiB ({free} bytes) of 2.00 MiB (2097152 bytes)\n"
        f"the backend said: {error}\n"
        "the largest buffers:\n"
        "  logits    1.00 MiB (1048576 bytes)\n"
        "  residual  2.93 KiB (3000 bytes)\n"
        "  lora_xa   5 bytes"
    )


@pytest.mark.parametrize("null", [NULL, 0, None], ids=["NULL", "0", "None"])
def test_a_backend_that_returns_null_has_failed(null: Any, gpu: Backend) -> None:
    class Null(Spy):
        def alloc(self, nbytes: int) -> DevicePtr:
            if len(self.made("alloc")) == 4:
                return null  # type: ignore[no-any-return]
            return super().alloc(nbytes)

    with pytest.raises(AllocationError) as caught:
        DENSE_CASE.build(Null(gpu))
    assert gpu.live_bytes == 0
    assert caught.value.buffer == list(DENSE_CASE.live)[4] == "attn_output"
    assert str(caught.value.__cause__) == "alloc: NULL for 240 bytes"  # 5 * 3 * 8 * 2


def test_frees_that_fail_while_construction_is_undone_become_notes(
    gpu: Backend,
) -> None:
    stuck = BackendError("stuck")

    def fault(call: Call, earlier: int) -> None:
        failing_alloc(3, BackendError("sticky"))(call, earlier)
        if call.method == "free" and earlier in (0, 2):
            raise stuck

    with pytest.raises(AllocationError) as caught:
        DENSE_CASE.build(Spy(gpu, fault))
    assert caught.value.buffer == "qkv_output"
    notes = caught.value.__notes__
    assert notes == [
        "hidden_states could not be freed: stuck",
        "norm_output could not be freed: stuck",
    ]
    # residual was freed all the same: 5 * 33 * 2 bytes each are left
    assert gpu.live_bytes == 2 * 330


@pytest.mark.parametrize(
    "error",
    [BackendError("no memset"), KeyboardInterrupt()],
    ids=lambda error: type(error).__name__,
)
def test_an_initial_fill_that_fails_frees_everything(
    error: BaseException, gpu: Backend
) -> None:
    def fault(call: Call, earlier: int) -> None:
        if call.method == "memset":
            raise error

    spy = Spy(gpu, fault)
    with pytest.raises(type(error)) as caught:
        MOE_CASE.build(spy)
    assert caught.value is error
    assert gpu.live_bytes == 0
    assert len(spy.made("free")) == len(spy.made("alloc")) == len(MOE_CASE.live)


def test_too_little_memory_is_seen_before_anything_is_allocated(
    make_gpu: MakeBackend,
) -> None:
    total = MOE_CASE.total
    spy = Spy(make_gpu(total - 1))
    with pytest.raises(AllocationError) as caught:
        MOE_CASE.build(spy)
    assert spy.made("alloc", "free", "memset") == []
    failure = caught.value
    assert (failure.buffer, failure.nbytes) == (None, total)
    assert (failure.free, failure.total) == (total - 1, total - 1)
    first, heading, *rows = str(failure).splitlines()
    assert first.startswith("all buffers together: cannot allocate ")
    assert f"({total} bytes); free: " in first
    assert heading == "the largest buffers:"
    largest = sorted(MOE_CASE.live.items(), key=lambda entry: -entry[1])[:5]
    shown = [re.match(r"  (\w+) +.*?(\d+) bytes\)?$", row) for row in rows]
    assert [(each[1], int(each[2])) for each in shown if each] == largest


def with_room_for_moe(make_gpu: MakeBackend, *more: int) -> Backend:
    """A backend whose memory MOE_CASE and allocations of `more` bytes use up."""
    gpu = make_gpu(1)
    asked = (*MOE_CASE.live.values(), *more)
    return make_gpu(sum(taken(gpu, nbytes) for nbytes in asked))


def test_what_others_hold_counts_against_the_free_memory(make_gpu: MakeBackend) -> None:
    gpu = with_room_for_moe(make_gpu, 10)
    ptr = gpu.alloc(gpu.total_memory() - MOE_CASE.total + 1)
    with pytest.raises(AllocationError, match="all buffers together"):
        MOE_CASE.build(gpu)
    gpu.free(ptr)
    gpu.alloc(10)
    MOE_CASE.build(gpu).release()
    assert gpu.live_bytes == 10


def test_exactly_enough_memory_is_enough(make_gpu: MakeBackend) -> None:
    gpu = with_room_for_moe(make_gpu)
    with MOE_CASE.build(gpu):
        assert gpu.free_memory() == 0


def test_memory_that_others_take_meanwhile_is_missed_where_it_is_needed(
    gpu: Backend,
) -> None:
    others: list[DevicePtr] = []

    def fault(call: Call, earlier: int) -> None:
        if call.method == "alloc" and earlier == 3:
            others.append(gpu.alloc(gpu.free_memory()))

    with pytest.raises(AllocationError) as caught:
        DENSE_CASE.build(Spy(gpu, fault))
    assert (caught.value.buffer, caught.value.free) == ("qkv_output", 0)
    cause = caught.value.__cause__
    assert isinstance(cause, OutOfMemoryError)
    assert (cause.asked, cause.free, cause.total) == (
        DENSE_CASE.live["qkv_output"],
        0,
        gpu.total_memory(),
    )
    assert gpu.live_allocations == len(others) == 1


def test_a_backend_that_cannot_tell_its_memory_is_asked_for_none(gpu: Backend) -> None:
    def fault(call: Call, earlier: int) -> None:
        if call.method == "free_memory":
            raise BackendError("the driver is gone")

    spy = Spy(gpu, fault)
    with pytest.raises(BackendError, match="the driver is gone"):
        DENSE_CASE.build(spy)
    assert not spy.made("alloc")


def test_an_error_without_figures_says_that_they_are_unknown(gpu: Backend) -> None:
    def fault(call: Call, earlier: int) -> None:
        if call.method == "alloc" or (call.method == "free_memory" and earlier):
            raise BackendError("gone")

    with pytest.raises(AllocationError) as caught:
        MOE_CASE.build(Spy(gpu, fault))
    assert (caught.value.free, caught.value.total) == (None, None)
    assert "free: unknown of an unknown total" in str(caught.value)


@pytest.mark.parametrize("method", ["alloc", "memset"])
def test_a_slab_that_fails_leaves_nothing_allocated(method: str, gpu: Backend) -> None:
    error = BackendError("sticky")

    def fault(call: Call, earlier: int) -> None:
        if call.method == method:
            raise error

    with pytest.raises(ArenaError) as caught:
        MOE_CASE.build(Spy(gpu, fault), placement="slab")
    assert gpu.live_bytes == 0
    assert error in (caught.value, caught.value.__cause__)
    if isinstance(caught.value, AllocationError):
        assert caught.value.buffer == "buffer arena slab"
        assert caught.value.nbytes >= MOE_CASE.total


def test_a_slab_at_a_crooked_address_is_given_back(gpu: Backend) -> None:
    class Crooked(Spy):
        def alloc(self, nbytes: int) -> DevicePtr:
            self.shift = 16
            return super().alloc(nbytes + self.shift).offset(self.shift)

        def free(self, ptr: DevicePtr) -> None:
            super().free(DevicePtr(ptr - self.shift))

    with pytest.raises(BackendError, match=r"is no multiple of \d+, which \w+ needs$"):
        MOE_CASE.build(Crooked(gpu), placement="slab")
    assert gpu.live_bytes == 0


def test_a_reserve_counts_as_memory_that_is_not_free(make_gpu: MakeBackend) -> None:
    gpu = with_room_for_moe(make_gpu, 100)
    spare = gpu.total_memory() - MOE_CASE.total
    MOE_CASE.build(gpu, reserve=spare).release()
    spy = Spy(gpu)
    with pytest.raises(AllocationError) as caught:
        MOE_CASE.build(spy, reserve=spare + 1)
    assert spy.made("alloc") == []
    assert caught.value.reserve == spare + 1
    kept = "101 bytes" if spare == 100 else f"{(spare + 1) / 1024:.2f} KiB"
    assert f" and keep {kept}" in str(caught.value)
    assert f"{spare + 1} bytes" in str(caught.value)
    assert " in reserve; free: " in str(caught.value)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"placement": "pool"}, "placement: 'pool'; allowed: separate, slab"),
        ({"reserve": -1}, "reserve is -1; at least 0"),
        ({"reserve": 0.5}, "reserve is 0.5 (float), not an int"),
    ],
)
def test_a_placement_or_reserve_that_is_none(
    more: dict[str, Any], text: str, gpu: Backend
) -> None:
    spy = Spy(gpu)
    with pytest.raises(ConfigError) as caught:
        DENSE_CASE.build(spy, **more)
    assert str(caught.value) == text
    assert spy.made("alloc") == []


def test_a_failed_construction_leaves_nothing_to_warn_of(make_gpu: MakeBackend) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for place in (0, 5):
            spy = Spy(make_gpu(1 << 30), failing_alloc(place, BackendError("no")))
            with contextlib.suppress(AllocationError):
                DENSE_CASE.build(spy)
        with contextlib.suppress(AllocationError):
            DENSE_CASE.build(make_gpu(10))
        with contextlib.suppress(ConfigError):
            BufferArena(DENSE_CASE.model, **limits(0))
        gc.collect()
    assert caught == []


# Release


@every_placement
def test_a_release_gives_back_all_and_twice_is_once(
    placement: str, gpu: Backend
) -> None:
    spy = Spy(gpu)
    arena = MOE_CASE.build(spy, placement=placement)
    assert gpu.live_bytes >= MOE_CASE.total
    arena.release()
    assert (gpu.live_bytes, gpu.live_allocations) == (0, 0)
    assert len(spy.made("free")) == len(spy.made("alloc"))
    assert_gone(arena)
    spy.calls.clear()
    arena.release()
    assert spy.calls == []


def test_an_arena_is_built_once(gpu: Backend) -> None:
    arena = MOE_CASE.build(gpu)
    scratch = arena.scratch
    for _ in range(2):
        with pytest.raises(ConfigError, match="built already; make another one"):
            BufferArena.__init__(arena, MOE_CASE.model, **MOE_CASE.arguments, gpu=gpu)
        arena.release()
        # Else a pointer from before would lead to memory that is no longer there.
        with pytest.raises(ReleasedError):
            scratch.prefill()
    assert gpu.live_bytes == 0


@every_case
def test_release_frees_every_pointer_once(case: Case, gpu: Backend) -> None:
    spy = Spy(gpu)
    arena = case.build(spy)
    given = [ptr for _, ptr, _ in buffers_of(arena) if ptr]
    arena.release()
    assert (gpu.live_bytes, gpu.live_allocations) == (0, 0)
    assert sorted(ptr for (ptr,) in spy.made("free")) == sorted(given)
    assert_gone(arena)
    assert arena.released is True
    spy.calls.clear()
    arena.release()
    assert spy.calls == []
    assert_gone(arena)


def test_a_released_arena_still_says_what_it_was(gpu: Backend) -> None:
    arena = MOE_CASE.build(gpu)
    arena.release()
    assert arena.sizes.as_dict() == MOE_CASE.expected
    assert arena.max_batch_tokens == 20
    assert arena.decode_meta.rows == 32
    assert arena.config == MOE_CASE.model
    assert arena.label == "buffer arena"


@pytest.mark.parametrize("operation", USES)
@pytest.mark.parametrize("used_before", [False, True])
@every_placement
def test_use_after_release_names_the_operation(
    operation: str, used_before: bool, placement: str, gpu: Backend
) -> None:
    spy = Spy(gpu)
    arena = MOE_CASE.build(spy, placement=placement)
    if used_before:
        USES[operation](arena)
    arena.release()
    spy.calls.clear()
    with pytest.raises(ReleasedError) as caught:
        USES[operation](arena)
    assert spy.calls == []
    assert str(caught.value) == (
        f"buffer arena: {operation} after release; "
        "its memory is gone, build a new arena"
    )


@pytest.mark.parametrize(
    ("method", "tokens"),
    [
        ("zero_all", {}),
        ("zero_prefill_essentials", {}),
        ("zero_all_rows", {"tokens": 3}),
    ],
)
def test_an_arena_that_is_released_while_it_plans_keeps_no_plan(
    gpu: Backend, method: str, tokens: dict[str, int]
) -> None:
    class Releasing(Spy):
        """Stands for another thread that releases the arena meanwhile."""

        def prepare_ranges(self, ranges: Any, value: int) -> None:
            arena.release()

        def memset_ranges(self, prepared: Any, stream: Any) -> None:
            raise AssertionError

    arena = MOE_CASE.build(Releasing(gpu))
    for _ in range(2):
        with pytest.raises(ReleasedError, match=f"{method} after release"):
            getattr(arena, method)(gpu.default_stream, **tokens)
    assert gpu.live_bytes == 0


def test_an_armed_probe_after_release_raises(gpu: Backend) -> None:
    levers = Levers(ssm_save_dump=True)
    arena = BufferArena(MOE_CASE.model, **MOE_CASE.limits, levers=levers, gpu=gpu)
    arena.release()
    with pytest.raises(ReleasedError):
        arena.debug_buffer_checksum(0, "tag")


@pytest.mark.parametrize("name", MOE_CASE.live)
def test_a_free_that_fails_leaves_no_other_buffer_behind(
    name: str, gpu: Backend
) -> None:
    error = BackendError("injected")
    stuck: list[DevicePtr] = []

    def fault(call: Call, earlier: int) -> None:
        if call.method == "free" and call.arguments[0] in stuck:
            raise error

    spy = Spy(gpu, fault)
    arena = MOE_CASE.build(spy)
    stuck.append(getattr(arena, name))
    with pytest.raises(ReleaseError) as caught:
        arena.release()
    assert gpu.live_bytes == MOE_CASE.live[name]
    assert len(spy.made("free")) == len(MOE_CASE.live)
    assert caught.value.failures == ((name, error),)
    assert caught.value.__cause__ is error
    assert str(caught.value) == (
        f"buffer arena: could not free:\n  {name}: BackendError: injected"
    )
    assert_gone(arena)
    spy.calls.clear()
    arena.release()
    assert spy.calls == []


def test_every_free_that_fails_is_reported(gpu: Backend) -> None:
    def fault(call: Call, earlier: int) -> None:
        if call.method == "free":
            raise ValueError(str(earlier))

    spy = Spy(gpu, fault)
    arena = DENSE_CASE.build(spy)
    with pytest.raises(ReleaseError) as caught:
        arena.release()
    failures = {name: str(error) for name, error in caught.value.failures}
    assert failures == {name: str(at) for at, name in enumerate(DENSE_CASE.live)}
    assert caught.value.__cause__ is caught.value.failures[0][1]
    assert len(str(caught.value).splitlines()) == 1 + len(DENSE_CASE.live)
    assert_gone(arena)


def test_an_interrupted_release_strands_nothing_but_what_was_being_freed(
    gpu: Backend,
) -> None:
    def fault(call: Call, earlier: int) -> None:
        if call.method == "free" and earlier == 2:
            raise KeyboardInterrupt

    arena = DENSE_CASE.build(Spy(gpu, fault))
    with pytest.raises(KeyboardInterrupt):
        arena.release()
    arena.release()
    assert gpu.live_allocations <= 1


@pytest.mark.parametrize("before", ["_forget", "free"])
def test_a_release_that_is_interrupted_before_any_free_strands_nothing(
    gpu: Backend, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    with DENSE_CASE.build(gpu) as arena:
        owner = type(arena) if before == "_forget" else type(arena._memory)
        method, calls = getattr(owner, before), []

        def interrupted(self: Any) -> Any:
            calls.append(before)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return method(self)

        monkeypatch.setattr(owner, before, interrupted)
        with pytest.raises(KeyboardInterrupt):
            arena.release()
        assert gpu.live_bytes == 0


def test_a_block_releases_at_its_end(gpu: Backend) -> None:
    arena = MOE_CASE.build(gpu)
    with arena as entered:
        assert entered is arena
        assert gpu.live_bytes == MOE_CASE.total
    assert gpu.live_bytes == 0
    assert_gone(arena)


def test_a_block_that_released_early_ends_well(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        arena.release()
    assert gpu.live_bytes == 0


def test_an_exception_in_a_block_reaches_the_caller_unchanged(
    gpu: Backend,
) -> None:
    original = KeyError("the cause")
    with pytest.raises(KeyError) as caught, MOE_CASE.build(gpu) as arena:
        raise original
    assert caught.value is original
    assert not hasattr(original, "__notes__")
    assert gpu.live_bytes == 0
    assert_gone(arena)


def stuck_free(call: Call, earlier: int) -> None:
    if call.method == "free" and earlier == 1:
        raise BackendError("stuck")


def test_a_block_whose_release_fails_raises_that(gpu: Backend) -> None:
    arena = DENSE_CASE.build(Spy(gpu, stuck_free))
    with pytest.raises(ReleaseError, match="residual: BackendError: stuck"), arena:
        pass


def test_a_failed_release_does_not_hide_the_exception_in_flight(gpu: Backend) -> None:
    original = KeyError("the cause")
    with pytest.raises(KeyError) as caught, DENSE_CASE.build(Spy(gpu, stuck_free)):
        raise original
    assert caught.value is original
    assert original.__notes__ == [
        "buffer arena: could not free:\n  residual: BackendError: stuck"
    ]


def test_a_dropped_arena_warns_and_its_memory_comes_back(gpu: Backend) -> None:
    arena = MOE_CASE.build(gpu)
    arena.zero_all_rows(0, tokens=1)
    with pytest.warns(ResourceWarning, match="^buffer arena was dropped without rele"):
        del arena
        gc.collect()
    assert gpu.live_bytes == 0


def test_a_dropped_arenas_memory_comes_back_where_warnings_are_errors(
    gpu: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: seen.append(hook.exc_type))
    arena = MOE_CASE.build(gpu)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del arena
        gc.collect()
    assert seen == [ResourceWarning]
    assert gpu.live_bytes == 0


def test_a_released_arena_is_dropped_without_a_warning(gpu: Backend) -> None:
    arena = MOE_CASE.build(gpu)
    arena.release()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del arena
        gc.collect()
    assert caught == []


def test_two_arenas_share_a_backend_and_nothing_else(gpu: Backend) -> None:
    first = MOE_CASE.build(gpu)
    second = DENSE_CASE.build(gpu)
    assert gpu.live_bytes == MOE_CASE.total + DENSE_CASE.total
    soil(gpu, first)
    soil(gpu, second)
    first.zero_all(0)
    assert cleared(gpu, second) == {}
    second.zero_all_rows(0, tokens=1)
    assert cleared(gpu, first) == MOE_CASE.due(ZERO_ALL)
    assert cleared(gpu, second) == DENSE_CASE.due(ZERO_ALL, 1)
    first.release()
    assert gpu.live_bytes == DENSE_CASE.total
    second.zero_all(0)
    assert cleared(gpu, second) == DENSE_CASE.due(ZERO_ALL)
    second.release()
    assert gpu.live_bytes == 0


def run_in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work(place)` in threads that start together; raise what any raised."""
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def guarded(place: int) -> None:
        try:
            start.wait(30)
            work(place)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


def test_arenas_in_threads_do_not_meet(gpu: Backend) -> None:
    cases = (DENSE_CASE, MOE_CASE, Case(DENSE, limits(9)), Case(MOE, limits(3)))

    def work(place: int) -> None:
        case = cases[place]
        for tokens in range(1, 6):
            with case.build(gpu) as arena:
                soil(gpu, arena)
                arena.zero_all_rows(0, tokens=tokens)
                assert cleared(gpu, arena) == case.due(ZERO_ALL, tokens)

    run_in_threads(len(cases), work)
    assert gpu.live_bytes == 0


def test_a_teardown_releases_arenas_newest_first(gpu: Backend) -> None:
    spy = Spy(gpu)
    teardown = Teardown()
    first = teardown.add(DENSE_CASE.build(spy))
    second = teardown.add(MOE_CASE.build(spy))
    resource: ModelResource = first
    assert resource.label == "buffer arena"
    newest, oldest = second.hidden_states, first.hidden_states
    teardown.release()
    order = [ptr for (ptr,) in spy.made("free")]
    assert order.index(newest) < order.index(oldest)
    assert set(order[: len(MOE_CASE.live)]).isdisjoint({oldest})
    assert first.released and second.released
    assert gpu.live_bytes == 0


def test_a_teardown_carries_the_failures_of_every_arena(gpu: Backend) -> None:
    with pytest.raises(TeardownError) as caught, Teardown() as teardown:
        teardown.add(DENSE_CASE.build(Spy(gpu, stuck_free)))
        teardown.add(DENSE_CASE.build(gpu))
        teardown.add(DENSE_CASE.build(Spy(gpu, stuck_free)))
    labels = [label for label, _ in caught.value.failures]
    assert labels == ["buffer arena", "buffer arena"]
    errors = [error for _, error in caught.value.failures]
    assert all(isinstance(error, ReleaseError) for error in errors)
    assert gpu.live_bytes == 2 * DENSE_CASE.expected["residual"]


# Carves

ROWWISE = {
    "hidden_size": 5120,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_num_value_heads": 48,
    "linear_value_head_dim": 128,
    "layer_types": ["linear_attention"] * 48,
}
IN_PROJECTION, OUT_PROJECTION = 167772160, 62914560


def test_96_carves_of_48_layers_fit_exactly_and_the_97th_is_refused(
    roomy: PaperBackend | DriverBackend,
) -> None:
    case = Case(ROWWISE, limits(1), {"fp8_rowwise": True})
    capacity = 48 * (IN_PROJECTION + OUT_PROJECTION)
    spy = Spy(roomy)
    with case.build(spy) as arena:
        assert arena.ssm_rowwise_w_bf16_bytes == capacity == 11072962560
        spy.calls.clear()
        place = arena.ssm_rowwise_w_bf16
        for nbytes in (IN_PROJECTION, OUT_PROJECTION) * 48:
            piece = arena.carve_ssm_rowwise_w_bf16(nbytes)
            assert type(piece) is DevicePtr
            assert piece == place
            place = place.offset(nbytes)
        assert place == arena.ssm_rowwise_w_bf16 + capacity
        for nbytes, asked in (
            (1, "1 byte"),
            (IN_PROJECTION, "160.00 MiB (167772160 bytes)"),
        ):
            with pytest.raises(CarveError) as caught:
                arena.carve_ssm_rowwise_w_bf16(nbytes)
            assert str(caught.value) == (
                f"ssm_rowwise_w_bf16: cannot carve {asked}: 0 bytes left, "
                "11072962560 used of 10.31 GiB (11072962560 bytes)"
            )
        assert spy.calls == []


def test_a_refused_carve_leaves_the_cursor_where_it_was(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        base, capacity = arena.ssm_rowwise_w_bf16, arena.ssm_rowwise_w_bf16_bytes
        # Two linear layers of (512 * 64 + 64 * 128) bf16.
        assert capacity == 2 * (512 * 64 + 64 * 128) * 2
        assert arena.carve_ssm_rowwise_w_bf16(1000) == base
        for nbytes in (capacity, capacity - 999, 1 << 70, 0, -1, -1000):
            with pytest.raises(CarveError) as caught:
                arena.carve_ssm_rowwise_w_bf16(nbytes)
            failure = caught.value
            assert (failure.buffer, failure.asked) == (SLAB, nbytes)
            assert (failure.used, failure.capacity) == (1000, capacity)
        assert arena.carve_ssm_rowwise_w_bf16(capacity - 1000) == base + 1000


def test_the_text_of_an_empty_carve(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena, pytest.raises(CarveError) as caught:
        arena.carve_ssm_rowwise_w_bf16(0)
    assert str(caught.value) == (
        "ssm_rowwise_w_bf16: cannot carve 0 bytes: a piece has at least 1 byte"
    )


@pytest.mark.parametrize("nbytes", [1.5, 2.0, "8", None], ids=repr)
def test_a_carve_that_is_no_int_is_refused_and_moves_nothing(
    nbytes: Any, gpu: Backend
) -> None:
    with MOE_CASE.build(gpu) as arena:
        with pytest.raises((TypeError, ValueError, CarveError)):
            arena.carve_ssm_rowwise_w_bf16(nbytes)
        assert arena.carve_ssm_rowwise_w_bf16(16) == arena.ssm_rowwise_w_bf16


@pytest.mark.parametrize(
    "case",
    [
        Case(MOE, limits(3)),
        Case({**MOE, "layer_types": ["full_attention"]}, limits(3), ALL_LEVERS),
    ],
    ids=["lever off", "no linear layers"],
)
def test_a_carve_without_a_slab_says_so(case: Case, gpu: Backend) -> None:
    with case.build(gpu) as arena:
        assert arena.ssm_rowwise_w_bf16 == NULL
        with pytest.raises(CarveError) as caught:
            arena.carve_ssm_rowwise_w_bf16(2)
    assert str(caught.value) == (
        "ssm_rowwise_w_bf16: cannot carve 2 bytes: "
        "the slab is not allocated in this arena"
    )


def test_concurrent_carves_never_overlap(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        base, capacity = arena.ssm_rowwise_w_bf16, arena.ssm_rowwise_w_bf16_bytes
        pieces: list[list[tuple[int, int]]] = [[] for _ in range(8)]
        interval = sys.getswitchinterval()

        def work(place: int) -> None:
            draw = random.Random(place)
            with contextlib.suppress(CarveError):
                while True:
                    nbytes = draw.randint(1, 40)
                    start = arena.carve_ssm_rowwise_w_bf16(nbytes)
                    pieces[place].append((int(start), nbytes))

        sys.setswitchinterval(1e-6)
        try:
            run_in_threads(len(pieces), work)
        finally:
            sys.setswitchinterval(interval)
        given = sorted(piece for each in pieces for piece in each)
        reached = int(base)
        for start, nbytes in given:
            assert start == reached
            reached += nbytes
        assert base + capacity - 40 < reached <= base + capacity


# Layouts


def regions_of(layout: Any) -> Iterator[tuple[str, Region]]:
    for name, part in zip(layout._fields, layout, strict=True):
        if isinstance(part, Region):
            yield name, part


def offsets_of(layout: Any) -> dict[str, tuple[int, int]]:
    return {name: (part.offset, part.nbytes) for name, part in regions_of(layout)}


ELEMENT = {"u8": 1, "u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8}


def assert_typed_and_bound(layout: Any, base: DevicePtr) -> None:
    for name, part in regions_of(layout):
        assert part.nbytes == math.prod(part.shape) * ELEMENT[part.dtype], name
        assert part.offset % ELEMENT[part.dtype] == 0, name
        assert part.end == part.offset + part.nbytes <= layout.nbytes
        assert part.ptr == (base + part.offset if base else NULL), name


@pytest.mark.parametrize("max_blocks", [1, 17, 256, 257])
def test_decode_metadata_lies_where_the_oracle_says(max_blocks: int) -> None:
    for rows in range(1, 201):
        for base in (NULL, DevicePtr(1 << 20)):
            layout = DecodeMetaLayout.of(
                rows=rows, max_blocks_per_row=max_blocks, base=base
            )
            assert offsets_of(layout) == oracle.decode_meta_offsets(rows, max_blocks)
            assert_typed_and_bound(layout, base)
        assert layout.nbytes == 24 * rows + 4 * rows * max_blocks
        assert layout.nbytes == decode_meta_bytes(rows, max_blocks)
        assert [part.dtype for _, part in regions_of(layout)] == [
            *("u32", "i32", "i64", "i32", "i32")
        ]
        assert layout.block_table.shape == (rows, max_blocks)


@pytest.mark.parametrize(
    ("batch", "seq_len", "block", "rows", "blocks"),
    [
        (1, 4096, 16, 32, 257),
        (32, 4096, 0, 32, 256),
        (33, 15, 16, 33, 1),
        (128, 16, 16, 128, 2),
        (200, 65536, 64, 200, 1025),
    ],
)
def test_the_arena_lays_decode_metadata_out_for_its_largest_batch(
    batch: int, seq_len: int, block: int, rows: int, blocks: int, gpu: Backend
) -> None:
    case = Case(DENSE, limits(2, seq_len, block, batch))
    with case.build(gpu) as arena:
        layout = arena.decode_meta
        assert arena.decode_meta is layout
        assert (layout.rows, layout.max_blocks_per_row) == (rows, blocks)
        assert offsets_of(layout) == oracle.decode_meta_offsets(rows, blocks)
        assert_typed_and_bound(layout, NULL)
        assert 32768 + layout.nbytes <= arena.scratch_bytes


def test_decode_metadata_of_32_rows_at_the_references_offsets() -> None:
    layout = DecodeMetaLayout.of(rows=32, max_blocks_per_row=257)
    offsets = [part.offset for _, part in regions_of(layout)]
    assert offsets == [0, 128, 256, 512, 768]


@pytest.mark.parametrize(
    ("tokens", "streams", "blocks", "expected", "nbytes"),
    [
        # 3 u32 end at 12, slots from 16; 5 i32 from 40; seq_len at 60.
        (3, 1, 5, [(0, 12), (16, 24), (40, 20), (60, 4)], 64),
        # Three streams: 3 * 3 u32 end at 36, slots from 40.
        (3, 3, 5, [(0, 36), (40, 24), (64, 20), (84, 4)], 88),
        (1, 1, 257, [(0, 4), (8, 8), (16, 1028), (1044, 4)], 1048),
        (1, 3, 1, [(0, 12), (16, 8), (24, 4), (28, 4)], 32),
        (2, 3, 0, [(0, 24), (24, 16), (40, 0), (40, 4)], 44),
        (
            16384,
            3,
            2,
            [(0, 196608), (196608, 131072), (327680, 8), (327688, 4)],
            327692,
        ),
    ],
)
def test_chunk_metadata_by_hand(
    tokens: int,
    streams: int,
    blocks: int,
    expected: list[tuple[int, int]],
    nbytes: int,
) -> None:
    for base in (NULL, DevicePtr(1 << 20)):
        layout = ChunkMetaLayout.of(
            tokens=tokens, streams=streams, table_blocks=blocks, base=base
        )
        names = ("positions", "slots", "block_table", "seq_len")
        assert offsets_of(layout) == dict(zip(names, expected, strict=True))
        assert_typed_and_bound(layout, base)
        assert layout.positions.shape == (streams, tokens)
        assert layout.nbytes == nbytes
        assert chunk_meta_bytes(tokens, streams, blocks) == nbytes


@settings(quiet, max_examples=300)
@given(
    rows=st.integers(1, 20000),
    blocks=st.integers(0, 20000),
    mrope=st.booleans(),
    config=strategies.configs(),
)
def test_the_bytes_of_a_layout_are_where_it_ends(
    rows: int, blocks: int, mrope: bool, config: Fields
) -> None:
    decode = DecodeMetaLayout.of(rows=rows, max_blocks_per_row=blocks)
    assert (
        decode_meta_bytes(rows, blocks)
        == decode.nbytes
        == 24 * rows + 4 * (rows * blocks)
    )
    streams = 3 if mrope else 1
    chunk = ChunkMetaLayout.of(tokens=rows, streams=streams, table_blocks=blocks)
    by_oracle = oracle.prefill_scratch_bytes({"mrope_interleaved": mrope}, rows, blocks)
    assert chunk_meta_bytes(rows, streams, blocks) == chunk.nbytes == by_oracle
    model = ModelConfig(**config)  # type: ignore[arg-type]
    moe = MoeFp8Layout.of(model, rows=rows)
    regions = oracle.moe_fp8_regions(config, rows)
    assert offsets_of(moe) == regions
    end = max(start + nbytes for start, nbytes in regions.values())
    assert moe_fp8_bytes(model, rows) == moe.nbytes == end
    assert_typed_and_bound(moe, NULL)


@pytest.mark.parametrize("experts", [1, 4, 255, 256, 257])
def test_moe_scratch_regions_for_every_pass_are_the_oracles(
    experts: int, gpu: Backend
) -> None:
    case = Case({**MOE, "num_experts": experts}, limits(150))
    with case.build(gpu) as arena:
        base = arena.moe_fp8_scratch
        for rows in range(1, 151):
            layout = base(rows)
            assert offsets_of(layout) == oracle.moe_fp8_regions(case.config, rows)
            assert_typed_and_bound(layout, base)
            assert all(part.offset % 256 == 0 for _, part in regions_of(layout))
            assert layout.rows == rows
            assert (layout.small_worklist is not None) == (experts == 256)
        assert layout.nbytes == arena.moe_fp8_scratch_bytes
        assert base(rows=7) == base(7)
        assert base() == base(rows=None) == base(150)
        assert base.most == {"rows": 150}


def test_moe_scratch_regions_can_be_written_to_their_ends(gpu: Backend) -> None:
    case = Case({**MOE, "num_experts": 256}, limits(33))
    with case.build(gpu) as arena:
        for rows in (1, 32, 33):
            parts = [part for _, part in regions_of(arena.moe_fp8_scratch(rows))]
            assert len(parts) == 6
            for value, part in enumerate(parts, start=1):
                gpu.memset(part.ptr, value, part.nbytes)
            for value, part in enumerate(parts, start=1):
                content = read(gpu, part.ptr, part.nbytes)
                assert content == bytes([value]) * part.nbytes


def layout_refusal(arena: BufferArena, rows: int) -> LayoutError:
    with pytest.raises(LayoutError) as caught:
        arena.moe_fp8_scratch(rows)
    return caught.value


@pytest.mark.parametrize("rows", [21, 1 << 40])
def test_more_rows_than_the_arena_was_sized_for_are_refused(
    rows: int, gpu: Backend
) -> None:
    with MOE_CASE.build(gpu) as arena:
        failure = layout_refusal(arena, rows)
        capacity = MOE_CASE.expected["moe_fp8_scratch"]
        assert (failure.buffer, failure.capacity) == ("moe_fp8_scratch", capacity)
        regions = oracle.moe_fp8_regions(MOE, rows)
        needed = max(start + nbytes for start, nbytes in regions.values())
        assert f"rows={rows} ({needed} bytes), at most rows=20" in str(failure)
        assert f"{capacity} bytes" in str(failure)


@pytest.mark.parametrize("rows", [0, -1, True, 2.0, "3"])
def test_a_layout_for_no_rows_is_refused(rows: Any, gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        with pytest.raises((ConfigError, LayoutError)) as caught:
            arena.moe_fp8_scratch(rows)
        assert str(caught.value) == no_count("rows", rows, 1)


@pytest.mark.parametrize(
    "case",
    [DENSE_CASE, Case({**MOE, "model_type": "glm5_next"}, limits(20))],
    ids=["no experts", "trimmed"],
)
def test_a_layout_of_an_absent_buffer_is_refused(case: Case, gpu: Backend) -> None:
    with case.build(gpu) as arena:
        assert arena.moe_fp8_scratch == NULL
        assert str(layout_refusal(arena, 3)) == (
            "moe_fp8_scratch: no room for rows=3: "
            "it is not allocated in this arena (0 bytes)"
        )


def test_a_layout_after_release_is_refused(gpu: Backend) -> None:
    arena = MOE_CASE.build(gpu)
    held = arena.moe_fp8_scratch
    held(3)
    arena.release()
    for pointer in (held, arena.moe_fp8_scratch):
        with pytest.raises(ReleasedError) as caught:
            pointer(3)
        assert str(caught.value) == (
            "buffer arena: moe_fp8_scratch(rows=3) after release; "
            "its memory is gone, build a new arena"
        )


def test_a_layout_needs_the_bytes_that_were_allocated(gpu: Backend) -> None:
    regions = oracle.moe_fp8_regions(MOE, 10)
    needed = max(start + nbytes for start, nbytes in regions.values())
    sizes = MOE_CASE.sizes()._replace(moe_fp8_scratch=needed)
    with MOE_CASE.build_from(sizes, gpu) as arena:
        assert arena.moe_fp8_scratch(10).nbytes == needed
    sizes = MOE_CASE.sizes()._replace(moe_fp8_scratch=needed - 1)
    with MOE_CASE.build_from(sizes, gpu) as arena:
        failure = layout_refusal(arena, 10)
        assert failure.capacity == needed - 1
        assert f"rows=10 ({needed} bytes)" in str(failure)
        assert f"({needed - 1} bytes)" in str(failure)


def test_the_most_that_an_absent_layout_offers_can_be_asked(gpu: Backend) -> None:
    arena = MOE_CASE.build(gpu)
    arena.release()
    assert arena.moe_fp8_scratch.most in ({}, {"rows": 0}, {"rows": 20})


# Checksum


def probe(arena: BufferArena) -> ChecksumReport:
    report = arena.debug_buffer_checksum(0, "tag", force=True)
    assert report is not None
    return report


def test_a_probe_that_is_off_makes_no_call(gpu: Backend) -> None:
    spy = Spy(gpu)
    with MOE_CASE.build(spy) as arena:
        spy.calls.clear()
        assert arena.debug_buffer_checksum(0, "tag") is None
        assert spy.calls == []


@pytest.mark.parametrize("how", ["lever", "force", "environment"])
def test_a_probe_reads_the_16_buffers_in_order(
    how: str, monkeypatch: pytest.MonkeyPatch, gpu: Backend
) -> None:
    spy = Spy(gpu)
    stream = new_stream(gpu)
    if how == "environment":
        monkeypatch.setenv("METRALE_SSM_SAVE_DUMP", "1")
    levers = Levers(ssm_save_dump=True) if how == "lever" else None
    case = Case(MOE, limits(20))
    with BufferArena(case.model, **case.limits, levers=levers, gpu=spy) as arena:
        spy.calls.clear()
        report = arena.debug_buffer_checksum(stream, "a tag", force=how == "force")
        assert report is not None
        assert report.tag == "a tag"
        assert tuple(each.name for each in report.buffers) == PROBED
        assert {each.state for each in report.buffers} == {"ok"}
        found = {each.name: each.nbytes for each in report.buffers}
        assert found == {name: case.expected[name] for name in PROBED}
        # Pending work first, then nothing but reads.
        assert spy.calls[0] == Call("synchronize", (stream,))
        assert {call.method for call in spy.calls[1:]} == {"copy_d2h"}
        starts = [src for _, src in spy.made("copy_d2h")]
        assert starts == [getattr(arena, name) for name in PROBED]


def test_a_probe_is_logged_under_its_tag(
    caplog: pytest.LogCaptureFixture, gpu: Backend
) -> None:
    with MOE_CASE.build(gpu) as arena:
        with caplog.at_level(logging.INFO, "metrale_arena"):
            caplog.clear()
            report = probe(arena)
        (record,) = caplog.records
        assert record.getMessage() == str(report)
        lines = str(report).splitlines()
        assert lines[0] == "checksum tag"
        assert [line.split()[0] for line in lines[1:]] == list(PROBED)


def test_a_probe_sums_the_finite_lanes(gpu: Backend) -> None:
    lanes = [1.5, -2.0, math.nan, math.inf, -math.inf, 0.25, math.nan]
    with MOE_CASE.build(gpu) as arena:
        arena.zero_all(0)
        gpu.copy_h2d(arena.residual, struct.pack(f"<{len(lanes)}f", *lanes))
        entry = probe(arena).buffers[1]
        assert entry.name == "residual"
        assert entry.total == 1.5 - 2.0 + 0.25
        assert entry.total_squares == 2.25 + 4.0 + 0.0625
        assert entry.total_abs == 3.75
        assert (entry.nan_lanes, entry.inf_lanes) == (2, 2)
        assert entry.lanes == 20 * 64 * 2 // 4


def test_any_single_byte_changes_the_digest_of_its_buffer_alone(gpu: Backend) -> None:
    case = Case(DENSE, limits(3))  # hidden_states: 3 * 33 * 2 bytes, 2 beyond a lane
    with case.build(gpu) as arena:
        assert arena.hidden_states_bytes == 198
        soil(gpu, arena)
        before = probe(arena).buffers
        digests = {before[0].digest}
        for place in range(198):
            byte = arena.hidden_states.offset(place)
            gpu.memset(byte, DIRTY ^ 1, 1)
            after = probe(arena).buffers
            digests.add(after[0].digest)
            assert after[1:] == before[1:]
            gpu.memset(byte, DIRTY, 1)
        assert len(digests) == 199
        assert probe(arena).buffers == before


@pytest.mark.parametrize("name", PROBED)
def test_the_last_byte_of_every_probed_buffer_counts(name: str, gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        soil(gpu, arena)
        before = {each.name: each for each in probe(arena).buffers}
        last = getattr(arena, f"{name}_bytes") - 1
        gpu.memset(getattr(arena, name).offset(last), 0, 1)
        after = {each.name: each for each in probe(arena).buffers}
        assert {each for each in PROBED if before[each] != after[each]} == {name}


def test_nan_and_zero_lanes_are_told_apart(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        arena.zero_all(0)
        zero = probe(arena).buffers[0]
        gpu.copy_h2d(arena.hidden_states, struct.pack("<f", math.nan))
        nan = probe(arena).buffers[0]
        assert (nan.total, nan.total_abs) == (zero.total, zero.total_abs) == (0, 0)
        assert (zero.nan_lanes, nan.nan_lanes) == (0, 1)
        assert nan.digest != zero.digest


def test_swapped_lanes_are_told_apart(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        arena.zero_all(0)
        gpu.copy_h2d(arena.hidden_states, struct.pack("<2f", 1.0, 2.0))
        one = probe(arena).buffers[0]
        gpu.copy_h2d(arena.hidden_states, struct.pack("<2f", 2.0, 1.0))
        other = probe(arena).buffers[0]
        assert one.total == other.total == 3.0
        assert one.total_squares == other.total_squares == 5.0
        assert one.digest != other.digest


def test_a_probe_changes_no_byte(gpu: Backend) -> None:
    with MOE_CASE.build(gpu) as arena:
        soil(gpu, arena)
        assert probe(arena) == probe(arena)
        assert cleared(gpu, arena) == {}


def test_absent_buffers_are_reported_as_absent_and_not_read(gpu: Backend) -> None:
    spy = Spy(gpu)
    trimmed = Case({**MOE, "model_type": "glm5_next_text"}, limits(20))
    with trimmed.build(spy) as arena:
        spy.calls.clear()
        report = probe(arena)
        assert tuple(each.name for each in report.buffers) == PROBED
        absent = {each.name for each in report.buffers if each.state == "absent"}
        assert absent == set(PROBED) & set(oracle.METRALE_TRIMMED)
        assert {each.nbytes for each in report.buffers if each.name in absent} == {0}
        assert len(spy.made("copy_d2h")) == 5  # 16 less the 11 trimmed ones
        text = str(report).splitlines()
        assert sum(line.endswith("absent") for line in text) == 11


@pytest.mark.parametrize("name", PROBED)
def test_a_buffer_that_cannot_be_read_does_not_hide_the_others(
    name: str, gpu: Backend
) -> None:
    failing: list[DevicePtr] = []

    def fault(call: Call, earlier: int) -> None:
        if call.method == "copy_d2h" and call.arguments[1] in failing:
            raise BackendError("sticky")

    with MOE_CASE.build(Spy(gpu, fault)) as arena:
        whole = probe(arena)
        failing.append(getattr(arena, name))
        report = probe(arena)
        for before, after in zip(whole.buffers, report.buffers, strict=True):
            if after.name == name:
                assert after.state == "failed"
                assert after.error == "BackendError: sticky"
                assert after.nbytes == before.nbytes
                assert after.digest == ""
            else:
                assert after == before
        assert "failed  BackendError: sticky" in str(report)


def test_equal_arenas_have_equal_checksums(make_gpu: MakeBackend) -> None:
    reports = []
    for _ in range(2):
        gpu = make_gpu(1 << 30)
        with MOE_CASE.build(gpu) as arena:
            arena.zero_all(0)
            gpu.memset(arena.residual, 7, 100)
            reports.append(probe(arena))
    assert reports[0] == reports[1]


def test_the_backends_of_these_tests_are_backends(gpu: Backend) -> None:
    backends: tuple[GpuBackend, ...] = (gpu, Spy(gpu), PaperBackend())
    assert all(isinstance(backend, GpuBackend) for backend in backends)


class Unfinished:
    """A backend that somebody has only begun."""

    default_stream: object = 0

    def __init__(self, **given: object) -> None:
        vars(self).update(given)

    def alloc(self, nbytes: int) -> DevicePtr:
        raise AssertionError(f"alloc of {nbytes} bytes")


def test_a_backend_that_lacks_methods_is_refused_with_all_of_them() -> None:
    unfinished: Any = Unfinished(free=print)
    lacking = (
        "memset, memset_async, copy_h2d, copy_d2h, copy_d2d, synchronize, "
        "total_memory, free_memory"
    )
    for build in (
        partial(MOE_CASE.build, unfinished),
        partial(MOE_CASE.build_from, MOE_CASE.sizes(), unfinished),
        partial(selfcheck, MOE_CASE.model, **MOE_CASE.arguments, gpu=unfinished),
    ):
        with pytest.raises(ConfigError) as caught:
            build()
        assert str(caught.value) == (
            f"gpu: Unfinished is no GpuBackend: it lacks {lacking}"
        )
    text: Any = "cuda"
    with pytest.raises(ConfigError, match="gpu: str is no GpuBackend: it lacks alloc"):
        MOE_CASE.build(text)


def test_a_backend_may_have_its_methods_by_itself() -> None:
    class Passing:
        def __init__(self, gpu: HostBackend) -> None:
            self.gpu = gpu

        def __getattr__(self, name: str) -> object:
            return getattr(self.gpu, name)

    gpu = HostBackend()
    names = ["free", "memset", "memset_async", "copy_h2d", "copy_d2h", "copy_d2d"]
    names += ["synchronize", "total_memory", "free_memory", "alloc"]
    held: Any = Unfinished(**{name: getattr(gpu, name) for name in names})
    passing: Any = Passing(gpu)
    for backend in (held, passing):
        MOE_CASE.build(backend).release()
    # What is optional is seen too.
    with MOE_CASE.build(passing) as arena:
        assert arena.tensor("hidden_states").nbytes == arena.hidden_states_bytes
    # One of the same class that does not.
    with pytest.raises(ConfigError, match="it lacks free, memset"):
        MOE_CASE.build(Unfinished())  # type: ignore[arg-type]


def test_a_class_derived_from_the_protocol_has_to_be_whole() -> None:
    class Derived(GpuBackend):
        def alloc(self, nbytes: int) -> DevicePtr:
            raise AssertionError(f"alloc of {nbytes} bytes")

    # Python 3.12 puts the names in quotes.
    told = r"abstract methods '?copy_d2d'?, .*total_memory"
    with pytest.raises(TypeError, match=told):
        Derived()  # type: ignore[abstract]
