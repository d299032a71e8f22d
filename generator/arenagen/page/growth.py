"""What the page says of growth: the size chart, and the tables below it."""

from __future__ import annotations

from ..model import Schema
from ..report import human
from . import charts
from .curve import Curve
from .facts import ConfigFacts
from .view import TONES, Chart, Crossing, LeaderRow, Line, Mark, SizeAt, SizeCurve
from .words import counted, exact, whole

# Token counts that the table of sizes shows beside both ends.
_TABLE_OCTAVES = 2


def curve_view(schema: Schema, facts: ConfigFacts) -> SizeCurve:
    """Size against the token limit, drawn and in tables."""
    curve = facts.curve
    note = ""
    if curve.missing:
        first = exact(curve.missing[0])
        note = (
            f"There is no size at {counted(len(curve.missing), 'token count')} of "
            f"those tried, the first of them {first}."
        )
    return SizeCurve(
        _chart(schema, facts),
        note,
        _sizes_at(curve),
        tuple(
            LeaderRow(_from_to(each.tokens, each.last), each.buffer, exact(each.nbytes))
            for each in curve.leaders
        ),
        tuple(
            Crossing(
                exact(each.tokens),
                each.buffer,
                each.before,
                each.after,
                exact(each.nbytes),
            )
            for each in curve.crossovers
        ),
    )


def _from_to(first: int, last: int) -> str:
    return exact(first) if first == last else f"{exact(first)} to {exact(last)}"


def _sizes_at(curve: Curve) -> tuple[SizeAt, ...]:
    last = len(curve.samples) - 1
    found = []
    for place, sample in enumerate(curve.samples):
        octave = sample.tokens.bit_length() - 1
        power = sample.tokens == 1 << octave and octave % _TABLE_OCTAVES == 0
        if not power and place not in (0, last):
            continue
        largest = max(sample.sizes.items(), key=lambda each: each[1], default=("", 0))
        found.append(
            SizeAt(
                exact(sample.tokens),
                human(sample.total),
                exact(sample.total),
                human(sample.total // sample.tokens),
                largest[0] if largest[1] else "none",
            )
        )
    return tuple(found)


def _chart(schema: Schema, facts: ConfigFacts) -> Chart | None:
    samples = facts.curve.samples
    frame = charts.axes(samples, facts.drawn)
    if frame is None:
        return None
    totals = {each.tokens: each.total for each in samples}
    lines = [_line(frame, "total", "T", "Total of all buffers", totals, 0)]
    for place, name in enumerate(facts.drawn):
        sizes = {each.tokens: each.sizes[name] for each in samples}
        tone = f"s{place % TONES}"
        lines.append(_line(frame, tone, str(place + 1), name, sizes, place + 1))
    first, last = samples[0], samples[-1]
    limit = schema.token_limit
    symbol = limit.symbol or limit.name
    return Chart(
        alternative=(
            f"Bytes against {symbol}, both on logarithmic scales: the total goes from "
            f"{human(first.total)} at {symbol} = {exact(first.tokens)} to "
            f"{human(last.total)} at {symbol} = {exact(last.tokens)}. The tables below "
            "have the numbers."
        ),
        lines=tuple(lines),
        grid=tuple(
            Mark(charts.percent(frame.y(each)), whole(each), "start")
            for each in frame.grid()
        ),
        ticks=_ticks(frame),
        crossings=tuple(
            Mark(
                charts.percent(frame.x(each.tokens)),
                f"{exact(each.tokens)}: {each.buffer}, {each.before} to {each.after}",
                "middle",
            )
            for each in facts.curve.crossovers
            if each.tokens >= first.tokens
        ),
        last=str(len(samples) - 1),
    )


def _line(
    frame: charts.Axes,
    tone: str,
    letter: str,
    name: str,
    sizes: dict[int, int],
    place: int,
) -> Line:
    """A line with its badge; each badge stands at another token count."""
    drawn = [tokens for tokens, nbytes in sizes.items() if nbytes]
    wanted = 96 - 11 * place
    at = min(drawn, key=lambda tokens: abs(frame.x(tokens) - wanted))
    return Line(
        tone,
        letter,
        name,
        human(list(sizes.values())[-1]),
        tuple(charts.lines(frame, sizes)),
        charts.percent(frame.x(at)),
        charts.percent(frame.y(sizes[at])),
    )


def _ticks(frame: charts.Axes) -> tuple[Mark, ...]:
    ticks = frame.ticks()
    anchors = ["start", *("middle" for _ in ticks[2:]), "end"]
    return tuple(
        Mark(charts.percent(frame.x(each)), exact(each), anchor)
        for each, anchor in zip(ticks, anchors, strict=True)
    )
