"""Views of buffers: their entries, their shapes, the trims that empty them."""

from __future__ import annotations

from .plan_uses import PointerView
from .record import record


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
