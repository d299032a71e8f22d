"""Which schemas are meant, and what they say: pyproject.toml, files, git revisions."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from ..errors import InputProblems, Problem
from .console import shown
from .outcome import Misuse

if TYPE_CHECKING:
    from pathlib import Path

    from ..chain import OpenBase
    from ..compile import Checked
    from ..disk import StrPath
    from ..project import Pair
    from ..source import Text


def find_pairs(schemas: tuple[Path, ...], output: Path | None) -> list[Pair]:
    """The schemas that are meant and where their packages go; all that are listed."""
    from .. import project

    if output is not None:
        if len(schemas) != 1:
            raise Misuse("--output goes with one SCHEMA")
        return [project.Pair(str(schemas[0]), str(output))]
    listed = project.nearest_pairs(os.getcwd())
    if not schemas:
        if not listed:
            raise Misuse(
                "no SCHEMA given, and no pyproject.toml here or above has "
                "[[tool.arenagen.arenas]]"
            )
        return listed
    wanted = {os.path.realpath(path): str(path) for path in schemas}
    known = {os.path.realpath(pair.schema) for pair in listed}
    missing = [path for real, path in wanted.items() if real not in known]
    if missing:
        raise Misuse(
            f"where to? pyproject.toml does not list {', '.join(missing)}; "
            "give --output, or add it to [[tool.arenagen.arenas]]"
        )
    return [pair for pair in listed if os.path.realpath(pair.schema) in wanted]


def default_schema() -> str:
    """The first schema that pyproject.toml lists."""
    from .. import project

    listed = project.nearest_pairs(os.getcwd())
    if not listed:
        raise Misuse(
            "give --schema: no pyproject.toml here or above has "
            "[[tool.arenagen.arenas]]"
        )
    return listed[0].schema


def load_checked(path: StrPath, seen: dict[str, bytes] | None = None) -> Checked:
    """A schema and its family table. Raise InputProblems with every error of them.

    `seen` gets every file that was read, by the path that problems show.
    """
    from .. import disk
    from ..source import Text

    text = Text(shown(path), disk.read(path))
    if seen is None:
        return _load(text, open_base)
    seen[text.name] = text.data

    def open_noted(name: str, base: str) -> Text:
        opened = open_base(name, base)
        seen[opened.name] = opened.data
        return opened

    return _load(text, open_noted)


def load_anywhere(name: str) -> Checked:
    """A schema of the disk, or of a git revision where `name` is REVISION:PATH.

    The bases and the family table of the latter are of the same revision.
    """
    from .. import git
    from ..source import Text

    revision, colon, path = name.partition(":")
    if not colon or os.path.lexists(name):
        return load_checked(name)
    path = git.from_top(path)
    return _load(Text(f"{revision}:{path}", git.read(revision, path)), _open_beside)


def _open_beside(name: str, base: str) -> Text:
    """As `open_base`, of the revision that the name begins with."""
    from .. import git
    from ..source import Text

    revision, _, path = name.partition(":")
    whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), base))
    return Text(f"{revision}:{whole}", git.read(revision, whole))


def _load(text: Text, open_beside: OpenBase) -> Checked:
    from .. import disk
    from ..compile import check_source, read_schema
    from ..resources import family_table

    schema, warnings = read_schema(text, open_beside)
    families = None
    if schema.arena.families is not None:
        # Beside the file that names it, which may be a base.
        named_in = schema.arena.places["families"].file
        try:
            families = open_beside(named_in, schema.arena.families)
        except disk.DiskError as error:
            raise InputProblems(
                [
                    Problem(
                        "AR096",
                        f"the family table cannot be read: {error}",
                        schema.arena.span,
                        hint=f"arenagen comes with one to copy: {family_table()}",
                    ),
                    *warnings,
                ]
            ) from None
    return check_source(schema, warnings, families)


def open_base(name: str, base: str) -> Text:
    """The file of a path that is relative to a named file. Raises ArenagenError."""
    from .. import disk
    from ..source import Text

    path = os.path.normpath(os.path.join(os.path.dirname(name), base))
    return Text(shown(path), disk.read(path))
