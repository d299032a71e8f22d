"""Options and arguments that several commands take, and their exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click

from ..record import record
from .outcome import Misuse, exit_code

P = ParamSpec("P")


def exits(command: Callable[P, int]) -> Callable[P, None]:
    """Turn a command's result into its exit code, and bad input into exit 2."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = exit_code(lambda: command(*args, **kwargs))
        except Misuse as error:
            raise click.UsageError(str(error)) from None
        sys.exit(code)

    return run


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


NO_CACHE = click.option(
    "--no-cache",
    is_flag=True,
    help="Neither use nor leave notes of what is unchanged (.arenagen_cache).",
)


def _counts(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, ...]:
    """Integers with commas, each once."""
    if value is None:
        return ()
    found = (click.INT(each, option, context) for each in value.split(","))
    return tuple(dict.fromkeys(found))


SCHEMA = click.option(
    "-s",
    "--schema",
    type=click.Path(path_type=Path),
    help="The schema; the first that pyproject.toml lists when absent.",
)
TOKENS = "The limit of tokens in a pass."
INPUTS = (
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
        help="A lever, as its environment variable would spell it, or true or false.",
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
    click.option(
        "--tp",
        type=click.IntRange(min=1),
        default=1,
        metavar="RANKS",
        help="Tensor-parallel ranks that share the heads; sizes are those of one.",
    ),
    click.option(
        "--assume",
        default="",
        metavar="MODEL_TYPE",
        help="The known model type by which files of an unknown one are read.",
    ),
)


@record
class ModelOptions:
    """A schema, real configs, and all else that sizes depend on, as they were given."""

    schema: Path | None
    configs: tuple[Path, ...]
    tokens: tuple[int, ...]
    limits: tuple[str, ...]
    levers: tuple[str, ...]
    target: tuple[str, ...]
    overrides: tuple[str, ...]
    assume: str
    tp: int


class ModelCommand(click.Command):
    """A command that takes configs by `-c` alone, and says so of further ones."""

    allow_extra_args = True

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parse; what no option takes is a mistake."""
        rest = super().parse_args(context, arguments)
        if rest:
            context.fail(
                f"Got unexpected extra arguments: {' '.join(rest)}; repeat -c for each "
                "further config"
            )
        return rest


def model_options(tokens: str = TOKENS) -> Callable[..., Callable[..., None]]:
    """Give a command the options of a model, and them to it as its first argument.

    `tokens` is the help of the option for the limit of tokens.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        return SCHEMA(_with_inputs(command, config_required=True, tokens=tokens))

    return decorate


def optional_model(command: Callable[..., None]) -> Callable[..., None]:
    """As `model_options`, for a command that has something to say without a config."""
    return SCHEMA(_with_inputs(command, config_required=False))


def optional_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """As `optional_model`, for a command that takes its schemas in another way."""
    return _with_inputs(command, config_required=False)


def _with_inputs(
    command: Callable[..., None], config_required: bool, tokens: str = TOKENS
) -> Callable[..., None]:
    @wraps(command)
    def run(**given: Any) -> None:
        model = {name: given.pop(name, None) for name in ModelOptions.__match_args__}
        command(ModelOptions(**model), **given)

    wrapped: Callable[..., None] = run
    counts = click.option(
        "-M", "--tokens", callback=_counts, metavar="INTEGER", help=tokens
    )
    for option in reversed((counts, *INPUTS)):
        wrapped = option(wrapped)
    return click.option(
        "-c",
        "--config",
        "configs",
        type=click.Path(path_type=Path),
        multiple=True,
        required=config_required,
        help="A Hugging Face config.json; may be given several times.",
    )(wrapped)
