"""Views that several kinds of emitted module share, and how docs spell things."""

from __future__ import annotations

from .record import record


def lower_first(text: str) -> str:
    """A doc as the rest of a line: `Tokens of a pass.` to `tokens of a pass.`."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


@record
class ParameterView:
    """A parameter of an emitted function or method."""

    name: str
    type: str
    doc: str

    @property
    def spelling(self) -> str:
        """`name: type`."""
        return f"{self.name}: {self.type}"


@record
class StatementView:
    """`name = value`."""

    name: str
    value: str


@record
class RegionView:
    """A region of a layout: its field, its local, and the statements that place it."""

    name: str
    local: str
    type: str
    doc: str
    body: tuple[StatementView, ...]
