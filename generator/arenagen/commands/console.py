"""What commands print with: streams, colours, and words for paths and counts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO, cast

from ..errors import Problem

if TYPE_CHECKING:
    from rich.console import Console

    from ..disk import Difference, StrPath


def new_console() -> Console:
    """A console without colours where they would disturb."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    plain = not terminal or os.environ.get("NO_COLOR")
    return Console(
        file=None if terminal else cast(TextIO, _Piped()),
        color_system=None if plain else "auto",
        highlight=False,
        # Piped output is not cut to the width of a terminal that is not there.
        width=None if terminal else 160,
    )


class _Piped:
    """Standard output without the blanks that fill the last column of a line."""

    def write(self, text: str) -> None:
        sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))

    def flush(self) -> None:
        sys.stdout.flush()


def shown(path: StrPath) -> str:
    """The path as problems show it: relative to the working folder where it can be."""
    whole, here = os.path.abspath(path), os.getcwd()
    if whole == here:
        return os.curdir
    folder = os.path.join(here, "")
    if not whole.startswith(folder):
        return str(path)
    return whole[len(folder) :].replace(os.sep, "/")


def print_problems(problems: Iterable[Problem]) -> None:
    """Print problems to stderr, a blank line after each."""
    for problem in problems:
        echo(f"{problem}\n\n", err=True)


def echo(text: str, err: bool = False) -> None:
    """Print a text as it is, at once."""
    stream = sys.stderr if err else sys.stdout
    stream.write(text)
    stream.flush()


def written(change: Difference | None) -> str:
    """What became of a file that was to be written."""
    if change is None:
        return "unchanged"
    return "added" if change.kind == "missing" else "changed"
