"""Hugging Face config.json files: reading one, and its values by name.

Every fault is a ConfigError that names the file, the model family and the key.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from typing import Final, Self, TypeVar

from .errors import ConfigError
from .numeric import check_bool, check_int, check_str, check_strs

# Largest file that is read; real ones have a few kilobytes.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024

_T = TypeVar("_T")


def read_json(path: str | os.PathLike[str]) -> dict[str, object]:
    """Return the object in a file of JSON, where bare Infinity and NaN may stand."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{name!r}: cannot be read: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{name}: more than {MAX_FILE_BYTES} bytes")
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not JSON: {error}") from None
    return dict(_object(name, raw))


class HfFile:
    """The data of one config.json; `name` is what errors call it."""

    def __init__(self, raw: Mapping[str, object], name: str) -> None:
        self._raw = raw
        self._name = name

    @classmethod
    def open(cls, source: str | os.PathLike[str] | Mapping[str, object]) -> Self:
        """Read a file, or take the data of one."""
        if isinstance(source, Mapping):
            return cls(source, "config.json")
        return cls(read_json(source), os.fspath(source))

    @property
    def model_type(self) -> str:
        """What the file calls its model family, "" when it does not."""
        value = self._raw.get("model_type")
        return "" if value is None else check_str(f"{self._name}: model_type", value)

    def choose(self, families: Mapping[str, _T]) -> _T:
        """Return what `families` holds for the file's model_type."""
        model_type = self.model_type
        if model_type in families:
            return families[model_type]
        hint = f"known: {', '.join(families)}"
        if not model_type:
            raise ConfigError(f"{self._name}: model_type is missing; {hint}")
        by_lower = {each.lower(): each for each in families}
        for close in difflib.get_close_matches(model_type.lower(), by_lower, 1, 0.7):
            hint = f"did you mean {by_lower[close]}? {hint}"
        shown = repr(model_type[:80])
        raise ConfigError(f"{self._name}: model_type {shown} is not known; {hint}")

    def keys(self, family: str, *sections: str) -> HfKeys:
        """The values in the first section that is there, else in the file itself."""
        where = f"{self._name}: {family}"
        for section in sections:
            value = self._raw.get(section)
            if value is not None:
                return HfKeys(_object(f"{where}: {section}", value), where, section)
        return HfKeys(self._raw, where, "")

    def refused(self, family: str, why: str) -> ConfigError:
        """The error for a family whose files are not taken."""
        return ConfigError(f"{self._name}: {family}: {why}")


class HfKeys:
    """Values by name, each checked.

    A getter takes the names that a value may have, first one first; a dot in a name
    leads into an object. null counts as absent. An absent value is the default, or an
    error when it is required. `where` begins every error, `section` every path.
    """

    def __init__(self, raw: Mapping[str, object], where: str, section: str) -> None:
        self._raw = raw
        self._where = where
        self._section = section

    def has(self, *names: str) -> bool:
        """Whether a value is there."""
        return self._find(names) is not None

    def integer(
        self, *names: str, default: int = 0, minimum: int = 0, required: bool = False
    ) -> int:
        """Return an int; what the file gives is at least `minimum`."""
        found = self._find(names, required)
        return default if found is None else check_int(*found, minimum)

    def flag(self, *names: str, default: bool = False, required: bool = False) -> bool:
        """Return a truth value."""
        found = self._find(names, required)
        return default if found is None else check_bool(*found)

    def text(self, *names: str, default: str = "", required: bool = False) -> str:
        """Return a text."""
        found = self._find(names, required)
        return default if found is None else check_str(*found)

    def texts(
        self,
        *names: str,
        default: tuple[str, ...] = (),
        minimum: int = 0,
        length: int | None = None,
        words: Mapping[str, str] | None = None,
        letters: Mapping[str, str] | None = None,
        required: bool = False,
    ) -> tuple[str, ...]:
        """Return a list of texts.

        With `letters`, a text in its place is spelled out by them. `words` renames
        entries. Of more entries than `length` the first ones count; fewer than that,
        or than `minimum`, are an error.
        """
        found = self._find(names, required)
        if found is None:
            return default
        what, value = found
        if letters is not None and isinstance(value, str):
            items = spell_out(what, value, letters)
        else:
            items = check_strs(what, value)
        least = minimum if length is None else length
        if len(items) < least:
            raise ConfigError(f"{what}: {len(items)} entries; {least} are needed")
        return rename(items[:length], words or {})

    def divide(self, what: str, value: int, divisor: int) -> int:
        """Return a quotient that comes out even; `what` is its name in the error."""
        if divisor == 0 or value % divisor:
            raise ConfigError(
                f"{self._where}: {what}: {value} / {divisor} is not an integer"
            )
        return value // divisor

    def _find(
        self, names: tuple[str, ...], required: bool = False
    ) -> tuple[str, object] | None:
        """The first value that is there, behind what to call it in an error."""
        for name in names:
            value: object = self._raw
            path = self._section
            for part in name.split("."):
                value = _object(f"{self._where}: {path}", value).get(part)
                path = f"{path}.{part}" if path else part
                if value is None:
                    break
            else:
                return f"{self._where}: {path}", value
        if required:
            wanted, place = " or ".join(names), self._section or "the file"
            raise ConfigError(f"{self._where}: {wanted} is missing from {place}")
        return None


def spell_out(what: str, text: str, letters: Mapping[str, str]) -> tuple[str, ...]:
    """Return what each letter of `text` stands for; `what` names it in the error."""
    for letter in text:
        if letter not in letters:
            raise ConfigError(f"{what}: {letter!r} is none of {' '.join(letters)}")
    return tuple(letters[letter] for letter in text)


def rename(items: tuple[str, ...], words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the items with the words of `words` replaced, and others kept."""
    return tuple(words.get(item, item) for item in items)


def _object(what: str, value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise ConfigError(f"{what}: not an object ({type(value).__name__})")
