"""The plan: what templates see, as frozen records of final strings.

Every decision is made before; a template loops, tests an attribute and prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .formula import quote
from .naming import region_entries
from .plan_parts import (
    ParameterView,
    RegionView,
    StatementView,
    lower_first,
)
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


# Members that a docstring names: all of so many, or else a few.
_MOST_NAMED = 100
_FEW = 3
# Modules that have a part for each run of the buffers, where there are several.
CHUNKED = frozenset(
    {"arena", "buffers", "pointers", "shapes", "sizes", "sweep_columns", "uses"}
)


def isort_key(name: str, fold: bool = False) -> tuple[int, list[tuple[int, str]], str]:
    """Constants, then classes, then functions; each by the alphabet, numbers by value.

    The order that isort and ruff keep: `fold` for imports, without it for `__all__`.
    """
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    parts = re.findall(r"(\d+)|(\D+)", name.lower() if fold else name)
    natural = [(int(digits or 0), text) for digits, text in parts]
    return kind, natural, name


def import_key(name: str) -> tuple[int, list[tuple[int, str]], str]:
    """The order of names in an import."""
    return isort_key(name, fold=True)


def _listed(names: list[str]) -> str:
    """Names in a docstring, where nobody reads hundreds of them."""
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_FEW])} and {len(names) - _FEW} more, as BUFFERS tells"


def _listing(number: str, method: str) -> str:
    """The method of a chunk that lists what a zeroing method clears."""
    return f"_{method}_members_{number}"


def _dict(pairs: Iterable[tuple[str, str]]) -> str:
    inside = ", ".join(f"{quote(key)}: {quote(value)}" for key, value in pairs if value)
    return "{" + inside + "}"


@record
class ConstantView:
    """A module constant."""

    name: str
    type: str
    value: str
    doc: str


@record
class LimitView:
    """A limit, its bounds as the arguments of the check."""

    name: str
    doc: str
    bounds: str
    tokens: bool

    @property
    def argument(self) -> str:
        """What an accessor calls it."""
        return "tokens" if self.tokens else self.name


@record
class FieldView:
    """A field of ModelConfig, Levers or Target; `derived` fills an absent one."""

    name: str
    type: str
    default: str
    doc: str
    check: str
    derived: str = ""
    normalised: bool = False


@record
class LeverView:
    """A lever: its field, and the call that reads its variable."""

    field: FieldView
    variable: str
    reader: str

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        return (self.field.doc, f"Variable {self.variable}.")


@record
class PropertyView:
    """A derived value of ModelConfig."""

    name: str
    type: str
    doc: str
    value: str


@record
class FunctionView:
    """A public sizing helper."""

    name: str
    doc: str
    parameters: tuple[ParameterView, ...]
    reads_levers: bool
    reads_target: bool
    body: tuple[StatementView, ...]
    value: str

    @property
    def signature(self) -> str:
        """The parameters, as the emitted function spells them."""
        parts = [each.spelling for each in self.parameters]
        if self.reads_levers or self.reads_target:
            parts.append("*")
        if self.reads_levers:
            parts.append("levers: Levers | None = None")
        if self.reads_target:
            parts.append("target: Target = DEFAULT_TARGET")
        return ", ".join(parts)

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        lines = [f"{each.name}: {lower_first(each.doc)}" for each in self.parameters]
        if self.reads_levers:
            lines.append("levers: environment switches; None reads the environment.")
        if self.reads_target:
            lines.append("target: the device that the size is for.")
        return (self.doc, *lines)


@record
class LayoutView:
    """A named layout."""

    name: str
    class_name: str
    size_function: str
    doc: str
    parameters: tuple[ParameterView, ...]
    reads_config: bool
    size_body: tuple[StatementView, ...]
    size_value: str
    place_body: tuple[StatementView, ...]
    regions: tuple[RegionView, ...]
    size_after: str

    @property
    def size_signature(self) -> str:
        """The parameters of the size function."""
        config = ["config: ModelConfig"] if self.reads_config else []
        return ", ".join([*config, *(each.spelling for each in self.parameters)])

    @property
    def of_signature(self) -> str:
        """The parameters of `of`, behind the class."""
        config = ["config: ModelConfig"] if self.reads_config else []
        keywords = [each.spelling for each in self.parameters]
        return ", ".join([*config, "*", *keywords, "base: DevicePtr = NULL"])

    @property
    def values(self) -> str:
        """The positional arguments of the record."""
        names = [each.name for each in self.parameters]
        names += [each.local for each in self.regions]
        return ", ".join([*names, self.size_after])


@record
class LayoutAccessorView:
    """A layout that the arena publishes under the layout's name."""

    name: str
    class_name: str
    doc: str
    body: tuple[StatementView, ...]
    arguments: str

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        return (self.doc,)


@record
class BufferView:
    """One buffer."""

    name: str
    bytes_name: str
    doc: str
    details: tuple[str, ...]
    dtype: str
    extent: str
    gate: str
    otherwise: str
    groups: tuple[str, ...]
    region_groups: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    token_major: bool
    checksum: bool
    carve_method: str
    fill: str
    fill_literal: str
    align: int
    pointer: PointerView | None

    @property
    def carved(self) -> bool:
        """Whether callers carve the buffer."""
        return bool(self.carve_method)

    @property
    def pointer_class(self) -> str:
        """The class of the buffer's pointer."""
        return self.pointer.class_name if self.pointer else "DevicePtr"

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        return (self.doc, " ".join(self.details))

    @property
    def slot_doc(self) -> str:
        """The doc of the accessor."""
        return f"{self.doc} {' '.join(self.details)}"


@record
class ShapeView:
    """The shape of a buffer, or of one of its uses."""

    buffer: str
    use: str
    dtype: str
    dims: str
    condition: str


@record
class TrimView:
    """A trim: its condition and the buffers that it empties."""

    name: str
    doc: str
    condition: str
    buffers: tuple[str, ...]


@record
class RegionMemberView:
    """A region that a zeroing group holds: the function that lays its use out, and the
    names from there on.
    """

    buffer: str
    path: str
    place: str
    steps: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a plan and an error call it."""
        return f"{self.buffer}.{self.path}"


@record
class GroupView:
    """A zeroing group and its two methods."""

    name: str
    doc: str
    method: str
    rows_method: str
    buffers: tuple[BufferView, ...]
    regions: tuple[RegionMemberView, ...]
    chunks: tuple[str, ...] = ()
    region_chunks: tuple[str, ...] = ()
    number: str = ""

    @property
    def held(self) -> tuple[BufferView, ...]:
        """The buffers that the method itself lists, for those of chunks do not."""
        return () if self.chunks else self.buffers

    @property
    def held_leading(self) -> bool:
        """Whether the method itself lists buffers of which a pass clears a part."""
        return any(each.token_major for each in self.held)

    @property
    def held_regions(self) -> tuple[RegionMemberView, ...]:
        """The regions that the arena's own module lists."""
        return () if self.region_chunks else self.regions

    @property
    def chunk_method(self) -> str:
        """What lists the buffers of a chunk."""
        return _listing(self.number, self.method)

    @property
    def chunk_methods(self) -> tuple[str, ...]:
        """What lists the buffers of each chunk that has some."""
        return tuple(_listing(each, self.method) for each in self.chunks)

    @property
    def chunk_entries(self) -> tuple[str, ...]:
        """The constants that list the regions of each chunk that has some."""
        return tuple(f"{self.entries}_{each}" for each in self.region_chunks)

    @property
    def rows(self) -> str:
        """The sizes of which the method limited to a pass clears as much."""
        return "rows" if self.leading else "sizes"

    @property
    def rows_read_sizes(self) -> bool:
        """Whether that method reads the arena's own sizes."""
        return bool(self.held or (self.chunks and not self.leading))

    @property
    def memsets(self) -> int:
        """Memsets of either method at most."""
        return len(self.buffers) + len(self.regions)

    @property
    def entries(self) -> str:
        """The constant that lists the regions."""
        return region_entries(self.method)

    @property
    def leading(self) -> tuple[str, ...]:
        """The buffers of which a pass clears a part."""
        return tuple(each.name for each in self.buffers if each.token_major)

    @property
    def members(self) -> str:
        """The names of all members."""
        names = [each.name for each in self.buffers]
        return _listed([*names, *(each.label for each in self.regions)])

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring of the full method."""
        return (
            self.doc,
            f"Enqueue on the stream {count(self.memsets, 'memset')} at most, one for "
            "each member that exists, cleared in full; in a slab, one for each run of "
            "members that lie side by side.",
            f"Members: {self.members}.",
        )

    @property
    def rows_docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring of the method limited to a pass."""
        parts = []
        if self.leading:
            parts.append(
                f"Of each of the {len(self.leading)} token-major members, clear its "
                "size formula's bytes at that many tokens, padding and floors included."
            )
        if self.regions:
            parts.append(
                "A region is cleared where it lies in a pass of that many tokens: "
                f"{_listed([each.label for each in self.regions])}."
            )
        full = [each.name for each in self.buffers if not each.token_major]
        if full:
            parts.append(f"The others are cleared in full: {_listed(full)}.")
        return (
            f"{self.method}, but only what a pass of `tokens` tokens can touch.",
            f"Enqueue on the stream {count(self.memsets, 'memset')} at most. "
            f"{' '.join(parts)} From the token limit on, the same as {self.method}.",
            "Raise ConfigError for less than 1 token.",
        )


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
        members = _listed([each.name for each in self.checksums])
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
