"""Whether packages are what their schemas emit."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from ..words import count
from .console import echo, shown
from .progress import Bar
from .recording import Recording
from .rendering import rendered
from .schemas import find_pairs

if TYPE_CHECKING:
    from pathlib import Path

    from ..disk import Difference


def check_packages(
    schemas: tuple[Path, ...] = (),
    output: Path | None = None,
    no_cache: bool = False,
    tool: str | None = None,
) -> int:
    """Compare packages, all that are listed if none is given; 1 where one differs.

    `tool` is the digest of the tool, if it is known.
    """
    recording = None if no_cache or schemas else Recording(tool)
    from .. import disk
    from ..header import PAGE_MARK

    differ = False
    bar = Bar()
    for pair in find_pairs(schemas, output):
        package = rendered(pair, bar, recording)
        files, page = package.files, package.page
        found = disk.compare(pair.output, files)
        folder, source = shown(pair.output), shown(pair.schema)
        again = "" if output is None else f" {source} -o {folder}"
        for each in found:
            _print_difference(pair.output, each)
        if found:
            differ = True
            echo(
                f"{folder}: {count(len(found), 'file')} of {len(files)} not as "
                f"{source} says; run `arenagen generate{again}`\n",
                err=True,
            )
        else:
            echo(f"{folder}: {len(files)} files, all as {source} says\n")
        if pair.docs is not None:
            if changed := disk.compare_file(pair.docs, page, PAGE_MARK):
                differ = True
                _print_difference(os.path.dirname(pair.docs), changed)
                echo(
                    f"{shown(pair.docs)}: not as {source} says; "
                    "run `arenagen generate`\n",
                    err=True,
                )
            else:
                echo(f"{shown(pair.docs)}: as {source} says\n")
    if recording is not None and not differ:
        recording.store()
    return 1 if differ else 0


def _print_difference(folder: str, difference: Difference) -> None:
    path = shown(os.path.join(folder, difference.path))
    match difference.kind:
        case "missing":
            echo(f"missing: {path}\n")
        case "extra":
            echo(f"extra: {path} is emitted no longer\n")
        case "foreign":
            echo(f"foreign: {path} is not arenagen's\n")
        case _:
            echo(difference.diff())
