"""What bounds decide: gates that never move, sizes that cannot be, undefined parts.

Passes `(bounds) -> problems`, for a schema whose names and types are sound. What they
report holds for every model and every limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .bounds import NATURAL, Bounds, Fact, Facts, Range, Undefined
from .errors import Problem, Severity, Span
from .formula import MAX_INT, Bool, Expr, FormulaError, Name, names, spell
from .load import formula_problem
from .model import Bytes, Extent, Formula, Layout, LayoutCall, Regions, Shape, Uses
from .record import record
from .source import locate
from .symbols import Symbols, buffer_formulas, extent_formulas

# A formula, what it is the size of, and what is true of its names.
Size = tuple[str, Formula, Facts]


def check_undefined(bounds: Bounds) -> Iterator[Problem]:
    """Parts of formulas that have no value for any input."""
    for formula, known in _formulas(bounds):
        try:
            bounds.fact(formula.expr, known)
        except Undefined as error:
            message = f"`{spell(error.expr)}` is never defined: {error.why}"
            fault = FormulaError(message, error.expr.at)
            yield formula_problem("AR121", fault, formula.scalar)


def _formulas(bounds: Bounds) -> Iterator[tuple[Formula, Facts]]:
    schema = bounds.symbols.schema
    here: list[Formula | None] = [let.value for let in schema.lets]
    here += [field.default for field in schema.config]
    here += [trim.when for trim in schema.trims]
    for buffer in schema.buffers:
        here += buffer_formulas(buffer)
    for layout in schema.layouts:
        if layout.accessor is not None:
            here += extent_formulas(layout.accessor)
    yield from ((formula, {}) for formula in here if formula is not None)
    for function in schema.functions:
        yield function.value, bounds.parameters(function)
    for layout in schema.layouts:
        known = bounds.layout_names(layout)
        yield from ((let.value, known) for let in layout.lets)
        yield from ((each, known) for each in extent_formulas(layout.regions))


def check_sizes(bounds: Bounds) -> Iterator[Problem]:
    """Sizes that are negative, or beyond the largest one, for every input."""
    for what, formula, known in _sizes(bounds):
        try:
            fact = bounds.fact(formula.expr, known)
        except Undefined:
            continue
        low, high = fact if isinstance(fact, Range) else NATURAL
        if high < 0:
            why = f"at most {high}, and no size is negative"
        elif low > MAX_INT:
            why = "beyond 2**63 - 1, the largest size"
        else:
            continue
        yield Problem("AR123", f"{what} is {why}", formula_span(formula))


def _sizes(bounds: Bounds) -> Iterator[Size]:
    schema = bounds.symbols.schema
    for buffer in schema.buffers:
        yield from sizes_of(f"`{buffer.name}`", buffer.extent, {})
        for key, formula in (
            ("otherwise", buffer.otherwise),
            ("min_bytes", buffer.min_bytes),
        ):
            if formula is not None:
                yield f"`{key}` of `{buffer.name}`", formula, {}
    for layout in schema.layouts:
        known = bounds.layout_names(layout)
        yield from sizes_of(f"`{layout.name}`", layout.regions, known)


def sizes_of(what: str, extent: Extent, known: Facts) -> Iterator[Size]:
    """Every formula of an extent that is a size, and what it is the size of."""
    match extent:
        case Shape(_, dims):
            dimension = f"a dimension of {what}"
            yield from ((dimension, dim, known) for dim in dims)
        case Bytes(value):
            yield f"the size of {what}", value, known
        case LayoutCall(_, arguments):
            for name, formula in arguments:
                yield f"the argument `{name}` of {what}", formula, known
        case Uses(items):
            for use in items:
                yield from sizes_of(f"the use `{use.name}`", use.extent, known)
        case Regions(items):
            for region in items:
                yield from sizes_of(f"the region `{region.name}`", region.extent, known)
                if region.at is not None:
                    yield f"the place of the region `{region.name}`", region.at, known


@record
class Gate:
    """A gate, what it guards, and the layout whose parameters it may read.

    `cures` are what to do when it is always true, and when it is always false.
    """

    what: str
    formula: Formula
    layout: Layout | None
    cures: tuple[str, str]

    def decided(self, truth: bool, reasons: str, code: str, kind: Severity) -> Problem:
        """The problem of a gate that never moves."""
        message = f"the gate of {self.what} is always {str(truth).lower()}{reasons}"
        cure = self.cures[0 if truth else 1]
        return Problem(code, message, formula_span(self.formula), cure, kind)


def check_literal_gates(symbols: Symbols) -> Iterator[Problem]:
    """Gates that are written as true or false."""
    for gate in _gates(symbols):
        expr = gate.formula.expr
        if isinstance(expr, Bool):
            yield gate.decided(expr.value, "", "AR073", "error")


def check_gates(bounds: Bounds) -> Iterator[Problem]:
    """Gates that are true, or false, for every input."""
    for gate in _gates(bounds.symbols):
        expr = gate.formula.expr
        known = bounds.layout_names(gate.layout) if gate.layout else {}
        try:
            truth = bounds.fact(expr, known)
        except Undefined:
            continue
        # Those that are written out have been told.
        if isinstance(truth, bool) and not isinstance(expr, Bool):
            reasons = _reasons(expr, known, bounds)
            yield gate.decided(truth, reasons, "AR122", "warning")


def check_trims(bounds: Bounds) -> Iterator[Problem]:
    """Trims of buffers that are not there anyway when the trim applies."""
    symbols = bounds.symbols
    for trim in symbols.schema.trims:
        try:
            known = bounds.assume(trim.when.expr, True, {})
        except Undefined:
            known = None
        for name, node in trim.buffers:
            gate = symbols.buffers[name].when
            if known is None or gate is None or _is_false(gate, {}, bounds):
                continue
            if _is_false(gate, known, bounds):
                yield Problem(
                    "AR126",
                    f"the trim `{trim.name}` never empties `{name}`, whose gate is "
                    "false whenever the trim applies",
                    node.span,
                    "leave it out of the trim",
                    "warning",
                    (("gate", formula_span(gate)),),
                )


def _is_false(gate: Formula, known: Facts, bounds: Bounds) -> bool:
    try:
        return bounds.fact(gate.expr, known) is False
    except Undefined:
        return False


def _gates(symbols: Symbols) -> Iterator[Gate]:
    schema = symbols.schema
    for buffer in schema.buffers:
        if buffer.when is not None:
            yield _gate(f"`{buffer.name}`", buffer.when, None)
        yield from _extent_gates(buffer.extent, None)
    for trim in schema.trims:
        cures = ("remove the trim and its buffers", "remove the trim")
        yield Gate(f"the trim `{trim.name}`", trim.when, None, cures)
    for layout in schema.layouts:
        yield from _extent_gates(layout.regions, layout)


def _extent_gates(extent: Extent, layout: Layout | None) -> Iterator[Gate]:
    """The gates of uses, and of regions."""
    if isinstance(extent, Uses):
        for use in extent.items:
            if use.when is not None:
                yield _gate(f"the use `{use.name}`", use.when, layout)
            yield from _extent_gates(use.extent, layout)
    elif isinstance(extent, Regions):
        for region in extent.items:
            if region.when is not None:
                yield _gate(f"the region `{region.name}`", region.when, layout)


def _gate(what: str, formula: Formula, layout: Layout | None) -> Gate:
    return Gate(
        what, formula, layout, ("remove the gate", f"remove the gate, or {what}")
    )


def formula_span(formula: Formula) -> Span:
    """Where a formula stands."""
    start, end = formula.expr.at
    return locate(formula.scalar, start, max(1, end - start))


def _reasons(expr: Expr, known: Facts, bounds: Bounds) -> str:
    """The bounds of the names that a gate reads: `: M is at least 1`."""
    found = dict.fromkeys(node.name for node in names(expr))
    facts = ((name, bounds.fact(Name(name), known)) for name in found)
    words = [f"`{name}` is {text}" for name, fact in facts if (text := _words(fact))]
    return f": {', '.join(words)}" if words else ""


def _words(fact: Fact) -> str:
    if isinstance(fact, bool):
        return str(fact).lower()
    if not isinstance(fact, Range):
        return "" if fact is None else str(fact)
    low, high = fact
    if low == high:
        return str(low)
    if high == math.inf:
        return "" if low == -math.inf else f"at least {low}"
    return f"at most {high}" if low == -math.inf else f"from {low} to {high}"
