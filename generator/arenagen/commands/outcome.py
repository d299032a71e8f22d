"""What the work of a command comes to: its exit code, and what its input lacks."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import ArenagenError, InputProblems
from .console import echo, print_problems


class Misuse(Exception):
    """Arguments that go with each other, or with this folder, in no way."""


def exit_code(work: Callable[[], int]) -> int:
    """The result of the work, or 2 for bad input, which is told."""
    try:
        return work()
    except InputProblems as error:
        print_problems(error.problems)
    except ArenagenError as error:
        echo(f"error: {error}\n", err=True)
    return 2
