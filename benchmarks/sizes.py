"""The emitted size calculator, against one by hand and against ready code objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from common import DATA, SCHEMA, Row, calls, pairs
from sizes_by_hand import sizes_by_hand

import metrale_arena
from arenagen.formula import Expr, IfElse, spell
from arenagen.imports import Imports
from arenagen.load import load
from arenagen.lower_scope import MODULES
from arenagen.lower_sizes import SizeLowering
from arenagen.statements import Assign
from metrale_arena import BufferSizes, Levers, ModelConfig
from metrale_arena import sizes as module
from metrale_arena.target import DEFAULT_TARGET

MODEL = DATA / "Qwen3-Next-80B-A3B-Thinking.json"
LIMITS = {
    "max_batch_tokens": 8192,
    "max_seq_len": 65536,
    "kv_block_size": 16,
    "max_batch_size": 32,
}


def formulas() -> Iterator[tuple[str, Expr]]:
    """What each let and each buffer is, on its own, in order."""
    modules = {name: Imports() for name in MODULES}
    lowering = SizeLowering(load(SCHEMA.read_text(), "metrale.yaml"), modules)
    scope = lowering.sizes_scope("sizes")
    definitions, statements = lowering.definitions(scope), lowering.statements(scope)
    yield from definitions.items()
    for each in statements:
        if isinstance(each, Assign):
            yield each.name, each.value
        else:
            for then, other in zip(each.then, each.other, strict=True):
                assert isinstance(then, Assign) and isinstance(other, Assign)
                assert then.name == other.name
                yield then.name, IfElse(each.condition, then.value, other.value)


def ready_codes() -> Callable[..., BufferSizes]:
    """One code object for each let and each buffer, evaluated in turn."""
    codes = [(name, compile(spell(expr), "", "eval")) for name, expr in formulas()]
    names = BufferSizes._fields[:-1]

    def evaluated(config: ModelConfig, levers: Levers, **limits: int) -> BufferSizes:
        known: dict[str, Any] = {"config": config, "levers": levers, **limits}
        known["target"] = DEFAULT_TARGET
        for name, code in codes:
            known[name] = eval(code, vars(module), known)
        return BufferSizes(*[known[name] for name in names], 0)

    return evaluated


def rows() -> list[Row]:
    """Both figures, for a model of experts and linear attention."""
    config, levers = ModelConfig.from_hf(MODEL), Levers()
    evaluated = ready_codes()

    def emitted() -> object:
        return BufferSizes.from_config(config, **LIMITS, levers=levers)

    def by_hand() -> object:
        return sizes_by_hand(config, **LIMITS, levers=levers)

    def ready() -> object:
        return evaluated(config, levers, **LIMITS)

    assert emitted() == by_hand() == ready()
    figure = f"`BufferSizes.from_config`, {len(metrale_arena.BUFFERS)} buffers"
    return [
        pairs(
            figure,
            "straight line by hand",
            calls(emitted, 500),
            calls(by_hand, 500),
            1.05,
            31,
            "what is left is a call for each check that a size is not negative, and "
            "locals where a person nests formulas.",
        ),
        pairs(
            figure,
            "ready code objects",
            calls(emitted, 500),
            calls(ready, 500),
            0.5,
            31,
            "the constructor, the checks of the arguments and four calls of functions "
            "are the same on both sides.",
        ),
    ]
