"""Where the templates and the language's JSON Schema lie.

In a wheel they are inside the package; in a checkout beside the generator.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]


def templates() -> Path:
    """The folder of the Jinja templates and the runtime modules."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _CHECKOUT / "templates"


def language_schema() -> Path:
    """The JSON Schema of the language."""
    inside = _PACKAGE / "schema" / "arena.schema.json"
    if inside.is_file():
        return inside
    return _CHECKOUT / "schema" / "arena.schema.json"
