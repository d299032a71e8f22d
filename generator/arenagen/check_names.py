"""Names of a schema: identifiers, clashes of them, and names that nothing has.

Passes `(symbols) -> problems`, which `check` runs before any formula is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from . import naming
from .errors import MAX_PROBLEMS, Problem, Span, did_you_mean
from .members import region_paths
from .model import (
    Buffer,
    Bytes,
    Extent,
    Region,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    Use,
    Uses,
)
from .symbols import Symbols

_ANOTHER = "choose another name"


if TYPE_CHECKING:
    from typing import Protocol

    class Located(Protocol):
        """A node, or what is read of one; the span is worked out when it is asked."""

        @property
        def span(self) -> Span:
            """Where it stands."""

    class Named(Located, Protocol):
        """An entry of a schema."""

        @property
        def name(self) -> str:
            """Its name."""


def _declared(schema: Schema) -> Iterator[tuple[str, Located]]:
    """Everything that shares the one namespace of formulas and emitted locals."""
    for limit in schema.limits:
        yield limit.name, limit
        if limit.symbol:
            yield limit.symbol, limit.places.node("symbol")
    sections: tuple[tuple[Named, ...], ...] = (
        schema.target,
        schema.config,
        schema.levers,
        schema.constants,
        schema.lets,
        schema.functions,
        schema.layouts,
        schema.buffers,
    )
    for section in sections:
        for entry in section:
            yield entry.name, entry


def check_identifiers(symbols: Symbols) -> Iterator[Problem]:
    """Names that cannot be identifiers of the emitted code."""
    schema, arena = symbols.schema, symbols.schema.arena
    inner: list[tuple[str, Located]] = []
    for function in schema.functions:
        inner += [(each.name, each) for each in function.parameters]
    for layout in schema.layouts:
        inner += [(each.name, each) for each in layout.lets]
        parts: tuple[Named, ...] = (*layout.parameters, *layout.regions.items)
        for part in parts:
            if why := naming.bad_region(part.name):
                yield _bad_name(part.name, why, part)
    inner.append((arena.class_name, arena.places.node("class")))
    attributes: tuple[Named, ...] = (*schema.levers, *schema.target)
    apart = {each.name for each in attributes}
    for name, at in (*_declared(schema), *inner):
        bad = naming.bad_attribute if name in apart else naming.bad_identifier
        if why := bad(name):
            yield _bad_name(name, why, at)
    exports: tuple[Named, ...] = (*schema.constants, *schema.functions)
    for exported in exports:
        if exported.name in naming.LATE_MODULES - naming.MODULE_NAMES:
            why = "is a module of the package"
            yield _bad_name(exported.name, why, exported)
    package = arena.places.node("package")
    for name, at in (*_parts(schema), (arena.package, package)):
        if why := naming.bad_member(name):
            yield _bad_name(name, why, at)
    for use in _uses(schema):
        if why := naming.bad_use(use.name):
            yield _bad_name(use.name, why, use)
    for region in _buffer_regions(schema):
        if why := naming.bad_field(region.name):
            yield _bad_name(region.name, why, region)


def _bad_name(name: str, why: str, at: Located) -> Problem:
    return Problem("AR050", f"the name `{name}` {why}", at.span, hint=_ANOTHER)


def _parts(schema: Schema) -> Iterator[tuple[str, Located]]:
    """Names of groups, their methods and trims."""
    for group in schema.groups:
        yield group.name, group
        yield group.method, group.places.node("method")
        if group.rows_method is not None:
            yield group.rows_method, group.places.node("rows_method")
    yield from ((each.name, each) for each in schema.trims)


def _uses(schema: Schema) -> Iterator[Use]:
    for buffer in schema.buffers:
        if isinstance(buffer.extent, Uses):
            yield from buffer.extent.items


def _buffer_regions(schema: Schema) -> Iterator[Region]:
    """The regions of buffers and of their uses."""
    extents: list[Extent] = [each.extent for each in schema.buffers]
    extents += [each.extent for each in _uses(schema)]
    for extent in extents:
        if isinstance(extent, Regions):
            yield from extent.items


def check_namespace(symbols: Symbols) -> Iterator[Problem]:
    """Two declarations under one name, or under names that differ in case alone."""
    seen: dict[str, tuple[str, Located]] = {}
    for name, at in _declared(symbols.schema):
        folded = name if name.islower() else name.casefold()
        if not name.isascii():
            # It is refused anyway, and its letters may fold to those of another.
            continue
        if folded in seen:
            first, other = seen[folded]
            same = "" if first == name else f", beside `{first}`"
            yield Problem(
                "AR051",
                f"the name `{name}` is declared twice{same}",
                at.span,
                hint="every name of a schema is unique, whatever its section and case",
                related=(("first", other.span),),
            )
        else:
            seen[folded] = (name, at)
    for owner, parameters in _local_scopes(symbols.schema):
        local: dict[str, Located] = {}
        for name, at in parameters:
            if name in local:
                yield Problem(
                    "AR051",
                    f"the name `{name}` is declared twice in `{owner}`",
                    at.span,
                    related=(("first", local[name].span),),
                )
            elif name.casefold() in seen:
                hidden, other = seen[name.casefold()]
                yield Problem(
                    "AR052",
                    f"`{name}` in `{owner}` would hide the schema's own `{hidden}`",
                    at.span,
                    hint=_ANOTHER,
                    related=(("hidden", other.span),),
                )
            local[name] = at


def _local_scopes(schema: Schema) -> Iterator[tuple[str, list[tuple[str, Located]]]]:
    for function in schema.functions:
        yield function.name, [(each.name, each) for each in function.parameters]
    for layout in schema.layouts:
        local: tuple[Named, ...] = (
            *layout.parameters,
            *layout.lets,
            *layout.regions.items,
        )
        yield layout.name, [(each.name, each) for each in local]


def check_members(symbols: Symbols) -> Iterator[Problem]:
    """Members of the emitted classes that would collide."""
    schema = symbols.schema
    seen: dict[str, tuple[str, str, Located]] = {}
    for name, what, owner, at in _members(schema):
        if name in naming.ARENA_MEMBERS:
            yield Problem(
                "AR053",
                f"`{name}`, {what} `{owner}`, is a member of every arena class",
                at.span,
                hint=_ANOTHER,
            )
        elif name in seen:
            other, first, there = seen[name]
            yield Problem(
                "AR054",
                f"`{name}`, {what} `{owner}`, is also {other} `{first}`",
                at.span,
                hint="rename one of the two",
                related=(("first", there.span),),
            )
        else:
            seen[name] = (what, owner, at)
    for buffer in schema.buffers:
        if buffer.name in naming.SIZES_MEMBERS:
            yield Problem(
                "AR053",
                f"`{buffer.name}` is a member of every BufferSizes",
                buffer.span,
                hint=_ANOTHER,
            )
    for use in _uses(schema):
        if use.name in naming.POINTER_MEMBERS:
            yield Problem(
                "AR053", f"`{use.name}`, a use, is a member of every pointer", use.span
            )
    for limit in schema.limits:
        if limit.name in naming.LIMIT_MEMBERS and not (
            limit.tokens and limit.name == "tokens"
        ):
            yield Problem(
                "AR053",
                f"`{limit.name}`, a limit, is used by what takes limits itself",
                limit.span,
                hint="choose another name",
            )
    for lever in schema.levers:
        if lever.name in naming.LEVER_MEMBERS:
            yield Problem(
                "AR053",
                f"`{lever.name}` is a member of every Levers",
                lever.span,
                hint=_ANOTHER,
            )
    named: tuple[Named, ...] = (*schema.config, *schema.lets)
    for field in named:
        if field.name in naming.CONFIG_MEMBERS:
            yield Problem(
                "AR053",
                f"`{field.name}` is a member of every ModelConfig",
                field.span,
                hint=_ANOTHER,
            )


def _members(schema: Schema) -> Iterator[tuple[str, str, str, Located]]:
    """Names, what each is to an entry, the entry's own name, and its place."""
    for limit in schema.limits:
        if limit.name != "max_batch_tokens":
            yield limit.name, "the limit", limit.name, limit
    for group in schema.groups:
        what = "a method of the group"
        yield group.method, what, group.name, group.places.node("method")
        if group.rows_method:
            yield group.rows_method, what, group.name, group.places.node("rows_method")
    for layout in schema.layouts:
        if layout.accessor is not None:
            what = "the accessor of the layout"
            yield layout.name, what, layout.name, layout
    for buffer in schema.buffers:
        name = buffer.name
        yield name, "the buffer", name, buffer
        accessor = naming.bytes_accessor(name)
        yield accessor, "the bytes of the buffer", name, buffer
        if buffer.carve:
            method = naming.carve_method(name)
            yield method, "the carve of the buffer", name, buffer


def check_private(symbols: Symbols) -> Iterator[Problem]:
    """Attributes that the arena makes from names, behind a `_`."""
    seen: dict[str, tuple[str, Located]] = {}
    for name, what, at in _private(symbols.schema):
        if owner := naming.private_owner(name):
            yield Problem(
                "AR053",
                f"`_{name}`, {what}, is a member of {owner}",
                at.span,
                hint=_ANOTHER,
            )
        elif name in seen:
            other, there = seen[name]
            yield Problem(
                "AR054",
                f"`_{name}`, {what}, is also {other}",
                at.span,
                hint="rename one of the two",
                related=(("first", there.span),),
            )
        else:
            seen[name] = (what, at)


def _private(schema: Schema) -> Iterator[tuple[str, str, Located]]:
    for group in schema.groups:
        plan, at = f"the plan of the group `{group.name}`", group.places
        planner = f"what plans the group `{group.name}`"
        yield group.method, plan, at.node("method")
        yield f"plan_{group.method}", planner, at.node("method")
        if group.rows_method:
            yield group.rows_method, plan, at.node("rows_method")
            yield f"plan_{group.rows_method}", planner, at.node("rows_method")
    for layout in schema.layouts:
        if layout.accessor is not None:
            what = f"what the accessor of the layout `{layout.name}` keeps"
            yield f"{layout.name}_layout", what, layout
    for buffer in schema.buffers:
        if buffer.carve:
            what = f"the slab of the buffer `{buffer.name}`"
            yield f"{buffer.name}_slab", what, buffer


def check_made_names(symbols: Symbols) -> Iterator[Problem]:
    """Names that emitted modules make from others, beside what they hold already."""
    declared = dict(_declared(symbols.schema))
    seen: dict[str, tuple[str, Located]] = {}
    for name, what, at in _made(symbols.schema):
        if name in naming.MODULE_NAMES:
            # Of the class itself, check_identifiers says so.
            if name != symbols.schema.arena.class_name:
                message = f"`{name}`, {what}, is a name of every package"
                yield Problem("AR055", message, at.span, hint=_ANOTHER)
        elif name in declared or name in seen:
            other, there = seen.get(name) or (f"the name `{name}`", declared[name])
            yield Problem(
                "AR055",
                f"`{name}`, {what}, is also {other}",
                at.span,
                hint="rename one of the two",
                related=(("first", there.span),),
            )
        else:
            seen[name] = (what, at)


def _made(schema: Schema) -> Iterator[tuple[str, str, Located]]:
    arena = schema.arena
    yield arena.class_name, "the class of the arena", arena.places.node("class")
    with_regions = {
        member.group for buffer in schema.buffers for member in buffer.zero_regions
    }
    for group in schema.groups:
        if group.name in with_regions:
            what = f"the regions of the group `{group.name}`"
            yield naming.region_entries(group.method), what, group.places.node("method")
    for layout in schema.layouts:
        of = f"of the layout `{layout.name}`"
        yield naming.layout_class(layout.name), f"the class {of}", layout
        yield naming.layout_function(layout.name), f"the size {of}", layout
    for buffer in schema.buffers:
        if isinstance(buffer.extent, Shape | Bytes):
            continue
        of = f"of the buffer `{buffer.name}`"
        yield naming.pointer_class(buffer.name), f"the pointer {of}", buffer
        if not isinstance(buffer.extent, Uses):
            yield from _made_of_part(buffer.name, "", buffer.extent, of, buffer)
            continue
        for use in buffer.extent.items:
            what = f"of the use `{use.name}` {of}"
            yield from _made_of_part(buffer.name, use.name, use.extent, what, use)
            if isinstance(use.extent, Regions):
                name = naming.use_end(buffer.name, use.name)
                yield name, f"the end {what}", use


def _made_of_part(
    buffer: str, use: str, extent: SingleExtent, of: str, at: Located
) -> Iterator[tuple[str, str, Located]]:
    yield naming.place_function(buffer, use), f"the layout {of}", at
    if isinstance(extent, Regions):
        yield naming.record_class(buffer, use), f"the regions {of}", at


def check_references(symbols: Symbols) -> Iterator[Problem]:
    """Groups, buffers and fields that are named and do not exist."""
    yield from islice(_references(symbols), MAX_PROBLEMS)


def _references(symbols: Symbols) -> Iterator[Problem]:
    schema = symbols.schema
    groups = {group.name for group in schema.groups}
    for buffer in schema.buffers:
        for name, node in buffer.groups:
            if name not in groups:
                yield _unknown("group", name, node.span, groups)
        yield from _unknown_regions(buffer, symbols, groups)
    for trim in schema.trims:
        for name, node in trim.buffers:
            if name not in symbols.buffers:
                yield _unknown("buffer", name, node.span, symbols.buffers)
    arena = schema.arena
    for name in arena.log_buffers:
        if name not in symbols.buffers:
            yield _unknown("buffer", name, arena.places[name], symbols.buffers)
    for name in arena.log_fields:
        if name not in symbols.fields:
            yield _unknown("config field", name, arena.places[name], symbols.fields)


def _unknown_regions(
    buffer: Buffer, symbols: Symbols, groups: set[str]
) -> Iterator[Problem]:
    """Groups and paths of the regions that an entry `zero` lists."""
    known = list(region_paths(buffer, symbols))
    told: set[Span] = set()
    for member in buffer.zero_regions:
        if member.group not in groups and member.group_node.span not in told:
            told.add(member.group_node.span)
            yield _unknown("group", member.group, member.group_node.span, groups)
        if member.path in known:
            continue
        inside = [each for each in known if each.startswith(f"{member.path}.")]
        hint = did_you_mean(member.path, known)
        if inside:
            hint = f"several regions lie there; name one of: {', '.join(inside)}"
        elif not known:
            hint = "it has no regions; list the group itself to clear all of it"
        yield Problem(
            "AR085",
            f"no region of `{buffer.name}` is named `{member.path}`",
            member.span,
            hint=hint,
        )


def _unknown(what: str, name: str, span: Span, known: Iterable[str]) -> Problem:
    return Problem(
        "AR060",
        f"no {what} is named `{name}`",
        span,
        hint=did_you_mean(name, sorted(known)) or f"the schema declares no {what}",
    )
