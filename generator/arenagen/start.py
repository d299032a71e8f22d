"""The entry point: what can be answered without loading the command line, and it.

Most runs of `generate` and `check` find nothing changed, and `--version` needs nothing.
"""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper

from . import __version__


def main() -> None:
    """The entry point of the `arenagen` command."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A diff or a path may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.stdout.write(f"arenagen, version {__version__}\n")
        return
    if arguments in (["generate"], ["check"]) and not in_ci():
        from . import manifest

        packages = manifest.unchanged(os.getcwd(), manifest.tool())
        if packages is not None:
            for each in packages:
                sys.stdout.write(manifest.report(arguments[0], each))
            return
    # A run is short, and keeps nearly all that it makes.
    gc.disable()
    from .cli import main as run

    run()


def in_ci() -> bool:
    """Whether this is a run of continuous integration, which trusts no earlier one."""
    return os.environ.get("CI", "").lower() in ("1", "true")
