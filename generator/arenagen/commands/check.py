"""`arenagen check`: whether packages are what their schemas emit."""

from __future__ import annotations

from pathlib import Path

import click

from ..ci import in_ci
from .checking import check_packages
from .options import NO_CACHE, OUTPUT, SCHEMAS, exits


@click.command()
@SCHEMAS
@OUTPUT
@NO_CACHE
@click.option(
    "--full",
    is_flag=True,
    help="Trust no earlier run, and leave no notes; the default where CI=true.",
)
@exits
def check(
    schemas: tuple[Path, ...], output: Path | None, no_cache: bool, full: bool
) -> int:
    """Tell whether a package, and its reference, is what its SCHEMA emits.

    Changes no file of yours. Exits with 1 and a diff when it is not.
    """
    return check_packages(schemas, output, no_cache or full or in_ci())
