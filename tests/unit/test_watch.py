"""`generate --watch`: what a save does, on a stand-in for watchfiles.

The stand-in's saves are edits that a test makes; each yields what watchfiles would.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from arenagen.cli import cli

TINY = """\
arena:
  class: TinyArena
  package: tiny_arena
  label: tiny arena
  doc: A tiny arena.
limits:
  max_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of the largest pass.}
config:
  width: {doc: Width of a row.}
buffers:
  rows: {doc: One row per token., dtype: bf16, shape: [M, width], token_major: true}
"""
WIDER = TINY.replace("[M, width]", "[M, 3, width]")
WRONG = TINY.replace("[M, width]", "[M, widht]")
PROJECT = '[[tool.arenagen.arenas]]\nschema = "tiny.yaml"\noutput = "out"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["generate", *arguments])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def saves(
    monkeypatch: pytest.MonkeyPatch, *edits: Callable[[], Path]
) -> list[tuple[str, ...]]:
    """Make watchfiles see these edits; returns the folders that it was asked for."""
    asked: list[tuple[str, ...]] = []
    left = iter(edits)

    def watch(*folders: str, **_: object) -> Iterator[set[tuple[int, str]]]:
        asked.append(folders)
        for edit in left:
            yield {(2, str(edit()))}

    module = ModuleType("watchfiles")
    module.watch = watch  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "watchfiles", module)
    return asked


def save(path: Path, text: str) -> Callable[[], Path]:
    def edit() -> Path:
        path.write_text(text)
        return path

    return edit


def test_a_save_emits_again_and_tells_what_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = project / "tiny.yaml"
    asked = saves(monkeypatch, save(schema, WIDER))
    result = run("--watch")
    assert result.exit_code == 0
    assert asked == [(str(project),)]
    _, saved = result.stdout.split("watching 1 file, until Ctrl-C\n")
    assert saved.startswith("\nsaved tiny.yaml\nchanged out/")
    assert "\ntiny_arena: 1 changed\n" in saved
    assert "M * width * 6" in (project / "out/sizes.py").read_text()


def test_a_mistake_is_told_and_the_next_save_waited_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = project / "tiny.yaml"
    saves(
        monkeypatch,
        save(schema, WRONG),
        save(schema, WIDER),
    )
    result = run("--watch")
    assert result.exit_code == 0
    assert "did you mean `width`?" in result.stderr
    assert "M * width * 6" in (project / "out/sizes.py").read_text()


def test_other_files_are_let_pass(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves(monkeypatch, save(project / "notes.txt", "x"))
    assert run("--watch").stdout.endswith("watching 1 file, until Ctrl-C\n")


def test_schemas_may_be_listed_and_unlisted_meanwhile(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, listed = project / "tiny.yaml", project / "pyproject.toml"
    other = TINY.replace("tiny_arena", "other_arena").replace("TinyArena", "Other")
    (project / "other.yaml").write_text(other)

    def lists(text: str) -> Callable[[], Path]:
        def edit() -> Path:
            listed.write_text(text)
            schema.write_text(schema.read_text() + "# Saved.\n")
            return schema

        return edit

    both = PROJECT.replace("tiny", "other").replace('"out"', '"others"') + PROJECT
    widen = save(project / "other.yaml", other.replace("[M, width]", "[M, 3, width]"))
    saves(monkeypatch, lists(both), widen, lists(PROJECT), save(schema, WIDER))
    result = run("--watch")
    assert (result.exit_code, result.stderr) == (0, "")
    first, second, third, last = result.stdout.split("\nsaved ")[1:]
    assert "others: " in first and " -> " not in first
    assert "\nother_arena: 1 changed\n" in second
    assert "others: " not in third
    assert "\ntiny_arena: 1 changed\n" in last


def test_a_base_that_a_save_names_is_watched_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, base = project / "tiny.yaml", project / "bases/base.yaml"
    base.parent.mkdir()
    base.write_text(TINY)
    named = "arena: {extends: bases/base.yaml, package: own_arena}\n"
    asked = saves(monkeypatch, save(schema, named), save(base, WIDER))
    result = run("--watch")
    assert (result.exit_code, result.stderr) == (0, "")
    assert asked == [(str(project),), (str(project), str(base.parent))]
    assert "\nsaved bases/base.yaml\nchanged out/" in result.stdout
    assert "M * width * 6" in (project / "out/sizes.py").read_text()


def test_without_watchfiles_it_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    result = run("--watch")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: --watch needs watchfiles: pip install watchfiles\n"
    )
    assert not (project / "out").exists()


def test_a_config_goes_with_watching(project: Path) -> None:
    result = run("--config", "model.json")
    assert result.exit_code == 2
    assert "--config and --tokens go with --watch" in result.stderr


def test_with_a_config_it_tells_the_bytes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).resolve().parents[2]
    for name in ("metrale.yaml", "huggingface.yaml"):
        (project / name).write_bytes((root / "schema" / name).read_bytes())
    schema = project / "metrale.yaml"
    text = schema.read_text()
    edited = text.replace("shape: [M, hidden_size]", "shape: [M, 2, hidden_size]", 1)
    (project / "pyproject.toml").write_text(PROJECT.replace("tiny", "metrale"))
    saves(monkeypatch, save(schema, edited))
    config = root / "tests/data/Qwen3-32B.json"
    width = json.loads(config.read_text())["hidden_size"]
    result = run("--watch", "--config", str(config), "-M", "512")
    assert result.exit_code == 0, result.output
    assert f"{512 * width * 2:,}" in result.stdout
    assert f"{512 * 2 * width * 2:,}" in result.stdout
