"""What the emitted arena costs against hand-written cuda-python, as ratios of one run.

Runs the real bindings on the simulated driver of tests/driver, so that the figures are
the host's part alone: no device is involved. By the clock, since the driver's threads
are no cost of the host.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from common import DATA, Row, calls, pairs, table

from driver.simulated import Driver, build
from metrale_arena import (
    BUFFERS,
    BufferArena,
    BufferSizes,
    CudaBackend,
    Levers,
    ModelConfig,
)

MODEL = DATA / "Qwen3-Next-80B-A3B-Thinking.json"
TOKENS = 1
COUNT = 41
# Beside the driver's calls, which answer at once here.
_LIFE = (
    "beside the driver's calls, construction sets 92 accessors, lays out the metadata "
    "block and plans the zeroing, about 0.1 ms once in the life of a model."
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


def hand_written_life(
    driver: Any, sizes: dict[str, int], filled: str
) -> Callable[[], None]:
    """The driver calls of an arena's life, in the same order, each checked."""

    def current() -> None:
        status, _ = driver.cuCtxGetCurrent()
        check(status)

    def life() -> None:
        current()
        check(driver.cuMemGetInfo()[0])
        pointers = {}
        for name, nbytes in sizes.items():
            if nbytes:
                current()
                status, pointers[name] = driver.cuMemAlloc(nbytes)
                check(status)
        current()
        check(driver.cuMemsetD8(pointers[filled], 0, sizes[filled])[0])
        check(driver.cuStreamSynchronize(0)[0])
        for ptr in pointers.values():
            current()
            check(driver.cuMemFree(ptr)[0])

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


def _rows(simulated: Driver) -> list[Row]:
    driver = import_module("cuda.bindings.driver")

    config, levers = ModelConfig.from_hf(MODEL), Levers()
    gpu = CudaBackend()
    check(driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])[0])
    stream = int(driver.cuStreamCreate(1)[1])
    sizes = BufferSizes.from_config(config, **limits(), levers=levers)
    live = [nbytes for nbytes in sizes.as_dict().values() if nbytes]
    filled = next(name for name, info in BUFFERS.items() if info.fill)

    def arena(placement: Any = "separate") -> BufferArena:
        return BufferArena.from_sizes(
            config, sizes, **limits(), levers=levers, gpu=gpu, placement=placement
        )

    found = []
    built = arena()
    plan = built.zero_plan(TOKENS)
    ranges = [(int(getattr(built, entry.buffers[0])), entry.nbytes) for entry in plan]
    by_hand = hand_written_clear(driver, ranges, stream)

    def drained(work: Callable[[], object]) -> Callable[[], object]:
        # The simulated driver queues; real work would drain on the device meanwhile.
        def run() -> None:
            work()
            simulated.clear()

        return run

    found.append(
        pairs(
            f"`zero_all_rows(stream, tokens=1)`, {len(plan)} memsets, steady",
            "a checked loop over kept `CUdeviceptr`s",
            calls(
                drained(lambda: built.zero_all_rows(stream, tokens=TOKENS)),
                40,
                perf_counter,
            ),
            calls(drained(by_hand), 40, perf_counter),
            1.10,
            COUNT,
            "the simulated driver answers at once.",
        )
    )
    driver.cuStreamSynchronize(driver.CUstream(stream))
    slots = Slots(int(built.hidden_states))

    def read(owner: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in range(1000):
                owner.hidden_states  # noqa: B018

        return run

    found.append(
        pairs(
            "an accessor, 1,000 times",
            "an attribute of a class with slots",
            calls(read(built), 20, perf_counter),
            calls(read(slots), 20, perf_counter),
            1.10,
            COUNT,
        )
    )
    built.release()

    def separate() -> None:
        arena().release()
        simulated.clear()

    def slab() -> None:
        arena("slab").release()
        simulated.clear()

    def bare() -> None:
        life()
        simulated.clear()

    life = hand_written_life(driver, sizes.as_dict(), filled)
    count = len(live)
    found.append(
        pairs(
            f"construct and release, {count} of {len(BUFFERS)} buffers live",
            "the same driver calls by hand, checked",
            calls(separate, 5, perf_counter),
            calls(bare, 5, perf_counter),
            1.10,
            COUNT,
            _LIFE,
        )
    )
    found.append(
        pairs(
            "construct and release from a slab",
            f"the {count} allocations by hand",
            calls(slab, 5, perf_counter),
            calls(bare, 5, perf_counter),
            0.50,
            COUNT,
            _LIFE,
        )
    )
    return found


if __name__ == "__main__":
    print(table(rows()))
