"""A diff of schemas as text, Markdown or plain data. Data in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from . import markdown
from .diff import AspectChange, Change, ConfigDiff, Delta, SchemaDiff
from .report import asked, one_line
from .sizing import ArenaSize

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_MINOR = ("align", "type")
_COLUMNS = ("buffer", "old", "new", "delta")


def diff_as_text(old: str, new: str, found: SchemaDiff) -> str:
    """The diff for people; `old` and `new` are what the schemas are called."""
    compared = old if old == new else f"{old} -> {new}"
    lines = [f"{compared}: {_summary(found)}"]
    for section, changes in groupby(found.changes, lambda change: change.section):
        lines += ["", section]
        for change in changes:
            lines.append(f"  {_SIGNS[change.kind]} {change.name}{_renamed(change)}")
            for aspect in _shown(change):
                lines.append(f"      {aspect.name}: {_told(change, aspect)}")
            lines += [f"      {note}" for note in _notes(found, change)]
    for config in found.configs:
        lines += ["", *_config_lines(config)]
    return "\n".join(lines) + "\n"


def diff_as_markdown(old: str, new: str, found: SchemaDiff) -> str:
    """The diff for a pull request; every text of a schema is a code span."""
    lines = [f"### {markdown.code(old)} to {markdown.code(new)}", ""]
    lines.append(f"{_summary(found).capitalize()}.")
    for config in found.configs:
        lines += ["", *_config_markdown(config)]
    for section, changes in groupby(found.changes, lambda change: change.section):
        lines += ["", f"#### {section}", ""]
        for change in changes:
            lines.append(
                f"- {change.kind} {markdown.code(change.name)}{_renamed(change, '`')}"
            )
            for aspect in _shown(change):
                old_text = _span(aspect.old)
                new_text = _span(aspect.new)
                told = {
                    "added": new_text,
                    "removed": old_text,
                    "changed": f"{old_text} to {new_text}",
                }
                lines.append(f"  - {aspect.name}: {told[change.kind]}")
            lines += [f"  - {markdown.text(note)}" for note in _notes(found, change)]
    return "\n".join(lines) + "\n"


def diff_as_data(old: str, new: str, found: SchemaDiff) -> dict[str, object]:
    """The diff for machines: every change, and every buffer of every config."""
    return {
        "old": old,
        "new": new,
        "differs": found.differs,
        "changes": [
            {
                "section": change.section,
                "name": change.name,
                "kind": change.kind,
                "renamed": change.renamed or None,
                "aspects": [
                    {"name": each.name, "old": each.old, "new": each.new}
                    for each in change.aspects
                ],
                "readers": list(change.readers),
                "moves": list(found.moves(change)),
            }
            for change in found.changes
        ],
        "configs": [
            {
                "config": config.config,
                "old": _side(config.old),
                "new": _side(config.new),
                "delta": config.new.total_bytes - config.old.total_bytes,
                "buffers": [
                    {
                        "name": each.name,
                        "old": each.old,
                        "new": each.new,
                        "delta": each.nbytes,
                    }
                    for each in config.buffers
                ],
            }
            for config in found.configs
        ],
    }


def _side(size: ArenaSize) -> dict[str, object]:
    return {
        "limits": dict(size.inputs.limits),
        "tp": size.inputs.tp,
        "levers": dict(size.inputs.levers),
        "target": dict(size.inputs.target),
        "total_bytes": size.total_bytes,
        "trimmed": size.trimmed,
    }


def _summary(found: SchemaDiff) -> str:
    counts = {
        kind: sum(change.kind == kind for change in found.changes) for kind in _SIGNS
    }
    told = [f"{number} {kind}" for kind, number in counts.items() if number]
    return ", ".join(told) or "no entry differs"


def _renamed(change: Change, quote: str = "") -> str:
    if not change.renamed:
        return ""
    way = "to" if change.kind == "removed" else "from"
    return f" (renamed {way} {quote}{change.renamed}{quote}? same doc, same formula)"


def _shown(change: Change) -> list[AspectChange]:
    """Every difference; of an entry on one side alone, what it is at first sight."""
    if change.kind == "changed":
        return list(change.aspects)
    inner = (", ", "let ")
    return [
        each
        for each in change.aspects
        if each.name not in _MINOR and not any(part in each.name for part in inner)
    ]


def _told(change: Change, aspect: AspectChange) -> str:
    old = "none" if aspect.old is None else one_line(aspect.old)
    new = "none" if aspect.new is None else one_line(aspect.new)
    return {"added": new, "removed": old, "changed": f"{old} -> {new}"}[change.kind]


def _span(text: str | None) -> str:
    return "none" if text is None else markdown.code(text)


def _notes(found: SchemaDiff, change: Change) -> Iterator[str]:
    if not change.readers:
        return
    yield f"read by {', '.join(change.readers)}"
    if found.configs:
        moved = ", ".join(found.moves(change)) or "none"
        yield f"of these have other bytes: {moved}"


def _config_lines(config: ConfigDiff) -> list[str]:
    rows = [_COLUMNS, *_rows(config)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    lines = [_title(config)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [
            cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _config_markdown(config: ConfigDiff) -> list[str]:
    rows = [
        (markdown.code(name, in_cell=True), *numbers)
        for name, *numbers in _rows(config)
    ]
    rows[-1] = ("total", *rows[-1][1:])
    return [
        f"#### {markdown.text(_title(config))}",
        "",
        *markdown.table(_COLUMNS, rows, _COLUMNS[1:]),
    ]


def _title(config: ConfigDiff) -> str:
    old, new = asked(config.old.inputs), asked(config.new.inputs)
    return f"{config.config}: {new if old == new else f'{old} -> {new}'}"


def _rows(config: ConfigDiff) -> list[Sequence[str]]:
    """Buffers whose bytes differ, or that one schema alone has, and the total."""
    rows: list[Sequence[str]] = [
        _row(each)
        for each in config.buffers
        if each.nbytes or each.old is None or each.new is None
    ]
    old, new = config.old.total_bytes, config.new.total_bytes
    rows.append(_row(Delta("total", old, new)))
    return rows


def _row(delta: Delta) -> Sequence[str]:
    change = f"{delta.nbytes:+,}" if delta.nbytes else "0"
    return delta.name, _number(delta.old), _number(delta.new), change


def _number(nbytes: int | None) -> str:
    return "" if nbytes is None else f"{nbytes:,}"
