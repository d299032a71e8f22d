"""What the page says of bytes in space: bars, the address map, and zeroing."""

from __future__ import annotations

from ..model import Schema
from ..report import human
from . import charts
from .facts import Cleared, ConfigFacts
from .view import (
    TONES,
    AddressMap,
    Bar,
    Clearing,
    Key,
    MapPiece,
    MapRow,
    Place,
    Run,
)
from .words import counted, exact, share_of, whole

# Buffers below this part of the total are summed up instead of drawn.
MIN_SHARE = 0.005
# Pixels of a letter of a label, and of the map at the widths that `fit` stands for.
_LETTER, _MARGIN = 6.7, 10
_WIDTHS = (("fit-s", 200), ("fit-m", 540), ("fit-l", 950))


def buffer_keys(schema: Schema) -> dict[str, Key]:
    """The key of every buffer; one letter for each set of groups that occurs."""
    methods = {group.name: group.method for group in schema.groups}
    found: dict[frozenset[str], Key] = {frozenset(): Key("-", "tn", "never cleared")}
    keys = {}
    for buffer in schema.buffers:
        signature = frozenset(name for name, _ in buffer.groups)
        if signature not in found:
            number = len(found) - 1
            named = [method for name, method in methods.items() if name in signature]
            text = f"cleared by {', '.join(named)}"
            found[signature] = Key(_letter(number), f"t{number % TONES}", text)
        keys[buffer.name] = found[signature]
    return keys


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def bar_views(facts: ConfigFacts, keys: dict[str, Key]) -> tuple[tuple[Bar, ...], str]:
    """The bars of the largest buffers, and a sentence about the rest."""
    total = facts.size.total_bytes
    live = [each for each in facts.size.buffers if each.nbytes]
    live.sort(key=lambda each: -each.nbytes)
    shown = [each for each in live if each.nbytes >= MIN_SHARE * total]
    bars = tuple(
        Bar(
            each.name,
            charts.percent(100 * each.nbytes / live[0].nbytes),
            human(each.nbytes),
            exact(each.nbytes),
            share_of(each.nbytes, total),
            each.gate,
            keys[each.name],
        )
        for each in shown
    )
    small = live[len(shown) :]
    rest = ""
    if small:
        nbytes = sum(each.nbytes for each in small)
        rest = (
            f"{counted(len(small), 'smaller buffer')} of less than {MIN_SHARE:.1%} "
            f"each: {human(nbytes)} together ({exact(nbytes)} bytes)."
        )
    return bars, rest


def map_view(facts: ConfigFacts, keys: dict[str, Key]) -> AddressMap:
    """The slab, folded into rows of equal length, and its offsets."""
    sizes = {each.name: each for each in facts.slab}
    row = charts.row_bytes(facts.slab_bytes)
    spans = [(each.name, each.offset, each.nbytes) for each in facts.slab]
    rows: dict[int, list[MapPiece]] = {}
    for piece in charts.map_pieces(spans, row):
        span = sizes[piece.name]
        rows.setdefault(piece.row, []).append(
            MapPiece(
                charts.percent(piece.start),
                charts.percent(piece.width),
                piece.name,
                _fit(piece),
                f"{piece.name}: {exact(span.nbytes)} bytes at {span.offset:#x}",
                keys[piece.name],
            )
        )
    padding = sum(each.padding for each in facts.slab)
    summary = (
        f"{counted(len(facts.slab), 'buffer')} in {exact(facts.slab_bytes)} bytes, "
        f"{exact(padding)} of them padding; a row is {whole(row)}."
    )
    return AddressMap(
        summary,
        tuple(
            MapRow(whole(row * number) if number else "0", tuple(pieces))
            for number, pieces in rows.items()
        ),
        tuple(
            Place(
                each.name,
                exact(each.offset),
                f"{each.offset:#x}",
                exact(each.nbytes),
                exact(each.padding),
                keys[each.name],
            )
            for each in facts.slab
        ),
    )


def _fit(piece: charts.Piece) -> str:
    """The least width of the map at which the piece has room for its label."""
    needed = _LETTER * len(f"A {piece.name}") + _MARGIN
    fits = (fit for fit, width in _WIDTHS if piece.width / 100 * width >= needed)
    return next(fits, "") if piece.widest else ""


def _of_pass(tokens: int) -> str:
    return (
        f"For a pass of {counted(tokens, 'token')}: of a token-major buffer what the "
        "pass touches, of any other all of it."
    )


def clearing_view(cleared: Cleared, facts: ConfigFacts) -> Clearing:
    """What a zeroing method clears, in words and to scale."""
    nbytes = sum(each.nbytes for each in cleared.separate)
    total = facts.slab_bytes
    return Clearing(
        call=cleared.call,
        doc=cleared.group.doc if cleared.tokens is None else _of_pass(cleared.tokens),
        human=human(nbytes),
        exact=exact(nbytes),
        share=share_of(nbytes, facts.size.total_bytes),
        separate=counted(len(cleared.separate), "memset"),
        slab=counted(len(cleared.slab), "memset"),
        runs=tuple(
            Run(
                charts.percent(100 * each.offset / total),
                charts.percent(max(charts.HAIRLINE, 100 * each.nbytes / total)),
                exact(each.offset),
                exact(each.nbytes),
                ", ".join(each.buffers),
            )
            for each in cleared.slab
        ),
    )
