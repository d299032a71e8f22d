"""Fingerprints: exact, sensitive to every byte, and never in the way."""

import math
import struct
import sys
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import checksum
from runtime.checksum import BufferChecksum, ChecksumReport, checksum_buffer
from runtime.device import NULL, DevicePtr
from runtime.errors import BackendError
from runtime.host import HostBackend


class Counting(HostBackend):
    """A host backend that notes the reads, and may fail at one of them."""

    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__(1 << 30)
        self.reads: list[int] = []
        self._fail_at = fail_at

    def copy_d2h(self, dst, src):  # type: ignore[no-untyped-def]
        if len(self.reads) == self._fail_at:
            raise BackendError("sticky\n  error")
        self.reads.append(len(dst))
        super().copy_d2h(dst, src)


def fingerprint(data: bytes) -> BufferChecksum:
    gpu = HostBackend(1 << 30)
    ptr = gpu.alloc(len(data))
    gpu.copy_h2d(ptr, data)
    result = checksum_buffer(gpu, "x", ptr, len(data))
    gpu.free(ptr)
    return result


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@pytest.fixture(params=["with numpy", "without"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Numpy is installed, or is not; what hides it is no package."""
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "numpy", None)
    else:
        pytest.importorskip("numpy")
    return str(request.param)


@pytest.fixture
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)


def test_a_buffer_of_known_values(either: str) -> None:
    data = floats(1.5, -2.0, 0.0, -0.0)
    assert fingerprint(data) == BufferChecksum(
        name="x",
        nbytes=16,
        state="ok",
        digest=sha256(data).hexdigest()[:32],
        total=-0.5,
        total_squares=6.25,
        total_abs=3.5,
        lanes=4,
        nan_lanes=0,
        inf_lanes=0,
        error=None,
    )


def test_non_finite_lanes_are_counted_and_left_out(either: str) -> None:
    result = fingerprint(floats(math.inf, 2.0, math.nan, -math.inf, math.nan, math.inf))
    assert (result.nan_lanes, result.inf_lanes, result.lanes) == (2, 3, 6)
    assert (result.total, result.total_squares, result.total_abs) == (2.0, 4.0, 2.0)


@pytest.mark.usefixtures("without_numpy")
def test_sums_of_a_block_are_exact_without_numpy() -> None:
    result = fingerprint(floats(2.0**100, 1.0, 2.0**-140, -(2.0**100)))
    assert result.total == 1.0 + 2.0**-140
    assert fingerprint(floats(2.0**100, 2.0**-140, -(2.0**100))).total == 2.0**-140


def test_sums_are_exact_across_blocks(
    either: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksum, "_CHUNK_BYTES", 8)
    data = floats(2.0**100, 0.0, 2.0**-149, 0.0, -(2.0**100), 0.0)
    assert fingerprint(data).total == 2.0**-149


def test_the_largest_lanes_do_not_overflow(either: str) -> None:
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    result = fingerprint(floats(*[largest] * 1000))
    squares = math.fsum([largest * largest] * 1000)
    assert result.total_squares == pytest.approx(squares, rel=1e-14)
    assert math.isfinite(result.total_squares)


@pytest.mark.parametrize("tail", [1, 2, 3])
def test_the_tail_counts_in_the_digest_only(tail: int) -> None:
    whole = fingerprint(floats(1.0, 2.0))
    longer = fingerprint(floats(1.0, 2.0) + b"\x7f" * tail)
    assert longer.lanes == 2
    assert longer.total == whole.total
    assert longer.digest != whole.digest


def test_less_than_one_lane() -> None:
    result = fingerprint(b"\x01")
    assert (result.state, result.lanes, result.total) == ("ok", 0, 0.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (floats(0.0), floats(math.nan)),
        (floats(0.0), floats(-0.0)),
        (b"\x00\x00\xc0\x7f", b"\x01\x00\xc0\x7f"),
        (floats(1.0, 2.0), floats(2.0, 1.0)),
        (b"abcde", b"abcdf"),
        (bytes(8), bytes(9)),
    ],
)
def test_any_difference_shows_in_the_digest(one: bytes, other: bytes) -> None:
    assert fingerprint(one).digest != fingerprint(other).digest


@given(st.binary(min_size=1, max_size=64), st.data())
def test_any_changed_byte_shows_in_the_digest(data: bytes, draw: st.DataObject) -> None:
    place = draw.draw(st.integers(0, len(data) - 1))
    changed = bytearray(data)
    changed[place] ^= draw.draw(st.integers(1, 255))
    assert fingerprint(data).digest != fingerprint(bytes(changed)).digest


@given(
    st.binary(min_size=1, max_size=400),
    st.sampled_from((4, 8, 64, 4096)),
    st.booleans(),
)
def test_sums_do_not_depend_on_blocks_or_numpy(
    data: bytes, block: int, numpy: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksum, "_CHUNK_BYTES", block)
        if not numpy:
            patch.setitem(sys.modules, "numpy", None)
        result = fingerprint(data)
    count = len(data) // 4
    lanes = struct.unpack_from(f"<{count}f", data)
    finite = [lane for lane in lanes if math.isfinite(lane)]
    absolute = math.fsum(abs(lane) for lane in finite)
    squares = math.fsum(lane * lane for lane in finite)
    assert result.total == pytest.approx(math.fsum(finite), abs=1e-14 * absolute, rel=0)
    assert result.total_squares == pytest.approx(squares, rel=1e-14, abs=0)
    assert result.total_abs == pytest.approx(absolute, rel=1e-14, abs=0)
    assert result.nan_lanes == sum(map(math.isnan, lanes))
    assert result.inf_lanes == sum(map(math.isinf, lanes))
    assert result.lanes == count
    assert result.digest == sha256(data).hexdigest()[:32]


@pytest.mark.parametrize("kind", ["normal", "wide", "all alike"])
def test_a_whole_block_is_within_the_documented_bound(kind: str) -> None:
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(7)
    lanes = random.standard_normal(1 << 18)
    if kind == "wide":
        lanes *= 2.0 ** random.integers(-120, 60, 1 << 18)
    elif kind == "all alike":
        lanes[:] = 0.1
    data = lanes.astype("<f4").tobytes()
    result = fingerprint(data)
    values = struct.unpack(f"<{1 << 18}f", data)
    absolute = math.fsum(map(abs, values))
    assert abs(result.total - math.fsum(values)) <= 1e-14 * absolute
    assert abs(result.total_abs - absolute) <= 1e-14 * absolute
    squares = math.fsum(value * value for value in values)
    assert abs(result.total_squares - squares) <= 1e-14 * squares


def test_numpy_is_what_adds_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr(checksum, "_exact", None)
    assert fingerprint(floats(1.5, -2.0)).total == -0.5


def test_reads_are_bounded(either: str) -> None:
    gpu = Counting()
    nbytes = (2 << 20) + 3
    ptr = gpu.alloc(nbytes)
    result = checksum_buffer(gpu, "x", ptr, nbytes)
    assert gpu.reads == [1 << 20, 1 << 20, 3]
    assert result.digest == sha256(bytes(nbytes)).hexdigest()[:32]
    assert result.lanes == 1 << 19
    assert (result.total, result.total_squares, result.total_abs) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("ptr", "nbytes"), [(NULL, 64), (NULL, 0), (DevicePtr(64), 0)])
def test_an_absent_buffer_reads_nothing(ptr: DevicePtr, nbytes: int) -> None:
    gpu = Counting(fail_at=0)
    assert checksum_buffer(gpu, "x", ptr, nbytes) == BufferChecksum(
        "x", nbytes, "absent"
    )


@pytest.mark.parametrize("fail_at", [0, 1])
def test_a_failed_read_is_a_result(
    fail_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksum, "_CHUNK_BYTES", 4)
    gpu = Counting(fail_at)
    ptr = gpu.alloc(8)
    gpu.memset(ptr, 1, 8)
    assert checksum_buffer(gpu, "x", ptr, 8) == BufferChecksum(
        "x", 8, "failed", error="BackendError: sticky\n  error"
    )


def test_an_interrupt_is_not_a_result() -> None:
    class Interrupted(HostBackend):
        def copy_d2h(self, dst, src):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    gpu = Interrupted(1 << 20)
    with pytest.raises(KeyboardInterrupt):
        checksum_buffer(gpu, "x", gpu.alloc(4), 4)


def test_the_report_has_one_aligned_line_for_each_buffer() -> None:
    report = ChecksumReport(
        "after layer 3",
        (
            fingerprint(floats(1.5, -2.0, math.nan))._replace(name="hidden_states"),
            BufferChecksum("lora_xa", 0, "absent"),
            BufferChecksum("logits", 8192, "failed", error="BackendError: a\n  b"),
        ),
    )
    digest = report.buffers[0].digest
    assert str(report).splitlines() == [
        "checksum after layer 3",
        f"  hidden_states    12 bytes  {digest}  sum -5.000000000e-01"
        "  squares 6.250000000e+00  abs 3.500000000e+00  lanes 3  nan 1  inf 0",
        "  lora_xa           0 bytes  absent",
        "  logits         8192 bytes  failed  BackendError: a b",
    ]


def test_an_empty_report_is_its_tag() -> None:
    assert str(ChecksumReport("start", ())) == "checksum start"


def test_fingerprints_are_immutable() -> None:
    result = BufferChecksum("x", 0, "absent")
    with pytest.raises(AttributeError):
        result.total = 1.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ChecksumReport("a", ()).tag = "b"  # type: ignore[misc]
