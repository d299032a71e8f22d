"""Every error: its bases, its attributes, its text, and that it pickles."""

import copy
import pickle

import pytest

from runtime import errors
from runtime.errors import (
    AllocationError,
    ArenaError,
    BackendError,
    CarveError,
    ClearError,
    ConfigError,
    LayoutError,
    OutOfMemoryError,
    PointerError,
    ReleasedError,
    ReleaseError,
    SizeError,
    TeardownError,
    format_bytes,
)

FAILURES = (
    ("logits", BackendError("free: sticky")),
    ("scratch", ValueError("two\nlines")),
)

EXAMPLES: list[tuple[ArenaError, type[Exception]]] = [
    (ConfigError("bad field"), ValueError),
    (SizeError("bad size"), ValueError),
    (PointerError("bad pointer"), ValueError),
    (AllocationError("logits", 10, 1, 2, (("logits", 10),)), MemoryError),
    (BackendError("refused"), RuntimeError),
    (OutOfMemoryError(10, 1, 2), MemoryError),
    (ClearError(("residual", "logits"), "refused"), RuntimeError),
    (ReleasedError("buffer arena", "zero_all"), RuntimeError),
    (CarveError("slab", 10, 1, 2), RuntimeError),
    (ReleasedError("buffer arena", "mix.gates()", dropped=True), RuntimeError),
    (LayoutError("scratch", "rows=9", 8), ValueError),
    (LayoutError("mix", "a view", 8, "has no uses"), ValueError),
    (ReleaseError("buffer arena", FAILURES), RuntimeError),
    (TeardownError(FAILURES), RuntimeError),
]


@pytest.mark.parametrize(("error", "builtin"), EXAMPLES)
def test_bases(error: ArenaError, builtin: type[Exception]) -> None:
    assert isinstance(error, ArenaError)
    assert isinstance(error, builtin)


def test_every_error_has_an_example() -> None:
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, ArenaError)
    }
    assert defined == {ArenaError, *(type(error) for error, _ in EXAMPLES)}


@pytest.mark.parametrize(("error", "builtin"), EXAMPLES)
def test_pickle_and_copy(error: ArenaError, builtin: type[Exception]) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert sorted(vars(twin)) == sorted(vars(error))


def test_out_of_memory_is_a_backend_error() -> None:
    assert issubclass(OutOfMemoryError, BackendError)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.00 KiB (1024 bytes)"),
        (1536, "1.50 KiB (1536 bytes)"),
        (24 << 30, "24.00 GiB (25769803776 bytes)"),
        (2**63 - 1, "8.00 EiB (9223372036854775807 bytes)"),
        (2**80, "1048576.00 EiB (1208925819614629174706176 bytes)"),
    ],
)
def test_format_bytes(nbytes: int, text: str) -> None:
    assert format_bytes(nbytes) == text


def test_an_error_about_a_huge_count_has_a_text() -> None:
    # Python spells no int of so many digits.
    huge = 16**5000
    text = f"{hex(huge)[:40]}... bytes"
    assert text in str(AllocationError.from_sizes("f", huge, 1, 2, {"f": huge}))
    assert f"-{text[:39]}... bytes" in str(CarveError("slab", -huge, 1, 2))


def test_allocation_error_keeps_the_five_largest() -> None:
    sizes = {"a": 1, "b": 7, "c": 7, "none": 0, "d": 3, "e": 4, "f": 2048}
    error = AllocationError.from_sizes("f", 2048, 100, 4096, sizes)
    assert error.buffer == "f"
    assert error.nbytes == 2048
    assert (error.free, error.total) == (100, 4096)
    assert error.largest == (("f", 2048), ("b", 7), ("c", 7), ("e", 4), ("d", 3))


def test_allocation_error_leaves_out_empty_buffers() -> None:
    error = AllocationError.from_sizes("a", 1, 0, 0, {"a": 1, "none": 0})
    assert error.largest == (("a", 1),)


def test_allocation_error_text() -> None:
    error = AllocationError("logits", 2048, 100, 4096, (("scratch", 3072), ("b", 1)))
    assert str(error) == (
        "logits: cannot allocate 2.00 KiB (2048 bytes); "
        "free: 100 bytes of 4.00 KiB (4096 bytes)\n"
        "the largest buffers:\n"
        "  scratch  3.00 KiB (3072 bytes)\n"
        "  b        1 byte"
    )


def test_allocation_error_of_the_whole_arena_with_unknown_memory() -> None:
    error = AllocationError(None, 5, None, None, ())
    assert str(error) == (
        "all buffers together: cannot allocate 5 bytes; "
        "free: unknown of an unknown total"
    )


def test_out_of_memory_text_and_attributes() -> None:
    error = OutOfMemoryError(2048, 100, None)
    assert (error.asked, error.free, error.total) == (2048, 100, None)
    assert str(error) == (
        "out of memory: 2.00 KiB (2048 bytes) asked; "
        "free: 100 bytes of an unknown total"
    )


def test_released_error() -> None:
    error = ReleasedError("buffer arena", "zero_all_rows")
    assert (error.label, error.operation) == ("buffer arena", "zero_all_rows")
    assert str(error) == (
        "buffer arena: zero_all_rows after release; "
        "its memory is gone, build a new arena"
    )


def test_released_error_of_an_arena_that_is_gone() -> None:
    error = ReleasedError("buffer arena", "mix.gates()", dropped=True)
    assert error.dropped
    assert str(error) == (
        "buffer arena: mix.gates() after release, as nothing held the arena; "
        "build a new one and keep it"
    )


def test_layout_error_of_what_is_no_matter_of_room() -> None:
    error = LayoutError("mix", "a view", 64, "has no uses; leave use out")
    assert error.why == "has no uses; leave use out"
    assert str(error) == "mix has no uses; leave use out"


def test_carve_error() -> None:
    error = CarveError("slab", 100, 30, 120)
    assert (error.buffer, error.asked, error.used, error.capacity) == (
        "slab",
        100,
        30,
        120,
    )
    assert str(error) == (
        "slab: cannot carve 100 bytes: 90 bytes left, 30 used of 120 bytes"
    )


def test_carve_error_of_an_absent_slab() -> None:
    assert str(CarveError("slab", 100, 0, 0)) == (
        "slab: cannot carve 100 bytes: the slab is not allocated in this arena"
    )


@pytest.mark.parametrize("asked", [0, -5])
def test_carve_error_of_nothing(asked: int) -> None:
    assert str(CarveError("slab", asked, 0, 8)) == (
        f"slab: cannot carve {asked} bytes: a piece has at least 1 byte"
    )


def test_layout_error() -> None:
    error = LayoutError("scratch", "rows=9 (72 bytes)", 64)
    assert (error.buffer, error.requested, error.capacity) == (
        "scratch",
        "rows=9 (72 bytes)",
        64,
    )
    assert str(error) == "scratch: no room for rows=9 (72 bytes): it has 64 bytes"


def test_layout_error_of_an_absent_buffer() -> None:
    assert str(LayoutError("scratch", "rows=9", 0)) == (
        "scratch: no room for rows=9: it is not allocated in this arena (0 bytes)"
    )


def test_release_error_names_every_failure() -> None:
    error = ReleaseError("buffer arena", FAILURES)
    assert error.label == "buffer arena"
    assert error.failures == FAILURES
    assert str(error) == (
        "buffer arena: could not free:\n"
        "  logits: BackendError: free: sticky\n"
        "  scratch: ValueError: two\n"
        "  lines"
    )


def test_teardown_error_names_every_failure() -> None:
    error = TeardownError((("buffer arena", ReleaseError("buffer arena", FAILURES)),))
    assert str(error) == (
        "teardown: could not release:\n"
        "  buffer arena: ReleaseError: buffer arena: could not free:\n"
        "    logits: BackendError: free: sticky\n"
        "    scratch: ValueError: two\n"
        "    lines"
    )
