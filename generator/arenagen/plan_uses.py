"""Views of what lies inside buffers, and of the pointers that lead to it."""

from __future__ import annotations

from .formula import quote
from .plan_parts import ParameterView, RegionView, StatementView, lower_first
from .record import record


def _optional(name: str) -> str:
    """A parameter that an accessor may be called without."""
    return f"{name}: int | None = None"


@record
class PartView:
    """A use of a buffer, or what a buffer without uses holds.

    place: the function that lays it out, which returns `type`, or None while `absent`
        holds. record: its own class, "" where the type is not its own.
    layout: whether a named layout fills the buffer.
    parameters: the arguments of that layout that depend on the tokens of the pass.
    limits: what an accessor takes by name alone: its other arguments that depend on
        limits; without a layout, limits beside the tokens.
    """

    buffer: str
    use: str
    doc: str
    extent: str
    place: str
    type: str
    record: str
    regions: tuple[RegionView, ...]
    gate: str
    absent: str
    body: tuple[StatementView, ...]
    value: str
    limits: tuple[ParameterView, ...]
    layout: bool
    parameters: tuple[ParameterView, ...]

    @property
    def result(self) -> str:
        """What the placing function returns."""
        return f"{self.type} | None" if self.absent else self.type

    @property
    def place_signature(self) -> str:
        """The parameters of the placing function."""
        given = [_optional(each.name) for each in self.layout_arguments]
        return ", ".join(["inputs: Inputs", "base: DevicePtr", *given])

    @property
    def layout_arguments(self) -> tuple[ParameterView, ...]:
        """What a caller may give of the layout that fills the buffer."""
        return (*self.parameters, *self.limits) if self.layout else ()

    @property
    def place_doc(self) -> str:
        """The docstring of the placing function."""
        name = f"the use {self.use} of {self.buffer}" if self.use else self.buffer
        return f"Lay out {name}{', unless its gate is false' if self.gate else ''}."

    @property
    def method(self) -> str:
        """The method of the pointer."""
        return self.use or "__call__"

    @property
    def signature(self) -> str:
        """The parameters of the method."""
        places = [each.name for each in self.parameters] if self.layout else ["tokens"]
        given = [*map(_optional, places), *(["*"] if self.limits else [])]
        return ", ".join(
            ["self", *given, *(_optional(each.name) for each in self.limits)]
        )

    @property
    def helper(self) -> str:
        """The method of every pointer that answers."""
        return "_layout" if self.layout else "_part"

    @property
    def leading(self) -> str:
        """The arguments of the helper before the gate."""
        return self.place if self.layout else f"{quote(self.use)}, {self.place}"

    @property
    def trailing(self) -> str:
        """The arguments of the helper behind the gate, each behind a comma."""
        asked = self.layout_arguments if self.layout else self.limits
        first = "" if self.layout else ", tokens"
        return first + "".join([f", {each.name}={each.name}" for each in asked])

    @property
    def record_docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring of the record."""
        what = f"the use {self.use} of {self.buffer}" if self.use else self.buffer
        return f"The regions of {what}.", self.doc

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring of the method."""
        if self.layout:
            return (
                f"The regions of {self.buffer} for a pass, with their pointers.",
                *(
                    f"{each.name}: {lower_first(each.doc).rstrip('.')}; None for the "
                    "most that the arena holds."
                    for each in self.layout_arguments
                ),
                "Raise LayoutError for more than the buffer was sized for, and where "
                "there is no buffer (gated off or trimmed), ConfigError for less than "
                "1, ReleasedError after release.",
            )
        gate = f" while its gate is false ({self.gate})," if self.gate else ""
        return (
            self.doc,
            f"{self.extent}.",
            "tokens: tokens of the pass; None for the most that the arena holds.",
            *(
                f"{each.name}: {lower_first(each.doc).rstrip('.')}; None for the "
                "arena's own."
                for each in self.limits
            ),
            f"Raise LayoutError for more than the arena or {self.buffer} holds,{gate} "
            "and where the buffer has no memory; ConfigError for a limit out of range; "
            "ReleasedError after release.",
        )


@record
class PointerView:
    """The pointer class of a buffer in which several things lie."""

    buffer: str
    class_name: str
    parts: tuple[PartView, ...]

    @property
    def doc(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        way = "its regions: call it"
        if self.parts[0].use:
            way = "what lies there, by use"
        return (
            f"Pointer to {self.buffer}, and the way to {way}.",
            "An int like every DevicePtr; NULL when the buffer does not exist.",
        )

    @property
    def called(self) -> PartView | None:
        """What a call of the pointer gives, where the buffer has no uses."""
        return None if self.parts[0].use else self.parts[0]

    @property
    def most(self) -> str:
        """The largest arguments of a call."""
        (part,) = self.parts
        names = [quote(each.name) for each in part.layout_arguments]
        if part.layout:
            return f"self._most({', '.join([part.place, *names])})"
        return "self._most_tokens()"
