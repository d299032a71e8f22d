"""Which shape a view of a buffer has, and where its memory lies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final

from .backend import GpuBackend
from .errors import BackendError, LayoutError, spelling_hint
from .info import BufferInfo
from .layout import DTYPE_BITS

# One row of elements, as long as the buffer.
FLAT: Final = (-1,)


def shape_of_view(
    name: str,
    info: BufferInfo,
    nbytes: int,
    shapes: Mapping[str, Mapping[str, tuple[str, tuple[int, ...]]]] | None,
    tokens: int | None,
    most: int,
    use: str | None,
    declared: Iterable[str],
) -> tuple[str, tuple[int, ...]]:
    """The element type and the dimensions of a view.

    nbytes: allocated bytes of the buffer.
    shapes: of every buffer for a pass of so many tokens, None where there is no such.
    most: tokens of the largest pass.
    declared: the uses of the buffer, whatever their gates.

    Raise LayoutError, which names the buffer, what was asked and the capacity, for what
    the buffer does not hold.
    """
    asked = "a view" if use is None else f"a view as {use}"
    if tokens is not None:
        asked += f" of {tokens} tokens"
    if use is not None and use not in declared:
        raise LayoutError(name, asked, nbytes, _no_use(use, list(declared)))
    if tokens is not None and not info.token_major:
        why = "is not token-major: it has no rows of a pass; leave tokens out"
        raise LayoutError(name, asked, nbytes, why)
    if shapes is None:
        raise LayoutError(name, f"{asked}; a pass has 1 to {most}", nbytes)
    uses = shapes[name]
    if not uses:
        raise LayoutError(name, f"{asked}; its gate is false: {info.gate}", nbytes)
    if not nbytes:
        # Shapes are those of the formulas, which know neither trims nor given sizes.
        emptied = any(_bytes(*each) > 0 for each in uses.values())
        why = "has no memory here: emptied by a trim, or by the sizes that were given"
        raise LayoutError(name, asked, 0, why if emptied else "")
    if use is None:
        use = max(uses, key=lambda each: _bytes(*uses[each]))
    if use not in uses:
        shaped = ", ".join(each for each in uses if each) or "none"
        why = f"has no shape as {use} here: its gate is false, or it holds regions"
        raise LayoutError(name, asked, nbytes, f"{why}; with a shape here: {shaped}")
    dtype, shape = uses[use]
    if shape == FLAT:
        return dtype, (nbytes * 8 // DTYPE_BITS[dtype],)
    if _bytes(dtype, shape) > nbytes:
        raise LayoutError(name, f"{asked} ({_bytes(dtype, shape)} bytes)", nbytes)
    return dtype, shape


def _no_use(use: str, declared: Sequence[str]) -> str:
    if not declared:
        return "has no uses; leave use out"
    near = spelling_hint(use, declared)
    text = f"has no use {use!r}; its uses: {', '.join(declared)}"
    return f"{text}; {near}" if near.startswith("did") else text


def view_device(gpu: GpuBackend) -> tuple[int, int]:
    """The device of a backend as DLPack numbers it.

    Raise BackendError for a backend that does not say.
    """
    # From Python 3.12 on, isinstance with a protocol does not see a `__getattr__`.
    device: tuple[int, int] | None = getattr(gpu, "dlpack_device", None)
    if device is not None:
        return device
    raise BackendError(
        f"{type(gpu).__name__} does not say where its memory lies; give it the "
        "property dlpack_device, (1, 0) for host memory or (2, n) for CUDA device n"
    )


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return (prod(shape) * DTYPE_BITS[dtype] + 7) // 8
