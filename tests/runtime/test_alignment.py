"""Alignments beyond the 256 bytes that every backend promises, in both placements.

The package is emitted from the schema below and run on host memory, on the simulated
driver, and on memory that lies as badly as a backend may give it out.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

from arenagen.compile import Text, check_source, emit, read_schema
from driver.simulated import Driver
from metrale_arena import DevicePtr, HostBackend
from metrale_arena.runtime.pointer import released_arena

pytest_plugins = ["driver.plugin"]

TEXT = """\
arena:
  package: aligned_arena
  class: AlignedArena
  label: aligned arena
  doc: Buffers that begin at pages.
config:
  width: {type: int, doc: Elements of a row.}
limits:
  max_tokens: {symbol: M, tokens: true, doc: Most tokens of a pass.}
groups:
  all: {method: zero_all, doc: Clears everything.}
buffers:
  plain: {doc: An ordinary one., dtype: u8, shape: [M, width], zero: [all]}
  page: {doc: Pages of 4 KiB., dtype: u8, shape: [M, width], align: 4096, zero: [all]}
  pages: {doc: Pages of 8 KiB., dtype: u8, shape: [M, 3], align: 8192, zero: [all]}
  huge:
    doc: Pages of 64 KiB, in parts.
    dtype: u8
    align: 65536
    regions:
      head: {shape: [M], doc: A head.}
      tail: {shape: [M, width], align: 65536, doc: A tail.}
    zero: [all]
  missing: {doc: Never there., dtype: u8, shape: [M, width * 0], align: 65536}
"""
ALIGNS = {"plain": 256, "page": 4096, "pages": 8192, "huge": 65536, "missing": 65536}
M, WIDTH = 5, 7
SIZES = {"plain": 35, "page": 35, "pages": 15, "huge": 65536 + 35, "missing": 0}
# The difference from 256 of each buffer that exists, and of the largest.
SPARE = {"separate": 3840 + 7936 + 65280, "slab": 65280}
every_placement = pytest.mark.parametrize("placement", ["separate", "slab"])


class Worst(HostBackend):
    """Host memory that begins 256 bytes behind a multiple of 64 KiB, or `skew` more.

    asked: bytes of the live allocations, by the address that was given out.
    refuse: the place of the allocation that is refused.
    """

    def __init__(self, skew: int = 0, refuse: int | None = None) -> None:
        super().__init__(1 << 30)
        self.skew, self.refuse = 256 + skew, refuse
        self.asked: dict[int, int] = {}
        self.hidden: dict[int, DevicePtr] = {}
        self.count = 0

    def alloc(self, nbytes: int) -> DevicePtr:
        self.count += 1
        if self.count == self.refuse:
            raise RuntimeError("refused")
        base = super().alloc(nbytes + 65536 + self.skew)
        ptr = DevicePtr(base + -base % 65536 + self.skew)
        self.hidden[ptr], self.asked[ptr] = base, nbytes
        return ptr

    def free(self, ptr: DevicePtr) -> None:
        del self.asked[ptr]
        super().free(self.hidden.pop(ptr))

    def holds(self, ptr: int, nbytes: int) -> bool:
        return any(
            base <= ptr and ptr + nbytes <= base + asked
            for base, asked in self.asked.items()
        )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    schema, warnings = read_schema(Text("aligned.yaml", TEXT.encode()))
    folder = tmp_path_factory.mktemp("emitted")
    for name, text in emit(check_source(schema, warnings, None), "a.yaml").items():
        path = folder / "aligned_arena" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield importlib.import_module("aligned_arena")
    sys.path.remove(str(folder))


@pytest.fixture(params=["host", "driver", "worst"])
def gpu(request: pytest.FixtureRequest, package: ModuleType) -> Any:
    if request.param == "host":
        return package.HostBackend()
    if request.param == "worst":
        return Worst()
    driver: Driver = request.getfixturevalue("simulated_driver")
    driver.reset(memory=1 << 24)
    return package.CudaBackend()


def build(package: ModuleType, gpu: Any, **more: Any) -> Any:
    config = package.ModelConfig(width=WIDTH)
    return package.AlignedArena(config, max_tokens=M, gpu=gpu, **more)


@every_placement
@pytest.mark.parametrize("guard", [None, 1, 300])
def test_every_buffer_begins_where_its_alignment_says(
    package: ModuleType, gpu: Any, placement: str, guard: int | None
) -> None:
    debug = None if guard is None else package.Debug(guard=guard)
    with build(package, gpu, placement=placement, debug=debug) as arena:
        assert arena.sizes.as_dict() == SIZES
        spans = []
        for name, nbytes in SIZES.items():
            ptr = getattr(arena, name)
            assert getattr(arena, f"{name}_bytes") == nbytes
            assert bool(ptr) == bool(nbytes)
            if ptr:
                assert ptr % ALIGNS[name] == 0
                spans.append((int(ptr), int(ptr) + nbytes + (guard or 0)))
                if isinstance(gpu, Worst):
                    assert gpu.holds(ptr, nbytes + (guard or 0))
        spans.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        assert arena.huge().tail.ptr % 65536 == 0
        for name, nbytes in SIZES.items():
            if nbytes:
                gpu.copy_h2d(getattr(arena, name), b"\xa5" * nbytes)
        arena.zero_all(gpu.default_stream)
        gpu.synchronize(gpu.default_stream)
        for name, nbytes in SIZES.items():
            content = bytearray(nbytes)
            if nbytes:
                gpu.copy_d2h(content, getattr(arena, name))
            assert content == bytes(nbytes)
        if guard:
            assert arena.check_guards(gpu.default_stream) == ()
            gpu.memset(arena.page.offset(SIZES["page"]), 0, 1)
            (overrun,) = arena.check_guards(gpu.default_stream)
            assert (overrun.buffer, overrun.first) == ("page", 0)
    if isinstance(gpu, HostBackend):
        assert (gpu.live_bytes, gpu.live_allocations) == (0, 0)


def test_a_package_checks_its_own_alignments(package: ModuleType, gpu: Any) -> None:
    report = package.selfcheck(package.ModelConfig(width=WIDTH), max_tokens=M, gpu=gpu)
    assert report.ok, str(report)


def test_selfcheck_tells_a_pointer_that_lies_askew(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = importlib.import_module("aligned_arena.runtime.memory").SeparateMemory
    allocate = memory.allocate

    def crooked(self: Any, arena: Any) -> Any:
        allocate(self, arena)
        found = iter(self._handles)
        return [next(found) if nbytes else DevicePtr.NULL for nbytes in self._sizes]

    monkeypatch.setattr(memory, "allocate", crooked)
    report = package.selfcheck(
        package.ModelConfig(width=WIDTH), max_tokens=M, gpu=Worst()
    )
    assert "page: bytes beyond its alignment: 256, not 0" in str(report)


@every_placement
def test_the_spare_bytes_count_as_memory(package: ModuleType, placement: str) -> None:
    # In a slab the zeroing group lies in order, each at its own alignment.
    bytes_of = {"separate": sum(SIZES.values()), "slab": 65536 + SIZES["huge"]}
    needed = bytes_of[placement] + SPARE[placement]
    gpu = package.HostBackend(needed)
    with build(package, gpu, placement=placement) as arena:
        assert gpu.live_bytes == needed
        assert arena.sizes.total_bytes == sum(SIZES.values())
    assert gpu.live_bytes == 0
    small = package.HostBackend(needed - 1)
    with pytest.raises(package.AllocationError) as caught:
        build(package, small, placement=placement)
    assert (caught.value.buffer, caught.value.nbytes) == (None, needed)
    assert small.peak_bytes == 0


@pytest.mark.parametrize(
    ("placement", "refuse"),
    [("separate", 1), ("separate", 2), ("separate", 4), ("slab", 1)],
)
def test_what_was_allocated_before_a_refusal_is_freed(
    package: ModuleType, placement: str, refuse: int
) -> None:
    gpu = Worst(refuse=refuse)
    with pytest.raises(package.AllocationError, match="refused"):
        build(package, gpu, placement=placement)
    assert gpu.count == refuse
    assert gpu.live_allocations == 0


@every_placement
def test_an_address_short_of_what_is_promised_is_refused_and_freed(
    package: ModuleType, placement: str
) -> None:
    gpu = Worst(skew=16)
    with pytest.raises(package.BackendError) as caught:
        build(package, gpu, placement=placement)
    assert str(caught.value).partition(" is no ")[2].startswith("multiple of 256")
    assert gpu.live_allocations == 0


@every_placement
def test_a_free_that_fails_names_its_buffer_and_keeps_no_other(
    package: ModuleType, placement: str
) -> None:
    gpu = Worst()
    arena = build(package, gpu, placement=placement)
    address = max(gpu.asked, key=lambda each: gpu.asked[each])
    gpu.free(DevicePtr(address))
    with pytest.raises(package.ReleaseError) as caught:
        arena.release()
    name = "huge" if placement == "separate" else "aligned arena slab"
    assert [each for each, _ in caught.value.failures] == [name]
    assert gpu.live_allocations == 0
    arena.release()


def test_nothing_more_is_asked_for_alignments_that_are_promised() -> None:
    memory = importlib.import_module("metrale_arena.runtime.memory")
    places = memory.Places({"x": 256, "y": 8}, ["x", "y"], {})
    for placement, asked in (("separate", [300, 20]), ("slab", [324])):
        gpu = Worst()
        made = memory.new_memory(placement, gpu, places, (300, 20), 0, "test", 0)
        x, y = made.allocate(released_arena)
        assert list(gpu.asked.values()) == asked
        assert gpu.holds(x, 300)
        assert gpu.holds(y, 20)
        assert made.free() == ()
        assert gpu.live_allocations == 0


@every_placement
def test_buffers_of_no_bytes_take_no_memory(placement: str) -> None:
    memory = importlib.import_module("metrale_arena.runtime.memory")
    places = memory.Places({"x": 4096, "y": 512}, ["x", "y"], {})
    gpu = Worst()
    made = memory.new_memory(placement, gpu, places, (0, 0), 0, "test", 0)
    assert [*made.allocate(released_arena)] == [0, 0]
    assert gpu.count == 0
    assert made.free() == ()
