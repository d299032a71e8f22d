"""No entry of a list can be lost from an emitted module without `check` telling.

Finds every list of buffers in the emitted modules by its syntax: a dictionary, the
arguments of a call, a tuple, a sum, or a row of assignments. Deletes each buffer's
entry from each of them, one at a time, and compares the folder with the rendering:
that file, and no other, must be reported as changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

import oracle
from arenagen import disk
from arenagen.compile import Text, check_source, emit, read_schema

ROOT = Path(__file__).resolve().parents[1]
NAMES = tuple(
    oracle.metrale_sizes(
        {}, max_batch_tokens=1, max_seq_len=1, kv_block_size=0, max_batch_size=1
    )
)
SPELLINGS = {name: name for name in NAMES} | {f"{name}_bytes": name for name in NAMES}
MODULES = ("arena.py", "buffers.py", "shapes.py", "sizes.py")

# What must be a list: the module, the function or class, its members, and how often.
PROMISED = [
    ("arena.py", "", NAMES, 1),  # the order in a slab
    ("arena.py", "BufferArena", NAMES, 2),  # slots, and the types of the pointers
    ("arena.py", "_allocate", NAMES, 2),  # pointers, and their bytes
    ("arena.py", "_forget", NAMES, 1),
    ("arena.py", "_plan_zero_all", oracle.METRALE_ZERO_ALL, 1),
    ("arena.py", "_plan_zero_prefill_essentials", oracle.METRALE_ZERO_PREFILL, 1),
    ("arena.py", "_plan_zero_all_rows", oracle.METRALE_ZERO_ALL, 1),
    ("arena.py", "_checksum_set", oracle.METRALE_CHECKSUM, 1),
    ("buffers.py", "", NAMES, 1),  # BUFFERS
    ("shapes.py", "buffer_shapes", NAMES, 1),
    ("sizes.py", "BufferSizes", NAMES, 1),  # fields
    ("sizes.py", "from_config", NAMES, 1),  # the arguments of the record
    ("sizes.py", "from_config", oracle.METRALE_TRIMMED, 2),  # zeros, and their sum
    ("sizes.py", "total_bytes", NAMES, 1),
    ("sizes.py", "as_dict", NAMES, 1),
]


class Entry(NamedTuple):
    """A buffer's part of a list: the lines from `first` to `last`, 1-based."""

    buffer: str
    first: int
    last: int


class List(NamedTuple):
    """Entries of several buffers, one below the other, in a function or class."""

    place: str
    entries: tuple[Entry, ...]

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.buffer for entry in self.entries))


def spelt(node: ast.AST | None) -> str | None:
    """The buffer that an expression stands for."""
    match node:
        case ast.Constant(value=str(word)) | ast.Name(id=word) | ast.keyword(arg=word):
            return SPELLINGS.get(word)
        case ast.Attribute(value=ast.Name(id="self" | "sizes"), attr=word):
            return SPELLINGS.get(word)
        case ast.Tuple(elts=[first, *_]):
            return spelt(first)
        case ast.Subscript(value=ast.Subscript() as value):
            return spelt(value)
        case ast.Subscript(slice=ast.Constant() as key):
            return spelt(key)
    return None


def target_of(node: ast.stmt) -> str | None:
    """The buffer that a statement, or all that is under a condition, gives a value."""
    match node:
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return spelt(target)
        case ast.If(body=[only], orelse=[]):
            return target_of(only)
    return None


def statements(body: Sequence[ast.stmt]) -> Iterator[Entry]:
    for node, following in zip_longest(body, body[1:]):
        if buffer := target_of(node):
            last = node
            if isinstance(following, ast.Expr) and isinstance(node, ast.AnnAssign):
                last = following  # its docstring
            yield Entry(buffer, node.lineno, last.end_lineno or last.lineno)


def items(nodes: Sequence[ast.expr | ast.keyword | None], end: int) -> Iterator[Entry]:
    """Entries of a container whose closing bracket stands on line `end`."""
    starts = [*(node.lineno if node else end for node in nodes), end]
    for place, node in enumerate(nodes):
        if buffer := spelt(node):
            yield Entry(buffer, starts[place], starts[place + 1] - 1)


def addends(node: ast.expr) -> Iterator[Entry]:
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        if buffer := spelt(node.right):
            yield Entry(buffer, node.right.lineno, node.right.lineno)
        node = node.left


def entries_of(node: ast.AST) -> Iterator[Sequence[Entry]]:
    for name in ("body", "orelse"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield tuple(statements(body))
    end = getattr(node, "end_lineno", 0)
    match node:
        case ast.Dict(keys=keys):
            yield tuple(items(keys, end))
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            yield tuple(items(elements, end))
        case ast.Call(args=arguments, keywords=keywords):
            yield tuple(items([*arguments, *keywords], end))
        case ast.BinOp():
            yield tuple(reversed(tuple(addends(node))))


def lists_below(tree: ast.AST, place: str) -> Iterator[List]:
    for node in ast.iter_child_nodes(tree):
        here = place
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            here = node.name
        # A part of a sum is no sum of its own.
        if not (isinstance(node, ast.BinOp) and isinstance(tree, ast.BinOp)):
            for entries in entries_of(node):
                tall = [entry for entry in entries if entry.last >= entry.first]
                if len({entry.buffer for entry in tall}) > 1:
                    yield List(here, tuple(tall))
        yield from lists_below(node, here)


def lists_of(text: str) -> list[List]:
    """The lists of a module; what stands on one line is none."""
    return list(lists_below(ast.parse(text), ""))


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """The rendering of the real schema."""
    schema, warnings = read_schema(
        Text("metrale.yaml", (ROOT / "schema/metrale.yaml").read_bytes())
    )
    families = Text("huggingface.yaml", (ROOT / "schema/huggingface.yaml").read_bytes())
    return emit(check_source(schema, warnings, families), "metrale.yaml")


@pytest.fixture(scope="module")
def folder(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package")
    disk.write(path, files)
    return path


def without(text: str, entries: Sequence[Entry]) -> tuple[str, list[str]]:
    """The text without some entries, and the lines that are gone."""
    numbers = {line for each in entries for line in range(each.first, each.last + 1)}
    left, gone = [], []
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        (gone if number in numbers else left).append(line)
    return "".join(left), gone


def check_deletions(
    folder: Path, files: dict[str, str], module: str, found: List
) -> None:
    text = files[module]
    for buffer in found.members:
        entries = [entry for entry in found.entries if entry.buffer == buffer]
        mutant, gone = without(text, entries)
        assert len(entries) <= sum(buffer in line for line in gone)
        # Reading a mutant is slow: the ends of a list stand for its middle.
        if buffer in (found.members[0], found.members[-1]):
            rest = tuple(name for name in found.members if name != buffer)
            assert (found.place, rest) in [
                (each.place, each.members) for each in lists_of(mutant)
            ]
        (folder / module).write_bytes(mutant.encode())
        (difference,) = disk.compare(folder, files)
        assert (difference.path, difference.kind) == (module, "changed")
        assert (difference.before, difference.after) == (mutant, text)
    (folder / module).write_bytes(text.encode())
    assert disk.compare(folder, files) == []


@pytest.mark.parametrize(
    ("module", "place", "members", "count"),
    PROMISED,
    ids=[f"{each[0]}-{each[1]}-{len(each[2])}" for each in PROMISED],
)
def test_deleting_an_entry_of_a_promised_list_is_reported(
    folder: Path,
    files: dict[str, str],
    module: str,
    place: str,
    members: tuple[str, ...],
    count: int,
) -> None:
    found = [
        each
        for each in lists_of(files[module])
        if each.place == place and sorted(each.members) == sorted(members)
    ]
    assert len(found) == count
    for each in found:
        check_deletions(folder, files, module, each)


def test_deleting_an_entry_of_any_other_list_is_reported(
    folder: Path, files: dict[str, str]
) -> None:
    promised = {(each[0], each[1], tuple(sorted(each[2]))) for each in PROMISED}
    for module in MODULES:
        for found in lists_of(files[module]):
            key = (module, found.place, tuple(sorted(found.members)))
            if key not in promised:
                check_deletions(folder, files, module, found)


def assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[Entry, ...]]:
    """For each buffer that statements give a value, where they do, on every path."""
    for node in body:
        if isinstance(node, ast.If) and node.orelse:
            then, other = (
                {entries[0].buffer: entries for entries in assignments(side)}
                for side in (node.body, node.orelse)
            )
            yield from (then[name] + other[name] for name in then if name in other)
        elif buffer := target_of(node):
            yield (Entry(buffer, node.lineno, node.end_lineno or node.lineno),)


def test_deleting_any_assignment_of_a_size_is_reported(
    folder: Path, files: dict[str, str]
) -> None:
    text = files["sizes.py"]
    (function,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == "from_config"
    )
    found = list(assignments(function.body))
    assert sorted(entries[0].buffer for entries in found) == sorted(NAMES)
    for entry in (entry for entries in found for entry in entries):
        mutant, gone = without(text, [entry])
        assert gone
        (folder / "sizes.py").write_bytes(mutant.encode())
        (difference,) = disk.compare(folder, files)
        assert (difference.path, difference.kind) == ("sizes.py", "changed")
    (folder / "sizes.py").write_bytes(text.encode())
    assert disk.compare(folder, files) == []
