"""A record of more sizes than one class can name. All sizes are bytes."""

from __future__ import annotations

from typing import Any, ClassVar, Self, overload


class SizeRecord(tuple[int, ...]):
    """Like a NamedTuple of integers, to which every class on the way adds fields."""

    __slots__ = ()

    _fields: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *sizes: int, **named: int) -> Self:
        """Every field once: by its place, or by its name."""
        missing = cls._fields[len(sizes) :]
        if len(sizes) > len(cls._fields) or {*missing} != named.keys():
            raise TypeError(
                f"{cls.__name__} takes {len(cls._fields)} sizes, each of them once"
            )
        return super().__new__(cls, (*sizes, *(named[name] for name in missing)))

    def _asdict(self) -> dict[str, int]:
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, **changes: int) -> Self:
        return type(self)(**(self._asdict() | changes))

    def __getnewargs__(self) -> tuple[int, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self._asdict().items())
        return f"{type(self).__name__}({sizes})"


class Size:
    """A field of a SizeRecord."""

    __slots__ = ("_place",)

    def __set_name__(self, owner: type[SizeRecord], name: str) -> None:
        self._place = len(owner._fields)
        owner._fields = (*owner._fields, name)

    @overload
    def __get__(self, record: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, record: SizeRecord, owner: Any = None) -> int: ...
    def __get__(self, record: SizeRecord | None, owner: Any = None) -> Self | int:
        return self if record is None else record[self._place]

    def __set__(self, record: SizeRecord, size: int) -> None:
        raise AttributeError("a size is not changed; make another record by _replace")
