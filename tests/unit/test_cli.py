"""The command line: what each command prints where, its exit code, and bad input.

Commands run in this process, through click's runner, unless the process itself is the
point: its modules, its streams, its terminal. Small schemas of our own stand in for
the real one wherever the real one is not what is tested.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from click import Context
from click.testing import CliRunner, Result

import oracle
from arenagen import __version__, manifest, start
from arenagen.cli import cli
from arenagen.commands import checking, emitting
from arenagen.resources import family_table
from expected_configs import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
METRALE = ROOT / "schema/metrale.yaml"
DATA = ROOT / "tests/data"
QWEN = DATA / "Qwen3-32B.json"
GLM = DATA / "GLM-5.3-Flash.json"
LIMITS = {
    "max_batch_tokens": 8192,
    "max_seq_len": 65536,
    "kv_block_size": 16,
    "max_batch_size": 32,
}

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
UNUSED = TINY.replace("buffers:", "  odd: {doc: Read nowhere.}\nbuffers:")
WRONG = TINY.replace("[M, width]", "[M, widht]")
LISTED = '[[tool.arenagen.arenas]]\nschema = "{}"\noutput = "{}"\n'


def run(*arguments: str | Path, code: int = 0) -> Result:
    """Run a command in this process; it must exit with `code`, and never raise."""
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert result.exit_code == code, result.output
    assert "\x1b" not in result.output
    return result


def process(
    *arguments: str | Path, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "arenagen", *map(os.fspath, arguments)],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(here: Path) -> Path:
    """A project with one small schema, listed in its pyproject.toml."""
    (here / "tiny.yaml").write_text(TINY)
    (here / "pyproject.toml").write_text(LISTED.format("tiny.yaml", "src/tiny_arena"))
    return here


@pytest.fixture
def generated(project: Path) -> Path:
    """The package of the small schema, just generated."""
    run("generate")
    return project / "src/tiny_arena"


def snapshot(folder: Path) -> dict[Path, tuple[int, int, bytes]]:
    """Inode, time and content of every file below a folder."""
    return {
        path: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


# generate.


def test_generate_emits_what_pyproject_lists(project: Path) -> None:
    result = run("generate")
    files = sorted((project / "src/tiny_arena").rglob("*.*"))
    *added, last = result.stdout.splitlines()
    assert added == [f"added {path.relative_to(project)}" for path in files]
    assert last == f"src/tiny_arena: {len(files)} files, 0 unchanged"
    assert result.stderr == ""
    assert "class TinyArena" in (project / "src/tiny_arena/arena.py").read_text()


def test_generate_writes_nothing_the_second_time(generated: Path) -> None:
    before = snapshot(generated)
    result = run("generate")
    count = len(before)
    assert result.stdout == f"src/tiny_arena: {count} files, {count} unchanged\n"
    assert snapshot(generated) == before


def test_generate_names_what_it_keeps(generated: Path) -> None:
    (generated / "mine.py").write_text("x = 1\n")
    (generated / "runtime/notes.md").write_text("Mine.\n")
    (generated / "__pycache__").mkdir(exist_ok=True)
    (generated / "__pycache__/mine.pyc").write_bytes(b"\0")
    before = snapshot(generated)
    result = run("generate")
    assert result.stdout.endswith(
        "unchanged; not arenagen's, kept: mine.py, runtime/notes.md\n"
    )
    for place in range(8):
        (generated / f"a{place}.py").touch()
    result = run("generate")
    assert "kept: a0.py, a1.py, a2.py, a3.py, a4.py and 5 more\n" in result.stdout
    assert before.items() <= snapshot(generated).items()


@pytest.mark.parametrize("failing", range(5))
def test_a_fault_of_the_generator_itself_changes_no_file(
    generated: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    from arenagen import render

    schema = generated.parents[1] / "tiny.yaml"
    schema.write_text(UNUSED)
    before = snapshot(generated)
    calls = iter(range(100))
    real = render.styled

    def styled(text: str) -> str:
        if next(calls) == failing:
            raise ValueError("cannot be formatted")
        return real(text)

    with monkeypatch.context() as patch:
        patch.setattr(render, "styled", styled)
        with pytest.raises(ValueError, match="cannot be formatted"):
            run("generate")
    assert snapshot(generated) == before
    assert "changed src/tiny_arena/config.py" in run("generate").stdout


FULL_DISK = """
import resource, sys
from arenagen.cli import main

# No file can grow beyond this many bytes: writes fail as on a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop()), resource.RLIM_INFINITY))
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("limit", [0, 1000, 10_000])
def test_a_disk_that_is_full_changes_no_file(generated: Path, limit: int) -> None:
    more = "  more: {doc: More rows., dtype: f32, shape: [M]}\n"
    (generated.parents[1] / "tiny.yaml").write_text(TINY + more)
    before = snapshot(generated)
    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL_DISK, "generate", str(limit)],
        cwd=generated.parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last == f"error: {generated}: cannot be written: File too large"
    assert snapshot(generated) == before
    assert not list(generated.glob(".arenagen-*"))


def test_generate_tells_what_it_added_changed_and_removed(generated: Path) -> None:
    (generated / "sizes.py").unlink()
    with (generated / "arena.py").open("a") as file:
        file.write("x = 1\n")
    shutil.copy(generated / "target.py", generated / "old.py")
    count = len(list(generated.rglob("*.*"))) - 1
    assert run("generate").stdout.splitlines() == [
        "changed src/tiny_arena/arena.py",
        "removed src/tiny_arena/old.py",
        "added src/tiny_arena/sizes.py",
        f"src/tiny_arena: {count + 1} files, {count - 1} unchanged",
    ]
    assert run("check").exit_code == 0


def test_generate_finds_the_project_from_a_folder_below(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep/er")
    run("generate")
    assert (project / "src/tiny_arena/arena.py").is_file()


def test_the_nearest_project_that_lists_arenas_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = project / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\nname = "uses arenagen"\n')
    monkeypatch.chdir(inner)
    run("generate")
    assert (project / "src/tiny_arena/arena.py").is_file()


def test_other_projects_files_need_not_be_sound(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "inner/deeper/pyproject.toml").mkdir(parents=True)
    (project / "inner/pyproject.toml").write_text("[broken")
    monkeypatch.chdir(project / "inner/deeper")
    run("generate")
    assert (project / "src/tiny_arena/arena.py").is_file()


def test_generate_of_a_listed_schema_needs_no_output(project: Path) -> None:
    run("generate", "tiny.yaml")
    run("check", project / "src/../tiny.yaml")


def test_a_schema_may_have_several_outputs(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        LISTED.format("tiny.yaml", "one") + LISTED.format("./tiny.yaml", "two")
    )
    run("generate", "tiny.yaml")
    assert (project / "one/arena.py").read_bytes() == (
        project / "two/arena.py"
    ).read_bytes()


def test_generate_takes_an_output_for_a_schema_that_is_not_listed(here: Path) -> None:
    (here / "a schema.yaml").write_text(TINY)
    run("generate", "a schema.yaml", "-o", "an output/tiny_arena")
    text = (here / "an output/tiny_arena/arena.py").read_text()
    assert text.startswith("# Generated by arenagen from a schema.yaml. Do not edit.\n")
    assert run("check", "a schema.yaml", "--output", "an output/tiny_arena")


def test_with_an_output_the_project_is_not_asked(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.arenagen]\n[broken")
    run("generate", "tiny.yaml", "-o", "elsewhere")
    assert not (project / "src").exists()


def test_all_schemas_are_checked_before_the_first_file_is_written(
    project: Path,
) -> None:
    (project / "wrong.yaml").write_text(WRONG)
    with (project / "pyproject.toml").open("a") as file:
        file.write(LISTED.format("wrong.yaml", "src/wrong"))
    result = run("generate", code=2)
    assert "wrong.yaml:11:59: error AR041" in result.stderr
    assert not (project / "src").exists()


def test_generate_refuses_a_hand_written_file_in_its_way(generated: Path) -> None:
    (generated / "arena.py").write_text("mine = 1\n")
    (generated / "sizes.py").unlink()
    before = snapshot(generated)
    result = run("generate", code=2)
    assert result.stdout == ""
    assert result.stderr == (
        f"error: {generated}: not written by arenagen, and in the way: arena.py; move "
        "them, or choose another output folder\n"
    )
    assert snapshot(generated) == before


def test_generate_shows_warnings_and_goes_on(here: Path) -> None:
    (here / "odd.yaml").write_text(UNUSED)
    result = run("generate", "odd.yaml", "-o", "out")
    assert "odd.yaml:10:3: warning AR080: " in result.stderr
    assert "AR080" not in result.stdout
    assert (here / "out/arena.py").is_file()


def test_a_file_name_cannot_put_code_into_the_package(here: Path) -> None:
    name = "a\nimport os\x0c\udcff.yaml"
    (here / name).write_text(TINY)
    run("generate", name, "-o", "out")
    first, second = (here / "out/target.py").read_text().splitlines()[:2]
    assert first == "# Generated by arenagen from a?import os??.yaml. Do not edit."
    assert second == ""


# check.


def test_check_is_green_on_the_committed_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    before = snapshot(ROOT / "generated")
    result = run("check")
    shown = ""
    for name in ("metrale", "atlas"):
        package = snapshot(ROOT / f"generated/{name}_arena")
        count = sum(path.suffix in (".py", ".typed") for path in package)
        shown += (
            f"generated/{name}_arena: {count} files, all as schema/{name}.yaml says\n"
            f"docs/{name}.md: as schema/{name}.yaml says\n"
        )
    assert result.stdout == shown
    assert result.stderr == ""
    assert snapshot(ROOT / "generated") == before


def spoil_byte(package: Path) -> str:
    path = package / "sizes.py"
    text = path.read_text(encoding="utf-8")
    assert "M * width * 2" in text
    path.write_text(text.replace("M * width * 2", "M * width * 3", 1))
    return (
        "--- sizes.py (on disk)\n"
        "+++ sizes.py (from the schema)\n"
        "@@ LINES @@\n"
        "...\n"
        "-        rows = M * width * 3\n"
        "+        rows = M * width * 2\n"
        "..."
    )


def spoil_byte_of_runtime(package: Path) -> str:
    with (package / "runtime/slab.py").open("ab") as file:
        file.write(b"\xff\n")
    return (
        "--- runtime/slab.py (on disk)\n"
        "+++ runtime/slab.py (from the schema)\n"
        "@@ LINES @@\n"
        "...\n"
        "-\\xff\n"
    )


def spoil_missing(package: Path) -> str:
    (package / "runtime/host.py").unlink()
    return "missing: src/tiny_arena/runtime/host.py\n"


def spoil_extra(package: Path) -> str:
    shutil.copy(package / "target.py", package / "runtime/old.py")
    return "extra: src/tiny_arena/runtime/old.py is emitted no longer\n"


def spoil_foreign(package: Path) -> str:
    (package / "levers.py").write_text("Levers = 1\n")
    return "foreign: src/tiny_arena/levers.py is not arenagen's\n"


def pattern(shown: str) -> str:
    """A regular expression for a text with dots for any lines."""
    return re.escape(shown).replace(r"\.\.\.", "(.|\n)*").replace("LINES", "[^@]*")


@pytest.mark.parametrize(
    "spoil",
    [spoil_byte, spoil_byte_of_runtime, spoil_missing, spoil_extra, spoil_foreign],
)
def test_check_is_red_and_writes_nothing(
    generated: Path, spoil: Callable[[Path], str]
) -> None:
    count = len(snapshot(generated))
    shown = pattern(spoil(generated))
    before = snapshot(generated.parents[1])
    result = run("check", code=1)
    assert re.fullmatch(shown, result.stdout), result.stdout
    assert result.stderr == (
        f"src/tiny_arena: 1 file of {count} not as tiny.yaml says; run "
        "`arenagen generate`\n"
    )
    assert snapshot(generated.parents[1]) == before


def test_check_is_red_on_a_spoilt_copy_of_the_committed_tree(here: Path) -> None:
    for name in ("schema", "docs", "generated"):
        shutil.copytree(
            ROOT / name, here / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", here)
    package = here / "generated/metrale_arena"
    count = len(snapshot(package))
    path = package / "sizes.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("M_x2 * hidden_size", "M_x3 * hidden_size", 1))
    (package / "runtime/host.py").unlink()
    shutil.copy(package / "target.py", package / "old.py")
    before = snapshot(here)
    result = run("check", code=1)
    shown = (
        "extra: generated/metrale_arena/old.py is emitted no longer\n"
        "missing: generated/metrale_arena/runtime/host.py\n"
        "--- sizes.py (on disk)\n"
        "+++ sizes.py (from the schema)\n"
        "@@ LINES @@\n"
        "...\n"
        "-        hidden_states = M_x3 * hidden_size\n"
        "+        hidden_states = M_x2 * hidden_size\n"
        "..."
    )
    assert re.fullmatch(pattern(shown), result.stdout), result.stdout
    assert result.stderr == (
        f"generated/metrale_arena: 3 files of {count} not as schema/metrale.yaml "
        "says; run `arenagen generate`\n"
    )
    assert snapshot(here) == before


def test_check_counts_every_file(generated: Path) -> None:
    count = len(list(generated.rglob("*.*")))
    for path in list(generated.rglob("*.py")):
        path.unlink()
    result = run("check", code=1)
    assert len(result.stdout.splitlines()) == count - 1
    assert f"{count - 1} files of {count} not as tiny.yaml says" in result.stderr


def test_check_tells_of_a_changed_schema(generated: Path) -> None:
    schema = generated.parents[1] / "tiny.yaml"
    schema.write_text(TINY.replace("bf16", "f32"))
    before = snapshot(generated)
    result = run("check", code=1)
    assert "+        rows = M * width * 4\n" in result.stdout
    assert snapshot(generated) == before


def test_check_goes_through_every_package(generated: Path) -> None:
    project = generated.parents[1]
    with (project / "pyproject.toml").open("a") as file:
        file.write(LISTED.format("tiny.yaml", "absent"))
    result = run("check", code=1)
    assert "src/tiny_arena: " in result.stdout
    assert "missing: absent/arena.py" in result.stdout
    assert not (project / "absent").exists()


# lint.


def test_lint_of_a_sound_schema(project: Path) -> None:
    result = run("lint")
    assert result.stdout == "1 schema file: 0 errors, 0 warnings\n"
    assert result.stderr == ""


def test_lint_of_the_committed_schema_has_nothing_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    result = run("lint", "--strict")
    assert result.stdout == "2 schema files: 0 errors, 0 warnings\n"


def test_lint_tells_what_is_wrong_with_a_base_once(here: Path) -> None:
    (here / "odd.yaml").write_text(UNUSED)
    over = "arena: {extends: ../odd.yaml, package: over_arena}\n"
    (here / "more").mkdir()
    (here / "more/over.yaml").write_text(over)
    alone = run("lint", "more/over.yaml").stdout
    assert alone.startswith("odd.yaml:10:3: warning AR080: ")
    assert " = extended: more/over.yaml:1:18\n" in alone
    both = run("lint", "odd.yaml", "more/over.yaml").stdout
    assert both == run("lint", "odd.yaml").stdout.replace(
        "1 schema file", "2 schema files"
    )


def test_a_ring_of_schemas_is_seen_by_whatever_path(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "ring.yaml").write_text(
        "arena: {extends: inner/../ring.yaml, package: ring_arena}\n"
    )
    (here / "inner").mkdir()
    monkeypatch.chdir(here / "inner")
    result = run("lint", "../ring.yaml", code=2)
    assert "AR088: a schema extends itself: ../ring.yaml extends ../ring.yaml\n" in (
        result.stdout
    )


def test_an_extending_schema_is_generated_and_checked(here: Path) -> None:
    (here / "tiny.yaml").write_text(TINY)
    (here / "over.yaml").write_text(
        "arena: {extends: tiny.yaml, package: over_arena}\n"
        "buffers: {rows: {shape: [M, 2 * width]}}\n"
    )
    run("generate", "over.yaml", "-o", "over_arena")
    assert "M * width * 4" in (here / "over_arena/sizes.py").read_text()
    assert run("check", "over.yaml", "-o", "over_arena").stderr == ""
    # What changes in a base changes what is emitted.
    (here / "tiny.yaml").write_text(TINY.replace("bf16", "f32"))
    red = run("check", "over.yaml", "-o", "over_arena", code=1)
    assert "-        rows = M * width * 4\n" in red.stdout
    assert "+        rows = M * width * 8\n" in red.stdout
    (here / "tiny.yaml").unlink()
    for command in ("generate", "check"):
        gone = run(command, "over.yaml", "-o", "over_arena", code=2)
        assert "error AR087: the base cannot be read: tiny.yaml: no such file" in (
            gone.stderr
        )


def test_lint_of_warnings_is_red_only_when_strict(here: Path) -> None:
    (here / "odd.yaml").write_text(UNUSED)
    result = run("lint", "odd.yaml")
    assert result.stdout.startswith("odd.yaml:10:3: warning AR080: ")
    assert result.stdout.endswith("\n1 schema file: 0 errors, 1 warning\n")
    assert run("lint", "--strict", "odd.yaml", code=1).stdout == result.stdout


def test_lint_tells_of_every_schema(here: Path) -> None:
    (here / "odd.yaml").write_text(UNUSED)
    (here / "wrong.yaml").write_text(WRONG)
    (here / "tiny.yaml").write_text(TINY)
    result = run("lint", "odd.yaml", "wrong.yaml", "tiny.yaml", code=2)
    assert "odd.yaml:10:3: warning AR080" in result.stdout
    assert "wrong.yaml:11:59: error AR041: nothing is named `widht`" in result.stdout
    assert " = hint: did you mean `width`?" in result.stdout
    assert result.stdout.endswith("\n3 schema files: 1 error, 1 warning\n")


def test_lint_as_json(here: Path) -> None:
    (here / "wrong.yaml").write_text(WRONG)
    (here / "tiny.yaml").write_text(TINY)
    result = run("lint", "wrong.yaml", "--format", "json", code=2)
    assert json.loads(result.stdout) == [
        {
            "code": "AR041",
            "severity": "error",
            "message": "nothing is named `widht`",
            "file": "wrong.yaml",
            "line": 11,
            "column": 59,
            "length": 5,
            "hint": "did you mean `width`?",
            "related": [],
        }
    ]
    assert json.loads(run("lint", "tiny.yaml", "--format", "json").stdout) == []


def test_lint_as_sarif(here: Path) -> None:
    (here / "a folder").mkdir()
    (here / "a folder/wrong.yaml").write_text(WRONG)
    (here / "odd.yaml").write_text(UNUSED)
    result = run("lint", "a folder/wrong.yaml", "odd.yaml", "--format=sarif", code=2)
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    driver = only["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("arenagen", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["AR041", "AR080"]
    unknown, _ = only["results"]
    assert unknown["message"]["text"] == (
        "nothing is named `widht` (hint: did you mean `width`?)"
    )
    assert unknown["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {
                    "uri": "a%20folder/wrong.yaml",
                    "uriBaseId": "%SRCROOT%",
                },
                "region": {
                    "startLine": 11,
                    "startColumn": 59,
                    "endLine": 11,
                    "endColumn": 64,
                },
            }
        }
    ]
    assert run("lint", "odd.yaml", "--format=sarif", "--strict", code=1).stdout


def test_lint_explains_a_code() -> None:
    result = run("lint", "--explain", "ar074")
    assert result.stdout == (
        "error AR074: alignment that is no power of two\n"
        "\n"
        "Pointers are aligned to powers of two.\n"
        "Cure: Give a power of two.\n"
    )
    bad = run("lint", "--explain", "AR999", code=2)
    assert bad.stderr.startswith("error: no code is AR999; they go from AR001 to AR")


# Bad schemas and bad projects: told at their place, exit code 2, nothing written.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (WRONG.encode(), "s.yaml:11:59: error AR041: nothing is named `widht`"),
        (TINY.replace("label", "lable").encode(), "s.yaml:4:3: error"),
        ((TINY + TINY).encode(), "s.yaml:12:1: error AR010"),
        (TINY.replace("  width", "\twidth").encode(), "s.yaml:9:1: error"),
        (b"", "s.yaml:1:1: error"),
        (b"[]\n", "s.yaml:1:1: error"),
        (b"arena: {\n", "s.yaml:2:1: error AR002: not YAML"),
        (b"\xff\xfe\x00", "s.yaml:1:"),
        (b"\x00", "s.yaml:1:"),
        (b"&a [*a]\n", "s.yaml:1:"),
        (b"[" * 9999, "s.yaml:1:"),
        (b"x: !!python/object:os.system {}\n", "s.yaml:1:4: error"),
    ],
)
@pytest.mark.parametrize("command", ["generate", "check", "lint", "sizes"])
def test_a_bad_schema_is_told_at_its_place(
    here: Path, command: str, data: bytes, message: str
) -> None:
    (here / "s.yaml").write_bytes(data)
    before = snapshot(here)
    arguments: dict[str, list[str | Path]] = {
        "lint": ["s.yaml"],
        "sizes": ["-s", "s.yaml", "-c", QWEN],
    }
    result = run(command, *arguments.get(command, ["s.yaml", "-o", "out"]), code=2)
    shown = result.stdout if command == "lint" else result.stderr
    assert message in shown
    assert "Traceback" not in result.output
    if command != "lint":
        assert result.stdout == ""
    assert snapshot(here) == before
    assert not (here / "out").exists()


def test_a_bad_family_table_is_told_at_its_place(here: Path) -> None:
    (here / "s.yaml").write_text(TINY.replace("doc: A", "families: f.yaml\n  doc: A"))
    (here / "f.yaml").write_text("families: {a-b: {doc: A.}}\n")
    for command in ("generate", "check"):
        result = run(command, "s.yaml", "-o", "out", code=2)
        assert result.stderr.startswith("f.yaml:1:12: error AR090: ")
    (here / "f.yaml").unlink()
    result = run("generate", "s.yaml", "-o", "out", code=2)
    place, *_, hint = result.stderr.rstrip("\n").split("\n")
    assert place == (
        "s.yaml:1:1: error AR096: the family table cannot be read: f.yaml: no such file"
    )
    assert hint.startswith(" = hint: arenagen comes with one to copy: ")
    assert Path(hint.split(": ")[-1]).is_file()


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "-o", "out"),
        ("check", "-o", "out"),
        ("lint",),
        ("sizes", "-c", str(QWEN), "-s"),
    ],
    ids=lambda command: str(command[0]),
)
def test_a_schema_that_cannot_be_read_is_named(
    here: Path, command: tuple[str, ...]
) -> None:
    (here / "file").write_text(TINY)
    (here / "loop").symlink_to("loop")
    for name, why in {
        "nothing.yaml": "no such file",
        ".": "is a folder, not a file",
        "file/s.yaml": "cannot be read: Not a directory",
        "loop": "cannot be read: Too many levels of symbolic links",
    }.items():
        result = run(*command, name, code=2)
        assert result.stderr == f"error: {name}: {why}\n"
        assert result.stdout == ""
    assert not (here / "out").exists()


def test_an_output_that_cannot_be_is_named(project: Path) -> None:
    (project / "file").write_text("mine\n")
    for command in ("generate", "check"):
        result = run(command, "tiny.yaml", "-o", "file", code=2)
        assert result.stderr == "error: file: is a file, where a folder is due\n"
        result = run(command, "tiny.yaml", "-o", "file/out", code=2)
        verb, place = "made", "file/out"
        if command == "check":
            verb, place = "read", "file/out/__init__.py"
        assert result.stderr == f"error: {place}: cannot be {verb}: Not a directory\n"
    assert (project / "file").read_text() == "mine\n"


@pytest.mark.parametrize("command", ["generate", "check", "lint"])
@pytest.mark.parametrize("pyproject", [None, "", '[project]\nname = "x"\n'])
def test_without_a_project_a_schema_is_asked_for(
    here: Path, command: str, pyproject: str | None
) -> None:
    if pyproject is not None:
        (here / "pyproject.toml").write_text(pyproject)
    result = run(command, code=2)
    assert "Error: no SCHEMA given, and no pyproject.toml here or above" in (
        result.stderr
    )


def test_sizes_without_a_project_asks_for_a_schema(here: Path) -> None:
    assert run("sizes", "-c", QWEN, code=2).stderr.endswith(
        "Error: give --schema: no pyproject.toml here or above has "
        "[[tool.arenagen.arenas]]\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.arenagen\n", "not TOML: "),
        ("[tool.arenagen]\nx = 1\nx = 2\n", "not TOML: "),
        ("[tool.arenagen]\nx = \udcff\n", "not TOML: "),
        ("[tool.arenagen]\nx = " + "[" * 9999, "not TOML: "),
        ("[tool.arenagen]\nx = " + "1" * 9999, "not TOML: "),
        ("[tool.arenagen]\n", "`[[tool.arenagen.arenas]]` is missing"),
        ("[tool]\narenagen = 3\n", "`[[tool.arenagen.arenas]]` is missing"),
        ("[tool.arenagen]\narenas = []\n", "`[[tool.arenagen.arenas]]` is missing"),
        ("[tool.arenagen]\narenas = 'x'\n", "`[[tool.arenagen.arenas]]` is missing"),
        ("[tool.arenagen.arenas]\n", "`[[tool.arenagen.arenas]]` is missing"),
        ("[tool.arenagen]\narenas = [1]\n", "arena 1 of "),
        ("[[tool.arenagen.arenas]]\n", "arena 1 of "),
        ("[[tool.arenagen.arenas]]\nschema = 'x'\n", "arena 1 of "),
        (LISTED.format("a", "b") + "x = 1\n", "has other keys than `schema`"),
        (LISTED.format("a", "b") + LISTED.format("", "c"), "arena 2: all paths"),
        (LISTED.format("a", ""), "arena 1: all paths are texts"),
        (LISTED.format("a\\u0000", "b"), "arena 1: all paths are texts"),
        ("[[tool.arenagen.arenas]]\nschema = 1\noutput = 'x'\n", "all paths are"),
        (
            LISTED.format("a", "out") + LISTED.format("b", "./x/../out"),
            "arenas 1 and 2 have the same output, ./x/../out",
        ),
    ],
)
@pytest.mark.parametrize("command", ["generate", "check", "lint"])
def test_a_broken_project_is_told(
    here: Path, command: str, text: str, message: str
) -> None:
    data = text.encode("utf-8", "surrogateescape")
    (here / "pyproject.toml").write_bytes(data)
    result = run(command, code=2)
    assert result.stderr.startswith(f"error: {here / 'pyproject.toml'}: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_words_about_arenagen_do_not_make_a_project(here: Path) -> None:
    (here / "pyproject.toml").write_text(
        "# [tool.arenagen]\ntool = 'arenagen'\n[x]\ny = '[[tool.arenagen.arenas]]'\n"
    )
    assert "no SCHEMA given" in run("check", code=2).stderr


def test_a_listed_schema_that_is_not_there_is_named(project: Path) -> None:
    (project / "tiny.yaml").unlink()
    for command in ("generate", "check", "lint"):
        result = run(command, code=2)
        assert result.stderr == f"error: {project / 'tiny.yaml'}: no such file\n"


@pytest.mark.parametrize("command", ["generate", "check"])
def test_an_output_goes_with_one_schema(project: Path, command: str) -> None:
    (project / "other.yaml").write_text(TINY)
    for schemas in ((), ("tiny.yaml", "other.yaml")):
        result = run(command, *schemas, "-o", "out", code=2)
        assert "Error: --output goes with one SCHEMA" in result.stderr
    assert not (project / "out").exists()


@pytest.mark.parametrize("command", ["generate", "check"])
def test_a_schema_that_is_not_listed_needs_an_output(
    project: Path, command: str
) -> None:
    (project / "other.yaml").write_text(TINY)
    result = run(command, "tiny.yaml", "other.yaml", code=2)
    assert (
        "Error: where to? pyproject.toml does not list other.yaml; give --output, or "
        "add it to [[tool.arenagen.arenas]]"
    ) in result.stderr
    assert not (project / "src").exists()


# sizes.


def sizes(*arguments: str | Path, config: Path = QWEN) -> Any:
    """What `sizes --format json` tells of a real config under the real schema."""
    result = run("sizes", "-s", METRALE, "-c", config, "--format", "json", *arguments)
    # Nothing is said, but of what an arena lacks for a file.
    lacking = f"warning: {config}: jamba: the Mamba-1 layers have no heads"
    said = result.stderr.splitlines()
    assert [each[: len(lacking)] for each in said] == [lacking] * (
        "Jamba" in config.name
    )
    return json.loads(result.stdout)


def by_name(data: dict[str, Any]) -> dict[str, int]:
    return {each["name"]: each["bytes"] for each in data["buffers"]}


def test_json_has_the_keys_that_are_promised() -> None:
    data = sizes()
    assert list(data) == [
        "schema",
        "config",
        "limits",
        "levers",
        "target",
        "tp",
        "buffers",
        "trimmed",
        "total_bytes",
    ]
    assert data["schema"] == "metrale_arena"
    assert data["config"] == "Qwen3-32B.json"
    assert data["limits"] == LIMITS
    assert data["levers"] == {
        "gguf_native_q2": False,
        "gguf_native_q2_mmq": False,
        "fp8_rowwise": False,
        "glm_arena_trim": True,
        "attn_decode_splitk": 0,
        "ssm_save_dump": False,
    }
    assert data["target"] == {"sm_count": 48}
    for each in data["buffers"]:
        assert list(each) == [
            "name",
            "bytes",
            "share",
            "dtype",
            "shape",
            "gate",
            "active",
            "use",
            "trimmed",
            "extent",
        ]


def test_json_tells_what_set_each_size() -> None:
    data = sizes("-M", "7")
    found = {each["name"]: each for each in data["buffers"]}
    total = data["total_bytes"]
    assert found["attn_output"] == {
        "name": "attn_output",
        "bytes": 7 * 64 * 128 * 2,
        "share": round(7 * 64 * 128 * 2 / total, 6),
        "dtype": "bf16",
        "shape": [7, 64, 128],
        "gate": None,
        "active": True,
        "use": "attention",
        "trimmed": 0,
        "extent": found["attn_output"]["extent"],
    }
    gated = found["lora_xa"]
    assert (gated["bytes"], gated["share"], gated["shape"]) == (0, 0.0, None)
    assert (gated["active"], gated["gate"]) == (False, "adapter_max_rank > 0")
    assert sum(each["share"] for each in data["buffers"]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("config", sorted(DATA.glob("*.json")), ids=lambda p: p.stem)
@pytest.mark.parametrize("tokens", [1, 513])
def test_sizes_are_those_of_the_oracle(config: Path, tokens: int) -> None:
    data = sizes("-M", str(tokens), config=config)
    limits = {**LIMITS, "max_batch_tokens": tokens}
    expected = oracle.metrale_sizes(EXPECTED[config.stem], **limits)
    assert by_name(data) == expected
    assert list(by_name(data)) == list(expected)
    assert data["total_bytes"] == sum(expected.values())
    assert data["trimmed"] == oracle.metrale_trimmed(EXPECTED[config.stem], **limits)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["-M", "5"], {"max_batch_tokens": 5}),
        (["--tokens", "5"], {"max_batch_tokens": 5}),
        (["-l", "max_batch_tokens=5"], {"max_batch_tokens": 5}),
        (
            ["-l", "max_seq_len=9", "--limit", "kv_block_size=0"],
            {"max_seq_len": 9, "kv_block_size": 0},
        ),
        (["--limit", " max_batch_size = 300 "], {"max_batch_size": 300}),
        (["--lever", "glm_arena_trim=0"], {"glm_trim": False}),
        (["--lever", "glm_arena_trim=1"], {}),
        (["--lever", "glm_arena_trim=false"], {"glm_trim": False}),
        (["--lever", "glm_arena_trim=TRUE"], {}),
        (["--lever", "gguf_native_q2=1"], {"native_q2": True}),
        (["--lever", "gguf_native_q2=true"], {"native_q2": True}),
        (["--lever", "gguf_native_q2_mmq=1"], {"native_q2_mmq": True}),
        (["--lever", "fp8_rowwise=1"], {"fp8_rowwise": True}),
        (["--lever", "fp8_rowwise=0"], {}),
        (["--lever", "attn_decode_splitk=auto"], {"splitk": "auto"}),
        (["--lever", "attn_decode_splitk=AUTO "], {"splitk": "auto"}),
        (["--lever", "attn_decode_splitk=legacy"], {}),
        (["--lever", "attn_decode_splitk=4"], {"splitk": 4}),
        (["--lever", "attn_decode_splitk=off"], {"splitk": 1}),
        (["--lever", "attn_decode_splitk=0"], {"splitk": 1}),
        (["--lever", "attn_decode_splitk=+16"], {"splitk": 16}),
        (["--target", "sm_count=132"], {"sm_count": 132}),
        (
            ["--target", "sm_count=132", "--lever", "attn_decode_splitk=auto"],
            {"sm_count": 132, "splitk": "auto"},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("config", [QWEN, GLM], ids=lambda path: path.stem)
def test_options_mean_what_they_mean_to_the_oracle(
    config: Path, arguments: list[str], options: dict[str, Any]
) -> None:
    data = sizes(*arguments, config=config)
    expected = EXPECTED[config.stem]
    assert by_name(data) == oracle.metrale_sizes(expected, **{**LIMITS, **options})
    assert data["trimmed"] == oracle.metrale_trimmed(expected, **{**LIMITS, **options})


@pytest.mark.parametrize(
    ("argument", "fields"),
    [
        ("adapter_max_rank=64", {"adapter_max_rank": 64}),
        ("attn_gated=true", {"attn_gated": True}),
        ("attn_gated=False", {"attn_gated": False}),
        ("model_type=glm5_next", {"model_type": "glm5_next"}),
        (
            "layer_types=linear_attention,full_attention",
            {"layer_types": ["linear_attention", "full_attention"]},
        ),
        ("layer_types=", {"layer_types": []}),
        ("num_key_value_heads=0", {"num_key_value_heads": 0}),
    ],
)
def test_a_field_can_be_set_over_the_file(
    argument: str, fields: dict[str, object]
) -> None:
    data = sizes("--set", argument, "--lever", "fp8_rowwise=1")
    expected = {**EXPECTED["Qwen3-32B"], **fields}
    assert by_name(data) == oracle.metrale_sizes(expected, **LIMITS, fp8_rowwise=True)


def test_a_count_that_is_clamped_is_told() -> None:
    for text, count, note in (
        ("99", 16, "note: attn_decode_splitk=99 taken as 16\n"),
        ("016", 16, ""),
        ("0", 1, ""),
        ("00", 1, "note: attn_decode_splitk=00 taken as 1\n"),
    ):
        result = run(
            *("sizes", "-s", METRALE, "-c", QWEN, "--format", "json"),
            *("--lever", f"attn_decode_splitk={text}"),
        )
        assert json.loads(result.stdout)["levers"]["attn_decode_splitk"] == count
        assert result.stderr == note


def test_the_last_of_two_values_counts() -> None:
    data = sizes("--set", "hidden_size=1", "--set", "hidden_size=2", "-M", "1")
    assert by_name(data)["hidden_states"] == 4


def test_the_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sizes(config=GLM)
    monkeypatch.setenv("METRALE_GLM_ARENA_TRIM", "0")
    monkeypatch.setenv("METRALE_GGUF_NATIVE_Q2", "1")
    monkeypatch.setenv("METRALE_ATTN_DECODE_SPLITK", "auto")
    assert sizes(config=GLM) == before


def test_several_configs_give_a_list() -> None:
    both = sizes("-c", GLM, "-M", "3")
    assert both == [sizes("-M", "3"), sizes("-M", "3", config=GLM)]


def test_configs_of_one_name_are_told_apart_by_their_paths(here: Path) -> None:
    for source in (QWEN, GLM):
        (here / source.stem).mkdir()
        shutil.copy(source, here / source.stem / "config.json")
    one, two = (Path(source.stem, "config.json") for source in (QWEN, GLM))
    found = sizes("-c", two, "-c", QWEN, config=one)
    assert [each["config"] for each in found] == [
        "Qwen3-32B/config.json",
        "GLM-5.3-Flash/config.json",
        "Qwen3-32B.json",
    ]


def test_csv_parses_back() -> None:
    result = run(
        "sizes", "-s", METRALE, "-c", QWEN, "-c", GLM, "-M", "40", "--format", "csv"
    )
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert list(rows[0]) == [
        "config",
        *LIMITS,
        "buffer",
        "bytes",
        "dtype",
        "shape",
        "use",
        "gate",
    ]
    limits = {**LIMITS, "max_batch_tokens": 40}
    for path in (QWEN, GLM):
        mine = [row for row in rows if row["config"] == path.name]
        expected = oracle.metrale_sizes(EXPECTED[path.stem], **limits)
        assert {row["buffer"]: int(row["bytes"]) for row in mine} == expected
        for row in mine:
            assert {name: int(row[name]) for name in LIMITS} == limits
    assert len(rows) == 2 * 46
    assert rows[0]["shape"] == "[40, 5120]"
    assert "\r" not in result.stdout


def markdown_rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def test_markdown_is_one_table_a_config() -> None:
    result = run("sizes", "-s", METRALE, "-c", QWEN, "-c", GLM, "--format", "md")
    one, two = re.split(r"\n(?=### )", result.stdout)
    for text, path in ((one, QWEN), (two, GLM)):
        header, rule, *rows = markdown_rows(text)
        expected = oracle.metrale_sizes(EXPECTED[path.stem], **LIMITS)
        assert header == ["buffer", "bytes", "share", "dtype", "shape", "use", "gate"]
        assert rule == ["---", "---:", "---", "---", "---", "---", "---"]
        assert all(len(row) == len(header) for row in rows)
        assert {row[0]: int(row[1].replace(",", "")) for row in rows} == expected
        assert text.startswith(f"### {path.name}: max_batch_tokens=8192, max_seq_len=")
        assert f" of 46 buffers, {sum(expected.values()):,} bytes (" in text
    trimmed = oracle.metrale_trimmed(EXPECTED[GLM.stem], **LIMITS)
    assert f"; trimmed {trimmed:,} bytes (" in two
    assert "trimmed" not in one


def table_rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("│|").split("│")]
        for line in text.splitlines()
        if line.startswith("│")
    ]


def test_a_table_shows_every_buffer_and_the_total() -> None:
    result = run("sizes", "-s", METRALE, "-c", QWEN)
    expected = oracle.metrale_sizes(EXPECTED["Qwen3-32B"], **LIMITS)
    rows = [row for row in table_rows(result.stdout) if row[0]]
    assert {row[0]: int(row[1].replace(",", "")) for row in rows} == expected
    total = sum(expected.values())
    assert f"36 of 46 buffers, {total:,} bytes ({total / 2**30:.2f} GiB)" in (
        result.stdout
    )
    assert result.stdout.startswith("Qwen3-32B.json: max_batch_tokens=8192, ")
    assert "…" not in result.stdout
    assert rows[4][2:6] == ["4.6%", "bf16", "[8192, 64, 128]", "attention"]


def test_sizes_takes_the_first_schema_of_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    result = run("sizes", "-c", QWEN, "--format", "json")
    assert json.loads(result.stdout) == sizes()


def test_sizes_of_an_extending_schema_find_the_family_table_of_the_base(
    here: Path,
) -> None:
    # In a folder of its own, beside neither the base nor the table.
    (here / "own").mkdir()
    copy = (ROOT / "schema/atlas.yaml").read_text(encoding="utf-8")
    base = os.path.relpath(METRALE, here / "own")
    (here / "own/atlas.yaml").write_text(copy.replace("metrale.yaml", base, 1))
    result = run("sizes", "-s", "own/atlas.yaml", "-c", QWEN, "--format", "csv")
    rows = [line.split(",") for line in result.stdout.splitlines()]
    place = rows[0].index("bytes")
    found = {row[rows[0].index("buffer")]: row[place] for row in rows[1:]}
    expected = oracle.atlas_sizes(EXPECTED["Qwen3-32B"], **LIMITS)
    assert {name: int(found[name]) for name in expected} == expected


def test_a_schema_without_families_cannot_read_a_config(project: Path) -> None:
    result = run("sizes", "-c", QWEN, code=2)
    assert result.stderr == (
        "error: the schema of `tiny_arena` names no family table; add "
        "`families: huggingface.yaml` to its section `arena`, and put the file beside "
        f"it; arenagen comes with one to copy: {family_table()}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-M 0", "error: max_batch_tokens=0; at least 1"),
        ("-M -1", "error: max_batch_tokens=-1; at least 1"),
        ("-M x", "'x' is not a valid integer"),
        ("-M 1.5", "'1.5' is not a valid integer"),
        (
            "-M 99999999999999999999",
            "error: hidden_states: 1023999999999999999989760 bytes is more than "
            "2**63 - 1: bf16 [M, hidden_size], with hidden_size=5120, "
            "max_batch_tokens=99999999999999999999",
        ),
        (
            "-l tokens=1",
            "error: no limit is named `tokens`; known: max_batch_tokens, max_seq_len, "
            "kv_block_size, max_batch_size",
        ),
        ("-l max_seq_len=1e3", "error: max_seq_len=1e3: not an integer"),
        ("-l max_seq_len=", "error: max_seq_len=: not an integer"),
        ("-l max_seq_len=-", "error: max_seq_len=-: not an integer"),
        ("-l max_seq_len=--1", "error: max_seq_len=--1: not an integer"),
        ("-l max_seq_len=1_000", "error: max_seq_len=1_000: not an integer"),
        ("-l max_seq_len=٣", "error: max_seq_len=٣: not an integer"),
        ("-l max_seq_len=0", "error: max_seq_len=0; at least 1"),
        ("-l kv_block_size=-1", "error: kv_block_size=-1; at least 0"),
        (
            "-l max_seq_len=99999999999999999999",
            "error: max_seq_len=99999999999999999999: more than 2**63 - 1",
        ),
        ("-l max_seq_len", "Error: `max_seq_len` is not NAME=VALUE"),
        ("-l =1", "Error: `=1` is not NAME=VALUE"),
        (
            "--lever METRALE_FP8_ROWWISE=1",
            "error: no lever is named `METRALE_FP8_ROWWISE`; it is the variable of "
            "`fp8_rowwise`",
        ),
        (
            "--lever fp8=1",
            "error: no lever is named `fp8`; known: gguf_native_q2, "
            "gguf_native_q2_mmq, fp8_rowwise, glm_arena_trim, attn_decode_splitk, "
            "ssm_save_dump",
        ),
        (
            "--lever fp8_rowwise=banana",
            "error: --lever fp8_rowwise=banana: give one of: 1, true, false\n",
        ),
        ("--lever fp8_rowwise=", "--lever fp8_rowwise=: give one of: 1, true, false"),
        ("--lever glm_arena_trim=2", "give one of: 0, true, false\n"),
        (
            "--lever attn_decode_splitk=banana",
            "error: --lever attn_decode_splitk=banana: give one of: legacy, auto, 0, "
            "off, false, no, a count from 1 to 16\n",
        ),
        ("--lever attn_decode_splitk=-1", "a count from 1 to 16\n"),
        (f"--lever fp8_rowwise={'x' * 50}", f"={'x' * 40}...: give one of: 1, "),
        ("--lever fp8_rowwise", "Error: `fp8_rowwise` is not NAME=VALUE"),
        (
            "--target sms=1",
            "error: no target constant is named `sms`; known: sm_count",
        ),
        ("--target sm_count=0", "error: sm_count=0; at least 1"),
        ("--target sm_count=all", "error: sm_count=all: not an integer"),
        (
            "--target sm_count=9223372036854775807",
            "error: splitk_workspace: 4796153459164483419640 bytes is more than",
        ),
        (
            "--set adapter_rank=1",
            "error: --set adapter_rank: no config field has that name; did you mean "
            "`adapter_max_rank`?",
        ),
        ("--set zzz=1", "error: --set zzz: no config field has that name; known: "),
        ("--set head_dim=-1", "error: head_dim=-1: at least 0"),
        ("--set head_dim=x", "error: head_dim=x: not an integer"),
        ("--set attn_gated=1", "error: --set attn_gated=1: write true or false"),
        ("--set head_dim", "Error: `head_dim` is not NAME=VALUE"),
        ("--format xml", "'xml' is not one of 'table', 'json', 'csv', 'md'"),
        (
            "a.json b.json",
            "Error: Got unexpected extra arguments: a.json b.json; repeat -c for each "
            "further config\n",
        ),
    ],
)
def test_a_bad_option_is_told(arguments: str, message: str) -> None:
    result = run("sizes", "-s", METRALE, "-c", QWEN, *arguments.split(" "), code=2)
    assert message in result.stderr
    assert result.stdout == ""


def test_sizes_needs_a_config() -> None:
    result = run("sizes", "-s", METRALE, code=2)
    assert "Missing option '-c' / '--config'" in result.stderr


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "c.json: not JSON: "),
        (b"{", "c.json: not JSON: "),
        (b"\xff\xff", "c.json: not JSON: "),
        (b"[" * 99999, "c.json: not JSON: "),
        (b'{"x": ' + b"1" * 9999 + b"}", "c.json: not JSON: "),
        (b"[]", "c.json: not an object (list)"),
        (b"null", "c.json: not an object (NoneType)"),
        (b"{}", "c.json: model_type is missing; known: "),
        (b'{"model_type": 3}', "c.json: model_type is 3 (int), not a str"),
        (
            b'{"model_type": "lama"}',
            "c.json: model_type 'lama' is not known; did you mean llama?",
        ),
        (b'{"model_type": "zzzzzz"}', "model_type 'zzzzzz' is not known; known: "),
        (b'{"model_type": "llama"}', "c.json: llama: "),
        (b'{"model_type": "\\ud800"}', "is not known"),
    ],
)
def test_a_bad_config_is_told(here: Path, data: bytes, message: str) -> None:
    (here / "c.json").write_bytes(data)
    result = run("sizes", "-s", METRALE, "-c", "c.json", code=2)
    assert result.stderr.startswith("error: c.json: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_a_config_that_cannot_be_read_is_named(here: Path) -> None:
    (here / "loop").symlink_to("loop")
    for name, why in {
        "nothing.json": "no such file",
        ".": "is a folder, not a file",
        "loop": "cannot be read: Too many levels of symbolic links",
    }.items():
        result = run("sizes", "-s", METRALE, "-c", QWEN, "-c", name, code=2)
        assert result.stderr == f"error: {name}: {why}\n"
        assert result.stdout == ""


# The process: its streams, its terminal, its modules.


def test_a_whole_round_of_processes(here: Path) -> None:
    (here / "tiny.yaml").write_text(TINY)
    arguments = ("tiny.yaml", "-o", "out")
    assert process("check", *arguments).returncode == 1
    assert process("generate", *arguments).returncode == 0
    green = process("check", *arguments)
    assert (green.returncode, green.stderr) == (0, "")
    with (here / "out/arena.py").open("a") as file:
        file.write("x = 1\n")
    red = process("check", *arguments)
    assert red.returncode == 1
    assert "-x = 1\n" in red.stdout
    assert "run `arenagen generate tiny.yaml -o out`" in red.stderr
    assert process("generate", *arguments).returncode == 0
    assert process("check", *arguments).returncode == 0
    (here / "tiny.yaml").write_text(WRONG)
    for command in ("generate", "check"):
        bad = process(command, *arguments)
        assert (bad.returncode, bad.stdout) == (2, "")
        assert "AR041" in bad.stderr
        assert "Traceback" not in bad.stderr


def test_a_bare_command_says_what_click_makes_it_say(project: Path) -> None:
    def both(command: str, *full: str, code: int) -> None:
        """By itself, and with an option that changes nothing of what it says."""
        bare = process(command, *full, CI="true")
        parsed = process(command, *full, "--no-cache", CI="true")
        assert (bare.returncode, bare.stdout, bare.stderr) == (
            code,
            parsed.stdout,
            parsed.stderr,
        )
        assert parsed.returncode == code

    both("check", code=1)
    assert process("generate", "--no-cache").returncode == 0
    both("generate", code=0)
    both("check", "--full", code=0)
    (project / "tiny.yaml").write_text(UNUSED)
    both("check", "--full", code=1)
    both("check", code=1)
    (project / "src/tiny_arena/mine.py").write_text("x = 1\n")
    assert process("generate").returncode == 0
    both("generate", code=0)
    (project / "tiny.yaml").write_text(WRONG)
    both("check", "--full", code=2)
    both("generate", code=2)
    (project / "tiny.yaml").unlink()
    both("check", code=2)
    (project / "pyproject.toml").write_text("[[")
    both("generate", code=2)
    (project / "pyproject.toml").unlink()
    both("generate", code=2)
    both("check", "--full", code=2)


def into(output: IO[bytes] | int, arguments: str, unbuffered: str) -> tuple[int, bytes]:
    """The exit code and the errors of a command, in a project that is generated."""
    command = [sys.executable, "-m", "arenagen"]
    subprocess.run([*command, "generate"], check=True, capture_output=True)
    done = subprocess.run(
        [*command, *arguments.split()],
        stdout=output,
        stderr=subprocess.PIPE,
        timeout=120,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    return done.returncode, done.stderr


# An output fails at once, when a buffer is full, or as Python ends.
each_buffering = pytest.mark.parametrize("unbuffered", ["", "1"])
each_output = pytest.mark.parametrize(
    "arguments", ["--version", "check", "check --full", "lint", "schema", "--help"]
)


@each_buffering
@each_output
def test_a_command_ends_well_when_nobody_reads_on(
    arguments: str, unbuffered: str, project: Path
) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    ended = into(theirs, arguments, unbuffered)
    os.close(theirs)
    assert ended == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is full")
@each_buffering
@each_output
def test_a_full_disk_behind_the_output_is_told(
    arguments: str, unbuffered: str, project: Path
) -> None:
    told = b"error: the output: No space left on device\n"
    with open("/dev/full", "wb") as full:
        assert into(full, arguments, unbuffered) == (1, told)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("extra", ["", " --no-cache"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_reason_to_fail(
    closed: str, extra: str, project: Path
) -> None:
    def shell(command: str) -> int:
        line = f'"{sys.executable}" -m arenagen {command}{extra} {closed}'
        return subprocess.run(line, shell=True, cwd=project, timeout=120).returncode

    assert shell("generate") == 0
    assert shell("check") == 0
    (project / "src/tiny_arena/sizes.py").unlink()
    assert shell("check") == 1
    (project / "tiny.yaml").write_text(WRONG)
    assert shell("generate") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no folder in use can be removed")
@pytest.mark.parametrize("arguments", ["generate", "check --no-cache", "lint a.yaml"])
def test_a_working_folder_that_is_gone_is_told(arguments: str, here: Path) -> None:
    (here / "gone").mkdir()
    line = f'cd gone && rmdir ../gone && "{sys.executable}" -m arenagen {arguments}'
    done = subprocess.run(line, shell=True, cwd=here, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: the working folder: No such file or directory\n"


@pytest.mark.parametrize("command", ["generate", "check"])
def test_a_bare_command_is_interrupted(
    command: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(**_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(sys, "argv", ["arenagen", command])
    monkeypatch.setattr(checking, "check_packages", interrupted)
    monkeypatch.setattr(emitting, "emit_packages", interrupted)
    for _ in range(2):
        with pytest.raises(SystemExit) as exited:
            start.main()
        assert exited.value.code == 1
        assert capsys.readouterr() == ("", "\nAborted!\n")
        # The next one comes before the command is loaded.
        monkeypatch.setattr(manifest, "tool", interrupted)


def test_the_command_and_the_module_are_the_same() -> None:
    script = Path(sys.executable).parent / "arenagen"
    shown = subprocess.run([script, "--help"], capture_output=True, text=True)
    assert shown.stdout == process("--help").stdout
    assert shown.stdout.startswith("Usage: arenagen [OPTIONS] COMMAND")
    assert process("--version").stdout == f"arenagen, version {__version__}\n"


def test_help_names_every_command_and_option() -> None:
    shown = run("--help").stdout
    commands = {
        path.stem
        for path in (ROOT / "generator/arenagen/commands").glob("*.py")
        if "@click.command(" in path.read_text(encoding="utf-8")
    }
    assert {name.replace("-", "_") for name in cli.commands} == commands
    context = Context(cli)
    for name, listed in cli.commands.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == listed.name == name
        assert command.get_short_help_str(200) == listed.get_short_help_str(200)
        assert f"\n  {name} " in shown
        text = run(name, "-h").stdout
        for parameter in command.params:
            assert all(option in text for option in parameter.opts if option[0] == "-")


@pytest.mark.parametrize("arguments", [["nothing"], ["generate", "--nothing"]])
def test_an_unknown_command_or_option_is_told(arguments: list[str]) -> None:
    assert "No such " in run(*arguments, code=2).stderr


def test_a_command_that_is_misspelt_is_guessed() -> None:
    assert "Did you mean one of: 'check', " in run("chek", code=2).stderr


def modules_of(*arguments: str | Path) -> set[str]:
    """The top-level modules that a command imports, and all of arenagen."""
    script = (
        "import sys\n"
        "from arenagen.start import main\n"
        f"sys.argv = {['arenagen', *map(os.fspath, arguments)]!r}\n"
        "try:\n    main()\n"
        "except SystemExit as error:\n    assert not error.code, error.code\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return {
        name if name.startswith("arenagen.") else name.split(".")[0]
        for name in done.stderr.split()
    }


HEAVY = {"black", "jinja2", "jsonschema", "yaml", "rich", "cuda", "numpy"}
# What only a schema with something wrong, or a config, needs.
OF_PROBLEMS = {
    f"arenagen.{name}" for name in ("further", "malformed", "family_reader", "evaluate")
}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["generate", "--help"], ["sizes", "--help"]],
    ids=" ".join,
)
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    modules = modules_of(*arguments)
    assert ("click" in modules) is ("--help" in arguments)
    assert modules & HEAVY == set()


def test_help_imports_no_command() -> None:
    ours = {name for name in modules_of("--help") if name.startswith("arenagen.")}
    assert ours == {"arenagen.start", "arenagen.ci", "arenagen.cli"}


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["lint", METRALE], {"yaml"}),
        (
            ["sizes", "-s", METRALE, "-c", QWEN, "--format", "csv"],
            {"yaml"},
        ),
        (["sizes", "-s", METRALE, "-c", QWEN], {"yaml", "rich"}),
    ],
    ids=["lint", "sizes as CSV", "sizes as a table"],
)
def test_commands_import_what_they_need(
    arguments: list[str | Path], needed: set[str]
) -> None:
    assert modules_of(*arguments) & HEAVY == needed


def test_bare_commands_import_what_they_need(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for arguments in (["generate"], ["check", "--full"]):
        modules = modules_of(*arguments)
        assert modules & {*HEAVY, "click"} == {"yaml"}
        # Neither loads what an unchanged package needs not.
        assert modules & {"dataclasses", "difflib", "secrets"} == set()
        assert modules & {"bisect", *OF_PROBLEMS} == set()
    # Who writes nothing needs no locks, and no more of a path than its text.
    assert modules & {"pathlib", "urllib", "fcntl"} == set()
    assert modules_of("check") & {*HEAVY, "click"} == set()


@pytest.mark.parametrize(
    "variables",
    [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}],
    ids=str,
)
def test_what_is_piped_has_no_escape_codes(variables: dict[str, str]) -> None:
    done = process("sizes", "-s", METRALE, "-c", QWEN, **variables)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert all(line == line.rstrip(" ") for line in lines)
    assert len({len(line) for line in lines if line[0] in "┏┡│└"}) == 1


def on_a_terminal(columns: int, **variables: str) -> str:
    """What `sizes` shows on a terminal of a given width."""
    import pty

    ours, theirs = pty.openpty()
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS")
    }
    command = [sys.executable, "-m", "arenagen", "sizes", "-s", METRALE, "-c", QWEN]
    shown = bytearray()
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environ, "TERM": "xterm", "COLUMNS": str(columns), **variables},
    ) as child:
        os.close(theirs)
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            pass  # Linux tells the end of a terminal by an error.
        os.close(ours)
    assert child.returncode == 0
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_styles_and_no_color_takes_them_away() -> None:
    assert "\x1b[" in on_a_terminal(160)
    assert "\x1b" not in on_a_terminal(160, NO_COLOR="1")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_names_and_sizes_are_whole_on_a_narrow_terminal() -> None:
    shown = on_a_terminal(80, NO_COLOR="1")
    rows = [row for row in table_rows(shown) if row[0]]
    assert "┃ gate " not in shown
    assert "┃ gate " in on_a_terminal(100, NO_COLOR="1")
    expected = oracle.metrale_sizes(EXPECTED["Qwen3-32B"], **LIMITS)
    assert {row[0]: int(row[1].replace(",", "")) for row in rows} == expected
    assert max(map(len, shown.splitlines())) <= 80


def test_output_of_any_encoding_is_no_reason_to_fail(here: Path) -> None:
    (here / "tiny.yaml").write_text(TINY.replace("A tiny", "A t\xedny"))
    run("generate", "tiny.yaml", "-o", "out")
    (here / "out/target.py").write_bytes(
        (here / "out/target.py").read_bytes() + "é = '→'\n".encode()
    )
    done = process("check", "tiny.yaml", "-o", "out", PYTHONIOENCODING="latin-1")
    assert done.returncode == 1
    assert " = '\\u2192'\n" in done.stdout
    assert "Traceback" not in done.stderr
    done = process("sizes", "-s", METRALE, "-c", QWEN, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "hidden_states" in done.stdout


def test_a_name_that_is_not_text_is_no_reason_to_fail(here: Path) -> None:
    name = os.fsdecode(b"t\xff.yaml")
    (here / name).write_text(TINY)
    done = process("generate", name, "-o", os.fsdecode(b"o\xff"))
    assert (done.returncode, done.stderr) == (0, "")
    (here / name).write_text(WRONG)
    done = process("check", name, "-o", "out")
    assert done.returncode == 2
    assert "AR041" in done.stderr


@pytest.mark.parametrize("style", ["table", "json", "csv", "md"])
def test_a_reader_that_goes_away_is_no_reason_for_a_traceback(style: str) -> None:
    command = [sys.executable, "-m", "arenagen", "sizes", "-s", METRALE, "-c", QWEN]
    with subprocess.Popen(
        [*command, "--format", style],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout and child.stderr
        child.stdout.close()
        assert "Traceback" not in child.stderr.read()
