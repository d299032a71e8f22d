"""Sizes at many limits: over arrays against a loop, and what `fit` evaluates."""

from __future__ import annotations

import numpy as np
from common import DATA, SCHEMA, Row, calls, pairs

from arenagen.fit import MAX_SCAN, fit
from arenagen.load import load
from arenagen.points import Points
from arenagen.record import replace
from arenagen.sizing import complete_inputs, size_arena
from metrale_arena import BufferSizes, Levers, ModelConfig
from metrale_arena.sweep import sweep_sizes, sweep_totals

MODEL = DATA / "Qwen3-Next-80B-A3B-Thinking.json"
LIMITS = {"max_seq_len": 65536, "kv_block_size": 16, "max_batch_size": 32}
POINTS = 10**6
# Points that the loop is measured at, spread over all of them.
SAMPLED = 2000
BUDGET = 24 * 2**30


def rows() -> list[Row]:
    """The cost of a point, and of `fit` over 2**20 token limits."""
    config, levers = ModelConfig.from_hf(MODEL), Levers()
    tokens = np.arange(1, POINTS + 1)
    sampled = range(1, POINTS + 1, POINTS // SAMPLED)

    def at_once() -> object:
        return sweep_sizes(config, max_batch_tokens=tokens, **LIMITS, levers=levers)

    def totals() -> object:
        return sweep_totals(config, max_batch_tokens=tokens, **LIMITS, levers=levers)

    def one_by_one() -> object:
        for each in sampled:
            BufferSizes.from_config(
                config, max_batch_tokens=each, **LIMITS, levers=levers
            )
        return None

    sizes, loop = calls(at_once), calls(one_by_one)
    total = calls(totals)
    yardstick = "`BufferSizes.from_config` in a loop, a point"
    found = [
        pairs(
            f"{what} at {POINTS:,} token limits, a point",
            yardstick,
            lambda measure=measure: measure() / POINTS,
            lambda: loop() / len(sampled),
            0.083,
            9,
        )
        for what, measure in (("`sweep_sizes`", sizes), ("`sweep_totals`", total))
    ]
    schema = load(SCHEMA.read_text(encoding="utf-8"), SCHEMA.name)
    fields = {each.name: getattr(config, each.name) for each in schema.config}
    given = complete_inputs(schema, fields, LIMITS, {}, {})
    limit = replace(schema.token_limit, maximum=2**20)
    points = Points(schema, given, limit.name)
    values = range(1, MAX_SCAN + 1)
    evaluation = calls(lambda: size_arena(schema, given), 5)
    totals_of_tool = calls(lambda: points.totals(values))
    found.append(
        pairs(
            f"totals at {MAX_SCAN:,} token limits in the tool, a point",
            "one evaluation of all sizes",
            lambda: totals_of_tool() / MAX_SCAN,
            evaluation,
            0.083,
            9,
        )
    )
    found.append(
        pairs(
            "`fit` over 2**20 token limits",
            "one evaluation of all sizes",
            calls(lambda: fit(schema, given, limit, BUDGET)),
            evaluation,
            25,
            15,
        )
    )
    return found
