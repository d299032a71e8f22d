"""`generate --watch`: emit again whenever one of the files is saved."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from ..errors import ArenagenError, InputProblems
from ..words import count
from .console import print_problems, shown
from .diff import compared
from .emitting import Emitted
from .options import ModelOptions


def follow(options: ModelOptions, emit: Callable[[], Emitted]) -> None:
    """Emit, and again on every save, until interrupted.

    Tells what each save changes, in bytes where there are configs. What is wrong is
    told, and the next save waited for.
    """
    try:
        from watchfiles import watch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ArenagenError(
            "--watch needs watchfiles: pip install watchfiles"
        ) from None

    emitted = emit()
    files = _files(emitted)
    click.echo(f"watching {count(len(files), 'file')}, until Ctrl-C")
    while folders := _folders(files):
        for changes in watch(*folders, recursive=False, raise_interrupt=False):
            saved = sorted({os.path.realpath(path) for _, path in changes} & files)
            if not saved:
                continue
            click.echo(f"\nsaved {', '.join(map(shown, saved))}")
            try:
                after = emit()
                _compare(options, emitted, after)
                emitted = after
            except InputProblems as error:
                print_problems(error.problems)
            except ArenagenError as error:
                click.echo(f"error: {error}", err=True)
            files = _files(emitted)
            if _folders(files) != folders:
                break
        else:
            return


def _compare(options: ModelOptions, before: Emitted, after: Emitted) -> None:
    """Tell what changed in each schema that was there before."""
    from ..diff_report import diff_as_text

    known = {paths[0]: checked for checked, paths in before}
    for new, paths in after:
        old = known.get(paths[0], new)
        if old.schema != new.schema:
            name = new.schema.arena.package
            found = compared(options, old, new)
            click.echo(diff_as_text(name, name, found), nl=False)


def _files(emitted: Emitted) -> set[str]:
    return {os.path.realpath(path) for _, paths in emitted for path in paths}


def _folders(files: set[str]) -> list[str]:
    return sorted({os.path.dirname(path) for path in files})
