"""What changes from one schema to another, and in the bytes of real configs.

Takes two models and their sizes, returns records; reads nothing and prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from .aspects import USAGE, Entry, aspects, sections
from .model import Schema
from .reads import readers
from .record import record, replace
from .sizing import ArenaSize

Kind: TypeAlias = Literal["added", "removed", "changed"]
# Sections whose entries formulas read.
READ = (
    "target",
    "limits",
    "config",
    "levers",
    "constants",
    "let",
    "functions",
    "layouts",
)
# Aspects that no formula's value comes from, in any section and in one.
_STILL = frozenset({"doc", "order"})
_STILL_IN = {
    "target": frozenset({"minimum"}),
    "limits": frozenset({"symbol", "minimum", "maximum", "default", "tokens"}),
    "levers": frozenset({"variable", "arms"}),
    "constants": frozenset({"public"}),
}


@record
class AspectChange:
    """One aspect of an entry; None where there is no such thing."""

    name: str
    old: str | None
    new: str | None


@record
class Change:
    """One entry that was added, removed or changed.

    aspects: those that differ, and all of an entry that is on one side alone.
    renamed: the entry of the other side that has the same doc and the same formulas.
    readers: buffers whose bytes are computed from it; none where only aspects changed
    that change no formula, as a doc, the order, or the default of a limit.
    """

    section: str
    name: str
    kind: Kind
    aspects: tuple[AspectChange, ...]
    renamed: str = ""
    readers: tuple[str, ...] = ()


@record
class Delta:
    """The bytes of one buffer; None where it is not declared."""

    name: str
    old: int | None
    new: int | None

    @property
    def nbytes(self) -> int:
        """Bytes that came, less than 0 where some went."""
        return (self.new or 0) - (self.old or 0)


@record
class ConfigDiff:
    """The bytes of every buffer of either schema for one config, old order first."""

    config: str
    old: ArenaSize
    new: ArenaSize
    buffers: tuple[Delta, ...]


@record
class SchemaDiff:
    """Everything that differs, in schema order by section, and the bytes."""

    changes: tuple[Change, ...]
    configs: tuple[ConfigDiff, ...]

    @property
    def differs(self) -> bool:
        """Whether an entry, or the bytes of a config, is not what it was."""
        moved = (each.nbytes for config in self.configs for each in config.buffers)
        return bool(self.changes) or any(moved)

    def moves(self, change: Change) -> tuple[str, ...]:
        """The readers of an entry whose bytes differ for some config."""
        moved = {
            each.name
            for config in self.configs
            for each in config.buffers
            if each.nbytes
        }
        return tuple(name for name in change.readers if name in moved)


def diff(
    old: Schema, new: Schema, sizes: Sequence[tuple[str, ArenaSize, ArenaSize]] = ()
) -> SchemaDiff:
    """What differs from `old` to `new`; sizes are of a config under the two."""
    before, after = sections(old), sections(new)
    changes = [
        change
        for section in before
        for change in _section(section, before[section], after[section])
    ]
    read_before, read_after = readers(old), readers(new)
    order = list(dict.fromkeys(each.name for each in (*old.buffers, *new.buffers)))
    return SchemaDiff(
        tuple(
            replace(change, readers=_readers(change, read_before, read_after, order))
            for change in changes
        ),
        tuple(_config(config, first, second) for config, first, second in sizes),
    )


def _section(
    section: str, old: dict[str, Entry], new: dict[str, Entry]
) -> list[Change]:
    before = {name: aspects(entry) for name, entry in old.items()}
    after = {name: aspects(entry) for name, entry in new.items()}
    moved = _moved([*before], [*after])
    renamed = _renamed(
        {name: found for name, found in before.items() if name not in after},
        {name: found for name, found in after.items() if name not in before},
    )
    changes = []
    for name in dict.fromkeys([*before, *after]):
        first, second = before.get(name, {}), after.get(name, {})
        kind: Kind = "changed"
        if name not in after:
            kind = "removed"
        elif name not in before:
            kind = "added"
        differ = [
            AspectChange(aspect, first.get(aspect), second.get(aspect))
            for aspect in dict.fromkeys([*first, *second])
            if first.get(aspect) != second.get(aspect)
        ]
        if name in moved:
            differ.append(AspectChange("order", *moved[name]))
        if differ or kind != "changed":
            other = renamed.get((kind, name), "")
            changes.append(Change(section, name, kind, tuple(differ), other))
    return changes


def _moved(old: list[str], new: list[str]) -> dict[str, tuple[str, str]]:
    """What stands behind which, old and new, of as few entries as tell the order.

    Those that keep their places are the longest run of names in the order of both,
    and of equally long ones the first by the alphabet, so that it is the same run when
    old and new are swapped.
    """
    place = {name: index for index, name in enumerate(new)}
    common = [name for name in old if name in place]
    # The best run that begins with each name: its length, then the name behind.
    runs: dict[str, tuple[int, str]] = {}
    for index in range(len(common) - 1, -1, -1):
        name = common[index]
        following = (
            (-runs[other][0], other)
            for other in common[index + 1 :]
            if place[other] > place[name]
        )
        length, behind = min(following, default=(0, ""))
        runs[name] = 1 - length, behind
    kept: set[str] = set()
    name = min(runs, key=lambda each: (-runs[each][0], each), default="")
    while name:
        kept.add(name)
        name = runs[name][1]
    spots = {
        name: (_behind(old, name), _behind(new, name))
        for name in common
        if name not in kept
    }
    return {name: spot for name, spot in spots.items() if spot[0] != spot[1]}


def _behind(names: list[str], name: str) -> str:
    index = names.index(name)
    return f"behind {names[index - 1]}" if index else "first"


def _renamed(
    removed: dict[str, dict[str, str]], added: dict[str, dict[str, str]]
) -> dict[tuple[Kind, str], str]:
    """Entries of either side that have a doc and formulas in common, in pairs."""
    there: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, found in added.items():
        there.setdefault(_essence(found), []).append(name)
    pairs: dict[tuple[Kind, str], str] = {}
    for name, found in removed.items():
        if twins := there.get(_essence(found)):
            twin = twins.pop(0)
            pairs["removed", name] = twin
            pairs["added", twin] = name
    return pairs


def _essence(found: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(each for each in found.items() if each[0] not in USAGE))


def _readers(
    change: Change,
    before: dict[str, tuple[str, ...]],
    after: dict[str, tuple[str, ...]],
    order: list[str],
) -> tuple[str, ...]:
    if change.section not in READ:
        return ()
    told = {each.name.rpartition(", ")[2] for each in change.aspects}
    still = _STILL | _STILL_IN.get(change.section, frozenset())
    if change.kind == "changed" and told <= still:
        return ()
    found = {*before.get(change.name, ()), *after.get(change.name, ())}
    return tuple(name for name in order if name in found)


def _config(config: str, old: ArenaSize, new: ArenaSize) -> ConfigDiff:
    before = {each.name: each.nbytes for each in old.buffers}
    after = {each.name: each.nbytes for each in new.buffers}
    names = dict.fromkeys([*before, *after])
    deltas = (Delta(name, before.get(name), after.get(name)) for name in names)
    return ConfigDiff(config, old, new, tuple(deltas))
