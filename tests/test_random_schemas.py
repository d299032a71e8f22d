"""Random schemas, all the way: emitted, imported, typed, sized and run.

Three opinions of every size must agree: the emitted package, the tool's own evaluator,
and the arithmetic that the strategy drew along with the text.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import black
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from arenagen.chunks import MAX_LINES
from arenagen.compile import read_schema
from arenagen.lower import lower
from arenagen.model import Schema
from arenagen.render import render
from arenagen.sizing import SizingError, complete_inputs, size_arena
from arenagen.source import Text
from random_formulas import NoSizeError
from random_schemas import Inputs, RandomSchema, inputs, schemas

# A value beside itself, two comparisons of one value, a choice of two equals, and one
# of the larger.
AUTHORS_OWN = "PLR0124,PLR1716,RUF034,FURB136"


def keys_of(node: object) -> Iterator[str]:
    """Every key of a document, and what a text has of the formula language."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            yield from keys_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from keys_of(value)
    elif isinstance(node, str):
        yield from re.findall(r"[a-z_]+(?=\()|//|[%*+<>-]| (?:if|in|and|or|not) ", node)


def test_schemas_have_everything_that_the_language_has() -> None:
    wanted = {
        *("shape", "bytes", "uses", "regions", "layout", "arguments", "accessor"),
        *("when", "otherwise", "min_bytes", "token_major", "zero", "checksum", "init"),
        *("carve", "align", "at", "rows_method", "symbol", "default", "words", "clamp"),
        *("on_when", "off_when", "let", "functions", "parameters", "trims", "target"),
        *("max", "min", "cdiv", "count", "len", "next_in", "helper0", "//", "%", "*"),
        *("+", "-", " if ", " in ", " and ", " or ", " not "),
    }
    found: set[str] = set()

    @settings(
        max_examples=150, derandomize=True, database=None, phases=[Phase.generate]
    )
    @given(schemas())
    def each(schema: RandomSchema) -> None:
        found.update(keys_of(yaml.safe_load(schema.text)))

    each()
    assert wanted <= {re.sub(r"\d", "0", each) for each in found}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for packages, on the path of imports."""
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))


def emitted(schema: RandomSchema, folder: Path) -> tuple[Schema, ModuleType]:
    """The model of a schema, and its package."""
    model, _ = read_schema(Text("random.yaml", schema.text.encode()))
    if schema.package not in sys.modules:
        # Every other package has a chunk for each of its buffers.
        whole = len(schema.text) % 2 == 0
        plan = lower(model, MAX_LINES if whole else 1)
        files = render(plan, None, "random.yaml")
        for name, content in files.items():
            # The runtime is the same file in every package.
            if name.endswith(".py") and not name.startswith("runtime/"):
                assert black.format_str(content, mode=black.Mode()) == content, name
            path = folder / schema.package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        importlib.invalidate_caches()
    return model, importlib.import_module(schema.package)


def check_sizes(
    schema: RandomSchema, model: Schema, package: ModuleType, given: Inputs
) -> int | None:
    """The total, which all three agree on, buffer by buffer; None where none exists."""
    try:
        env = schema.environment(*given)
    except NoSizeError:
        # A default has no value, so that there is no config.
        with pytest.raises(package.SizeError):
            package.ModelConfig(**given.fields)
        return None
    try:
        wanted = schema.sizes(env)
    except NoSizeError:
        wanted = None
    try:
        sizes = package.BufferSizes.from_config(
            package.ModelConfig(**given.fields),
            **given.limits,
            levers=package.Levers(**given.levers),
            target=package.Target(**given.target),
        )
        found = (sizes.as_dict(), sizes.trimmed)
    except package.SizeError:
        found = None
    assert found == wanted
    config = {name: env[name] for name in schema.fields}
    try:
        arena = size_arena(
            model,
            complete_inputs(model, config, given.limits, given.levers, given.target),
        )
        found = ({each.name: each.nbytes for each in arena.buffers}, arena.trimmed)
    except SizingError:
        found = None
    assert found == wanted
    if wanted is None:
        return None
    assert sizes.total_bytes == arena.total_bytes == sum(wanted[0].values())
    return sizes.total_bytes


def check_sweep(
    schema: RandomSchema, package: ModuleType, given: Inputs, random: Random
) -> int:
    """Sizes over arrays of limits are those of each point; how many of them exist."""
    sweep = importlib.import_module(f"{schema.package}.sweep")
    config = package.ModelConfig(**given.fields)
    parts: dict[str, Any] = {
        "levers": package.Levers(**given.levers),
        "target": package.Target(**given.target),
    }
    tokens = [1, 2, 3, 7, 8, 40, given.limits["max_batch_tokens"], 2**62]
    points = [
        {
            **{name: random.randint(1, most) for name, most in schema.limits.items()},
            "max_batch_tokens": random.choice(tokens[: random.choice((7, 8))]),
        }
        for _ in range(12)
    ]
    found = []
    for point in points:
        try:
            sizes = package.BufferSizes.from_config(config, **point, **parts)
        except package.SizeError:
            continue
        if max(sizes.total_bytes, sizes.trimmed) < 2**63:
            found.append((point, [*sizes, sizes.total_bytes]))
    for some in (points, [point for point, _ in found]):
        if not some:
            continue
        arrays = {name: np.array([each[name] for each in some]) for name in points[0]}
        try:
            columns = sweep.sweep_sizes(config, **arrays, **parts)
        except (package.SizeError, sweep_error(package)):
            # Bounds around all points may be wider than what any of them takes.
            missing = some is points and len(found) < len(points)
            assert missing or arrays["max_batch_tokens"].max() > 10**9
            continue
        whole = (*columns.columns.values(), columns.trimmed, columns.total_bytes)
        rows = np.array(whole).T.tolist()
        assert rows == [row for _, row in found]
        totals = sweep.sweep_totals(config, **arrays, **parts)
        assert totals.tolist() == [row[-1] for row in rows]
    return len(found)


def sweep_error(package: ModuleType) -> type[Exception]:
    """What a package raises of a sweep that int64 may not hold."""
    module = importlib.import_module(f"{package.__name__}.runtime.sweep")
    error: type[Exception] = module.SweepError
    return error


def check_arena(package: ModuleType, given: Inputs, total: int) -> None:
    """An arena is built, used and released, and leaves nothing behind."""
    gpu = package.HostBackend()
    arguments: dict[str, Any] = {
        **given.limits,
        "levers": package.Levers(**given.levers),
        "target": package.Target(**given.target),
        "gpu": gpu,
    }
    config = package.ModelConfig(**given.fields)
    for placement in ("separate", "slab"):
        for debug in (None, package.Debug(guard=16)):
            with package.RandomArena(
                config, **arguments, placement=placement, debug=debug
            ) as arena:
                assert arena.sizes.total_bytes == total
                if placement == "separate" and debug is None:
                    # A backend promises 256 bytes; more has to be made room for.
                    spare = sum(
                        max(info.align - 256, 0)
                        for name, info in package.BUFFERS.items()
                        if getattr(arena, f"{name}_bytes")
                    )
                    assert gpu.live_bytes == total + spare
                if debug is not None:
                    for name in dir(arena):
                        if name.startswith("clear_") and "rows" not in name:
                            getattr(arena, name)(gpu.default_stream)
                    found = arena.check_guards(gpu.default_stream, gaps=True)
                    assert found == ()
            assert gpu.live_bytes == 0
    report = package.selfcheck(config, **arguments)
    assert report.ok, str(report)
    assert gpu.live_bytes == 0


def run_tool(folder: Path, *command: str) -> str:
    """The output of a tool that has complaints, else nothing."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    return done.stdout + done.stderr if done.returncode else ""


def exercise(folder: Path, examples: int) -> None:
    """All of it, for so many different schemas."""
    seen: set[str] = set()
    swept: list[int] = []

    @settings(
        # Some examples differ in their inputs alone.
        max_examples=3 * examples,
        derandomize=True,
        database=None,
        # An attempt at a smaller example takes a second, and shrinking a thousand.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schemas(), st.data())
    def each(schema: RandomSchema, data: st.DataObject) -> None:
        if len(seen | {schema.package}) > examples:
            return
        seen.add(schema.package)
        model, package = emitted(schema, folder)
        for _ in range(8):
            check_sizes(schema, model, package, data.draw(inputs(schema, huge=True)))
        for _ in range(8):
            given = data.draw(inputs(schema))
            total = check_sizes(schema, model, package, given)
            assert schema.subtracts or total is not None
        swept.append(check_sweep(schema, package, given, data.draw(st.randoms())))
        if not schema.subtracts:
            check_arena(package, given, total)

    each()
    assert sum(swept) > 4 * len(swept)
    packages = sorted(path.name for path in folder.iterdir())
    assert len(packages) == examples
    lint = ("ruff", "check", "--isolated", "--no-cache", "--ignore", AUTHORS_OWN)
    assert run_tool(folder, *lint, ".") == ""
    strict = ("mypy", "--strict", f"--cache-dir={folder / '.cache'}")
    assert run_tool(folder, *strict, *packages) == ""


def test_random_schemas_emit_packages_that_hold(folder: Path) -> None:
    exercise(folder, 10)


@pytest.mark.slow
@pytest.mark.long
def test_many_random_schemas_emit_packages_that_hold(folder: Path) -> None:
    exercise(folder, 200)
