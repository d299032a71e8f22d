"""What commands read: schemas, family tables, model configs and their options."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import ArenagenError, InputProblems, Problem, did_you_mean
from .console import shown
from .options import ModelOptions

if TYPE_CHECKING:
    from ..compile import Checked
    from ..evaluate import Value
    from ..model import Schema
    from ..project import Pair
    from ..sizing import Inputs
    from ..source import Text

_MAX_DIGITS = len(str(2**63 - 1))


def find_pairs(schemas: tuple[Path, ...], output: Path | None) -> list[Pair]:
    """The schemas that are meant and where their packages go; all that are listed."""
    from .. import project

    if output is not None:
        if len(schemas) != 1:
            raise click.UsageError("--output goes with one SCHEMA")
        return [project.Pair(schemas[0], output)]
    listed = project.nearest_pairs(Path.cwd())
    if not schemas:
        if not listed:
            raise click.UsageError(
                "no SCHEMA given, and no pyproject.toml here or above has "
                "[[tool.arenagen.arenas]]"
            )
        return listed
    wanted = {os.path.realpath(path): str(path) for path in schemas}
    known = {os.path.realpath(pair.schema) for pair in listed}
    missing = [path for real, path in wanted.items() if real not in known]
    if missing:
        raise click.UsageError(
            f"where to? pyproject.toml does not list {', '.join(missing)}; "
            "give --output, or add it to [[tool.arenagen.arenas]]"
        )
    return [pair for pair in listed if os.path.realpath(pair.schema) in wanted]


def default_schema() -> Path:
    """The first schema that pyproject.toml lists."""
    return find_pairs((), None)[0].schema


def load_checked(path: Path) -> Checked:
    """A schema and its family table. Raise InputProblems with every error of them."""
    from .. import disk
    from ..compile import check_source, read_schema
    from ..resources import family_table
    from ..source import Text

    schema, warnings = read_schema(Text(shown(path), disk.read(path)), open_base)
    families = None
    if schema.arena.families is not None:
        # Beside the file that names it, which may be a base.
        named_in = schema.arena.places["families"].file
        table = Path(named_in).parent / schema.arena.families
        try:
            families = Text(shown(table), disk.read(table))
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

    path = Path(os.path.normpath(Path(name).parent / base))
    return Text(shown(path), disk.read(path))


def _config(
    checked: Checked, path: Path, overrides: tuple[str, ...]
) -> dict[str, Value]:
    from .. import disk
    from ..families import read_config
    from ..resources import family_table

    if checked.families is None:
        raise ArenagenError(
            f"the schema of `{checked.schema.arena.package}` names no family table; "
            "add `families: huggingface.yaml` to its section `arena`, and put the file "
            f"beside it; arenagen comes with one to copy: {family_table()}"
        )
    raw = read_config(disk.read(path), str(path))
    fields = checked.families.canonical(raw, checked.schema, str(path)).fields
    return fields | _overrides(checked.schema, overrides)


def _overrides(schema: Schema, pairs: tuple[str, ...]) -> dict[str, Value]:
    types = {each.name: each.type for each in schema.config}
    values: dict[str, Value] = {}
    for name, text in _split(pairs):
        if name not in types:
            hint = did_you_mean(name, list(types)) or f"known: {', '.join(types)}"
            raise ArenagenError(f"--set {name}: no config field has that name; {hint}")
        match types[name]:
            case "int":
                values[name] = _integer(name, text, minimum=0)
            case "bool":
                words = {"true": True, "false": False}
                if text.lower() not in words:
                    raise ArenagenError(f"--set {name}={text}: write true or false")
                values[name] = words[text.lower()]
            case "list":
                values[name] = tuple(text.split(",")) if text else ()
            case _:
                values[name] = text
    return values


def asked_inputs(checked: Checked, options: ModelOptions) -> list[tuple[str, Inputs]]:
    """The inputs of each config, under the name that tells it from the others.

    Raise ArenagenError for what the schema does not know or does not allow.
    """
    from ..sizing import complete_inputs, read_lever

    model = checked.schema
    limits = {name: _integer(name, text) for name, text in _split(options.limits)}
    if options.tokens is not None:
        token_limit = model.token_limit.name
        if limits.setdefault(token_limit, options.tokens) != options.tokens:
            raise click.UsageError(
                f"-M {options.tokens}, and {token_limit} says otherwise"
            )
    known = {lever.name: lever for lever in model.levers}
    levers = {
        name: read_lever(known[name], text) if name in known else text
        for name, text in _split(options.levers)
    }
    target = {name: _integer(name, text) for name, text in _split(options.target)}
    names = [config.name for config in options.configs]
    found = []
    for config in options.configs:
        fields = _config(checked, config, options.overrides)
        # Most are called config.json: then the path tells them apart.
        name = config.name if names.count(config.name) == 1 else config.as_posix()
        inputs = complete_inputs(model, fields, limits, levers, target)
        found.append((name, inputs))
    return found


def _split(pairs: Iterable[str]) -> list[tuple[str, str]]:
    split = []
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise click.UsageError(f"`{pair}` is not NAME=VALUE")
        split.append((name.strip(), value.strip()))
    return split


def _integer(name: str, text: str, minimum: int | None = None) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ArenagenError(f"{name}={text}: not an integer")
    if len(digits) > _MAX_DIGITS:
        raise ArenagenError(f"{name}={text}: more than 2**63 - 1")
    value = int(text)
    if minimum is not None and value < minimum:
        raise ArenagenError(f"{name}={text}: at least {minimum}")
    return value
