"""The main job, shown: sizes of real checkpoints, and one arena from build to release.

Run by `make demo` once the package is generated and checked. Everything printed is
computed here by the emitted package, on host memory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TypedDict

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "generated"))

from metrale_arena import (  # noqa: E402
    BUFFERS,
    BufferArena,
    BufferSizes,
    HostBackend,
    Levers,
    ModelConfig,
    selfcheck,
)

TOKENS = (1, 512, 8192)
MODELS = (
    "DeepSeek-V3",
    "GLM-5.3-Flash",
    "Llama-3.1-8B",
    "Nemotron-3-Nano-30B-A3B",
    "Qwen3-30B-A3B",
    "Qwen3-32B",
    "Qwen3-Next-80B-A3B-Thinking",
    "Qwen3.5-27B",
    "Qwen3.5-35B-A3B",
)
SHOWN = "Qwen3-Next-80B-A3B-Thinking"
FILL = 0xA5


class Limits(TypedDict):
    """What a server passes."""

    max_batch_tokens: int
    max_seq_len: int
    kv_block_size: int
    max_batch_size: int


def limits(tokens: int) -> Limits:
    """The limits of a server, for a pass of so many tokens."""
    return {
        "max_batch_tokens": tokens,
        "max_seq_len": 65536,
        "kv_block_size": 16,
        "max_batch_size": 32,
    }


def mib(nbytes: int) -> str:
    """A byte count in MiB."""
    return f"{nbytes / 2**20:,.1f}"


def new_table(title: str) -> Table:
    """An empty table without a frame."""
    return Table(
        title=title,
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        pad_edge=False,
    )


def sizes_table(configs: dict[str, ModelConfig]) -> Table:
    """The arena of each model at each token limit, and its largest buffer."""
    table = new_table("MiB of every buffer together, for a pass of M tokens")
    table.add_column("model", no_wrap=True)
    for tokens in TOKENS:
        table.add_column(f"M = {tokens}", justify="right")
    table.add_column("largest buffer", no_wrap=True)
    table.add_column("trimmed", justify="right")
    for name, config in configs.items():
        sizes = [
            BufferSizes.from_config(config, **limits(tokens), levers=Levers())
            for tokens in TOKENS
        ]
        largest, nbytes = max(sizes[-1].as_dict().items(), key=lambda entry: entry[1])
        trimmed = mib(sizes[-1].trimmed) if sizes[-1].trimmed else ""
        totals = (mib(each.total_bytes) for each in sizes)
        table.add_row(name, *totals, f"{largest} {mib(nbytes)}", trimmed)
    return table


def cleared(gpu: HostBackend, arena: BufferArena) -> dict[str, int]:
    """Zero bytes in each buffer of an arena that was filled with another byte."""
    found = {}
    for name in BUFFERS:
        content = bytearray(getattr(arena, f"{name}_bytes"))
        if content:
            gpu.copy_d2h(content, getattr(arena, name))
            found[name] = content.count(0)
    return found


def row_table(gpu: HostBackend, arena: BufferArena) -> Table:
    """What clearing one row did to each buffer of the group."""
    table = new_table("zero_all_rows(stream, tokens=1)")
    table.add_column("buffer")
    table.add_column("bytes", justify="right")
    table.add_column("cleared", justify="right")
    table.add_column("why")
    total = 0
    for name, nbytes in cleared(gpu, arena).items():
        info = BUFFERS[name]
        if "zero_all" not in info.groups:
            assert nbytes == 0, name
            continue
        total += nbytes
        why = "what one token touches" if info.token_major else "in full"
        size = getattr(arena, f"{name}_bytes")
        table.add_row(name, f"{size:,}", f"{nbytes:,}", why)
    whole = arena.sizes.total_bytes
    table.caption = f"{total:,} of {whole:,} bytes cleared, none of another buffer"
    return table


def main() -> None:
    """Print the whole story."""
    console = Console(width=96, highlight=False)
    configs = {
        name: ModelConfig.from_hf(ROOT / "tests" / "data" / f"{name}.json")
        for name in MODELS
    }
    console.print(sizes_table(configs))

    gpu = HostBackend()
    config = configs[SHOWN]
    with BufferArena(config, **limits(64), levers=Levers(), gpu=gpu) as arena:
        console.print(f"Built the arena of {SHOWN} for 64 tokens on host memory:")
        console.print(f"  {arena!r}")
        console.print(
            f"  {gpu.live_allocations} allocations, {gpu.live_bytes:,} bytes live, "
            f"{arena.sizes.total_bytes:,} in the total\n"
        )
        for name in BUFFERS:
            if nbytes := getattr(arena, f"{name}_bytes"):
                gpu.memset(getattr(arena, name), FILL, nbytes)
        arena.zero_all_rows(gpu.default_stream, tokens=1)
        console.print(row_table(gpu, arena))
    console.print(f"Released: {gpu.live_bytes} bytes live, {arena!r}")
    report = selfcheck(config, **limits(64), levers=Levers(), gpu=gpu)
    console.print(str(report))


if __name__ == "__main__":
    main()
