"""Runs the benchmarks: all of them, or those that are named.

    .venv/bin/python benchmarks/run.py [--write] [NAME]...

The names are those of the modules beside this one: generation, scale, sizes, sweep,
arena_calls and checksum. `--write`, of all, writes benchmarks/README.md and the short
table of README.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from common import ROOT, Row, short_table, table

HERE = Path(__file__).resolve().parent
NAMES = ("generation", "scale", "sizes", "sweep", "arena_calls", "checksum")
MARKS = ("<!-- benchmark -->", "<!-- /benchmark -->")
HEAD = """\
# What arenagen costs

Ratios, ours against a yardstick measured beside it, alternately; the median of the
pairs and their quartiles. P is `python -c pass`. Times are CPU time, but by the clock
where a driver's threads are at work. Figures above their target are bold, and told
below the table.

{date}, {machine}, {cores} cores, CPython {version}, by
`.venv/bin/python benchmarks/run.py`. Another machine, or a busier one, gives other
milliseconds, and much the same ratios.
"""


def main() -> None:
    """Measure, print, and write the pages when asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--write", action="store_true", help="update the pages")
    options = parser.parse_args()
    if unknown := {*options.names} - {*NAMES}:
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}")
    if options.write and options.names:
        parser.error("--write goes with all benchmarks")
    found: dict[str, Sequence[Row]] = {}
    for name in options.names or NAMES:
        module = import_module(name)
        found[name] = module.rows()
        print(section(name, found[name]), flush=True)
    if options.write:
        write(found)


def section(name: str, rows: Sequence[Row]) -> str:
    """The figures of one benchmark, under what it says of itself."""
    doc = (import_module(name).__doc__ or "").partition("\n")[0]
    return f"\n## {name}\n\n{doc}\n\n{table(rows)}"


def write(found: Mapping[str, Sequence[Row]]) -> None:
    """Put everything into benchmarks/README.md, and the short table into README.md."""
    head = HEAD.format(
        date=datetime.date.today(),
        machine=platform.machine(),
        cores=os.cpu_count(),
        version=platform.python_version(),
    )
    text = head + "".join(section(name, rows) for name, rows in found.items())
    (HERE / "README.md").write_text(text, encoding="utf-8")
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    rows = [row for name in NAMES if name != "scale" for row in found[name]]
    rows += [row for row in found["scale"] if row.figure.startswith("all")]
    readme.write_text(
        f"{before}{MARKS[0]}\n\n{short_table(rows)}\n{MARKS[1]}{after}",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
