"""Pointers to buffers in which several things lie, and what leads to those."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar

from .device import NULL, DevicePtr
from .errors import LayoutError, ReleasedError
from .numeric import check_int, show


class Part(Protocol):
    """A region, or several of them."""

    @property
    def nbytes(self) -> int:
        """Bytes from the start of the buffer to the end of the last region."""
        ...


_P = TypeVar("_P", bound=Part)


class _Released:
    """Stands for any arena once it is released."""

    released = True


def released_arena() -> _Released:
    """Gives a released arena, as a weak reference to one would."""
    return _Released()


class BufferPtr(DevicePtr):
    """A pointer that knows its arena; each class of them knows one buffer."""

    _buffer: ClassVar[str]
    _label: ClassVar[str]
    # None for a pointer that never belonged to an arena.
    _arena: Callable[[], Any] | None = None
    # What `_most` found, which stays as it is for an arena's life.
    _largest: dict[str, int] | None = None

    @classmethod
    def bind(cls, ptr: DevicePtr, arena: Callable[[], Any]) -> Self:
        """The pointer to the buffer of an arena, NULL where it has no memory.

        arena: a weak reference, or what gives the arena as one does.
        """
        bound = int.__new__(cls, ptr)
        bound._arena = arena
        return bound

    def __reduce__(self) -> tuple[type[DevicePtr], tuple[int]]:
        # An address outlives its arena no more than any other integer does.
        return DevicePtr, (int(self),)

    def _part(
        self,
        use: str,
        place: Callable[[Any, DevicePtr], _P | None],
        gate: str,
        tokens: int | None,
        /,
        **limits: int | None,
    ) -> _P:
        """What a pass of `tokens` tokens finds here; the buffer must hold it.

        use: what the errors call it, "" for the regions of a buffer without uses.
        place: lays it out for given inputs; None while its gate is false.
        limits: limits that differ from the arena's.
        """
        asked = {"tokens": tokens, **limits}
        given = {name: value for name, value in asked.items() if value is not None}
        arena = self._live_arena(use, given)
        inputs = arena._inputs.of_pass(**given)
        most: Mapping[str, int] = arena._inputs.limits if given else {}
        return self._held(arena, place(inputs, self), use, gate, given, most)

    def _layout(
        self, place: Callable[..., _P | None], gate: str, /, **asked: int | None
    ) -> _P:
        """The layout that fills the buffer, for arguments of its own.

        asked: those that a caller may give; None for the largest.
        """
        given = {name: value for name, value in asked.items() if value is not None}
        for name, value in given.items():
            check_int(name, value, 1)
        arena = self._live_arena("", given)
        part = place(arena._inputs, self, **given)
        return self._held(arena, part, "", gate, given, self._most(place, *asked))

    def _live_arena(self, use: str, given: Mapping[str, int]) -> Any:
        arena = self._owner()
        if self._arena is not None and (arena is None or arena.released):
            where = f"{self._buffer}.{use}" if use else self._buffer
            call = f"{where}({_arguments_text(given)})"
            raise ReleasedError(self._label, call, dropped=arena is None)
        if not self:
            raise LayoutError(self._buffer, _call_text(use, given), 0)
        return arena

    def _owner(self) -> Any:
        return None if self._arena is None else self._arena()

    def _held(
        self,
        arena: Any,
        part: _P | None,
        use: str,
        gate: str,
        given: Mapping[str, int],
        most: Mapping[str, int],
    ) -> _P:
        """The part, unless it is not there or more than the buffer holds."""
        capacity: int = getattr(arena, f"{self._buffer}_bytes")
        if part is None:
            asked = f"{_call_text(use, given)}, whose gate is false ({gate})"
            raise LayoutError(self._buffer, asked, capacity)
        beyond = [name for name, value in given.items() if value > most[name]]
        if beyond or part.nbytes > capacity:
            asked = f"{_call_text(use, given)} ({show(part.nbytes)} bytes)"
            if beyond:
                largest = (f"{name}={most[name]}" for name in beyond)
                asked += f", at most {', '.join(largest)}"
            raise LayoutError(self._buffer, asked, capacity)
        return part

    def _most(self, place: Callable[..., Any], *names: str) -> dict[str, int]:
        """The largest arguments of the layout that fills the buffer."""
        arena = self._owner() if self and self._largest is None else None
        if arena is not None:
            full = place(arena._inputs, NULL)
            self._largest = full and {name: getattr(full, name) for name in names}
        return {**(self._largest or dict.fromkeys(names, 0))}

    def _most_tokens(self) -> dict[str, int]:
        """The largest pass."""
        arena = self._owner() if self else None
        return {"tokens": 0 if arena is None else arena._inputs.limits["tokens"]}


def new_pointers(
    kinds: Iterable[type[DevicePtr]],
    addresses: Iterable[Any],
    bound: Iterable[int],
    arena: Callable[[], Any],
) -> list[Any]:
    """Pointers of their classes to addresses, as ints or what `int` makes one of.

    bound: places of those that know their arena.
    arena: a weak reference to it.
    """
    # Not by `DevicePtr`, whose check of each would cost as much again.
    pointers: list[Any] = list(map(int.__new__, kinds, addresses))
    for place in bound:
        pointers[place]._arena = arena
    return pointers


def _call_text(use: str, given: Mapping[str, int]) -> str:
    arguments = _arguments_text(given)
    return f"{use}({arguments})" if use else arguments or "its regions"


def _arguments_text(given: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={show(value)}" for name, value in given.items())
