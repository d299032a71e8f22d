"""Model to plan: order, names, docs and every expression, as final strings.

Assembles what the parts of the lowering make of each section. Templates decide
nothing; what they print is decided here and there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from .chunks import MAX_LINES, chunks, pieces
from .formula import Expr, quote, spell
from .imports import Imports
from .lower_buffers import BufferLowering
from .lower_config import ConfigLowering
from .lower_imports import import_chunk, import_places, import_whole
from .lower_scope import MODULES, PYTHON_TYPES, python_literal
from .lower_sizes import SizeLowering
from .lower_sweep import SweepLowering
from .model import Buffer, Limit, Schema, Trim
from .naming import chunk_numbers
from .placement import slab_order
from .plan import CHUNKED, ArenaView
from .plan_buffers import BufferView, TrimView
from .plan_declared import ConstantView, FieldView, LimitView
from .plan_groups import GroupView
from .record import replace
from .statements import lines


def lower(schema: Schema, most_lines: int = MAX_LINES) -> ArenaView:
    """The plan of one package. The schema has passed `check` without errors.

    most_lines: how long a module may be that would hold something of every buffer.
    """
    return _ArenaLowering(schema, defaultdict(Imports)).arena(most_lines)


class _ArenaLowering(BufferLowering):
    def arena(self, most_lines: int) -> ArenaView:
        schema = self.schema
        lowered = [self.alone(each) for each in schema.buffers]
        views = tuple(view for view, _ in lowered)
        runs = chunks(views, most_lines)
        if len(runs) == 1:
            for _, modules in lowered:
                _update(self.modules, modules, MODULES)
            whole = self.whole(views, schema)
            import_places(self.modules["arena"], whole.groups)
            import_whole(self.modules, schema, ())
            return replace(whole, imports=_lines(self.modules, MODULES))
        for _, modules in lowered:
            _update(self.modules, modules, set(MODULES) - CHUNKED)
        whole = self.whole(views, replace(schema, buffers=()))
        numbers = chunk_numbers(len(runs))
        before = ["", *numbers[:-1]]
        orders = pieces(whole.slab_order, len(runs), most_lines)
        parts = tuple(
            self.chunk(
                replace(
                    whole,
                    number=number,
                    before=previous,
                    slab_order=whole.slab_order[order],
                ),
                run,
                lowered[run],
            )
            for number, previous, order, run in zip(
                numbers, before, orders, runs, strict=True
            )
        )
        import_whole(self.modules, schema, parts)
        return replace(
            whole,
            groups=tuple(_joined(each, parts) for each in whole.groups),
            chunks=parts,
            imports=_lines(self.modules, MODULES),
        )

    def alone(self, buffer: Buffer) -> tuple[BufferView, dict[str, Imports]]:
        """A buffer, and what the modules import for it."""
        whole, self.modules = self.modules, defaultdict(Imports)
        view = self.buffer(buffer)
        own, self.modules = self.modules, whole
        return view, own

    def chunk(
        self,
        chunk: ArenaView,
        run: slice,
        lowered: list[tuple[BufferView, dict[str, Imports]]],
    ) -> ArenaView:
        """The plan of the modules that hold a run of the buffers.

        chunk: the plan for all buffers, with the chunk's numbers and slab order.
        """
        buffers = self.schema.buffers[run]
        modules, self.modules = self.modules, defaultdict(Imports)
        for _, own in lowered:
            _update(self.modules, own, CHUNKED)
        shapes, shape_locals = self.shapes(buffers), self.shape_locals(buffers)
        part = replace(self.schema, buffers=buffers, trims=())
        code = SizeLowering(part, self.modules, self.symbols).code()
        sweep, imports = SweepLowering(part, self.symbols).sweep(code)
        self.modules["sweep_columns"].update(imports)
        own, self.modules = self.modules, modules
        views = tuple(view for view, _ in lowered)
        view = replace(
            chunk,
            buffers=views,
            groups=tuple(
                replace(group, number=chunk.number)
                for group in self.groups(part, views)
                if group.memsets
            ),
            shapes=shapes,
            shape_locals=shape_locals,
            size_definitions=tuple(lines(code.definitions, 4)),
            size_statements=tuple(lines(code.statements, 4)),
            sweep=sweep,
        )
        import_chunk(own, view)
        return replace(view, imports=_lines(own, CHUNKED))

    def whole(self, buffers: tuple[BufferView, ...], sized: Schema) -> ArenaView:
        """The plan of the modules that are for all buffers; it imports nothing yet.

        sized: the schema without the buffers that chunks size.
        """
        schema = self.schema
        config = ConfigLowering(schema, self.modules, self.symbols)
        code = SizeLowering(sized, self.modules, self.symbols).code()
        sweep, imports = SweepLowering(schema, self.symbols).sweep(code)
        self.modules["sweep_columns"].update(imports)
        log_format, log_arguments = self.log()
        return ArenaView(
            package=schema.arena.package,
            class_name=schema.arena.class_name,
            label=schema.arena.label,
            doc=schema.arena.doc,
            families=schema.arena.families is not None,
            constants=tuple(
                ConstantView(
                    each.name,
                    PYTHON_TYPES[each.type],
                    python_literal(each.value),
                    each.doc,
                )
                for each in schema.constants
            ),
            target=tuple(
                FieldView(
                    each.name,
                    "int",
                    str(each.default),
                    each.doc,
                    f"check_int({quote(each.name)}, {each.name}, {each.minimum})",
                )
                for each in schema.target
            ),
            limits=tuple(_limit(each) for each in schema.limits),
            token_limit=schema.token_limit.name,
            fields=tuple(config.field(each) for each in schema.config),
            shares=config.shares(),
            shard_docs=config.shard_docs(),
            properties=config.properties(),
            levers=tuple(config.lever(each) for each in schema.levers),
            functions=tuple(config.function(each) for each in schema.functions),
            layouts=tuple(self.layout(each) for each in schema.layouts),
            accessors=tuple(
                self.accessor(each, each.accessor)
                for each in schema.layouts
                if each.accessor is not None
            ),
            buffers=buffers,
            size_definitions=tuple(lines(code.definitions, 8)),
            size_statements=tuple(lines(code.statements, 8)),
            sweep=sweep,
            shapes=self.shapes(sized.buffers),
            shape_locals=self.shape_locals(sized.buffers),
            trims=tuple(map(_trim, schema.trims, code.trims)),
            groups=self.groups(schema, buffers),
            slab_order=tuple(slab_order(schema.buffers)),
            checksum_lever=next(
                (each.name for each in schema.levers if each.arms == "checksum"), ""
            ),
            log_format=log_format,
            log_arguments=log_arguments,
            imports={},
        )

    def log(self) -> tuple[str, tuple[str, ...]]:
        info = self.schema.arena
        token = self.schema.token_limit.name
        parts = ["%d tokens", "%.1f MiB in all"]
        arguments = [f"self.{token}", "sizes.total_bytes / 2**20"]
        for name in info.log_buffers:
            parts.append(f"{name} %.1f MiB")
            arguments.append(f"sizes.{name} / 2**20")
        parts += [f"{name}=%s" for name in info.log_fields]
        arguments += [f"self.config.{name}" for name in info.log_fields]
        label = info.label.replace("%", "%%")
        return f"{label}: " + ", ".join(parts), tuple(arguments)


def _update(
    modules: dict[str, Imports], own: dict[str, Imports], names: Collection[str]
) -> None:
    for name, imports in own.items():
        if name in names:
            modules[name].update(imports)


def _lines(
    modules: dict[str, Imports], names: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    return {name: modules[name].lines() for name in names}


def _joined(group: GroupView, chunks: Iterable[ArenaView]) -> GroupView:
    """A zeroing group whose members are listed chunk by chunk."""
    found = [
        each for chunk in chunks for each in chunk.groups if each.name == group.name
    ]
    return replace(
        group,
        chunks=tuple(each.number for each in found if each.buffers),
        region_chunks=tuple(each.number for each in found if each.regions),
    )


def _trim(trim: Trim, condition: Expr) -> TrimView:
    buffers = tuple(name for name, _ in trim.buffers)
    return TrimView(trim.name, trim.doc, spell(condition), buffers)


def _limit(limit: Limit) -> LimitView:
    bounds = str(limit.minimum)
    if limit.maximum is not None:
        bounds += f", {limit.maximum}"
    return LimitView(limit.name, limit.doc, bounds, limit.tokens)
