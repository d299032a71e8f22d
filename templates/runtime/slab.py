"""Bump allocation out of one buffer of an arena."""

from __future__ import annotations

from operator import index
from threading import Lock
from typing import NoReturn

from .device import DevicePtr
from .errors import CarveError


class Slab:
    """Gives out the bytes of a buffer from its start; none ever come back.

    Safe to carve from several threads: pieces never overlap.
    """

    __slots__ = ("_buffer", "_capacity", "_lock", "_ptr", "_used")

    def __init__(self, buffer: str, ptr: DevicePtr, capacity: int) -> None:
        """Carve from the `capacity` bytes at `ptr`, which are the buffer's."""
        self._buffer = buffer
        self._ptr = ptr
        self._capacity = capacity if ptr else 0
        self._used = 0
        self._lock = Lock()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a slab is neither copied nor pickled")

    @property
    def used(self) -> int:
        """Bytes given out so far."""
        return self._used

    def carve(self, nbytes: int) -> DevicePtr:
        """Return the next `nbytes` bytes, laid right behind the last piece.

        Raise CarveError when they are not there, or are fewer than 1, and TypeError
        for a count that is no int; the slab is then as it was.
        """
        nbytes = index(nbytes)
        with self._lock:
            used = self._used
            if nbytes < 1 or used + nbytes > self._capacity:
                raise CarveError(self._buffer, nbytes, used, self._capacity)
            self._used = used + nbytes
        return self._ptr.offset(used)
