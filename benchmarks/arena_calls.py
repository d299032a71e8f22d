"""What the emitted arena costs against hand-written cuda-python, as ratios of one run.

Runs the real bindings on the simulated driver of tests/driver, so that the figures are
the host's part alone: no device is involved. Each pair is timed alternately, and the
ratio is the median of the pairs' ratios. `--write` puts the table into README.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "generated"), str(ROOT / "tests")]

from driver.simulated import Driver, build  # noqa: E402
from metrale_arena import (  # noqa: E402
    BUFFERS,
    BufferArena,
    BufferSizes,
    CudaBackend,
    Levers,
    ModelConfig,
)

MODEL = ROOT / "tests" / "data" / "Qwen3-Next-80B-A3B-Thinking.json"
MARKS = ("<!-- benchmark -->", "<!-- /benchmark -->")
TOKENS = 1


class Row(NamedTuple):
    """One figure: microseconds of both sides, and the ratio with its quartiles."""

    what: str
    yardstick: str
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    target: str


def compare(
    what: str,
    yardstick: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    target: str,
    loops: int,
    pairs: int = 41,
) -> Row:
    """Time both alternately; a pair's ratio is unmoved by a slow minute."""

    def measure(work: Callable[[], object]) -> float:
        start = perf_counter()
        for _ in range(loops):
            work()
        return (perf_counter() - start) / loops * 1e6

    measure(ours), measure(theirs)
    times = [(measure(ours), measure(theirs)) for _ in range(pairs)]
    ratios = [mine / other for mine, other in times]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return Row(
        what,
        yardstick,
        statistics.median(mine for mine, _ in times),
        statistics.median(other for _, other in times),
        middle,
        low,
        high,
        target,
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


def rows(simulated: Driver) -> list[Row]:
    """Every figure, measured in this process."""
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
        compare(
            f"`zero_all_rows(stream, tokens=1)`, {len(plan)} memsets, steady",
            "a checked loop over kept `CUdeviceptr`s",
            drained(lambda: built.zero_all_rows(stream, tokens=TOKENS)),
            drained(by_hand),
            "<= 1.10",
            loops=40,
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
        compare(
            "an accessor, 1,000 times",
            "an attribute of a class with slots",
            read(built),
            read(slots),
            "<= 1.10",
            loops=20,
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
        compare(
            f"construct and release, {count} of {len(BUFFERS)} buffers live",
            "the same driver calls by hand, checked",
            separate,
            bare,
            "<= 1.10",
            loops=5,
        )
    )
    found.append(
        compare(
            "construct and release from a slab",
            f"the {count} allocations by hand",
            slab,
            bare,
            "<= 0.50",
            loops=5,
        )
    )
    return found


def table(found: list[Row]) -> str:
    """The figures as Markdown."""
    lines = [
        "| figure | against | ratio | quartiles | target |",
        "| --- | --- | ---: | --- | --- |",
    ]
    lines += [
        f"| {row.what} | {row.yardstick} | {row.ratio:.2f} | "
        f"{row.low:.2f} to {row.high:.2f} | {row.target} |"
        for row in found
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the README's table when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update README.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        simulated = Driver(build(Path(folder)))
        simulated.reset(memory=1 << 40)
        found = rows(simulated)
    for row in found:
        print(f"{row.what}: {row.ours:.2f} us against {row.theirs:.2f} us")
    text = table(found)
    print(f"\n{len(BUFFERS)} buffers, host time only:\n\n{text}")
    if options.write:
        readme = ROOT / "README.md"
        before, _, rest = readme.read_text(encoding="utf-8").partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        written = f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{after}"
        readme.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
