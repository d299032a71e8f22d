"""`arenagen fmt`: layout changes and nothing else does."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arenagen.cli import cli
from arenagen.errors import InputProblems
from arenagen.source import decode, parse
from arenagen.tidy import TidyError, tidy

ROOT = Path(__file__).resolve().parents[2]
REAL = [
    *sorted((ROOT / "schema").glob("*.yaml")),
    ROOT / "templates/starter/starter.yaml",
]
CORPUS = sorted((ROOT / "tests/errors").rglob("*.yaml"))

# `~` is a blank at the end of a line.
MESSY = """\
\ufeff

# A comment of the file.
arena:
      class: Arena   # of the arena
      doc: "Two  blanks
        in quotes."
# Of the limits.
limits:


  tokens: {symbol: M,
    doc: "Tokens."}
  #   of nothing
buffers:
    # Of the first.
    first:
        doc: >-
              Folded text~~~
              of two lines # and no comment.

        shape:
        - M
        -    width~~~~
        bytes: |
          as

            it is~~


""".replace("~", " ")
TIDY = """\
# A comment of the file.
arena:
  class: Arena   # of the arena
  doc: "Two  blanks
    in quotes."

# Of the limits.
limits:

  tokens: {symbol: M,
    doc: "Tokens."}
  #   of nothing

buffers:
  # Of the first.
  first:
    doc: >-
      Folded text~~~
      of two lines # and no comment.

    shape:
      - M
      -    width
    bytes: |
      as

        it is~~
""".replace("~", " ")


def test_layout_by_hand() -> None:
    assert tidy(MESSY.encode(), "s.yaml") == TIDY
    assert tidy(TIDY.encode(), "s.yaml") == TIDY
    assert tidy(MESSY.replace("\n", "\r\n").encode(), "s.yaml") == TIDY


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029"])
def test_lines_that_end_for_yaml_alone_are_left(char: str) -> None:
    with pytest.raises(TidyError) as raised:
        tidy(f"a: 1 # b{char}c:\n  d: 2\n".encode(), "s.yaml")
    assert str(raised.value) == (
        f"s.yaml: cannot be laid out: {char!a} ends a line to YAML"
    )


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_schemas_are_laid_out(path: Path) -> None:
    assert tidy(path.read_bytes(), path.name) == path.read_text("utf-8")


def test_every_file_that_is_yaml_keeps_words_and_meaning() -> None:
    laid_out = 0
    for path in CORPUS:
        data = path.read_bytes()
        try:
            text = tidy(data, path.name)
        except InputProblems:
            continue
        laid_out += 1
        before = decode(data, path.name)
        assert text.split() == before.split(), path.name
        assert parse(text, path.name) == parse(before, path.name), path.name
        assert tidy(text.encode(), path.name) == text, path.name
    assert laid_out > 100


def test_blanks_and_blank_lines_of_the_real_schema_are_undone() -> None:
    rng = random.Random(1)
    text = (ROOT / "schema/metrale.yaml").read_text("utf-8")
    lines: list[str] = ["", ""]
    for line in text.split("\n"):
        lines.append(line + " " * rng.randrange(4) if line.endswith(":") else line)
        if not line:
            lines += [""] * rng.randrange(3)
    assert tidy("\n".join(lines).encode(), "s.yaml") == text


@pytest.mark.parametrize("factor", [2, 3])
def test_wider_indentation_of_the_real_schema_is_undone(factor: int) -> None:
    text = (ROOT / "schema/metrale.yaml").read_text("utf-8")
    lines = [
        " " * ((len(line) - len(line.lstrip(" "))) * factor) + line.lstrip(" ")
        for line in text.split("\n")
    ]
    laid = tidy("\n".join(lines).encode(), "s.yaml").split("\n")
    # Inside of a block, the indentation of one line against another has a meaning.
    for found, wanted in zip(laid, text.split("\n"), strict=True):
        assert found == wanted or ":" not in wanted
        assert found.lstrip() == wanted.lstrip()


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, arguments)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "messy.yaml").write_text(MESSY, encoding="utf-8")
    (tmp_path / "tidy.yaml").write_text(TIDY, encoding="utf-8")
    return tmp_path


def test_fmt_writes_what_differs(here: Path) -> None:
    (here / "messy.yaml").chmod(0o640)
    (here / "link.yaml").symlink_to("messy.yaml")
    kept = (here / "tidy.yaml").stat()
    result = run("fmt", "link.yaml", "tidy.yaml")
    assert result.stdout == "laid out link.yaml\n"
    assert (here / "messy.yaml").read_text("utf-8") == TIDY
    assert (here / "link.yaml").is_symlink()
    assert stat.S_IMODE((here / "messy.yaml").stat().st_mode) == 0o640
    assert (here / "tidy.yaml").stat() == kept
    assert len(os.listdir(here)) == 3
    assert run("fmt", "--check", "link.yaml", "tidy.yaml").stdout == ""


def test_fmt_check_writes_nothing(here: Path) -> None:
    result = run("fmt", "--check", "messy.yaml", "tidy.yaml", code=1)
    assert result.stdout == "differs: messy.yaml\n"
    assert (here / "messy.yaml").read_text("utf-8") == MESSY


def test_what_is_no_yaml_is_left_as_it_is(here: Path) -> None:
    (here / "bad.yaml").write_text("arena: [\n")
    result = run("fmt", "messy.yaml", "bad.yaml", code=2)
    assert "bad.yaml:2:1: error AR002" in result.stderr
    # Nothing is written before everything is read.
    assert (here / "messy.yaml").read_text("utf-8") == MESSY


def test_the_listed_schemas_are_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run("fmt", "--check").stdout == ""
