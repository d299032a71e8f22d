"""The command line: the commands of `arenagen`, one file each in `commands`.

0 is fine, 1 means that the answer is no, 2 that the input is wrong. Errors go to
stderr; bad input never ends in a traceback. A command is imported when it is asked
for, and imports what it runs when it runs, so that `--help` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

import click

from . import __version__

# How the help of each command begins.
_SUMMARIES = {
    "check": "Tell whether a package, and its reference, is what its SCHEMA emits.",
    "diff": "Tell what changes from the schema OLD to the schema NEW.",
    "docs": "Print the reference of an arena as Markdown, or write it.",
    "doctor": "Tell what this machine has for the CUDA backend.",
    "explain": "Explain the bytes of BUFFER, step by step.",
    "fit": "Print the largest limit whose arena fits into a budget.",
    "fmt": "Lay out each SCHEMA: indentation, blanks and blank lines.",
    "generate": "Emit the package of each SCHEMA, and its reference.",
    "init": "Write NAME.yaml, a small working schema, and its tests into this folder.",
    "lint": "Tell everything that is wrong or suspicious in each SCHEMA.",
    "report": "Write one HTML page about the arenas of real model configs.",
    "schema": "Print the JSON Schema of the schema language.",
    "sizes": "Print the bytes of every buffer for real model configs.",
    "zero-plan": "Print the memsets of a zeroing method.",
}


class _Commands(click.Group):
    """A group whose commands stand for those that it imports as they are asked for."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.commands:
            return None
        module = name.replace("-", "_")
        found = getattr(import_module(f".commands.{module}", __package__), module)
        assert isinstance(found, click.Command)
        return found

    def format_commands(
        self, context: click.Context, formatter: click.HelpFormatter
    ) -> None:
        # The list of commands needs none of them.
        click.Group(commands=self.commands).format_commands(context, formatter)


@click.group(
    cls=_Commands,
    commands=[click.Command(name, help=text) for name, text in _SUMMARIES.items()],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
def cli() -> None:
    """Declare every GPU buffer of a forward pass once; get a typed arena package."""


def main() -> None:
    """Run the command that the arguments name."""
    cli(prog_name="arenagen")
