"""`arenagen init`: what it writes works at once, and nothing is written over."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arenagen.cli import cli
from arenagen.resources import family_table

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, arguments)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_what_is_written_works_at_once(here: Path) -> None:
    *written, _, generate, test = run("init", "tiny_llama").stdout.splitlines()
    assert sorted(written) == [
        "wrote huggingface.yaml",
        "wrote pyproject.toml",
        "wrote test_tiny_llama.py",
        "wrote tiny_llama.yaml",
    ]
    assert run("lint", "--strict", "tiny_llama.yaml").stdout == (
        "1 schema file: 0 errors, 0 warnings\n"
    )
    command, *arguments = generate.split()
    assert command == "arenagen"
    run(*arguments)
    assert test == "  python -m pytest test_tiny_llama.py"
    assert "4 passed" in run_tests(here, *test.split()[1:])
    config = str(ROOT / "tests/data/Llama-3.1-8B.json")
    assert run("check").exit_code == 0
    sizes = run("sizes", "-c", config, "--format", "csv")
    assert "hidden_states" in sizes.stdout
    assert "starter" not in (here / "tiny_llama.yaml").read_text().lower()
    assert "starter" not in (here / "test_tiny_llama.py").read_text().lower()


def run_tests(folder: Path, *arguments: str) -> str:
    """What a Python with these arguments, which run tests, prints."""
    options = ("-q", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_tests_say_how_a_package_elsewhere_is_found(here: Path) -> None:
    run("init", "tiny")
    run("generate", "tiny.yaml", "-o", "src/tiny_arena")
    text = (here / "test_tiny.py").read_text()
    (options,) = re.findall(r"^If it lies .*: (-o \S+)$", text, re.MULTILINE)
    command = ("-m", "pytest", "test_tiny.py", *options.split())
    assert "4 passed" in run_tests(here, *command)


def test_tensor_parallel_ranks_share_the_heads(here: Path) -> None:
    run("init", "tiny")
    run("generate")
    config = str(ROOT / "tests/data/Llama-3.1-8B.json")
    rank = ("-M", "64", "--tp", "2")
    sized = run("sizes", "-c", config, *rank, "--format", "csv").stdout
    rows = {row["buffer"]: row for row in csv.DictReader(sized.splitlines())}
    # 32 query heads and 8 key and value heads of 128, of which a rank has half.
    assert int(rows["qkv"]["bytes"]) == 64 * (16 + 4 + 4) * 128 * 2
    assert int(rows["attn_out"]["bytes"]) == 64 * 16 * 128 * 2
    assert int(rows["hidden_states"]["bytes"]) == 64 * 4096 * 2


def test_a_family_table_that_is_cut_down_makes_the_package_smaller(here: Path) -> None:
    run("init", "tiny")
    table = here / "huggingface.yaml"
    run("generate")
    whole = emitted_bytes(here / "tiny_arena")
    head, first, families = table.read_text("utf-8").partition("\nfamilies:\n")
    pieces = re.split(r"^(?=  \w+:$)", families, flags=re.MULTILINE)
    kept = [each for each in pieces if each.startswith(("  decoder:", "  llama:"))]
    assert len(kept) == 2
    table.write_text(head + first + "".join(kept), "utf-8")
    assert run("lint", "--strict").stdout == "1 schema file: 0 errors, 0 warnings\n"
    run("generate")
    assert 0.78 < emitted_bytes(here / "tiny_arena") / whole < 0.82
    config = str(ROOT / "tests/data/Llama-3.1-8B.json")
    assert "hidden_states" in run("sizes", "-c", config, "--format", "csv").stdout


def emitted_bytes(package: Path) -> int:
    return sum(each.stat().st_size for each in package.rglob("*") if each.is_file())


def test_a_pyproject_that_is_there_is_left_alone(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    own = here / 'with "quotes" \u00e9'
    own.mkdir()
    monkeypatch.chdir(own)
    lines = run("init", "tiny").stdout.splitlines()
    assert not (own / "pyproject.toml").exists()
    assert lines[-6:-3] == [
        "  arenagen generate tiny.yaml -o tiny_arena",
        "  python -m pytest test_tiny.py",
        f"and, for commands without a schema, add to {here / 'pyproject.toml'}",
    ]
    with (here / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines[-3:]))
    run("generate")
    count = sum(each.is_file() for each in (own / "tiny_arena").rglob("*"))
    assert count > 30
    assert run("check").stdout == f"tiny_arena: {count} files, all as tiny.yaml says\n"


def test_the_schema_to_start_from_is_small_and_commented(here: Path) -> None:
    run("init", "tiny")
    text = (here / "tiny.yaml").read_text()
    assert len(text.splitlines()) < 220
    assert sum(line.lstrip().startswith("#") for line in text.splitlines()) > 10
    assert (here / "huggingface.yaml").read_bytes() == family_table().read_bytes()


@pytest.mark.parametrize("name", ["tiny.yaml", "test_tiny.py"])
def test_nothing_is_written_over(here: Path, name: str) -> None:
    (here / name).write_text("mine")
    bad = run("init", "tiny", code=2)
    assert bad.stderr == f"error: already there, and left alone: {name}\n"
    assert [path.name for path in here.iterdir()] == [name]
    assert (here / name).read_text() == "mine"


def test_a_family_table_that_is_there_is_kept(here: Path) -> None:
    (here / "huggingface.yaml").write_text("families: {}")
    assert "huggingface.yaml" not in run("init", "tiny").stdout
    assert (here / "huggingface.yaml").read_text() == "families: {}"


def test_a_folder_that_takes_no_files_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def full(path: Path, *arguments: object, **options: object) -> object:
        if path.name == "test_tiny.py":
            raise OSError(28, "No space left on device", str(path))
        return real(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "open", full)
    bad = run("init", "tiny", code=2)
    assert bad.stderr == (
        "error: test_tiny.py: cannot be written: No space left on device\n"
    )
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is not a letter followed by letters, digits and `_`"),
        ("Tiny", "is not in small letters"),
        ("2b", "is not a letter followed by letters, digits and `_`"),
        ("../tiny", "is not a letter followed by letters, digits and `_`"),
        ("a b", "is not a letter followed by letters, digits and `_`"),
        ("class", "is a word of the Python language"),
        ("größe", "has characters beyond ASCII"),
        ("x" * 80, "is longer than 80 characters"),
    ],
)
def test_names_that_no_package_has(here: Path, name: str, why: str) -> None:
    bad = run("init", "--", name, code=2)
    assert f"the name {name!r} {why}; give a word" in bad.stderr
    assert list(here.iterdir()) == []
