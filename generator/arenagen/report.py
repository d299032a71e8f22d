"""Sizes as a table, JSON, CSV or Markdown. Data in, text out; prints nothing."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from . import markdown
from .model import Schema
from .sizing import ArenaSize, BufferSize, Inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from .zeroing import ZeroRange

COLUMNS = ("buffer", "bytes", "share", "dtype", "shape", "use", "gate")
GATE_WIDTH = 100
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human(nbytes: int) -> str:
    """A byte count in the largest unit that keeps it at 1 or more."""
    power = max(0, min((nbytes.bit_length() - 1) // 10, len(_UNITS) - 1))
    if power == 0:
        return f"{nbytes} B"
    return f"{nbytes / 1024**power:.2f} {_UNITS[power]}"


def one_line(text: str) -> str:
    """A doc without the line ends that it may hold."""
    return " ".join(text.split())


def share(buffer: BufferSize, total: int) -> float:
    """The buffer's part of the total, 0 of nothing."""
    return buffer.nbytes / total if total else 0.0


def as_data(schema: Schema, config: str, size: ArenaSize) -> dict[str, object]:
    """The sizes of one arena as plain data."""
    return {
        "schema": schema.arena.package,
        "config": config,
        "limits": dict(size.inputs.limits),
        "levers": dict(size.inputs.levers),
        "target": dict(size.inputs.target),
        "tp": size.inputs.tp,
        "buffers": [
            {
                "name": each.name,
                "bytes": each.nbytes,
                "share": round(share(each, size.total_bytes), 6),
                "dtype": each.dtype or None,
                "shape": list(each.shape) if each.shape is not None else None,
                "gate": each.gate or None,
                "active": each.active,
                "use": each.use or None,
                "trimmed": each.trimmed,
                "extent": each.extent,
            }
            for each in size.buffers
        ],
        "trimmed": size.trimmed,
        "total_bytes": size.total_bytes,
    }


def as_json(data: list[dict[str, object]]) -> str:
    """One object, or a list of several."""
    return json.dumps(data[0] if len(data) == 1 else data, indent=2) + "\n"


def as_csv(schema: Schema, sizes: list[tuple[str, ArenaSize]]) -> str:
    """One row a buffer; the limits are columns, so that runs can be stacked."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    limits = [each.name for each in schema.limits]
    # One --tp holds for all.
    shared = any(size.inputs.tp > 1 for _, size in sizes)
    ranks = ["tp"] if shared else []
    writer.writerow(
        ["config", *limits, *ranks, "buffer", "bytes", "dtype", "shape", "use", "gate"]
    )
    for config, size in sizes:
        values = [size.inputs.limits[name] for name in limits]
        if shared:
            values.append(size.inputs.tp)
        for each in size.buffers:
            shape = _shape(each)
            row = [each.name, each.nbytes, each.dtype, shape, each.use, each.gate]
            writer.writerow([config, *values, *row])
    return text.getvalue()


def as_markdown(config: str, size: ArenaSize) -> str:
    """A Markdown table with a total."""
    rows = [
        [cell.replace("|", "\\|") for cell in _row(each, size.total_bytes)]
        for each in size.buffers
    ]
    lines = [
        f"### {title(config, size.inputs)}",
        "",
        *markdown.table(COLUMNS, rows, right=["bytes"]),
        "",
        _total_line(size),
    ]
    return "\n".join(lines) + "\n"


def as_table(config: str, size: ArenaSize, width: int) -> Table:
    """A rich table with a total; buffers without memory are dim.

    A terminal of less than `GATE_WIDTH` columns has no room for the gates.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title(config, size.inputs)),
        caption=Text(_total_line(size)),
        title_justify="left",
        caption_justify="left",
        title_style="bold",
    )
    columns = COLUMNS if width >= GATE_WIDTH else COLUMNS[:-1]
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in ("bytes", "share") else "left",
            # A narrow terminal folds the other columns; a cut name tells nothing.
            no_wrap=column in ("buffer", "bytes", "share"),
            overflow="fold",
        )
    for each in size.buffers:
        style = "dim" if not each.active else ""
        table.add_row(
            *map(Text, _row(each, size.total_bytes)[: len(columns)]), style=style
        )
    return table


def plan_as_data(
    config: str, method: str, plan: Sequence[ZeroRange]
) -> dict[str, object]:
    """A zeroing plan as plain data."""
    return {
        "config": config,
        "method": method,
        "ranges": [
            {"buffers": list(each.buffers), "offset": each.offset, "bytes": each.nbytes}
            for each in plan
        ],
        "memsets": len(plan),
        "bytes": sum(each.nbytes for each in plan),
    }


def plan_as_table(config: str, method: str, plan: Sequence[ZeroRange]) -> Table:
    """A zeroing plan as a rich table."""
    from rich.table import Table
    from rich.text import Text

    total = sum(each.nbytes for each in plan)
    noun = "memset" if len(plan) == 1 else "memsets"
    table = Table(
        title=Text(f"{config}: {method}"),
        caption=Text(f"{len(plan)} {noun}, {total:,} bytes ({human(total)})"),
        title_justify="left",
        caption_justify="left",
        title_style="bold",
    )
    table.add_column("buffers")
    table.add_column("offset", justify="right", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    for each in plan:
        names = Text(", ".join(each.buffers))
        table.add_row(names, f"{each.offset:,}", f"{each.nbytes:,}")
    return table


def _row(each: BufferSize, total: int) -> tuple[str, ...]:
    gate = f"trimmed ({human(each.trimmed)})" if each.trimmed else each.gate
    return (
        each.name,
        f"{each.nbytes:,}",
        f"{share(each, total):.1%}" if each.nbytes else "",
        each.dtype,
        _shape(each),
        each.use,
        gate,
    )


def _shape(each: BufferSize) -> str:
    if each.shape is None or not each.active:
        return ""
    return "[" + ", ".join(str(dim) for dim in each.shape) + "]"


def asked(inputs: Inputs) -> str:
    """Every limit, and how many ranks share the config where there are several."""
    parts = [f"{name}={value}" for name, value in inputs.limits.items()]
    if inputs.tp > 1:
        parts.append(f"tp={inputs.tp}")
    return ", ".join(parts)


def title(config: str, inputs: Inputs) -> str:
    """What the sizes are of: the config, the limits, and the ranks that share it."""
    return f"{config}: {asked(inputs)}"


def _total_line(size: ArenaSize) -> str:
    live = sum(each.nbytes > 0 for each in size.buffers)
    text = f"{live} of {len(size.buffers)} buffers, {size.total_bytes:,} bytes"
    text += f" ({human(size.total_bytes)})"
    if size.trimmed:
        text += f"; trimmed {size.trimmed:,} bytes ({human(size.trimmed)})"
    return text
