"""Model options of the command line: any checkpoint, and hostile files."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import oracle
from arenagen.cli import cli
from arenagen.commands import progress
from expected_configs import EXPECTED
from metrale_arena import ConfigError, ModelConfig

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
METRALE = ROOT / "schema/metrale.yaml"
LLAMA = DATA / "Llama-3.1-8B.json"
LIMITS: dict[str, Any] = {
    "max_batch_tokens": 16,
    "max_seq_len": 65536,
    "kv_block_size": 16,
    "max_batch_size": 32,
}


def run(*arguments: str | Path, code: int = 0) -> Result:
    """Run a command in this process; it must exit with `code`, and never raise."""
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def sizes(config: Path, *arguments: str) -> tuple[dict[str, int], str]:
    """The bytes of every buffer for 16 tokens, and what is said beside them."""
    options = ("-s", METRALE, "-c", config, "--format", "json")
    result = run("sizes", *options, "-M", "16", *arguments)
    buffers = json.loads(result.stdout)["buffers"]
    return {each["name"]: each["bytes"] for each in buffers}, result.stderr


def changed(path: Path, folder: Path, **changes: object) -> Path:
    """A copy of a config file with some keys changed, or removed by None."""
    data = json.loads(path.read_text("utf-8")) | changes
    copy = folder / "config.json"
    copy.write_text(json.dumps({key: v for key, v in data.items() if v is not None}))
    return copy


def test_an_unknown_model_type_is_assumed_and_said(tmp_path: Path) -> None:
    config = changed(LLAMA, tmp_path, model_type="llama_next", n_routed_experts=8)
    found, said = sizes(config, "--assume", "llama")
    assert found == oracle.metrale_sizes(EXPECTED["Llama-3.1-8B"], **LIMITS)
    assert said == (
        f"warning: {config}: model_type 'llama_next' is not known; read as llama\n"
        f"warning: {config}: llama: not read, though it may change sizes: "
        "n_routed_experts\n"
    )


def test_assuming_leaves_known_files_alone() -> None:
    assert sizes(LLAMA, "--assume", "mixtral") == sizes(LLAMA)


@pytest.mark.parametrize(
    ("stem", "lacking", "given", "expected"),
    [
        ("Llama-3.1-8B", "vocab_size", "vocab_size=7", {"vocab_size": 7}),
        # Nothing else needs the head parts of latent attention.
        ("DeepSeek-V3", "qk_nope_head_dim", "head_dim=128", {"head_dim": 128}),
        # What follows from a field follows from what is set.
        (
            "Llama-3.1-8B",
            "num_attention_heads",
            "num_attention_heads=64",
            {"num_attention_heads": 64, "head_dim": 64},
        ),
    ],
)
def test_a_field_that_the_file_lacks_can_be_set(
    stem: str, lacking: str, given: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    config = changed(DATA / f"{stem}.json", tmp_path, **{lacking: None})
    result = run("sizes", "-s", METRALE, "-c", config, code=2)
    assert f"{lacking} is missing from the file" in result.stderr
    found, _ = sizes(config, "--set", given)
    assert found == oracle.metrale_sizes(EXPECTED[stem] | expected, **LIMITS)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "broken": (b'{"model_type": "llama"', "not JSON: Expecting ',' delimiter"),
    "no_model_type": (b"{}", "model_type is missing; known: llama, "),
    "unknown": (b'{"model_type": "lama"}', "did you mean llama? known: llama, "),
    "no_hidden_size": (
        b'{"model_type": "llama"}',
        "llama: hidden_size is missing from the file",
    ),
    "text": (
        b'{"model_type": "llama", "hidden_size": "4096"}',
        "llama: hidden_size is '4096' (str), not an int",
    ),
    "negative": (
        b'{"model_type": "llama", "hidden_size": -4096}',
        "llama: hidden_size is -4096; at least 1",
    ),
    "nan": (
        b'{"model_type": "llama", "hidden_size": NaN}',
        "llama: hidden_size is nan (float), not an int",
    ),
    "deep": (b'{"a":' * 100_000, "not JSON: maximum recursion depth exceeded"),
    "deep_array": (b"[" * 100_000, "not JSON: maximum recursion depth exceeded"),
    "twice": (
        b'{"model_type": "llama", "hidden_size": 1, "hidden_size": 2}',
        "not JSON: the key 'hidden_size' stands twice in an object",
    ),
    "digits": (
        b'{"model_type": "llama", "hidden_size": ' + b"9" * 5000 + b"}",
        "not JSON: Exceeds the limit",
    ),
    "large": (b" " * (16 * 2**20 + 1), "more than 16777216 bytes"),
    "layers": (
        b'{"model_type": "gemma3", "num_hidden_layers": 9999999999, "hidden_size": 8}',
        "gemma3: layer_types: 9999999999 layers; at most 65536",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_told_in_one_line_and_quickly(
    name: str, tmp_path: Path
) -> None:
    data, message = HOSTILE[name]
    path = tmp_path / "config.json"
    path.write_bytes(data)
    start = time.monotonic()
    result = run("sizes", "-s", METRALE, "-c", path, code=2)
    assert time.monotonic() - start < 5
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {path}: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    with pytest.raises(ConfigError) as raised:
        ModelConfig.from_hf(path)
    assert f"error: {raised.value}\n" == result.stderr


def test_a_file_of_100_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    result = run("sizes", "-s", METRALE, "-c", path, code=2)
    assert result.stderr == (
        f"error: {path}: 104857600 bytes; at most 67108864 are read\n"
    )
    with pytest.raises(ConfigError, match="more than 16777216 bytes"):
        ModelConfig.from_hf(path)


def test_a_count_beyond_any_memory_is_a_size_error(tmp_path: Path) -> None:
    path = changed(LLAMA, tmp_path, intermediate_size=10**30)
    result = run("sizes", "-s", METRALE, "-c", path, code=2)
    assert result.stderr.startswith("error: expert_gate_out: ")
    assert "bytes is more than 2**63 - 1" in result.stderr


MODELS = ("Llama-3.1-8B", "GLM-5.3-Flash")


def total(stem: str, tokens: int, **options: Any) -> int:
    limits = {**LIMITS, "max_batch_tokens": tokens}
    return sum(oracle.metrale_sizes(EXPECTED[stem], **limits, **options).values())


def grid(*arguments: str) -> str:
    configs = [part for stem in MODELS for part in ("-c", DATA / f"{stem}.json")]
    return run("sizes", "-s", METRALE, *configs, "-M", "16,512", *arguments).stdout


def test_models_by_limits_as_data() -> None:
    data = json.loads(grid("--format", "json"))
    found = [
        (each["config"], each["limits"]["max_batch_tokens"], each["total_bytes"])
        for each in data
    ]
    assert found == [
        (f"{stem}.json", tokens, total(stem, tokens))
        for stem in MODELS
        for tokens in (16, 512)
    ]
    rows = list(csv.DictReader(io.StringIO(grid("--format", "csv"))))
    assert len(rows) == 4 * 46
    assert sum(int(row["bytes"]) for row in rows) == sum(each[2] for each in found)


@pytest.mark.parametrize("style", ["table", "md"])
def test_models_by_limits_as_a_table(style: str) -> None:
    rows = {}
    for line in grid("--format", style).splitlines():
        cells = [cell.strip() for cell in re.split("[│┃|]", line)[1:-1]]
        if cells:
            rows[cells[0]] = cells[1:]
    assert rows["config"] == ["M = 16", "M = 512"]
    for stem in MODELS:
        totals = (total(stem, tokens) / 2**20 for tokens in (16, 512))
        assert rows[f"{stem}.json"] == [f"{each:.2f} MiB" for each in totals]


def test_sizes_without_trims() -> None:
    trimmed, _ = sizes(DATA / "GLM-5.3-Flash.json")
    whole, _ = sizes(DATA / "GLM-5.3-Flash.json", "--no-trim")
    assert sum(trimmed.values()) == total("GLM-5.3-Flash", 16)
    assert sum(whole.values()) == total("GLM-5.3-Flash", 16, glm_trim=False)
    assert (trimmed["qkv_output"], whole["qkv_output"]) == (0, 16 * 3 * 64 * 256 * 2)


def test_one_limit_twice_is_one_limit() -> None:
    assert sizes(LLAMA, "-M", "16,16") == sizes(LLAMA)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sizes -M 16,x", "Invalid value for '-M' / '--tokens': 'x' is not a valid"),
        ("sizes -M 16,", "Invalid value for '-M' / '--tokens': '' is not a valid"),
        ("sizes -M 0,16", "error: max_batch_tokens=0; at least 1"),
        (
            "sizes -M 16,32 -l max_batch_tokens=16",
            "-M 32, and max_batch_tokens says otherwise",
        ),
        ("zero-plan -M 16,32", "-M: several values go with `arenagen sizes` alone"),
    ],
)
def test_bad_limits_are_told(command: str, message: str) -> None:
    name, *arguments = command.split()
    result = run(name, "-s", METRALE, "-c", LLAMA, *arguments, code=2)
    assert message in result.stderr
    assert result.stdout == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("seconds", "shown"), [(-1.0, True), (60.0, False)])
def test_a_bar_shows_once_it_takes_long(
    seconds: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_SECONDS_WITHOUT_BAR", seconds)
    assert list(progress.progress([1, 2, 3], "sizing")) == [1, 2, 3]
    assert ("sizing" in terminal.getvalue()) is shown


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.progress([1, 2], "sizing")) == [1, 2]
    assert capsys.readouterr() == ("", "")
