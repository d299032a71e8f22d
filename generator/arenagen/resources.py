"""Where the templates and the JSON Schemas lie.

In a wheel they are inside the package; in a checkout beside the generator.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]
PAGE_FILES = ("css", "jinja", "js")


def templates() -> Path:
    """The folder of the Jinja templates and the runtime modules."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _CHECKOUT / "templates"


def runtime_modules() -> list[tuple[str, str]]:
    """File name and text of every module that is emitted as it is, in name order."""
    folder = templates() / "runtime"
    return [
        (path.name, path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.py"))
    ]


def page_files() -> dict[str, str]:
    """Name and text of the templates, the style and the script of the HTML page."""
    folder = _PACKAGE / "page"
    found = (path for kind in PAGE_FILES for path in folder.glob(f"*.{kind}"))
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(found)}


def language_schema() -> Path:
    """The JSON Schema of the language."""
    return _schema("arena.schema.json")


def families_schema() -> Path:
    """The JSON Schema of a Hugging Face family table."""
    return _schema("huggingface.schema.json")


def family_table() -> Path:
    """The Hugging Face family table that projects copy beside their schema."""
    return _schema("huggingface.yaml")


def _schema(name: str) -> Path:
    inside = _PACKAGE / "schema" / name
    return inside if inside.is_file() else _CHECKOUT / "schema" / name
