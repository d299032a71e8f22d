"""Sizes that do not exist: the emitted package and the tool refuse the same inputs.

Each formula is undefined where `b` is 0. The package must raise SizeError with the
formula in its text, and agree with the tool wherever a size exists.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from arenagen.compile import Text, check_source, emit, read_schema
from arenagen.disk import write
from arenagen.sizing import SizingError, complete_inputs, size_arena

FORMULAS = {
    "quotient": "a // b",
    "rest": "a % b",
    "steps": "cdiv(a, b)",
    "raised": "align(a, b)",
    "bounded": "clamp(a, 1, b)",
    "listed": "next_in(SIZES, a + 9 - b)",
}
SCHEMA = """
arena: {class: BufferArena, package: undefined, label: x, doc: Odd sizes.}
limits:
  tokens: {tokens: true, minimum: 1, doc: Tokens of a pass.}
  b: {minimum: 0, doc: A divisor that may be 0.}
config:
  a: {doc: A width.}
constants:
  SIZES: {value: [4, 8, 16], doc: Sizes that there are.}
buffers:
"""


@pytest.fixture(scope="module")
def text() -> str:
    entries = [
        f"  {name}: {{doc: One formula., when: pick == {place}, bytes: '{formula}'}}"
        for place, (name, formula) in enumerate(FORMULAS.items())
    ]
    pick = "  pick: {doc: Which buffer there is.}\n"
    return SCHEMA.replace("constants:", f"{pick}constants:") + "\n".join(entries) + "\n"


@pytest.fixture(scope="module")
def package(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("emitted")
    schema, warnings = read_schema(Text("undefined.yaml", text.encode()))
    files = emit(check_source(schema, warnings, None), "undefined.yaml")
    write(folder / "undefined_arena", files)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("undefined_arena")
    finally:
        sys.path.remove(str(folder))


def tool(text: str, pick: int, a: int, b: int) -> int:
    schema, _ = read_schema(Text("undefined.yaml", text.encode()))
    config = {"a": a, "pick": pick}
    inputs = complete_inputs(schema, config, {"tokens": 1, "b": b}, {}, {})
    return size_arena(schema, inputs).total_bytes


@pytest.mark.parametrize("name", FORMULAS)
def test_an_undefined_size_is_refused_with_its_formula(
    name: str, text: str, package: ModuleType
) -> None:
    pick = list(FORMULAS).index(name)
    config = package.ModelConfig(a=9, pick=pick)
    with pytest.raises(package.SizeError) as caught:
        package.BufferSizes.from_config(config, tokens=1, b=0)
    assert str(caught.value).startswith(f"{name}: {FORMULAS[name]}: ")
    with pytest.raises(SizingError) as refused:
        tool(text, pick, 9, 0)
    assert str(refused.value).startswith(f"{name}: ")
    assert FORMULAS[name] in str(refused.value)


# Worked out by hand for a = 9 and b = 4.
VALUES = {
    "quotient": 2,
    "rest": 1,
    "steps": 3,
    "raised": 12,
    "bounded": 4,
    "listed": 16,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_size_that_exists_is_the_same_in_both(
    name: str, text: str, package: ModuleType
) -> None:
    pick = list(FORMULAS).index(name)
    config = package.ModelConfig(a=9, pick=pick)
    sizes = package.BufferSizes.from_config(config, tokens=1, b=4)
    assert sizes.total_bytes == tool(text, pick, 9, 4) == VALUES[name]
