"""The arguments of the accessor of a buffer that a named layout fills.

A small arena of its own: where the regions lie for each call is worked out here.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from arenagen.chunks import MAX_LINES
from arenagen.compile import Text, read_schema
from arenagen.disk import write
from arenagen.lower import lower
from arenagen.render import render

TEXT = """
arena: {class: Arena, package: layout_arguments_arena, label: arena, doc: An arena.}
limits:
  max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
  max_batch_size: {symbol: B, minimum: 1, doc: Sequences of a batch.}
  max_seq_len: {minimum: 1, doc: Tokens of a sequence.}
config:
  width: {doc: A width.}
layouts:
  meta:
    doc: Metadata of a batch.
    parameters:
      rows: {doc: Sequences that the block holds.}
      tokens: {doc: Tokens of the step.}
      blocks: {doc: Blocks of a sequence.}
      streams: {doc: Position streams.}
      long: {type: bool, doc: Sequences are long.}
    regions:
      lengths: {dtype: u32, shape: [rows], doc: Length of each sequence.}
      positions: {dtype: u32, shape: [streams, tokens], doc: Positions.}
      table: {dtype: u32, shape: [rows, blocks], doc: Blocks of each sequence.}
      spare: {when: long, bytes: 4, doc: Room.}
buffers:
  kv_meta:
    doc: A block of metadata.
    layout: meta
    arguments:
      rows: B
      tokens: M
      blocks: max_seq_len // 16
      streams: width
      long: max_seq_len > 64
"""
# Tokens, sequences and position streams of the arena.
M, B, WIDTH = 6, 5, 3


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    schema, warnings = read_schema(Text("arguments.yaml", TEXT.encode()))
    assert warnings == ()
    folder = tmp_path_factory.mktemp("emitted")
    files = render(lower(schema, MAX_LINES), None, "arguments.yaml")
    write(folder / "layout_arguments_arena", files)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("layout_arguments_arena")
    sys.path.remove(str(folder))
    for name in [each for each in sys.modules if "layout_arguments_arena" in each]:
        del sys.modules[name]


def build(package: ModuleType, max_seq_len: int) -> Any:
    return package.Arena(
        package.ModelConfig(width=WIDTH),
        max_batch_tokens=M,
        max_batch_size=B,
        max_seq_len=max_seq_len,
    )


def starts(rows: int, tokens: int, blocks: int) -> list[tuple[int, tuple[int, ...]]]:
    """Offset and dimensions of lengths, positions and table."""
    positions = 4 * rows
    table = positions + 4 * WIDTH * tokens
    return [(0, (rows,)), (positions, (WIDTH, tokens)), (table, (rows, blocks))]


def laid(part: Any) -> list[tuple[int, tuple[int, ...]]]:
    regions = (part.lengths, part.positions, part.table)
    return [(each.offset, each.shape) for each in regions]


def test_a_call_takes_what_depends_on_a_limit(package: ModuleType) -> None:
    with build(package, 64) as arena:
        meta = arena.kv_meta
        assert laid(meta()) == starts(B, M, 4)
        assert meta().nbytes == arena.kv_meta_bytes
        assert meta() == meta(**meta.most)
        assert meta.most == {"tokens": M, "rows": B, "blocks": 4}
        # Tokens alone go by place.
        assert laid(meta(2)) == laid(meta(tokens=2)) == starts(B, 2, 4)
        assert laid(meta(rows=3)) == starts(3, M, 4)
        assert laid(meta(rows=1, tokens=1, blocks=1)) == starts(1, 1, 1)
        smaller = meta(4, rows=2, blocks=3)
        assert laid(smaller) == starts(2, 4, 3)
        assert smaller.table.ptr == meta + smaller.table.offset
        assert smaller == package.MetaLayout.of(
            rows=2, tokens=4, blocks=3, streams=WIDTH, long=False, base=meta
        )
        parameters = inspect.signature(meta).parameters.values()
        assert [(each.name, each.kind.name) for each in parameters] == [
            ("tokens", "POSITIONAL_OR_KEYWORD"),
            ("rows", "KEYWORD_ONLY"),
            ("blocks", "KEYWORD_ONLY"),
        ]


def test_a_call_is_held_against_the_arena(package: ModuleType) -> None:
    def refusal(ask: Callable[..., object], **asked: int) -> str:
        with pytest.raises(package.LayoutError) as caught:
            ask(**asked)
        return str(caught.value)

    with build(package, 64) as arena:
        meta = arena.kv_meta
        assert refusal(meta, rows=6, blocks=5, tokens=1) == (
            "kv_meta: no room for tokens=1, rows=6, blocks=5 (156 bytes), "
            "at most rows=5, blocks=4: it has 172 bytes"
        )
        for bad in (0, True, "3"):
            with pytest.raises(package.ConfigError, match="rows"):
                meta(rows=bad)
        with pytest.raises(TypeError):
            meta(max_batch_size=3)
        for own in ("streams", "long"):
            # Of the model, and no count.
            with pytest.raises(TypeError):
                meta(**{own: 1})


def test_what_is_none_here_need_not_be_asked_for(package: ModuleType) -> None:
    # Sequences that fill no block.
    with build(package, 15) as arena:
        assert laid(arena.kv_meta(2, rows=3)) == starts(3, 2, 0)
        with pytest.raises(package.LayoutError, match=r"blocks=1 .* at most blocks=0"):
            arena.kv_meta(blocks=1)


@pytest.mark.parametrize("max_seq_len", [15, 64, 65])
def test_the_package_checks_itself(package: ModuleType, max_seq_len: int) -> None:
    report = package.selfcheck(
        package.ModelConfig(width=WIDTH),
        max_batch_tokens=M,
        max_batch_size=B,
        max_seq_len=max_seq_len,
    )
    assert report.ok, str(report)
