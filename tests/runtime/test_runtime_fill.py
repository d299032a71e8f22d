"""Initial fills: the right bytes, by the cheapest call that the backend has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.backend import SupportsPatternFill
from runtime.device import NULL, DevicePtr
from runtime.errors import SizeError
from runtime.fill import fill
from runtime.host import HostBackend


class Recorder(HostBackend):
    """A host backend that notes which method filled memory, and how much."""

    def __init__(self) -> None:
        super().__init__(1 << 30)
        self.calls: list[tuple[str, int]] = []

    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        self.calls.append(("memset", nbytes))
        super().memset(ptr, value, nbytes)

    def memset_pattern(self, ptr: DevicePtr, pattern: bytes, count: int) -> None:
        self.calls.append(("memset_pattern", count))
        super().memset_pattern(ptr, pattern, count)

    def copy_h2d(self, dst, src):  # type: ignore[no-untyped-def]
        self.calls.append(("copy_h2d", len(src)))
        super().copy_h2d(dst, src)


class WithoutPattern(Recorder):
    """A backend that has no wider fill, as its protocol check sees it."""

    memset_pattern = None  # type: ignore[assignment]


def filled(gpu: HostBackend, pattern: bytes, nbytes: int) -> bytes:
    """Fill within a larger allocation and return it, its guard bytes checked."""
    ptr = gpu.alloc(nbytes + 16)
    gpu.memset_async(ptr, 0xEE, nbytes + 16, gpu.default_stream)
    fill(gpu, ptr.offset(8), pattern, nbytes)
    content = bytearray(nbytes + 16)
    gpu.copy_d2h(content, ptr)
    gpu.free(ptr)
    assert content[:8] == content[-8:] == b"\xee" * 8
    return bytes(content[8:-8])


def test_the_recorders_differ_in_what_they_support() -> None:
    assert isinstance(Recorder(), SupportsPatternFill)
    assert not isinstance(WithoutPattern(), SupportsPatternFill)


@pytest.mark.parametrize("pattern", [b"\x00", b"\x07", b"\0\0", b"\xff" * 8])
def test_equal_bytes_take_one_memset(pattern: bytes) -> None:
    gpu = Recorder()
    assert filled(gpu, pattern, 37) == pattern[:1] * 37
    assert gpu.calls == [("memset", 37)]


@pytest.mark.parametrize("pattern", [b"\x80\x3f", b"\x00\x00\x80\x3f"])
def test_wider_patterns_take_one_pattern_fill(pattern: bytes) -> None:
    gpu = Recorder()
    assert filled(gpu, pattern, 40) == pattern * (40 // len(pattern))
    assert gpu.calls == [("memset_pattern", 40 // len(pattern))]


def test_eight_bytes_are_copied() -> None:
    gpu = Recorder()
    assert filled(gpu, b"12345678", 40) == b"12345678" * 5
    assert gpu.calls == [("copy_h2d", 40)]


def test_a_cut_pattern_is_copied() -> None:
    gpu = Recorder()
    assert filled(gpu, b"\x80\x3f", 5) == b"\x80\x3f\x80\x3f\x80"
    assert gpu.calls == [("copy_h2d", 5)]


def test_a_pattern_at_a_crooked_address_is_copied() -> None:
    gpu = Recorder()
    ptr = gpu.alloc(64)
    fill(gpu, ptr.offset(2), b"\x00\x00\x80\x3f", 40)
    assert gpu.calls == [("copy_h2d", 40)]
    content = bytearray(44)
    gpu.copy_d2h(content, ptr)
    assert content == bytes(2) + b"\x00\x00\x80\x3f" * 10 + bytes(2)


def test_less_than_one_pattern_is_copied() -> None:
    gpu = Recorder()
    assert filled(gpu, b"12345678", 3) == b"123"


def test_copies_are_bounded_and_join_without_a_seam() -> None:
    gpu = WithoutPattern()
    nbytes = (2 << 20) + 6
    assert filled(gpu, b"\x80\x3f", nbytes) == b"\x80\x3f" * (nbytes // 2)
    assert gpu.calls == [("copy_h2d", 1 << 20), ("copy_h2d", 1 << 20), ("copy_h2d", 6)]


def test_nothing_to_fill_makes_no_call() -> None:
    gpu = Recorder()
    fill(gpu, NULL, b"\x01", 0)
    assert gpu.calls == []


@pytest.mark.parametrize("width", [0, 3, 5, 16])
def test_other_widths_are_refused(width: int) -> None:
    text = f"^a fill pattern has 1, 2, 4 or 8 bytes, not {width}$"
    with pytest.raises(SizeError, match=text):
        fill(Recorder(), DevicePtr(16), b"x" * width, 16)


def test_a_negative_length_is_refused() -> None:
    with pytest.raises(SizeError, match=r"^a fill cannot cover -1 bytes$"):
        fill(Recorder(), DevicePtr(16), b"x", -1)


@given(
    pattern=st.sampled_from((1, 2, 4, 8)).flatmap(
        lambda width: st.binary(min_size=width, max_size=width)
    ),
    nbytes=st.integers(1, 100),
    wide=st.booleans(),
)
def test_any_fill(pattern: bytes, nbytes: int, wide: bool) -> None:
    gpu = Recorder() if wide else WithoutPattern()
    assert filled(gpu, pattern, nbytes) == (pattern * nbytes)[:nbytes]
