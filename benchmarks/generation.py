"""What a run of the command line costs, as whole processes against an empty Python.

P is `python -c pass`. The schema is that of the Metrale arena, in a project of its own.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from common import NOTHING, SCHEMA, Row, pairs, process

PROJECT = """
[[tool.arenagen.arenas]]
schema = "metrale.yaml"
output = "arena"
"""
COUNT = 11
# What is left when black, jinja2, jsonschema and click are not called.
_REST = (
    "an empty Python is 1 P, what we use of its library 1.5 P, loading yaml 1 P, the "
    "modules of arenagen 2 P; reading and checking 2,000 lines of YAML is 2.5 P, "
    "lowering and rendering them 5 P. Templates kept as they are once read would save "
    "0.3 P."
)


def rows() -> list[Row]:
    """Every figure, in a project that is made for it."""
    with tempfile.TemporaryDirectory() as folder:
        return _rows(Path(folder))


def _rows(project: Path) -> list[Row]:
    for name in ("metrale.yaml", "huggingface.yaml"):
        shutil.copy(SCHEMA.with_name(name), project / name)
    (project / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    nothing = process(NOTHING)
    schema = project / "metrale.yaml"
    text = schema.read_text(encoding="utf-8")
    flips = iter(range(10**6))

    def forget() -> None:
        shutil.rmtree(project / "arena", ignore_errors=True)
        shutil.rmtree(project / ".arenagen_cache", ignore_errors=True)

    def edit() -> None:
        shape = "[M, 3, hidden_size]" if next(flips) % 2 else "[M, 5, hidden_size]"
        edited = text.replace("shape: [M, hidden_size]", f"shape: {shape}", 1)
        assert edited != text
        schema.write_text(edited, encoding="utf-8")

    # The script that is installed, beside this Python.
    tool = str(Path(sys.executable).with_name("arenagen"))

    def row(
        figure: str,
        arguments: list[str],
        most: float,
        before: object = int,
        why: str = "",
    ) -> Row:
        ours = process([tool, *arguments], project, before)
        return pairs(figure, "P", ours, nothing, most, COUNT, why)

    return [
        row(
            "`generate` from nothing",
            ["generate"],
            40,
            forget,
            _REST,
        ),
        row(
            "`generate`, one buffer edited",
            ["generate"],
            22,
            edit,
            _REST,
        ),
        row("`generate`, nothing changed", ["generate"], 3),
        row("`check`, nothing changed", ["check"], 3),
        row(
            "`check --full`, clean checkout",
            ["check", "--full"],
            14,
            why=_REST,
        ),
        row(
            "`--help`",
            ["--help"],
            4.5,
            why="loading click is 2.6 P.",
        ),
        row("`--version`", ["--version"], 4.5),
    ]
