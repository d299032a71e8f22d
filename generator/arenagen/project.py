"""`[tool.arenagen]` of pyproject.toml: which schema goes to which folder."""

from __future__ import annotations

import os.path
import tomllib
from dataclasses import dataclass
from pathlib import Path

from . import disk
from .errors import ArenagenError


class ProjectError(ArenagenError):
    """A pyproject.toml that does not say what to emit where."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A schema file and the folder of its package."""

    schema: Path
    output: Path


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
    tables with `schema` and `output`.
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
    outputs: dict[str, int] = {}
    for place, entry in enumerate(arenas, start=1):
        if not isinstance(entry, dict) or set(entry) != {"schema", "output"}:
            raise ProjectError(
                f"{path}: arena {place} of `[[tool.arenagen.arenas]]` has other keys "
                "than `schema` and `output`"
            )
        schema, output = entry["schema"], entry["output"]
        for text in (schema, output):
            if not isinstance(text, str) or not text or "\0" in text:
                raise ProjectError(f"{path}: arena {place}: both paths are texts")
        other = outputs.setdefault(os.path.normpath(output), place)
        if other != place:
            raise ProjectError(
                f"{path}: arenas {other} and {place} have the same output, {output}"
            )
        found.append(Pair(path.parent / schema, path.parent / output))
    return found
