"""Warnings: what is declared and not read, what is said twice, and what is cut off.

Passes `(symbols) -> problems`, for a schema without errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .errors import Problem, Span
from .formula import Int, calls, names, walk
from .formulas_check import all_formulas
from .model import Doc
from .source import locate
from .symbols import Symbols, extent_formulas, layout_calls

if TYPE_CHECKING:
    from .check_names import Named

# Smaller numbers are counts, factors and widths more often than a constant's value.
LEAST_LITERAL = 65
_WORD = re.compile(r"[a-z0-9]+")
_BLANKS = (" ", "\t")
_COMMENT = re.compile(r"\s+(#.*)")


def check_unused(symbols: Symbols) -> Iterator[Problem]:
    """Entries, parameters and local names that nobody reads."""
    schema = symbols.schema
    read = _reads(symbols)
    groups = {name for buffer in schema.buffers for name, _ in buffer.groups}
    groups |= {each.group for buffer in schema.buffers for each in buffer.zero_regions}
    sections: tuple[tuple[str, tuple[Named, ...]], ...] = (
        ("target constant", schema.target),
        ("limit", schema.limits),
        ("config field", schema.config),
        ("lever", schema.levers),
        ("constant", tuple(each for each in schema.constants if not each.public)),
        ("let", schema.lets),
        ("layout", schema.layouts),
    )
    for what, section in sections:
        for entry in section:
            if entry.name not in read:
                yield _unused(f"the {what} `{entry.name}` is read nowhere", entry.span)
    for group in schema.groups:
        if group.name not in groups:
            yield _unused(f"the group `{group.name}` holds no buffer", group.span)
    for owner, entry in _local(symbols):
        if entry.name not in read:
            yield _unused(f"`{owner}` never reads its `{entry.name}`", entry.span)


def _reads(symbols: Symbols) -> set[str]:
    """Every name that is read; names of parameters are nobody else's."""
    schema = symbols.schema
    read: set[str] = set()
    # Formulas of one text have one tree.
    exprs = {id(each.expr): each.expr for each in all_formulas(symbols)}
    for expr in exprs.values():
        read.update([symbols.canonical(node.name) for node in names(expr)])
        read.update([call.name for call in calls(expr)])
    for buffer in schema.buffers:
        read.update(call.layout for call in layout_calls(buffer.extent))
    for layout in schema.layouts:
        read.update(call.layout for call in layout_calls(layout.regions))
        if layout.accessor is not None:
            read.add(layout.name)
    read.update(schema.arena.log_fields)
    for lever in schema.levers:
        read.update(each for each in (lever.default_name, lever.arms) if each)
        read.update(constant for _, _, constant in lever.words if constant)
        if lever.arms:
            read.add(lever.name)
    return read


def _local(symbols: Symbols) -> Iterator[tuple[str, Named]]:
    """Parameters and lets that their own function or layout does not read."""
    for function in symbols.schema.functions:
        read = {node.name for node in names(function.value.expr)}
        for parameter in function.parameters:
            if parameter.name not in read:
                yield function.name, parameter
    for layout in symbols.schema.layouts:
        formulas = [let.value for let in layout.lets]
        formulas += extent_formulas(layout.regions)
        read = {node.name for each in formulas for node in names(each.expr)}
        inner: tuple[Named, ...] = (*layout.parameters, *layout.lets)
        yield from ((layout.name, each) for each in inner if each.name not in read)


def _unused(message: str, span: Span) -> Problem:
    return Problem("AR080", message, span, hint="remove it", severity="warning")


def check_literals(symbols: Symbols) -> Iterator[Problem]:
    """Numbers in formulas that a constant has a name for.

    Told only where a single constant has the value, which is then what is meant.
    """
    holders: dict[object, list[str]] = {}
    for constant in symbols.schema.constants:
        if constant.type == "int":
            holders.setdefault(constant.value, []).append(constant.name)
    for formula in all_formulas(symbols) if holders else ():
        for node in walk(formula.expr):
            if not isinstance(node, Int) or node.value < LEAST_LITERAL:
                continue
            if len(found := holders.get(node.value, [])) == 1:
                start, end = node.at
                yield Problem(
                    "AR125",
                    f"{node.value} is the value of the constant `{found[0]}`",
                    locate(formula.scalar, start, end - start),
                    f"write `{found[0]}`, or name this number too",
                    "warning",
                )


def check_docs(symbols: Symbols) -> Iterator[Problem]:
    """Docs that say no more than the name, or that a comment cuts off."""
    for doc in symbols.schema.docs:
        text = str(doc.scalar.value)
        # A single word may well be all that there is to say.
        if "_" in doc.name and _says_only(doc.name, text):
            yield Problem(
                "AR124",
                f"the doc of `{doc.name}` says no more than its name",
                doc.scalar.span,
                "say what it holds, in which unit, and for whom",
                "warning",
            )
        if comment := _comment(doc):
            yield comment


def _says_only(name: str, text: str) -> bool:
    """Whether a text says the name and nothing more, articles apart."""
    wanted, at = "".join(_words(name)), 0
    for word in _words(text):
        if not wanted.startswith(word, at):
            return False
        at += len(word)
    return at == len(wanted)


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text.lower()):
        if found[0] not in ("a", "an", "the", "of"):
            yield found[0]


def _comment(doc: Doc) -> Problem | None:
    """A comment right behind a plain text that does not end like a sentence."""
    scalar = doc.scalar
    if scalar.document.text[scalar.end : scalar.end + 1] not in _BLANKS:
        return None
    text, raw = str(scalar.value), scalar.raw
    found = _COMMENT.match(scalar.rest)
    if raw[:1] in ("'", '"', ">", "|") or not found:
        return None
    ends = text.endswith((".", "!", "?"))
    if ends and found[1][1:2] == " ":
        return None
    span = scalar.span
    lines = raw.split("\n")
    before = len(lines[-1]) + found.start(1)
    column, source = span.column + before, span.source
    if lines[1:]:
        column, source = before + 1, lines[-1] + scalar.rest
    line = span.line + len(lines) - 1
    at = Span(span.file, line, column, len(found[1]), source)
    return Problem(
        "AR120",
        f"a comment cuts the doc of `{doc.name}` behind `{text[-40:]}`",
        at,
        "put a text that holds ` #` in quotes, or the comment on a line of its own",
        "warning",
    )
