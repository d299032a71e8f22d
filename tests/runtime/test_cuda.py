"""The arena through the real cuda-python bindings, on the simulated driver.

What reaches the driver is read from its record of calls; what memory holds is read
behind the bindings' back. Expected bytes come from the oracle.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import GLM, MOE, QWEN3_NEXT, limits

import oracle
from driver.simulated import FRESH, Driver
from metrale_arena import (
    BUFFERS,
    AllocationError,
    ArenaError,
    BackendError,
    BufferArena,
    ClearError,
    ConfigError,
    CudaBackend,
    CudaError,
    DevicePtr,
    GpuBackend,
    Levers,
    ModelConfig,
    OutOfMemoryError,
    ReleaseError,
    selfcheck,
)
from metrale_arena.runtime.backend import free_each
from metrale_arena.runtime.cuda import _MAX_STREAMS

cu: Any = pytest.importorskip("cuda.bindings.driver")
pytest_plugins = ["driver.plugin"]

ROOT = Path(__file__).resolve().parents[2]
SMALL = limits(tokens=8, seq_len=64, block=16, batch=4)
STATUS = {
    "invalid value": 1,
    "out of memory": 2,
    "deinitialized": 4,
    "illegal address": 700,
    "unknown": 999,
}


def ok(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    assert not status, status
    return values[0] if len(values) == 1 else values


@pytest.fixture
def driver(simulated_driver: Driver) -> Driver:
    return simulated_driver


@pytest.fixture
def gpu(driver: Driver) -> CudaBackend:
    backend = CudaBackend(device=0)
    driver.clear()
    return backend


def build(gpu: GpuBackend, fields: Any = MOE, **more: Any) -> BufferArena:
    return BufferArena(
        ModelConfig(**fields), **{**SMALL, "levers": Levers(), "gpu": gpu, **more}
    )


def make_stream(flags: int = 1) -> int:
    context = ok(cu.cuDevicePrimaryCtxRetain(0))
    ok(cu.cuCtxPushCurrent(context))
    stream = int(ok(cu.cuStreamCreate(flags)))
    ok(cu.cuCtxPopCurrent())
    ok(cu.cuDevicePrimaryCtxRelease(0))
    return stream


# What the arena asks of the driver


@pytest.mark.parametrize("placement", ["separate", "slab"])
def test_the_package_passes_its_own_selfcheck(driver: Driver, placement: str) -> None:
    report = selfcheck(ModelConfig(**MOE), **SMALL, levers=Levers(), gpu=CudaBackend())
    assert report.ok, str(report)
    assert driver.live() == (0, 0)


def test_the_backend_is_a_gpu_backend(gpu: CudaBackend) -> None:
    assert isinstance(gpu, GpuBackend)
    assert gpu.device == 0
    assert gpu.default_stream == 0
    assert gpu.total_memory() == 80 << 30
    assert gpu.free_memory() == 80 << 30


def test_every_buffer_is_one_allocation_of_its_exact_bytes(
    driver: Driver, gpu: CudaBackend
) -> None:
    sizes = oracle.metrale_sizes(MOE, **SMALL)
    with build(gpu) as arena:
        asked = [call.bytes for call in driver.calls("cuMemAlloc")]
        assert asked == [nbytes for nbytes in sizes.values() if nbytes]
        assert driver.live() == (len(asked), arena.sizes.total_bytes)
    assert driver.live() == (0, 0)


def test_a_slab_is_one_allocation_and_zero_all_one_memset(
    driver: Driver, gpu: CudaBackend
) -> None:
    with build(gpu, placement="slab") as arena:
        assert driver.live().allocations == 1
        driver.clear()
        arena.zero_all(0)
        arena.zero_prefill_essentials(0)
        assert len(driver.calls("cuMemsetD8Async")) == 2


@pytest.mark.parametrize(("placement", "most"), [("separate", 18), ("slab", 16)])
def test_one_decode_step_of_glm_clears_its_exact_bytes(
    driver: Driver, gpu: CudaBackend, placement: str, most: int
) -> None:
    wide = limits(tokens=8193, seq_len=65536)
    one = oracle.metrale_sizes(GLM, **{**wide, "max_batch_tokens": 1}, glm_trim=False)
    full = oracle.metrale_sizes(GLM, **wide, glm_trim=False)
    due = sum(
        one[name] if name in oracle.METRALE_TOKEN_MAJOR else full[name]
        for name in oracle.METRALE_ZERO_ALL
    )
    config, levers = ModelConfig(**GLM), Levers(glm_arena_trim=False)
    with BufferArena(
        config, **wide, levers=levers, gpu=gpu, placement=placement  # type: ignore[arg-type]
    ) as arena:
        arena.zero_all_rows(0, tokens=1)
        driver.clear()
        arena.zero_all_rows(0, tokens=1)
        calls = driver.calls()
    memsets = [call for call in calls if call.name == "cuMemsetD8Async"]
    assert len(memsets) == most
    padding = 16 * 256
    assert due <= sum(call.bytes for call in memsets) < due + padding
    # The hand-written arena wiped whole buffers here: about 2.1 GB a step.
    assert due < 60e6
    context = {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"}
    assert {call.name for call in calls} <= {"cuMemsetD8Async", *context}


def test_memsets_go_to_the_stream_that_is_given_and_wait_for_it(
    driver: Driver, gpu: CudaBackend
) -> None:
    stream, other = make_stream(), make_stream()
    with build(gpu) as arena:
        gpu.memset(arena.hidden_states, 0xA5, arena.hidden_states_bytes)
        driver.clear()
        arena.zero_all(stream)
        assert {call.stream for call in driver.calls("cuMemsetD8Async")} == {stream}
        assert not driver.calls("cuStreamSynchronize", "cuCtxSynchronize")
        nbytes = arena.hidden_states_bytes
        assert driver.peek(arena.hidden_states, nbytes) == b"\xa5" * nbytes
        gpu.synchronize(other)
        assert driver.peek(arena.hidden_states, nbytes) == b"\xa5" * nbytes
        gpu.synchronize(stream)
        assert driver.peek(arena.hidden_states, nbytes) == bytes(nbytes)


def test_a_plan_goes_to_any_number_of_streams(driver: Driver, gpu: CudaBackend) -> None:
    # More than those whose calls a plan keeps.
    streams = [make_stream() for _ in range(40)]
    with build(gpu) as arena:
        driver.clear()
        for stream in streams * 2:
            arena.zero_prefill_essentials(stream)
        plan = arena.zero_plan(method="zero_prefill_essentials")
        memsets = driver.calls("cuMemsetD8Async")
        found = [(call.stream, call.pointer, call.bytes) for call in memsets]
        assert found == [
            (stream, getattr(arena, entry.buffers[0]), entry.nbytes)
            for stream in streams * 2
            for entry in plan
        ]
        kept: Any = arena._zero_prefill_essentials
        assert 0 < len(kept.prepared.calls) <= _MAX_STREAMS


def test_zeroing_is_legal_inside_graph_capture_and_replays(
    driver: Driver, gpu: CudaBackend
) -> None:
    handle = make_stream()
    stream = cu.CUstream(handle)
    mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    with build(gpu) as arena:
        ok(cu.cuCtxPushCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
        for zero in (
            lambda: arena.zero_all(handle),
            lambda: arena.zero_prefill_essentials(handle),
            lambda: arena.zero_all_rows(handle, tokens=3),
        ):
            ok(cu.cuStreamBeginCapture(stream, mode))
            zero()
            graph = ok(cu.cuStreamEndCapture(stream))
            ready = ok(cu.cuGraphInstantiate(graph, 0))
            row = 64 * 2 * 3
            for _ in range(2):
                gpu.memset(arena.hidden_states, 0xA5, arena.hidden_states_bytes)
                ok(cu.cuGraphLaunch(ready, stream))
                gpu.synchronize(handle)
                assert driver.peek(arena.hidden_states, row) == bytes(row)
            ok(cu.cuGraphExecDestroy(ready))
            ok(cu.cuGraphDestroy(graph))
        ok(cu.cuCtxPopCurrent())


# Streams and contexts


class ProtocolStream:
    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class PropertyStream:
    def __init__(self, handle: int) -> None:
        self.__cuda_stream__ = (0, handle)


class TorchStream:
    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle


@pytest.mark.parametrize(
    "kind", [int, cu.CUstream, ProtocolStream, PropertyStream, TorchStream]
)
def test_any_kind_of_stream_is_taken(
    driver: Driver, gpu: CudaBackend, kind: Callable[[int], Any]
) -> None:
    handle = make_stream()
    with build(gpu) as arena:
        driver.clear()
        arena.zero_prefill_essentials(kind(handle))
        gpu.memset_async(arena.residual, 0, 1, kind(handle))
        gpu.synchronize(kind(handle))
        memsets = driver.calls("cuMemsetD8Async")
        assert memsets and {call.stream for call in memsets} == {handle}


def test_a_cuda_core_stream_is_taken(driver: Driver, gpu: CudaBackend) -> None:
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    with build(gpu) as arena:
        driver.clear()
        arena.zero_all_rows(stream, tokens=1)
        handles = {call.stream for call in driver.calls("cuMemsetD8Async")}
    assert handles == {int(stream.handle)}
    stream.close()
    ok(cu.cuCtxPopCurrent())


@pytest.mark.parametrize("stream", [None, True, "0", 1.0, object()])
def test_what_is_no_stream_is_refused(
    driver: Driver, gpu: CudaBackend, stream: object
) -> None:
    with build(gpu) as arena:
        driver.clear()
        with pytest.raises(ArenaError, match="is no CUDA stream; pass an int handle"):
            arena.zero_all(stream)
        with pytest.raises(ConfigError, match="is no CUDA stream"):
            gpu.synchronize(stream)
        assert not driver.calls("cuMemsetD8Async")


def test_the_callers_context_is_left_as_it_was(driver: Driver) -> None:
    driver.reset(devices=2)
    first, second = CudaBackend(0), CudaBackend(1)
    other = ok(cu.cuDevicePrimaryCtxRetain(1))
    ok(cu.cuCtxSetCurrent(other))
    with build(first) as one, build(second) as two:
        assert int(ok(cu.cuCtxGetCurrent())) == int(other)
        for arena in (one, two):
            arena.zero_all(0)
            arena.zero_all_rows(0, tokens=2)
        assert int(ok(cu.cuCtxGetCurrent())) == int(other)
        assert driver.live(0) == driver.live(1)
        devices = {
            (call.device, call.result) for call in driver.calls("cuMemsetD8Async")
        }
        assert devices == {(0, 0), (1, 0)}
    ok(cu.cuCtxSetCurrent(None))
    assert driver.live(0) == driver.live(1) == (0, 0)


def test_threads_without_a_context_can_use_an_arena(
    driver: Driver, gpu: CudaBackend
) -> None:
    stream = make_stream()
    errors: list[BaseException] = []
    with build(gpu) as arena:
        pointers = {name: int(getattr(arena, name)) for name in BUFFERS}

        def work(tokens: int) -> None:
            try:
                for _ in range(20):
                    arena.zero_all_rows(stream, tokens=tokens)
                    arena.zero_prefill_essentials(stream)
                    arena.tensor("hidden_states", tokens=tokens).ptr  # noqa: B018
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gpu.synchronize(stream)
        assert not errors
        assert pointers == {name: int(getattr(arena, name)) for name in BUFFERS}
    assert driver.live() == (0, 0)


def test_two_packages_share_nothing(driver: Driver, tmp_path: Path) -> None:
    driver.reset(devices=2)
    text = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    schema = text.split("```yaml schema\n")[1].split("```")[0]
    (tmp_path / "tiny.yaml").write_text(schema, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "arenagen", "generate", "tiny.yaml", "-o", "tiny_arena"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    sys.path.insert(0, str(tmp_path))
    try:
        import tiny_arena  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))
    config = tiny_arena.ModelConfig(hidden_size=64, intermediate_size=128)
    tiny_gpu = tiny_arena.CudaBackend(1)
    tiny = tiny_arena.BufferArena(config, max_batch_tokens=8, gpu=tiny_gpu)
    with build(CudaBackend(0)) as arena:
        held = driver.live(1)
        arena.zero_all(0)
        tiny.zero_all_rows(0, tokens=1)
        assert driver.live(1) == held == (2, 8 * 64 * 2 + 16 * 128 * 2)
    assert driver.live(0) == (0, 0)
    assert driver.live(1) == held
    assert not tiny.hidden_states.is_null
    tiny.release()
    assert driver.live(1) == (0, 0)


# Memory


def test_copies_and_fills_reach_the_device(driver: Driver, gpu: CudaBackend) -> None:
    ptr = gpu.alloc(64)
    assert driver.peek(ptr, 64) == bytes([FRESH]) * 64
    gpu.copy_h2d(ptr, bytes(range(64)))
    assert driver.peek(ptr, 64) == bytes(range(64))
    gpu.copy_h2d(ptr.offset(8), bytearray(b"\xff" * 4))
    gpu.copy_d2d(ptr.offset(32), ptr, 16)
    read = bytearray(24)
    gpu.copy_d2h(read, ptr.offset(28))
    content = bytes(range(8)) + b"\xff" * 4 + bytes(range(12, 64))
    wanted = content[:32] + content[:16] + content[48:]
    assert bytes(read) == wanted[28:52]
    gpu.memset(ptr, 7, 3)
    gpu.memset_pattern(ptr.offset(8), b"\x80\x3f", 4)
    gpu.memset_pattern(ptr.offset(16), b"\x01\x02\x03\x04", 2)
    now = driver.peek(ptr, 64)
    assert now[:3] == b"\7\7\7" and now[3:4] == wanted[3:4]
    assert now[8:16] == b"\x80\x3f" * 4
    assert now[16:24] == b"\x01\x02\x03\x04" * 2
    gpu.free(ptr)
    assert driver.live() == (0, 0)


def test_norm_unit_w_is_zero_after_construction(
    driver: Driver, gpu: CudaBackend
) -> None:
    with build(gpu) as arena:
        nbytes = arena.norm_unit_w_bytes
        assert driver.peek(arena.norm_unit_w, nbytes) == bytes(nbytes)
        assert driver.peek(arena.residual, 1) == bytes([FRESH])


def test_a_pattern_of_another_length_is_refused(gpu: CudaBackend) -> None:
    ptr = gpu.alloc(16)
    with pytest.raises(BackendError, match="memset_pattern: 3 bytes; a pattern has"):
        gpu.memset_pattern(ptr, b"abc", 2)
    with pytest.raises(BackendError, match="the destination is read-only"):
        gpu.copy_d2h(b"1234", ptr)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match="alloc: 0 bytes asked"):
        gpu.alloc(0)
    gpu.free(ptr)


def test_an_arena_beyond_free_memory_is_refused_before_it_allocates(
    driver: Driver,
) -> None:
    driver.reset(memory=1 << 20)
    gpu = CudaBackend()
    driver.clear()
    with pytest.raises(AllocationError) as caught:
        build(gpu)
    error = caught.value
    assert error.buffer is None
    assert error.nbytes == sum(oracle.metrale_sizes(MOE, **SMALL).values())
    assert (error.free, error.total) == (1 << 20, 1 << 20)
    assert "gdn_fla_scratch" in str(error)
    assert not driver.calls("cuMemAlloc")


def test_out_of_memory_names_what_was_asked_and_free(
    driver: Driver, gpu: CudaBackend
) -> None:
    with pytest.raises(OutOfMemoryError) as caught:
        gpu.alloc(81 << 30)
    assert caught.value.asked == 81 << 30
    assert (caught.value.free, caught.value.total) == (80 << 30, 80 << 30)
    cause = caught.value.__cause__
    assert isinstance(cause, CudaError)
    assert cause.status_name == "CUDA_ERROR_OUT_OF_MEMORY"


def test_a_failed_allocation_names_buffer_bytes_and_status(
    driver: Driver, gpu: CudaBackend
) -> None:
    sizes = oracle.metrale_sizes(MOE, **SMALL)
    live = [(name, nbytes) for name, nbytes in sizes.items() if nbytes]
    for position, (name, nbytes) in enumerate(live, start=1):
        driver.fail("cuMemAlloc", position, STATUS["out of memory"])
        with pytest.raises(AllocationError) as caught:
            build(gpu)
        error = caught.value
        assert (error.buffer, error.nbytes) == (name, nbytes)
        assert isinstance(error.__cause__, OutOfMemoryError)
        assert "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)" in str(error)
        assert error.largest[0][1] == max(sizes.values())
        assert driver.live() == (0, 0)


def test_an_error_carries_call_status_and_address(
    driver: Driver, gpu: CudaBackend
) -> None:
    with pytest.raises(CudaError) as caught:
        gpu.memset(DevicePtr(0x1234), 0, 8)
    error = caught.value
    assert (error.call, error.status) == ("cuMemsetD8", 1)
    assert error.status_name == "CUDA_ERROR_INVALID_VALUE"
    assert error.ptr == 0x1234
    assert "at 0x1234" in str(error) and "8 elements" in str(error)


def test_a_failed_memset_names_its_buffer(driver: Driver, gpu: CudaBackend) -> None:
    with build(gpu) as arena:
        driver.fail("cuMemsetD8Async", 3, STATUS["illegal address"])
        with pytest.raises(ClearError) as caught:
            arena.zero_all(0)
        assert caught.value.buffers == ("norm_output",)
        assert "norm_output: cannot be cleared: cuMemsetD8Async" in str(caught.value)
        assert isinstance(caught.value.__cause__, CudaError)
        assert caught.value.__cause__.status_name == "CUDA_ERROR_ILLEGAL_ADDRESS"


def step(arena: BufferArena) -> None:
    arena.zero_all(0)
    arena.zero_prefill_essentials(0)
    arena.zero_all_rows(0, tokens=2)
    report = arena.debug_buffer_checksum(0, "step", force=True)
    assert report is not None
    failed = [each for each in report.buffers if each.state == "failed"]
    if failed:
        # The probe goes on behind a failed copy, and says so.
        raise BackendError(failed[0].error or "")


def life(gpu: CudaBackend, placement: str) -> None:
    """Everything that an arena asks of its backend, once."""
    arena = build(gpu, placement=placement)
    try:
        step(arena)
    finally:
        arena.release()


def reported(error: BaseException | None) -> list[str]:
    """The buffers that an error, or one behind it, says could not be freed."""
    names: list[str] = []
    while error is not None:
        if isinstance(error, ReleaseError):
            names += [name for name, _ in error.failures]
        names += [note.split(" ")[0] for note in getattr(error, "__notes__", ())]
        error = error.__context__
    return names


@pytest.mark.parametrize("placement", ["separate", "slab"])
@pytest.mark.parametrize("status", sorted(STATUS))
def test_any_call_may_fail_with_any_status(
    driver: Driver, placement: str, status: str
) -> None:
    gpu = CudaBackend()
    driver.clear()
    life(gpu, placement)
    counts: dict[str, int] = {}
    for call in driver.calls():
        counts[call.name] = counts.get(call.name, 0) + 1
    for name, number in counts.items():
        for position in range(1, number + 1):
            driver.fail(name, position, STATUS[status])
            with pytest.raises(ArenaError) as caught:
                life(gpu, placement)
            driver.mend()
            # A context that could not be taken back stays behind in this thread.
            while int(ok(cu.cuCtxGetCurrent())):
                ok(cu.cuCtxPopCurrent())
            left = driver.live().allocations
            # What is left is what a free was refused for, and it is reported.
            assert left <= len(reported(caught.value)), (name, position)
            assert left <= 1
            if left:
                driver.reset()
                gpu = CudaBackend()
            life(gpu, placement)
            assert driver.live() == (0, 0)


def test_the_first_error_is_the_one_that_is_raised(
    driver: Driver, gpu: CudaBackend
) -> None:
    driver.fail("cuMemAlloc", 4, STATUS["out of memory"])
    driver.fail("cuMemFree", 2, STATUS["unknown"])
    with pytest.raises(AllocationError) as caught:
        build(gpu)
    assert caught.value.buffer == "qkv_output"
    (note,) = caught.value.__notes__
    assert note.startswith("residual could not be freed: cuMemFree")
    assert "CUDA_ERROR_UNKNOWN" in note


def test_a_release_reports_every_failure_and_frees_the_rest(
    driver: Driver, gpu: CudaBackend
) -> None:
    arena = build(gpu)
    before = driver.live().allocations
    driver.fail("cuMemFree", 1, STATUS["unknown"])
    driver.fail("cuMemFree", 5, STATUS["invalid value"])
    with pytest.raises(ReleaseError) as caught:
        arena.release()
    assert [name for name, _ in caught.value.failures] == [
        "hidden_states",
        "attn_output",
    ]
    assert driver.live().allocations == 2 < before


# cuda.core


@pytest.fixture
def core() -> Any:
    return pytest.importorskip("cuda.core")


def test_a_memory_resource_of_the_caller_is_used(driver: Driver, core: Any) -> None:
    device = core.Device(0)
    device.set_current()
    taken: list[int] = []

    class Resource(core.MemoryResource):  # type: ignore[misc]
        """Counts, and takes from cuMemAlloc."""

        def allocate(self, size: int, *, stream: Any) -> Any:
            taken.append(size)
            return core.Buffer.from_handle(int(ok(cu.cuMemAlloc(size))), size, mr=self)

        def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
            ok(cu.cuMemFree(cu.CUdeviceptr(int(ptr))))

        @property
        def is_device_accessible(self) -> bool:
            return True

        @property
        def is_host_accessible(self) -> bool:
            return False

        @property
        def device_id(self) -> int:
            return 0

    gpu = CudaBackend(memory_resource=Resource())
    with build(gpu) as arena:
        sizes = oracle.metrale_sizes(MOE, **SMALL)
        assert taken == [nbytes for nbytes in sizes.values() if nbytes]
        arena.zero_all(0)
    assert driver.live() == (0, 0)
    with pytest.raises(BackendError, match="is no live allocation of this backend"):
        gpu.free(DevicePtr(0x1000))
    ok(cu.cuCtxSetCurrent(None))


def test_a_resource_that_fails_is_reported(driver: Driver, core: Any) -> None:
    class Resource:
        def allocate(self, size: int, *, stream: Any) -> Any:
            raise RuntimeError("the pool is closed")

    with pytest.raises(AllocationError) as caught:
        build(CudaBackend(memory_resource=Resource()))
    assert caught.value.buffer == "hidden_states"
    assert "Resource.allocate: 1024 bytes: the pool is closed" in str(
        caught.value.__cause__
    )


# Wrappers, views, and the end of the process


def test_a_subclass_that_overrides_memset_async_sees_every_memset(
    driver: Driver,
) -> None:
    class Counting(CudaBackend):
        seen: list[int]

        def memset_async(
            self, ptr: DevicePtr, value: int, nbytes: int, stream: object
        ) -> None:
            self.seen.append(nbytes)
            super().memset_async(ptr, value, nbytes, stream)

    gpu = Counting()
    gpu.seen = []
    with build(gpu) as arena:
        arena.zero_all(0)
    sizes = oracle.metrale_sizes(MOE, **SMALL)
    assert gpu.seen == [sizes[name] for name in oracle.METRALE_ZERO_ALL]


def test_a_subclass_that_overrides_alloc_and_free_sees_every_one(
    driver: Driver,
) -> None:
    class Counting(CudaBackend):
        asked: list[int]
        freed: list[int]

        def alloc(self, nbytes: int) -> DevicePtr:
            self.asked.append(nbytes)
            return super().alloc(nbytes)

        def free(self, ptr: DevicePtr) -> None:
            self.freed.append(ptr)
            super().free(ptr)

    gpu = Counting()
    gpu.asked, gpu.freed = [], []
    with build(gpu) as arena:
        pointers = [getattr(arena, name) for name in BUFFERS]
    sizes = oracle.metrale_sizes(MOE, **SMALL)
    assert gpu.asked == [nbytes for nbytes in sizes.values() if nbytes]
    assert gpu.freed == [ptr for ptr in pointers if ptr]
    assert driver.live() == (0, 0)


def test_a_subclass_that_overrides_free_alone_is_given_pointers(
    driver: Driver,
) -> None:
    class Freeing(CudaBackend):
        freed: list[DevicePtr]

        def free(self, ptr: DevicePtr) -> None:
            assert type(ptr) is DevicePtr
            self.freed.append(ptr)
            super().free(ptr)

    gpu = Freeing()
    gpu.freed = []
    with build(gpu) as arena:
        pointers = [getattr(arena, name) for name in BUFFERS]
    assert gpu.freed == [ptr for ptr in pointers if ptr]
    assert driver.live() == (0, 0)


def test_the_context_is_asked_for_once_for_all_allocations_and_all_frees(
    driver: Driver, gpu: CudaBackend
) -> None:
    handles: list[Any] = []
    gpu.alloc_many([256, 512, 1024], handles)
    assert gpu.free_many(handles) == []
    names = [call.name for call in driver.calls()]
    assert names.count("cuMemAlloc") == names.count("cuMemFree") == 3
    assert names.count("cuCtxGetCurrent") == 2
    assert driver.live() == (0, 0)


def test_what_was_allocated_before_one_of_many_failed_is_told(
    driver: Driver, gpu: CudaBackend
) -> None:
    handles: list[Any] = []
    driver.fail("cuMemAlloc", 3, STATUS["out of memory"])
    with pytest.raises(OutOfMemoryError) as caught:
        gpu.alloc_many([256, 512, 1024, 2048], handles)
    assert caught.value.asked == 1024
    assert driver.live() == (2, 256 + 512)
    assert len(handles) == 2
    # Behind what is there already.
    driver.fail("cuMemAlloc", 2, STATUS["out of memory"])
    with pytest.raises(OutOfMemoryError) as caught:
        gpu.alloc_many([1024, 2048], handles)
    assert caught.value.asked == 2048
    assert driver.live() == (3, 256 + 512 + 1024)
    assert len(handles) == 3
    assert gpu.free_many(handles) == []
    assert driver.live() == (0, 0)


def test_every_one_of_many_is_freed_whatever_the_others_do(
    driver: Driver, gpu: CudaBackend
) -> None:
    handles: list[Any] = []
    gpu.alloc_many([256] * 5, handles)
    driver.fail("cuMemFree", 2, STATUS["unknown"])
    ((place, error),) = gpu.free_many(handles)
    assert (place, type(error)) == (1, CudaError)
    assert f"at {int(handles[1]):#x}" in str(error)
    assert driver.live().allocations == 1
    gpu.free(DevicePtr(handles[1]))
    (failure,) = gpu.free_many(handles[:1])
    assert failure[0] == 0
    assert "INVALID_VALUE" in str(failure[1])
    gpu.close()
    failures = gpu.free_many(handles)
    assert [place for place, _ in failures] == [0, 1, 2, 3, 4]
    assert all("the backend is closed" in str(error) for _, error in failures)


@pytest.mark.parametrize(
    ("call", "nth"), [("cuMemFree", 2), ("cuCtxGetCurrent", 1), ("cuCtxPushCurrent", 1)]
)
def test_an_interrupt_waits_until_all_are_freed(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    gpu = CudaBackend()
    handles: list[Any] = []
    gpu.alloc_many([256] * 3, handles)

    class Interrupted:
        """The driver, one of whose calls is interrupted before it is made."""

        count = 0

        def __getattr__(self, name: str) -> Any:
            return self.stopped if name == call else getattr(cu, name)

        def stopped(self, *arguments: Any) -> Any:
            self.count += 1
            if self.count == nth:
                raise KeyboardInterrupt
            return getattr(cu, call)(*arguments)

    monkeypatch.setattr(gpu, "_driver", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        gpu.free_many(handles)
    # The one whose own free was never made.
    left = handles[1:2] if call == "cuMemFree" else []
    assert driver.live().allocations == len(left)
    for handle in left:
        gpu.free(DevicePtr(handle))


class Interrupted(list[Any]):
    """Handles before the second of which an interrupt comes, outside of any free."""

    def __iter__(self) -> Iterator[Any]:
        return Handles(super().__iter__())


class Handles(Iterator[Any]):
    count = 0

    def __init__(self, handles: Iterator[Any]) -> None:
        self.handles = handles

    def __next__(self) -> Any:
        self.count += 1
        if self.count == 2:
            raise KeyboardInterrupt
        return next(self.handles)


@pytest.mark.parametrize("free", [CudaBackend.free_many, free_each])
def test_an_interrupt_between_two_frees_waits_too(
    driver: Driver, gpu: CudaBackend, free: Callable[..., object]
) -> None:
    handles = Interrupted()
    gpu.alloc_many([256] * 3, handles)
    with pytest.raises(KeyboardInterrupt):
        free(gpu, handles)
    assert driver.live() == (0, 0)


def test_views_carry_the_device_and_the_interfaces(
    driver: Driver, gpu: CudaBackend
) -> None:
    with build(gpu) as arena:
        view = arena.tensor("hidden_states", tokens=3)
        assert view.__dlpack_device__() == (2, 0)
        assert view.shape == (3, 64)
        assert not hasattr(view, "__cuda_array_interface__")
        ids = arena.tensor("token_ids")
        interface = ids.__cuda_array_interface__
        assert interface["data"] == (int(arena.token_ids), False)
        assert interface["typestr"] == "<u4"
        capsule = view.__dlpack__(stream=1)
        assert "dltensor" in repr(capsule)
    with pytest.raises(ArenaError, match="a view of hidden_states after release"):
        view.__dlpack__()


def test_a_closed_backend_is_refused(driver: Driver, gpu: CudaBackend) -> None:
    gpu.close()
    gpu.close()
    assert driver.objects().contexts == 0
    with pytest.raises(BackendError, match="the backend is closed; make a new one"):
        gpu.alloc(8)


def test_a_missing_device_is_a_clear_error(driver: Driver) -> None:
    with pytest.raises(CudaError, match="cuDeviceGet: CUDA_ERROR_INVALID_DEVICE"):
        CudaBackend(device=7)


def test_a_dropped_arena_warns_and_frees(driver: Driver, gpu: CudaBackend) -> None:
    arena = build(gpu)
    with pytest.warns(ResourceWarning, match="buffer arena was dropped without"):
        del arena
        gc.collect()
    assert driver.live() == (0, 0)


@pytest.mark.parametrize("gone", [False, True])
def test_an_unreleased_arena_does_not_crash_the_exit(
    driver: Driver, gone: bool
) -> None:
    script = textwrap.dedent(f"""
        import sys
        sys.path[:0] = {[str(ROOT / "generated"), str(ROOT / "tests")]!r}
        from pathlib import Path
        from driver.simulated import Driver
        driver = Driver(Path({str(driver.library)!r}))
        driver.reset()
        from metrale_arena import BufferArena, CudaBackend, Levers, ModelConfig
        arena = BufferArena(
            ModelConfig(**{dict(MOE)!r}), **{SMALL!r}, levers=Levers(),
            gpu=CudaBackend(),
        )
        if {gone}:
            # A driver that shuts down answers every call with this.
            driver.fail("*", 1, 4, sticky=True)
    """)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "default", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning: buffer arena was dropped without release" in done.stderr
    assert "Segmentation" not in done.stderr


@pytest.fixture(autouse=True)
def no_context_is_left(simulated_driver: Driver) -> Iterator[None]:
    """The thread has the context that it had before: none."""
    yield
    current = cu.cuCtxGetCurrent()
    assert current[0] or not int(current[1])


def test_real_configs_fit_the_device_that_they_are_for(
    driver: Driver, gpu: CudaBackend
) -> None:
    wide = limits(tokens=8192, seq_len=65536)
    config = ModelConfig(**QWEN3_NEXT)
    with BufferArena(config, **wide, levers=Levers(), gpu=gpu) as arena:
        wanted = sum(oracle.metrale_sizes(QWEN3_NEXT, **wide).values())
        assert driver.live().bytes == arena.sizes.total_bytes == wanted
