"""`arenagen doctor`: what this machine has for the CUDA backend."""

from __future__ import annotations

import click

from .options import exits


@click.command()
@exits
def doctor() -> int:
    """Tell what this machine has for the CUDA backend.

    And how to get what is missing. Exits with 1 when no device can be used.
    """
    from ..doctor import diagnose

    lines, ready = diagnose()
    for line in lines:
        click.echo(line)
    return 0 if ready else 1
