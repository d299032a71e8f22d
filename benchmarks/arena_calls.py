"""What the emitted arena costs against hand-written cuda-python, as ratios of one run.

Runs the real bindings on the simulated driver of tests/driver, so that the figures are
the host's part alone: no device is involved. By the clock, since the driver's threads
are no cost of the host; what the package's import takes is CPU time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from common import DATA, NOTHING, ROOT, Row, calls, pairs, process, table

from driver.simulated import Driver, build
from metrale_arena import (
    BUFFERS,
    BufferArena,
    BufferSizes,
    CudaBackend,
    GpuBackend,
    Levers,
    ModelConfig,
)

CONFIG = ModelConfig.from_hf(DATA / "Qwen3-Next-80B-A3B-Thinking.json")
TOKENS = 1
COUNT = 41
# What an arena's life takes, in parts of the bare calls.
_LIFE = (
    "the simulated driver takes 0.4 us for an allocation and its free, so that Python "
    "shows."
)


def limits() -> dict[str, Any]:
    """Small limits: the simulated driver takes time for each page of an allocation."""
    return {
        "max_batch_tokens": 16,
        "max_seq_len": 1024,
        "kv_block_size": 16,
        "max_batch_size": 32,
    }


def check(status: Any) -> None:
    """What a careful hand-written call does with the driver's answer."""
    if status:
        raise RuntimeError(status)


def hand_written_clear(
    driver: Any, ranges: list[tuple[int, int]], stream: int
) -> Callable[[], None]:
    """A loop over converted pointers that checks every status."""
    memset = driver.cuMemsetD8Async
    handle = driver.CUstream(stream)
    kept = [(driver.CUdeviceptr(ptr), nbytes) for ptr, nbytes in ranges]

    def clear() -> None:
        for ptr, nbytes in kept:
            (status,) = memset(ptr, 0, nbytes, handle)
            if status:
                check(status)

    return clear


def hand_written_life(driver: Any, sizes: Sequence[int]) -> Callable[[], None]:
    """The bare allocations and frees, each checked: no name, no fill, no context."""

    def life() -> None:
        pointers = []
        for nbytes in sizes:
            status, ptr = driver.cuMemAlloc(nbytes)
            if status:
                check(status)
            pointers.append(ptr)
        for ptr in pointers:
            (status,) = driver.cuMemFree(ptr)
            if status:
                check(status)

    return life


class Slots:
    """The yardstick of an accessor."""

    __slots__ = ("hidden_states",)

    def __init__(self, value: int) -> None:
        self.hidden_states = value


def rows() -> list[Row]:
    """Every figure, measured in this process."""
    with tempfile.TemporaryDirectory() as folder:
        simulated = Driver(build(Path(folder)))
        simulated.reset(memory=1 << 40)
        return _rows(simulated)


class Wrapped:
    """A backend as its users wrap one: what GpuBackend has, and nothing else."""

    def __init__(self, gpu: CudaBackend) -> None:
        self.alloc, self.free = gpu.alloc, gpu.free
        self.memset, self.memset_async = gpu.memset, gpu.memset_async
        self.copy_h2d, self.copy_d2h = gpu.copy_h2d, gpu.copy_d2h
        self.copy_d2d, self.synchronize = gpu.copy_d2d, gpu.synchronize
        self.total_memory, self.free_memory = gpu.total_memory, gpu.free_memory
        self.default_stream: object = gpu.default_stream


def _rows(simulated: Driver) -> list[Row]:
    driver = import_module("cuda.bindings.driver")
    gpu = CudaBackend()
    check(driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])[0])
    return [
        *_zeroing(simulated, driver, gpu),
        _accessor(gpu),
        *_lives(simulated, driver, gpu),
        _import(),
    ]


def _build(gpu: GpuBackend, sizes: BufferSizes, placement: Any) -> BufferArena:
    return BufferArena.from_sizes(
        CONFIG, sizes, **limits(), levers=Levers(), gpu=gpu, placement=placement
    )


def _sizes() -> BufferSizes:
    return BufferSizes.from_config(CONFIG, **limits(), levers=Levers())


def _zeroing(simulated: Driver, driver: Any, gpu: CudaBackend) -> list[Row]:
    stream = int(driver.cuStreamCreate(1)[1])
    built = _build(gpu, _sizes(), "separate")
    wrapped = _build(Wrapped(gpu), _sizes(), "separate")
    plan = built.zero_plan(TOKENS)
    ranges = [(int(getattr(built, entry.buffers[0])), entry.nbytes) for entry in plan]
    by_hand = hand_written_clear(driver, ranges, stream)

    def drained(work: Callable[[], object]) -> Callable[[], float]:
        # The simulated driver queues; real work would drain on the device meanwhile.
        def run() -> None:
            work()
            simulated.clear()

        return calls(run, 40, perf_counter)

    figure = f"`zero_all_rows(stream, tokens=1)`, {len(plan)} memsets, steady"
    yardstick = "a checked loop over kept `CUdeviceptr`s"
    found = [
        pairs(
            figure,
            yardstick,
            drained(lambda: built.zero_all_rows(stream, tokens=TOKENS)),
            drained(by_hand),
            1.05,
            COUNT,
            "the context is made current for each call, 0.2 us, and the plan found.",
        ),
        pairs(
            f"{figure}, a wrapped backend",
            yardstick,
            drained(lambda: wrapped.zero_all_rows(stream, tokens=TOKENS)),
            drained(by_hand),
            1.15,
            COUNT,
            "a backend that has `memset_async` alone makes the context current for "
            "each range by itself, and converts its pointer; it takes `memset_ranges` "
            "of its own to do that once.",
        ),
    ]
    driver.cuStreamSynchronize(driver.CUstream(stream))
    built.release()
    wrapped.release()
    return found


def _accessor(gpu: CudaBackend) -> Row:
    def read(owner: Any) -> Callable[[], float]:
        def run() -> None:
            for _ in range(1000):
                owner.hidden_states  # noqa: B018

        return calls(run, 20, perf_counter)

    with _build(gpu, _sizes(), "separate") as built:
        return pairs(
            "an accessor, 1,000 times",
            "an attribute of a class with slots",
            read(built),
            read(Slots(int(built.hidden_states))),
            1.10,
            COUNT,
        )


def _lives(simulated: Driver, driver: Any, gpu: CudaBackend) -> list[Row]:
    # Sizes that switch every buffer on; what a GPU takes for more bytes is not here.
    every = BufferSizes(*[4096] * len(BUFFERS), trimmed=0)
    model = [nbytes for nbytes in _sizes().as_dict().values() if nbytes]

    def life(build: Callable[[], BufferArena]) -> Callable[[], float]:
        def run() -> None:
            build().release()
            simulated.clear()

        return calls(run, 5, perf_counter)

    def bare(sizes: Sequence[int]) -> Callable[[], float]:
        by_hand = hand_written_life(driver, sizes)

        def run() -> None:
            by_hand()
            simulated.clear()

        return calls(run, 5, perf_counter)

    count = len(BUFFERS)
    yardstick = f"the bare {count} allocations and frees, checked"
    return [
        pairs(
            f"construct from sizes and release, {count} buffers",
            yardstick,
            life(lambda: _build(gpu, every, "separate")),
            bare(every[:-1]),
            1.50,
            COUNT,
            f"{_LIFE} A `DevicePtr` for each address and the driver's own type for "
            "it again at the free are 0.6 of the yardstick, which keeps the driver's "
            "objects; 92 accessors set, bound and overwritten 0.2; all else is done "
            "once for all buffers: checks of limits, sizes, free memory and "
            "alignment, a layout, a fill that is waited for, a line of log. Below 2 "
            "it would take accessors that are the driver's objects.",
        ),
        pairs(
            f"construct from sizes and release, {count} buffers in a slab",
            yardstick,
            life(lambda: _build(gpu, every, "slab")),
            bare(every[:-1]),
            0.50,
            COUNT,
            f"{_LIFE} 46 offsets and a `DevicePtr` for each are 0.5 of the yardstick "
            "alone, 92 accessors set, bound and overwritten 0.2; the fill, the layout "
            "and the checks are the rest. It would take accessors that are made when "
            "they are read, at nine times an attribute's cost.",
        ),
        pairs(
            f"construct from the config and release, {len(model)} buffers live",
            f"the bare {len(model)} allocations and frees, checked",
            life(lambda: BufferArena(CONFIG, **limits(), levers=Levers(), gpu=gpu)),
            bare(model),
            1.50,
            COUNT,
            f"{_LIFE} As from sizes, and the sizes are computed: who has them already "
            "takes `from_sizes`.",
        ),
    ]


def _import() -> Row:
    folder = ROOT / "generated"
    return pairs(
        "`import metrale_arena`",
        "P",
        process((sys.executable, "-c", "import metrale_arena"), folder),
        process(NOTHING, folder),
        3.5,
        COUNT,
    )


if __name__ == "__main__":
    print(table(rows()))
