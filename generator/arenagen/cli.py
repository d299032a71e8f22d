"""The command line: commands, exit codes, and the only prints.

0 is fine, 1 means that the answer is no, 2 that the input is wrong. Errors go to
stderr; bad input never ends in a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import click

from . import __version__
from .errors import ArenagenError, InputProblems, Problem, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from .compile import Checked
    from .disk import Difference
    from .evaluate import Value
    from .model import Schema
    from .project import Pair
    from .sizing import Inputs
    from .zeroing import Placement

P = ParamSpec("P")

_MAX_DIGITS = len(str(2**63 - 1))


def main() -> None:
    """The entry point of the `arenagen` command."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A diff or a path may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    cli(prog_name="arenagen")


def exits(command: Callable[P, int]) -> Callable[P, None]:
    """Turn a command's result into its exit code, and bad input into exit 2."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except InputProblems as error:
            _print_problems(error.problems)
            code = 2
        except ArenagenError as error:
            click.echo(f"error: {error}", err=True)
            code = 2
        sys.exit(code)

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Declare every GPU buffer of a forward pass once; get a typed arena package."""


SCHEMAS = click.argument(
    "schemas", nargs=-1, type=click.Path(path_type=Path), metavar="[SCHEMA]..."
)


def _folder(
    context: click.Context, option: click.Parameter, value: str | None
) -> Path | None:
    if value == "":
        # An unset variable must not mean the working folder.
        raise click.BadParameter("the empty text is no folder")
    return None if value is None else Path(value)


OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(),
    callback=_folder,
    help="Folder of the package, for one SCHEMA that pyproject.toml does not list.",
)


@cli.command()
@SCHEMAS
@OUTPUT
@exits
def generate(schemas: tuple[Path, ...], output: Path | None) -> int:
    """Emit the package of each SCHEMA.

    Without SCHEMA, of every one that pyproject.toml lists.

    Writes only what changed, atomically, and removes files that an earlier run emitted
    and this one does not. Never touches a file that arenagen did not write.
    """
    from . import disk
    from .compile import emit

    # Everything is checked and rendered before the first file is written.
    packages = []
    for pair in _pairs(schemas, output):
        checked = _load(pair.schema)
        _print_problems(checked.warnings)
        packages.append((pair, emit(checked, pair.schema.name)))
    for pair, files in packages:
        changes = disk.write(pair.output, files)
        for each in changes:
            verb = {"missing": "added", "extra": "removed"}.get(each.kind, "changed")
            click.echo(f"{verb} {_shown(pair.output / each.path)}")
        kept = len(files) - sum(each.kind != "extra" for each in changes)
        click.echo(f"{_shown(pair.output)}: {len(files)} files, {kept} unchanged")
    return 0


@cli.command()
@SCHEMAS
@OUTPUT
@exits
def check(schemas: tuple[Path, ...], output: Path | None) -> int:
    """Tell whether a package is what its SCHEMA emits.

    Writes nothing. Exits with 1 and a diff when it is not.
    """
    from . import disk
    from .compile import emit

    differ = False
    for pair in _pairs(schemas, output):
        checked = _load(pair.schema)
        files = emit(checked, pair.schema.name)
        found = disk.compare(pair.output, files)
        folder, source = _shown(pair.output), _shown(pair.schema)
        again = "" if output is None else f" {source} -o {folder}"
        for each in found:
            _print_difference(pair.output, each)
        if found:
            differ = True
            click.echo(
                f"{folder}: {_count(len(found), 'file')} of {len(files)} not as "
                f"{source} says; run `arenagen generate{again}`",
                err=True,
            )
        else:
            click.echo(f"{folder}: {len(files)} files, all as {source} says")
    return 1 if differ else 0


@cli.command()
@SCHEMAS
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@exits
def lint(schemas: tuple[Path, ...], strict: bool, style: str) -> int:
    """Tell everything that is wrong or suspicious in each SCHEMA."""
    import json

    problems: list[Problem] = []
    paths = schemas or tuple(pair.schema for pair in _pairs((), None))
    for path in paths:
        try:
            problems += _load(path).warnings
        except InputProblems as error:
            problems += error.problems
    errors = sum(problem.severity == "error" for problem in problems)
    if style == "json":
        data = [problem.as_dict() for problem in problems]
        click.echo(json.dumps(data, indent=2))
    else:
        for problem in problems:
            click.echo(f"{problem}\n")
        warnings = len(problems) - errors
        summary = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
        click.echo(f"{_count(len(paths), 'schema file')}: {summary}")
    if errors:
        return 2
    return 1 if strict and problems else 0


MODEL_OPTIONS = (
    click.option(
        "-s",
        "--schema",
        type=click.Path(path_type=Path),
        help="The schema; that of pyproject.toml when it lists one.",
    ),
    click.option(
        "-c",
        "--config",
        "configs",
        type=click.Path(path_type=Path),
        multiple=True,
        required=True,
        help="A Hugging Face config.json; may be given several times.",
    ),
    click.option("-M", "--tokens", type=int, help="The limit of tokens in a pass."),
    click.option(
        "-l",
        "--limit",
        "limits",
        multiple=True,
        metavar="NAME=VALUE",
        help="Any limit.",
    ),
    click.option(
        "--lever",
        "levers",
        multiple=True,
        metavar="NAME=VALUE",
        help="A lever, as its environment variable would spell it.",
    ),
    click.option(
        "--target",
        "target",
        multiple=True,
        metavar="NAME=VALUE",
        help="A target constant.",
    ),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="FIELD=VALUE",
        help="A config field, over what the file says.",
    ),
)


def model_options(command: Callable[P, None]) -> Callable[P, None]:
    """Options that choose a schema, real configs and all that sizes depend on."""
    for option in reversed(MODEL_OPTIONS):
        command = option(command)
    return command


@cli.command()
@model_options
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "md"]),
    default="table",
    show_default=True,
)
@exits
def sizes(
    schema: Path | None,
    configs: tuple[Path, ...],
    tokens: int | None,
    limits: tuple[str, ...],
    levers: tuple[str, ...],
    target: tuple[str, ...],
    overrides: tuple[str, ...],
    style: str,
) -> int:
    """Print the bytes of every buffer for real model configs.

    Limits that are not given take the schema's defaults, and levers too: the
    environment is not read.
    """
    from . import report
    from .sizing import size_arena

    checked = _load(schema if schema is not None else _only_schema())
    model = checked.schema
    asked = _asked(checked, configs, tokens, limits, levers, target, overrides)
    found = [(name, size_arena(model, inputs)) for name, inputs in asked]
    match style:
        case "json":
            data = [report.as_data(model, name, size) for name, size in found]
            click.echo(report.as_json(data), nl=False)
        case "csv":
            click.echo(report.as_csv(model, found), nl=False)
        case "md":
            texts = (report.as_markdown(name, size) for name, size in found)
            click.echo("\n".join(texts), nl=False)
        case _:
            console = _console()
            for name, size in found:
                console.print(report.as_table(name, size))
    return 0


@cli.command("zero-plan")
@model_options
@click.option(
    "-t", "--pass-tokens", type=int, help="Tokens of the pass; all when absent."
)
@click.option("--method", help="The zeroing method; the first group's when absent.")
@click.option(
    "--placement",
    type=click.Choice(["separate", "slab"]),
    default="separate",
    show_default=True,
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
)
@exits
def zero_plan(
    schema: Path | None,
    configs: tuple[Path, ...],
    tokens: int | None,
    limits: tuple[str, ...],
    levers: tuple[str, ...],
    target: tuple[str, ...],
    overrides: tuple[str, ...],
    pass_tokens: int | None,
    method: str | None,
    placement: Placement,
    style: str,
) -> int:
    """Print the memsets of a zeroing method.

    For real model configs, in full or of a pass of some tokens.
    """
    from . import report, zeroing

    checked = _load(schema if schema is not None else _only_schema())
    group = zeroing.find_group(checked.schema, method)
    asked = _asked(checked, configs, tokens, limits, levers, target, overrides)
    plans = [
        (
            name,
            zeroing.zero_plan(checked.schema, inputs, group, pass_tokens, placement),
        )
        for name, inputs in asked
    ]
    called = group.method
    if pass_tokens is not None:
        called = f"{group.rows_method}, tokens={pass_tokens}"
    if style == "json":
        data = [report.plan_as_data(name, called, plan) for name, plan in plans]
        click.echo(report.as_json(data), nl=False)
    else:
        console = _console()
        for name, plan in plans:
            console.print(report.plan_as_table(name, called, plan))
    return 0


@cli.command()
@exits
def doctor() -> int:
    """Tell what this machine has for the CUDA backend.

    And how to get what is missing. Exits with 1 when no device can be used.
    """
    from .doctor import diagnose

    lines, ready = diagnose()
    for line in lines:
        click.echo(line)
    return 0 if ready else 1


def _console() -> Console:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    plain = not terminal or os.environ.get("NO_COLOR")
    return Console(
        color_system=None if plain else "auto",
        highlight=False,
        # Piped output is not cut to the width of a terminal that is not there.
        width=None if terminal else 160,
    )


def _pairs(schemas: tuple[Path, ...], output: Path | None) -> list[Pair]:
    from . import project

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


def _only_schema() -> Path:
    pairs = _pairs((), None)
    if len(pairs) > 1:
        names = ", ".join(_shown(pair.schema) for pair in pairs)
        raise click.UsageError(f"which one? give --schema: {names}")
    return pairs[0].schema


def _load(path: Path) -> Checked:
    from . import disk
    from .compile import Text, check_source, read_schema
    from .resources import family_table

    schema, warnings = read_schema(Text(_shown(path), disk.read(path)))
    families = None
    if schema.arena.families is not None:
        table = path.parent / schema.arena.families
        try:
            families = Text(_shown(table), disk.read(table))
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


def _shown(path: Path) -> str:
    """The path as problems show it: relative to the working folder where it can be."""
    try:
        return Path(os.path.abspath(path)).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


def _config(
    checked: Checked, path: Path, overrides: tuple[str, ...]
) -> dict[str, Value]:
    from . import disk
    from .families import read_config
    from .resources import family_table

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


def _asked(
    checked: Checked,
    configs: tuple[Path, ...],
    tokens: int | None,
    limits: tuple[str, ...],
    levers: tuple[str, ...],
    target: tuple[str, ...],
    overrides: tuple[str, ...],
) -> list[tuple[str, Inputs]]:
    """The inputs of each config, under the name that tells it from the others."""
    model = checked.schema
    chosen = {name: _integer(name, value) for name, value in _split(limits)}
    if tokens is not None:
        token_limit = model.token_limit.name
        if chosen.setdefault(token_limit, tokens) != tokens:
            raise click.UsageError(f"-M {tokens}, and {token_limit} says otherwise")
    names = [config.name for config in configs]
    found = []
    for config in configs:
        fields = _config(checked, config, overrides)
        # Most are called config.json: then the path tells them apart.
        name = config.name if names.count(config.name) == 1 else config.as_posix()
        found.append((name, _inputs(model, fields, chosen, levers, target)))
    return found


def _inputs(
    schema: Schema,
    config: dict[str, Value],
    limits: dict[str, int],
    levers: tuple[str, ...],
    target: tuple[str, ...],
) -> Inputs:
    from .sizing import complete_inputs, read_lever

    known = {lever.name: lever for lever in schema.levers}
    return complete_inputs(
        schema,
        config,
        limits,
        {
            name: read_lever(known[name], text) if name in known else text
            for name, text in _split(levers)
        },
        {name: _integer(name, text) for name, text in _split(target)},
    )


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


def _print_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        click.echo(f"{problem}\n", err=True)


def _print_difference(folder: Path, difference: Difference) -> None:
    match difference.kind:
        case "missing":
            click.echo(f"missing: {_shown(folder / difference.path)}")
        case "extra":
            click.echo(
                f"extra: {_shown(folder / difference.path)} is emitted no longer"
            )
        case "foreign":
            click.echo(f"foreign: {_shown(folder / difference.path)} is not arenagen's")
        case _:
            click.echo(difference.diff(), nl=False)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
