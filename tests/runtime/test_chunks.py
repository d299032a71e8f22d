"""A package whose modules are chunks does all that the whole one does.

The arena of metrale.yaml once more, with modules of a few hundred lines, held against
the committed package.
"""

from __future__ import annotations

import ast
import importlib
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support import DENSE, MOE, limits

import metrale_arena
from arenagen.compile import check_source, read_schema
from arenagen.disk import write
from arenagen.lower import lower
from arenagen.lower_families import lower_families
from arenagen.render import black_format, render
from arenagen.source import Text

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 800
TABLES = {"arena": "SLAB_ORDER", "buffers": "BUFFERS", "uses": "USES"}
SPLIT = (
    "arena",
    "buffers",
    "pointers",
    "shapes",
    "sizes",
    "sweep_columns",
    "uses",
)


def emitted(most_lines: int) -> dict[str, str]:
    text = (ROOT / "schema/metrale.yaml").read_text(encoding="utf-8")
    text = text.replace("package: metrale_arena", "package: chunked_arena")
    schema, warnings = read_schema(Text("metrale.yaml", text.encode()))
    table = (ROOT / "schema/huggingface.yaml").read_bytes()
    source = check_source(schema, warnings, Text("huggingface.yaml", table))
    assert source.families is not None
    families = lower_families(source.families, schema)
    return render(lower(schema, most_lines), families, "metrale.yaml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chunks")
    write(folder / "chunked_arena", emitted(MOST_LINES))
    return folder


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[ModuleType]:
    sys.path.insert(0, str(folder))
    yield importlib.import_module("chunked_arena")
    sys.path.remove(str(folder))


def chunk_paths(folder: Path, module: str) -> list[Path]:
    found = (folder / "chunked_arena").glob(f"{module}_*.py")
    return sorted(found, key=lambda path: int(path.stem.rpartition("_")[2]))


def public(module: ModuleType) -> set[str]:
    return {name for name in vars(module) if not name.startswith("_")}


def test_what_fits_is_not_split() -> None:
    whole = emitted(10_000)
    assert "runtime/sizes.py" not in whole
    for path in (ROOT / "generated/metrale_arena").rglob("*.py"):
        name = path.relative_to(ROOT / "generated/metrale_arena").as_posix()
        assert whole.pop(name) == path.read_text(encoding="utf-8"), name
    assert [*whole] == ["py.typed"]


@pytest.mark.parametrize("module", SPLIT)
def test_no_chunk_is_longer_than_asked(folder: Path, module: str) -> None:
    paths = chunk_paths(folder, module)
    assert len(paths) > 1
    assert [path.stem for path in paths] == [
        f"{module}_{number:02}" for number in range(1, len(paths) + 1)
    ]
    for path in [folder / "chunked_arena" / f"{module}.py", *paths]:
        assert path.read_text(encoding="utf-8").count("\n") <= MOST_LINES


def test_every_buffer_is_in_one_chunk(folder: Path) -> None:
    names = []
    for path in chunk_paths(folder, "buffers"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        (table,) = (node.value for node in tree.body if isinstance(node, ast.AnnAssign))
        assert isinstance(table, ast.Dict)
        keys = [key for key in table.keys if isinstance(key, ast.Constant)]
        chunk = [str(key.value) for key in keys]
        docs = " ".join((ast.get_docstring(tree) or "").split())
        assert docs.endswith(f" Of the buffers from {chunk[0]} to {chunk[-1]}.")
        names += chunk
    assert names == [*metrale_arena.BUFFERS]


@pytest.mark.parametrize("module", SPLIT)
def test_no_chunk_says_that_it_holds_all(folder: Path, module: str) -> None:
    for path in chunk_paths(folder, module):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in [tree, *tree.body]:
            if isinstance(node, ast.Module | ast.FunctionDef):
                doc = ast.get_docstring(node) or ""
                assert not re.search(r"\b(every|all|each) buffers?\b|trims", doc), doc


def test_a_package_of_chunks_offers_the_same(package: ModuleType) -> None:
    assert package.__all__ == metrale_arena.__all__
    for path in (ROOT / "generated/metrale_arena").glob("*.py"):
        ours = importlib.import_module(f"chunked_arena.{path.stem}")
        whole = importlib.import_module(f"metrale_arena.{path.stem}")
        defined = {
            name
            for name in public(whole)
            if getattr(vars(whole)[name], "__module__", "").startswith(whole.__name__)
        }
        assert defined <= public(ours)
        assert TABLES.get(path.stem, "__doc__") in vars(ours)


def test_modules_can_be_imported_in_any_order(folder: Path) -> None:
    code = (
        "import importlib, pathlib, sys\n"
        "for path in pathlib.Path('chunked_arena').glob('*.py'):\n"
        "    for name in [each for each in sys.modules if 'chunked' in each]:\n"
        "        del sys.modules[name]\n"
        "    importlib.import_module(f'chunked_arena.{path.stem}')\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


def test_the_tables_are_the_same(package: ModuleType) -> None:
    ours = [(name, tuple(info)) for name, info in package.BUFFERS.items()]
    whole = [(name, tuple(info)) for name, info in metrale_arena.BUFFERS.items()]
    assert ours == whole
    uses = importlib.import_module("chunked_arena.uses").USES
    placed = importlib.import_module("metrale_arena.uses").USES
    assert {name: [*each] for name, each in uses.items()} == {
        name: [*each] for name, each in placed.items()
    }


@pytest.mark.parametrize("fields", [DENSE, MOE], ids=["dense", "everything"])
@pytest.mark.parametrize("tokens", [1, 33])
def test_sizes_and_shapes_are_the_same(
    package: ModuleType, fields: dict[str, Any], tokens: int
) -> None:
    found = []
    for module in (package, metrale_arena):
        config, bounds = module.ModelConfig(**fields), limits(tokens)
        levers, target = module.Levers(), module.Target()
        shapes = importlib.import_module(f"{module.__name__}.shapes")
        uses = importlib.import_module(f"{module.__name__}.uses")
        sizes = module.BufferSizes.from_config(config, **bounds, levers=levers)
        found.append(
            [
                [*sizes.as_dict().items(), sizes.trimmed, sizes.total_bytes],
                shapes.buffer_shapes(config, **bounds, levers=levers, target=target),
                [
                    module.required_bytes(config, name, use, **bounds, levers=levers)
                    for name, each in uses.USES.items()
                    for use in each
                ],
            ]
        )
    assert found[0] == found[1]
    assert [*found[0][1]] == [*metrale_arena.BUFFERS]


def test_slots_carry_the_same_docs(package: ModuleType) -> None:
    def slots(module: ModuleType) -> dict[str, str]:
        found: dict[str, str] = {}
        for kind in reversed(module.BufferArena.__mro__):
            found |= vars(kind).get("__slots__", {})
        return found

    assert slots(package) == slots(metrale_arena)
    config, bounds = package.ModelConfig(**DENSE), limits(5)
    with package.BufferArena(config, **bounds, levers=package.Levers()) as arena:
        assert not hasattr(arena, "__dict__")
    assert package.BufferArena.__doc__ == metrale_arena.BufferArena.__doc__
    assert {name for name in vars(metrale_arena.BufferArena) if name[0] != "_"} == {
        name
        for kind in package.BufferArena.__mro__[:-1]
        for name in vars(kind)
        if name[0] != "_"
    }


@pytest.mark.parametrize("fields", [DENSE, MOE], ids=["dense", "everything"])
@pytest.mark.parametrize("kind", ["", "glm5_next"])
def test_sweeps_are_the_same(
    package: ModuleType, fields: dict[str, Any], kind: str
) -> None:
    bounds = {**limits(1), "max_batch_tokens": np.array([1, 33, 4000])}
    found = []
    for module in (package, metrale_arena):
        config = module.ModelConfig(**{**fields, "model_type": kind})
        sweep = importlib.import_module(f"{module.__name__}.sweep")
        sizes = sweep.sweep_sizes(config, **bounds, levers=module.Levers())
        columns = {name: each.tolist() for name, each in sizes.columns.items()}
        found.append((columns, sizes.trimmed.tolist(), sizes.total_bytes.tolist()))
    assert found[0] == found[1]
    assert [*found[0][0]] == [*metrale_arena.BUFFERS]
    assert any(found[0][1]) == (kind == "glm5_next")


def test_a_record_of_chunks_is_a_record(package: ModuleType) -> None:
    names = metrale_arena.BufferSizes._fields
    assert package.BufferSizes._fields == names
    sizes = package.BufferSizes(*range(len(names)))
    whole = metrale_arena.BufferSizes(*range(len(names)))
    assert repr(sizes) == repr(whole)
    assert sizes == whole and hash(sizes) == hash(whole)
    for place, name in enumerate(names):
        assert getattr(sizes, name) == place
    assert sizes._asdict() == whole._asdict()
    assert sizes._replace(trimmed=7, residual=9) == whole._replace(
        trimmed=7, residual=9
    )
    assert type(sizes._replace()) is package.BufferSizes
    assert package.BufferSizes(**sizes._asdict()) == sizes
    copied = pickle.loads(pickle.dumps(sizes))
    assert copied == sizes and type(copied) is package.BufferSizes
    assert sizes != sizes._replace(trimmed=-1)
    assert not hasattr(sizes, "__dict__")


def test_a_record_of_chunks_takes_each_size_once(package: ModuleType) -> None:
    kind, sizes = package.BufferSizes, range(len(package.BufferSizes._fields))
    for wrong in (
        lambda: kind(),
        lambda: kind(*sizes, 0),
        lambda: kind(*sizes, trimmed=1),
        lambda: kind(*sizes[:-1]),
        lambda: kind(*sizes[:-1], other=1),
        lambda: kind(*sizes)._replace(other=1),
    ):
        with pytest.raises(TypeError, match=r"^BufferSizes takes 47 sizes, each"):
            wrong()
    with pytest.raises(AttributeError, match="is not changed"):
        kind(*sizes).trimmed = 1


@pytest.mark.parametrize("fields", [DENSE, MOE], ids=["dense", "everything"])
def test_the_selfcheck_passes(package: ModuleType, fields: dict[str, Any]) -> None:
    config = package.ModelConfig(**fields)
    report = package.selfcheck(config, **limits(5), levers=package.Levers())
    assert report.ok, report


def test_chunks_read_well(folder: Path) -> None:
    for path in (folder / "chunked_arena").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert black_format(text) == text, path
    for tool in (
        ("ruff", "check", "--isolated", "--no-cache"),
        ("ruff", "check", "--no-cache", "--config", str(ROOT / "pyproject.toml")),
        ("mypy", "--strict", f"--cache-dir={folder / 'cache'}"),
    ):
        command = [sys.executable, "-m", *tool, "chunked_arena"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


TRIMMED = """
arena: {class: SmallArena, package: small_chunks, label: small, doc: Small.}
limits: {max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens.}}
config: {width: {doc: Width.}}
buffers:
  hidden: {doc: Rows., bytes: M * 8}
  rest: {doc: The rest., bytes: M + width}
trims:
  thirds:
    doc: A trim that reads one product twice.
    when: M * width % 3 == 0 or M * width > 50
    buffers: [rest]
"""


def test_trims_of_chunks_share_terms(folder: Path, package: ModuleType) -> None:
    schema, _ = read_schema(Text("small.yaml", TRIMMED.encode()))
    write(folder / "small_chunks", render(lower(schema, 1), None, "small.yaml"))
    assert len([*(folder / "small_chunks").glob("sizes_*.py")]) == 2
    small = importlib.import_module("small_chunks")
    sweep = importlib.import_module("small_chunks.sweep")
    config, levers = small.ModelConfig(width=2), small.Levers()
    for tokens, wanted in {3: (24, 0, 5), 4: (32, 6, 0), 26: (208, 0, 28)}.items():
        sizes = small.BufferSizes.from_config(
            config, max_batch_tokens=tokens, levers=levers
        )
        assert tuple(sizes) == wanted
        total = sweep.sweep_totals(
            config, max_batch_tokens=np.array([tokens]), levers=levers
        )
        assert total.tolist() == [sum(wanted[:2])]
