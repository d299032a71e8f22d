"""Packages and references, from their schemas to the disk."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, TypeAlias

from .console import echo, shown, written
from .progress import Bar
from .recording import Recording
from .rendering import rendered
from .schemas import find_pairs

if TYPE_CHECKING:
    from pathlib import Path

    from ..compile import Checked

# The schemas that were emitted, each with the files that it was read from.
Emitted: TypeAlias = "list[tuple[Checked, list[str]]]"
# Files of somebody else that are named, of the many that a folder may hold.
_NAMED = 5


def emit_packages(
    schemas: tuple[Path, ...] = (),
    output: Path | None = None,
    no_cache: bool = False,
    tool: str | None = None,
) -> Emitted:
    """Emit packages, all that are listed if none is given, and tell what was written.

    `tool` is the digest of the tool, if it is known.
    """
    recording = None if no_cache or schemas else Recording(tool)
    from .. import disk
    from ..header import PAGE_MARK

    # Everything is checked and rendered before the first file is written.
    packages = []
    emitted: Emitted = []
    bar = Bar()
    for pair in find_pairs(schemas, output):
        package = rendered(pair, bar, recording, warn=True)
        packages.append((pair, package.files, package.page))
        emitted.append((package.checked, package.read))
    for pair, files, page in packages:
        changes = disk.write(pair.output, files)
        for each in changes:
            verb = {"missing": "added", "extra": "removed"}.get(each.kind, "changed")
            echo(f"{verb} {shown(os.path.join(pair.output, each.path))}\n")
        kept = len(files) - sum(each.kind != "extra" for each in changes)
        others = _named(disk.others(pair.output))
        echo(f"{shown(pair.output)}: {len(files)} files, {kept} unchanged{others}\n")
        if pair.docs is not None:
            change = disk.write_file(pair.docs, page, PAGE_MARK)
            echo(f"{shown(pair.docs)}: {written(change)}\n")
    if recording is not None:
        recording.store()
    return emitted


def _named(others: list[str]) -> str:
    if not others:
        return ""
    names = ", ".join(others[:_NAMED])
    more = len(others) - _NAMED
    return f"; not arenagen's, kept: {names}" + (f" and {more} more" * (more > 0))
