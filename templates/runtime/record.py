"""Records: values with named fields that are set once, at construction.

What a frozen dataclass does, at a tenth of its cost in every program's start: to import
dataclasses loads the compiler's own tools, and each class is then built from text.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self, dataclass_transform


# So that type checkers, too, refuse to set a field.
@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    """The base of records, each of which takes its fields by name and holds them.

    As those of a NamedTuple, `_asdict` and `_replace` are for all to call.
    """

    def _hold(self, **values: object) -> None:
        """Set all fields, in order."""
        self.__dict__.update(values)

    def _asdict(self) -> dict[str, Any]:
        """The fields and their values, in order."""
        return dict(self.__dict__)

    def _replace(self, **changes: Any) -> Self:
        """The same with other values for some fields, checked as all are."""
        return type(self)(**{**self.__dict__, **changes})

    # What copy.replace calls.
    __replace__ = _replace

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({', '.join(fields)})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__}.{name}: a record never changes; `_replace` gives "
            "another one"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name}: a record never changes")
