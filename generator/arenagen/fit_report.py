"""Answers of `arenagen fit` as a table or data. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .fit import Fit
from .model import Schema
from .report import human, share

if TYPE_CHECKING:
    from rich.table import Table

    from .devices import Device

# Buffers that a table names, those that take most.
SHOWN = 8


def fit_as_data(
    schema: Schema, config: str, found: Fit, reserve: int, source: str | None = None
) -> dict[str, object]:
    """One answer as plain data; `found.budget` is without the reserve.

    `source` says who tells the memory of a device, None where it was given in bytes.
    """
    inputs, total = found.size.inputs, found.size.total_bytes
    limits = {
        name: value for name, value in inputs.limits.items() if name != found.limit
    }
    return {
        "schema": schema.arena.package,
        "config": config,
        "limits": limits,
        "levers": dict(inputs.levers),
        "target": dict(inputs.target),
        "tp": inputs.tp,
        "budget": found.budget + reserve,
        "budget_source": source,
        "reserve": reserve,
        "limit": found.limit,
        "value": found.value,
        "maximum": found.maximum,
        "total_bytes": total,
        "left": found.budget - total,
        "next_bytes": found.beyond,
        "growth": found.total_growth,
        "unproven": list(found.unproven),
        "buffers": [
            {
                "name": each.name,
                "bytes": each.nbytes,
                "share": round(share(each, total), 6),
                "growth": found.growth.get(each.name, 0.0),
            }
            for each in found.size.buffers
        ],
    }


def device_in_words(name: str, device: Device) -> str:
    """The memory of a device that an answer takes, and whose word that is."""
    said = {"driver": "as its driver reports", "vendor": "as its vendor publishes"}
    return f"{name}: {human(device.nbytes)} {said[device.source]}"


def budget_in_words(memory: int, reserve: int) -> str:
    """What the arena may take: the memory, less what must lie beside it."""
    words = f"{human(memory - reserve)} for the arena"
    if not reserve:
        return words
    kept = f"{reserve:,} bytes" if reserve < 1024 else human(reserve)
    return f"{human(memory)} less {kept}: {words}"


def fits_as_table(found: Sequence[tuple[str, Fit]], title: str) -> Table:
    """A row a config: the value, the bytes, and what takes most of them."""
    from rich.text import Text

    limit, unit = found[0][1].limit, found[0][1].unit
    table = _new_table(
        title,
        ("config", limit, "arena", "left", f"bytes per {unit}"),
        "largest buffer",
    )
    for config, each in found:
        total = each.size.total_bytes
        largest = max(each.size.buffers, key=lambda buffer: buffer.nbytes)
        table.add_row(
            Text(config),
            "nothing fits" if each.value is None else f"{each.value:,}",
            human(total),
            "" if each.value is None else human(each.budget - total),
            _rate(each.total_growth) if each.growth else "",
            f"{largest.name} {share(largest, total):.1%}",
        )
    return table


def fit_as_table(config: str, found: Fit) -> Table:
    """The buffers that take most of one arena, and how fast they grow."""
    total = found.size.total_bytes
    value = found.size.inputs.limits[found.limit]
    table = _new_table(
        f"{config}: {found.limit}={value}, {total:,} bytes ({human(total)})",
        ("buffer", "bytes", "share", f"bytes per {found.unit}"),
    )
    order = sorted(found.size.buffers, key=lambda each: each.nbytes, reverse=True)
    for each in order[:SHOWN]:
        if each.nbytes:
            growth = found.growth.get(each.name, 0.0)
            table.add_row(
                each.name,
                f"{each.nbytes:,}",
                f"{share(each, total):.1%}",
                _rate(growth) if growth else "",
            )
    return table


def fit_in_words(config: str, found: Fit) -> str:
    """What the table does not say: why the value is the largest."""
    total, limit = found.size.total_bytes, found.limit
    if found.value is None:
        minimum = found.size.inputs.limits[limit]
        least = f"with {limit}={minimum} it takes {total:,} bytes ({human(total)})"
        return f"{config}: nothing fits: {least}, {total - found.budget:,} too many"
    if found.value == found.maximum:
        text = f"{config}: the largest {limit} that there is fits, {found.maximum:,}"
    else:
        beyond = f"{found.value + 1:,} has no size"
        if found.beyond is not None:
            over = found.beyond - found.budget
            beyond = f"{found.value + 1:,} takes {over:,} bytes too many"
        text = f"{config}: {limit} {found.value:,} fits; {beyond}"
    if found.unproven:
        names = ", ".join(found.unproven)
        return f"{text}; smaller values may not, for {names} may shrink"
    return f"{text}; all smaller values fit"


def _rate(growth: float) -> str:
    return f"{growth:,.1f}".removesuffix(".0")


def _new_table(title: str, columns: Sequence[str], last: str = "") -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(
            column, justify="right" if place else "left", no_wrap=True, overflow="fold"
        )
    if last:
        table.add_column(last, no_wrap=True)
    return table
