"""The emitted bytes depend on the schema alone, and are what the repository holds.

Renders in processes of their own, under other hash seeds, folders, locales and time
zones, and compares fingerprints of all files. Also holds the emitted files to the
tools that a reader would run over them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from arenagen import disk
from arenagen.compile import Text, check_source, emit, read_schema

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "schema/metrale.yaml"
ATLAS = ROOT / "schema/atlas.yaml"
FAMILIES = ROOT / "schema/huggingface.yaml"


# Prints a digest of the paths and texts of all files, in the order they come in.
ELSEWHERE = """
import sys
from hashlib import sha256
from pathlib import Path
from arenagen.compile import Text, check_source, emit, read_schema
schema, families = map(Path, sys.argv[1:])
model, warnings = read_schema(
    Text(schema.name, schema.read_bytes()),
    lambda name, base: Text(base, (schema.parent / base).read_bytes()),
)
table = Text("huggingface.yaml", families.read_bytes())
files = emit(check_source(model, warnings, table), schema.name)
print(sha256(repr(list(files.items())).encode()).hexdigest())
"""


def render(
    schema: bytes, families: bytes, name: str = "metrale.yaml"
) -> dict[str, str]:
    model, warnings = read_schema(
        Text(name, schema),
        lambda _, base: Text(base, (ROOT / "schema" / base).read_bytes()),
    )
    checked = check_source(model, warnings, Text("huggingface.yaml", families))
    return emit(checked, name)


def fingerprint(files: dict[str, str]) -> str:
    return sha256(repr(list(files.items())).encode()).hexdigest()


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """The rendering of the real schema, in this process."""
    return render(SCHEMA.read_bytes(), FAMILIES.read_bytes())


@pytest.fixture(scope="module")
def atlas_files() -> dict[str, str]:
    """The rendering of the schema that extends the real one, in this process."""
    return render(ATLAS.read_bytes(), FAMILIES.read_bytes(), "atlas.yaml")


def fingerprint_elsewhere(
    schema: Path, families: Path, cwd: Path, **variables: str
) -> str:
    """The fingerprint that another process comes to."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name != "LANG" and not name.startswith(("LC_", "PYTHON"))
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE, schema, families],
        cwd=cwd,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


SEEDS = [
    pytest.param(seed, marks=pytest.mark.slow if seed > 2 else ()) for seed in range(21)
]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_hash_seed_gives_the_same_bytes(
    files: dict[str, str], tmp_path: Path, seed: int
) -> None:
    found = fingerprint_elsewhere(SCHEMA, FAMILIES, tmp_path, PYTHONHASHSEED=str(seed))
    assert found == fingerprint(files)


def test_a_schema_of_many_buffers_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from scale import schema

    path = tmp_path / "scale.yaml"
    path.write_text(schema(700))
    files = render(path.read_bytes(), FAMILIES.read_bytes(), path.name)
    assert "arena_07.py" in files
    for seed in "12":
        found = fingerprint_elsewhere(path, FAMILIES, tmp_path, PYTHONHASHSEED=seed)
        assert found == fingerprint(files)


def test_an_extending_schema_gives_the_same_bytes(
    atlas_files: dict[str, str], tmp_path: Path
) -> None:
    found = fingerprint_elsewhere(ATLAS, FAMILIES, tmp_path, PYTHONHASHSEED="7")
    assert found == fingerprint(atlas_files)


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "TZ": "Pacific/Chatham", "COLUMNS": "20"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=str,
)
def test_locale_and_time_zone_do_not_matter(
    files: dict[str, str], tmp_path: Path, variables: dict[str, str]
) -> None:
    found = fingerprint_elsewhere(SCHEMA, FAMILIES, tmp_path, **variables)
    assert found == fingerprint(files)


def test_the_folders_do_not_matter(files: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "another place"
    folder.mkdir()
    # A black of the user's own taste must not be asked.
    (folder / "pyproject.toml").write_text(
        "[tool.black]\nline-length = 40\nskip-string-normalization = true\n"
    )
    for path in (SCHEMA, FAMILIES):
        (folder / path.name).write_bytes(path.read_bytes())
    found = fingerprint_elsewhere(
        Path(SCHEMA.name), Path(FAMILIES.name), folder, HOME=str(folder)
    )
    assert found == fingerprint(files)


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("mark", "end"), [(b"", b"\r\n"), (BOM, b"\n")], ids=["CRLF", "BOM"]
)
def test_line_ends_and_a_byte_order_mark_do_not_matter(
    files: dict[str, str], mark: bytes, end: bytes
) -> None:
    schema, families = (
        mark + path.read_bytes().replace(b"\n", end) for path in (SCHEMA, FAMILIES)
    )
    assert schema != SCHEMA.read_bytes()
    assert render(schema, families) == files


def test_files_come_in_order_of_path(files: dict[str, str]) -> None:
    assert list(files) == sorted(files)


def test_the_committed_packages_are_what_the_schemas_emit(
    files: dict[str, str], atlas_files: dict[str, str]
) -> None:
    for name, emitted in (("metrale", files), ("atlas", atlas_files)):
        package = ROOT / f"generated/{name}_arena"
        found = [(each.path, each.kind) for each in disk.compare(package, emitted)]
        assert found == []


def test_emitted_files_name_no_place_and_no_time(
    files: dict[str, str], atlas_files: dict[str, str]
) -> None:
    for name, emitted in (("metrale", files), ("atlas", atlas_files)):
        for path, text in emitted.items():
            assert str(ROOT) not in text, path
            first, *rest = text.split("\n")
            assert first == f"# Generated by arenagen from {name}.yaml. Do not edit."
            assert not any("enerated by" in line for line in rest), path


@pytest.fixture(scope="module")
def emitted(
    files: dict[str, str],
    atlas_files: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The renderings, in a project with the configuration of this one."""
    folder = tmp_path_factory.mktemp("emitted")
    disk.write(folder / "generated/metrale_arena", files)
    disk.write(folder / "generated/atlas_arena", atlas_files)
    (folder / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    return folder


def tool(emitted: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=emitted,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_emitted_files_are_fixed_points_of_black(emitted: Path) -> None:
    tool(emitted, "black", "--check", "--quiet", "generated")


def test_emitted_files_pass_ruff(emitted: Path) -> None:
    tool(emitted, "ruff", "check", "--no-cache", "generated")


def test_emitted_files_pass_mypy_strict(emitted: Path) -> None:
    tool(emitted, "mypy", "--strict", "-p", "metrale_arena", "-p", "atlas_arena")
