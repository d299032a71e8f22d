"""`[tool.arenagen]` of pyproject.toml: which schema goes to which folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from .errors import ArenagenError


class ProjectError(ArenagenError):
    """A pyproject.toml that does not say what to emit where."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A schema file and the folder of its package."""

    schema: Path
    output: Path


def find(start: Path) -> Path | None:
    """The nearest pyproject.toml with a `[tool.arenagen]`, from `start` upwards."""
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file() and "[tool.arenagen]" in _plain(path):
            return path
    return None


def _plain(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.replace("[[tool.arenagen.arenas]]", "[tool.arenagen]")


def pairs(data: bytes, path: Path) -> list[Pair]:
    """The pairs of a pyproject.toml; paths are relative to its folder.

    Raises ProjectError for anything but a list of tables with `schema` and `output`.
    """
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProjectError(f"{path}: not TOML: {error}") from None
    section = table.get("tool", {}).get("arenagen", {})
    arenas = section.get("arenas") if isinstance(section, dict) else None
    if not isinstance(arenas, list) or not arenas:
        raise ProjectError(
            f"{path}: `[[tool.arenagen.arenas]]` is missing; each has a `schema` and "
            "an `output`"
        )
    found = []
    for place, entry in enumerate(arenas, start=1):
        if not isinstance(entry, dict) or set(entry) != {"schema", "output"}:
            raise ProjectError(
                f"{path}: arena {place} of `[[tool.arenagen.arenas]]` has other keys "
                "than `schema` and `output`"
            )
        schema, output = entry["schema"], entry["output"]
        if not isinstance(schema, str) or not isinstance(output, str):
            raise ProjectError(f"{path}: arena {place}: both paths are texts")
        found.append(Pair(path.parent / schema, path.parent / output))
    return found
