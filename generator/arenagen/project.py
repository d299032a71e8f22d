"""`[tool.arenagen]` of pyproject.toml: which schema goes to which folder."""

from __future__ import annotations

import os.path
import tomllib
from collections.abc import Iterator

from . import disk
from .errors import ArenagenError
from .record import record


class ProjectError(ArenagenError):
    """A pyproject.toml that does not say what to emit where."""


@record
class Pair:
    """A schema file, the folder of its package, and the file of its reference."""

    schema: str
    output: str
    docs: str | None = None


def nearest_file(start: str) -> str | None:
    """The nearest pyproject.toml, in `start` or above it, whatever it holds."""
    return next(_files(start), None)


def nearest_pairs(start: str) -> list[Pair]:
    """The pairs of the nearest pyproject.toml that has a `[tool.arenagen]`.

    Looks in `start` and the folders above it; none when no file has one.
    """
    for path in _files(start):
        if found := pairs(disk.read(path), path):
            return found
    return []


def _files(folder: str) -> Iterator[str]:
    """Every pyproject.toml in a folder and those above it."""
    below = ""
    while folder != below:
        path = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(path):
            yield path
        folder, below = os.path.dirname(folder), folder


def pairs(data: bytes, path: str) -> list[Pair]:
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
        places = {key: _place(path, entry[key]) for key in entry}
        found.append(Pair(**places))
    return found


def _place(path: str, name: str) -> str:
    """The path of a file or folder that is named in a pyproject.toml."""
    place = os.path.join(os.path.dirname(path), name)
    # Past a link, `..` leads elsewhere than up.
    return place if ".." in name else os.path.normpath(place)
