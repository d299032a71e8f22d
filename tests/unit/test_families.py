"""The family table: real files, every fault, and the emitted functions beside it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenagen import render as rendering
from arenagen.errors import InputProblems
from arenagen.families import (
    Canonical,
    ConfigFileError,
    FamilyTable,
    load_families,
    read_config,
)
from arenagen.load import load
from arenagen.lower import lower
from arenagen.lower_families import lower_families
from arenagen.model import Schema
from expected_configs import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "configs"
SCHEMA = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
TABLE = load_families(
    (ROOT / "schema/huggingface.yaml").read_text("utf-8"), "huggingface.yaml"
)
FIXTURES = sorted((ROOT / "tests/data").glob("*.json"))
FILES = FIXTURES + sorted(REAL.glob("*.json"))

# Real files beyond EXPECTED, worked out by hand in the same form.
MORE: dict[str, dict[str, object]] = {
    "Mixtral-8x7B-v0.1": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "intermediate_size": 14336,
        "vocab_size": 32000,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,  # absent: 4096 / 32
        "num_experts": 8,  # num_local_experts
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 14336,  # intermediate_size
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "num_hidden_layers": 24,
        "intermediate_size": 2880,
        "vocab_size": 201088,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,  # as given; 2880 / 64 would be 45
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "num_experts": 32,  # num_local_experts
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 2880,  # intermediate_size
    },
    "GLM-4.5-Air": {
        "model_type": "glm4_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 46,
        "intermediate_size": 10944,
        "vocab_size": 151552,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,  # as given; 96 does not divide 4096
        "num_experts": 128,  # n_routed_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 1408,  # n_shared_experts 1 * 1408
    },
    "Kimi-K2-Instruct": {
        "model_type": "kimi_k2",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "intermediate_size": 18432,
        "vocab_size": 163840,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 192,  # absent: 128 + 64
        "num_experts": 384,  # n_routed_experts
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "shared_expert_intermediate_size": 2048,  # n_shared_experts 1 * 2048
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
    },
    "Qwen3.8-Flash-Next": {
        "model_type": "qwen4_exp",
        "hidden_size": 2560,
        "num_hidden_layers": 48,
        "vocab_size": 248320,
        "num_attention_heads": 24,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "attn_gated": True,  # output_gate_type
        "layer_types": [*["linear_attention"] * 3, "full_attention"] * 12,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_key_head_dim": 128,
        "linear_num_value_heads": 48,
        "linear_value_head_dim": 128,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 640,
        "shared_expert_intermediate_size": 640,
        "mrope_interleaved": True,
        "hc_mult": 4,  # hc_count
        "hc_lowrank": 320,
        "index_n_heads": 4,
        "index_head_dim": 128,
        "index_topk": 2048,  # indexer_budget
        "index_compress_ratio": 4,
    },
}

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 4,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "num_attention_heads": 32,
}

Emitted = Callable[[Any], Any]


def fixture(stem: str) -> dict[str, Any]:
    """The data of a fixture, free to be changed."""
    path = ROOT / "tests/data" / f"{stem}.json"
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


def outcome(call: Callable[[], Any]) -> object:
    """The fields of a config, or the text of the error."""
    try:
        config = call()
    except ConfigFileError as error:
        return str(error)
    except ValueError as error:
        assert type(error).__name__ == "ConfigError"
        return str(error)
    if isinstance(config, Canonical):
        return config.fields
    return {each.name: getattr(config, each.name) for each in SCHEMA.config}


def both(raw: Any, emitted: Emitted) -> object:
    """What tool and emitted package make of a file, which must be the same."""
    tool = outcome(lambda: TABLE.canonical(raw, SCHEMA))
    assert outcome(lambda: emitted(raw)) == tool
    return tool


REASON = "the folder of published config files is not beside the repository"
NO_FILES = pytest.param(None, id="published", marks=pytest.mark.skip(reason=REASON))
CASES = [pytest.param(each, id=f"{each.parent.name}/{each.stem}") for each in FILES]


@pytest.mark.parametrize("path", CASES if REAL.is_dir() else [*CASES, NO_FILES])
def test_file(path: Path, emitted: Emitted) -> None:
    raw = read_config(path.read_bytes(), str(path))
    tool = outcome(lambda: TABLE.canonical(raw, SCHEMA, str(path)))
    assert outcome(lambda: emitted(path)) == tool
    assert outcome(lambda: emitted(str(path))) == tool
    expected = (EXPECTED | MORE).get(path.stem)
    if expected is None:
        assert isinstance(tool, str)
        assert "is not known" in tool or "Mamba-1" in tool
    else:
        assert isinstance(tool, dict)
        assert plain(tool) == expected


def test_every_family_is_tested() -> None:
    tested = {expected["model_type"] for expected in (EXPECTED | MORE).values()}
    missing = {
        family.name
        for family in TABLE.by_model_type.values()
        if tested.isdisjoint(family.model_types) and not family.refuse
    }
    assert missing == set()


def test_canonical_names_family_and_holds_every_field() -> None:
    canonical = TABLE.canonical(LLAMA | {"model_type": "mistral"}, SCHEMA)
    assert canonical.family == "llama"
    assert canonical.model_type == canonical.fields["model_type"] == "mistral"
    assert list(canonical.fields) == [each.name for each in SCHEMA.config]


KNOWN = ", ".join(TABLE.by_model_type)
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
    (LLAMA, "model_type", 5, "model_type: 5 (int) is not a str"),
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
    (LLAMA, "hidden_size", 0, "llama: hidden_size: 0 (int) is not an int, at least 1"),
    (
        LLAMA,
        "hidden_size",
        4096.0,
        "llama: hidden_size: 4096.0 (float) is not an int, at least 1",
    ),
    (
        LLAMA,
        "hidden_size",
        "4096",
        "llama: hidden_size: '4096' (str) is not an int, at least 1",
    ),
    (
        LLAMA,
        "hidden_size",
        True,
        "llama: hidden_size: True (bool) is not an int, at least 1",
    ),
    (
        LLAMA,
        "hidden_size",
        [1] * 100,
        f"llama: hidden_size: [{'1, ' * 26}1... (list) is not an int, at least 1",
    ),
    (
        LLAMA,
        "hidden_size",
        -(2**200),
        f"llama: hidden_size: {-(2**200):#x} (int) is not an int, at least 1",
    ),
    (LLAMA, "num_attention_heads", 30, "llama: head_dim: 4096 / 30 is not an integer"),
    (LLAMA, "head_dim", 0, "llama: head_dim: 0 (int) is not an int, at least 1"),
    (
        LLAMA,
        "adapter_max_rank",
        -1,
        "llama: adapter_max_rank: -1 (int) is not an int, at least 0",
    ),
    (
        LLAMA,
        "rope_scaling",
        {"mrope_interleaved": 1},
        "llama: rope_scaling.mrope_interleaved: 1 (int) is not True or False",
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
        "llama: layer_types: 'full_attention' (str) is not a list of str",
    ),
    (
        LLAMA,
        "layer_types",
        ["attention", None],
        "llama: layer_types[1]: None (NoneType) is not a str",
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
        "qwen3_5: text_config.rope_parameters.mrope_interleaved: 'yes' (str) "
        "is not True or False",
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
        {"model_type": "jamba"},
        "mamba_d_state",
        16,
        "jamba: Mamba-1 layers have no heads, and an arena sizes Mamba-2 layers only",
    ),
]


@pytest.mark.parametrize(("raw", "path", "value", "text"), FAULTS)
def test_fault(
    raw: dict[str, Any], path: str, value: object, text: str, emitted: Emitted
) -> None:
    assert both(changed(raw, path, value), emitted) == f"config.json: {text}"


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
        # A field that the family does not mention, by its name or an alias.
        (LLAMA, {"adapter_max_rank": 64}, {"adapter_max_rank": 64}),
        (LLAMA, {"n_routed_experts": 8}, {"num_experts": 8}),
        (LLAMA, {"num_experts": None, "moe_num_experts": 4}, {"num_experts": 4}),
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
    fields = both(raw, emitted)
    assert isinstance(fields, dict)
    assert {name: fields[name] for name in expected} == expected


VALUES = st.sampled_from(
    [ABSENT, None, 0, 1, 3, -1, 128, 2.5, True, "", "M", "attention", [], ["x"], {}]
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_tool_and_package_agree_on_odd_files(
    emitted: Emitted, data: st.DataObject
) -> None:
    raw = fixture(data.draw(st.sampled_from([path.stem for path in FIXTURES])))
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


def test_infinity_duplicates_and_bom_are_read(tmp_path: Path, emitted: Emitted) -> None:
    text = json.dumps(LLAMA)[:-1] + ', "time_step_limit": [0.0, Infinity], "x": NaN}'
    text = text.replace("{", '{"vocab_size": 1, ', 1)
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


def test_a_key_that_no_field_needs_is_not_emitted() -> None:
    view = lower_families(load_families(SMALL, "small.yaml"), load(ARENA, "arena.yaml"))
    assert "vocab_size" not in repr(view)


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
    with pytest.raises(InputProblems):
        lower_families(table, schema)


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
            family("    keys: {x: {default: 'y'}, y: {}}\n"),
            "hint: keys are read in order, and this one comes later",
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
