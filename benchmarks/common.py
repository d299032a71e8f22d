"""How every benchmark measures: pairs, alternately, and the ratio of each pair.

A ratio of neighbours in time is unmoved by a slow minute; medians and quartiles are of
those ratios. What is counted is CPU time, user and system, of all threads or of a whole
process: with one thread that is what the clock of a quiet machine shows.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "schema" / "metrale.yaml"
DATA = ROOT / "tests" / "data"
# The packages that are measured, and the driver that they are measured on.
sys.path[:0] = [str(ROOT / "generated"), str(ROOT / "tests")]
NOTHING = (sys.executable, "-c", "pass")


class Row(NamedTuple):
    """One figure: milliseconds or else of both sides, and the ratio with its quartiles.

    most: the target; None where there is none. why: of a row that misses its target or
    has none, what is to be said of it.
    """

    figure: str
    yardstick: str
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    most: float | None
    why: str = ""
    unit: str = "ms"

    @property
    def missed(self) -> bool:
        """Whether the ratio is above the target."""
        return self.most is not None and self.ratio > self.most

    @property
    def target(self) -> str:
        """The target as a table shows it."""
        return "" if self.most is None else f"<= {self.most:g}"


Measure: TypeAlias = Callable[[], float]


def pairs(
    figure: str,
    yardstick: str,
    ours: Measure,
    theirs: Measure,
    most: float | None,
    count: int,
    why: str = "",
) -> Row:
    """Measure both alternately; each returns what it took, in milliseconds."""
    ours(), theirs()
    times = [(ours(), theirs()) for _ in range(count)]
    return ratio(figure, yardstick, times, most, why)


def ratio(
    figure: str,
    yardstick: str,
    times: Sequence[tuple[float, float]],
    most: float | None,
    why: str = "",
) -> Row:
    """A row of pairs that were measured."""
    ratios = [mine / other for mine, other in times]
    low, middle, high = statistics.quantiles(ratios, n=4)
    mine = statistics.median(each for each, _ in times)
    other = statistics.median(each for _, each in times)
    return Row(figure, yardstick, mine, other, middle, low, high, most, why)


def process(
    command: Sequence[str | Path], cwd: Path = ROOT, before: Callable[[], object] = int
) -> Measure:
    """Runs a command, after a preparation that is not counted; milliseconds of CPU."""
    # Byte code is kept, as it is where a tool is installed.
    environ = {**os.environ, "CI": ""}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def run() -> float:
        before()
        start = _spent()
        subprocess.run(
            command, cwd=cwd, env=environ, stdout=subprocess.DEVNULL, check=True
        )
        return (_spent() - start) * 1e3

    return run


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def calls(
    work: Callable[[], object],
    loops: int = 1,
    clock: Callable[[], float] = process_time,
) -> Measure:
    """Runs a function many times in this process; milliseconds of one call."""

    def run() -> float:
        start = clock()
        for _ in range(loops):
            work()
        return (clock() - start) / loops * 1e3

    return run


HEAD = (
    "| figure | against | ours | theirs | ratio | quartiles | target |\n"
    "| --- | --- | ---: | ---: | ---: | --- | --- |\n"
)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, those above their target in bold, and remarks on some."""
    lines = [
        f"| {row.figure} | {row.yardstick} | {_value(row.ours, row.unit)} | "
        f"{_value(row.theirs, row.unit)} | "
        f"{_bold(row)} | {_short(row.low)} to {_short(row.high)} | {row.target} |\n"
        for row in rows
    ]
    text = HEAD + "".join(lines)
    missed = [f"- {row.figure}: {row.why}\n" for row in rows if row.missed and row.why]
    if missed:
        text += "\nAbove target:\n\n" + "".join(missed)
    free = [f"- {row.figure}: {row.why}\n" for row in rows if row.most is None]
    if free:
        text += "\nWithout a target:\n\n" + "".join(free)
    return text


def short_table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, without the times."""
    lines = [
        f"| {row.figure} | {row.yardstick} | {_bold(row)} | {row.target} |\n"
        for row in rows
    ]
    head = "| figure | against | ratio | target |\n| --- | --- | ---: | --- |\n"
    return head + "".join(lines)


def _bold(row: Row) -> str:
    return f"**{_short(row.ratio)}**" if row.missed else _short(row.ratio)


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def _value(value: float, unit: str) -> str:
    if value < 1:
        return f"{value * 1e3:.2f} us"
    if value < 10:
        return f"{value:.2f} {unit}"
    return f"{value:,.0f} {unit}"
