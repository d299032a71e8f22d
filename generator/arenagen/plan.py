"""The plan: what templates see, as frozen records of final strings.

Every decision is made before; a template loops, tests an attribute and prints.
"""

from __future__ import annotations

from collections.abc import Iterable

from .formula import quote
from .imports import import_key, isort_key
from .plan_buffers import BufferView, ShapeView, TrimView
from .plan_declared import (
    ConstantView,
    FieldView,
    FunctionView,
    LayoutAccessorView,
    LayoutView,
    LeverView,
    LimitView,
    PropertyView,
)
from .plan_groups import GroupView, listed
from .plan_parts import StatementView
from .plan_uses import PartView, PointerView
from .record import record, replace
from .words import count

# What every package exports beside its own classes, constants and functions.
PUBLIC = (
    "BUFFERS",
    "DEFAULT_TARGET",
    "NULL",
    "AllocationError",
    "ArenaError",
    "BackendError",
    "BufferChecksum",
    "BufferInfo",
    "BufferSizes",
    "CarveError",
    "ChecksumReport",
    "ClearError",
    "ConfigError",
    "CudaBackend",
    "CudaError",
    "Debug",
    "DevicePtr",
    "GpuBackend",
    "HostBackend",
    "LayoutError",
    "Levers",
    "ModelConfig",
    "ModelResource",
    "OutOfMemoryError",
    "Overrun",
    "PointerError",
    "Region",
    "ReleaseError",
    "ReleasedError",
    "SelfcheckReport",
    "SizeError",
    "Stream",
    "Target",
    "Teardown",
    "TeardownError",
    "TensorView",
    "ViewError",
    "ZeroRange",
    "required_bytes",
    "selfcheck",
)


# Modules that have a part for each run of the buffers, where there are several.
CHUNKED = frozenset(
    {"arena", "buffers", "pointers", "shapes", "sizes", "sweep_columns", "uses"}
)


def _dict(pairs: Iterable[tuple[str, str]]) -> str:
    inside = ", ".join(f"{quote(key)}: {quote(value)}" for key, value in pairs if value)
    return "{" + inside + "}"


@record
class SweepFunctionView:
    """A function over columns: its head, the lines of its body, and its value."""

    head: str
    body: tuple[str, ...]
    value: str


@record
class SweepTrimView:
    """A trim over columns, and the literal of the names that it empties."""

    condition: str
    names: str


@record
class SweepView:
    """The size calculator over columns, in lines, and the functions that it calls."""

    body: tuple[str, ...]
    trims: tuple[SweepTrimView, ...]
    functions: tuple[SweepFunctionView, ...]


@record
class ArenaView:
    """Everything that the templates of one package see.

    chunks: where modules of all buffers would be too long, the same of runs of the
        buffers, which are numbered.
    before: the number of the chunk before this one, empty for the first.
    """

    package: str
    class_name: str
    label: str
    doc: str
    families: bool
    constants: tuple[ConstantView, ...]
    target: tuple[FieldView, ...]
    limits: tuple[LimitView, ...]
    token_limit: str
    fields: tuple[FieldView, ...]
    shares: tuple[str, ...]
    shard_docs: tuple[str, ...]
    properties: tuple[PropertyView, ...]
    levers: tuple[LeverView, ...]
    functions: tuple[FunctionView, ...]
    layouts: tuple[LayoutView, ...]
    accessors: tuple[LayoutAccessorView, ...]
    buffers: tuple[BufferView, ...]
    size_definitions: tuple[str, ...]
    size_statements: tuple[str, ...]
    sweep: SweepView
    shapes: tuple[ShapeView, ...]
    shape_locals: tuple[StatementView, ...]
    trims: tuple[TrimView, ...]
    groups: tuple[GroupView, ...]
    slab_order: tuple[str, ...]
    checksum_lever: str
    log_format: str
    log_arguments: tuple[str, ...]
    imports: dict[str, tuple[str, ...]]
    chunks: tuple[ArenaView, ...] = ()
    number: str = ""
    before: str = ""

    @property
    def suffix(self) -> str:
        """What the names of the modules of a chunk end in."""
        return f"_{self.number}" if self.number else ""

    @property
    def is_whole(self) -> bool:
        """Whether all buffers are meant."""
        return not self.number

    @property
    def reach(self) -> str:
        """Which buffers the modules of a chunk are for, as the end of a docstring."""
        if self.is_whole:
            return ""
        first, last = self.buffers[0].name, self.buffers[-1].name
        gap = " " if len(first) + len(last) < 60 else "\n"
        return f"\n\nOf the buffers from {first}{gap}to {last}.\n"

    @property
    def all_buffers(self) -> str:
        """The buffers of a module, in its docstring."""
        return "all buffers" if self.is_whole else "some buffers"

    @property
    def each_buffer(self) -> str:
        """The same, for what is in them."""
        return "each buffer" if self.is_whole else "each of some buffers"

    @property
    def every_buffer(self) -> str:
        """The same, for what each of them has."""
        return "every buffer" if self.is_whole else "each of some buffers"

    @property
    def sizes_base(self) -> str:
        """What the class of a chunk's sizes adds to."""
        return "_BufferSizes" if self.before else "_SizeRecord"

    @property
    def arena_base(self) -> str:
        """What the class of the arena adds to, behind its name."""
        return f"(_{self.class_name})" if self.chunks or self.before else ""

    @property
    def allocate(self) -> str:
        """The method that gives the buffers of a chunk their pointers."""
        return f"_allocate{self.suffix}"

    @property
    def fill(self) -> str:
        """The method that fills buffers of a chunk at construction."""
        return f"_fill{self.suffix}"

    @property
    def forget(self) -> str:
        """The method that sets the pointers of a chunk to NULL."""
        return f"_forget{self.suffix}"

    @property
    def checksum_set(self) -> str:
        """The method that lists the buffers of a chunk that the probe reads."""
        return f"_checksum_set{self.suffix}"

    @property
    def buffer_count(self) -> int:
        """How many buffers there are."""
        return len(self.buffers)

    @property
    def held(self) -> tuple[BufferView, ...]:
        """The buffers of the arena's own module, for those of chunks are not."""
        return () if self.chunks else self.buffers

    @property
    def held_pointers(self) -> tuple[PointerView, ...]:
        """The pointer classes that the arena's own module lists."""
        return () if self.chunks else self.pointers

    @property
    def arena_typing(self) -> str:
        """The import from typing in a chunk's arena module."""
        listed = self.slab_order or self.pointers or self.region_groups
        return "from typing import Any, ClassVar" + ", Final" * bool(listed)

    @property
    def slab_chunks(self) -> tuple[ArenaView, ...]:
        """The chunks that list a piece of the order in a slab."""
        return tuple(each for each in self.chunks if each.slab_order)

    @property
    def held_slab_order(self) -> tuple[str, ...]:
        """The order in a slab where the arena's own module lists it."""
        return () if self.chunks else self.slab_order

    @property
    def held_filled(self) -> tuple[BufferView, ...]:
        """The buffers that the arena's own module fills."""
        return tuple(each for each in self.held if each.fill)

    @property
    def held_checksums(self) -> tuple[BufferView, ...]:
        """The buffers of the probe that the arena's own module lists."""
        return tuple(each for each in self.held if each.checksum)

    @property
    def filled_chunks(self) -> tuple[ArenaView, ...]:
        """The chunks that have buffers to fill."""
        return tuple(each for each in self.chunks if each.filled)

    @property
    def checksum_chunks(self) -> tuple[ArenaView, ...]:
        """The chunks that have buffers for the probe to read."""
        return tuple(each for each in self.chunks if each.checksums)

    @property
    def join(self) -> ArenaView:
        """What a module sees that only joins those of the chunks."""
        return replace(self, buffers=())

    @property
    def derives(self) -> bool:
        """Whether some field's default is a formula over others."""
        return any(field.derived for field in self.fields)

    @property
    def config_imports(self) -> tuple[str, ...]:
        """What the config takes from the standard library."""
        reads = ("from collections.abc import Mapping", "from os import PathLike")
        lines = reads if self.families else ()
        return (*lines, "from typing import Any, Final") if self.derives else lines

    @property
    def exports(self) -> tuple[str, ...]:
        """Public names of the package, in isort's order."""
        names = {*PUBLIC, self.class_name}
        names |= {each.name for each in self.constants}
        names |= {each.name for each in self.functions}
        names |= {*self.layout_exports, *self.records}
        return tuple(sorted(names, key=isort_key))

    @property
    def layout_exports(self) -> tuple[str, ...]:
        """Public names of the layouts module, in isort's order."""
        names = [each.class_name for each in self.layouts]
        names += [each.size_function for each in self.layouts]
        return tuple(sorted(names, key=import_key))

    @property
    def layouts_stdlib(self) -> tuple[str, ...]:
        """Imports of the standard library in the layouts module."""
        return ("from typing import NamedTuple",) if self.layouts else ()

    @property
    def constants_exports(self) -> str:
        """Names of the constants, as an import lists them."""
        return ", ".join(sorted((each.name for each in self.constants), key=import_key))

    @property
    def functions_exports(self) -> str:
        """Names of the functions, as an import lists them."""
        return ", ".join(sorted((each.name for each in self.functions), key=import_key))

    @property
    def package_docs(self) -> tuple[str, ...]:
        """Paragraphs of the package's docstring."""
        return (
            self.doc,
            "`ModelConfig` says what the model is, `BufferSizes.from_config` what each "
            f"buffer takes, and `{self.class_name}` holds them on a device. The module "
            "`sweep` sizes many limits at once. Importing this package needs no GPU.",
        )

    @property
    def class_docs(self) -> tuple[str, ...]:
        """Paragraphs of the arena's docstring."""
        return (
            self.doc,
            f"{count(len(self.buffers), 'buffer')}. Each has a pointer under its own "
            "name, NULL while it has no memory, and its allocated bytes under the name "
            "with `_bytes`. Nothing is allocated after construction, and `release` "
            "frees everything; an arena is also a context manager.",
            "Several threads may zero, view and carve at once. Release when none does: "
            "what they enqueue would reach freed memory.",
        )

    @property
    def checksum_docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring of the checksum probe."""
        armed = "Does nothing and returns None unless `force` is set"
        if self.checksum_lever:
            armed += f" or the lever {self.checksum_lever} is on"
        members = listed([each.name for each in self.checksums])
        return (
            f"Fingerprint {count(len(self.checksums), 'buffer')}, to tell two runs "
            "apart byte for byte.",
            f"{armed}. Otherwise waits for the stream, reads each buffer in full, logs "
            "the report under `tag` and returns it.",
            f"Members: {members or 'none'}.",
        )

    @property
    def checksum_armed(self) -> str:
        """The condition under which the checksum probe runs."""
        if self.checksum_lever:
            return f"(force or self.levers.{self.checksum_lever})"
        return "force"

    @property
    def region_groups(self) -> tuple[GroupView, ...]:
        """The zeroing groups that hold regions."""
        return tuple(each for each in self.groups if each.regions)

    @property
    def first_method(self) -> str:
        """The method of the first group."""
        return self.groups[0].method

    @property
    def rows_methods(self) -> str:
        """A dict literal from each group's method to the one limited to a pass."""
        return _dict((each.method, each.rows_method) for each in self.groups)

    @property
    def carve_methods(self) -> str:
        """A dict literal from each carved buffer to its method."""
        return _dict((each.name, each.carve_method) for each in self.carved)

    @property
    def layout_accessors(self) -> tuple[str, ...]:
        """Names of the arena's members that hold a layout."""
        return tuple(each.name for each in self.accessors)

    @property
    def pointers(self) -> tuple[PointerView, ...]:
        """Pointer classes, in buffer order."""
        return tuple(each.pointer for each in self.buffers if each.pointer)

    @property
    def pointer_chunks(self) -> tuple[ArenaView, ...]:
        """The chunks that have pointer classes."""
        return tuple(each for each in self.chunks if each.pointers)

    @property
    def pointer_exports(self) -> str:
        """Names of the pointer classes of a chunk, as `__all__` lists them."""
        names = [each.class_name for each in self.pointers if self.number]
        return ", ".join(map(quote, sorted(names, key=isort_key)))

    @property
    def part_exports(self) -> str:
        """Names of a chunk's records and placing functions, as `__all__` lists them."""
        names = [*self.records, *(each.place for each in self.parts)]
        names = sorted(names if self.number else (), key=isort_key)
        return ", ".join(map(quote, names))

    @property
    def pointers_with_uses(self) -> tuple[PointerView, ...]:
        """Pointer classes of the buffers that have uses."""
        return tuple(each for each in self.pointers if not each.called)

    @property
    def uses_typing(self) -> str:
        """The import from typing in the uses module."""
        return "from typing import Final" + ", NamedTuple" * bool(self.records)

    @property
    def limits_passed_on(self) -> str:
        """The limits as arguments of a call, each by its own name."""
        return ", ".join(f"{each.name}={each.name}" for each in self.limits)

    @property
    def other_limits(self) -> tuple[LimitView, ...]:
        """The limits beside the tokens of a pass."""
        return tuple(each for each in self.limits if not each.tokens)

    @property
    def pass_arguments(self) -> str:
        """The tokens of a pass and the other limits, each passed on by name."""
        return ", ".join(
            ["tokens", *(f"{each.name}={each.name}" for each in self.other_limits)]
        )

    @property
    def parts(self) -> tuple[PartView, ...]:
        """What lies in the buffers, in buffer order."""
        return tuple(part for pointer in self.pointers for part in pointer.parts)

    @property
    def records(self) -> tuple[str, ...]:
        """Classes of the regions of buffers and uses, in isort's order."""
        names = [each.record for each in self.parts if each.record]
        return tuple(sorted(names, key=import_key))

    @property
    def uses_exports(self) -> str:
        """Public names of the uses module, as an import lists them."""
        return ", ".join([*self.records, "required_bytes"])

    @property
    def checksums(self) -> tuple[BufferView, ...]:
        """Buffers that the checksum probe reads."""
        return tuple(each for each in self.buffers if each.checksum)

    @property
    def carved(self) -> tuple[BufferView, ...]:
        """Buffers that callers carve."""
        return tuple(each for each in self.buffers if each.carve_method)

    @property
    def filled(self) -> tuple[BufferView, ...]:
        """Buffers that are filled at construction."""
        return tuple(each for each in self.buffers if each.fill)
