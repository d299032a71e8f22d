"""`arenagen lint`: everything that is wrong or suspicious in schemas."""

from __future__ import annotations

from pathlib import Path

import click

from .. import __version__
from ..errors import ArenagenError, InputProblems, Problem
from ..words import count
from .options import SCHEMAS, exits
from .schemas import find_pairs, load_checked


@click.command()
@SCHEMAS
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
)
@click.option("--explain", metavar="CODE", help="Tell what a code means, and stop.")
@exits
def lint(
    schemas: tuple[Path, ...], strict: bool, style: str, explain: str | None
) -> int:
    """Tell everything that is wrong or suspicious in each SCHEMA."""
    if explain is not None:
        click.echo(_explained(explain))
        return 0
    import json

    from ..sarif import as_sarif

    problems: list[Problem] = []
    paths = schemas or [Path(pair.schema) for pair in find_pairs((), None)]
    for path in paths:
        try:
            problems += load_checked(path).warnings
        except InputProblems as error:
            problems += error.problems
    # What is wrong with a base is told once, however many extend it.
    told: dict[object, Problem] = {}
    for each in problems:
        told.setdefault((each.code, each.span, each.message), each)
    problems = list(told.values())
    errors = sum(problem.severity == "error" for problem in problems)
    match style:
        case "json":
            data = [problem.as_dict() for problem in problems]
            click.echo(json.dumps(data, indent=2))
        case "sarif":
            click.echo(json.dumps(as_sarif(problems, __version__), indent=2))
        case _:
            for problem in problems:
                click.echo(f"{problem}\n")
            warnings = len(problems) - errors
            summary = f"{count(errors, 'error')}, {count(warnings, 'warning')}"
            click.echo(f"{count(len(paths), 'schema file')}: {summary}")
    if errors:
        return 2
    return 1 if strict and problems else 0


def _explained(code: str) -> str:
    from ..catalogue import CODES

    kind = CODES.get(code.upper())
    if kind is None:
        raise ArenagenError(f"no code is {code}; they go from AR001 to {max(CODES)}")
    lines = [
        f"{kind.severity} {kind.code}: {kind.title}",
        "",
        kind.meaning,
        f"Cure: {kind.cure}",
    ]
    return "\n".join(lines)
