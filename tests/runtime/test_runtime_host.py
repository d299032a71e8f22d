"""The host backend: every guard, and its memory against a plain model."""

import ctypes
import os
import re
import threading
from array import array
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)
from support import no_count

from runtime import host
from runtime.backend import GpuBackend, SupportsPatternFill
from runtime.device import NULL, DevicePtr
from runtime.errors import BackendError, ConfigError, OutOfMemoryError
from runtime.host import HostBackend

PAGE = 4096


@pytest.fixture
def gpu() -> HostBackend:
    return HostBackend(1 << 20)


def read(gpu: HostBackend, ptr: DevicePtr, nbytes: int) -> bytes:
    content = bytearray(nbytes)
    gpu.copy_d2h(content, ptr)
    return bytes(content)


def refusal(call: Callable[[], object]) -> str:
    """Return the text of the BackendError that a call must raise."""
    with pytest.raises(BackendError) as caught:
        call()
    assert type(caught.value) is BackendError
    return str(caught.value)


def test_it_is_a_backend(gpu: HostBackend) -> None:
    backend: GpuBackend = gpu
    pattern: SupportsPatternFill = gpu
    assert isinstance(backend, GpuBackend)
    assert isinstance(pattern, SupportsPatternFill)


def test_counts(gpu: HostBackend) -> None:
    first = gpu.alloc(100)
    second = gpu.alloc(50)
    assert type(first) is DevicePtr
    assert (gpu.live_allocations, gpu.live_bytes, gpu.peak_bytes) == (2, 150, 150)
    gpu.free(first)
    assert (gpu.live_allocations, gpu.live_bytes, gpu.peak_bytes) == (1, 50, 150)
    third = gpu.alloc(10)
    assert (gpu.live_allocations, gpu.live_bytes, gpu.peak_bytes) == (2, 60, 150)
    gpu.free(second)
    gpu.free(third)
    assert (gpu.live_allocations, gpu.live_bytes, gpu.peak_bytes) == (0, 0, 150)


def test_memory_figures(gpu: HostBackend) -> None:
    assert gpu.total_memory() == gpu.free_memory() == 1 << 20
    ptr = gpu.alloc(1000)
    assert gpu.total_memory() == 1 << 20
    assert gpu.free_memory() == (1 << 20) - 1000
    gpu.free(ptr)
    assert gpu.free_memory() == 1 << 20


def test_the_default_is_the_memory_of_the_machine() -> None:
    assert HostBackend().total_memory() > 64 << 20


def test_an_unknown_machine_must_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def sysconf(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", sysconf)
    text = "^total_memory: this system does not tell how much it has; pass it$"
    with pytest.raises(ConfigError, match=text):
        HostBackend()


@pytest.mark.parametrize("total", [-1, 1.5, True])
def test_the_total_is_checked(total: object) -> None:
    with pytest.raises(ConfigError) as caught:
        HostBackend(total)  # type: ignore[arg-type]
    assert str(caught.value) == no_count("total_memory", total, 0)


def test_all_of_the_memory_can_be_taken() -> None:
    gpu = HostBackend(100)
    gpu.alloc(60)
    gpu.alloc(40)
    assert gpu.free_memory() == 0


def test_no_room() -> None:
    gpu = HostBackend(100)
    gpu.alloc(60)
    with pytest.raises(OutOfMemoryError) as caught:
        gpu.alloc(41)
    error = caught.value
    assert (error.asked, error.free, error.total) == (41, 40, 100)
    assert str(error) == "out of memory: 41 bytes asked; free: 40 bytes of 100 bytes"
    assert gpu.live_bytes == 60


def test_memory_that_the_system_refuses() -> None:
    gpu = HostBackend(1 << 70)
    for nbytes in (1 << 62, 1 << 65):
        with pytest.raises(OutOfMemoryError) as caught:
            gpu.alloc(nbytes)
        assert isinstance(caught.value.__cause__, (OSError, OverflowError))
    assert (gpu.live_allocations, gpu.live_bytes) == (0, 0)


def test_a_huge_allocation_costs_only_what_is_touched() -> None:
    gpu = HostBackend(1 << 42)
    ptr = gpu.alloc(1 << 40)
    last = ptr.offset((1 << 40) - 4)
    gpu.copy_h2d(last, b"tail")
    assert read(gpu, last, 4) == b"tail"
    gpu.free(ptr)


def test_allocations_are_page_aligned_and_zero(gpu: HostBackend) -> None:
    ptr = gpu.alloc(10)
    assert ptr % 256 == 0
    assert read(gpu, ptr, 10) == bytes(10)


def test_addresses_are_real(gpu: HostBackend) -> None:
    ptr = gpu.alloc(4)
    gpu.copy_h2d(ptr, b"abcd")
    assert ctypes.string_at(ptr, 4) == b"abcd"


@pytest.mark.parametrize("nbytes", [0, -1])
def test_an_allocation_is_not_empty(gpu: HostBackend, nbytes: int) -> None:
    assert refusal(lambda: gpu.alloc(nbytes)) == (
        f"alloc: {nbytes} bytes asked; an allocation has at least 1 byte, "
        "leave an empty buffer NULL"
    )


def test_double_free(gpu: HostBackend) -> None:
    ptr = gpu.alloc(10)
    gpu.free(ptr)
    assert refusal(lambda: gpu.free(ptr)) == (
        f"free: {ptr:#x} is in the allocation of 10 bytes at {ptr:#x}, "
        "which was already freed"
    )


def test_double_free_right_behind_a_live_allocation(gpu: HostBackend) -> None:
    for ptr in [gpu.alloc(PAGE) for _ in range(8)]:
        gpu.free(ptr)
        with pytest.raises(BackendError, match="was already freed"):
            gpu.free(ptr)
        with pytest.raises(BackendError, match="was already freed"):
            gpu.memset(ptr, 0, 1)


def test_an_address_given_out_again_is_live(gpu: HostBackend) -> None:
    first = gpu.alloc(PAGE)
    gpu.free(first)
    again = [gpu.alloc(PAGE) for _ in range(64)]
    for ptr in again:
        gpu.memset(ptr, 1, PAGE)
        gpu.free(ptr)


def test_remembered_frees_are_bounded(
    gpu: HostBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_FREED_REMEMBERED", 2)
    pointers = [gpu.alloc(10) for _ in range(3)]
    for ptr in pointers:
        gpu.free(ptr)
    assert "in no allocation" in refusal(lambda: gpu.free(pointers[0]))
    assert "was already freed" in refusal(lambda: gpu.free(pointers[1]))
    assert "was already freed" in refusal(lambda: gpu.free(pointers[2]))


def test_free_takes_a_base(gpu: HostBackend) -> None:
    ptr = gpu.alloc(10)
    assert refusal(lambda: gpu.free(ptr.offset(3))) == (
        f"free: {ptr + 3:#x} is 3 bytes into the allocation at {ptr:#x}; "
        "free takes the address that alloc returned"
    )
    assert gpu.live_allocations == 1


def test_free_of_null(gpu: HostBackend) -> None:
    assert refusal(lambda: gpu.free(NULL)) == (
        "free: the pointer is NULL; a buffer that is gated off or released has no "
        "memory"
    )


def test_free_of_an_unknown_address(gpu: HostBackend) -> None:
    other = HostBackend(1 << 20).alloc(PAGE)
    assert refusal(lambda: gpu.free(other)) == (
        f"free: {other:#x} is in no allocation of this backend; use an address that "
        "its alloc returned, or one inside that allocation"
    )


# Each is called with a range of `n` bytes at `ptr`, and a valid one at `other`.
Operation = Callable[[HostBackend, DevicePtr, DevicePtr, int], object]
OPERATIONS: dict[str, Operation] = {
    "memset": lambda gpu, ptr, other, n: gpu.memset(ptr, 1, n),
    "memset_async": lambda gpu, ptr, other, n: gpu.memset_async(ptr, 1, n, 0),
    "memset_pattern": lambda gpu, ptr, other, n: gpu.memset_pattern(ptr, b"x", n),
    "copy_h2d": lambda gpu, ptr, other, n: gpu.copy_h2d(ptr, bytes(n)),
    "copy_d2h": lambda gpu, ptr, other, n: gpu.copy_d2h(bytearray(n), ptr),
    "copy_d2d: src": lambda gpu, ptr, other, n: gpu.copy_d2d(other, ptr, n),
    "copy_d2d: dst": lambda gpu, ptr, other, n: gpu.copy_d2d(ptr, other, n),
}
operations = pytest.mark.parametrize("name", OPERATIONS)


@operations
def test_a_range_may_be_the_whole_or_a_part(gpu: HostBackend, name: str) -> None:
    ptr, other = gpu.alloc(24), gpu.alloc(64)
    OPERATIONS[name](gpu, ptr, other, 24)
    OPERATIONS[name](gpu, ptr.offset(7), other, 17)
    OPERATIONS[name](gpu, ptr.offset(7), other, 0)
    OPERATIONS[name](gpu, ptr.offset(24), other, 0)


@operations
def test_a_range_ends_with_the_bytes_asked_for(gpu: HostBackend, name: str) -> None:
    ptr, other = gpu.alloc(24), gpu.alloc(64)
    assert refusal(lambda: OPERATIONS[name](gpu, ptr.offset(8), other, 18)) == (
        f"{name}: 18 bytes at {ptr + 8:#x} end 2 bytes past the allocation of 24 "
        f"bytes at {ptr:#x}"
    )


@operations
def test_a_range_starts_in_the_allocation(gpu: HostBackend, name: str) -> None:
    ptr, other = gpu.alloc(24), gpu.alloc(64)
    assert refusal(lambda: OPERATIONS[name](gpu, ptr.offset(24), other, 1)) == (
        f"{name}: {ptr + 24:#x} is in no allocation of this backend; use an address "
        "that its alloc returned, or one inside that allocation"
    )


@operations
def test_null_has_no_range(gpu: HostBackend, name: str) -> None:
    other = gpu.alloc(64)
    assert refusal(lambda: OPERATIONS[name](gpu, NULL, other, 1)) == (
        f"{name}: the pointer is NULL; a buffer that is gated off or released has no "
        "memory"
    )


@operations
def test_freed_memory_is_out_of_reach(gpu: HostBackend, name: str) -> None:
    ptr, other = gpu.alloc(24), gpu.alloc(64)
    gpu.free(ptr)
    assert refusal(lambda: OPERATIONS[name](gpu, ptr.offset(4), other, 1)) == (
        f"{name}: {ptr + 4:#x} is in the allocation of 24 bytes at {ptr:#x}, "
        "which was already freed"
    )


@pytest.mark.parametrize(
    "name", ["memset", "memset_async", "memset_pattern", "copy_d2d: src"]
)
def test_a_length_is_not_negative(gpu: HostBackend, name: str) -> None:
    ptr, other = gpu.alloc(24), gpu.alloc(64)
    assert refusal(lambda: OPERATIONS[name](gpu, ptr.offset(8), other, -4)) == (
        f"{name}: a range cannot have -4 bytes"
    )


@pytest.mark.parametrize("value", [-1, 256])
def test_a_fill_value_is_a_byte(gpu: HostBackend, value: int) -> None:
    ptr = gpu.alloc(8)
    assert refusal(lambda: gpu.memset(ptr, value, 8)) == (
        f"memset: {value} is not a byte, 0 to 255"
    )
    assert refusal(lambda: gpu.memset_async(ptr, value, 8, 0)) == (
        f"memset_async: {value} is not a byte, 0 to 255"
    )


def test_memset_fills_only_its_range(gpu: HostBackend) -> None:
    ptr = gpu.alloc(8)
    gpu.memset(ptr.offset(2), 255, 3)
    gpu.memset_async(ptr.offset(6), 7, 1, object())
    assert read(gpu, ptr, 8) == b"\0\0\xff\xff\xff\0\x07\0"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 1000])
@pytest.mark.parametrize("pattern", [b"a", b"ab", b"abcd"])
def test_memset_pattern(gpu: HostBackend, pattern: bytes, count: int) -> None:
    ptr = gpu.alloc(4096)
    gpu.memset_pattern(ptr.offset(4), pattern, count)
    expected = bytes(4) + pattern * count
    assert read(gpu, ptr, 4096) == expected.ljust(4096, b"\0")


@pytest.mark.parametrize("width", [0, 3, 8])
def test_a_pattern_has_a_width_of_the_driver(gpu: HostBackend, width: int) -> None:
    ptr = gpu.alloc(8)
    assert refusal(lambda: gpu.memset_pattern(ptr, bytes(width), 1)) == (
        f"memset_pattern: a pattern of {width} bytes; it has 1, 2 or 4, "
        "copy anything else with copy_h2d"
    )


def test_a_pattern_is_aligned(gpu: HostBackend) -> None:
    ptr = gpu.alloc(8)
    assert refusal(lambda: gpu.memset_pattern(ptr.offset(2), b"abcd", 1)) == (
        f"memset_pattern: {ptr + 2:#x} is not a multiple of the pattern's 4 bytes"
    )


@pytest.mark.parametrize(
    "source",
    [
        b"\x01\x02\x03\x04",
        bytearray(b"\x01\x02\x03\x04"),
        memoryview(b"\x01\x02\x03\x04"),
        memoryview(b"\x01\x02\x03\x04").cast("B", (2, 2)),
        array("H", [0x0201, 0x0403]),
        memoryview(array("I", [0x04030201])),
    ],
)
def test_sources_are_bytes_like(gpu: HostBackend, source: bytes) -> None:
    ptr = gpu.alloc(6)
    gpu.copy_h2d(ptr.offset(1), source)
    assert read(gpu, ptr, 6) == b"\0\x01\x02\x03\x04\0"


def test_destinations_are_bytes_like(gpu: HostBackend) -> None:
    ptr = gpu.alloc(4)
    gpu.copy_h2d(ptr, b"\x01\x02\x03\x04")
    words = array("H", [0, 0])
    gpu.copy_d2h(words, ptr)
    assert words.tobytes() == b"\x01\x02\x03\x04"
    middle = bytearray(6)
    gpu.copy_d2h(memoryview(middle)[1:5], ptr)
    assert middle == b"\0\x01\x02\x03\x04\0"
    square = bytearray(4)
    gpu.copy_d2h(memoryview(square).cast("B", (2, 2)), ptr)
    assert square == b"\x01\x02\x03\x04"


def test_a_destination_stays_free_to_change(gpu: HostBackend) -> None:
    content = bytearray(4)
    gpu.copy_d2h(content, gpu.alloc(4))
    content.extend(b"more")


def test_copies_are_contiguous(gpu: HostBackend) -> None:
    ptr = gpu.alloc(8)
    every_other = memoryview(bytearray(8))[::2]
    assert refusal(lambda: gpu.copy_h2d(ptr, every_other)) == (
        "copy_h2d: src is not contiguous; pass a contiguous copy"
    )
    assert refusal(lambda: gpu.copy_d2h(every_other, ptr)) == (
        "copy_d2h: dst is not contiguous; pass a contiguous copy"
    )


def test_a_destination_is_writable(gpu: HostBackend) -> None:
    ptr = gpu.alloc(8)
    assert refusal(lambda: gpu.copy_d2h(b"read only", ptr)) == (
        "copy_d2h: dst is read-only; pass a writable one"
    )


def test_copy_between_and_within_allocations(gpu: HostBackend) -> None:
    one, other = gpu.alloc(8), gpu.alloc(8)
    gpu.copy_h2d(one, b"abcdefgh")
    gpu.copy_d2d(other.offset(2), one.offset(4), 4)
    assert read(gpu, other, 8) == b"\0\0efgh\0\0"
    gpu.copy_d2d(one, one.offset(4), 4)
    assert read(gpu, one, 8) == b"efghefgh"


@pytest.mark.parametrize(("dst", "src"), [(0, 3), (3, 0), (2, 2)])
def test_copies_do_not_overlap(gpu: HostBackend, dst: int, src: int) -> None:
    ptr = gpu.alloc(8)
    text = refusal(lambda: gpu.copy_d2d(ptr.offset(dst), ptr.offset(src), 4))
    assert text == (
        f"copy_d2d: 4 bytes at {ptr + src:#x} and at {ptr + dst:#x} overlap; "
        "copy through a third buffer"
    )


def test_streams_are_tokens(gpu: HostBackend) -> None:
    assert gpu.default_stream == 0
    gpu.synchronize(gpu.default_stream)
    gpu.synchronize(object())


def test_threads_share_a_backend(gpu: HostBackend) -> None:
    problems: list[object] = []

    def work(mark: int) -> None:
        try:
            for _ in range(200):
                ptr = gpu.alloc(64)
                gpu.memset(ptr, mark, 64)
                if read(gpu, ptr, 64) != bytes([mark]) * 64:
                    problems.append(f"thread {mark} read what another wrote")
                gpu.free(ptr)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert (gpu.live_allocations, gpu.live_bytes) == (0, 0)


def test_a_call_may_come_from_within_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = HostBackend(1 << 20)
    dropped = gpu.alloc(10)
    map_pages = host._map_pages

    def with_a_finalizer(nbytes: int) -> object:
        gpu.free(dropped)
        return map_pages(nbytes)

    monkeypatch.setattr(host, "_map_pages", with_a_finalizer)
    worker = threading.Thread(target=gpu.alloc, args=(20,), daemon=True)
    worker.start()
    worker.join(5)
    assert not worker.is_alive()
    assert (gpu.live_allocations, gpu.live_bytes) == (1, 20)


class AgainstModel(RuleBasedStateMachine):
    """Random valid and invalid calls; the model is a dict of bytearrays."""

    TOTAL = 20_000
    lengths = st.one_of(st.integers(0, 40), st.sampled_from((PAGE, PAGE + 1)))
    places = st.integers(0, PAGE + 8)
    pointers = Bundle("pointers")

    def __init__(self) -> None:
        super().__init__()
        self.gpu = HostBackend(self.TOTAL)
        self.model: dict[DevicePtr, bytearray] = {}
        self.peak = 0

    def holds(self, ptr: DevicePtr, place: int, nbytes: int) -> bool:
        return place + nbytes <= len(self.model[ptr])

    def attempt(self, legal: bool, call: Callable[[], object]) -> bool:
        if legal:
            call()
        else:
            with pytest.raises(BackendError):
                call()
        return legal

    @rule(target=pointers, nbytes=st.one_of(st.integers(1, 40), st.just(PAGE)))
    def alloc(self, nbytes: int) -> object:
        live = sum(map(len, self.model.values()))
        if live + nbytes > self.TOTAL:
            with pytest.raises(OutOfMemoryError):
                self.gpu.alloc(nbytes)
            return self.alloc(1) if live < self.TOTAL else next(iter(self.model))
        ptr = self.gpu.alloc(nbytes)
        assert not any(
            ptr < base + len(block) and base < ptr + nbytes
            for base, block in self.model.items()
        )
        self.model[ptr] = bytearray(nbytes)
        self.peak = max(self.peak, live + nbytes)
        return ptr

    @rule(ptr=consumes(pointers))
    def free(self, ptr: DevicePtr) -> None:
        del self.model[ptr]
        self.gpu.free(ptr)
        with pytest.raises(BackendError, match="already freed"):
            self.gpu.free(ptr)

    @rule(ptr=pointers, place=places)
    def free_inside(self, ptr: DevicePtr, place: int) -> None:
        if place and self.holds(ptr, place, 1):
            with pytest.raises(BackendError, match="bytes into the allocation"):
                self.gpu.free(ptr.offset(place))

    @rule(ptr=pointers, place=places, value=st.integers(0, 255), nbytes=lengths)
    def memset(self, ptr: DevicePtr, place: int, value: int, nbytes: int) -> None:
        at = ptr.offset(min(place, len(self.model[ptr])))
        if at in self.model:
            # Behind a whole page, the next allocation may begin.
            ptr = at
        start = at - ptr
        legal = self.holds(ptr, start, nbytes)
        if self.attempt(legal, lambda: self.gpu.memset(at, value, nbytes)):
            self.model[ptr][start : start + nbytes] = bytes([value]) * nbytes

    @rule(
        ptr=pointers,
        place=places,
        pattern=st.sampled_from((b"a", b"ab", b"abcd")),
        count=st.integers(0, 20),
    )
    def memset_pattern(
        self, ptr: DevicePtr, place: int, pattern: bytes, count: int
    ) -> None:
        place = min(place, len(self.model[ptr]) - 1)
        nbytes = len(pattern) * count
        legal = self.holds(ptr, place, nbytes) and place % len(pattern) == 0
        at = ptr.offset(place)
        if self.attempt(legal, lambda: self.gpu.memset_pattern(at, pattern, count)):
            self.model[ptr][place : place + nbytes] = pattern * count

    @rule(ptr=pointers, place=places, data=st.binary(max_size=40))
    def copy_h2d(self, ptr: DevicePtr, place: int, data: bytes) -> None:
        place = min(place, len(self.model[ptr]) - 1)
        legal = self.holds(ptr, place, len(data))
        at = ptr.offset(place)
        if self.attempt(legal, lambda: self.gpu.copy_h2d(at, data)):
            self.model[ptr][place : place + len(data)] = data

    @rule(dst=pointers, src=pointers, to=places, start=places, nbytes=lengths)
    def copy_d2d(
        self, dst: DevicePtr, src: DevicePtr, to: int, start: int, nbytes: int
    ) -> None:
        to = min(to, len(self.model[dst]) - 1)
        start = min(start, len(self.model[src]) - 1)
        overlap = dst == src and abs(to - start) < nbytes
        legal = self.holds(dst, to, nbytes) and self.holds(src, start, nbytes)
        target, source = dst.offset(to), src.offset(start)
        if self.attempt(
            legal and not overlap, lambda: self.gpu.copy_d2d(target, source, nbytes)
        ):
            self.model[dst][to : to + nbytes] = self.model[src][start : start + nbytes]

    @invariant()
    def memory_is_the_models(self) -> None:
        for ptr, expected in self.model.items():
            assert read(self.gpu, ptr, len(expected)) == bytes(expected)

    @invariant()
    def counts_are_the_models(self) -> None:
        live = sum(map(len, self.model.values()))
        assert self.gpu.live_allocations == len(self.model)
        assert self.gpu.live_bytes == live
        assert self.gpu.free_memory() == self.TOTAL - live
        assert self.gpu.peak_bytes == self.peak


TestAgainstModel = AgainstModel.TestCase
TestAgainstModel.settings = settings(max_examples=60, deadline=None)


def test_texts_show_hexadecimal_addresses(gpu: HostBackend) -> None:
    ptr = gpu.alloc(8)
    gpu.free(ptr)
    assert not re.search(
        r"DevicePtr|(?<![0-9a-fx])\d{9}", refusal(lambda: gpu.free(ptr))
    )
