"""The files of a schema: itself, the one that it extends, and so on.

Opens nothing by itself: the bytes of a base come from a function of the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from .errors import ArenagenError, InputProblems, Problem
from .load import shaped
from .record import replace
from .source import Mapping, Node, Scalar, Text, decode, parse

MAX_BASES = 8
# The file of a path that is relative to a named file; raises ArenagenError.
OpenBase: TypeAlias = Callable[[str, str], Text]


def read_chain(text: Text, open_base: OpenBase) -> list[Mapping]:
    """The nodes of a schema and of those that it extends, nearest first.

    Each is shaped like a schema. Raises InputProblems: for a file that is not, with
    everything that is wrong with it, and for an `extends` that leads to none.
    """
    chain = [shaped(parse(decode(text.data, text.name), text.name))]
    while (at := base_of(chain[-1])) is not None:
        names = [each.span.file for each in chain]
        if len(chain) > MAX_BASES:
            _refuse("AR089", f"more than {MAX_BASES} bases in a row", at)
        try:
            base = open_base(names[-1], str(at.value))
        except ArenagenError as error:
            _refuse("AR087", f"the base cannot be read: {error}", at)
        if base.name in names:
            ring = " extends ".join([*names[names.index(base.name) :], base.name])
            _refuse("AR088", f"a schema extends itself: {ring}", at)
        try:
            root = parse(decode(base.data, base.name), base.name)
            if not isinstance(root, Mapping) or root.get("arena") is None:
                _refuse(
                    "AR100",
                    f"`{at.value}` is no schema: it has no section `arena`",
                    at,
                )
            chain.append(shaped(root))
        except InputProblems as error:
            found = [_extended(each, at) for each in error.problems]
            raise InputProblems(found) from None
    return chain


def no_base(name: str, path: str) -> Text:
    """For texts that stand alone: opens nothing."""
    raise ArenagenError(f"{name} stands alone, so there is no {path}")


def base_of(root: Node) -> Scalar | None:
    """The value of `extends` in the section `arena`; None without one."""
    arena = root.get("arena") if isinstance(root, Mapping) else None
    found = arena.get("extends") if isinstance(arena, Mapping) else None
    return found if isinstance(found, Scalar) else None


def _refuse(code: str, message: str, at: Scalar) -> NoReturn:
    raise InputProblems([Problem(code, message, at.span)])


def _extended(problem: Problem, at: Scalar) -> Problem:
    if problem.span.file == at.span.file:
        return problem
    return replace(problem, related=(*problem.related, ("extended", at.span)))
