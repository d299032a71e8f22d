"""The arena on a real CUDA device; skipped, with the reason, where there is none.

Shows on hardware what the rest of the suite shows on host memory and on the simulated
driver, and the one thing that neither can: time on the device, as a ratio.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metrale_arena import (
    ArenaError,
    BufferArena,
    CudaBackend,
    Debug,
    Levers,
    ModelConfig,
    selfcheck,
)

pytestmark = pytest.mark.gpu

DATA = Path(__file__).resolve().parents[1] / "data"
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 8192,
    "max_seq_len": 65536,
    "kv_block_size": 16,
    "max_batch_size": 32,
}


@pytest.fixture(scope="module")
def gpu() -> CudaBackend:
    with contextlib.suppress(OSError):
        if hasattr(ctypes.CDLL("libcuda.so.1"), "sim_reset"):
            pytest.skip("the simulated driver is loaded; run these with -m gpu")
    try:
        return CudaBackend(device=0)
    except ArenaError as error:
        pytest.skip(f"no CUDA device: {error}")


@pytest.fixture
def config() -> ModelConfig:
    return ModelConfig.from_hf(DATA / "Qwen3-Next-80B-A3B-Thinking.json")


@pytest.fixture(params=["separate", "slab"])
def arena(
    request: pytest.FixtureRequest, gpu: CudaBackend, config: ModelConfig
) -> Iterator[BufferArena]:
    placement = request.param
    with BufferArena(
        config, **LIMITS, levers=Levers(), gpu=gpu, placement=placement
    ) as built:
        yield built


@pytest.fixture
def driver() -> Any:
    return pytest.importorskip("cuda.bindings.driver")


@pytest.fixture
def stream(gpu: CudaBackend, driver: Any) -> Iterator[int]:
    flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
    status, context = driver.cuDevicePrimaryCtxRetain(gpu.device)
    assert not status
    driver.cuCtxSetCurrent(context)
    status, made = driver.cuStreamCreate(flags)
    assert not status
    yield int(made)
    driver.cuStreamDestroy(made)
    driver.cuDevicePrimaryCtxRelease(gpu.device)


def content(gpu: CudaBackend, arena: BufferArena, name: str, nbytes: int) -> bytes:
    read = bytearray(min(nbytes, getattr(arena, f"{name}_bytes")))
    gpu.copy_d2h(read, getattr(arena, name))
    return bytes(read)


def test_the_package_passes_its_own_selfcheck(
    gpu: CudaBackend, config: ModelConfig
) -> None:
    report = selfcheck(config, **LIMITS, levers=Levers(), gpu=gpu)
    assert report.ok, str(report)


def test_a_decode_step_clears_one_row_on_its_own_stream(
    gpu: CudaBackend, arena: BufferArena, stream: int
) -> None:
    gpu.memset(arena.hidden_states, 0xA5, arena.hidden_states_bytes)
    arena.zero_all_rows(stream, tokens=1)
    gpu.synchronize(stream)
    row = 2048 * 2
    read = content(gpu, arena, "hidden_states", 2 * row)
    assert read == bytes(row) + b"\xa5" * row


@pytest.mark.parametrize("placement", ["separate", "slab"])
def test_a_memset_past_its_buffer_is_found_on_its_own_stream(
    gpu: CudaBackend, config: ModelConfig, stream: int, placement: Any
) -> None:
    # 15 rows of padding, as a kernel of 16-row tiles writes them for 8193 rows.
    row, limits = 2048 * 2, {**LIMITS, "max_batch_tokens": 8193}
    with BufferArena(
        config,
        **limits,
        levers=Levers(),
        gpu=gpu,
        placement=placement,
        debug=Debug(guard=15 * row),
    ) as arena:
        gpu.memset_async(arena.moe_output, 0, 8208 * row, stream)
        assert arena.check_guards(stream) == ()
        gpu.memset_async(arena.norm_output, 0, 8208 * row, stream)
        (overrun,) = arena.check_guards(stream)
    assert overrun.buffer == "norm_output"
    assert (overrun.first, overrun.reach) == (0, 15 * row)


def test_zeroing_can_be_captured_and_replayed(
    gpu: CudaBackend, arena: BufferArena, stream: int, driver: Any
) -> None:
    arena.zero_all_rows(stream, tokens=1)
    gpu.synchronize(stream)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    handle = driver.CUstream(stream)
    assert not driver.cuStreamBeginCapture(handle, mode)[0]
    arena.zero_all_rows(stream, tokens=1)
    status, graph = driver.cuStreamEndCapture(handle)
    assert not status
    status, ready = driver.cuGraphInstantiate(graph, 0)
    assert not status
    for _ in range(3):
        gpu.memset(arena.residual, 0xA5, arena.residual_bytes)
        assert not driver.cuGraphLaunch(ready, handle)[0]
        gpu.synchronize(stream)
        row = 2048 * 2
        assert content(gpu, arena, "residual", 2 * row) == bytes(row) + b"\xa5" * row
    driver.cuGraphExecDestroy(ready)
    driver.cuGraphDestroy(graph)


def test_zero_all_costs_what_one_memset_of_the_same_bytes_costs(
    gpu: CudaBackend, arena: BufferArena, stream: int, driver: Any
) -> None:
    plan = arena.zero_plan()
    nbytes = sum(entry.nbytes for entry in plan)
    block = gpu.alloc(nbytes)

    def milliseconds(work: Any) -> float:
        handle = driver.CUstream(stream)
        _, start = driver.cuEventCreate(0)
        _, end = driver.cuEventCreate(0)
        times = []
        for _ in range(12):
            driver.cuEventRecord(start, handle)
            work()
            driver.cuEventRecord(end, handle)
            driver.cuEventSynchronize(end)
            times.append(float(driver.cuEventElapsedTime(start, end)[1]))
        return sorted(times[2:])[5]

    try:
        one = milliseconds(lambda: gpu.memset_async(block, 0, nbytes, stream))
        every = milliseconds(lambda: arena.zero_all(stream))
    finally:
        gpu.free(block)
    print(f"\nzero_all: {len(plan)} memsets, {nbytes} bytes, {every / one:.3f} x one")
    # A bound against gross mistakes only; the figure is for a reader.
    assert every < 3 * one + 1


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_views_reach_other_libraries_without_a_copy(
    gpu: CudaBackend, arena: BufferArena, library: str
) -> None:
    module = pytest.importorskip(library)
    gpu.memset(arena.hidden_states, 0, arena.hidden_states_bytes)
    name = "hidden_states" if library == "torch" else "token_ids"
    view = arena.tensor(name, tokens=7)
    tensor = module.from_dlpack(view)
    pointer = tensor.data_ptr() if library == "torch" else tensor.data.ptr
    assert pointer == int(view.ptr)
    assert tuple(tensor.shape) == view.shape
