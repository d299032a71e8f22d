"""Hugging Face config.json files: reading one, and its values by name.

Every fault is a ConfigError that names the file, the model family and the key.
"""

from __future__ import annotations

import difflib
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self, TypeGuard, TypeVar

from .errors import ConfigError
from .numeric import check_bool, check_int, check_str, check_strs, show

# Largest file that is read; real ones have a few kilobytes.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
# Longest list that a count in a file may stand for; real stacks have hundreds.
MAX_LAYERS: Final = 65536

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
        raw = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not JSON: {error}") from None
    return dict(_object(name, raw))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {show(key)} stands twice in an object")
        found[key] = value
    return found


class HfFile:
    """The data of one config.json; `name` is what errors call it.

    model_type: what it is read by, once `choose` has said.
    """

    def __init__(
        self,
        raw: Mapping[str, object],
        name: str,
        assume: str,
        outer: HfFile | None = None,
    ) -> None:
        self.model_type = ""
        self._raw = raw
        self._name = name
        self._assume = assume
        self._inside = outer is not None
        self._notes: list[str] = [] if outer is None else outer._notes

    @classmethod
    def open(
        cls, source: str | os.PathLike[str] | Mapping[str, object], assume: str = ""
    ) -> Self:
        """Read a file, or take the data of one.

        assume: model_type by which a file of an unknown one is read; "" for none.
        """
        if isinstance(source, Mapping):
            return cls(source, "config.json", assume)
        return cls(read_json(source), os.fspath(source), assume)

    def choose(
        self,
        families: Mapping[str, _T],
        marks: Mapping[str, tuple[str, ...]] | None = None,
    ) -> _T:
        """Return what `families` holds for the file's model_type.

        marks: names that tell a file without a model_type, by what it is read by.
        """
        self.model_type = self._choice(families, marks or {})
        return families[self.model_type]

    def _choice(
        self, families: Iterable[str], marks: Mapping[str, tuple[str, ...]]
    ) -> str:
        assume = self._assume
        if assume and assume not in families:
            why = f"no model_type {assume!r} is known; {_hint(assume, families)}"
            raise ConfigError(f"assume: {why}")
        value = self._raw.get("model_type")
        model_type = ""
        if value is not None:
            model_type = check_str(f"{self._name}: model_type", value)
        if model_type in families:
            return model_type
        if model_type:
            why = f"{self._name}: model_type {model_type[:80]!r} is not known"
        else:
            why = f"{self._name}: model_type is missing"
            for name, marked in marks.items():
                if all(each in self._raw for each in marked):
                    return name
        if not assume:
            raise ConfigError(f"{why}; {_hint(model_type, families)}")
        self._notes.append(f"{why}; read as {assume}")
        return assume

    def keys(self, family: str, *sections: str) -> HfKeys:
        """The values in the first section that is there, else in the file itself."""
        where = f"{self._name}: {family}"
        for section in sections:
            value = self._raw.get(section)
            if value is not None:
                inside = _object(f"{where}: {section}", value)
                return HfKeys(inside, where, section, self._notes)
        return HfKeys(self._raw, where, "", self._notes)

    def inner(self, family: str, *sections: str) -> Self:
        """The config in the first section that is there, as a file of its own."""
        if self._inside:
            raise self.refused(family, "a config inside another holds none itself")
        for section in sections:
            value = self._raw.get(section)
            if value is not None:
                inside = _object(f"{self._name}: {family}: {section}", value)
                name = f"{self._name}: {section}"
                return type(self)(inside, name, self._assume, self)
        wanted = " or ".join(sections)
        raise self.refused(family, f"{wanted} is missing from the file")

    def refused(self, family: str, why: str) -> ConfigError:
        """The error for a family whose files are not taken."""
        return ConfigError(f"{self._name}: {family}: {why}")

    def warn(self) -> None:
        """Warn of all that was noted, where the caller of `ModelConfig.from_hf` is."""
        for note in self._notes:
            warnings.warn(note, stacklevel=4)


def _hint(model_type: str, families: Iterable[str]) -> str:
    hint = f"known: {', '.join(families)}"
    by_lower = {each.lower(): each for each in families}
    for close in difflib.get_close_matches(model_type.lower(), by_lower, 1, 0.7):
        hint = f"did you mean {by_lower[close]}? {hint}"
    return hint


class HfKeys:
    """Values by name, each checked.

    A getter takes the names that a value may have, first one first; a dot in a name
    leads into an object. null counts as absent, and so do the texts of `absent`. An
    absent value is the default, or an error when it is required. `where` begins every
    error, `section` every path.
    """

    def __init__(
        self, raw: Mapping[str, object], where: str, section: str, notes: list[str]
    ) -> None:
        self._raw = raw
        self._where = where
        self._section = section
        self._notes = notes
        self._asked: set[str] = set()

    def has(self, *names: str, absent: tuple[str, ...] = ()) -> bool:
        """Whether a value is there."""
        return self._find(names, absent=absent) is not None

    def integer(
        self,
        *names: str,
        default: int = 0,
        minimum: int = 0,
        largest: bool = False,
        absent: tuple[str, ...] = (),
        required: bool = False,
    ) -> int:
        """Return an int; what the file gives is at least `minimum`.

        With `largest`, a list of them counts as its largest.
        """
        found = self._find(names, required, absent)
        if found is None:
            return default
        what, value = found
        if largest and isinstance(value, (list, tuple)) and value:
            return max(
                check_int(f"{what}[{place}]", each, minimum)
                for place, each in enumerate(value)
            )
        return check_int(what, value, minimum)

    def flag(
        self,
        *names: str,
        default: bool = False,
        absent: tuple[str, ...] = (),
        required: bool = False,
    ) -> bool:
        """Return a truth value."""
        found = self._find(names, required, absent)
        return default if found is None else check_bool(*found)

    def text(
        self,
        *names: str,
        default: str = "",
        absent: tuple[str, ...] = (),
        required: bool = False,
    ) -> str:
        """Return a text."""
        found = self._find(names, required, absent)
        return default if found is None else check_str(*found)

    def texts(
        self,
        *names: str,
        default: tuple[str, ...] = (),
        minimum: int = 0,
        length: int | None = None,
        words: Mapping[str, str] | None = None,
        letters: Mapping[str, str] | None = None,
        numbers: Mapping[str, str] | None = None,
        absent: tuple[str, ...] = (),
        required: bool = False,
    ) -> tuple[str, ...]:
        """Return a list of texts.

        With `letters`, a text in its place is spelled out by them, and a list of
        integers with `numbers`. `words` renames entries. Of more entries than `length`
        the first ones count; fewer than that, or than `minimum`, are an error.
        """
        found = self._find(names, required, absent)
        if found is None:
            return default
        what, value = found
        if letters is not None and isinstance(value, str):
            items = spell_out(what, value, letters)
        elif numbers is not None and _all_integers(value):
            items = spell_out(what, map(str, value), numbers)
        else:
            items = check_strs(what, value)
        least = minimum if length is None else length
        if len(items) < least:
            raise ConfigError(f"{what}: {len(items)} entries; {least} are needed")
        return rename(items[:length], words or {})

    def spread(
        self,
        *names: str,
        word: str,
        others: str,
        length: int,
        base: int = 0,
        default: tuple[str, ...] = (),
        absent: tuple[str, ...] = (),
        required: bool = False,
    ) -> tuple[str, ...]:
        """Return a text for each of `length` layers, by the list of some of them.

        `word` stands for a layer in the list, or in a text of numbers with commas;
        `others` for any other. The first layer has the number `base`.
        """
        found = self._find(names, required, absent)
        if found is None:
            return default
        what, value = found
        if length > MAX_LAYERS:
            raise ConfigError(f"{what}: {length} layers; at most {MAX_LAYERS}")
        items = [others] * length
        for place, layer in enumerate(_layers(what, value)):
            number = check_int(f"{what}[{place}]", layer, base)
            if number >= base + length:
                raise ConfigError(
                    f"{what}[{place}]: {show(number)} is beyond the last of {length} "
                    f"layers, counted from {base}"
                )
            items[number - base] = word
        return tuple(items)

    def divide(self, what: str, value: int, divisor: int) -> int:
        """Return a quotient that comes out even; `what` is its name in the error."""
        if divisor == 0 or value % divisor:
            raise ConfigError(
                f"{self._where}: {what}: {value} / {divisor} is not an integer"
            )
        return value // divisor

    def every(
        self, what: str, count: int, period: int, offset: int, word: str, other: str
    ) -> tuple[str, ...]:
        """Return `word` where a place in the stack leaves `offset` by the period.

        `what` is the list's name in the error.
        """
        if not 0 <= count <= MAX_LAYERS:
            why = f"{count} layers; at most {MAX_LAYERS}"
            raise ConfigError(f"{self._where}: {what}: {why}")
        if period < 1:
            raise ConfigError(f"{self._where}: {what}: {period} is no period")
        return tuple(
            word if place % period == offset else other for place in range(count)
        )

    def note(self, what: str) -> None:
        """Note what the user of the file should know."""
        self._notes.append(f"{self._where}: {what}")

    def note_unread(self, size_keys: Iterable[str], *ignored: str) -> None:
        """Note which of `size_keys` say something that nobody asked for."""
        known = self._asked.union(ignored)
        unread = [
            name for name in size_keys if name not in known and _says(self._raw, name)
        ]
        if unread:
            self.note(f"not read, though it may change sizes: {', '.join(unread)}")

    def _find(
        self,
        names: tuple[str, ...],
        required: bool = False,
        absent: tuple[str, ...] = (),
    ) -> tuple[str, object] | None:
        """The first value that is there, behind what to call it in an error."""
        self._asked.update(names)
        for name in names:
            value: object = self._raw
            path = self._section
            for part in name.split("."):
                value = _object(f"{self._where}: {path}", value).get(part)
                path = f"{path}.{part}" if path else part
                if value is None or value in absent:
                    break
            else:
                return f"{self._where}: {path}", value
        if required:
            wanted, place = " or ".join(names), self._section or "the file"
            raise ConfigError(f"{self._where}: {wanted} is missing from {place}")
        return None


def _says(value: object, name: str) -> bool:
    """Whether more than null, 0 or nothing stands under a dotted name."""
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return bool(value)


def _all_integers(value: object) -> TypeGuard[Sequence[int]]:
    return isinstance(value, (list, tuple)) and all(
        isinstance(each, int) for each in value
    )


def _layers(what: str, value: object) -> Sequence[object]:
    if isinstance(value, str):
        return [_number(each.strip()) for each in value.split(",")] if value else []
    if isinstance(value, (list, tuple)):
        return value
    raise ConfigError(
        f"{what} is {show(value)} ({type(value).__name__}), not a list of layers"
    )


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def spell_out(
    what: str, text: Iterable[str], letters: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what each letter of `text` stands for; `what` names it in the error."""
    items = []
    for letter in text:
        if letter not in letters:
            shown = show(letter)
            raise ConfigError(f"{what}: {shown} is none of {' '.join(letters)}")
        items.append(letters[letter])
    return tuple(items)


def rename(items: tuple[str, ...], words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the items with the words of `words` replaced, and others kept."""
    return tuple(words.get(item, item) for item in items)


def _object(what: str, value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise ConfigError(f"{what}: not an object ({type(value).__name__})")
