"""A bar on a terminal's stderr, for what takes more than a second.

Shows nothing before, and nothing where stderr is no terminal; loads what draws it only
when it is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from threading import Timer

    from rich.progress import Progress, TaskID

T = TypeVar("T")
_SECONDS_WITHOUT_BAR = 1.0


class Bar:
    """Tells what is being done inside of its `with` blocks; the seconds add up."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._stage: tuple[str, int, int | None] = ("", 0, None)
        self._timer: Timer | None = None
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            left = self._start + _SECONDS_WITHOUT_BAR - time.monotonic()
            if left <= 0:
                self._show()
            else:
                # Stages are too long to look at a clock between them.
                from threading import Timer

                self._timer = Timer(left, self._show)
                self._timer.daemon = True
                self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._timer = None
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def stage(self, what: str, done: int = 0, of: int | None = None) -> None:
        """What is being done now, and how much of it is; None where nobody knows."""
        self._stage = what, done, of
        if self._shown is not None:
            self._draw(self._shown)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(
            console=Console(stderr=True), transient=True, redirect_stdout=False
        )
        self._task = None
        self._draw(bar)
        bar.start()
        self._shown = bar

    def _draw(self, bar: Progress) -> None:
        what, done, of = self._stage
        if self._task is not None:
            bar.remove_task(self._task)
        self._task = bar.add_task(what, total=of, completed=done)


def progress(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, with a bar that tells how many are done."""
    with Bar() as bar:
        for done, item in enumerate(items):
            bar.stage(what, done, len(items))
            yield item
