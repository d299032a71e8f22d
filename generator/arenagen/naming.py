"""Names: which identifiers a schema may use, and which names are made from them.

The only place that makes a name. Knows the reserved words of Python and the members
of the emitted classes; reports clashes through its callers.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Container, Iterable

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
PACKAGE = re.compile(r"[a-z][a-z0-9_]*")
CLASS = re.compile(r"[A-Z][A-Za-z0-9]*")
MAX_LENGTH = 80

ARENA_MEMBERS = frozenset(
    {
        "buffers",
        "check_guards",
        "checksum",
        "config",
        "debug_buffer_checksum",
        "from_sizes",
        "gpu",
        "label",
        "levers",
        "max_batch_tokens",
        "release",
        "released",
        "required_bytes",
        "sizes",
        "target",
        "tensor",
        "trimmed",
        "zero_plan",
    }
)
SIZES_MEMBERS = frozenset(
    {"as_dict", "count", "from_config", "index", "total_bytes", "trimmed"}
)
CONFIG_MEMBERS = frozenset({"from_hf", "from_mapping", "shard"})
LEVER_MEMBERS = frozenset({"from_env"})
# What a use must leave to the pointer that offers it; `is_integer` came late to int.
POINTER_MEMBERS = frozenset(
    {*dir(int), "NULL", "bind", "is_integer", "is_null", "most", "offset"}
)
# Arguments of accessors and members of Inputs beside the limits.
LIMIT_MEMBERS = frozenset(
    {
        "buffer",
        "checked",
        "index",
        "known",
        "limits",
        "of_pass",
        "part",
        "tokens",
        "use",
        "uses",
    }
)
# Attributes and methods of the arena that begin with `_`, as a zeroing plan does.
ARENA_PRIVATE = frozenset(
    {
        "allocate",
        "build",
        "checksum_set",
        "clear",
        "fill",
        "forget",
        "free",
        "gpu",
        "guards",
        "inputs",
        "log_sizes",
        "members",
        "memory",
        "released",
        "require_live",
        "shapes",
    }
)
# Those of them that a large arena has once for each chunk of its buffers, by number.
_OF_CHUNKS = re.compile(r"(allocate|checksum_set|fill|forget|\w+_members)_\d\d+")
# Fields of every layout beside its own.
LAYOUT_MEMBERS = frozenset({"count", "index", "nbytes", "of"})
# Names that the emitted functions use beside the schema's own.
LOCALS = frozenset(
    {
        "absent",
        "align",
        "arena",
        "asked",
        "backend",
        "base",
        "behind",
        "bound",
        "build",
        "buffer_shapes",
        "capacity",
        "cdiv",
        "check",
        "check_backend",
        "check_bool",
        "check_int",
        "check_size",
        "check_str",
        "check_strs",
        "checksum_buffer",
        "clamp",
        "cls",
        "config",
        "count",
        "count_or_word",
        "debug",
        "end",
        "environ",
        "error",
        "failure",
        "file",
        "fill",
        "floordiv",
        "format_bytes",
        "gpu",
        "guard_bytes",
        "impossible_size",
        "info",
        "import_module",
        "inputs",
        "islice",
        "keys",
        "layout",
        "levers",
        "logging",
        "memory",
        "modulo",
        "most",
        "name",
        "near",
        "new_clear",
        "new_memory",
        "natural",
        "next_in",
        "os",
        "partial",
        "place",
        "placement",
        "ptr",
        "ref",
        "released_arena",
        "replace",
        "reserve",
        "self",
        "selfcheck",
        "shape_of_view",
        "shapes",
        "shift",
        "sizes",
        "sizes_of_pass",
        "small",
        "spelling_hint",
        "split_heads",
        "split_kv_heads",
        "stream",
        "switch_off",
        "switch_on",
        "tag",
        "target",
        "text_or_word",
        "total",
        "trimmed",
        "view_device",
        "warnings",
    }
)
# Constants and classes of the emitted modules.
MODULE_NAMES = frozenset(
    {
        "AllocationError",
        "Any",
        "ArenaError",
        "Array",
        "BUFFERS",
        "BackendError",
        "BufferChecksum",
        "BufferInfo",
        "BufferPtr",
        "BufferSizes",
        "Callable",
        "CarveError",
        "ChecksumReport",
        "ClassVar",
        "ClearError",
        "Column",
        "ConfigError",
        "CudaBackend",
        "CudaError",
        "DEFAULT_TARGET",
        "DERIVED",
        "Debug",
        "DevicePtr",
        "FLAT",
        "Final",
        "GpuBackend",
        "Guards",
        "HfFile",
        "HostBackend",
        "Inputs",
        "Iterator",
        "LayoutError",
        "Levers",
        "Limit",
        "MAX_SIZE",
        "Mapping",
        "Member",
        "ModelConfig",
        "ModelResource",
        "NULL",
        "NamedTuple",
        "NoReturn",
        "OutOfMemoryError",
        "Overrun",
        "PLACEMENTS",
        "POINTERS",
        "Part",
        "PathLike",
        "Placement",
        "Places",
        "PointerError",
        "Record",
        "Region",
        "ReleaseError",
        "ReleasedError",
        "SLAB_ORDER",
        "Self",
        "Selfcheck",
        "SelfcheckReport",
        "Shapes",
        "SizeError",
        "SizesSweep",
        "Slab",
        "Stream",
        "Sweep",
        "SweepError",
        "TYPE_CHECKING",
        "Target",
        "Teardown",
        "TeardownError",
        "TensorView",
        "TracebackType",
        "TypeAlias",
        "USES",
        "ViewError",
        "ZeroPlan",
        "ZeroRange",
        "required_bytes",
        "sweep_columns",
        "sweep_sizes",
        "sweep_totals",
    }
)
# Modules that are imported on use. The package then has them under their names, in the
# place of a constant or a function that it exports under one of those.
LATE_MODULES = frozenset({"checks", "families", "sweep", "sweep_columns"})
# Words that YAML reads as values, so that no formula could read them as names.
YAML_WORDS = frozenset({"false", "null", "true"})
# One-letter names that read as a digit.
AMBIGUOUS = frozenset({"l", "I", "O"})


def private_owner(name: str) -> str | None:
    """Which arena classes have a member `_name` of their own, or None."""
    if name in ARENA_PRIVATE:
        return "every arena class"
    return "every large arena class" if _OF_CHUNKS.fullmatch(name) else None


def bad_member(name: str) -> str | None:
    """Why `name` cannot be a group, use or region of a schema, or None."""
    if not IDENTIFIER.fullmatch(name):
        if not name:
            return "is empty"
        if not name.isascii():
            return "has characters beyond ASCII"
        return "is not a letter followed by letters, digits and `_`"
    if len(name) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "is a word of the Python language"
    if name.lower() in YAML_WORDS:
        return "is a value to YAML"
    return None


def bad_attribute(name: str) -> str | None:
    """Why `name` cannot be a lever or a target constant, or None when it can."""
    if why := bad_member(name):
        return why
    if name in vars(builtins):
        return "would hide a Python builtin"
    if name in AMBIGUOUS:
        return "reads as a digit"
    if name in ("cls", "self"):
        return "is used by the emitted code itself"
    return None


def bad_identifier(name: str) -> str | None:
    """Why `name` cannot name any other value of a schema, or None when it can."""
    if why := bad_attribute(name):
        return why
    if name in LOCALS or name in MODULE_NAMES:
        return "is used by the emitted code itself"
    return None


def bad_region(name: str) -> str | None:
    """Why `name` cannot be a parameter or a region of a layout, or None."""
    if name in LAYOUT_MEMBERS:
        return "is a member of every layout"
    return bad_identifier(name)


def bad_field(name: str) -> str | None:
    """Why `name` cannot be a region of a buffer or of a use, or None."""
    if name in ("count", "index", "nbytes"):
        return "is a member of every layout"
    return bad_member(name)


def bad_use(name: str) -> str | None:
    """Why `name` cannot be a use, a method among annotations, or None."""
    if name == "int" or name in MODULE_NAMES:
        return "is used by the emitted code itself"
    if CLASS.fullmatch(name) and name.endswith(("Layout", "Regions")):
        return "reads as a class of the emitted code"
    return bad_member(name)


def local(name: str, taken: Container[str]) -> str:
    """A local variable for a region, which the rest of the function leaves alone."""
    while name in taken or bad_identifier(name):
        name += "_"
    return name


def part(owner: str) -> str:
    """The local that holds a part of a value which has no good name of its own."""
    return f"{owner}_part" if owner else "part"


class Locals:
    """Gives the locals of one function names that nothing else in it has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {name.casefold() for name in taken}

    def __call__(self, best: str) -> str:
        """`best`, or that with a number behind it."""
        name, count = best, 1
        while name.casefold() in self._taken or bad_identifier(name):
            count += 1
            name = f"{best}_{count}"
        self._taken.add(name.casefold())
        return name


def chunk_numbers(count: int) -> list[str]:
    """The numbers of chunks from 1: as many digits each, two at least."""
    digits = max(len(str(count)), 2)
    return [f"{number:0{digits}}" for number in range(1, count + 1)]


def region_entries(method: str) -> str:
    """The constant that lists the regions which a zeroing method clears."""
    return f"_{method.upper()}_REGIONS"


def bytes_accessor(buffer: str) -> str:
    """The accessor of a buffer's allocated bytes."""
    return f"{buffer}_bytes"


def carve_method(buffer: str) -> str:
    """The method that carves from a slab buffer."""
    return f"carve_{buffer}"


def use_end(buffer: str, use: str) -> str:
    """The local that holds the end of a use's regions while they are sized."""
    return f"{buffer}_{use}"


def pascal(name: str) -> str:
    """snake_case to PascalCase."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def layout_class(layout: str) -> str:
    """The class of a named layout: decode_meta gives DecodeMetaLayout."""
    return f"{pascal(layout)}Layout"


def layout_function(layout: str) -> str:
    """The function that sizes a named layout."""
    return f"{layout}_bytes"


def pointer_class(buffer: str) -> str:
    """The pointer class of a buffer in which several things lie."""
    return f"{pascal(buffer)}Ptr"


def record_class(buffer: str, use: str = "") -> str:
    """The class of the regions of a use, or of a buffer without uses."""
    return f"{pascal(buffer)}{pascal(use)}Regions"


def place_function(buffer: str, use: str = "") -> str:
    """The function that lays a use out, or what a buffer without uses holds."""
    return f"place_{buffer}_{use}" if use else f"place_{buffer}"
