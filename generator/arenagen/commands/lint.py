"""`arenagen lint`: everything that is wrong or suspicious in schemas."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import InputProblems, Problem
from .console import count
from .inputs import find_pairs, load_checked
from .options import SCHEMAS, exits


@click.command()
@SCHEMAS
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@exits
def lint(schemas: tuple[Path, ...], strict: bool, style: str) -> int:
    """Tell everything that is wrong or suspicious in each SCHEMA."""
    import json

    problems: list[Problem] = []
    paths = schemas or tuple(pair.schema for pair in find_pairs((), None))
    for path in paths:
        try:
            problems += load_checked(path).warnings
        except InputProblems as error:
            problems += error.problems
    # What is wrong with a base is told once, however many extend it.
    told = {(each.code, each.span, each.message): each for each in reversed(problems)}
    problems = list(reversed(told.values()))
    errors = sum(problem.severity == "error" for problem in problems)
    if style == "json":
        data = [problem.as_dict() for problem in problems]
        click.echo(json.dumps(data, indent=2))
    else:
        for problem in problems:
            click.echo(f"{problem}\n")
        warnings = len(problems) - errors
        summary = f"{count(errors, 'error')}, {count(warnings, 'warning')}"
        click.echo(f"{count(len(paths), 'schema file')}: {summary}")
    if errors:
        return 2
    return 1 if strict and problems else 0
