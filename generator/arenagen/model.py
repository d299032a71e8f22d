"""The checked model: records that mirror the YAML.

Knows nothing of Python as a target. Formulas are trees; every named entry keeps the
node of its name, outside equality.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from .errors import Span
from .formula import Expr, Type
from .record import field, record
from .source import Places, Scalar

_NOWHERE = Places({})


class Placed:
    """What has a node in a document, which tells where it stands."""

    __slots__ = ()
    node: Scalar

    @property
    def span(self) -> Span:
        """Where it stands; most are never asked."""
        return self.node.span


@record
class Formula:
    """A formula and the YAML scalar it was written in."""

    expr: Expr
    scalar: Scalar = field(compare=False)


@record
class Dtype:
    """An element type; `bits` per element, so that packed ones have a size."""

    name: str
    bits: int

    def nbytes(self, count: int) -> int:
        """Bytes of `count` packed elements, rounded up to a whole byte."""
        return (count * self.bits + 7) // 8


DTYPES: dict[str, Dtype] = {
    name: Dtype(name, bits)
    for name, bits in {
        "bool": 8,
        "u8": 8,
        "i8": 8,
        "u16": 16,
        "i16": 16,
        "u32": 32,
        "i32": 32,
        "u64": 64,
        "i64": 64,
        "f16": 16,
        "bf16": 16,
        "f32": 32,
        "f64": 64,
        "fp8_e4m3": 8,
        "fp8_e5m2": 8,
        "fp4_e2m1": 4,
    }.items()
}


@record
class ArenaInfo(Placed):
    """Section `arena`."""

    class_name: str
    package: str
    label: str
    doc: str
    families: str | None
    log_buffers: tuple[str, ...]
    log_fields: tuple[str, ...]
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


@record
class TargetConstant(Placed):
    """An integer of the device that a build is for."""

    name: str
    doc: str
    default: int
    minimum: int
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


@record
class Limit(Placed):
    """An integer that a server passes; the one with `tokens` bounds a pass."""

    name: str
    doc: str
    symbol: str | None
    minimum: int
    maximum: int | None
    default: int | None
    tokens: bool
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


@record
class Field(Placed):
    """A field of the model config. `default` is None for the type's empty value.

    `shard` is how tensor-parallel ranks share it: `heads` are divided evenly, and of
    `kv_heads` each rank has a copy of one where there are more ranks; None for whole.
    """

    name: str
    doc: str
    type: Type
    default: Formula | None
    aliases: tuple[str, ...]
    shard: str | None
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


@record
class Lever(Placed):
    """An environment switch.

    A bool is on when its variable is one of `on_when`, or off when it is one of
    `off_when`; an int is one of `words` or a count clamped to `clamp`; a str is the
    text itself or, where `words` are given, one of them.
    """

    name: str
    doc: str
    variable: str
    type: Type
    default: int | bool | str
    default_name: str | None
    on_when: tuple[str, ...]
    off_when: tuple[str, ...]
    words: tuple[tuple[str, int | str, str | None], ...]
    clamp: tuple[int, int] | None
    arms: str | None
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


ConstantValue: TypeAlias = int | bool | str | tuple[str, ...] | tuple[int, ...]


@record
class Constant(Placed):
    """A named literal; a public one is there for callers, whether it is read or not."""

    name: str
    doc: str
    value: ConstantValue
    type: Type
    public: bool
    node: Scalar = field(compare=False)


@record
class Let(Placed):
    """A named sub-formula."""

    name: str
    doc: str
    value: Formula
    node: Scalar = field(compare=False)


@record
class Parameter(Placed):
    """A parameter of a function or a layout."""

    name: str
    doc: str
    type: Type
    node: Scalar = field(compare=False)


@record
class Function(Placed):
    """A public sizing helper."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    value: Formula
    node: Scalar = field(compare=False)


@record
class Shape:
    """Extent of `dims` elements of a dtype, leading dimension first."""

    dtype: Dtype
    dims: tuple[Formula, ...]


@record
class Bytes:
    """Extent given in bytes."""

    value: Formula


@record
class LayoutCall(Placed):
    """Extent of a named layout with arguments, in the layout's parameter order."""

    layout: str
    arguments: tuple[tuple[str, Formula], ...]
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


@record
class Region(Placed):
    """A part of a buffer: laid behind its predecessor, aligned, or at a byte given."""

    name: str
    doc: str
    extent: Shape | Bytes | LayoutCall
    align: int
    at: Formula | None
    when: Formula | None
    node: Scalar = field(compare=False)


@record
class Regions:
    """Extent of regions, laid end to end in order."""

    items: tuple[Region, ...]


@record
class Use(Placed):
    """One of the purposes that a buffer serves."""

    name: str
    doc: str
    when: Formula | None
    extent: SingleExtent
    node: Scalar = field(compare=False)


@record
class Uses:
    """Extent of the largest active use."""

    items: tuple[Use, ...]


SingleExtent: TypeAlias = Shape | Bytes | LayoutCall | Regions
Extent: TypeAlias = SingleExtent | Uses


@record
class Layout(Placed):
    """A named, parametric layout of regions."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    lets: tuple[Let, ...]
    regions: Regions
    accessor: LayoutCall | None
    accessor_doc: str
    node: Scalar = field(compare=False)


@record
class Group(Placed):
    """A zeroing group: the arena's method, and the one limited to a pass's rows."""

    name: str
    doc: str
    method: str
    rows_method: str | None
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


@record
class RegionMember(Placed):
    """A region of a buffer that a zeroing group holds, by its path."""

    group: str
    path: str
    group_node: Scalar = field(compare=False)
    node: Scalar = field(compare=False)


Fill: TypeAlias = Literal["zeros", "ones"] | int | float


@record
class Buffer(Placed):
    """One device buffer."""

    name: str
    doc: str
    dtype: Dtype | None
    extent: Extent
    when: Formula | None
    otherwise: Formula | None
    min_bytes: Formula | None
    token_major: bool
    groups: tuple[tuple[str, Scalar], ...]
    zero_regions: tuple[RegionMember, ...]
    checksum: bool
    init: Fill | None
    carve: bool
    align: int
    node: Scalar = field(compare=False)
    places: Places = field(default=_NOWHERE, compare=False)


@record
class Trim(Placed):
    """A family gate and the buffers that it empties."""

    name: str
    doc: str
    when: Formula
    buffers: tuple[tuple[str, Scalar], ...]
    node: Scalar = field(compare=False)


@record
class Doc:
    """The doc of an entry, as it stands in the document, under the entry's name."""

    name: str
    scalar: Scalar


@record
class Schema:
    """One arena."""

    arena: ArenaInfo
    target: tuple[TargetConstant, ...]
    limits: tuple[Limit, ...]
    config: tuple[Field, ...]
    levers: tuple[Lever, ...]
    constants: tuple[Constant, ...]
    lets: tuple[Let, ...]
    functions: tuple[Function, ...]
    layouts: tuple[Layout, ...]
    groups: tuple[Group, ...]
    buffers: tuple[Buffer, ...]
    trims: tuple[Trim, ...]
    docs: tuple[Doc, ...] = field(default=(), compare=False)

    @property
    def token_limit(self) -> Limit:
        """The limit that bounds the tokens of a pass."""
        return next(limit for limit in self.limits if limit.tokens)
