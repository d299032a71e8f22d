"""What the emitted arena costs against hand-written cuda-python, as ratios of one run.

Runs the real bindings on the simulated driver of tests/driver, so that the figures are
the host's part alone: no device is involved. By the clock, since the driver's threads
are no cost of the host; what the package's import takes is CPU time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
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
    DevicePtr,
    GpuBackend,
    Levers,
    ModelConfig,
)

CONFIG = ModelConfig.from_hf(DATA / "Qwen3-Next-80B-A3B-Thinking.json")
TOKENS = 1
COUNT = 41
LEVERS = Levers()
# Small ones: the simulated driver takes time for each page of an allocation.
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 16,
    "max_seq_len": 1024,
    "kv_block_size": 16,
    "max_batch_size": 32,
}
# What an arena's life takes, in parts of the bare calls.
_LIFE = (
    "the simulated driver takes 0.4 us for an allocation and its free, so that Python "
    "shows: an arena by hand, with the same pointers and without a check, is told of "
    "below."
)


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


class Plain:
    """A backend as its users wrap one: what GpuBackend asks for, and no more."""

    def __init__(self, gpu: CudaBackend) -> None:
        self.alloc, self.free = gpu.alloc, gpu.free
        self.memset, self.memset_async = gpu.memset, gpu.memset_async
        self.copy_h2d, self.copy_d2h = gpu.copy_h2d, gpu.copy_d2h
        self.copy_d2d, self.synchronize = gpu.copy_d2d, gpu.synchronize
        self.total_memory, self.free_memory = gpu.total_memory, gpu.free_memory
        self.default_stream: object = gpu.default_stream


class Wrapped(Plain):
    """The same, and what SupportsRangeMemset asks for, handed on by its own methods."""

    def __init__(self, gpu: CudaBackend) -> None:
        super().__init__(gpu)
        self.gpu = gpu

    def prepare_ranges(self, ranges: Any, value: int) -> Any:
        return self.gpu.prepare_ranges(ranges, value)

    def memset_ranges(self, prepared: Any, stream: object) -> None:
        self.gpu.memset_ranges(prepared, stream)


def by_hand() -> Any:
    """The class of an arena by hand: it checks what the driver says, and nothing else.

    A pointer and the bytes of each buffer lie in slots; release overwrites both.
    """
    names = list(BUFFERS)
    slots = [*names, *(f"{name}_bytes" for name in names), "kept"]
    pointers = ", ".join(f"self.{name}" for name in names)
    nbytes = ", ".join(f"self.{name}_bytes" for name in names)
    forget = "".join(
        f"        self.{name} = NULL\n        self.{name}_bytes = 0\n" for name in names
    )
    # As text, since it has as many of everything as the schema has buffers.
    text = f"""
class ByHand:
    __slots__ = {tuple(slots)}

    @classmethod
    def separate(cls, driver, sizes):
        self = cls()
        self.kept = kept = []
        for nbytes in sizes:
            status, ptr = driver.cuMemAlloc(nbytes)
            if status:
                check(status)
            kept.append(ptr)
        {pointers} = map(DevicePtr, kept)
        {nbytes} = sizes
        return self

    @classmethod
    def slab(cls, driver, sizes):
        self = cls()
        offsets, end = [], 0
        for nbytes in sizes:
            end += -end % 256
            offsets.append(end)
            end += nbytes
        status, ptr = driver.cuMemAlloc(end)
        if status:
            check(status)
        self.kept, base = [ptr], int(ptr)
        {pointers} = [DevicePtr(base + offset) for offset in offsets]
        {nbytes} = sizes
        return self

    def release(self, driver):
{forget}
        for ptr in self.kept:
            (status,) = driver.cuMemFree(ptr)
            if status:
                check(status)
"""
    scope = {"check": check, "DevicePtr": DevicePtr, "NULL": DevicePtr.NULL}
    exec(text, scope)
    return scope["ByHand"]


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
        CONFIG, sizes, **LIMITS, levers=LEVERS, gpu=gpu, placement=placement
    )


def _sizes() -> BufferSizes:
    return BufferSizes.from_config(CONFIG, **LIMITS, levers=LEVERS)


def _drained(
    simulated: Driver, loops: int, work: Callable[[], object]
) -> Callable[[], float]:
    def run() -> None:
        work()
        # The simulated driver queues; real work would drain on the device meanwhile.
        simulated.clear()

    return calls(run, loops, perf_counter)


def _zeroing(simulated: Driver, driver: Any, gpu: CudaBackend) -> list[Row]:
    stream = int(driver.cuStreamCreate(1)[1])
    built = _build(gpu, _sizes(), "separate")
    wrapped = _build(Wrapped(gpu), _sizes(), "separate")
    plain = _build(Plain(gpu), _sizes(), "separate")
    plan = built.zero_plan(TOKENS)
    ranges = [(int(getattr(built, entry.buffers[0])), entry.nbytes) for entry in plan]
    bare = hand_written_clear(driver, ranges, stream)

    drained = partial(_drained, simulated, 40)
    figure = f"`zero_all_rows(stream, tokens=1)`, {len(plan)} memsets, steady"
    yardstick = "a checked loop over kept `CUdeviceptr`s"
    found = [
        pairs(
            figure,
            yardstick,
            drained(lambda: built.zero_all_rows(stream, tokens=TOKENS)),
            drained(bare),
            1.05,
            COUNT,
            "the context is made current for each call, 0.2 us, and the plan found.",
        ),
        pairs(
            f"{figure}, through a wrapper of the protocols",
            yardstick,
            drained(lambda: wrapped.zero_all_rows(stream, tokens=TOKENS)),
            drained(bare),
            1.15,
            COUNT,
            "as above, and a call more.",
        ),
        pairs(
            f"{figure}, through a wrapper of GpuBackend alone",
            yardstick,
            drained(lambda: plain.zero_all_rows(stream, tokens=TOKENS)),
            drained(bare),
            None,
            COUNT,
            "`memset_async` has to make the context current for each range by itself, "
            "and to convert its pointer; a backend of one's own takes `memset_ranges` "
            "to do that once.",
        ),
    ]
    driver.cuStreamSynchronize(driver.CUstream(stream))
    for arena in (built, wrapped, plain):
        arena.release()
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

    drained = partial(_drained, simulated, 5)

    def life(build: Callable[[], BufferArena]) -> Callable[[], float]:
        return drained(lambda: build().release())

    def bare(sizes: Sequence[int]) -> Callable[[], float]:
        return drained(hand_written_life(driver, sizes))

    arena, sizes = by_hand(), every[:-1]
    count = len(BUFFERS)
    yardstick = f"the bare {count} allocations and frees, checked"
    return [
        pairs(
            f"construct from sizes and release, {count} buffers",
            yardstick,
            life(lambda: _build(gpu, every, "separate")),
            bare(sizes),
            1.50,
            COUNT,
            f"{_LIFE} Ours adds checks of limits, sizes, free memory, addresses and "
            "alignment, 0.3 of the yardstick; pointers that know their regions, 0.1; a "
            "fill that is waited for, a line of log, the calls between, 0.2. It would "
            "take an arena without most of that.",
        ),
        pairs(
            f"construct from sizes and release, {count} buffers in a slab",
            yardstick,
            life(lambda: _build(gpu, every, "slab")),
            bare(sizes),
            0.50,
            COUNT,
            f"{_LIFE} It leaves next to no room. Ours adds checks of limits, sizes and "
            "free memory, 0.15 of the yardstick; alignments of each buffer's own and "
            "pointers that know their regions, 0.1; a fill waited for and a line "
            "of log, 0.1; what the arena keeps beside its pointers, and calls, 0.2.",
        ),
        pairs(
            f"an arena by hand, {count} buffers",
            yardstick,
            drained(lambda: arena.separate(driver, sizes).release(driver)),
            bare(sizes),
            None,
            COUNT,
            "pointers and bytes in slots, which release overwrites, and no checks.",
        ),
        pairs(
            f"an arena by hand, {count} buffers in a slab",
            yardstick,
            drained(lambda: arena.slab(driver, sizes).release(driver)),
            bare(sizes),
            None,
            COUNT,
            "the same at offsets of one allocation.",
        ),
        pairs(
            f"construct from the config and release, {len(model)} buffers live",
            f"the bare {len(model)} allocations and frees, checked",
            life(lambda: BufferArena(CONFIG, **LIMITS, levers=LEVERS, gpu=gpu)),
            bare(model),
            None,
            COUNT,
            "as from sizes, and the sizes are computed: who has them already takes "
            "`from_sizes`.",
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
