"""A small working schema to start from, and its tests, under a name of one's own."""

from __future__ import annotations

import json
import re

from . import naming, resources
from .errors import ArenagenError

FAMILIES = "huggingface.yaml"
PROJECT = "pyproject.toml"


class StarterError(ArenagenError):
    """A name that an arena cannot have."""


def starter(name: str) -> dict[str, str]:
    """The new files by name: the schema, its tests, and the family table it reads.

    Raises StarterError for a name that is none of a package.
    """
    why = naming.bad_member(f"{name}_arena") or naming.bad_member(name)
    if not why and not naming.PACKAGE.fullmatch(name):
        why = "is not in small letters"
    if why:
        raise StarterError(
            f"the name {name!r} {why}; give a word of small letters, digits and `_`"
        )
    words = {"starter": name, "STARTER": name.upper(), "Starter": naming.pascal(name)}

    def named(text: str) -> str:
        return re.sub("starter|STARTER|Starter", lambda found: words[found[0]], text)

    files = {
        named(file): named(text) for file, text in resources.starter_files().items()
    }
    return {**files, FAMILIES: resources.family_table_text()}


def listed(name: str, folder: str = ".") -> str:
    """The lines of a pyproject.toml that list the schema and its package.

    `folder` is where the schema lies, relative to that file.
    """
    inside = "" if folder == "." else f"{folder}/"

    def text(path: str) -> str:
        return json.dumps(inside + path, ensure_ascii=False)

    return (
        "[[tool.arenagen.arenas]]\n"
        f"schema = {text(f'{name}.yaml')}\n"
        f"output = {text(f'{name}_arena')}\n"
    )
