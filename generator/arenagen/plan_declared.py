"""Views of what a schema declares beside its buffers."""

from __future__ import annotations

from .plan_parts import ParameterView, RegionView, StatementView, lower_first
from .record import record


@record
class ConstantView:
    """A module constant."""

    name: str
    type: str
    value: str
    doc: str


@record
class LimitView:
    """A limit, its bounds as the arguments of the check."""

    name: str
    doc: str
    bounds: str
    tokens: bool

    @property
    def argument(self) -> str:
        """What an accessor calls it."""
        return "tokens" if self.tokens else self.name


@record
class FieldView:
    """A field of ModelConfig, Levers or Target; `derived` fills an absent one."""

    name: str
    type: str
    default: str
    doc: str
    check: str
    derived: str = ""
    normalised: bool = False


@record
class LeverView:
    """A lever: its field, and the call that reads its variable."""

    field: FieldView
    variable: str
    reader: str

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        return (self.field.doc, f"Variable {self.variable}.")


@record
class PropertyView:
    """A derived value of ModelConfig."""

    name: str
    type: str
    doc: str
    value: str


@record
class FunctionView:
    """A public sizing helper."""

    name: str
    doc: str
    parameters: tuple[ParameterView, ...]
    reads_levers: bool
    reads_target: bool
    body: tuple[StatementView, ...]
    value: str

    @property
    def signature(self) -> str:
        """The parameters, as the emitted function spells them."""
        parts = [each.spelling for each in self.parameters]
        if self.reads_levers or self.reads_target:
            parts.append("*")
        if self.reads_levers:
            parts.append("levers: Levers | None = None")
        if self.reads_target:
            parts.append("target: Target = DEFAULT_TARGET")
        return ", ".join(parts)

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        lines = [f"{each.name}: {lower_first(each.doc)}" for each in self.parameters]
        if self.reads_levers:
            lines.append("levers: environment switches; None reads the environment.")
        if self.reads_target:
            lines.append("target: the device that the size is for.")
        return (self.doc, *lines)


@record
class LayoutView:
    """A named layout."""

    name: str
    class_name: str
    size_function: str
    doc: str
    parameters: tuple[ParameterView, ...]
    reads_config: bool
    size_body: tuple[StatementView, ...]
    size_value: str
    place_body: tuple[StatementView, ...]
    regions: tuple[RegionView, ...]
    size_after: str

    @property
    def size_signature(self) -> str:
        """The parameters of the size function."""
        config = ["config: ModelConfig"] if self.reads_config else []
        return ", ".join([*config, *(each.spelling for each in self.parameters)])

    @property
    def of_signature(self) -> str:
        """The parameters of `of`, behind the class."""
        config = ["config: ModelConfig"] if self.reads_config else []
        keywords = [each.spelling for each in self.parameters]
        return ", ".join([*config, "*", *keywords, "base: DevicePtr = NULL"])

    @property
    def values(self) -> str:
        """The positional arguments of the record."""
        names = [each.name for each in self.parameters]
        names += [each.local for each in self.regions]
        return ", ".join([*names, self.size_after])


@record
class LayoutAccessorView:
    """A layout that the arena publishes under the layout's name."""

    name: str
    class_name: str
    doc: str
    body: tuple[StatementView, ...]
    arguments: str

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring."""
        return (self.doc,)
