"""The command line: the commands of `arenagen`, one file each in `commands`.

0 is fine, 1 means that the answer is no, 2 that the input is wrong. Errors go to
stderr; bad input never ends in a traceback. Commands import what they run when they
run, so that `--help` costs next to nothing.
"""

from __future__ import annotations

import click

from . import __version__
from .commands.check import check
from .commands.diff import diff
from .commands.docs import docs
from .commands.doctor import doctor
from .commands.explain import explain
from .commands.fit import fit
from .commands.fmt import fmt
from .commands.generate import generate
from .commands.init import init
from .commands.lint import lint
from .commands.report import report
from .commands.schema import schema
from .commands.sizes import sizes
from .commands.zero_plan import zero_plan


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Declare every GPU buffer of a forward pass once; get a typed arena package."""


for command in (
    init,
    generate,
    check,
    lint,
    fmt,
    sizes,
    explain,
    fit,
    zero_plan,
    diff,
    docs,
    report,
    schema,
    doctor,
):
    cli.add_command(command)


def main() -> None:
    """Run the command that the arguments name."""
    cli(prog_name="arenagen")
