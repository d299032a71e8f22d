"""Where a run of buffers ends: by names, so that one more or less moves little."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arenagen import naming
from arenagen.chunks import MAX_LINES, chunks, pieces
from arenagen.compile import check_source, emit, read_schema
from arenagen.lower import lower
from arenagen.plan_buffers import BufferView
from arenagen.record import replace
from arenagen.source import Text

COUNT = 3000
# A schema of buffers that need most lines in the arena: of each, four groups list it.
HEAD = """\
arena: {class: GroupsArena, package: groups_arena, label: groups, doc: Groups.}
limits: {max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens.}}
config: {}
groups:
  a: {method: zero_a, rows_method: zero_a_rows, doc: One.}
  b: {method: zero_b, rows_method: zero_b_rows, doc: Two.}
  c: {method: zero_c, rows_method: zero_c_rows, doc: Three.}
  d: {method: zero_d, rows_method: zero_d_rows, doc: Four.}
buffers:
"""
MEMBER = """\
  a_buffer_{i}:
    {{doc: Rows., dtype: u8, shape: [M], token_major: true, zero: [a, b, c, d]}}
"""


@pytest.fixture(scope="module")
def views() -> tuple[BufferView, ...]:
    """The buffers of a large schema."""
    folder = str(Path(__file__).resolve().parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        from scale import schema
    finally:
        sys.path.remove(folder)
    model, _ = read_schema(Text("scale.yaml", schema(COUNT).encode()))
    parts = lower(model).chunks
    return tuple(buffer for part in parts for buffer in part.buffers)


def runs(views: tuple[BufferView, ...]) -> list[list[str]]:
    found = chunks(views, MAX_LINES)
    assert [each.start for each in found] == [0, *(each.stop for each in found[:-1])]
    assert found[-1].stop == len(views)
    return [[view.name for view in views[each]] for each in found]


def changed(before: list[list[str]], after: list[list[str]]) -> int:
    """How many numbers stand for other buffers, beside those that come or go."""
    assert len(before) == len(after)
    return sum(one != other for one, other in zip(before, after, strict=True))


def check_few(found: list[int]) -> None:
    """The run that the buffer is in, as a rule. It moves an end where its name, or that
    which no longer fits, has the smallest checksum of some 50; the runs behind then
    take a few ends to fall in with the old ones, one in two at each.
    """
    assert sum(found) <= 1.05 * len(found)
    assert max(found) <= 8


def test_a_buffer_more_moves_few_ends(views: tuple[BufferView, ...]) -> None:
    before = runs(views)
    found = []
    for at in range(0, COUNT, 23):
        new = replace(views[at % 5], name=f"other_{at}")
        found.append(changed(before, runs((*views[:at], new, *views[at:]))))
    check_few(found)


def test_a_buffer_less_moves_few_ends(views: tuple[BufferView, ...]) -> None:
    before = runs(views)
    found = [
        changed(before, runs((*views[:at], *views[at + 1 :])))
        for at in range(0, COUNT, 23)
    ]
    check_few(found)


def test_runs_that_begin_elsewhere_end_at_the_same_places(
    views: tuple[BufferView, ...],
) -> None:
    """Without the first 50 buffers, chunks are soon what they were."""
    before, after = runs(views), runs(views[50:])
    assert after[-20:] == before[-20:]


@pytest.mark.parametrize("most", [1, 450, 464, 600, 800, MAX_LINES])
def test_every_buffer_is_in_one_piece(views: tuple[BufferView, ...], most: int) -> None:
    count = len(chunks(views, most))
    names = [each.name for each in views]
    found = [names[each] for each in pieces(names, count, most)]
    assert [name for piece in found for name in piece] == names
    # None is missing, for each is listed by the chunk of its number.
    assert len(found) == count
    assert max(map(len, found)) <= max(most // 7, 2)


def test_there_is_a_chunk_for_each_piece(views: tuple[BufferView, ...]) -> None:
    """Even where every chunk is as full as it could be, whatever the names."""
    bare = replace(views[0], doc="", extent="", details=(), groups=(), inputs=())
    full = 1
    while len(chunks((bare,) * (full + 1), MAX_LINES)) == 1:
        full += 1
    assert full > 100
    names = [each.name for each in views]
    count = -(-len(names) // full)
    found = [len(names[each]) for each in pieces(names, count, MAX_LINES)]
    assert len(found) == count
    *others, _ = filter(None, found)
    assert min(others) >= full


def test_a_buffer_more_changes_one_piece(views: tuple[BufferView, ...]) -> None:
    names = [each.name for each in views]
    before = [names[each] for each in pieces(names, 40, MAX_LINES)]
    found = []
    for at in range(0, COUNT, 23):
        more = [*names[:at], "other", *names[at:]]
        after = [more[each] for each in pieces(more, 40, MAX_LINES)]
        found.append(changed(before, after))
    check_few(found)


def test_members_of_many_groups_fit() -> None:
    text = HEAD + "".join(MEMBER.format(i=i) for i in range(400))
    model, warnings = read_schema(Text("groups.yaml", text.encode()))
    files = emit(check_source(model, warnings, None), "groups.yaml")
    assert "arena_02.py" in files
    for path, content in files.items():
        assert content.count("\n") <= MAX_LINES, path


def test_numbers_have_as_many_digits_each() -> None:
    assert naming.chunk_numbers(2) == ["01", "02"]
    assert naming.chunk_numbers(99)[8:10] == ["09", "10"]
    assert naming.chunk_numbers(100)[::99] == ["001", "100"]
    assert naming.chunk_numbers(1234)[-1] == "1234"


@pytest.mark.parametrize("count", [2, 99, 100, 1234])
def test_members_of_chunks_are_closed_to_groups(count: int) -> None:
    for number in naming.chunk_numbers(count):
        for name in ("allocate", "checksum_set", "fill", "forget", "x_members"):
            owner = naming.private_owner(f"{name}_{number}")
            assert owner == "every large arena class"
    assert naming.private_owner("fill_2") is None
