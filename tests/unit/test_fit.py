"""The largest limit that fits: against brute force, and what it says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import oracle
from arenagen import fit as fitting
from arenagen.cli import cli
from arenagen.devices import DEVICES, find_device, parse_bytes
from arenagen.errors import ArenagenError
from arenagen.fit import FitError, find_limit, fit
from arenagen.load import load
from arenagen.model import Schema
from arenagen.points import Points
from arenagen.record import replace
from arenagen.sizing import Inputs, SizingError, complete_inputs
from expected_configs import EXPECTED
from metrale_arena import ModelConfig

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
SCHEMA = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 20,
    "max_seq_len": 300,
    "kv_block_size": 16,
    "max_batch_size": 40,
}
MODELS = ["Qwen3-32B", "GLM-5.3-Flash", "Nemotron-3-Nano-30B-A3B"]


def inputs_of(stem: str, **levers: int | bool | str) -> Inputs:
    config = ModelConfig.from_hf(DATA / f"{stem}.json")
    fields = {each.name: getattr(config, each.name) for each in SCHEMA.config}
    return complete_inputs(SCHEMA, fields, LIMITS, levers, {})


def brute(totals: dict[int, int], budget: int) -> int | None:
    return max(
        (value for value, total in totals.items() if total <= budget), default=None
    )


def budgets(totals: dict[int, int]) -> Iterator[int]:
    """Budgets at, below and above what each value takes; and none, and plenty."""
    yield 0
    for total in set(totals.values()):
        yield from (total - 1, total, total + 1)
    yield 2 * max(totals.values())


@pytest.mark.parametrize("stem", MODELS)
@pytest.mark.parametrize("name", LIMITS)
def test_every_answer_is_the_largest_of_all_values(stem: str, name: str) -> None:
    limit = replace(find_limit(SCHEMA, name), maximum=24)
    totals = {
        value: sum(
            oracle.metrale_sizes(EXPECTED[stem], **{**LIMITS, name: value}).values()
        )
        for value in range(limit.minimum, 25)
    }
    inputs = inputs_of(stem)
    for budget in budgets(totals):
        found = fit(SCHEMA, inputs, limit, budget)
        assert found.value == brute(totals, budget)
        if found.value is None:
            assert found.size.total_bytes == totals[limit.minimum] > budget
        else:
            assert found.size.total_bytes == totals[found.value] <= budget
            assert found.beyond == totals.get(found.value + 1)


def test_a_policy_of_many_splits_is_fitted_too() -> None:
    limit = replace(find_limit(SCHEMA, "max_batch_size"), maximum=40)
    totals = {
        value: sum(
            oracle.metrale_sizes(
                EXPECTED["Qwen3-32B"],
                **{**LIMITS, "max_batch_size": value},
                splitk="auto",
            ).values()
        )
        for value in range(1, 41)
    }
    inputs = inputs_of("Qwen3-32B", attn_decode_splitk=-1)
    for budget in budgets(totals):
        assert fit(SCHEMA, inputs, limit, budget).value == brute(totals, budget)


@pytest.mark.parametrize("stem", MODELS)
def test_the_answer_fits_and_one_more_does_not(stem: str) -> None:
    for gigabytes in (1, 24, 141):
        found = fit(SCHEMA, inputs_of(stem), SCHEMA.token_limit, gigabytes * 10**9)
        assert found.value is not None
        assert found.unproven == ()
        for tokens, fits in ((found.value, True), (found.value + 1, False)):
            limits = {**LIMITS, "max_batch_tokens": tokens}
            total = sum(oracle.metrale_sizes(EXPECTED[stem], **limits).values())
            assert (total <= gigabytes * 10**9) is fits


def test_growth_is_what_a_token_adds_over_whole_tiles() -> None:
    found = fit(SCHEMA, inputs_of("Qwen3-32B"), SCHEMA.token_limit, 24 * 2**30)
    # 5120 elements of BF16, and (64 + 2 * 8) * 128 of them.
    assert found.growth["hidden_states"] == 10240
    assert found.growth["qkv_output"] == 20480
    assert "logits" not in found.growth
    assert found.total_growth == sum(found.growth.values())


SMALL = """
arena: {{class: Arena, package: small_arena, label: small, doc: Small.}}
limits:
  max_tokens: {{symbol: M, tokens: true, minimum: 1, doc: Tokens.}}
  blocks: {{default: 1, maximum: 200, minimum: 0, doc: Blocks of a cache.}}
constants: {{STEPS: {{value: [4, 8, 64], doc: Sizes of a graph.}}}}
config: {{width: {{doc: Width.}}}}
buffers:
  hidden: {{doc: Residual stream., dtype: u8, shape: [M, width]}}
  cache: {{doc: A cache., {cache}}}
"""


def small(cache: str, budget: int, name: str = "blocks") -> fitting.Fit:
    schema: Schema = load(SMALL.format(cache=cache), "small.yaml")
    limits = {"max_tokens": 4}
    inputs = complete_inputs(schema, {"width": 8}, limits, {}, {})
    return fit(schema, inputs, find_limit(schema, name), budget)


@pytest.mark.parametrize(
    ("budget", "value"),
    [(31, None), (32, None), (33, 100), (57, 124), (131, 198), (132, 199), (133, 200)],
)
def test_sizes_that_fall_and_rise_again(budget: int, value: int | None) -> None:
    # 200 - blocks below 100, and from there on blocks - 99, beside 32 of hidden.
    cache = "bytes: 200 - blocks if blocks < 100 else blocks - 99"
    found = small(cache, budget)
    assert found.value == value
    assert found.unproven == ("cache",)
    if value is None:
        assert found.size.total_bytes == 232


@pytest.mark.parametrize(
    "cache",
    [
        "bytes: 0, min_bytes: 300 - blocks",
        "bytes: 0, when: width > 9, otherwise: 300 - blocks",
        "bytes: 300, when: blocks < 150",
        "uses: {a: {when: blocks < 150, doc: A., bytes: 300}, b: {doc: B., bytes: 1}}",
        "uses: {a: {doc: A., bytes: 300 - blocks}, b: {doc: B., bytes: 1}}",
    ],
)
def test_what_may_shrink_is_named(cache: str) -> None:
    assert small(cache, 10**9).unproven == ("cache",)
    assert small(cache.replace("blocks", "4"), 10**9).unproven == ()


def test_a_trim_that_a_limit_sets_off_may_shrink_its_buffers() -> None:
    trims = "\ntrims: {t: {doc: T., when: blocks > 99, buffers: [cache]}}\n"
    schema = load(SMALL.format(cache="bytes: 1000") + trims, "small.yaml")
    inputs = complete_inputs(schema, {"width": 8}, {"max_tokens": 4}, {}, {})
    limit = replace(find_limit(schema, "blocks"), maximum=150)
    found = fit(schema, inputs, limit, 100)
    assert (found.value, found.unproven) == (150, ("cache",))
    assert fit(schema, inputs, replace(limit, maximum=99), 100).value is None
    assert fit(schema, inputs, replace(limit, maximum=99), 1032).value == 99


def test_a_value_without_a_size_does_not_fit() -> None:
    # No step is larger than 64; the buffer is shown to grow up to there.
    found = small("bytes: 'next_in(STEPS, blocks)'", 10**9)
    assert (found.value, found.beyond, found.unproven) == (64, None, ())
    assert small("bytes: 'next_in(STEPS, blocks)'", 95).value == 8


def test_everything_fits() -> None:
    found = small("bytes: blocks", 10**9)
    assert (found.value, found.maximum, found.beyond) == (200, 200, None)


def test_values_are_tried_one_by_one_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MAX_SCAN", 50)
    cache = "bytes: 10 if blocks < 50 else 1000"
    with pytest.raises(FitError) as raised:
        small(cache, 100)
    assert str(raised.value) == (
        "cache: not shown to grow with `blocks`, and none of the 50 values up to 200 "
        "fits; smaller ones were not tried"
    )
    monkeypatch.setattr(fitting, "MAX_SCAN", 200)
    assert small(cache, 100).value == 49


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The values of a limit at which sizes are worked out, one by one."""
    values: list[int] = []
    for name in ("_evaluated", "total_of"):
        work = getattr(Points, name)

        def counted(points: Points, value: int, *of: Any, work: Any = work) -> Any:
            values.append(value)
            return work(points, value, *of)

        monkeypatch.setattr(Points, name, counted)
    return values


@pytest.mark.parametrize("mebibytes", [200, 400, 1500, 24 * 1024, 200 * 1024])
@pytest.mark.parametrize("stem", MODELS)
def test_a_million_token_limits_take_few_evaluations(
    stem: str, mebibytes: int, evaluated: list[int]
) -> None:
    limit = replace(SCHEMA.token_limit, maximum=2**20)
    found = fit(SCHEMA, inputs_of(stem), limit, mebibytes * 2**20)
    assert found.unproven == ()
    assert found.maximum == 2**20
    assert 2 <= len(evaluated) <= 25
    assert len({*evaluated}) == len(evaluated)


def test_values_that_are_tried_one_after_the_other_are_sized_at_once(
    evaluated: list[int],
) -> None:
    cache = "bytes: 10 if blocks < 50 else 1000"
    assert small(cache, 100).value == 49
    # The smallest and the largest value, and what the answer tells.
    assert sorted({*evaluated}) == [0, 49, 50, 200]
    assert len(evaluated) <= 8


def test_limits_without_a_maximum_take_little_more(evaluated: list[int]) -> None:
    for gibibytes in (1, 24, 2**20, 2**32):
        evaluated.clear()
        found = fit(
            SCHEMA, inputs_of("Qwen3-32B"), SCHEMA.token_limit, gibibytes * 2**30
        )
        assert found.value is not None
        assert found.maximum == 2**63 - 1
        assert len(evaluated) <= 60
    assert found.value > 2**40


def test_no_size_at_the_minimum_is_told_as_such() -> None:
    with pytest.raises(SizingError, match="cache: `blocks - 5` is -5"):
        small("bytes: blocks - 5", 10**9)


def test_limits_go_by_name_or_symbol() -> None:
    assert find_limit(SCHEMA, None) is find_limit(SCHEMA, "M") is SCHEMA.token_limit
    assert find_limit(SCHEMA, "max_seq_len").name == "max_seq_len"
    with pytest.raises(FitError, match="no limit is named `tokens`; known: max_batch_"):
        find_limit(SCHEMA, "tokens")


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4096 B", 4096),
        ("24GiB", 25769803776),
        ("24gib", 25769803776),
        ("24 GB", 24000000000),
        ("1.5GiB", 1610612736),
        ("0.1kb", 100),
        ("0.0001KB", 0),
        ("2TiB", 2199023255552),
    ],
)
def test_amounts_of_memory(text: str, nbytes: int) -> None:
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize(
    "text", ["", "GiB", "-1", "1e9", "24G", "1,5GB", "٣GB", "24GiBs", "1.GB", "9" * 21]
)
def test_what_is_no_amount_of_memory(text: str) -> None:
    with pytest.raises(ArenagenError, match="is no amount of memory; write 24GiB"):
        parse_bytes(text)


def test_devices_have_the_memory_that_drivers_report_or_vendors_publish() -> None:
    # nvidia-smi says 81559MiB, which is 85520809984 bytes.
    assert find_device("h100").nbytes == 85_520_809_984
    # rocm-smi says this of an MI300X.
    assert find_device("mi300x").nbytes == 206_141_652_992
    assert find_device("H200").nbytes == 143771 * 2**20
    assert find_device("gb10").nbytes == 128_000_000_000
    sources = {name: device.source for name, device in DEVICES.items()}
    assert [name for name, source in sources.items() if source == "vendor"] == [
        "gb10",
        "mi325x",
        "mi355x",
    ]
    assert all(name == name.lower() for name in DEVICES)
    with pytest.raises(ArenagenError, match="no device is named 'h20'; did you mean"):
        find_device("h20")


QWEN = DATA / "Qwen3-32B.json"
DEEPSEEK = DATA / "DeepSeek-V3.json"


def run(*arguments: str | Path, code: int = 0) -> Result:
    command = ["fit", "-s", ROOT / "schema/metrale.yaml", *arguments]
    result = CliRunner().invoke(cli, [str(each) for each in command])
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_the_command_prints_data() -> None:
    data = json.loads(
        run(
            *("-c", QWEN, "--budget", "24GiB", "--reserve", "1GiB", "--tp", "2"),
            *("-l", "max_seq_len=4096", "--format", "json"),
        ).stdout
    )
    assert (data["budget"], data["reserve"], data["tp"]) == (24 * 2**30, 2**30, 2)
    assert (data["limit"], data["maximum"]) == ("max_batch_tokens", 2**63 - 1)
    assert data["limits"] == {
        "max_seq_len": 4096,
        "kv_block_size": 16,
        "max_batch_size": 32,
    }
    half = {
        **EXPECTED["Qwen3-32B"],
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
    }
    limits = {**data["limits"], "max_batch_tokens": data["value"]}
    sizes = oracle.metrale_sizes(half, **limits)
    assert {each["name"]: each["bytes"] for each in data["buffers"]} == sizes
    assert data["total_bytes"] == sum(sizes.values()) == 23 * 2**30 - data["left"]
    assert 0 <= data["left"] < data["next_bytes"] - data["total_bytes"]
    assert data["unproven"] == []


def test_several_configs_are_rows_of_one_table() -> None:
    text = run("-c", QWEN, "-c", DEEPSEEK, "--gpu", "h200").stdout
    # 143771 MiB.
    assert text.startswith("h200: 140.40 GiB as its driver reports\n140.40 GiB for the")
    assert "│ Qwen3-32B.json" in text and "│ DeepSeek-V3.json" in text
    for line in text.splitlines()[-2:]:
        assert " fits; " in line and line.endswith("too many; all smaller values fit")


def test_one_config_shows_what_limits_it() -> None:
    text = run("-c", QWEN, "--budget", "8GB", "--reserve", "4GB").stdout
    assert "7.45 GiB less 3.73 GiB: 3.73 GiB for the arena" in text
    assert "│ ffn_act_q8" in text
    assert "bytes per token" in text
    # ffn_act_q8 takes 25,600 * 4 bytes a token.
    assert " 102,400 │" in text and ".0 │" not in text


def test_where_the_memory_comes_from_is_told() -> None:
    text = run("-c", QWEN, "--gpu", "GB10", "--reserve", "70").stdout
    # 128 * 10**9 bytes.
    assert text.startswith(
        "gb10: 119.21 GiB as its vendor publishes\n"
        "119.21 GiB less 70 bytes: 119.21 GiB for the arena\n"
    )
    for arguments, source in (
        (("--gpu", "l4"), "driver"),
        (("--gpu", "gb10"), "vendor"),
        (("--budget", "1GB"), None),
    ):
        data = json.loads(run("-c", QWEN, *arguments, "--format", "json").stdout)
        assert data["budget_source"] == source


def test_growth_is_told_by_the_limit_that_is_sought() -> None:
    arguments = ("--budget", "4GiB", "--limit-name", "max_seq_len", "-M", "64")
    text = run("-c", QWEN, *arguments).stdout
    assert "bytes per max_seq_len" in text


def test_nothing_fits() -> None:
    text = run("-c", QWEN, "-c", DEEPSEEK, "--budget", "9MiB", code=1).stdout
    limits = {
        "max_batch_tokens": 1,
        "max_seq_len": 65536,
        "kv_block_size": 16,
        "max_batch_size": 32,
    }
    least = sum(oracle.metrale_sizes(EXPECTED["DeepSeek-V3"], **limits).values())
    said = f"DeepSeek-V3.json: nothing fits: with max_batch_tokens=1 it takes {least:,}"
    assert said in text
    assert f"{least - 9 * 2**20:,} too many" in text
    assert "Qwen3-32B.json: max_batch_tokens " in text


def test_the_largest_value_that_there_is() -> None:
    arguments = ("-c", QWEN, "--budget", "4GiB", "--limit-name", "kv_block_size")
    assert (
        "Qwen3-32B.json: the largest kv_block_size that there is fits, "
        "9,223,372,036,854,775,807; smaller values may not, for scratch may shrink\n"
    ) in run(*arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give one of --budget and --gpu"),
        ("--budget 1GB --gpu h200", "give one of --budget and --gpu"),
        ("--budget 1G", "error: '1G' is no amount of memory"),
        ("--budget 1GB --reserve x", "error: 'x' is no amount of memory"),
        ("--budget 1GB --reserve 1GB", "--reserve keeps all of 1,000,000,000 bytes"),
        ("--gpu h2000", "error: no device is named 'h2000'; did you mean `h200`?"),
        (
            "--budget 1GB --limit-name tokens",
            "error: no limit is named `tokens`; known: max_batch_tokens, ",
        ),
        (
            "--budget 1GB -M 4",
            "Error: max_batch_tokens is what `fit` finds: leave it out, or find "
            "another limit with --limit-name\n",
        ),
        (
            "--budget 1GB --limit-name max_seq_len -l max_seq_len=4",
            "max_seq_len is what `fit` finds: leave it out",
        ),
    ],
)
def test_a_bad_option_is_told(arguments: str, message: str) -> None:
    result = run("-c", QWEN, *arguments.split(), code=2)
    assert message in result.stderr
    assert result.stdout == ""
