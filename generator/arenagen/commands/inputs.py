"""What commands read beside schemas: model configs and their options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from ..errors import ArenagenError, did_you_mean
from ..record import replace
from .options import ModelOptions

if TYPE_CHECKING:
    from ..compile import Checked
    from ..evaluate import Value
    from ..model import Limit, Schema
    from ..sizing import Inputs


class Named(Protocol):
    """An entry of a schema."""

    @property
    def name(self) -> str:
        """Its name."""


_MAX_DIGITS = len(str(2**63 - 1))


def _config(checked: Checked, path: Path, options: ModelOptions) -> dict[str, Value]:
    from .. import disk
    from ..family_reader import read_config
    from ..resources import family_table

    if checked.families is None:
        raise ArenagenError(
            f"the schema of `{checked.schema.arena.package}` names no family table; "
            "add `families: huggingface.yaml` to its section `arena`, and put the file "
            f"beside it; arenagen comes with one to copy: {family_table()}"
        )
    raw = read_config(disk.read(path), str(path))
    schema, given = checked.schema, _overrides(checked.schema, options.overrides)
    found = checked.families.canonical(raw, schema, str(path), options.assume, given)
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    return found.fields


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


def asked_inputs(
    checked: Checked,
    options: ModelOptions,
    sought: Limit | None = None,
    several: bool = False,
) -> list[tuple[str, Inputs]]:
    """The inputs of each config, under the name that tells it from the others.

    A limit that is `sought` has its minimum there, and may not be given. Where
    `several` token limits may be given, a config has inputs for each. Raise
    ArenagenError for what the schema does not know or does not allow.
    """
    from ..shard import ShardError, shard_config
    from ..sizing import complete_inputs

    model = checked.schema
    limits = {name: _integer(name, text) for name, text in _split(options.limits)}
    token_limit = model.token_limit.name
    if len(options.tokens) > 1 and not several:
        raise click.UsageError("-M: several values go with `arenagen sizes` alone")
    for tokens in options.tokens:
        if limits.get(token_limit, tokens) != tokens:
            raise click.UsageError(f"-M {tokens}, and {token_limit} says otherwise")
    if sought is not None:
        if sought.name in limits or (sought.tokens and options.tokens):
            raise click.UsageError(
                f"{sought.name} is what `fit` finds: leave it out, or find another "
                "limit with --limit-name"
            )
        limits[sought.name] = sought.minimum
    levers = _levers(model, options.levers)
    target = {name: _integer(name, text) for name, text in _split(options.target)}
    names = [config.name for config in options.configs]
    found = []
    for config in options.configs:
        fields = _config(checked, config, options)
        # Most are called config.json: then the path tells them apart.
        name = config.name if names.count(config.name) == 1 else config.as_posix()
        try:
            share = shard_config(model, fields, options.tp)
        except ShardError as error:
            raise ArenagenError(f"{config}: {error}") from None
        for given in [{token_limit: each} for each in options.tokens] or [{}]:
            inputs = complete_inputs(model, share, limits | given, levers, target)
            found.append((name, replace(inputs, tp=options.tp)))
    return found


def _levers(schema: Schema, pairs: tuple[str, ...]) -> dict[str, int | bool | str]:
    from ..lever_texts import clamped, typed_lever

    known = {lever.name: lever for lever in schema.levers}
    values: dict[str, int | bool | str] = {}
    for name, text in _split(pairs):
        if name not in known:
            values[name] = text
            continue
        values[name] = typed_lever(known[name], text)
        if clamped(known[name], text, values[name]):
            click.echo(f"note: {name}={text[:40]} taken as {values[name]}", err=True)
    return values


def narrowed(options: ModelOptions, schema: Schema, other: Schema) -> ModelOptions:
    """The options without what `other` alone knows; what neither knows stays."""

    def kept(
        pairs: tuple[str, ...], own: Iterable[Named], others: Iterable[Named]
    ) -> tuple[str, ...]:
        foreign = {each.name for each in others} - {each.name for each in own}
        return tuple(
            pair for pair in pairs if pair.partition("=")[0].strip() not in foreign
        )

    return replace(
        options,
        limits=kept(options.limits, schema.limits, other.limits),
        levers=kept(options.levers, schema.levers, other.levers),
        target=kept(options.target, schema.target, other.target),
        overrides=kept(options.overrides, schema.config, other.config),
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
