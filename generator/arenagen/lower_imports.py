"""What the emitted modules import beside what the lowering of an entry asks for.

Adds to the imports of each module; the first part is the same for every package, the
rest depends on what the schema has and on whether its modules are split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .imports import Imports
from .lower_scope import CHECKS
from .model import Schema
from .plan import ArenaView
from .plan_groups import GroupView

# Names by the module that they are imported from.
_Names = Mapping[str, Sequence[str]]

# What sizes and shapes are computed from.
_GIVEN: _Names = {"config": ["ModelConfig"], "levers": ["Levers"], "target": ["Target"]}
# The same where a target may be left out.
_PUBLIC: _Names = {**_GIVEN, "target": ["DEFAULT_TARGET", "Target"]}
# By the module that imports them; what joins the modules of chunks is such, too.
_WHOLE: Mapping[str, _Names] = {
    "arena": {
        **_PUBLIC,
        "buffers": ["BUFFERS"],
        "inputs": ["Inputs"],
        "runtime.backend": ["GpuBackend", "Stream", "check_backend"],
        "runtime.debug": ["Debug", "Guards", "Overrun", "guard_bytes"],
        "runtime.device": ["DevicePtr"],
        "runtime.errors": [
            "ConfigError",
            "ReleaseError",
            "ReleasedError",
            "format_bytes",
            "spelling_hint",
        ],
        "runtime.memory": ["Member", "Placement", "Places", "new_clear", "new_memory"],
        "runtime.numeric": ["check_int"],
        "runtime.pointer": ["BufferPtr"],
        "runtime.tensor": ["TensorView"],
        "runtime.view": ["shape_of_view", "view_device"],
        "shapes": ["Shapes", "buffer_shapes"],
        "sizes": ["BufferSizes"],
        "uses": ["USES", "required_bytes"],
    },
    "buffers": {"runtime.info": ["BufferInfo"]},
    "config": {"runtime.record": ["Record"]},
    "inputs": {**_GIVEN, "runtime.numeric": ["check_int"]},
    "levers": {"runtime.record": ["Record"]},
    "shapes": _GIVEN,
    "sizes": {
        **_PUBLIC,
        "buffers": ["BUFFERS"],
        "runtime.info": ["impossible_size"],
        "runtime.numeric": ["MAX_SIZE", "check_int"],
    },
    "sweep": {
        **_PUBLIC,
        "runtime.sweep": ["Array", "Limit", "SizesSweep", "Sweep", "SweepError"],
        "sizes": ["BufferSizes"],
        "sweep_columns": ["sweep_columns"],
    },
    "sweep_columns": {"runtime": ["columns as _columns"]},
    "target": {"runtime.record": ["Record"]},
    "uses": {
        **_PUBLIC,
        "buffers": ["BUFFERS"],
        "inputs": ["Inputs"],
        "runtime.device": ["NULL", "DevicePtr"],
        "runtime.errors": ["ConfigError", "spelling_hint"],
        "runtime.numeric": ["check_size"],
        "runtime.pointer": ["Part"],
        "sizes": ["BufferSizes"],
    },
}
_CHUNK: Mapping[str, _Names] = {
    "buffers": {"runtime.info": ["BufferInfo"]},
    "shapes": _GIVEN,
    # No name of a schema begins with a `_`.
    "sizes": {**_GIVEN, "runtime.sizes": ["Size as _Size"]},
    "uses": {
        "inputs": ["Inputs"],
        "runtime.device": ["DevicePtr"],
        "runtime.pointer": ["Part"],
    },
}


def import_whole(
    modules: dict[str, Imports], schema: Schema, chunks: Sequence[ArenaView]
) -> None:
    """Import what the modules of a package need, and join its chunks if it has any."""
    _add(modules, _WHOLE)
    arena = modules["arena"]
    if schema.target:
        modules["target"].add("runtime.numeric", "check_int")
    for field in schema.config:
        modules["config"].add("runtime.numeric", CHECKS[field.type])
    if schema.groups:
        arena.add("runtime.memory", "ZeroPlan", "ZeroRange")
    if any(buffer.zero_regions for buffer in schema.buffers):
        arena.add("runtime.regions", "region_runs")
    if any(buffer.carve for buffer in schema.buffers):
        arena.add("runtime.device", "NULL")
        arena.add("runtime.slab", "Slab")
    if chunks:
        _join(modules, chunks)
        return
    modules["shapes"].add("buffers", "BUFFERS")
    if any(buffer.init is not None for buffer in schema.buffers):
        arena.add("runtime.fill", "fill")


def _join(modules: dict[str, Imports], chunks: Sequence[ArenaView]) -> None:
    """Import the chunks of each module, and of the classes the last, which has all."""
    for each in chunks:
        end = each.suffix
        modules["buffers"].add(f"buffers{end}", f"BUFFERS as _BUFFERS{end}")
        shapes = f"buffer_shapes as _buffer_shapes{end}"
        modules["shapes"].add(f"shapes{end}", shapes)
        modules["sizes"].add(f"sizes{end}", f"sizes as _sizes{end}")
        if each.slab_order:
            order = f"SLAB_ORDER as _SLAB_ORDER{end}"
            modules["arena"].add(f"arena{end}", order)
        for group in each.region_groups:
            entries = f"{group.entries} as {group.entries}{end}"
            modules["arena"].add(f"arena{end}", entries)
        columns = f"sweep_columns as _sweep_columns{end}"
        modules["sweep_columns"].add(f"sweep_columns{end}", columns)
        if each.pointers:
            modules["arena"].add(f"arena{end}", f"POINTERS as _POINTERS{end}")
            modules["pointers"].add(f"pointers{end}", "*")
            modules["uses"].add(f"uses{end}", "*", f"USES as _USES{end}")
    last = chunks[-1]
    modules["sizes"].add(f"sizes{last.suffix}", "BufferSizes as _BufferSizes")
    modules["sizes"].add("runtime.sizes", "Size as _Size")
    base = f"{last.class_name} as _{last.class_name}"
    modules["arena"].add(f"arena{last.suffix}", base)


def import_chunk(modules: dict[str, Imports], chunk: ArenaView) -> None:
    """Import what the modules of a run of the buffers need."""
    _add(modules, _CHUNK)
    arena, before = modules["arena"], chunk.before
    listed = any(group.buffers for group in chunk.groups)
    if listed:
        arena.add("sizes", "BufferSizes")
    if listed or chunk.checksums:
        arena.add("runtime.memory", "Member")
    if chunk.pointers:
        arena.add("runtime.pointer", "BufferPtr")
    if len(chunk.pointers) < len(chunk.buffers):
        arena.add("runtime.device", "DevicePtr")
    if chunk.filled:
        arena.add("runtime.backend", "GpuBackend")
        arena.add("runtime.fill", "fill")
    import_places(arena, chunk.groups)
    modules["shapes"].add(f"buffers{chunk.suffix}", "BUFFERS")
    if not before:
        modules["sizes"].add("runtime.sizes", "SizeRecord as _SizeRecord")
        return
    base = f"{chunk.class_name} as _{chunk.class_name}"
    arena.add(f"arena_{before}", base)
    modules["sizes"].add(f"sizes_{before}", "BufferSizes as _BufferSizes")


def import_places(arena: Imports, groups: Iterable[GroupView]) -> None:
    """Import what lays the regions of zeroing groups out."""
    for group in groups:
        for region in group.regions:
            arena.add("uses", region.place)


def _add(modules: dict[str, Imports], names: Mapping[str, _Names]) -> None:
    for module, imported in names.items():
        for source, each in imported.items():
            modules[module].add(source, *each)
