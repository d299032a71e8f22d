"""The emitted size calculator, against one by hand and against ready code objects."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from common import DATA, Row, calls, pairs
from sizes_by_hand import sizes_by_hand

import metrale_arena
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


def ready_codes() -> Callable[..., BufferSizes]:
    """One code object for each let and each buffer, evaluated in turn."""
    source = textwrap.dedent(inspect.getsource(BufferSizes.from_config))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    codes = [
        (statement.targets[0].id, compile(ast.Expression(statement.value), "", "eval"))
        for statement in function.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id != "sizes"
    ]
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
            "by hand no term is computed twice and one branch skips all that a gate "
            "switches off; it would take both in the lowering, at the cost of code "
            "that no longer reads buffer by buffer.",
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
