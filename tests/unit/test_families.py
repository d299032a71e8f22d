"""The family table: real files, every fault, and the emitted functions beside it."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenagen import render as rendering
from arenagen.compile import Text, check_source
from arenagen.errors import InputProblems
from arenagen.families import Canonical, FamilyTable
from arenagen.family_loader import load_families
from arenagen.family_reader import ConfigFileError, read_config
from arenagen.load import load
from arenagen.lower import lower
from arenagen.lower_families import lower_families
from arenagen.model import Schema
from expected_configs import EXPECTED
from expected_synthetic import SYNTHETIC
from metrale_arena import ModelConfig

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "configs"
SCHEMA = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
TABLE = load_families(
    (ROOT / "schema/huggingface.yaml").read_text("utf-8"), "huggingface.yaml"
)
FIXTURES = sorted((ROOT / "tests/data").glob("*.json"))
MADE = sorted((ROOT / "tests/data/synthetic").glob("*.json"))
FILES = FIXTURES + MADE + sorted(REAL.glob("*.json"))
# Families whose files an arena cannot be sized by, with the reason.
REFUSED = {
    "mamba": "mamba: Mamba-1 layers have no heads, and an arena sizes Mamba-2 layers "
    "only",
    "falcon_mamba": "mamba: Mamba-1 layers have no heads, and an arena sizes Mamba-2 "
    "layers only",
    "m2m_100": "m2m_100: an encoder and cross-attention have no buffers; an arena "
    "sizes decoders only",
    "inkling": "inkling: under which names its files give head widths and experts is "
    "not known",
}
# Files of which an arena sizes a part, with what it says of the rest.
LACKING = {
    "Jamba-1.5-Mini": "jamba: the Mamba-1 layers have no heads, so that no buffer "
    "holds their inner width, mamba_expand * hidden_size; everything else is sized"
}

KNOWN = ", ".join(TABLE.by_model_type)
LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 4,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "num_attention_heads": 32,
}

Emitted = Callable[..., Any]


def fixture(stem: str) -> dict[str, Any]:
    """The data of a fixture, free to be changed."""
    path = next(each for each in FIXTURES + MADE if each.stem == stem)
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def plain(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields that are not empty, with lists for tuples."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value
    }


def emit(folder: Path, package: str, schema: Schema, table: FamilyTable) -> Emitted:
    """Write and import a package; its `config_from_hf`."""
    view = lower_families(table, schema)
    files = rendering.render(lower(schema), view, "arena.yaml")
    for path, content in files.items():
        target = folder / package / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(f"{package}.families")
    finally:
        sys.path.remove(str(folder))
    function: Emitted = module.config_from_hf
    return function


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    """The emitted `config_from_hf` of the Metrale arena."""
    folder = tmp_path_factory.mktemp("emitted")
    return emit(folder, "emitted_metrale", SCHEMA, TABLE)


def outcome(call: Callable[[], Any]) -> tuple[object, list[str]]:
    """The fields of a config, or the text of the error; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            config = call()
        except ConfigFileError as error:
            return str(error), []
        except ValueError as error:
            assert type(error).__name__ == "ConfigError"
            return str(error), []
    if isinstance(config, Canonical):
        return config.fields, list(config.warnings)
    fields = {each.name: getattr(config, each.name) for each in SCHEMA.config}
    return fields, [str(each.message) for each in caught]


def both(raw: Any, emitted: Emitted, assume: str = "") -> tuple[object, list[str]]:
    """What tool and emitted package make of a file, which must be the same."""
    tool = outcome(lambda: TABLE.canonical(raw, SCHEMA, assume=assume))
    assert outcome(lambda: emitted(raw, assume)) == tool
    return tool


REASON = "the folder of published config files is not beside the repository"
NO_FILES = pytest.param(None, id="published", marks=pytest.mark.skip(reason=REASON))
CASES = [pytest.param(each, id=f"{each.parent.name}/{each.stem}") for each in FILES]


@pytest.mark.parametrize("path", CASES if REAL.is_dir() else [*CASES, NO_FILES])
def test_file(path: Path, emitted: Emitted) -> None:
    raw = read_config(path.read_bytes(), str(path))
    tool, notes = outcome(lambda: TABLE.canonical(raw, SCHEMA, str(path)))
    assert outcome(lambda: emitted(path)) == (tool, notes)
    assert outcome(lambda: emitted(str(path))) == (tool, notes)
    lacks = LACKING.get(path.stem)
    assert notes == ([f"{path}: {lacks}"] if lacks else [])
    if path.stem in REFUSED:
        assert tool == f"{path}: {REFUSED[path.stem]}"
    else:
        assert isinstance(tool, dict)
        assert plain(tool) == (EXPECTED | SYNTHETIC)[path.stem]


def test_every_family_is_tested() -> None:
    files = {path.stem: read_config(path.read_bytes(), "") for path in FIXTURES + MADE}
    tested = {data.get("model_type", "mistral_params") for data in files.values()}
    missing = {
        family.name
        for family in TABLE.by_model_type.values()
        if tested.isdisjoint(family.model_types)
    }
    assert missing == set()
    assert set(EXPECTED | SYNTHETIC) - {"Llama-3.1-70B"} == set(files) - set(REFUSED)


def test_canonical_names_family_and_holds_every_field() -> None:
    canonical = TABLE.canonical(LLAMA | {"model_type": "mistral"}, SCHEMA)
    assert canonical.family == "llama"
    assert canonical.model_type == canonical.fields["model_type"] == "mistral"
    assert list(canonical.fields) == [each.name for each in SCHEMA.config]


QWEN35, NEMOTRON = "Qwen3.5-27B", "Nemotron-3-Nano-30B-A3B"
ABSENT = object()


def changed(raw: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """The data with the value at a dotted path replaced or, by ABSENT, removed."""
    head, _, rest = path.partition(".")
    copy = dict(raw)
    if rest:
        copy[head] = changed(copy.get(head, {}), rest, value)
    elif value is ABSENT:
        copy.pop(head, None)
    else:
        copy[head] = value
    return copy


FAULTS: list[tuple[dict[str, Any], str, object, str]] = [
    (LLAMA, "model_type", ABSENT, f"model_type is missing; known: {KNOWN}"),
    (LLAMA, "model_type", None, f"model_type is missing; known: {KNOWN}"),
    (LLAMA, "model_type", "", f"model_type is missing; known: {KNOWN}"),
    (LLAMA, "model_type", 5, "model_type is 5 (int), not a str"),
    (
        LLAMA,
        "model_type",
        "Lama",
        f"model_type 'Lama' is not known; did you mean llama? known: {KNOWN}",
    ),
    (LLAMA, "model_type", "x\n", f"model_type 'x\\n' is not known; known: {KNOWN}"),
    (LLAMA, "hidden_size", ABSENT, "llama: hidden_size is missing from the file"),
    (LLAMA, "hidden_size", None, "llama: hidden_size is missing from the file"),
    (
        LLAMA,
        "num_hidden_layers",
        ABSENT,
        "llama: num_hidden_layers is missing from the file",
    ),
    (LLAMA, "vocab_size", ABSENT, "llama: vocab_size is missing from the file"),
    (
        LLAMA,
        "num_attention_heads",
        ABSENT,
        "llama: num_attention_heads is missing from the file",
    ),
    (LLAMA, "hidden_size", 0, "llama: hidden_size is 0; at least 1"),
    (
        LLAMA,
        "hidden_size",
        4096.0,
        "llama: hidden_size is 4096.0 (float), not an int",
    ),
    (
        LLAMA,
        "hidden_size",
        "4096",
        "llama: hidden_size is '4096' (str), not an int",
    ),
    (
        LLAMA,
        "hidden_size",
        True,
        "llama: hidden_size is True (bool), not an int",
    ),
    (
        LLAMA,
        "hidden_size",
        [1] * 100,
        f"llama: hidden_size is [{'1, ' * 26}1... (list), not an int",
    ),
    (
        LLAMA,
        "hidden_size",
        -(2**200),
        f"llama: hidden_size is {-(2**200):#x}; at least 1",
    ),
    (LLAMA, "num_attention_heads", 30, "llama: head_dim: 4096 / 30 is not an integer"),
    (LLAMA, "head_dim", 0, "llama: head_dim is 0; at least 1"),
    (
        LLAMA,
        "adapter_max_rank",
        -1,
        "llama: adapter_max_rank is -1; at least 0",
    ),
    (
        LLAMA,
        "rope_scaling",
        {"mrope_interleaved": 1},
        "llama: rope_scaling.mrope_interleaved is 1 (int), not True or False",
    ),
    (
        LLAMA,
        "rope_scaling",
        "yarn",
        "llama: rope_scaling: not an object (str)",
    ),
    (
        LLAMA,
        "layer_types",
        "full_attention",
        "llama: layer_types is 'full_attention' (str), not a list of str",
    ),
    (
        LLAMA,
        "layer_types",
        ["attention", None],
        "llama: layer_types[1] is None (NoneType), not a str",
    ),
    (
        LLAMA,
        "layer_types",
        ["attention"] * 3,
        "llama: layer_types: 3 entries; 4 are needed",
    ),
    (
        fixture(QWEN35),
        "text_config",
        [],
        "qwen3_5: text_config: not an object (list)",
    ),
    (
        fixture(QWEN35),
        "text_config.head_dim",
        ABSENT,
        "qwen3_5: head_dim is missing from text_config",
    ),
    (
        fixture(QWEN35),
        "text_config.rope_parameters.mrope_interleaved",
        "yes",
        "qwen3_5: text_config.rope_parameters.mrope_interleaved is 'yes' (str), "
        "not True or False",
    ),
    (
        changed(fixture("GLM-5.3-Flash"), "text_config.linear_attn_config", ABSENT),
        "text_config.linear_num_heads",
        ABSENT,
        "glm5_next: linear_attn_config.num_heads or linear_num_heads is missing from "
        "text_config",
    ),
    (
        fixture(NEMOTRON),
        "hybrid_override_pattern",
        ABSENT,
        "nemotron_h: layers_block_type or hybrid_override_pattern is missing from "
        "the file",
    ),
    (
        fixture(NEMOTRON),
        "hybrid_override_pattern",
        "",
        "nemotron_h: hybrid_override_pattern: 0 entries; 1 are needed",
    ),
    (
        fixture(NEMOTRON),
        "hybrid_override_pattern",
        "MEX*",
        "nemotron_h: hybrid_override_pattern: 'X' is none of M E * -",
    ),
    (
        changed(fixture(NEMOTRON), "hybrid_override_pattern", "M-"),
        "intermediate_size",
        ABSENT,
        "nemotron_h: intermediate_size is missing from the file",
    ),
    (
        fixture("kimi_linear"),
        "linear_attn_config.kda_layers",
        [0, 1],
        "kimi_linear: linear_attn_config.kda_layers[0] is 0; at least 1",
    ),
    (
        fixture("kimi_linear"),
        "linear_attn_config.kda_layers",
        [5, 6],
        "kimi_linear: linear_attn_config.kda_layers[1]: 6 is beyond the last of 5 "
        "layers, counted from 1",
    ),
    (
        fixture("bamba"),
        "attn_layer_indices",
        [5],
        "bamba: attn_layer_indices[0]: 5 is beyond the last of 5 layers, "
        "counted from 0",
    ),
    (
        fixture("bamba"),
        "attn_layer_indices",
        "1,x",
        "bamba: attn_layer_indices[1] is 'x' (str), not an int",
    ),
    (
        fixture("bamba"),
        "attn_layer_indices",
        3,
        "bamba: attn_layer_indices is 3 (int), not a list of layers",
    ),
    (
        fixture("bamba"),
        "num_hidden_layers",
        10**12,
        "bamba: attn_layer_indices: 1000000000000 layers; at most 65536",
    ),
    (
        fixture("gemma3"),
        "text_config.num_hidden_layers",
        10**12,
        "gemma3: layer_types: 1000000000000 layers; at most 65536",
    ),
    (
        fixture("gemma3"),
        "text_config.sliding_window_pattern",
        0,
        "gemma3: text_config.sliding_window_pattern is 0; at least 1",
    ),
    (
        fixture("hunyuan_v1_moe"),
        "moe_topk",
        [8, "8"],
        "hunyuan_v1_moe: moe_topk[1] is '8' (str), not an int",
    ),
    (
        fixture("hunyuan_v1_moe"),
        "moe_topk",
        [],
        "hunyuan_v1_moe: moe_topk is [] (list), not an int",
    ),
    (
        fixture("minimax_m2"),
        "attn_type_list",
        [1, 0, 1, 1],
        "minimax_m2: attn_type_list: '0' is none of 1",
    ),
    (
        fixture("DeepSeek-V4-Flash"),
        "compress_ratios",
        [4] * 42,
        "deepseek_v4: compress_ratios: 42 entries; 43 are needed",
    ),
    (
        fixture("granite_dense"),
        "mamba_d_head",
        "wide",
        "granitemoehybrid: mamba_d_head is 'wide' (str), not an int",
    ),
    (
        fixture("granite_dense"),
        "mamba_n_heads",
        50,
        "granitemoehybrid: mamba_head_dim: 3072 / 50 is not an integer",
    ),
    (
        fixture("granite_moe"),
        "num_experts_per_tok",
        None,
        "granitemoehybrid: num_experts_per_tok is missing from the file",
    ),
    (
        changed(fixture("gemma-4-26B-A4B"), "text_config.top_k_experts", 8),
        "text_config.num_experts",
        None,
        "gemma4: num_experts is missing from text_config",
    ),
    (
        changed(fixture("Qwen3-30B-A3B"), "mlp_only_layers", [1]),
        "intermediate_size",
        None,
        "qwen3_moe: intermediate_size is missing from the file",
    ),
    (
        fixture("DeepSeek-V3"),
        "kv_lora_rank",
        None,
        "deepseek_v3: kv_lora_rank is missing from the file",
    ),
    (
        {"model_type": "internvl_chat"},
        "vision_config",
        {},
        "internvl_chat: llm_config or text_config is missing from the file",
    ),
    (
        fixture("internvl_chat"),
        "llm_config",
        5,
        "internvl_chat: llm_config: not an object (int)",
    ),
    (
        fixture("internvl_chat"),
        "llm_config.model_type",
        "internlm",
        f"llm_config: model_type 'internlm' is not known; known: {KNOWN}",
    ),
    (
        fixture("internvl_chat"),
        "llm_config",
        fixture("internvl_chat"),
        "llm_config: internvl_chat: a config inside another holds none itself",
    ),
    (
        fixture("internvl_chat"),
        "llm_config.model_type",
        "mamba",
        "llm_config: mamba: Mamba-1 layers have no heads, and an arena sizes Mamba-2 "
        "layers only",
    ),
    (
        fixture("internvl_chat"),
        "llm_config.hidden_size",
        None,
        "llm_config: llama: hidden_size is missing from the file",
    ),
    (
        fixture("mistral_params_dense"),
        "n_heads",
        None,
        "mistral_params: n_heads is missing from the file",
    ),
    (
        {"model_type": "mamba"},
        "state_size",
        16,
        "mamba: Mamba-1 layers have no heads, and an arena sizes Mamba-2 layers only",
    ),
]


@pytest.mark.parametrize(("raw", "path", "value", "text"), FAULTS)
def test_fault(
    raw: dict[str, Any], path: str, value: object, text: str, emitted: Emitted
) -> None:
    assert both(changed(raw, path, value), emitted) == (f"config.json: {text}", [])


@pytest.mark.parametrize(
    ("raw", "changes", "expected"),
    [
        # null is absent, and an absent head count of keys is that of queries.
        (
            LLAMA,
            {"head_dim": None, "num_key_value_heads": None, "layer_types": None},
            {"head_dim": 128, "num_key_value_heads": 32, "layer_types": ()},
        ),
        # A head_dim in the file wins.
        (LLAMA, {"head_dim": 160, "num_attention_heads": 30}, {"head_dim": 160}),
        # Old words, words nobody knows, and entries beyond the stack.
        (
            LLAMA,
            {"layer_types": ["attention", "odd", "indexed_attention", "moe", "mtp"]},
            {"layer_types": ("full_attention", "odd", "sparse_attention", "moe")},
        ),
        # A field that no family mentions.
        (LLAMA, {"adapter_max_rank": 64}, {"adapter_max_rank": 64}),
        # A vision tower, and a text model alone.
        (
            fixture(QWEN35),
            {"vision_config": {"hidden_size": 1}, "hidden_size": 7},
            {"hidden_size": 5120},
        ),
        (
            {**fixture(QWEN35)["text_config"], "model_type": "qwen3_5_text"},
            {"text_config": None},
            {"model_type": "qwen3_5_text", "hidden_size": 5120, "head_dim": 256},
        ),
        # No gate where the file says so.
        (
            fixture(QWEN35),
            {"text_config.attn_output_gate": False},
            {"attn_gated": False},
        ),
        (fixture(QWEN35), {"text_config.attn_output_gate": None}, {"attn_gated": True}),
        (
            fixture("Qwen3-Next-80B-A3B-Thinking"),
            {"full_attention_interval": None},
            {"full_attention_interval": 4, "attn_gated": True},
        ),
        # A head_dim of an MLA file is not its head width; a qk_head_dim is.
        (fixture("DeepSeek-V3"), {"head_dim": 64}, {"head_dim": 192}),
        (fixture("DeepSeek-V3"), {"qk_head_dim": 256}, {"head_dim": 256}),
        (fixture("DeepSeek-V3"), {"q_lora_rank": None}, {"q_lora_rank": 0}),
        (
            fixture("DeepSeek-V3"),
            {"n_shared_experts": 2},
            {"shared_expert_intermediate_size": 4096},
        ),
        # The nested spelling of a head count comes first.
        (
            fixture("GLM-5.3-Flash"),
            {"text_config.linear_num_heads": 32},
            {"linear_num_key_heads": 64, "linear_num_value_heads": 64},
        ),
        # The layers of a Nemotron-H are counted by its list or pattern.
        (
            fixture(NEMOTRON),
            {"hybrid_override_pattern": "M-*E", "num_hidden_layers": None},
            {
                "layer_types": ("mamba", "mlp", "full_attention", "moe"),
                "num_hidden_layers": 4,
            },
        ),
        (
            fixture(NEMOTRON),
            {"layers_block_type": ["linear_attention", "attention", "moe"]},
            {
                "layer_types": ("mamba", "full_attention", "moe"),
                "num_hidden_layers": 3,
            },
        ),
        # A list of places, as a text too; layers are counted from 1 here, from 0 there.
        (
            fixture("kimi_linear"),
            {"linear_attn_config.kda_layers": [5]},
            {"layer_types": (*["full_attention"] * 4, "linear_attention")},
        ),
        (
            fixture("kimi_linear"),
            {"linear_attn_config.kda_layers": " 2,1 "},
            {
                "layer_types": (
                    *["linear_attention"] * 2,
                    *["full_attention"] * 3,
                ),
            },
        ),
        (
            fixture("bamba"),
            {"attn_layer_indices": [0], "num_hidden_layers": 2},
            {"layer_types": ("full_attention", "mamba")},
        ),
        (
            fixture("bamba"),
            {"attn_layer_indices": ""},
            {"layer_types": ("mamba",) * 5},
        ),
        # No layer is dense, so that no dense width is needed.
        (
            fixture("step3p7"),
            {
                "text_config.moe_layers_enum": "0,1,2,3,4",
                "text_config.intermediate_size": None,
            },
            {"intermediate_size": 0},
        ),
        (
            fixture("Qwen3-30B-A3B"),
            {"mlp_only_layers": [], "intermediate_size": None},
            {"intermediate_size": 0},
        ),
        # One integer where a list may stand, and the other way around.
        (
            fixture("hunyuan_v1_moe"),
            {"num_experts": 16, "moe_topk": 1},
            {"num_experts": 16, "num_experts_per_tok": 1},
        ),
        (fixture("laguna"), {"num_attention_heads_per_layer": None}, {"head_dim": 128}),
        # The wider product, whichever geometry has it.
        (
            fixture("step3p7"),
            {"text_config.attention_other_setting.num_attention_heads": 32},
            {"num_attention_heads": 64, "head_dim": 128},
        ),
        (
            fixture("step3p7"),
            # 96 * 64 is less than 64 * 128; 32 * 64 is more than 8 * 128.
            {
                "text_config.attention_other_setting.head_dim": 64,
                "text_config.attention_other_setting.num_attention_groups": 32,
            },
            {"num_attention_heads": 64, "num_key_value_heads": 16, "head_dim": 128},
        ),
        (
            fixture("gemma-4-26B-A4B"),
            {
                "text_config.global_head_dim": None,
                "text_config.num_global_key_value_heads": None,
            },
            {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256},
        ),
        (
            fixture("gemma4_dense"),
            {"text_config.use_double_wide_mlp": True},
            {"intermediate_size": 43008},
        ),
        # Layers at regular places.
        (
            fixture("gemma3"),
            {
                "text_config.sliding_window_pattern": 2,
                "text_config.num_hidden_layers": 3,
            },
            {
                "layer_types": (
                    "sliding_attention",
                    "full_attention",
                    "sliding_attention",
                )
            },
        ),
        # Without a rank of the latent there is no latent attention.
        (
            fixture("mistral_params_mla"),
            {"kv_lora_rank": None, "head_dim": 96},
            {"head_dim": 96, "kv_lora_rank": 0},
        ),
        (
            fixture("granite_dense"),
            {"mamba_d_head": 32},
            {"mamba_head_dim": 32},
        ),
        (
            fixture("granite_dense"),
            {
                "layer_types": ["attention"] * 3,
                "mamba_n_heads": None,
                "mamba_d_head": None,
                "mamba_d_state": None,
                "mamba_n_groups": None,
            },
            {"mamba_num_heads": 0, "mamba_head_dim": 0},
        ),
        (
            fixture("falcon_7b"),
            {"multi_query": False, "num_kv_heads": None},
            {"num_key_value_heads": 71},
        ),
        # The first object that is there holds the config inside.
        (
            {"model_type": "mistral3", "text_config": LLAMA, "llm_config": None},
            {},
            {"model_type": "llama", "head_dim": 128},
        ),
        (
            fixture(NEMOTRON),
            {
                "hybrid_override_pattern": "M*",
                "n_routed_experts": None,
                "num_experts_per_tok": None,
                "moe_intermediate_size": None,
                "moe_shared_expert_intermediate_size": None,
                "head_dim": None,
                "attention_head_dim": 64,
            },
            {"num_experts": 0, "moe_intermediate_size": 0, "head_dim": 64},
        ),
    ],
)
def test_rule(
    raw: dict[str, Any],
    changes: dict[str, object],
    expected: dict[str, object],
    emitted: Emitted,
) -> None:
    for path, value in changes.items():
        raw = changed(raw, path, value)
    fields, notes = both(raw, emitted)
    assert isinstance(fields, dict), fields
    assert {name: fields[name] for name in expected} == expected
    assert notes == []


UNREAD = "not read, though it may change sizes"


@pytest.mark.parametrize(
    ("raw", "changes", "names"),
    [
        (LLAMA, {"n_routed_experts": 8}, "llama: {}: n_routed_experts"),
        (
            LLAMA,
            {"moe_top_k": 2, "ssm_state_size": 128, "num_local_experts": 8},
            "llama: {}: num_local_experts, moe_top_k, ssm_state_size",
        ),
        # Null, 0, false and nothing say nothing.
        (
            LLAMA,
            {
                "num_experts": None,
                "n_routed_experts": 0,
                "use_double_wide_mlp": False,
                "attn_type_list": [],
                "output_gate_type": "",
            },
            "",
        ),
        # Inside an object, and inside the section that is read alone.
        (
            LLAMA,
            {"linear_attn_config": {"num_heads": 8}, "moe": 3},
            "llama: {}: linear_attn_config.num_heads",
        ),
        (fixture(QWEN35), {"num_experts": 8}, ""),
        (fixture(QWEN35), {"text_config.num_experts": 8}, "qwen3_5: {}: num_experts"),
        # What a family knows to mean nothing, and its other spellings.
        (fixture("DeepSeek-V3"), {"head_dim": 64}, ""),
        (fixture("gpt-oss-20b"), {"experts_per_token": 4}, ""),
        (
            fixture("internvl_chat"),
            {"num_experts": 8, "llm_config.num_experts": 8},
            "llm_config: llama: {}: num_experts",
        ),
    ],
)
def test_keys_that_a_family_does_not_know(
    raw: dict[str, Any], changes: dict[str, object], names: str, emitted: Emitted
) -> None:
    for path, value in changes.items():
        raw = changed(raw, path, value)
    fields, notes = both(raw, emitted)
    assert isinstance(fields, dict)
    assert notes == ([f"config.json: {names.format(UNREAD)}"] if names else [])


def test_an_unknown_model_type_is_read_as_one_that_is_assumed(emitted: Emitted) -> None:
    raw = LLAMA | {"model_type": "lama_next", "num_experts": 8}
    fields, notes = both(raw, emitted, "qwen2")
    assert fields == both(LLAMA | {"model_type": "qwen2"}, emitted)[0]
    assert notes == [
        "config.json: model_type 'lama_next' is not known; read as qwen2",
        f"config.json: llama: {UNREAD}: num_experts",
    ]


def test_assuming_changes_nothing_for_a_known_model_type(emitted: Emitted) -> None:
    assert both(LLAMA, emitted, "mixtral") == both(LLAMA, emitted)
    params = fixture("mistral_params_dense")
    assert both(params, emitted, "llama") == both(params, emitted)


def test_what_is_assumed_is_a_known_model_type(emitted: Emitted) -> None:
    text = (
        "assume: no model_type 'qwen33' is known; did you mean qwen3? "
        f"known: {KNOWN}"
    )
    assert both(LLAMA, emitted, "qwen33") == (text, [])


def test_a_file_without_model_type_is_assumed_too(emitted: Emitted) -> None:
    raw = changed(LLAMA, "model_type", ABSENT)
    fields, notes = both(raw, emitted, "llama")
    assert fields == both(LLAMA, emitted)[0]
    assert notes == ["config.json: model_type is missing; read as llama"]


def test_from_hf_warns_where_it_is_called() -> None:
    with pytest.warns(UserWarning) as caught:
        config = ModelConfig.from_hf(
            LLAMA | {"model_type": "x", "n_heads": 2}, assume="llama"
        )
    assert config.model_type == "llama"
    assert [Path(each.filename) for each in caught] == [Path(__file__)] * 2


@pytest.mark.parametrize(
    ("stem", "given", "expected"),
    [
        # A field over what the file says, and all that follows from it.
        ("Qwen3-32B", {"head_dim": 64}, {"head_dim": 64, "hidden_size": 5120}),
        (
            "Llama-3.1-8B",
            {"num_attention_heads": 16},
            {"num_attention_heads": 16, "head_dim": 256, "num_key_value_heads": 8},
        ),
        # Fields that the file lacks, and keys that only they need.
        ("DeepSeek-V3", {"head_dim": 128}, {"head_dim": 128}),
        ("granite_moe", {"num_experts_per_tok": 3}, {"num_experts_per_tok": 3}),
    ],
)
def test_given_fields(
    stem: str, given: dict[str, Any], expected: dict[str, object]
) -> None:
    raw = fixture(stem)
    raw = {key: value for key, value in raw.items() if key not in given}
    if stem == "DeepSeek-V3":
        raw = changed(raw, "qk_nope_head_dim", ABSENT)
    fields = TABLE.canonical(raw, SCHEMA, given=given).fields
    assert {name: fields[name] for name in expected} == expected


STEMS = [path.stem for path in FIXTURES + MADE]
VALUES = st.sampled_from(
    [ABSENT, None, 0, 1, 3, -1, 128, 2.5, True, "", "M", "attention", [], ["x"], {}]
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_tool_and_package_agree_on_odd_files(
    emitted: Emitted, data: st.DataObject
) -> None:
    raw = fixture(data.draw(st.sampled_from(STEMS)))
    paths = sorted({*raw, "layer_types", "rope_scaling", "head_dim"})
    if "text_config" in raw:
        paths += sorted(f"text_config.{each}" for each in raw["text_config"])
    for path in data.draw(st.lists(st.sampled_from(paths), max_size=3, unique=True)):
        if isinstance(raw.get("text_config", {}), dict):
            raw = changed(raw, path, data.draw(VALUES))
    both(raw, emitted)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"{", "not JSON: Expecting property name"),
        (b'{"a": "\xff"}', "not JSON: 'utf-8' codec can't decode"),
        (b"[" * 100_000, "not JSON: maximum recursion depth exceeded"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not JSON: Exceeds the limit"),
        (
            b'{"a": {"b": 1, "b": 1}}',
            "not JSON: the key 'b' stands twice in an object",
        ),
        (b"[1]", "not an object (list)"),
        (b"null", "not an object (NoneType)"),
        (b" " * (16 * 2**20 + 1), "more than 16777216 bytes"),
    ],
)
def test_file_that_is_no_config(
    data: bytes, text: str, tmp_path: Path, emitted: Emitted
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(ConfigFileError) as caught:
        read_config(data, str(path))
    assert str(caught.value).startswith(f"{path}: {text}")
    with pytest.raises(ValueError) as raised:
        emitted(path)
    assert str(raised.value) == str(caught.value)


def test_infinity_and_bom_are_read(tmp_path: Path, emitted: Emitted) -> None:
    text = json.dumps(LLAMA)[:-1] + ', "time_step_limit": [0.0, Infinity], "x": NaN}'
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert emitted(path).vocab_size == 128256
    assert read_config(path.read_bytes(), "c")["vocab_size"] == 128256


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("no/such/config.json", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("a\0b", "cannot be read: embedded null byte"),
    ],
)
def test_path_that_cannot_be_read(path: str, text: str, emitted: Emitted) -> None:
    with pytest.raises(ValueError, match=text) as raised:
        emitted(path)
    assert type(raised.value).__name__ == "ConfigError"


ARENA = """
arena: {class: Arena, package: small_arena, label: small, doc: Small.}
limits: {max_tokens: {symbol: M, tokens: true, doc: Tokens.}}
constants: {WIDTH: {doc: A width., value: 64}}
config:
  hidden_size: {doc: Width.}
  head_dim: {doc: Head., default: WIDTH * 2}
  rope_dim: {doc: Rope., default: head_dim // 2, aliases: [rotary]}
  depth: {doc: Depth., default: 7}
  kind: {doc: Kind., type: str, default: "'plain'"}
  file: {doc: A name that the emitted code has too.}
buffers: {x: {doc: X., dtype: bf16, shape: [M, hidden_size]}}
"""
SMALL = """
families:
  tiny:
    doc: Tiny.
    model_types: [tiny]
    keys:
      hidden_size: {required: true, minimum: 1}
      vocab_size: {required: true}
"""


def test_defaults_of_the_schema(tmp_path: Path) -> None:
    schema, table = load(ARENA, "arena.yaml"), load_families(SMALL, "small.yaml")
    emitted = emit(tmp_path, "emitted_small", schema, table)
    cases: list[tuple[dict[str, object], tuple[object, ...]]] = [
        ({}, (128, 64, 7, "plain", 0)),
        ({"head_dim": 0}, (0, 0, 7, "plain", 0)),
        ({"head_dim": 96, "kind": "odd"}, (96, 48, 7, "odd", 0)),
        ({"rotary": 5, "depth": 0, "file": 3}, (128, 5, 0, "plain", 3)),
    ]
    for raw, wanted in cases:
        raw = {"model_type": "tiny", "hidden_size": 8, **raw}
        fields = table.canonical(raw, schema).fields
        config = emitted(raw)
        names = ("head_dim", "rope_dim", "depth", "kind", "file")
        assert tuple(fields[name] for name in names) == wanted
        assert tuple(getattr(config, name) for name in names) == wanted


@pytest.mark.parametrize(
    ("kind", "default", "getter"),
    [("int", "0", "integer"), ("bool", "false", "flag"), ("str", "\"''\"", "text")],
)
def test_a_default_that_says_nothing_is_read_like_none(
    kind: str, default: str, getter: str
) -> None:
    said = f"file: {{type: {kind}, default: {default}, "
    schema = load(ARENA.replace("file: {", said), "arena.yaml")
    view = lower_families(load_families(SMALL, "small.yaml"), schema)
    assert view.families[0].arguments[-1] == f'file=keys.{getter}("file")'


def test_keys_may_stand_in_any_order() -> None:
    text = SMALL.replace(
        "hidden_size: {", "depth: {default: vocab_size}\n      hidden_size: {"
    )
    text = text.replace("keys:", "keys:\n      head_dim: {default: hidden_size // 8}")
    table = load_families(text, "small.yaml")
    keys = list(table.families["tiny"].keys)
    assert keys == ["hidden_size", "head_dim", "vocab_size", "depth"]
    raw = {"model_type": "tiny", "hidden_size": 64, "vocab_size": 5}
    fields = table.canonical(raw, load(ARENA, "arena.yaml")).fields
    assert (fields["head_dim"], fields["depth"]) == (8, 5)


def test_a_key_that_no_field_needs_is_not_emitted() -> None:
    view = lower_families(load_families(SMALL, "small.yaml"), load(ARENA, "arena.yaml"))
    assert "vocab_size" not in repr(view)


def test_a_key_of_a_base_is_read_as_its_own_family_has_it(tmp_path: Path) -> None:
    text = (
        f"{SMALL}      depth: {{required: 8 // hidden_size > 1}}\n"
        "  loose:\n    doc: Any.\n    extends: tiny\n    model_types: [loose]\n"
        "    keys: {hidden_size: {required: true}}\n"
    )
    schema, table = load(ARENA, "arena.yaml"), load_families(text, "small.yaml")
    view = lower_families(table, schema)
    tiny, loose = (" ".join(each.arguments) for each in view.families)
    assert "required=8 // hidden_size > 1" in tiny
    assert "required=floordiv(8, hidden_size, " in loose
    emitted = emit(tmp_path, "emitted_loose", schema, table)
    assert emitted({"model_type": "tiny", "hidden_size": 8}).depth == 0
    with pytest.raises(ValueError, match="depth: 8 // hidden_size"):
        emitted({"model_type": "loose", "hidden_size": 0})


def test_a_name_that_a_plain_field_reads_needs_no_warning(tmp_path: Path) -> None:
    text = f"size_keys: [rotary, heads]\n{SMALL}"
    schema, table = load(ARENA, "arena.yaml"), load_families(text, "small.yaml")
    emitted = emit(tmp_path, "emitted_plain", schema, table)
    raw = {"model_type": "tiny", "hidden_size": 8, "rotary": 2, "heads": 3}
    wanted = ["config.json: tiny: not read, though it may change sizes: heads"]
    canonical = table.canonical(raw, schema)
    assert list(canonical.warnings) == wanted
    assert canonical.fields["rope_dim"] == 2
    with pytest.warns(UserWarning) as caught:
        assert emitted(raw).rope_dim == 2
    assert [str(each.message) for each in caught] == wanted


def test_table_that_does_not_fit_the_schema() -> None:
    table = load_families(SMALL.replace("vocab_size", "kind"), "small.yaml")
    schema = load(ARENA, "arena.yaml")
    text = (
        "small.yaml:8:7: error AR095: `kind` is an integer in the family `tiny` and a "
        "text in the schema"
    )
    with pytest.raises(InputProblems) as caught:
        table.canonical({}, schema)
    assert str(caught.value).startswith(text)
    data = SMALL.replace("vocab_size", "kind").encode()
    with pytest.raises(InputProblems) as caught:
        check_source(schema, (), Text("small.yaml", data))
    assert str(caught.value).startswith(text)


def family(body: str) -> str:
    return f"families:\n  a:\n    doc: A.\n    model_types: [a]\n{body}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "AR022: the file is not a mapping of families"),
        ("families: {}", "AR026: nothing in `families`"),
        ("families: {a: {model_types: [a]}}", "AR021: the key `doc` is missing"),
        (
            family("    key: {}\n"),
            "unknown key `key` in `families.a`",
        ),
        (family("    key: {}\n"), "hint: did you mean `keys`?"),
        (family("    keys: {x: {type: float}}\n"), "AR023: `float` in"),
        (family("    keys: {x: }\n"), "it must be a mapping"),
        (family("    keys: {x: {names: [a..b]}}\n"), "AR024: `a..b` in"),
        (
            family("    extends: b\n"),
            "AR091: no family is named `b`",
        ),
        (
            family("    extends: b\n  b: {doc: B., extends: a}\n"),
            "AR091: `b` extends itself: `a` -> `b` -> `a`",
        ),
        (
            family("  b: {doc: B., model_types: [b, a]}\n"),
            "AR092: the model_type `a` names two families",
        ),
        (
            family(
                "    keys: {x: {default: y}, y: {length: z}, z: {required: x > 0}}\n"
            ),
            "AR110: `x` is read for itself: `x` -> `y` -> `z` -> `x`",
        ),
        (
            family("    keys: {x: {}}\n    refuse: No.\n"),
            "AR111: `keys` does not go with `refuse`",
        ),
        (
            family("    sections: [t]\n    inner: [u]\n"),
            "AR111: `sections` does not go with `inner`",
        ),
        (
            "size_keys: [heads]\n" + family("    ignores: [head]\n"),
            "AR112: `head` is none of `size_keys`\n",
        ),
        (
            family("    keys: {x: {type: list, largest: true}}\n"),
            "AR093: `largest` does not go with a key of type list",
        ),
        (
            family("    keys: {x: {indexes: {word: a, others: b}}}\n"),
            "AR093: `indexes` does not go with a key of type int",
        ),
        (
            family("    keys: {x: {type: list, indexes: {word: a, others: b}}}\n"),
            "AR093: `indexes` need the `length` of the list that they are in",
        ),
        (
            family(
                "    keys:\n      x:\n        {type: list, length: 1, words: w, "
                "indexes: {word: a, others: b}}\n"
            ),
            "AR093: `words` does not go with `indexes`",
        ),
        (
            family(
                "    keys: {x: {type: list, indexes: {base: 2, word: a, others: b}}}\n"
            ),
            "AR023: `2` in `families.a.keys.x.indexes.base`",
        ),
        (
            family("    keys: {heads: {}, x: {default: head}}\n"),
            "AR041: nothing is named `head`",
        ),
        (
            family("    keys: {x: {default: ceil(2)}}\n"),
            "AR042: no function is named `ceil`",
        ),
        (
            family("    keys: {x: {default: divide(2)}}\n"),
            "AR043: `divide` takes 2 arguments; 1 given",
        ),
        (
            family("    keys: {x: {default: 1 > 0}}\n"),
            "AR043: the default is a truth value; it must be an integer",
        ),
        (
            family("    keys: {y: {}, x: {required: y + 1}}\n"),
            "AR043: `required` is an integer; it must be a truth value",
        ),
        (family("    keys: {x: {default: 1 / 2}}\n"), "AR040: `/` in a formula"),
        (family("    fields: {x: y}\n"), "AR041: nothing is named `y`"),
        (
            family("    keys: {x: {length: 3}}\n"),
            "AR093: `length` does not go with a key of type int",
        ),
        (
            family("    keys: {x: {type: bool, minimum: 1}}\n"),
            "AR093: `minimum` does not go with a key of type bool",
        ),
        (
            family("    keys: {x: {type: list, words: w}}\n"),
            "AR094: no table of words is named `w`",
        ),
        (family("    keys: {max: {}}\n"), "AR090: the key `max` would hide a Python"),
        (family("    keys: {keys: {}}\n"), "AR090: the key `keys` is used by"),
        (family("    keys: {Heads: {}}\n"), "AR090: the key `Heads` is not in lower"),
        (
            "families: {a-b: {doc: A.}}",
            "AR090: the family `a-b` is not a letter followed by",
        ),
    ],
)
def test_bad_table(text: str, message: str) -> None:
    with pytest.raises(InputProblems) as caught:
        load_families(text, "table.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("table.yaml:")


def test_text_of_a_table_reaches_the_code_as_text(tmp_path: Path) -> None:
    nasty = '"""\\ {{ x }} \' %s #'
    table = load_families(
        json.dumps(
            {
                "words": {"w": {"doc": nasty, "table": {nasty: nasty}}},
                "families": {
                    "tiny": {
                        "doc": nasty,
                        "model_types": [nasty],
                        "sections": [nasty],
                        "keys": {"kind": {"type": "str", "names": [nasty]}},
                    },
                    "no": {"doc": nasty, "model_types": ["no"], "refuse": nasty},
                },
            }
        ),
        "nasty.yaml",
    )
    schema = load(ARENA, "arena.yaml")
    emitted = emit(tmp_path, "emitted_nasty", schema, table)
    assert emitted({"model_type": nasty, nasty: {nasty: "x"}}).kind == "x"
    with pytest.raises(ValueError) as raised:
        emitted({"model_type": "no"})
    assert str(raised.value) == f"config.json: no: {nasty}"


def test_tuples_stand_for_lists_in_data(emitted: Emitted) -> None:
    for stem, changes in (
        ("hunyuan_v1_moe", {"moe_topk": (4, 8, 8)}),
        ("minimax_m2", {"attn_type_list": (1, 1, 1, 1)}),
        ("bamba", {"attn_layer_indices": (1, 4)}),
        ("Qwen3-32B", {"layer_types": ("full_attention",) * 64}),
    ):
        raw = fixture(stem) | changes
        lists = {key: list(value) for key, value in changes.items()}
        assert both(raw, emitted) == both(raw | lists, emitted)
        assert isinstance(both(raw, emitted)[0], dict)
