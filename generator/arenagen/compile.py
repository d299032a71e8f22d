"""From texts to files: the whole pipeline as pure functions.

Reads nothing and writes nothing, so that generate, check, lint and tests share it: the
bytes of what a schema extends come from a function of the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .chain import OpenBase, base_of, no_base, read_chain
from .check import check
from .check_families import check_given
from .errors import InputProblems, Problem, sort_problems
from .extend import extend
from .families import FamilyTable
from .family_loader import load_families
from .load import load_nodes, shaped
from .model import Schema
from .record import record
from .source import Mapping, Text, decode, parse

Stage: TypeAlias = Callable[[str, int, int | None], None]


@record
class Checked:
    """A schema without errors, its family table and what is suspicious in it."""

    schema: Schema
    families: FamilyTable | None
    warnings: tuple[Problem, ...]


def read_schema(
    text: Text, open_base: OpenBase = no_base
) -> tuple[Schema, tuple[Problem, ...]]:
    """The model of a schema and its warnings. Raises InputProblems with every error.

    Where the schema extends another, `open_base` gives the bytes of that one.
    """
    try:
        chain = read_chain(text, open_base)
    except InputProblems as error:
        raise InputProblems(_with_further(text, error.problems)) from None
    whole = extend(chain)
    try:
        schema = load_nodes(shaped(whole.root) if whole.extends else whole.root)
    except InputProblems as error:
        # Most schemas have no problems.
        from .further import further

        found = list(map(whole.explain, (*whole.problems, *error.problems)))
        if not whole.extends:
            found += further(whole.root, error.problems)
        raise InputProblems(found) from None
    problems = [whole.explain(each) for each in (*whole.problems, *check(schema))]
    if any(problem.severity == "error" for problem in problems):
        raise InputProblems(problems)
    return schema, tuple(sort_problems(problems))


def _with_further(text: Text, told: tuple[Problem, ...]) -> list[Problem]:
    """Problems of a file's shape, and the others of a file that extends no other."""
    if any(each.code < "AR019" or each.code > "AR028" for each in told):
        return list(told)
    from .further import further

    root = parse(decode(text.data, text.name), text.name)
    if base_of(root) is not None or not isinstance(root, Mapping):
        return list(told)
    return [*told, *further(root, told)]


def check_source(
    schema: Schema, warnings: tuple[Problem, ...], families: Text | None
) -> Checked:
    """The schema together with its family table. Raises InputProblems."""
    table: FamilyTable | None = None
    if families is not None:
        table = load_families(decode(families.data, families.name), families.name)
        if problems := table.check(schema):
            raise InputProblems(problems)
        found = (*warnings, *check_given(schema, table))
        warnings = tuple(sort_problems(found))
    return Checked(schema, table, warnings)


def emit(
    checked: Checked, source: str, stage: Stage = lambda what, done, of: None
) -> dict[str, str]:
    """Every file of the package, by path; `source` is the schema's file name.

    stage: told what is being done, how much of it is done, and of how much.
    """
    from .lower import lower
    from .lower_families import lower_families
    from .render import render

    families = None
    # A file name may hold what would end the comment that it stands in.
    name = "".join(char if char.isprintable() else "?" for char in source)
    stage(f"{name}: lowering", 0, None)
    if checked.families is not None:
        families = lower_families(checked.families, checked.schema)
    return render(
        lower(checked.schema),
        families,
        name,
        lambda done, of: stage(f"{name}: rendering", done, of),
    )
