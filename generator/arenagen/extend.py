"""A schema laid over the one that it extends, before anything is read of either.

Works on the nodes of files that are each shaped like a schema, so that whatever is
wrong with the whole keeps its own file, line and column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from .chain import base_of
from .errors import Problem, Severity, Span, did_you_mean, nearest
from .load import EXTENT_KEYS
from .record import record, replace
from .source import Mapping, Node, Scalar, Sequence, plain

# Mappings inside an entry that hold entries of their own.
INNER = ("parameters", "regions", "uses")
Related: TypeAlias = tuple[str, Span]
Slip: TypeAlias = tuple[str, tuple[str, ...]]


@record
class Extended:
    """A whole schema, what is wrong with how it came about, and how it did.

    `extends` tells where each base is extended; `names` and `lines` where an entry of
    one is overridden or removed, by its name and by the lines that it stood on; `slips`
    where an entry is new, its name and the names beside it that a base has.
    """

    root: Mapping
    problems: tuple[Problem, ...]
    extends: dict[str, Span]
    names: dict[str, Related]
    lines: dict[tuple[str, int], Related]
    slips: dict[Span, Slip]

    def explain(self, problem: Problem) -> Problem:
        """The problem, with the place of an extending file that it may come from."""
        span = problem.span
        slip = self.slips.get(span) if problem.code == "AR021" else None
        if slip and (close := nearest(*slip)):
            return replace(problem, hint=f"did you mean `{close}`?")
        if span.file not in self.extends:
            return problem
        start = span.column - 1
        word = span.source[start : start + span.length]
        extended = ("extended", self.extends[span.file])
        near = self.lines.get((span.file, span.line), extended)
        related = self.names.get(word, near)
        hint = problem.hint
        if problem.code == "AR080":
            hint = "leave it out: name it in `remove`"
        elif problem.code == "AR021" and related[0] == "removed":
            hint = "leave it out of `remove`"
        return replace(problem, hint=hint, related=(*problem.related, related))


def extend(chain: list[Mapping]) -> Extended:
    """The whole of a schema and its bases, nearest first.

    From the last base on, each file is laid over what lies below it: what it removes
    is taken out first, then mappings merge by key at every depth, and anything else
    replaces what the base says.
    """
    laying = _Laying()
    whole = chain[-1]
    for place in reversed(range(len(chain) - 1)):
        laying.link(chain[place], chain[place + 1 :])
        whole = laying.lay(whole, chain[place])
    return Extended(
        whole,
        tuple(laying.problems),
        laying.extends,
        laying.names,
        laying.lines,
        laying.slips,
    )


class _Laying:
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.extends: dict[str, Span] = {}
        self.names: dict[str, Related] = {}
        self.lines: dict[tuple[str, int], Related] = {}
        self.slips: dict[Span, Slip] = {}

    def link(self, over: Mapping, bases: list[Mapping]) -> None:
        """Note where a base is extended; no two packages may have one name."""
        extends = base_of(over)
        assert extends is not None
        self.extends[bases[0].span.file] = extends.span
        package = _package(over)
        for base in bases:
            if _package(base).value == package.value:
                self._report(
                    "AR104",
                    f"the package `{package.value}` is the one that the base emits",
                    package.span,
                    "choose another name, so that both can be imported",
                    ("base", _package(base).span),
                )

    def lay(self, base: Mapping, over: Mapping) -> Mapping:
        """A whole schema with a file that extends it laid over it."""
        removed = over.get("remove")
        for path in removed.items if isinstance(removed, Sequence) else ():
            assert isinstance(path, Scalar)
            base = self._remove(base, str(path.value).split("."), path, (), base)
        merged = base
        for key, value in over.entries():
            name = str(key.value)
            if name == "remove":
                continue
            assert isinstance(value, Mapping)
            section = base.get(name)
            assert section is None or isinstance(section, Mapping)
            if name == "arena":
                value = _without(value, "extends")
                if section is not None:
                    section = _without(section, "package")
            if section is not None:
                lay = self._merge if name == "arena" else self._entries
                value = lay(section, value, name)
            merged = _with(merged, key, value)
        return merged

    def _remove(
        self,
        node: Mapping,
        steps: list[str],
        path: Scalar,
        above: tuple[str, ...],
        root: Mapping,
    ) -> Mapping:
        """The mapping at `above` of the root without what `steps` lead to."""
        step, *below = steps
        here = (*above, step)
        value = node.get(step)
        if value is None:
            where = f" in `{'.'.join(above)}`" if above else ""
            known = list(node.values)
            section = _section_of(root, step) if len(above) == 1 else ""
            self._report(
                "AR101",
                f"the base has no `{step}`{where} to remove",
                path.span,
                f"it is in `{section}`" if section else did_you_mean(step, known),
            )
            return node
        if below and not isinstance(value, Mapping):
            self._report(
                "AR101",
                f"`{'.'.join(here)}` of the base has no parts that have a name",
                path.span,
                "remove it as a whole, or give it anew",
            )
            return node
        key = node.key(step)
        removed = ("removed", path.span)
        if len(here) == 2:
            self._note(key, value, removed)
        if below:
            assert isinstance(value, Mapping)
            return _with(node, key, self._remove(value, below, path, here, root))
        if len(here) == 2:
            self.names[step] = removed
        elif len(here) == 1 and isinstance(value, Mapping):
            self.names |= dict.fromkeys(value.values, removed)
        return _without(node, step)

    def _entries(self, base: Mapping, over: Mapping, path: str) -> Mapping:
        """Entries by name: what is new comes behind those of the base."""
        merged = _table(base)
        known = tuple(merged)
        for key, value in over.entries():
            name = str(key.value)
            if name not in merged:
                self.slips[key.span] = name, known
            elif self._changes(merged[name], key, value, path):
                first, below = merged[name]
                assert isinstance(below, Mapping) and isinstance(value, Mapping)
                overridden = ("overridden", key.span)
                self._note(first, below, overridden)
                if "." not in path:
                    self.names[name] = overridden
                fresh = _without_stale_extent(below, value)
                value = self._merge(fresh, value, f"{path}.{name}", INNER)
            merged[name] = key, value
        return base.with_entries(merged.values())

    def _merge(
        self, base: Mapping, over: Mapping, path: str, inner: tuple[str, ...] = ()
    ) -> Mapping:
        """Mappings by key; the keys `inner` hold entries."""
        merged = _table(base)
        for key, value in over.entries():
            name = str(key.value)
            if name in merged and self._changes(merged[name], key, value, path):
                _, below = merged[name]
                if isinstance(below, Mapping) and isinstance(value, Mapping):
                    lay = self._entries if name in inner else self._merge
                    value = lay(below, value, f"{path}.{name}")
            merged[name] = key, value
        return base.with_entries(merged.values())

    def _changes(
        self, base: tuple[Scalar, Node], key: Scalar, value: Node, path: str
    ) -> bool:
        first, below = base
        # By their texts: for Python, True is 1.
        same = repr(plain(below)) == repr(plain(value))
        if same or (isinstance(value, Mapping) and not value.values):
            self._report(
                "AR103",
                f"`{path}.{key.value}` is what the base says already",
                key.span,
                "remove it",
                ("base", first.span),
                severity="warning",
            )
        return not same

    def _note(self, key: Scalar, value: Node, related: Related) -> None:
        for scalar in (key, *_scalars(value)):
            first = scalar.span.line
            for line in range(first, first + scalar.raw.count("\n") + 1):
                self.lines[scalar.span.file, line] = related

    def _report(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str,
        *related: Related,
        severity: Severity = "error",
    ) -> None:
        self.problems.append(Problem(code, message, span, hint, severity, related))


def _section_of(root: Mapping, name: str) -> str:
    """The section that has an entry of a name; empty where none has."""
    for key, section in root.values.items():
        if key == "arena" or not isinstance(section, Mapping):
            continue
        if section.get(name) is not None:
            return key
    return ""


def _package(root: Mapping) -> Scalar:
    arena = root.get("arena")
    package = arena.get("package") if isinstance(arena, Mapping) else None
    assert isinstance(package, Scalar)
    return package


def _table(node: Mapping) -> dict[str, tuple[Scalar, Node]]:
    return {str(key.value): (key, value) for key, value in node.entries()}


def _with(node: Mapping, key: Scalar, value: Node) -> Mapping:
    """The mapping with a key in its place, or behind the others where it is new."""
    if node.get(str(key.value)) is None:
        return node.with_entries((*node.entries(), (key, value)))
    return node.with_entries(
        (key, value) if old.value == key.value else (old, before)
        for old, before in node.entries()
    )


def _without(node: Mapping, *names: str) -> Mapping:
    return node.with_entries(
        entry for entry in node.entries() if entry[0].value not in names
    )


def _without_stale_extent(base: Mapping, over: Mapping) -> Mapping:
    """The entry of a base without the extent that `over` gives it anew."""
    given = {key for key in EXTENT_KEYS if over.get(key) is not None}
    if not given:
        return base
    stale = {key for key in EXTENT_KEYS if key not in given}
    if "layout" in stale or over.get("layout") != base.get("layout"):
        stale.add("arguments")
    return _without(base, *stale)


def _scalars(node: Node) -> Iterator[Scalar]:
    match node:
        case Scalar():
            yield node
        case Sequence(items):
            for item in items:
                yield from _scalars(item)
        case Mapping():
            for key, value in node.entries():
                yield key
                yield from _scalars(value)
