"""Sizes at many limits at once: those that BufferSizes has at each of them."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atlas_arena
import atlas_arena.sweep
import metrale_arena
import metrale_arena.sweep
from arenagen.compile import Text, check_source, emit, read_schema
from metrale_arena import BufferSizes, ConfigError, Levers, ModelConfig, SizeError
from metrale_arena.runtime import columns
from metrale_arena.runtime import sweep as runtime
from metrale_arena.sweep import SizesSweep, SweepError, sweep_sizes, sweep_totals

DATA = Path(__file__).parent / "data"
MODELS = [
    "Qwen3-32B",
    "DeepSeek-V3",
    "GLM-5.3-Flash",
    "Nemotron-3-Nano-30B-A3B",
    "Qwen3-Next-80B-A3B-Thinking",
]
QWEN = ModelConfig.from_hf(DATA / "Qwen3-32B.json")
ARENAS: dict[type, Any] = {
    metrale_arena.ModelConfig: metrale_arena,
    atlas_arena.ModelConfig: atlas_arena,
}
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 8192,
    "max_seq_len": 65536,
    "kv_block_size": 16,
    "max_batch_size": 32,
}


def swept(config: ModelConfig = QWEN, **limits: Any) -> SizesSweep:
    return sweep_sizes(config, **{**LIMITS, **limits}, levers=Levers())


def arrays(sizes: Any) -> list[Any]:
    """All arrays of a sweep, in the order of BufferSizes, and the total."""
    return [*sizes.columns.values(), sizes.trimmed, sizes.total_bytes]


def check(limits: dict[str, Any], config: Any = QWEN, **switches: Any) -> None:
    """Every column, and the total, of every point."""
    arena = ARENAS[type(config)]
    levers = arena.Levers(**switches)
    sizes = arena.sweep.sweep_sizes(config, **limits, levers=levers)
    shape = np.broadcast_shapes(*(np.shape(each) for each in limits.values()))
    totals = arena.sweep.sweep_totals(config, **limits, levers=levers)
    assert {each.shape for each in arrays(sizes)} == {totals.shape} == {shape}
    assert {each.dtype for each in (*arrays(sizes), totals)} == {np.dtype(np.int64)}
    points = [np.broadcast_to(each, shape).ravel().tolist() for each in limits.values()]
    flat = [each.ravel().tolist() for each in arrays(sizes)]
    for place, point in enumerate(zip(*points, strict=True)):
        wanted = arena.BufferSizes.from_config(
            config, **dict(zip(limits, point, strict=True)), levers=levers
        )
        assert [each[place] for each in flat] == [*wanted, wanted.total_bytes]
    assert totals.tolist() == sizes.total_bytes.tolist()


@pytest.mark.parametrize("arena", [metrale_arena, atlas_arena])
@pytest.mark.parametrize("stem", MODELS)
@pytest.mark.parametrize("switched", [False, True])
def test_random_limits_have_the_sizes_of_each_point(
    stem: str, arena: Any, switched: bool
) -> None:
    config = arena.ModelConfig.from_hf(DATA / f"{stem}.json")
    random = np.random.default_rng(7)
    limits = {
        "max_batch_tokens": random.integers(1, 10**6, 300),
        "max_seq_len": random.integers(1, 10**6, 300),
        # A cache that is not paged stands behind a gate of its own.
        "kv_block_size": random.choice([0, 1, 16, 64], 300),
        "max_batch_size": random.integers(1, 400, 300),
    }
    limits["max_batch_tokens"][:40] = np.arange(1, 41)
    # No lever as it is without its variable.
    defaults = {
        name: each.default
        for name, each in inspect.signature(arena.Levers).parameters.items()
    }
    others = {
        name: -1 if type(value) is int else not value
        for name, value in defaults.items()
    }
    assert others["gguf_native_q2"]
    switches = others if switched else {}
    check(limits, config, **switches)


def test_arrays_are_broadcast_together() -> None:
    tokens, batch = np.arange(1, 90, 11)[:, None], np.array([1, 30, 33, 200])
    check({**LIMITS, "max_batch_tokens": tokens, "max_batch_size": batch})


@pytest.mark.parametrize("points", [1, 6, 7, 8, 15])
def test_chunks_are_put_together(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "CHUNK_POINTS", 7)
    blocks = np.zeros(points, np.int64)
    blocks[8:] = 16
    check(
        {
            **LIMITS,
            "max_batch_tokens": np.arange(points) + 155,
            "kv_block_size": blocks,
        },
    )


@pytest.mark.parametrize(
    "tokens",
    [
        np.array(9),
        np.int64(9),
        np.array([9, 10], np.uint8),
        np.array([255, 3], np.uint8),
        np.array([120], np.int8),
        np.array([9, 10], ">i4"),
        np.array([9, 10], np.uint64),
        np.arange(40)[1::3],
        np.arange(1, 13).reshape(2, 3, 2).T,
    ],
)
def test_any_integers_will_do(tokens: Any) -> None:
    check({**LIMITS, "max_batch_tokens": tokens})


def test_ints_alone_are_one_point() -> None:
    check(LIMITS)
    assert swept().total_bytes.shape == ()


def test_no_points_have_no_sizes() -> None:
    sizes = swept(max_batch_tokens=np.empty((0, 3), np.int64))
    assert {each.shape for each in arrays(sizes)} == {(0, 3)}
    assert sizes.total_bytes.dtype == np.int64


def test_what_is_the_same_everywhere_takes_no_memory() -> None:
    sizes = swept(max_batch_tokens=np.arange(1, 1000))
    assert sizes.columns["norm_unit_w"].strides == (0,)
    assert sizes.columns["hidden_states"].strides == (8,)


def test_the_environment_is_read_when_no_levers_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {**LIMITS, "max_batch_tokens": np.arange(3, 6)}
    for value in ("0", "1"):
        monkeypatch.setenv("METRALE_GGUF_NATIVE_Q2", value)
        sizes = sweep_sizes(QWEN, **limits)
        assert (sizes.columns["q2_dequant_scratch"] > 0).all() == (value == "1")
        assert sweep_totals(QWEN, **limits).tolist() == sizes.total_bytes.tolist()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"max_batch_tokens": np.array([4, 0, 7])},
            "max_batch_tokens is 0; at least 1",
        ),
        ({"max_batch_tokens": np.array([4, -5])}, "max_batch_tokens is -5; at least 1"),
        ({"kv_block_size": np.array([-1])}, "kv_block_size is -1; at least 0"),
        ({"max_batch_tokens": 0}, "max_batch_tokens is 0; at least 1"),
        ({"max_batch_tokens": True}, "max_batch_tokens is True (bool), not an int"),
        (
            {"max_batch_tokens": np.array([1.0, 2.0])},
            "max_batch_tokens holds float64; pass an array of ints",
        ),
        (
            {"max_batch_tokens": np.array([True])},
            "max_batch_tokens holds bool; pass an array of ints",
        ),
        (
            {"max_batch_tokens": np.array([1, 2], object)},
            "max_batch_tokens holds object; pass an array of ints",
        ),
        (
            {"max_batch_tokens": [1, 2]},
            "max_batch_tokens is of list; pass an int or a numpy array of ints",
        ),
        (
            {"max_batch_tokens": 2.0},
            "max_batch_tokens is of float; pass an int or a numpy array of ints",
        ),
        (
            {"max_batch_tokens": np.arange(1, 3), "max_seq_len": np.arange(1, 4)},
            "limits do not broadcast together: max_batch_tokens (2,), max_seq_len (3,)",
        ),
    ],
)
def test_a_limit_that_cannot_be_is_refused(
    limits: dict[str, Any], message: str
) -> None:
    for sweep in (sweep_sizes, sweep_totals):
        with pytest.raises(ConfigError) as raised:
            sweep(QWEN, **{**LIMITS, **limits}, levers=Levers())
        assert str(raised.value) == message


def test_a_maximum_holds_for_every_value() -> None:
    limit = runtime.Limit(np.array([3, 9, 4]), 1, 8)
    with pytest.raises(metrale_arena.runtime.errors.ConfigError) as raised:
        runtime.Sweep((), {"blocks": limit}, dict, lambda blocks: ())
    assert str(raised.value) == "blocks is 9; from 1 to 8"


@pytest.mark.parametrize("sweep", [sweep_sizes, sweep_totals])
def test_what_may_leave_int64_is_refused(sweep: Any) -> None:
    # 46 buffers together reach 2**63 long before one of them does.
    limits = {**LIMITS, "max_batch_tokens": np.array([1, 2**45])}
    with pytest.raises(SweepError) as raised:
        sweep(QWEN, **limits, levers=Levers())
    one = BufferSizes.from_config(
        QWEN, **{**LIMITS, "max_batch_tokens": 2**45}, levers=Levers()
    )
    assert max(one) < 2**63 <= one.total_bytes
    assert raised.value.column == "total_bytes"
    assert raised.value.bound == one.total_bytes
    assert isinstance(raised.value, OverflowError)
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (str(copied), copied.bound) == (str(raised.value), one.total_bytes)
    assert str(raised.value) == (
        "total_bytes: over these limits it may be computed from integers of up to "
        f"{one.total_bytes}, more than 2**63 - 1, which arrays cannot hold; sweep "
        "smaller limits, or call BufferSizes.from_config for each point"
    )


def test_a_point_without_a_size_is_told() -> None:
    limits = {**LIMITS, "max_batch_tokens": np.array([5, 2**60, 7])}
    with pytest.raises(SizeError) as raised:
        sweep_sizes(QWEN, **limits, levers=Levers())
    with pytest.raises(SizeError) as alone:
        BufferSizes.from_config(
            QWEN, **{**LIMITS, "max_batch_tokens": 2**60}, levers=Levers()
        )
    assert str(raised.value) == (
        f"at max_batch_tokens={2**60}, max_seq_len=65536, kv_block_size=16, "
        f"max_batch_size=32: {alone.value}"
    )


@pytest.mark.parametrize("tokens", [2**70, np.array([2**63], np.uint64)])
def test_limits_that_int64_cannot_hold_are_refused(tokens: Any) -> None:
    with pytest.raises((SizeError, SweepError)):
        swept(max_batch_tokens=tokens)


def test_importing_the_package_takes_no_numpy() -> None:
    code = (
        "import sys, metrale_arena, metrale_arena.sweep\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.modules['numpy'] = None\n"
        "from metrale_arena import Levers, ModelConfig\n"
        "config = ModelConfig.from_hf(sys.argv[1])\n"
        "limits = dict(max_seq_len=9, kv_block_size=16, max_batch_size=1)\n"
        "try:\n"
        "    metrale_arena.sweep.sweep_totals(config, max_batch_tokens=1, **limits)\n"
        "except ModuleNotFoundError:\n"
        "    print('told')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(DATA / "Qwen3-32B.json")],
        cwd=DATA.parents[1] / "generated",
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("told\n", "")


SCHEMA = """
arena: {class: SweptArena, package: swept_arena, label: swept, doc: Swept.}
target: {lanes: {default: 4, minimum: 0, doc: Lanes.}}
limits:
  max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
  blocks: {minimum: 0, maximum: 90, doc: Blocks of a cache.}
  spare: {minimum: 0, doc: Spare rows.}
levers:
  packed: {variable: SWEPT_PACKED, type: bool, on_when: ["1"], doc: Packed.}
constants:
  STEPS: {value: [4, 8, 64], doc: Sizes of a graph.}
  NAMES: {value: [a, b], doc: Kinds.}
config:
  width: {doc: Width.}
  kind: {type: str, doc: Kind.}
  kinds: {type: list, doc: Kinds of layers.}
let:
  paged: {value: blocks > 0, doc: Whether the cache is paged.}
  pages: {value: M // blocks if paged else 3, doc: Pages.}
  wide: {value: "width > 4 and (paged or spare == 2)", doc: Wide.}
  graph: {value: "next_in(STEPS, blocks % 60 + 1) if paged else 0", doc: A graph.}
functions:
  rows:
    doc: Rows.
    parameters:
      n: {doc: A number.}
      more: {doc: Another.}
      twice: {type: bool, doc: Doubled.}
      word: {type: str, doc: A kind.}
    value: >-
      max(n, more + lanes, 3) * (2 if twice else 1) + align(n, width)
      + (1 if word in NAMES else 0) + (5 if packed else 0)
  columns:
    doc: Rows of rows.
    parameters: {n: {doc: A number.}}
    value: rows(n, 4, n > 9, kind) + cdiv(n, 3)
layouts:
  head:
    doc: A head.
    parameters: {n: {doc: Rows.}, long: {type: bool, doc: Long.}}
    let: {half: n // 2}
    regions:
      first: {dtype: u8, shape: [n], doc: First.}
      second: {when: long, dtype: f32, shape: [half, width], align: 16, doc: Second.}
      third: {bytes: 5, align: 8, doc: Third.}
buffers:
  hidden: {doc: Rows., dtype: bf16, shape: [M, width], token_major: true}
  cache:
    doc: A cache.
    when: paged
    dtype: fp4_e2m1
    shape: [pages, width]
    otherwise: 9
  wide_rows: {doc: Rows., when: wide, bytes: M * 8}
  rest: {doc: The rest., when: not wide, bytes: "M % max(blocks, 1) + spare"}
  table:
    doc: A table.
    when: blocks > 3 and M // (blocks - 3) > 1
    regions:
      first: {dtype: u8, shape: [M], doc: First.}
      second:
        when: blocks in STEPS
        dtype: u8
        shape: ["min(spare, 60)"]
        align: 16
        doc: Next.
      third: {when: blocks not in STEPS, bytes: graph, align: 4, doc: Third.}
      last: {at: 4096 + M, bytes: 7, doc: Last.}
  both:
    doc: Both.
    uses:
      one: {when: blocks == 7, doc: One., bytes: "columns(M)"}
      two: {when: blocks != 7, doc: Two., layout: head, arguments: {n: M, long: wide}}
      three: {when: kind == 'a', doc: Three., bytes: "rows(width, M, packed, 'c')"}
      four: {doc: Four., bytes: "clamp(M, blocks, 95) - M * 0"}
    min_bytes: 20 + spare
  less: {doc: Less., bytes: "100 - spare"}
  ahead: {doc: Ahead., when: spare < 50, bytes: "50 - spare"}
  layers: {doc: Layers., bytes: "count(kinds, 'a') * M"}
trims:
  first: {doc: A trim., when: blocks == 9 or packed, buffers: [hidden, rest]}
  second: {doc: A trim., when: "M > 30", buffers: [rest, layers]}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A package whose every gate depends on limits."""
    folder = tmp_path_factory.mktemp("swept")
    model, warnings = read_schema(Text("swept.yaml", SCHEMA.encode()))
    for name, content in emit(check_source(model, warnings, None), "x.yaml").items():
        path = folder / "swept_arena" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    sys.path.insert(0, str(folder))
    import swept_arena.sweep  # type: ignore[import-not-found]

    yield swept_arena
    sys.path.remove(str(folder))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["a", "c"])
@pytest.mark.parametrize("width", [0, 2, 6])
def test_gates_that_limits_decide(
    package: Any, width: int, kind: str, packed: bool
) -> None:
    config = package.ModelConfig(width=width, kind=kind, kinds=["a", "b", "a"])
    levers = package.Levers(packed=packed)
    tokens, blocks, spare = np.meshgrid(
        [1, 2, 5, 9, 10, 29, 30, 31, 60], [0, 1, 2, 3, 4, 7, 8, 9, 64], [0, 2, 49, 50]
    )
    limits = {"max_batch_tokens": tokens, "blocks": blocks, "spare": spare}
    points = [each.ravel().tolist() for each in limits.values()]
    wanted: list[Any] = []
    for point in zip(*points, strict=True):
        try:
            sizes = package.BufferSizes.from_config(
                config, **dict(zip(limits, point, strict=True)), levers=levers
            )
            wanted.append([*sizes, sizes.total_bytes])
        except package.SizeError as error:
            wanted.append(str(error))
    if any(isinstance(each, str) for each in wanted):
        with pytest.raises(package.SizeError) as raised:
            package.sweep.sweep_sizes(config, **limits, levers=levers)
        place, said = next((k, w) for k, w in enumerate(wanted) if isinstance(w, str))
        at = dict(zip(limits, (each[place] for each in points), strict=True))
        given = ", ".join(f"{name}={value}" for name, value in at.items())
        assert str(raised.value) == f"at {given}: {said}"
        good = np.array([not isinstance(each, str) for each in wanted])
        limits = {name: each.ravel()[good] for name, each in limits.items()}
        wanted = [each for each in wanted if not isinstance(each, str)]
    sizes = package.sweep.sweep_sizes(config, **limits, levers=levers)
    assert np.array([each.ravel() for each in arrays(sizes)]).T.tolist() == wanted
    totals = package.sweep.sweep_totals(config, **limits, levers=levers)
    assert totals.ravel().tolist() == [each[-1] for each in wanted]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("width", [2, 6])
def test_gates_that_limits_decide_are_decided_for_all_points_at_once(
    package: Any, width: int, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = package.ModelConfig(width=width, kind="a", kinds=["a", "b", "a"])
    levers = package.Levers(packed=packed)
    tokens, blocks, spare = np.meshgrid(
        [1, 2, 5, 9, 10, 29, 30, 31, 60], [1, 4, 7, 8, 9, 64], [0, 2, 49]
    )
    limits = {"max_batch_tokens": tokens, "blocks": blocks, "spare": spare}
    points = zip(*(each.ravel().tolist() for each in limits.values()), strict=True)
    wanted = [
        package.BufferSizes.from_config(
            config, **dict(zip(limits, point, strict=True)), levers=levers
        )
        for point in points
    ]
    monkeypatch.delattr(package.runtime.sweep.Sweep, "_one")
    columns = package.sweep.sweep_sizes(config, **limits, levers=levers)
    rows = np.array([each.ravel() for each in arrays(columns)]).T.tolist()
    assert rows == [[*each, each.total_bytes] for each in wanted]


def test_what_fails_behind_a_gate_is_sized_point_by_point(
    package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = package.ModelConfig(width=6, kind="a", kinds=[])
    calls = []
    alone = package.BufferSizes.from_config

    def counted(*arguments: Any, **limits: Any) -> Any:
        calls.append(limits)
        return alone(*arguments, **limits)

    monkeypatch.setattr(package.sweep.BufferSizes, "from_config", counted)
    # 50 - spare stands behind spare < 50.
    for spare, count in ((50, 0), (51, 3)):
        calls.clear()
        sizes = package.sweep.sweep_sizes(
            config,
            max_batch_tokens=np.arange(1, 4),
            blocks=5,
            spare=spare,
            levers=package.Levers(),
        )
        assert sizes.columns["ahead"].tolist() == [0, 0, 0]
        assert sizes.columns["less"].tolist() == [100 - spare] * 3
        assert len(calls) == count


def test_a_column_may_begin_to_vary_in_any_chunk(
    package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package.runtime.sweep, "CHUNK_POINTS", 3)
    sizes = package.sweep.sweep_sizes(
        package.ModelConfig(width=6, kind="a", kinds=["a"]),
        max_batch_tokens=7,
        blocks=5,
        spare=np.array([1, 1, 1, 50, 60, 50, 2, 2]),
        levers=package.Levers(),
    )
    # In the second chunk each point is sized by itself.
    assert sizes.columns["ahead"].tolist() == [49, 49, 49, 0, 0, 0, 48, 48]
    assert sizes.columns["layers"].tolist() == [7] * 8
    assert sizes.columns["hidden"].tolist() == [84] * 8


def test_a_bound_that_no_size_reaches_names_its_column() -> None:
    limit = runtime.Limit(np.array([3, 9, 4]), 1)
    sweep = runtime.Sweep(
        ("low", "high", "trimmed"),
        {"blocks": limit},
        lambda blocks: {"low": blocks, "high": blocks * 2**60 // 2**60, "trimmed": 0},
        lambda blocks: (blocks, blocks, 0),
    )
    for work in (sweep.sizes, sweep.totals):
        with pytest.raises(SweepError) as raised:
            work()
        assert (raised.value.column, raised.value.bound) == ("high", 9 * 2**60)


def test_a_total_that_int64_cannot_hold_is_refused_point_by_point() -> None:
    def unsure(blocks: Any) -> Any:
        raise columns.Unsure

    for sizes, trimmed in (((2**62, 2**62), 0), ((1, 1), 2**63)):
        sweep = runtime.Sweep(
            ("low", "high", "trimmed"),
            {"blocks": runtime.Limit(np.array([3, 9, 4]), 1)},
            unsure,
            lambda blocks, one=(*sizes, trimmed): one,
        )
        with pytest.raises(SweepError) as raised:
            sweep.totals()
        assert (raised.value.column, raised.value.bound) == ("total_bytes", 2**63)


@pytest.mark.parametrize("blocks", [2**63, np.array([3, 2**63], np.uint64)])
def test_a_limit_that_int64_cannot_hold_is_refused_before_points_are_looked_at(
    blocks: Any,
) -> None:
    def unsure(blocks: Any) -> Any:
        raise columns.Unsure

    limits = {"blocks": runtime.Limit(blocks, 1)}
    sweep = runtime.Sweep(("low", "trimmed"), limits, unsure, lambda blocks: (1, 0))
    for work in (sweep.sizes, sweep.totals):
        with pytest.raises(SweepError) as raised:
            work()
        assert (raised.value.column, raised.value.bound) == ("blocks", 2**63)


@pytest.mark.parametrize("blocks", [3, np.array([3, 4])])
def test_what_no_size_reads_may_leave_int64(blocks: Any) -> None:
    # As the arguments do of a function that reads none of them.
    def work(blocks: Any) -> Any:
        assert blocks * 2**62 is not None
        assert 2**64 // blocks is not None
        return {"low": blocks, "trimmed": 0}

    limits = {"blocks": runtime.Limit(blocks, 1)}
    sweep = runtime.Sweep(("low", "trimmed"), limits, work, lambda blocks: (blocks, 0))
    assert sweep.sizes().columns["low"].tolist() == np.asarray(blocks).tolist()
    assert sweep.totals().tolist() == np.asarray(blocks).tolist()
