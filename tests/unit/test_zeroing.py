"""The plan that the tool prints is the one that the emitted arena enqueues.

Bytes come from the oracle; the ranges of the emitted package are a second word on how
they are merged, by code that shares nothing with the tool's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import oracle
from arenagen.cli import cli
from arenagen.compile import Text, read_schema
from arenagen.sizing import complete_inputs
from arenagen.zeroing import find_group, zero_plan
from expected_configs import EXPECTED
from metrale_arena import BufferArena, HostBackend, Levers, ModelConfig

ROOT = Path(__file__).resolve().parents[2]
SCHEMA, _ = read_schema(
    Text("metrale.yaml", (ROOT / "schema" / "metrale.yaml").read_bytes())
)
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 65,
    "max_seq_len": 512,
    "kv_block_size": 16,
    "max_batch_size": 4,
}
QWEN = "Qwen3-Next-80B-A3B-Thinking"
EMPTY = {"int": 0, "bool": False, "str": "", "list": ()}


def inputs_of(fields: dict[str, Any]) -> Any:
    config = {each.name: EMPTY[each.type] for each in SCHEMA.config}
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}
    return complete_inputs(SCHEMA, config | given, LIMITS, {}, {})


@pytest.mark.parametrize("placement", ["separate", "slab"])
@pytest.mark.parametrize("tokens", [None, 1, 17, 64, 65, 900])
@pytest.mark.parametrize("model", sorted(EXPECTED))
def test_the_tool_and_the_arena_plan_the_same(
    model: str, tokens: int | None, placement: Any
) -> None:
    fields = EXPECTED[model]
    plan = zero_plan(
        SCHEMA, inputs_of(fields), find_group(SCHEMA, None), tokens, placement
    )
    with BufferArena(
        ModelConfig(**fields),  # type: ignore[arg-type]
        **LIMITS,
        levers=Levers(),
        gpu=HostBackend(1 << 50),
        placement=placement,
    ) as arena:
        emitted = arena.zero_plan(tokens)
    assert [(each.buffers, each.offset, each.nbytes) for each in plan] == list(emitted)


def test_one_token_of_a_group_clears_the_oracles_bytes() -> None:
    fields = EXPECTED["Qwen3-32B"]
    one = oracle.metrale_sizes(fields, **{**LIMITS, "max_batch_tokens": 1})
    full = oracle.metrale_sizes(fields, **LIMITS)
    group = find_group(SCHEMA, "zero_all")
    plan = zero_plan(SCHEMA, inputs_of(fields), group, 1, "separate")
    assert {each.buffers[0]: each.nbytes for each in plan} == {
        name: one[name] if name in oracle.METRALE_TOKEN_MAJOR else full[name]
        for name in oracle.METRALE_ZERO_ALL
    }


def run(*arguments: str) -> Any:
    config = str(ROOT / "tests" / "data" / f"{QWEN}.json")
    schema = str(ROOT / "schema" / "metrale.yaml")
    return CliRunner().invoke(
        cli, ["zero-plan", "-s", schema, "-c", config, *arguments]
    )


def test_the_command_prints_a_table_and_its_total() -> None:
    done = run("-M", "64", "-t", "1", "--placement", "slab")
    assert done.exit_code == 0
    assert f"{QWEN}.json: zero_all_rows, tokens=1" in done.stdout
    assert "logits, scratch, splitk_workspace" in done.stdout
    # 15 members in part, and three in full that lie side by side.
    assert "16 memsets, " in done.stdout


def test_a_pass_of_more_than_the_limit_is_told_as_such() -> None:
    more = run("-M", "64", "-t", "65").stdout
    assert "zero_all_rows, tokens=65" in more
    assert "(more than the limit of 64: in full)" in " ".join(more.split())
    assert "more than" not in run("-M", "64", "-t", "64").stdout


def test_the_command_prints_json() -> None:
    done = run("-M", "64", "--format", "json", "--placement", "slab")
    data = json.loads(done.stdout)
    assert data["memsets"] == 1
    assert data["bytes"] == data["ranges"][0]["bytes"]
    assert sorted(data["ranges"][0]["buffers"]) == sorted(oracle.METRALE_ZERO_ALL)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-t", "0"), "error: a pass of 0 tokens; at least 1"),
        (
            ("--method", "zero_most"),
            "error: no zeroing method is named `zero_most`; known: zero_all, "
            "zero_prefill_essentials",
        ),
        (
            ("--method", "zero_prefill_essentials", "-t", "1"),
            "error: `zero_prefill_essentials` has no form that is limited to a pass; "
            "add `rows_method` to the group `prefill_essentials`, or take one that "
            "has: --method zero_all",
        ),
    ],
)
def test_what_there_is_no_plan_of_is_refused(
    arguments: tuple[str, ...], text: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.strip() == text
