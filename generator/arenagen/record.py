"""Records: classes of named values that are equal where their values are.

Like frozen, slotted dataclasses, at a fiftieth of what making the class costs there,
since a run of the tool makes a hundred of them before it does anything. Type checkers
refuse to assign to a field; at run time nothing does, which makes records cheap too.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    # Type checkers know what may be replaced in which record.
    from dataclasses import replace as replace
else:

    def replace(record: Any, **changes: Any) -> Any:
        """A record like another one but for some fields."""
        kind = type(record)
        values = {name: getattr(record, name) for name in kind.__match_args__}
        return kind(**(values | changes))


T = TypeVar("T")
_REQUIRED = object()


class _Field:
    def __init__(self, default: object, compare: bool) -> None:
        self.default = default
        self.compare = compare


def field(*, default: Any = _REQUIRED, compare: bool = True) -> Any:
    """A field that may have no part in equality, hash and repr."""
    return _Field(default, compare)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """The class with an initializer, slots, equality, hash and repr for its fields."""
    names = tuple(cls.__annotations__)
    compared, defaults = [], []
    namespace = dict(cls.__dict__)
    for name in names:
        given = namespace.pop(name, _REQUIRED)
        if not isinstance(given, _Field):
            given = _Field(given, compare=True)
        if given.compare:
            compared.append(name)
        if given.default is not _REQUIRED:
            defaults.append(given.default)
        elif defaults:
            raise TypeError(f"{cls.__name__}.{name} has no default, unlike one before")
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    own = {
        "__slots__": names,
        "__match_args__": names,
        "__init__": _initializer(cls.__qualname__, names, tuple(defaults)),
        "__eq__": _equal,
        "__hash__": _hash,
        "__repr__": _repr,
        "__compared__": tuple(compared),
        "_key": attrgetter(*compared) if compared else _nothing,
    }
    # A class gets slots only as it is made.
    make: Any = type(cls)
    made: type[T] = make(cls.__name__, cls.__bases__, namespace | own)
    return made


def _initializer(
    owner: str, names: tuple[str, ...], defaults: tuple[object, ...]
) -> FunctionType:
    # Compiling one text for each number of fields is a tenth of one for each class.
    code = _assignments(len(names)).replace(
        co_varnames=("self", *names),
        co_names=names,
        co_name="__init__",
        co_qualname=f"{owner}.__init__",
    )
    return FunctionType(code, {}, "__init__", defaults)


@cache
def _assignments(count: int) -> CodeType:
    """The code of an initializer of so many fields, whatever their names."""
    names = [f"field{place}" for place in range(count)]
    lines = [f"    self.{name} = {name}" for name in names] or ["    pass"]
    text = "\n".join([f"def init({', '.join(['self', *names])}):", *lines])
    made: dict[str, Any] = {}
    exec(text, made)
    code: CodeType = made["init"].__code__
    return code


def _equal(self: Any, other: Any) -> Any:
    kind = type(self)
    if kind is not type(other):
        return NotImplemented
    return kind._key(self) == kind._key(other)


def _hash(self: Any) -> int:
    return hash(type(self)._key(self))


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name in self.__compared__)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _nothing(_: object) -> tuple[()]:
    return ()
