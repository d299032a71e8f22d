"""Tensor parallelism: what one rank has, in the tool and in the emitted package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import oracle
from arenagen.cli import cli
from arenagen.load import load
from arenagen.lower import lower
from arenagen.render import render
from arenagen.shard import ShardError, shard_config
from expected_configs import EXPECTED
from metrale_arena import ConfigError, ModelConfig

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "schema/metrale.yaml").read_text("utf-8")
SCHEMA = load(TEXT, "metrale.yaml")
DATA = ROOT / "tests/data"
SHARED = (
    "num_attention_heads",
    "num_key_value_heads",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "mamba_num_heads",
    "n_groups",
)
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 16,
    "max_seq_len": 65536,
    "kv_block_size": 16,
    "max_batch_size": 32,
}


def both(fields: dict[str, Any], tp: int) -> dict[str, Any] | str:
    """What a rank has by the tool and by the package, which must be the same."""
    config = ModelConfig(**fields)
    names = [each.name for each in SCHEMA.config]
    try:
        tool = shard_config(SCHEMA, {n: getattr(config, n) for n in names}, tp)
    except ShardError as error:
        with pytest.raises(ConfigError) as raised:
            config.shard(tp=tp)
        assert str(raised.value) == str(error)
        return str(error)
    rank = config.shard(tp=tp)
    assert {name: getattr(rank, name) for name in names} == tool
    return tool


def test_ranks_share_the_head_counts_and_nothing_else() -> None:
    assert tuple(each.name for each in SCHEMA.config if each.shard) == SHARED
    assert [each.name for each in SCHEMA.config if each.shard == "kv_heads"] == [
        "num_key_value_heads"
    ]


def test_one_of_two_ranks_of_glm() -> None:
    config = ModelConfig.from_hf(DATA / "GLM-5.3-Flash.json").shard(tp=2)
    heads = {name: getattr(config, name) for name in SHARED}
    assert heads == {
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "linear_num_key_heads": 32,
        "linear_num_value_heads": 32,
        "mamba_num_heads": 0,
        "n_groups": 0,
    }
    assert config.head_dim == 256
    assert config.linear_key_head_dim == config.linear_value_head_dim == 128
    # Experts, the vocabulary and every width are whole.
    assert (config.num_experts, config.moe_intermediate_size) == (288, 2048)
    assert (config.hidden_size, config.vocab_size) == (4096, 154880)


@pytest.mark.parametrize(
    ("heads", "tp", "each"),
    [(8, 1, 8), (8, 2, 4), (8, 8, 1), (8, 16, 1), (2, 8, 1), (1, 64, 1), (0, 4, 0)],
)
def test_key_and_value_heads_are_divided_or_copied(
    heads: int, tp: int, each: int
) -> None:
    found = both({"num_attention_heads": 64, "num_key_value_heads": heads}, tp)
    assert isinstance(found, dict)
    assert found["num_key_value_heads"] == each
    assert found["num_attention_heads"] == 64 // tp


@pytest.mark.parametrize(
    ("fields", "tp", "message"),
    [
        (
            {"num_attention_heads": 30},
            4,
            "num_attention_heads=30: cannot be divided among tp=4 ranks",
        ),
        # Only key and value heads are copied.
        (
            {"num_attention_heads": 2},
            4,
            "num_attention_heads=2: cannot be divided among tp=4 ranks",
        ),
        (
            {"num_attention_heads": 12, "num_key_value_heads": 8},
            12,
            "num_key_value_heads=8: can neither be divided among tp=12 ranks nor "
            "replicated over them",
        ),
        (
            {"num_key_value_heads": 8},
            3,
            "num_key_value_heads=8: can neither be divided among tp=3 ranks nor "
            "replicated over them",
        ),
        (
            {"linear_num_key_heads": 5},
            2,
            "linear_num_key_heads=5: cannot be divided among tp=2 ranks",
        ),
        (
            {"linear_num_value_heads": 5},
            2,
            "linear_num_value_heads=5: cannot be divided among tp=2 ranks",
        ),
        (
            {"mamba_num_heads": 64, "n_groups": 1},
            2,
            "n_groups=1: cannot be divided among tp=2 ranks",
        ),
        (
            {"mamba_num_heads": 9},
            2,
            "mamba_num_heads=9: cannot be divided among tp=2 ranks",
        ),
    ],
)
def test_what_does_not_divide_is_an_error(
    fields: dict[str, Any], tp: int, message: str
) -> None:
    assert both(fields, tp) == message


COUNTS = st.integers(0, 64)


@given(st.fixed_dictionaries(dict.fromkeys(SHARED, COUNTS)), st.integers(1, 70))
def test_all_ranks_together_have_every_head(fields: dict[str, int], tp: int) -> None:
    found = both(fields, tp)
    kv = fields["num_key_value_heads"]
    copied = 0 < kv < tp and tp % kv == 0
    divides = all(
        value % tp == 0 for name, value in fields.items() if name != SHARED[1]
    )
    assert isinstance(found, dict) == (divides and (copied or kv % tp == 0))
    if isinstance(found, dict):
        for name, value in fields.items():
            whole = tp if copied and name == SHARED[1] else value
            assert found[name] * tp == whole


@pytest.mark.parametrize("tp", [0, -1, True, 2.0, "2"])
def test_ranks_are_a_count(tp: Any) -> None:
    with pytest.raises(ConfigError, match=r"^tp is .*(; at least 1|, not an int)$"):
        ModelConfig().shard(tp=tp)


def run(*arguments: str | Path, code: int = 0) -> str:
    command = ["sizes", "-s", ROOT / "schema/metrale.yaml", "-M", "16", *arguments]
    result = CliRunner().invoke(cli, [str(each) for each in command])
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


@pytest.mark.parametrize(
    ("stem", "tp", "fields"),
    [
        ("Qwen3-32B", 16, {"num_attention_heads": 4, "num_key_value_heads": 1}),
        (
            "Qwen3-Next-80B-A3B-Thinking",
            4,
            {
                "num_attention_heads": 4,
                "num_key_value_heads": 1,
                "linear_num_key_heads": 4,
                "linear_num_value_heads": 8,
            },
        ),
        (
            "Nemotron-3-Nano-30B-A3B",
            2,
            {
                "num_attention_heads": 16,
                "num_key_value_heads": 1,
                "mamba_num_heads": 32,
                "n_groups": 4,
            },
        ),
    ],
)
def test_the_command_line_sizes_one_rank(
    stem: str, tp: int, fields: dict[str, int]
) -> None:
    config = DATA / f"{stem}.json"
    data = json.loads(run("-c", config, "--tp", str(tp), "--format", "json"))
    expected = oracle.metrale_sizes(EXPECTED[stem] | fields, **LIMITS)
    assert {each["name"]: each["bytes"] for each in data["buffers"]} == expected
    assert data["tp"] == tp
    assert f"tp={tp}" in run("-c", config, "--tp", str(tp)).splitlines()[0]
    header, row, *_ = run("-c", config, "--tp", str(tp), "--format", "csv").splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=False))["tp"] == str(tp)


def test_a_model_that_does_not_divide_is_named_with_its_file() -> None:
    config = DATA / "Qwen3.5-27B.json"
    assert run("-c", config, "--tp", "3", code=2) == (
        f"error: {config}: num_key_value_heads=4: can neither be divided among tp=3 "
        "ranks nor replicated over them\n"
    )
    assert "0 is not in the range x>=1" in run("-c", config, "--tp", "0", code=2)


WHOLE = TEXT.replace("    shard: heads\n", "").replace("    shard: kv_heads\n", "")


def test_a_schema_whose_fields_are_whole() -> None:
    schema = load(WHOLE, "metrale.yaml")
    fields = {each.name: getattr(ModelConfig(), each.name) for each in schema.config}
    assert shard_config(schema, fields, 1) == fields
    with pytest.raises(ShardError) as raised:
        shard_config(schema, fields, 2)
    assert str(raised.value) == (
        "tp=2: the schema of `metrale_arena` says of no config field that ranks share "
        "it; add `shard: heads` or `shard: kv_heads` to those"
    )
    files = render(lower(schema), None, "metrale.yaml")
    assert "shard" not in files["config.py"]
    assert "runtime/shard.py" not in files
