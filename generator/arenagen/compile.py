"""From texts to files: the whole pipeline as pure functions.

Reads nothing and writes nothing, so that generate, check, lint and tests share it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .check import check
from .errors import InputProblems, Problem
from .families import FamilyTable
from .family_loader import load_families
from .load import load
from .model import Schema
from .source import decode


@dataclass(frozen=True, slots=True)
class Text:
    """The bytes of an input and the name that problems call it by."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Checked:
    """A schema without errors, its family table and what is suspicious in it."""

    schema: Schema
    families: FamilyTable | None
    warnings: tuple[Problem, ...]


def read_schema(text: Text) -> tuple[Schema, tuple[Problem, ...]]:
    """The model of a schema and its warnings. Raises InputProblems with every error."""
    schema = load(decode(text.data, text.name), text.name)
    problems = check(schema)
    if any(problem.severity == "error" for problem in problems):
        raise InputProblems(problems)
    return schema, tuple(problems)


def check_source(
    schema: Schema, warnings: tuple[Problem, ...], families: Text | None
) -> Checked:
    """The schema together with its family table. Raises InputProblems."""
    table: FamilyTable | None = None
    if families is not None:
        table = load_families(decode(families.data, families.name), families.name)
        if problems := table.check(schema):
            raise InputProblems(problems)
    return Checked(schema, table, warnings)


def emit(checked: Checked, source: str) -> dict[str, str]:
    """Every file of the package, by path; `source` is the schema's file name."""
    from .lower import lower
    from .lower_families import lower_families
    from .render import render

    families = None
    if checked.families is not None:
        families = lower_families(checked.families, checked.schema)
    # A file name may hold what would end the comment that it stands in.
    name = "".join(char if char.isprintable() else "?" for char in source)
    return render(lower(checked.schema), families, name)
