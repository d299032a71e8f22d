"""The sizes of the emitted package against the oracle, the reference and hand sums.

Also what feeds them: the config, the limits, the levers and how they are spelled in
the environment, the public helpers, and the errors for what cannot be sized.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import (
    ALL_LEVERS,
    GLM,
    NAMES,
    NO_LEVERS,
    QWEN3_NEXT,
    Case,
    Fields,
    Limits,
    Options,
    levers_of,
    limits,
    no_count,
)

import metrale_arena as package
import oracle
import strategies
from expected_configs import EXPECTED
from expected_synthetic import SYNTHETIC
from metrale_arena import (
    BUFFERS,
    SPLITK_AUTO,
    SPLITK_LEGACY,
    BufferSizes,
    ConfigError,
    Levers,
    ModelConfig,
    SizeError,
    Target,
    q2_dequant_scratch_bytes,
    q12_batched_scratch_bytes,
    q12_batched_scratch_bytes_varlen,
    ssm_rowwise_w_bf16_bytes,
    ssm_rowwise_w_bf16_bytes_for,
    ssm_rowwise_w_bf16_layer_bytes,
)

PACKAGE = Path(package.__file__).parent

# Found examples are not stored: the same ones run everywhere.
thorough = settings(
    max_examples=2000,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
brief = settings(thorough, max_examples=300)

FLAGS = ("attn_gated", "mrope_interleaved")
# Every family that the table knows, published files and others.
CONFIGS = EXPECTED | SYNTHETIC
COUNTS = tuple(
    name
    for name in oracle.CONFIG_FIELDS
    if name not in (*FLAGS, "model_type", "layer_types")
)


def assert_as_the_oracle(case: Case) -> None:
    sizes = case.sizes()
    expected = case.expected
    assert list(sizes.as_dict().items()) == list(expected.items())
    assert {name: getattr(sizes, name) for name in expected} == expected
    assert sizes.total_bytes == sum(expected.values())
    assert sizes.trimmed == oracle.metrale_trimmed(
        case.config, **case.limits, **case.options, sm_count=case.sm_count
    )


@thorough
@given(
    config=strategies.configs(),
    bounds=strategies.limits(),
    options=strategies.levers(),
    sm_count=st.sampled_from((1, 48, 132, 148)),
)
def test_every_size_is_the_oracles_for_any_config(
    config: Fields, bounds: Limits, options: Options, sm_count: int
) -> None:
    assert_as_the_oracle(Case(config, bounds, options, sm_count))


@pytest.mark.parametrize(
    "options",
    [{}, ALL_LEVERS, {"glm_trim": False, "splitk": "auto"}, {"splitk": 3}],
    ids=["default", "all", "untrimmed", "pinned"],
)
@pytest.mark.parametrize(
    "bounds",
    [
        limits(1),
        limits(2, seq_len=1, block=0, batch=1),
        limits(17, seq_len=4095, block=1, batch=33),
        limits(4096, seq_len=131072, block=64, batch=128),
        limits(8192, seq_len=65536),
        limits(8193, seq_len=200000, batch=160),
        limits(65536, seq_len=1048576, block=256, batch=300),
    ],
    ids=lambda bounds: "-".join(map(str, bounds.values())),
)
@pytest.mark.parametrize("name", CONFIGS)
def test_every_size_is_the_oracles_for_real_configs(
    name: str, bounds: Limits, options: Options
) -> None:
    assert_as_the_oracle(Case(CONFIGS[name], bounds, options))
    assert_as_the_oracle(Case({**CONFIGS[name], "adapter_max_rank": 16}, bounds))


def test_the_declarations_are_the_references() -> None:
    assert tuple(BUFFERS) == NAMES

    def having(group: str) -> tuple[str, ...]:
        return tuple(name for name, info in BUFFERS.items() if group in info.groups)

    major = tuple(name for name, info in BUFFERS.items() if info.token_major)
    probed = tuple(name for name, info in BUFFERS.items() if info.checksum)
    assert major == oracle.METRALE_TOKEN_MAJOR
    assert probed == oracle.METRALE_CHECKSUM
    assert having("zero_all") == oracle.METRALE_ZERO_ALL
    assert having("zero_prefill_essentials") == oracle.METRALE_ZERO_PREFILL
    assert [name for name, info in BUFFERS.items() if info.carved] == [
        "ssm_rowwise_w_bf16"
    ]
    assert all(info.doc for info in BUFFERS.values())


def test_worked_values_of_qwen3_next_at_one_token() -> None:
    sizes = Case(QWEN3_NEXT, limits(1)).sizes()
    assert sizes.hidden_states == 4096
    assert sizes.qkv_output == 294912
    assert sizes.attn_output == 8192
    assert sizes.gate_logits == 1024
    assert sizes.logits == 303872
    assert sizes.ssm_qkvz == 393216
    assert sizes.ssm_ba == 256
    assert sizes.ssm_deinterleaved == 393216
    assert sizes.ssm_gates == 256


def test_total_and_scratch_are_equal_for_1_31_and_32_sequences() -> None:
    one, most, all_rows = (
        Case(QWEN3_NEXT, limits(8192, batch=batch)).sizes() for batch in (1, 31, 32)
    )
    assert one.total_bytes == most.total_bytes == all_rows.total_bytes
    assert one.scratch == most.scratch == all_rows.scratch
    assert one == most == all_rows


@pytest.mark.parametrize(("batch", "rows"), [(160, 161), (192, 193)])
def test_logits_hold_one_row_more_than_a_large_batch(batch: int, rows: int) -> None:
    sizes = Case(QWEN3_NEXT, limits(8192, batch=batch)).sizes()
    assert sizes.logits == rows * 151936 * 2


def test_the_total_counts_the_two_buffers_once_forgotten() -> None:
    sizes = Case({"hidden_size": 4096, "o_groups": 8, "o_lora_rank": 4}, limits(100))
    without = sum(
        nbytes
        for name, nbytes in sizes.sizes().as_dict().items()
        if name not in ("o_latent", "norm_unit_w")
    )
    # o_latent 100 * 32 * 2 and norm_unit_w 4096 * 2
    assert sizes.sizes().total_bytes == without + 6400 + 8192


def test_three_position_streams_are_sized_as_three() -> None:
    one, three = (
        Case({"mrope_interleaved": mrope}, limits(65536, block=0)).sizes().scratch
        for mrope in (False, True)
    )
    # Staging is the widest: 8 * (16 * 8192 + 64) of rows, 4 * 65536 for each stream,
    # 8 * 65536 of slots, then 128 + 40 + 32 + 64 of tables.
    assert one == 1049088 + 262144 + 524288 + 264
    assert three == 1049088 + 3 * 262144 + 524288 + 264


def test_a_trim_takes_its_buffers_out_of_the_total_and_reports_them() -> None:
    trimmed = Case(GLM, limits(8192)).sizes()
    full = Case(GLM, limits(8192), {"glm_trim": False}).sizes()
    gone = {
        name
        for name, nbytes in trimmed.as_dict().items()
        if nbytes != full.as_dict()[name]
    }
    assert gone == set(oracle.METRALE_TRIMMED)
    assert not any(getattr(trimmed, name) for name in gone)
    assert trimmed.total_bytes + trimmed.trimmed == full.total_bytes
    assert full.trimmed == 0


def test_sizes_are_an_immutable_record() -> None:
    case = Case(QWEN3_NEXT, limits(1))
    sizes = case.sizes()
    with pytest.raises(AttributeError):
        sizes.hidden_states = 1  # type: ignore[misc]
    assert sizes == case.sizes()
    assert sizes != Case(QWEN3_NEXT, limits(2)).sizes()
    assert "hidden_states=4096, " in repr(sizes)


def test_as_dict_is_the_callers_own() -> None:
    sizes = Case(QWEN3_NEXT, limits(1)).sizes()
    sizes.as_dict()["hidden_states"] = 0
    assert sizes.as_dict()["hidden_states"] == 4096


# Purity


class NoEnviron:
    """Stands for os.environ and refuses every use."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"os.environ.{name} was used")

    def __getitem__(self, name: str) -> str:
        raise AssertionError(f"{name} was read")

    __contains__ = __iter__ = __len__ = __getitem__


def never(*arguments: object, **named: object) -> Any:
    raise AssertionError("a clock was read")


def test_sizes_with_levers_given_read_no_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for case in (Case(QWEN3_NEXT, limits()), Case(GLM, limits(), ALL_LEVERS)):
        model, arguments = case.model, case.arguments
        with monkeypatch.context() as patch:
            # The class too: a default argument holds the mapping that once was there.
            patch.setattr(type(os.environ), "__getitem__", NoEnviron.__getitem__)
            patch.setattr(os, "environ", NoEnviron())
            patch.setattr(os, "getenv", never)
            sizes = BufferSizes.from_config(model, **arguments)
        assert sizes.as_dict() == case.expected


def test_sizes_with_levers_given_call_nothing_outside_the_package() -> None:
    """No clock, no environment, no file: every call is the package's or a builtin."""
    foreign: list[str] = []

    def watch(frame: FrameType, event: str, callee: Any) -> None:
        if event == "call":
            if PACKAGE not in Path(frame.f_code.co_filename).parents:
                foreign.append(frame.f_code.co_qualname)
        elif event == "c_call":
            module = getattr(callee, "__module__", None)
            if module not in (None, "builtins") and callee is not sys.setprofile:
                foreign.append(f"{module}.{callee.__qualname__}")

    for case in (Case(QWEN3_NEXT, limits()), Case(GLM, limits(), ALL_LEVERS)):
        model, arguments = case.model, case.arguments
        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            BufferSizes.from_config(model, **arguments)
        finally:
            sys.setprofile(before)
    # What a NamedTuple is made and copied with; its constructor has no file.
    own = {"<lambda>", "namedtuple.<locals>._replace", "namedtuple.<locals>._make"}
    assert [name for name in foreign if name not in own] == []


def test_sizes_with_levers_given_do_not_change_with_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case(GLM, limits())
    monkeypatch.setenv("METRALE_GLM_ARENA_TRIM", "0")
    monkeypatch.setenv("METRALE_FP8_ROWWISE", "1")
    monkeypatch.setenv("METRALE_ATTN_DECODE_SPLITK", "auto")
    assert case.sizes().as_dict() == case.expected


def test_sizes_without_levers_read_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("METRALE_GGUF_NATIVE_Q2", "1")
    monkeypatch.setenv("METRALE_GGUF_NATIVE_Q2_MMQ", "1")
    monkeypatch.setenv("METRALE_FP8_ROWWISE", "1")
    monkeypatch.setenv("METRALE_GLM_ARENA_TRIM", "0")
    monkeypatch.setenv("METRALE_ATTN_DECODE_SPLITK", "4")
    options = {**ALL_LEVERS, "glm_trim": False, "splitk": 4}
    case = Case(GLM, limits(), options)
    sizes = BufferSizes.from_config(case.model, **limits())
    assert sizes.as_dict() == case.expected


# Levers

ON_VARIABLES = {
    "METRALE_GGUF_NATIVE_Q2": "gguf_native_q2",
    "METRALE_GGUF_NATIVE_Q2_MMQ": "gguf_native_q2_mmq",
    "METRALE_FP8_ROWWISE": "fp8_rowwise",
    "METRALE_SSM_SAVE_DUMP": "ssm_save_dump",
}
NOT_EXACTLY_ONE = ("", "0", "01", " 1", "1 ", "1\n", "+1", "11", "2", "1.0", "\uff11")
WORDS = ("true", "True", "TRUE", "on", "ON", "yes", "y", "enabled")


def test_no_variables_give_the_defaults() -> None:
    assert Levers.from_env({}) == Levers()
    assert Levers() == Levers(
        gguf_native_q2=False,
        gguf_native_q2_mmq=False,
        fp8_rowwise=False,
        glm_arena_trim=True,
        attn_decode_splitk=SPLITK_LEGACY,
        ssm_save_dump=False,
    )


@pytest.mark.parametrize(("variable", "lever"), ON_VARIABLES.items())
def test_exactly_1_switches_one_lever_on(variable: str, lever: str) -> None:
    assert Levers.from_env({variable: "1"}) == Levers(**{lever: True})


@pytest.mark.parametrize("text", [*NOT_EXACTLY_ONE, *WORDS])
@pytest.mark.parametrize("variable", ON_VARIABLES)
def test_anything_but_exactly_1_leaves_it_off(variable: str, text: str) -> None:
    assert Levers.from_env({variable: text}) == Levers()


def test_exactly_0_disarms_the_glm_trim() -> None:
    levers = Levers.from_env({"METRALE_GLM_ARENA_TRIM": "0"})
    assert levers == Levers(glm_arena_trim=False)


@pytest.mark.parametrize(
    "text", ["", "1", "00", " 0", "0 ", "-0", "+0", "0.0", "off", "false", "no", "x"]
)
def test_anything_but_exactly_0_leaves_the_glm_trim_armed(text: str) -> None:
    assert Levers.from_env({"METRALE_GLM_ARENA_TRIM": text}) == Levers()


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        *((text, SPLITK_LEGACY) for text in ("legacy", "LEGACY", "\tLegacy ")),
        *((text, SPLITK_AUTO) for text in ("auto", "AUTO", " Auto ", "auto\n")),
        *((text, 1) for text in ("0", "off", "OFF", "false", "False", "no", " No ")),
        *((text, int(text)) for text in ("1", "2", "7", "15", "16")),
        *((text, 7) for text in ("007", " 7 ", "+7")),
        *((text, 16) for text in ("17", "99", "9" * 30)),
        ("00", 1),
    ],
)
def test_split_k_spellings(text: str, policy: int) -> None:
    levers = Levers.from_env({"METRALE_ATTN_DECODE_SPLITK": text})
    assert levers == Levers(attn_decode_splitk=policy)


@pytest.mark.parametrize(
    ("text", "policy"),
    [("9" * 5000, 16), ("0" * 5000 + "3", 3)],
    ids=["nines", "zeros"],
)
def test_a_split_k_count_of_thousands_of_digits(text: str, policy: int) -> None:
    levers = Levers.from_env({"METRALE_ATTN_DECODE_SPLITK": text})
    assert levers == Levers(attn_decode_splitk=policy)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "-3", "-1", "1.5", "0x4", "4 splits", "1_0", "auto,", "true"),
        *("on", "yes", "none", "++7", "+", "\uff17", "\u0667", "\u00b2"),
    ],
)
def test_any_other_split_k_text_keeps_the_default(text: str) -> None:
    assert Levers.from_env({"METRALE_ATTN_DECODE_SPLITK": text}) == Levers()


def test_variables_of_another_name_mean_nothing() -> None:
    foreign = {
        name.replace("METRALE_", prefix): "1"
        for name in ON_VARIABLES
        for prefix in ("ATLAS_", "metrale_", "METRALE")
    }
    assert Levers.from_env(foreign) == Levers()


def test_from_env_reads_the_process_without_an_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*ON_VARIABLES, "METRALE_GLM_ARENA_TRIM", "METRALE_ATTN_DECODE_SPLITK"):
        monkeypatch.delenv(name, raising=False)
    assert Levers.from_env() == Levers()
    monkeypatch.setenv("METRALE_FP8_ROWWISE", "1")
    assert Levers.from_env() == Levers(fp8_rowwise=True)


def test_levers_are_an_immutable_record() -> None:
    levers = Levers(attn_decode_splitk=4)
    with pytest.raises(AttributeError):
        levers.fp8_rowwise = True  # type: ignore[misc]
    assert levers == Levers(attn_decode_splitk=4) != Levers()
    assert hash(levers) == hash(Levers(attn_decode_splitk=4))
    assert "attn_decode_splitk=4" in repr(levers)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"fp8_rowwise": 1}, "fp8_rowwise is 1 (int), not True or False"),
        ({"glm_arena_trim": "0"}, "glm_arena_trim is '0' (str), not True or False"),
        (
            {"attn_decode_splitk": 17},
            "attn_decode_splitk is 17; from -1 to 16",
        ),
        (
            {"attn_decode_splitk": "auto"},
            "attn_decode_splitk is 'auto' (str), not an int",
        ),
    ],
)
def test_levers_that_no_variable_could_give(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Levers(**values)
    assert str(caught.value) == text


# Config and limits


def test_an_absent_field_is_0_false_or_empty() -> None:
    config = ModelConfig()
    assert [getattr(config, name) for name in COUNTS] == [0] * 34
    assert [getattr(config, name) for name in FLAGS] == [False, False]
    assert (config.model_type, config.layer_types) == ("", ())


def test_the_config_is_an_immutable_record() -> None:
    config = ModelConfig(hidden_size=64, layer_types=["full_attention"])  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        config.hidden_size = 1  # type: ignore[misc]
    assert config.layer_types == ("full_attention",)
    same = ModelConfig(hidden_size=64, layer_types=("full_attention",))
    assert config == same != ModelConfig(hidden_size=64)
    assert hash(config) == hash(same)
    assert "hidden_size=64" in repr(config)


@pytest.mark.parametrize("value", [True, 1.0, "8", -1, None])
@pytest.mark.parametrize("name", COUNTS)
def test_a_count_must_be_an_int_of_at_least_0(name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**{name: value})
    assert str(caught.value) == no_count(name, value, 0)


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_flag_must_be_a_bool(name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**{name: value})
    shown = f"{value!r} ({type(value).__name__})"
    assert str(caught.value) == f"{name} is {shown}, not True or False"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"model_type": 5}, "model_type is 5 (int), not a str"),
        ({"layer_types": "mamba"}, "layer_types is 'mamba' (str), not a list of str"),
        ({"layer_types": ["moe", 3]}, "layer_types[1] is 3 (int), not a str"),
    ],
)
def test_words_must_be_str(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**values)
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [-1, True, 1.0, "16", None])
@pytest.mark.parametrize(
    ("name", "minimum"),
    [
        ("max_batch_tokens", 1),
        ("max_seq_len", 1),
        ("kv_block_size", 0),
        ("max_batch_size", 1),
    ],
)
def test_limits_out_of_range(name: str, minimum: int, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        BufferSizes.from_config(ModelConfig(), **{**limits(), name: value})
    assert str(caught.value) == no_count(name, value, minimum)


@pytest.mark.parametrize("name", ["max_batch_tokens", "max_seq_len", "max_batch_size"])
def test_a_limit_of_0_is_out_of_range(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is 0; at least 1$"):
        BufferSizes.from_config(ModelConfig(), **{**limits(), name: 0})


def test_limits_go_by_name_only() -> None:
    with pytest.raises(TypeError):
        BufferSizes.from_config(ModelConfig(), 1, 4096, 16, 32)  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [0, -1, True, 48.0])
def test_a_target_has_at_least_one_multiprocessor(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Target(sm_count=value)
    assert str(caught.value) == no_count("sm_count", value, 1)


def test_the_default_target_has_48_multiprocessors() -> None:
    assert Target() == package.DEFAULT_TARGET == Target(sm_count=48)


# Sizes that cannot exist


def refusal(config: Fields, bounds: Limits, options: Options = NO_LEVERS) -> str:
    """The text of the SizeError that these must give."""
    with pytest.raises(SizeError) as caught:
        Case(config, bounds, options).sizes()
    return str(caught.value)


def test_the_largest_size_is_still_a_size() -> None:
    # One row of logits, two bytes an element.
    case = Case({"vocab_size": 2**62 - 1}, limits(1))
    assert case.sizes().logits == 2**63 - 2


def test_a_size_too_large_names_the_buffer_the_formula_and_the_inputs() -> None:
    assert refusal({"vocab_size": 2**62}, limits(1)) == (
        "logits: 9223372036854775808 bytes is more than 2**63 - 1: "
        "bf16 [min(M, max(VERIFY_ROW_CAP, meta_rows + LOGITS_SPARE_ROWS)), vocab_size] "
        f"with vocab_size={2**62}, max_batch_tokens=1, max_batch_size=32"
    )


@pytest.mark.parametrize(
    ("config", "bounds", "buffer", "inputs"),
    [
        (
            {"hidden_size": 2**62},
            limits(1),
            "hidden_states",
            {"hidden_size": 2**62, "max_batch_tokens": 1},
        ),
        ({}, limits(2**61), "scratch", {"max_batch_tokens": 2**61}),
        ({}, limits(1, seq_len=2**60, block=1), "scratch", {"max_seq_len": 2**60}),
        ({}, limits(1, batch=2**57), "scratch", {"max_batch_size": 2**57}),
        ({"hc_mult": 2**32}, limits(4), "hc_comb", {"hc_mult": 2**32}),
        ({"adapter_max_rank": 2**62}, limits(1), "lora_xa", {}),
        (
            {"num_experts": 1, "num_experts_per_tok": 2**61},
            limits(1),
            "scratch",
            {"num_experts_per_tok": 2**61},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_first_size_too_large_is_named(
    config: Fields, bounds: Limits, buffer: str, inputs: dict[str, int]
) -> None:
    expected = Case(config, bounds).expected
    assert buffer == next(name for name in NAMES if expected[name] > 2**63 - 1)
    text = refusal(config, bounds)
    start = f"{buffer}: {expected[buffer]} bytes is more than 2**63 - 1: "
    assert text.startswith(f"{start}{BUFFERS[buffer].extent} with ")
    given_inputs = text.rpartition(" with ")[2].split(", ")
    assert {f"{name}={value}" for name, value in inputs.items()} <= set(given_inputs)
    for name in BUFFERS[buffer].inputs:
        assert any(each.startswith(f"{name}=") for each in given_inputs)


def test_a_slab_too_large_names_itself() -> None:
    config = {
        "num_hidden_layers": 2**40,
        "full_attention_interval": 2,
        "hidden_size": 2**13,
        "linear_num_value_heads": 1,
        "linear_value_head_dim": 2**11,
    }
    # 2**39 layers * (2 * 2**11 + 2**11) * 2**13 * 2
    text = refusal(config, limits(1), {"fp8_rowwise": True})
    assert text.startswith(f"ssm_rowwise_w_bf16: {3 * 2**64} bytes is more than ")
    assert f"num_hidden_layers={2**40}" in text


def test_a_trimmed_buffer_too_large_is_named_too() -> None:
    # Trimmed away, so its size is in no buffer; the text must not blame the total.
    config = {"model_type": "glm5_next", "num_key_value_heads": 2**62, "head_dim": 1}
    assert refusal(config, limits(1)).startswith("qkv_output: ")


@pytest.mark.parametrize("digits", [400, 3000, 5000])
def test_a_size_of_thousands_of_digits_is_a_size_error(digits: int) -> None:
    text = refusal({"hidden_size": 10**digits}, limits(1), {"native_q2": True})
    assert text.startswith("hidden_states: ")
    assert "is more than 2**63 - 1" in text


# Public helpers and constants


@brief
@given(config=strategies.configs(), enabled=st.booleans())
def test_config_helpers_are_the_oracles(config: Fields, enabled: bool) -> None:
    model = ModelConfig(**config)  # type: ignore[arg-type]
    assert q2_dequant_scratch_bytes(model) == oracle.q2_dequant_scratch_bytes(config)
    layer = oracle.ssm_rowwise_w_bf16_layer_bytes(config)
    assert ssm_rowwise_w_bf16_layer_bytes(model) == layer
    every = oracle.ssm_rowwise_w_bf16_bytes_for(config, enabled)
    assert ssm_rowwise_w_bf16_bytes_for(model, enabled) == every
    levers = Levers(fp8_rowwise=enabled)
    assert ssm_rowwise_w_bf16_bytes(model, levers=levers) == every
    assert model.num_ssm_layers == oracle.num_ssm_layers(config)
    assert model.num_attention_layers == oracle.num_attention_layers(config)
    assert model.ssm_qkvz_size == oracle.ssm_qkvz_size(config)
    assert model.gdn_value_dim == oracle.gdn_value_dim(config)
    assert model.mamba2_d_inner == oracle.mamba2_d_inner(config)
    assert model.mamba2_d_xbc == oracle.mamba2_d_xbc(config)
    assert model.mamba2_in_proj_size == oracle.mamba2_in_proj_size(config)


@brief
@given(
    n=st.integers(0, 300),
    total=st.integers(0, 100000),
    longest=st.integers(0, 20000),
    top_k=st.integers(0, 30),
    mrope=st.booleans(),
)
def test_staging_helpers_are_the_oracles(
    n: int, total: int, longest: int, top_k: int, mrope: bool
) -> None:
    arguments = (n, total, longest, top_k, mrope)
    expected = oracle.q12_batched_scratch_bytes_varlen(*arguments)
    assert q12_batched_scratch_bytes_varlen(*arguments) == expected
    even = oracle.q12_batched_scratch_bytes(n, longest, top_k, mrope)
    assert q12_batched_scratch_bytes(n, longest, top_k, mrope) == even


def test_one_layers_row_wise_copies_at_the_references_widths() -> None:
    config = ModelConfig(
        hidden_size=5120,
        linear_num_key_heads=16,
        linear_key_head_dim=128,
        linear_num_value_heads=48,
        linear_value_head_dim=128,
    )
    assert ssm_rowwise_w_bf16_layer_bytes(config) == 167772160 + 62914560


def test_the_row_wise_helper_reads_its_lever(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig(
        hidden_size=8,
        layer_types=("linear_attention", "full_attention", "linear_attention"),
        linear_num_value_heads=2,
        linear_value_head_dim=4,
    )
    # Two layers of (2 * 8 + 8) * 8 elements.
    monkeypatch.setenv("METRALE_FP8_ROWWISE", "1")
    assert ssm_rowwise_w_bf16_bytes(config) == 2 * 192 * 2
    assert ssm_rowwise_w_bf16_bytes(config, levers=Levers()) == 0
    monkeypatch.setenv("METRALE_FP8_ROWWISE", "0")
    assert ssm_rowwise_w_bf16_bytes(config) == 0


def test_staging_in_scratch_is_what_the_admission_check_asks() -> None:
    case = Case({"num_experts": 4, "num_experts_per_tok": 10}, limits(80000))
    asked = q12_batched_scratch_bytes(package.Q12_SIZING_STREAMS, 10000, 10, False)
    assert case.sizes().scratch == asked


CONSTANTS = {
    "GATEUP_FUSED_MAX_M": 16,
    "Q12_SIZING_STREAMS": 8,
    "VERIFY_ROW_CAP": 160,
    "DECODE_META_MIN_ROWS": 32,
    "DECODE_META_MAX_ROWS": 128,
    "SCRATCH_META_OFFSET": 32768,
    "SCRATCH_MIN_BYTES": 64 * 1024,
    "PLACEHOLDER_BYTES": 256,
    "MROPE_STREAMS": 3,
    "SPLITK_MAX_SPLITS": 16,
    "GLM_MODEL_TYPES": ("glm5_next", "glm5_next_text"),
}


@pytest.mark.parametrize(("name", "value"), CONSTANTS.items())
def test_constants_are_the_references(name: str, value: object) -> None:
    assert getattr(package, name) == value
    assert name in package.__all__


def test_levers_of_the_oracle_cover_every_lever_that_sizes_read() -> None:
    switched = levers_of(
        {**ALL_LEVERS, "glm_trim": False, "splitk": 2},
    )
    assert switched == Levers(
        gguf_native_q2=True,
        gguf_native_q2_mmq=True,
        fp8_rowwise=True,
        glm_arena_trim=False,
        attn_decode_splitk=2,
    )
