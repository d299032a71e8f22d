"""Model to plan: order, names, docs and every expression, as final strings.

Assembles what the parts of the lowering make of each section. Templates decide
nothing; what they print is decided here and there.
"""

from __future__ import annotations

from .formula import quote
from .imports import Imports
from .lower_buffers import BufferLowering
from .lower_config import ConfigLowering
from .lower_scope import CHECKS, MODULES, PYTHON_TYPES, python_literal
from .model import Limit, Schema
from .placement import slab_order
from .plan import ArenaView, ConstantView, FieldView, LimitView


def lower(schema: Schema) -> ArenaView:
    """The plan of one package. The schema has passed `check` without errors."""
    return _ArenaLowering(schema, {name: Imports() for name in MODULES}).arena()


class _ArenaLowering(BufferLowering):
    def arena(self) -> ArenaView:
        schema = self.schema
        config = ConfigLowering(schema, self.modules)
        buffers = tuple(self.buffer(each) for each in schema.buffers)
        by_name = {each.name: each for each in buffers}
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
            size_locals=self.size_locals(),
            shapes=self.shapes(),
            shape_locals=self.shape_locals(),
            trims=tuple(self.trim(each) for each in schema.trims),
            groups=tuple(self.group(each, by_name) for each in schema.groups),
            slab_order=tuple(slab_order(schema.buffers)),
            checksum_lever=next(
                (each.name for each in schema.levers if each.arms == "checksum"), ""
            ),
            log_format=log_format,
            log_arguments=log_arguments,
            imports=self.imports(),
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

    def imports(self) -> dict[str, tuple[str, ...]]:
        modules = self.modules
        sizes = modules["sizes"]
        sizes.add("buffers", "BUFFERS")
        sizes.add("config", "ModelConfig")
        sizes.add("levers", "Levers")
        sizes.add("runtime.info", "impossible_size")
        sizes.add("runtime.numeric", "MAX_SIZE", "check_int")
        sizes.add("target", "DEFAULT_TARGET", "Target")
        modules["buffers"].add("runtime.info", "BufferInfo")
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
        arena.add("runtime.checksum", "ChecksumReport", "checksum_buffer")
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
        if any(buffer.init is not None for buffer in self.schema.buffers):
            arena.add("runtime.fill", "fill")
        return {name: module.lines() for name, module in modules.items()}


def _limit(limit: Limit) -> LimitView:
    bounds = str(limit.minimum)
    if limit.maximum is not None:
        bounds += f", {limit.maximum}"
    return LimitView(limit.name, limit.doc, bounds, limit.tokens)
