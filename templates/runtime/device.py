"""Device addresses as plain integers.

A kernel launch, a driver binding or ctypes takes a DevicePtr where it takes an int.
"""

from __future__ import annotations

from operator import index
from typing import ClassVar, Final

from .errors import PointerError


class DevicePtr(int):
    """An address in device memory; 0 is NULL, which points to nothing.

    Plain arithmetic gives a plain int; `offset` gives a DevicePtr.
    """

    __slots__ = ()

    NULL: ClassVar[DevicePtr]

    # Checking here and not in __new__ halves the cost of building a pointer.
    def __init__(self, address: int, /) -> None:
        """Wrap an address; raise PointerError when it is negative."""
        if self < 0:
            raise PointerError(f"an address cannot be negative, got {address}")

    @property
    def is_null(self) -> bool:
        """Whether this is the NULL pointer."""
        return not self

    def offset(self, nbytes: int) -> DevicePtr:
        """Return the address that lies `nbytes` bytes further on.

        Raise PointerError for a negative count, and for any offset of NULL.
        """
        if not self:
            raise PointerError(
                "NULL has no offset; a buffer that is gated off or released has no "
                "memory"
            )
        if nbytes < 0:
            raise PointerError(f"an offset cannot be negative, got {nbytes} bytes")
        return DevicePtr(self + index(nbytes))

    def __repr__(self) -> str:
        return f"DevicePtr({int(self):#x})"


DevicePtr.NULL = DevicePtr(0)

NULL: Final = DevicePtr.NULL
