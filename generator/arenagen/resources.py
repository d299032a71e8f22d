"""Where the templates and the JSON Schemas lie.

In a wheel they are inside the package; in a checkout beside the generator.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = os.path.dirname(os.path.realpath(__file__))
PAGE_FILES = ("css", "jinja", "js")
_LANGUAGE_SCHEMA = "schema/arena.schema.json"
_FAMILIES_SCHEMA = "schema/huggingface.schema.json"


def find(name: str) -> str:
    """Where a file or folder lies, by its path in the repository."""
    inside = os.path.join(PACKAGE, name)
    return inside if os.path.exists(inside) else os.path.join(PACKAGE, "../..", name)


def templates() -> Path:
    """The folder of the templates and the runtime modules."""
    return _path("templates")


def template(module: str) -> str:
    """The template of one emitted module."""
    return _text(find(f"templates/{module}.py.jinja"))


def runtime_modules() -> list[tuple[str, str]]:
    """File name and text of every module that is emitted as it is, in name order."""
    folder = find("templates/runtime")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    return [(name, _text(os.path.join(folder, name))) for name in names]


def starter_files() -> dict[str, str]:
    """Name and text of the schema to start from and of its tests."""
    folder = templates() / "starter"
    found = sorted(path for path in folder.glob("*.*") if path.is_file())
    return {path.name: path.read_text(encoding="utf-8") for path in found}


def page_files() -> dict[str, str]:
    """Name and text of the templates, the style and the script of the HTML page."""
    folder = _path("page")
    found = (path for kind in PAGE_FILES for path in folder.glob(f"*.{kind}"))
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(found)}


def schema_text(families: bool) -> str:
    """The JSON Schema of the language, or of a family table, as it lies there."""
    return _text(find(_FAMILIES_SCHEMA if families else _LANGUAGE_SCHEMA))


def family_table() -> Path:
    """The Hugging Face family table that projects copy beside their schema."""
    return _path("schema/huggingface.yaml")


def family_table_text() -> str:
    """That table, as it lies there."""
    return family_table().read_text(encoding="utf-8")


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _path(name: str) -> Path:
    # Not at the top: who only asks whether anything changed needs no paths.
    from pathlib import Path

    return Path(find(name)).resolve()
