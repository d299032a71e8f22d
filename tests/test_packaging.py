"""What users install works: the wheel, the sdist and an editable install.

Builds both once, installs each into a fresh virtual environment whose path has a
space, far from the repository, and emits the real package there. The emitted package
must then run under an interpreter that has nothing but the standard library.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import arenagen
from arenagen import resources

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "generated/metrale_arena"
# What the generator reads beside its own modules.
RESOURCES = ["templates", "schema/arena.schema.json", "schema/huggingface.schema.json"]
pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


class Installed(NamedTuple):
    """An environment with arenagen, and a working folder with a copy of the schema."""

    python: Path
    command: Path
    project: Path


def run(*arguments: str | Path, cwd: Path) -> str:
    """What a command prints; it must succeed. It knows nothing of this process."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        list(map(os.fspath, arguments)),
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Make a folder, once for all of the test processes."""
    done = folder.with_suffix(".done")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this test run, common to its processes."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "a packaging folder"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def dist(shared: Path) -> Path:
    """A folder with the sdist, and the wheel that is built from it."""

    def build(folder: Path) -> None:
        here = importlib.util.find_spec("hatchling") is not None
        isolation = ["--no-isolation"] if here else []
        run(
            *(sys.executable, "-m", "build", *isolation, "--outdir", folder, ROOT),
            cwd=shared,
        )

    return once(shared / "dist", build)


def the(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="session", params=["whl", "tar.gz"], ids=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest, shared: Path, dist: Path) -> Installed:
    """A fresh environment with the wheel or the sdist."""

    def install(folder: Path) -> None:
        venv.create(folder / "my venv", symlinks=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "--python"]
        python = folder / "my venv/bin/python"
        run(*pip, python, "install", the(dist, f"*.{request.param}"), cwd=folder)
        project = folder / "my project"
        project.mkdir()
        for name in ("metrale.yaml", "atlas.yaml", "huggingface.yaml"):
            shutil.copy(ROOT / "schema" / name, project)
        command = folder / "my venv/bin/arenagen"
        run(command, "generate", "metrale.yaml", "-o", "the output", cwd=project)
        run(command, "generate", "atlas.yaml", "-o", "the other output", cwd=project)

    folder = once(shared / f"from {request.param[:3]}", install)
    scripts = folder / "my venv/bin"
    return Installed(scripts / "python", scripts / "arenagen", folder / "my project")


def test_the_installed_command_tells_its_version(installed: Installed) -> None:
    shown = f"arenagen, version {arenagen.__version__}\n"
    assert run(installed.command, "--version", cwd=installed.project) == shown
    module = (installed.python, "-m", "arenagen", "--version")
    assert run(*module, cwd=installed.project) == shown


def test_the_installed_generator_is_the_one_of_the_environment(
    installed: Installed,
) -> None:
    script = (
        "import arenagen, importlib.metadata, pathlib\n"
        "from arenagen import resources\n"
        "print(pathlib.Path(arenagen.__file__).parent)\n"
        f"print(*map(resources.find, {RESOURCES}), sep='\\n')\n"
        "print(importlib.metadata.version('arenagen'))\n"
    )
    place, *inside, version = run(
        installed.python, "-c", script, cwd=installed.project
    ).splitlines()
    assert Path(place).is_relative_to(installed.python.parents[1])
    assert all(Path(each).is_relative_to(place) for each in inside)
    assert all(Path(each).exists() for each in inside)
    assert version == arenagen.__version__


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_installed_generator_emits_the_committed_bytes(
    installed: Installed,
) -> None:
    assert contents(installed.project / "the output") == contents(PACKAGE)
    other = contents(installed.project / "the other output")
    assert other == contents(ROOT / "generated/atlas_arena")


def test_the_installed_generator_checks_what_it_emitted(installed: Installed) -> None:
    shown = run(
        *(installed.command, "check", "metrale.yaml", "--output", "the output"),
        cwd=installed.project,
    )
    count = len(contents(PACKAGE))
    assert shown == f"the output: {count} files, all as metrale.yaml says\n"


def test_the_installed_generator_reads_configs(installed: Installed) -> None:
    config = ROOT / "tests/data/Qwen3-32B.json"
    shown = run(
        *(installed.command, "sizes", "-s", "metrale.yaml", "-c", config),
        *("-M", "1", "--format", "json"),
        cwd=installed.project,
    )
    assert json.loads(shown)["buffers"][0]["bytes"] == 5120 * 2


# Runs in an interpreter that sees the standard library and the folder of the package.
BARE = """
import sys
sys.path.insert(0, sys.argv[1])
import metrale_arena
from metrale_arena import BufferArena, BufferSizes, HostBackend, Levers, ModelConfig

foreign = {"arenagen", "jinja2", "black", "yaml", "click", "cuda", "numpy", "torch"}
assert not foreign & {name.split(".")[0] for name in sys.modules}
outside = [
    name
    for name, module in sys.modules.items()
    if "site-packages" in (getattr(module, "__file__", None) or "")
]
assert not outside, outside
limits = dict(max_batch_tokens=4, max_seq_len=64, kv_block_size=16, max_batch_size=2)
config = ModelConfig(hidden_size=8, vocab_size=16, num_attention_heads=2, head_dim=4)
gpu = HostBackend()
sizes = BufferSizes.from_config(config, **limits, levers=Levers())
with BufferArena(config, **limits, levers=Levers(), gpu=gpu) as arena:
    assert arena.hidden_states_bytes == sizes.hidden_states == 4 * 8 * 2
    assert gpu.live_bytes == sizes.total_bytes > 0
    arena.zero_all(gpu.default_stream)
assert gpu.live_bytes == 0
assert not foreign & {name.split(".")[0] for name in sys.modules}
print("released")
"""


def test_the_emitted_package_needs_the_standard_library_alone(
    installed: Installed,
) -> None:
    folder = installed.project / "bare"
    shutil.copytree(
        installed.project / "the output", folder / "metrale_arena", dirs_exist_ok=True
    )
    python = Path(sys.base_prefix, "bin/python{}.{}".format(*sys.version_info))
    for options in (["-I", "-S", "-W", "error"], ["-I", "-S", "-OO"]):
        shown = run(python, *options, "-c", BARE, folder, cwd=installed.project)
        assert shown == "released\n"


def test_the_installed_generator_writes_a_page(installed: Installed) -> None:
    config = ROOT / "tests/data/Qwen3-32B.json"
    run(
        *(installed.command, "report", "-s", "metrale.yaml", "-c", config),
        *("-M", "1", "-o", "report.html"),
        cwd=installed.project,
    )
    page = (installed.project / "report.html").read_text(encoding="utf-8")
    assert "Qwen3-32B.json" in page and page.endswith("</html>\n")


def test_the_wheel_holds_the_package_and_nothing_else(dist: Path) -> None:
    version = arenagen.__version__
    wheel = the(dist, "*.whl")
    assert wheel.name == f"arenagen-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    info = f"arenagen-{version}.dist-info/"
    inside = {name.removeprefix("arenagen/") for name in names if info not in name}
    expected = {
        path.relative_to(folder).as_posix()
        for folder, pattern in (
            (ROOT / "generator/arenagen", "**/*.py"),
            (ROOT / "generator/arenagen", "py.typed"),
            (ROOT / "generator/arenagen", "page/page.*"),
            (ROOT / "generator/arenagen", "page/*.jinja"),
            (ROOT, "templates/**/*.jinja"),
            (ROOT, "templates/**/*.py"),
            (ROOT, "templates/starter/*.yaml"),
            (ROOT, "schema/*.schema.json"),
            (ROOT, "schema/huggingface.yaml"),
        )
        for path in folder.glob(pattern)
    }
    assert inside == expected
    assert {name for name in names if info in name} == {
        info + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")
    }


def test_the_sdist_holds_what_is_needed_to_work_on_it(dist: Path) -> None:
    with tarfile.open(the(dist, "*.tar.gz")) as file:
        names = [name.split("/", 1)[1] for name in file.getnames()]
    for name in (
        "pyproject.toml",
        "README.md",
        "schema/metrale.yaml",
        "schema/atlas.yaml",
        "schema/huggingface.yaml",
        "templates/arena.py.jinja",
        "generated/metrale_arena/arena.py",
        "generated/atlas_arena/arena.py",
        "tests/test_packaging.py",
        "generator/arenagen/cli.py",
    ):
        assert name in names
    folders = {part for name in names for part in name.split("/")}
    assert not folders & {".venv", ".git", "__pycache__", "dist", ".pytest_cache"}


def names_of(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in requirements}


def test_the_metadata_is_that_of_the_project(dist: Path) -> None:
    with zipfile.ZipFile(the(dist, "*.whl")) as file:
        (name,) = (each for each in file.namelist() if each.endswith("/METADATA"))
        lines = file.read(name).decode().split("\n\n")[0].splitlines()
    required = [
        line.removeprefix("Requires-Dist: ")
        for line in lines
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]
    assert names_of(required) == names_of(PROJECT["project"]["dependencies"])
    assert f"Requires-Python: {PROJECT['project']['requires-python']}" in lines
    assert f"Version: {arenagen.__version__}" in lines


def test_the_editable_install_runs_from_the_checkout() -> None:
    found = importlib.metadata.distribution("arenagen")
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    assert origin["dir_info"] == {"editable": True}
    assert Path(arenagen.__file__).parent == ROOT / "generator/arenagen"
    for name in RESOURCES:
        assert Path(resources.find(name)).resolve() == ROOT / name
    command = Path(sys.executable).parent / "arenagen"
    shown = run(command, "--version", cwd=Path(sys.base_prefix))
    assert shown == f"arenagen, version {arenagen.__version__}\n"
