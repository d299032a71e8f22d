"""The notes of an earlier run: what they spare, and everything that they must not hide.

`answer` is what `arenagen check` says without working anything out, None where it goes
on to the command itself.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from arenagen import manifest, resources, start
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
OTHER = """\
arena: {class: OtherArena, package: other, label: it, doc: Other., extends: base.yaml}
"""
PROJECT = (
    '[[tool.arenagen.arenas]]\nschema = "tiny.yaml"\noutput = "out"\ndocs = "page.md"\n'
)
CACHE = ".arenagen_cache/manifest.json"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that extends another file, and whose package was just generated."""
    folder = tmp_path_factory.mktemp("made") / "project"
    folder.mkdir()
    (folder / "base.yaml").write_text(TINY)
    (folder / "tiny.yaml").write_text(OTHER)
    (folder / "pyproject.toml").write_text(PROJECT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run("generate")
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the working folder."""
    folder = tmp_path / "project"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CI", raising=False)
    return folder


@pytest.fixture
def answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str | None]:
    def ask(*arguments: str) -> str | None:
        gone_on: list[bool] = []
        monkeypatch.setattr(sys, "argv", ["arenagen", *(arguments or ("check",))])
        monkeypatch.setattr("arenagen.cli.main", lambda: gone_on.append(True))
        monkeypatch.setattr("arenagen.commands.bare.run", lambda *_: None)
        monkeypatch.setattr(start, "_collect_nothing", lambda: None)
        try:
            start.main()
        except SystemExit as error:
            assert error.code == 0
        shown = capsys.readouterr().out
        return None if gone_on else shown

    return ask


Answer = Callable[..., str | None]


def test_an_unchanged_project_is_known_again(project: Path, answer: Answer) -> None:
    count = sum(path.is_file() for path in (project / "out").rglob("*"))
    assert (
        answer("check")
        == run("check")
        == f"out: {count} files, all as tiny.yaml says\npage.md: as tiny.yaml says\n"
    )
    assert answer("generate") == run("generate")
    assert answer("generate") == (
        f"out: {count} files, {count} unchanged\npage.md: unchanged\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--full"),
        ("check", "--no-cache"),
        ("generate", "--no-cache"),
        ("check", "tiny.yaml"),
        ("lint",),
    ],
    ids=" ".join,
)
def test_other_commands_are_not_answered(
    project: Path, answer: Answer, arguments: tuple[str, ...]
) -> None:
    assert answer(*arguments) is None


@pytest.mark.parametrize("value", ["true", "True", "1"])
def test_continuous_integration_trusts_no_notes(
    project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CI", value)
    assert answer("check") is None


@pytest.mark.parametrize("bare", [True, False], ids=["bare", "by click"])
@pytest.mark.parametrize(
    ("arguments", "in_ci", "leaves"),
    [
        (["check"], "", True),
        (["check"], "true", False),
        (["check", "--full"], "", False),
    ],
)
def test_a_full_check_leaves_no_notes(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    bare: bool,
    arguments: list[str],
    in_ci: str,
    leaves: bool,
) -> None:
    (project / CACHE).unlink()
    monkeypatch.setenv("CI", in_ci)
    if bare:
        monkeypatch.setattr(sys, "argv", ["arenagen", *arguments])
        monkeypatch.setattr(start, "_collect_nothing", lambda: None)
        with pytest.raises(SystemExit) as found:
            start.main()
        assert found.value.code == 0
    else:
        run(*arguments)
    assert (project / CACHE).exists() == leaves


def append(path: str) -> Callable[[Path], None]:
    def edit(project: Path) -> None:
        with (project / path).open("a") as file:
            file.write("# more\n")

    return edit


def same_size(project: Path) -> None:
    path = project / "out/sizes.py"
    before = path.stat()
    path.write_text(path.read_text().replace("M * width * 2", "M * width * 4"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def link(project: Path) -> None:
    path = project / "out/sizes.py"
    path.rename(project / "sizes.py")
    path.symlink_to(project / "sizes.py")


EDITS: dict[str, Callable[[Path], None]] = {
    "schema": append("tiny.yaml"),
    "base": append("base.yaml"),
    "project": append("pyproject.toml"),
    "emitted file": append("out/arena.py"),
    "reference": append("page.md"),
    "runtime module": append("out/runtime/host.py"),
    "emitted file, same size and time": same_size,
    "file removed": lambda project: (project / "out/py.typed").unlink(),
    "file added": lambda project: append("out/more.py")(project),
    "file of somebody else": append("out/runtime/notes.txt"),
    "link": link,
    "base removed": lambda project: (project / "base.yaml").unlink(),
    "no manifest": lambda project: (project / CACHE).unlink(),
    "empty manifest": lambda project: (project / CACHE).write_text("") and None,
    "manifest of a list": lambda project: (project / CACHE).write_text("[1]") and None,
    "manifest of other keys": lambda project: (
        (project / CACHE).write_text('{"digest": "", "packages": [{"a": 1}]}') and None
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_any_change_is_looked_into(
    project: Path, answer: Answer, edit: Callable[[Path], None]
) -> None:
    assert answer() is not None
    edit(project)
    assert answer() is None


def test_what_was_changed_and_put_back_is_known_again(
    project: Path, answer: Answer
) -> None:
    path = project / "out/sizes.py"
    text = path.read_text()
    path.write_text(text + "# more\n")
    assert answer() is None
    path.write_text(text)
    assert answer() is not None


@pytest.mark.parametrize("what", ["template", "source", "json schema", "version"])
def test_another_tool_trusts_no_notes(
    project: Path,
    answer: Answer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    what: str,
) -> None:
    if what == "version":
        monkeypatch.setattr(manifest, "__version__", "0.0.0")
    elif what == "source":
        folder = tmp_path_factory.mktemp("tool")
        for path in Path(resources.PACKAGE).glob("*.py"):
            (folder / path.name).write_bytes(path.read_bytes() + b"#\n")
        places = {each: resources.find(each) for each in ("templates", "schema")}
        monkeypatch.setattr(resources, "PACKAGE", str(folder))
        monkeypatch.setattr(resources, "find", lambda each: places[each])
    else:
        name = {"template": "templates", "json schema": "schema"}[what]
        real = resources.find
        monkeypatch.setattr(
            resources,
            "find",
            lambda each: str(project) if each == name else real(each),
        )
    assert answer() is None


# Its name as a wheel spells it, an older wheel, and a package of a distribution.
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("black-26.1.0.dist-info", "black-26.2.0.dist-info"),
        ("jsonschema-4.26.0.dist-info", "jsonschema-4.27.0.dist-info"),
        ("pyyaml-6.0.3.dist-info", "pyyaml-6.0.4.dist-info"),
        ("PyYAML-6.0.1.dist-info", "PyYAML-6.0.2.dist-info"),
        ("black-26.1.0.egg-info", "black-26.2.0.egg-info"),
    ],
)
def test_another_version_of_a_dependency_trusts_no_notes(
    project: Path,
    answer: Answer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    before: str,
    after: str,
) -> None:
    packages = tmp_path / "packages"
    (packages / before).mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(packages)])
    run("check")
    assert answer() is not None
    (packages / before).rename(packages / after)
    assert answer() is None


def test_a_check_that_fails_leaves_no_notes(project: Path, answer: Answer) -> None:
    (project / CACHE).unlink()
    append("out/arena.py")(project)
    run("check", code=1)
    assert not (project / CACHE).exists()


def test_a_check_that_holds_leaves_notes(project: Path, answer: Answer) -> None:
    (project / CACHE).unlink()
    run("check", "--no-cache")
    assert not (project / CACHE).exists()
    run("check")
    assert answer() is not None


def test_a_folder_of_the_path_may_be_closed(
    project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, closed = os.listdir, str(project / "closed")

    def listdir(folder: str) -> list[str]:
        if folder == closed:
            raise PermissionError(13, "Permission denied", folder)
        return real(folder)

    (project / "closed").mkdir()
    monkeypatch.setattr(os, "listdir", listdir)
    monkeypatch.setattr(sys, "path", [closed, *sys.path])
    run("check")
    assert answer() is not None


def test_warnings_are_told_each_time(project: Path, answer: Answer) -> None:
    (project / CACHE).unlink()
    text = TINY.replace("buffers:", "  odd: {doc: Read nowhere.}\nbuffers:")
    (project / "base.yaml").write_text(text)
    assert "warning" in run("generate")
    assert answer() is None


def test_the_notes_are_ignored_by_version_control(project: Path) -> None:
    assert (project / ".arenagen_cache/.gitignore").read_text() == "*\n"
    names = {path.name for path in (project / ".arenagen_cache").iterdir()}
    assert names == {".gitignore", "manifest.json"}


def test_a_folder_where_nothing_can_be_kept_is_no_error(project: Path) -> None:
    (project / CACHE).unlink()
    (project / ".arenagen_cache/.gitignore").unlink()
    (project / ".arenagen_cache").rmdir()
    (project / ".arenagen_cache").write_text("a file in the way")
    assert "unchanged" in run("generate")


def test_notes_hold_paths_and_a_digest_alone(project: Path) -> None:
    notes = json.loads((project / CACHE).read_text())
    assert set(notes) == {"digest", "packages"}
    (package,) = notes["packages"]
    assert package["schema"] == "tiny.yaml"
    assert (package["output"], package["docs"]) == ("out", "page.md")
    assert sorted(package["inputs"]) == ["base.yaml", "tiny.yaml"]
