"""Zeroing groups that hold regions, on host memory and on the simulated driver.

A small arena of its own: the ranges that each method must clear are worked out here.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from arenagen.chunks import MAX_LINES
from arenagen.compile import Text, read_schema
from arenagen.disk import write
from arenagen.lower import lower
from arenagen.model import Schema
from arenagen.render import render
from arenagen.sizing import complete_inputs
from arenagen.zeroing import find_group, zero_plan
from driver.simulated import Driver

pytest_plugins = ["driver.plugin"]

TEXT = """
arena: {class: Arena, package: zero_regions_arena, label: arena, doc: An arena.}
limits:
  tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
  rows: {minimum: 1, doc: Rows of a batch.}
config:
  width: {doc: A width.}
  paged: {type: bool, doc: There is a table.}
  expert_count: {doc: Experts.}
layouts:
  block:
    doc: Two columns and, where there is a table, its rows.
    parameters: {n: {doc: Rows.}, tabled: {type: bool, doc: There is a table.}}
    regions:
      ids: {dtype: u32, shape: [n], doc: Ids.}
      flags: {dtype: u8, shape: [n], doc: Flags.}
      table: {when: tabled, dtype: u32, shape: [n], align: 4, doc: A table.}
groups:
  all: {method: zero_all, rows_method: zero_all_rows, doc: Clear all.}
  launch: {method: zero_launch, rows_method: zero_launch_rows, doc: Clear counters.}
  rare: {method: zero_rare, doc: Clear rarely.}
buffers:
  hidden:
    doc: One row a token.
    dtype: bf16
    shape: [M, width]
    token_major: true
    zero: [all]
  slab:
    doc: A layout.
    layout: block
    arguments: {n: 2 * M, tabled: paged}
    zero: [all, {launch: [flags, table]}]
  scratch:
    doc: What passes share.
    dtype: u8
    uses:
      prefill:
        doc: A prefill.
        regions:
          routing: {dtype: u32, shape: [M], doc: Routing.}
          meta:
            layout: block
            arguments: {n: rows, tabled: "True"}
            doc: Metadata.
      decode:
        when: paged
        doc: A decode step.
        regions:
          counts: {dtype: u32, shape: [rows], align: 64, doc: Counts.}
          rest: {bytes: 100, doc: Room.}
      staging: {bytes: 4 * M, doc: Uploads.}
      draft:
        when: rows > 4
        layout: block
        arguments: {n: M + rows, tabled: paged}
        doc: Metadata of drafts.
      names:
        doc: Regions that are called as functions and limits are.
        regions:
          max: {bytes: "max(M, 2)", doc: Bytes.}
          tokens: {when: paged, dtype: u32, shape: [M], align: 4, doc: Words.}
          place: {bytes: 3, doc: Bytes.}
          end: {bytes: rows, doc: Bytes.}
    zero:
      - launch: [prefill.meta.flags, decode.counts]
      - rare: [staging]
  twice:
    doc: Listed whole and in part.
    dtype: u8
    regions:
      head: {bytes: 16, doc: A head.}
      tail: {bytes: 48, doc: A tail.}
    zero: [launch, {launch: [head]}, {rare: [tail, head]}]
  experts:
    doc: Only where there are experts.
    when: expert_count > 0
    otherwise: 8
    dtype: u32
    regions:
      tiles: {shape: [expert_count], doc: Tiles.}
      total: {shape: [1], doc: Their number.}
    zero: [{launch: [total]}]
"""

# Tokens and rows of the arena, and its width.
M, ROWS, WIDTH = 6, 5, 3
DIRTY = 0xA5


@pytest.fixture(scope="module")
def schema() -> Schema:
    found, warnings = read_schema(Text("zero_regions.yaml", TEXT.encode()))
    assert warnings == ()
    return found


# Modules of all buffers, and a chunk for each of them.
@pytest.fixture(scope="module", params=[MAX_LINES, 1], ids=["whole", "chunks"])
def package(
    request: pytest.FixtureRequest,
    schema: Schema,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("emitted")
    files = render(lower(schema, request.param), None, "zero_regions.yaml")
    assert ("arena_01.py" in files) is (request.param == 1)
    write(folder / "zero_regions_arena", files)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("zero_regions_arena")
    sys.path.remove(str(folder))
    for name in [each for each in sys.modules if "zero_regions_arena" in each]:
        del sys.modules[name]


@pytest.fixture(params=["host", "driver"])
def gpu(request: pytest.FixtureRequest, package: ModuleType) -> Any:
    if request.param == "host":
        return package.HostBackend()
    driver: Driver = request.getfixturevalue("simulated_driver")
    driver.reset(memory=1 << 24)
    return package.CudaBackend()


Spans = dict[str, list[tuple[int, int]]]


def slab_flags(tokens: int) -> tuple[int, int]:
    # 4 bytes of each of 2 * tokens ids, then a byte of each.
    return 8 * tokens, 10 * tokens


def slab_table(tokens: int) -> tuple[int, int]:
    start = -(-10 * tokens // 4) * 4
    return start, start + 8 * tokens


def launch(tokens: int, paged: bool, experts: int) -> Spans:
    """First byte and end of what `zero_launch` clears, by buffer."""
    spans: Spans = {"slab": [slab_flags(tokens)], "twice": [(0, 64)]}
    # Routing of each token, then ids of each row, then flags.
    flags = 4 * tokens + 4 * ROWS
    spans["scratch"] = [(flags, flags + ROWS)]
    if paged:
        spans["slab"].append(slab_table(tokens))
        # Counts lie at the start of scratch.
        spans["scratch"].insert(0, (0, 4 * ROWS))
    if experts:
        spans["experts"] = [(4 * experts, 4 * experts + 4)]
    return spans


def check_cleared(gpu: Any, arena: Any, spans: Spans, clear: Any) -> None:
    """Soil everything, clear, and hold every byte of every buffer against the spans."""
    names = ("hidden", "slab", "scratch", "twice", "experts")
    for name in names:
        ptr = getattr(arena, name)
        gpu.memset(ptr, DIRTY, getattr(arena, f"{name}_bytes"))
    clear()
    gpu.synchronize(gpu.default_stream)
    for name in names:
        nbytes = getattr(arena, f"{name}_bytes")
        content = bytearray(nbytes)
        gpu.copy_d2h(content, getattr(arena, name))
        wanted = bytearray([DIRTY]) * nbytes
        for start, end in spans.get(name, ()):
            wanted[start:end] = bytes(end - start)
        assert content == wanted, name


def build(package: ModuleType, gpu: Any, paged: bool, experts: int, **more: Any) -> Any:
    config = package.ModelConfig(width=WIDTH, paged=paged, expert_count=experts)
    return package.Arena(
        config, tokens=M, rows=ROWS, levers=package.Levers(), gpu=gpu, **more
    )


@pytest.mark.parametrize("placement", ["separate", "slab"])
@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("experts", [0, 3])
def test_regions_are_cleared_and_nothing_else(
    package: ModuleType, gpu: Any, placement: str, paged: bool, experts: int
) -> None:
    with build(package, gpu, paged, experts, placement=placement) as arena:
        stream = gpu.default_stream
        spans = launch(M, paged, experts)
        check_cleared(gpu, arena, spans, lambda: arena.zero_launch(stream))
        for tokens in range(1, M + 2):
            # Place and bytes of a region are those of the pass.
            spans = launch(min(tokens, M), paged, experts)
            check_cleared(
                gpu,
                arena,
                spans,
                lambda tokens=tokens: arena.zero_launch_rows(stream, tokens=tokens),
            )
        whole = {
            "hidden": [(0, M * WIDTH * 2)],
            "slab": [(0, arena.slab_bytes)],
        }
        check_cleared(gpu, arena, whole, lambda: arena.zero_all(stream))
        rows = {"hidden": [(0, 2 * WIDTH * 2)], "slab": [(0, arena.slab_bytes)]}
        check_cleared(gpu, arena, rows, lambda: arena.zero_all_rows(stream, tokens=2))
        rare = {"scratch": [(0, 4 * M)], "twice": [(0, 64)]}
        check_cleared(gpu, arena, rare, lambda: arena.zero_rare(stream))


def test_the_plan_names_the_regions(package: ModuleType, gpu: Any) -> None:
    with build(package, gpu, paged=True, experts=3) as arena:
        assert arena.zero_plan(method="zero_launch") == (
            # Listed whole and in part, and cleared once.
            (("twice",), 0, 64),
            # 12 ids of 4 bytes, then 12 flags and, where 4 divides, the table.
            (("slab.flags", "slab.table"), 48, 60),
            (("scratch.decode.counts",), 0, 20),
            (("scratch.prefill.meta.flags",), 44, 5),
            (("experts.total",), 12, 4),
        )
        # 10 flags of 5 tokens end at 50, and the table begins at 52.
        assert arena.zero_plan(5, method="zero_launch")[1:3] == (
            (("slab.flags",), 40, 10),
            (("slab.table",), 52, 40),
        )
        # The head lies before the tail, whatever order they are listed in.
        assert arena.zero_plan(method="zero_rare") == (
            (("scratch.staging",), 0, 24),
            (("twice.head", "twice.tail"), 0, 64),
        )
    with build(package, gpu, paged=False, experts=0) as arena:
        assert arena.zero_plan(method="zero_launch") == (
            (("twice",), 0, 64),
            (("slab.flags",), 48, 12),
            (("scratch.prefill.meta.flags",), 44, 5),
        )


def test_regions_of_a_slab_join_what_lies_beside_them(
    package: ModuleType, gpu: Any
) -> None:
    with build(package, gpu, paged=True, experts=3, placement="slab") as arena:
        # Each at the next 256: hidden of 36 bytes, slab of 108, twice of 64, scratch of
        # 120, experts of 16.
        names = ("hidden", "slab", "twice", "scratch", "experts")
        places = [getattr(arena, name) - arena.hidden for name in names]
        assert places == [0, 256, 512, 768, 1024]
        assert arena.zero_plan(method="zero_launch") == (
            # The table ends with slab, and the counts begin with scratch.
            (
                ("slab.flags", "slab.table", "twice", "scratch.decode.counts"),
                256 + 48,
                768 + 20 - 256 - 48,
            ),
            (("scratch.prefill.meta.flags",), 768 + 44, 5),
            (("experts.total",), 1024 + 12, 4),
        )
        # 4 tokens: the table ends at 72 of 108, and nothing may join it.
        assert arena.zero_plan(4, method="zero_launch")[:2] == (
            (("slab.flags", "slab.table"), 256 + 32, 40),
            (("twice", "scratch.decode.counts"), 512, 256 + 20),
        )


def test_smaller_sizes_clear_what_there_is(package: ModuleType, gpu: Any) -> None:
    config = package.ModelConfig(width=WIDTH, paged=True, expert_count=3)
    limits = {"tokens": M, "rows": ROWS, "levers": package.Levers()}
    sizes = package.BufferSizes.from_config(config, **limits)
    sizes = sizes._replace(slab=50, experts=12)
    with package.Arena.from_sizes(config, sizes, **limits, gpu=gpu) as arena:
        plan = {
            each.buffers: each[1:] for each in arena.zero_plan(method="zero_launch")
        }
        assert plan[("slab.flags",)] == (48, 2)
        assert ("experts.total",) not in plan


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("experts", [0, 3])
@pytest.mark.parametrize("placement", ["separate", "slab"])
def test_the_tool_plans_what_the_package_does(
    package: ModuleType, schema: Schema, paged: bool, experts: int, placement: Any
) -> None:
    inputs = complete_inputs(
        schema,
        {"width": WIDTH, "paged": paged, "expert_count": experts},
        {"tokens": M, "rows": ROWS},
        {},
        {},
    )
    gpu = package.HostBackend()
    with build(package, gpu, paged, experts, placement=placement) as arena:
        for method, asked in (
            ("zero_all", (None, 1, 4, M)),
            ("zero_launch", (None, *range(1, M + 1))),
            ("zero_rare", (None,)),
        ):
            group = find_group(schema, method)
            for tokens in asked:
                found = zero_plan(schema, inputs, group, tokens, placement)
                shown = arena.zero_plan(tokens, method=method)
                assert sorted(
                    (each.buffers, each.offset, each.nbytes) for each in found
                ) == sorted(tuple(each) for each in shown)


def test_what_lies_in_a_buffer_of_any_schema(package: ModuleType, gpu: Any) -> None:
    with build(package, gpu, paged=True, experts=0) as arena:
        # A use that is a layout; 5 rows, and tokens: 7 ids, flags to 35, a table at 36.
        draft = arena.scratch.draft(2)
        assert draft.table.ptr - arena.scratch == 36
        assert (draft.n, draft.nbytes) == (7, 36 + 28)
        # Its gate depends on a limit, so that a smaller batch has none.
        with pytest.raises(package.LayoutError, match=r"gate is false \(rows > 4\)"):
            arena.scratch.draft(rows=4)
        assert arena.required_bytes("scratch", "draft", rows=4) == 0
        # 3 bytes, words from 4 to 16, then 3 bytes and one for each row.
        names = arena.scratch.names(3)
        assert [part.offset for part in names[:-1]] == [0, 4, 16, 19]
        assert names.max.shape == (3,) and names.tokens.shape == (3,)
        assert names.nbytes == 24
        assert arena.scratch.names(3, rows=2).nbytes == 21
        assert arena.scratch.staging(2).shape == (8,)
        # Arguments of a layout of a buffer are its own.
        assert arena.slab.most == {"n": 2 * M}
        assert arena.slab(3).flags.shape == (3,)
        with pytest.raises(package.LayoutError, match=r"n=13 .* at most n=12"):
            arena.slab(n=13)
        assert arena.twice().tail.offset == 16
        assert arena.twice.most == {"tokens": M}
    assert arena.twice.most == {"tokens": 0}
    with build(package, gpu, paged=False, experts=0) as arena:
        names = arena.scratch.names(3)
        assert names.tokens is None
        assert (names.place.offset, names.end.offset, names.nbytes) == (3, 6, 11)


def test_docs_and_data_name_the_regions(package: ModuleType) -> None:
    doc = " ".join(str(package.Arena.zero_launch.__doc__).split())
    assert "Enqueue on the stream 6 memsets at most" in doc
    assert (
        "Members: twice, slab.flags, slab.table, scratch.prefill.meta.flags, "
        "scratch.decode.counts, experts.total." in doc
    )
    doc = " ".join(str(package.Arena.zero_launch_rows.__doc__).split())
    assert "A region is cleared where it lies in a pass of that many tokens" in doc
    info = package.BUFFERS["slab"]
    assert info.groups == ("zero_all",)
    assert info.region_groups == (("zero_launch", "flags"), ("zero_launch", "table"))
    slot = package.Arena.slab.__objclass__.__slots__["slab"]
    assert "Cleared by zero_all. Of it, flags is cleared by zero_launch." in slot


def test_an_error_names_the_region(package: ModuleType) -> None:
    class Failing(package.HostBackend):  # type: ignore[name-defined, misc]
        def memset_async(self, ptr: int, value: int, nbytes: int, stream: Any) -> None:
            if nbytes == 4:
                raise package.BackendError("no")

    with (
        build(package, Failing(), paged=False, experts=3) as arena,
        pytest.raises(package.ClearError) as caught,
    ):
        arena.zero_launch(0)
    assert caught.value.buffers == ("experts.total",)


def test_the_package_checks_itself(package: ModuleType) -> None:
    for paged in (False, True):
        config = package.ModelConfig(width=WIDTH, paged=paged, expert_count=3 * paged)
        report = package.selfcheck(config, tokens=M, rows=ROWS)
        assert report.failures == ()


def test_the_package_is_as_clean_as_any(package: ModuleType) -> None:
    folder = Path(str(package.__file__)).parent
    for command in (
        ("ruff", "check", "--isolated", "--no-cache", "."),
        ("mypy", "--strict", f"--cache-dir={folder.parent / 'cache'}", "."),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
