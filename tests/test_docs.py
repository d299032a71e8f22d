"""Everything that README.md and docs/ show is run here, and must come out as shown.

A console block is run line by line: what follows a `$` is a command, the rest its
output, where a line of three dots stands for any lines. Python blocks run from the
root of the repository.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from arenagen.compile import Text, check_source, emit, read_schema
from arenagen.model import Uses
from driver.simulated import Driver

pytest_plugins = ["driver.plugin"]

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(page: Path, kind: str) -> list[str]:
    return [
        match["body"]
        for match in FENCE.finditer(page.read_text(encoding="utf-8"))
        if match["kind"] == kind
    ]


def cases(kind: str) -> list[object]:
    return [
        pytest.param(body, id=f"{page.name}-{place}")
        for page in PAGES
        for place, body in enumerate(blocks(page, kind))
    ]


def environment() -> dict[str, str]:
    scripts = str(Path(sys.executable).parent)
    paths = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    return {**os.environ, "PATH": paths, "PYTHONPATH": str(ROOT / "generated")}


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr


def test_every_kind_of_block_is_known() -> None:
    known = {"console", "demo", "diff", "python", "python cuda", "toml", "yaml"}
    known |= {"problem", "yaml extends", "yaml schema"}
    # Of test_editors.
    known |= {"json", "yaml ci", "yaml hooks", "yaml modeline"}
    kinds = {
        match["kind"]
        for page in PAGES
        for match in FENCE.finditer(page.read_text(encoding="utf-8"))
    }
    assert kinds <= known


@pytest.mark.parametrize("body", cases("python"))
def test_python_blocks_run(body: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", body],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("body", cases("python cuda"))
def test_cuda_blocks_run_on_the_simulated_driver(
    body: str, loaded_driver: Driver
) -> None:
    preload = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from pathlib import Path
from driver.simulated import Driver
driver = Driver(Path({str(loaded_driver.library)!r}))
driver.reset()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", preload + body],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def figures(text: str) -> set[str]:
    """Figure and yardstick of every row of the tables of benchmarks."""
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {f"{row[0]} | {row[1]}" for row in rows} - {"| figure | against"}


def test_the_readme_shows_rows_of_the_benchmarks() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- benchmark -->")[1].split("<!-- /benchmark -->")[0]
    known = figures((ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8"))
    assert len(figures(shown)) >= 10
    assert figures(shown) <= known


def test_the_benchmarks_print_the_rows_of_their_page() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for name, command in (
        # One by itself, and one by what runs them all.
        ("arena_calls", ["benchmarks/arena_calls.py"]),
        ("sizes", ["benchmarks/run.py", "sizes"]),
    ):
        page = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        printed = run([sys.executable, *command], ROOT)
        assert figures(printed) == figures(page) != set()


@pytest.mark.parametrize("body", cases("console"))
def test_console_blocks_print_what_they_show(body: str, tmp_path: Path) -> None:
    if not body.startswith("$"):
        # The two commands of the first screen: this suite is one of them.
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        for line in body.split("\n")[:-1]:
            if line.startswith("make "):
                assert f"\n{line.removeprefix('make ')}:" in makefile
            else:
                wanted = re.search(r"'(cuda-python.*)'", line)
                assert wanted is not None
                assert f'"{wanted[1]}"' in project
        return
    for name in ("schema", "tests/data", "pyproject.toml"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(ROOT / name)
    for part in body.removeprefix("$ ").split("\n$ "):
        command, _, shown = part.partition("\n")
        printed = run(["bash", "-c", command], tmp_path)
        wanted = re.escape(shown.rstrip("\n")).replace(r"\.\.\.", "(.|\n)*")
        assert re.fullmatch(wanted, printed.rstrip("\n")), f"{command}\n{printed}"


def test_the_demo_prints_what_the_readme_shows() -> None:
    (shown,) = blocks(ROOT / "README.md", "demo")
    printed = run([sys.executable, "docs/demo.py"], ROOT)
    lines = [line.rstrip() for line in printed.splitlines()]
    assert "\n".join(lines) + "\n" == shown


def emitted(text: str) -> dict[str, str]:
    families = (ROOT / "schema" / "huggingface.yaml").read_bytes()
    schema, warnings = read_schema(Text("metrale.yaml", text.encode()))
    checked = check_source(schema, warnings, Text("huggingface.yaml", families))
    return emit(checked, "metrale.yaml")


def test_adding_a_buffer_changes_what_the_readme_shows() -> None:
    readme = ROOT / "README.md"
    (entry,), (shown,) = blocks(readme, "yaml"), blocks(readme, "diff")
    schema = (ROOT / "schema" / "metrale.yaml").read_text(encoding="utf-8")
    before = emitted(schema)
    after = emitted(schema.replace("\ntrims:\n", f"\n{entry}\ntrims:\n", 1))
    assert after.keys() == before.keys()
    lines = [
        line
        for path, text in after.items()
        for line in difflib.unified_diff(
            before[path].splitlines(), text.splitlines(), path, path, n=0, lineterm=""
        )
        if not line.startswith("@@")
    ]
    assert "\n".join(lines) + "\n" == shown


@pytest.mark.parametrize("body", cases("yaml schema"))
def test_schemas_in_the_docs_generate(body: str) -> None:
    schema, warnings = read_schema(Text("docs.yaml", body.encode()))
    assert warnings == ()
    files = emit(check_source(schema, warnings, None), "docs.yaml")
    assert {"arena.py", "sizes.py", "runtime/host.py"} <= files.keys()
    assert "families.py" not in files


@pytest.mark.parametrize("body", cases("yaml extends"))
def test_extending_schemas_in_the_docs_generate(body: str) -> None:
    base = blocks(ROOT / "docs/language.md", "yaml schema")[0]
    schema, warnings = read_schema(
        Text("docs.yaml", body.encode()),
        lambda name, path: {"tiny.yaml": Text(path, base.encode())}[path],
    )
    assert warnings == ()
    # The page says what becomes of it.
    assert schema.arena.class_name == "BufferArena"
    names = [each.name for each in schema.buffers]
    assert names == ["hidden_states", "ffn_out", "router"]
    assert isinstance(schema.buffers[1].extent, Uses)
    assert "arena.py" in emit(check_source(schema, warnings, None), "docs.yaml")


def test_the_listed_pairs_are_those_of_the_project() -> None:
    (body,) = blocks(ROOT / "README.md", "toml")
    assert body in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
