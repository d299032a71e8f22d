"""Ten times the buffers: what they cost in time and memory, stage by stage.

The schemas are made: buffers of a few shapes over shared lets and functions, some with
uses, some with regions, some gated. Each size runs in a process of its own, so
that the peak of its memory is its own.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from common import Row, ratio

from arenagen.header import header

SIZES = (600, 6000)
MOST = 11.0
_WHY = (
    "each buffer takes as long among 600 as among 12,000, to within a tenth, which is "
    "what memory beyond the processor's caches costs; it would take less of it."
)

HEAD = """\
arena:
  class: ScaleArena
  package: scale_arena
  label: scale arena
  doc: An arena of many buffers.
limits:
  max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
  max_batch_size: {minimum: 1, doc: Sequences of a batch.}
config:
  hidden_size: {doc: Width of the residual stream.}
  num_heads: {doc: Attention heads.}
  head_dim: {doc: Width of a head.}
  num_experts: {doc: Experts of a layer.}
let:
  q_width: {value: num_heads * head_dim, doc: Width of all heads.}
  width: {value: "max(hidden_size, q_width)", doc: The wider one.}
  M_pad: {value: "align(M, 128)", doc: Rows of a tile.}
functions:
  tiles:
    parameters: {rows: {type: int, doc: Rows.}}
    value: cdiv(rows, 128)
    doc: Tiles of some rows.
groups:
  all: {method: zero_all, rows_method: zero_all_rows, doc: Every buffer of a pass.}
buffers:
"""
ENTRIES = (
    """\
  buffer_{i}:
    doc: Output number {i} of a layer.
    dtype: bf16
    shape: [M, width]
    token_major: true
    zero: [all]
""",
    """\
  buffer_{i}:
    doc: Scratch number {i} of several steps.
    uses:
      attention: {{shape: [M, q_width], dtype: bf16, doc: Queries.}}
      mixer: {{shape: [M_pad, hidden_size, 2], dtype: f32, doc: States.}}
""",
    """\
  buffer_{i}:
    doc: Scales number {i} of the tiles.
    dtype: f32
    shape: ["tiles(M)", hidden_size]
""",
    """\
  buffer_{i}:
    doc: Experts' rows, number {i}.
    when: num_experts > 0
    dtype: f16
    shape: [M, num_experts]
    token_major: true
""",
    """\
  buffer_{i}:
    doc: Metadata number {i} of a batch.
    regions:
      ids: {{dtype: i32, shape: [M], doc: Ids of the tokens.}}
      slots: {{dtype: i64, shape: [max_batch_size], align: 64, doc: Slots.}}
""",
)


def schema(count: int) -> str:
    """A schema of so many buffers."""
    return HEAD + "".join(ENTRIES[i % len(ENTRIES)].format(i=i) for i in range(count))


def stages(count: int) -> dict[str, float]:
    """CPU milliseconds of each stage, and the peak of `memory` in MiB."""
    from arenagen import disk, render, source, structure
    from arenagen.check import check
    from arenagen.load import load_nodes
    from arenagen.lower import lower
    from arenagen.style import styled

    # As the command line does.
    gc.disable()
    found: dict[str, float] = {}

    def stage(name: str, work: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        start = process_time()
        result = work(*arguments, **more)
        found[name] = found.get(name, 0.0) + (process_time() - start) * 1e3
        return result

    root = stage("parse", source.parse, schema(count), "scale.yaml")
    problems = stage("structure", structure.check_structure, root)
    loaded = stage("load", load_nodes, root)
    problems += stage("check", check, loaded)
    if problems:
        raise SystemExit("\n".join(map(str, problems)))
    view = stage("lower", lower, loaded)
    files = {}
    for path, template, seen in render.modules(view):
        text = stage("render", template.render, view=seen)
        files[path] = header("scale.yaml") + stage("format", styled, text)
    with tempfile.TemporaryDirectory() as folder:
        stage("write", disk.write, Path(folder) / "out", files)
    found["all"] = sum(found.values())
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def measured(count: int) -> dict[str, float]:
    """The stages of one size, in a process of its own."""
    command = [sys.executable, __file__, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def rows(count: int = 5) -> list[Row]:
    """Each stage of the largest size against that of a tenth of it."""
    small, large = SIZES
    found = [(measured(large), measured(small)) for _ in range(count)]
    return [
        ratio(
            f"{stage}, {large:,} buffers",
            f"{small:,} buffers",
            [(ours[stage], theirs[stage]) for ours, theirs in found],
            MOST,
            _WHY,
        )._replace(unit="MiB" if stage == "memory" else "ms")
        for stage in found[0][0]
    ]


if __name__ == "__main__":
    print(json.dumps(stages(int(sys.argv[1]))))
