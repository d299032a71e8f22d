"""Schemas of hundreds and thousands of buffers, all the way.

Emitted in modules that can be reviewed, sized like the tool's own evaluator, and built,
cleared and released on host memory.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from arenagen.chunks import MAX_LINES
from arenagen.compile import check_source, emit, read_schema
from arenagen.disk import compare, write
from arenagen.model import Schema
from arenagen.plan import CHUNKED
from arenagen.sizing import complete_inputs, size_arena
from arenagen.source import Text

ROOT = Path(__file__).resolve().parents[1]
CONFIG = {"hidden_size": 24, "num_heads": 3, "head_dim": 16, "num_experts": 5}
LIMITS = {"max_batch_tokens": 3, "max_batch_size": 2}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of imports, and the benchmarks' too."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [each for each in sys.modules if each.startswith("scale_arena")]:
        del sys.modules[name]


def emitted(count: int) -> tuple[Schema, dict[str, str]]:
    from scale import schema

    return emitted_text(schema(count))


def emitted_text(text: str) -> tuple[Schema, dict[str, str]]:
    model, warnings = read_schema(Text("scale.yaml", text.encode()))
    return model, emit(check_source(model, warnings, None), "scale.yaml")


def check_arena(package: ModuleType, sizes: dict[str, int]) -> None:
    """Build the arena, clear all of it and one row of it, and release it."""
    gpu = package.HostBackend()
    config = package.ModelConfig(**CONFIG)
    levers = package.Levers()
    arena = package.ScaleArena(config, **LIMITS, levers=levers, gpu=gpu)
    assert gpu.live_bytes == sum(sizes.values())
    row = package.BufferSizes.from_config(
        config, **{**LIMITS, "max_batch_tokens": 1}, levers=levers
    ).as_dict()
    members = [
        name for name, info in package.BUFFERS.items() if info.groups == ("zero_all",)
    ]
    assert len(members) == len(sizes) // 5
    for tokens in (1, 3):
        for name in sizes:
            gpu.memset(getattr(arena, name), 0xFF, sizes[name])
        arena.zero_all_rows(gpu.default_stream, tokens=tokens)
        for name in sizes:
            data = bytearray(sizes[name])
            gpu.copy_d2h(data, getattr(arena, name))
            due = row[name] if tokens == 1 else sizes[name]
            due *= name in members
            assert data == bytes(due) + b"\xff" * (sizes[name] - due), name
    assert arena.buffer_4().slots.shape == (2,)
    assert arena.buffer_1.attention(2).shape == (2, 48)
    arena.release()
    assert gpu.live_bytes == 0
    assert not any(getattr(arena, name) for name in sizes)


def check_package(folder: Path, count: int) -> None:
    model, files = emitted(count)
    for path, text in files.items():
        assert text.count("\n") <= MAX_LINES, path
    write(folder / "scale_arena", files)
    package = importlib.import_module("scale_arena")
    config = package.ModelConfig(**CONFIG)
    levers = package.Levers()
    doc = " ".join(str(package.ScaleArena.zero_all.__doc__).split())
    named = f"Members: buffer_0, buffer_5, buffer_10 and {count // 5 - 3} more, as"
    assert (named in doc) is (count // 5 > 100)
    found = package.BufferSizes.from_config(config, **LIMITS, levers=levers)
    inputs = complete_inputs(model, CONFIG, LIMITS, {}, {})
    sizes = {each.name: each.nbytes for each in size_arena(model, inputs).buffers}
    assert len(sizes) == count
    assert list(found.as_dict().items()) == list(sizes.items())
    assert found.total_bytes == sum(sizes.values())
    check_arena(package, sizes)
    report = package.selfcheck(config, **LIMITS, levers=levers)
    assert report.ok, report


def test_hundreds_of_buffers(folder: Path) -> None:
    check_package(folder, 700)
    # What shrinks loses its chunks.
    _, files = emitted(20)
    extra = {each.path for each in compare(folder / "scale_arena", files)} - {*files}
    assert extra >= {"arena_01.py", "sizes_02.py", "uses_03.py", "runtime/sizes.py"}
    write(folder / "scale_arena", files)
    assert compare(folder / "scale_arena", files) == []
    left = {path.name for path in (folder / "scale_arena").glob("*.py")}
    assert left == {path for path in files if path.endswith(".py") and "/" not in path}


# A buffer of each kind: in a group, of several uses, plain, gated, of regions.
KINDS = range(5)


@pytest.fixture
def large(folder: Path) -> dict[str, str]:
    return emitted(1000)[1]


def entry(kind: int, number: int) -> str:
    from scale import ENTRIES

    return ENTRIES[kind].format(i=number)


def check_few_changed(before: dict[str, str], text: str) -> None:
    """Hold that a text changes the modules of one chunk, one piece of the slab order,
    and what counts the buffers or names all of their classes.
    """
    _, after = emitted_text(text)
    assert before.keys() == after.keys()
    changed = {path for path in before if before[path] != after[path]}
    shared = {"__init__.py", "arena.py"}
    arenas = {path for path in changed if re.fullmatch(r"arena_\d+\.py", path)}
    chunks = {path[-5:-3] for path in changed - shared - arenas}
    assert len(chunks) == 1, changed
    assert f"arena_{min(chunks)}.py" in arenas
    assert len(arenas) <= 2, arenas
    assert len(changed) <= len(CHUNKED) + len(shared) + 1
    for path in changed:
        assert after[path].count("\n") <= MAX_LINES, path


@pytest.mark.parametrize("kind", KINDS)
def test_one_buffer_more_changes_few_files(large: dict[str, str], kind: int) -> None:
    from scale import schema

    for at in (100, 520, 900):
        front = f"  buffer_{at}:"
        text = schema(1000).replace(front, entry(kind, 5000 + at) + front)
        check_few_changed(large, text)


@pytest.mark.parametrize("kind", KINDS)
def test_one_buffer_less_changes_few_files(large: dict[str, str], kind: int) -> None:
    from scale import schema

    for at in (105, 525, 905):
        text = schema(1000).replace(entry(kind, at + kind), "")
        assert text != schema(1000)
        check_few_changed(large, text)


@pytest.mark.slow
def test_thousands_of_buffers(folder: Path) -> None:
    check_package(folder, 6000)
