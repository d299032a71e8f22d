"""`[tool.arenagen]` of pyproject.toml: which schema goes to which folder."""

from __future__ import annotations

import os.path
import tomllib
from pathlib import Path

from . import disk
from .errors import ArenagenError
from .record import record


class ProjectError(ArenagenError):
    """A pyproject.toml that does not say what to emit where."""


@record
class Pair:
    """A schema file, the folder of its package, and the file of its reference."""

    schema: Path
    output: Path
    docs: Path | None = None


def nearest_file(start: Path) -> Path | None:
    """The nearest pyproject.toml, in `start` or above it, whatever it holds."""
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if os.path.isfile(path):
            return path
    return None


def nearest_pairs(start: Path) -> list[Pair]:
    """The pairs of the nearest pyproject.toml that has a `[tool.arenagen]`.

    Looks in `start` and the folders above it; none when no file has one.
    """
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if os.path.isfile(path) and (found := pairs(disk.read(path), path)):
            return found
    return []


def pairs(data: bytes, path: Path) -> list[Pair]:
    """The pairs of a pyproject.toml, none without a `[tool.arenagen]`.

    Paths are relative to its folder. Raises ProjectError for anything but a list of
    tables with `schema`, `output` and, if need be, `docs`.
    """
    # Whether other projects' files are sound is not asked.
    if b"arenagen" not in data:
        return []
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProjectError(f"{path}: not TOML: {error}") from None
    tool = table.get("tool")
    if not isinstance(tool, dict) or "arenagen" not in tool:
        return []
    section = tool["arenagen"]
    arenas = section.get("arenas") if isinstance(section, dict) else None
    if not isinstance(arenas, list) or not arenas:
        raise ProjectError(
            f"{path}: `[[tool.arenagen.arenas]]` is missing; each has a `schema` and "
            "an `output`"
        )
    found: list[Pair] = []
    taken: dict[tuple[str, str], int] = {}
    for place, entry in enumerate(arenas, start=1):
        if not isinstance(entry, dict) or set(entry) - {"docs"} != {"schema", "output"}:
            raise ProjectError(
                f"{path}: arena {place} of `[[tool.arenagen.arenas]]` has other keys "
                "than `schema`, `output` and, where it has a reference, `docs`"
            )
        for text in entry.values():
            if not isinstance(text, str) or not text or "\0" in text:
                raise ProjectError(f"{path}: arena {place}: all paths are texts")
        for key in ("output", "docs") if "docs" in entry else ("output",):
            where = os.path.normpath(entry[key])
            other = taken.setdefault((key, where), place)
            if other != place:
                raise ProjectError(
                    f"{path}: arenas {other} and {place} have the same {key}, "
                    f"{entry[key]}"
                )
        docs = path.parent / entry["docs"] if "docs" in entry else None
        found.append(
            Pair(path.parent / entry["schema"], path.parent / entry["output"], docs)
        )
    return found
