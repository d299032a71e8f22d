"""What docs/editors.md promises: the settings, the hooks and the CI job, all run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/editors.md").read_text("utf-8")
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))


def block(kind: str) -> str:
    (body,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(body, str)
    return body


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project like this one."""
    for name in ("schema", "generated", "docs", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def run(command: str, folder: Path) -> None:
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_settings_name_the_file_that_the_commands_write() -> None:
    (file,) = re.findall(r"arenagen schema > (\S+)", PAGE)
    assert block("yaml modeline") == f"# yaml-language-server: $schema={file}\n"
    settings = json.loads(block("json"))
    assert [*settings["yaml.schemas"]] == [f"./{file}"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hooks_are_whole_and_green_here(hook: dict[str, Any], project: Path) -> None:
    assert {"id", "name", "entry", "language", "description"} <= hook.keys()
    assert hook["language"] == "python" and hook["pass_filenames"] is False
    for name in ("schema/metrale.yaml", "pyproject.toml"):
        assert re.search(hook["files"], name)
    run(shlex.join(shlex.split(hook["entry"])), project)


def test_the_page_names_every_hook() -> None:
    (repository,) = yaml.safe_load(block("yaml hooks"))["repos"]
    named = [hook["id"] for hook in repository["hooks"]]
    assert sorted(named) == sorted(hook["id"] for hook in HOOKS)


def test_the_job_of_the_page_runs(project: Path) -> None:
    (job,) = yaml.safe_load(block("yaml ci"))["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    ours = [each for each in commands if each.startswith("arenagen ")]
    assert len(ours) == 2
    for command in ours:
        run(command, project)
    uploads = [step["with"] for step in job["steps"] if "sarif" in step.get("uses", "")]
    (upload,) = uploads
    log = json.loads((project / upload["sarif_file"]).read_text("utf-8"))
    assert log["version"] == "2.1.0" and log["runs"][0]["results"] == []
