"""The entry point: what can be answered without loading the command line, and it.

Most runs are `generate` or `check` without an argument and find nothing changed, and
`--version` needs nothing.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from io import StringIO, TextIOWrapper

from . import __version__
from .ci import in_ci


def main() -> None:
    """The entry point of the `arenagen` command."""
    # Whoever closed a stream wants nothing of it.
    sys.stdout = sys.stdout or StringIO()
    sys.stderr = sys.stderr or StringIO()
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("\nAborted!\n")
        sys.exit(1)
    except OSError as error:
        # One that is about a file names it, and is no matter of the output.
        if error.filename is not None:
            raise
        _write_no_more()
        # Whoever stopped reading wants no more, not an error either.
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"error: the output: {error.strerror}\n")
        sys.exit(1)


def _write_no_more() -> None:
    """Let what is still to be written go nowhere, as Python ends too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _run() -> None:
    if isinstance(sys.stdout, TextIOWrapper):
        # A diff or a path may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.stdout.write(f"arenagen, version {__version__}\n")
        return
    try:
        os.getcwd()
    except OSError as error:
        sys.stderr.write(f"error: the working folder: {error.strerror}\n")
        sys.exit(2)
    if arguments in (["generate"], ["check"], ["check", "--full"]):
        code = _listed(*arguments)
        if code is not None:
            sys.exit(code)
    _collect_nothing()
    from .cli import main as run

    run()


def _listed(command: str, *full: str) -> int | None:
    """The exit code of a run over the listed packages; None if click must tell more."""
    tool = None
    if not full and not in_ci():
        from . import manifest

        tool = manifest.tool()
        packages = manifest.unchanged(os.getcwd(), tool)
        if packages is not None:
            for each in packages:
                sys.stdout.write(manifest.report(command, each))
            return 0
    _collect_nothing()
    from .commands.bare import run

    return run(command, tool)


def _collect_nothing() -> None:
    """Look for no garbage, not as Python ends either.

    A run is short, and keeps nearly all that it makes.
    """
    gc.disable()
    atexit.register(gc.freeze)
