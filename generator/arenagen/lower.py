"""Model to plan: order, names, docs and every expression, as final strings.

Assembles what the parts of the lowering make of each section. Templates decide
nothing; what they print is decided here and there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from .chunks import MAX_LINES, chunks
from .formula import Expr, quote, spell
from .imports import Imports
from .lower_buffers import BufferLowering
from .lower_config import ConfigLowering
from .lower_scope import CHECKS, MODULES, PYTHON_TYPES, python_literal
from .lower_sizes import SizeLowering
from .lower_sweep import SweepLowering
from .model import Buffer, Limit, Schema, Trim
from .placement import slab_order
from .plan import (
    CHUNKED,
    ArenaView,
    BufferView,
    ConstantView,
    FieldView,
    GroupView,
    LimitView,
    TrimView,
)
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
            _import_places(self.modules["arena"], whole.groups)
            return replace(whole, imports=self.imports())
        for _, modules in lowered:
            _update(self.modules, modules, set(MODULES) - CHUNKED)
        whole = self.whole(views, replace(schema, buffers=()))
        parts = tuple(
            self.chunk(whole, number, run, lowered[run])
            for number, run in enumerate(runs, start=1)
        )
        return replace(
            whole,
            groups=tuple(_joined(each, parts) for each in whole.groups),
            chunks=parts,
            imports=self.imports(parts),
        )

    def alone(self, buffer: Buffer) -> tuple[BufferView, dict[str, Imports]]:
        """A buffer, and what the modules import for it."""
        whole, self.modules = self.modules, defaultdict(Imports)
        view = self.buffer(buffer)
        own, self.modules = self.modules, whole
        return view, own

    def chunk(
        self,
        whole: ArenaView,
        number: int,
        run: slice,
        lowered: list[tuple[BufferView, dict[str, Imports]]],
    ) -> ArenaView:
        """The plan of the modules that hold a run of the buffers."""
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
            whole,
            number=number,
            buffers=views,
            groups=tuple(
                replace(group, number=number)
                for group in self.groups(part, views)
                if group.memsets
            ),
            slab_order=whole.slab_order[run],
            shapes=shapes,
            shape_locals=shape_locals,
            size_definitions=tuple(lines(code.definitions, 4)),
            size_statements=tuple(lines(code.statements, 4)),
            sweep=sweep,
        )
        self.chunk_imports(own, view)
        return replace(view, imports={name: own[name].lines() for name in CHUNKED})

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

    def chunk_imports(self, modules: dict[str, Imports], chunk: ArenaView) -> None:
        """Import what the modules of a run of the buffers need besides."""
        number = chunk.number
        arena = modules["arena"]
        arena.add("runtime.device", "DevicePtr")
        if number > 1:
            before = f"{chunk.class_name} as _{chunk.class_name}"
            arena.add(f"arena_{number - 1}", before)
        listed = any(group.buffers for group in chunk.groups)
        if listed:
            arena.add("sizes", "BufferSizes")
        if listed or chunk.checksums:
            arena.add("runtime.memory", "Member")
        if chunk.filled:
            arena.add("runtime.backend", "GpuBackend")
            arena.add("runtime.fill", "fill")
        _import_places(arena, chunk.groups)
        modules["buffers"].add("runtime.info", "BufferInfo")
        modules["shapes"].add(f"buffers_{number}", "BUFFERS")
        modules["shapes"].add("config", "ModelConfig")
        modules["shapes"].add("levers", "Levers")
        modules["shapes"].add("target", "Target")
        sizes = modules["sizes"]
        sizes.add("config", "ModelConfig")
        sizes.add("levers", "Levers")
        sizes.add("target", "Target")
        # No name of a schema begins with a `_`.
        sizes.add("runtime.sizes", "Size as _Size")
        if number == 1:
            sizes.add("runtime.sizes", "SizeRecord as _SizeRecord")
        else:
            sizes.add(f"sizes_{number - 1}", "BufferSizes as _BufferSizes")
        modules["uses"].add("inputs", "Inputs")
        modules["uses"].add("runtime.device", "DevicePtr")
        modules["uses"].add("runtime.pointer", "Part")

    def imports(self, chunks: Sequence[ArenaView] = ()) -> dict[str, tuple[str, ...]]:
        """The imports of every module, of those that join the chunks too."""
        modules = self.modules
        for each in chunks:
            end = each.suffix
            modules["buffers"].add(f"buffers{end}", f"BUFFERS as _BUFFERS{end}")
            shapes = f"buffer_shapes as _buffer_shapes{end}"
            modules["shapes"].add(f"shapes{end}", shapes)
            modules["sizes"].add(f"sizes{end}", f"sizes as _sizes{end}")
            order = f"SLAB_ORDER as _SLAB_ORDER{end}"
            modules["arena"].add(f"arena{end}", order)
            for group in each.region_groups:
                entries = f"{group.entries} as {group.entries}{end}"
                modules["arena"].add(f"arena{end}", entries)
            columns = f"sweep_columns as _sweep_columns{end}"
            modules["sweep_columns"].add(f"sweep_columns{end}", columns)
            if each.pointers:
                modules["pointers"].add(f"pointers{end}", "*")
                modules["uses"].add(f"uses{end}", "*", f"USES as _USES{end}")
        sizes = modules["sizes"]
        sizes.add("buffers", "BUFFERS")
        sizes.add("config", "ModelConfig")
        sizes.add("levers", "Levers")
        sizes.add("runtime.info", "impossible_size")
        sizes.add("runtime.numeric", "MAX_SIZE", "check_int")
        sizes.add("target", "DEFAULT_TARGET", "Target")
        sweep = modules["sweep"]
        sweep.add("config", "ModelConfig")
        sweep.add("levers", "Levers")
        sweep.add(
            "runtime.sweep", "Array", "Limit", "SizesSweep", "Sweep", "SweepError"
        )
        sweep.add("sizes", "BufferSizes")
        sweep.add("sweep_columns", "sweep_columns")
        sweep.add("target", "DEFAULT_TARGET", "Target")
        modules["sweep_columns"].add("runtime", "columns as _columns")
        modules["buffers"].add("runtime.info", "BufferInfo")
        if chunks:
            last = f"sizes{chunks[-1].suffix}"
            sizes.add(last, "BufferSizes as _BufferSizes")
            sizes.add("runtime.sizes", "Size as _Size")
        else:
            modules["shapes"].add("buffers", "BUFFERS")
        modules["shapes"].add("config", "ModelConfig")
        modules["shapes"].add("levers", "Levers")
        modules["shapes"].add("target", "Target")
        inputs = modules["inputs"]
        inputs.add("config", "ModelConfig")
        inputs.add("levers", "Levers")
        inputs.add("runtime.numeric", "check_int")
        inputs.add("target", "Target")
        uses = modules["uses"]
        uses.add("buffers", "BUFFERS")
        uses.add("config", "ModelConfig")
        uses.add("inputs", "Inputs")
        uses.add("levers", "Levers")
        uses.add("runtime.device", "NULL", "DevicePtr")
        uses.add("runtime.errors", "ConfigError", "spelling_hint")
        uses.add("runtime.pointer", "Part")
        uses.add("runtime.numeric", "check_size")
        uses.add("sizes", "BufferSizes")
        uses.add("target", "DEFAULT_TARGET", "Target")
        for module in ("config", "levers", "target"):
            modules[module].add("runtime.record", "Record")
        if self.schema.target:
            modules["target"].add("runtime.numeric", "check_int")
        for field in self.schema.config:
            modules["config"].add("runtime.numeric", CHECKS[field.type])
        arena = modules["arena"]
        arena.add("buffers", "BUFFERS")
        arena.add("config", "ModelConfig")
        arena.add("levers", "Levers")
        arena.add("runtime.backend", "GpuBackend", "Stream")
        arena.add("runtime.debug", "Debug", "Guards", "Overrun", "guard_bytes")
        arena.add("runtime.device", "DevicePtr")
        arena.add("runtime.errors", "ConfigError", "ReleasedError", "ReleaseError")
        arena.add("runtime.errors", "format_bytes", "spelling_hint")
        arena.add("inputs", "Inputs")
        arena.add("runtime.numeric", "check_int")
        arena.add("runtime.memory", "Member", "Placement", "Places")
        arena.add("runtime.memory", "new_clear", "new_memory")
        if self.schema.groups:
            arena.add("runtime.memory", "ZeroPlan", "ZeroRange")
        if any(buffer.zero_regions for buffer in self.schema.buffers):
            arena.add("runtime.regions", "region_runs")
        arena.add("runtime.tensor", "TensorView")
        arena.add("runtime.view", "shape_of_view", "view_device")
        arena.add("shapes", "Shapes", "buffer_shapes")
        arena.add("sizes", "BufferSizes")
        arena.add("target", "DEFAULT_TARGET", "Target")
        arena.add("uses", "USES", "required_bytes")
        if any(buffer.carve for buffer in self.schema.buffers):
            arena.add("runtime.device", "NULL")
            arena.add("runtime.slab", "Slab")
        if chunks:
            name = self.schema.arena.class_name
            arena.add(f"arena{chunks[-1].suffix}", f"{name} as _{name}")
        elif any(buffer.init is not None for buffer in self.schema.buffers):
            arena.add("runtime.fill", "fill")
        return {name: modules[name].lines() for name in MODULES}


def _update(
    modules: dict[str, Imports], own: dict[str, Imports], names: Collection[str]
) -> None:
    for name, imports in own.items():
        if name in names:
            modules[name].update(imports)


def _import_places(arena: Imports, groups: Iterable[GroupView]) -> None:
    """Import what lays the regions of zeroing groups out."""
    for group in groups:
        for region in group.regions:
            arena.add("uses", region.place)


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
