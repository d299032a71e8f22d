"""The standing promises of the repository: what lies where, and who may do what.

Reads sources as syntax trees and texts; imports none of them.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GENERATOR = ROOT / "generator/arenagen"
TREES = {
    ".".join(path.relative_to(GENERATOR).with_suffix("").parts): ast.parse(
        path.read_text(encoding="utf-8"), path.name
    )
    for path in sorted(GENERATOR.rglob("*.py"))
}
# Of modules where they are whole, and where they are a chunk or join chunks.
WHOLE = sorted((ROOT / "templates").glob("*.jinja"))
TEMPLATES = [
    *WHOLE,
    *sorted((ROOT / "templates/chunks").glob("*")),
    *sorted((ROOT / "templates/joined").glob("*")),
]
TEMPLATE_IDS = [path.relative_to(ROOT).as_posix() for path in TEMPLATES]
PAGE_TEMPLATES = sorted((GENERATOR / "page").glob("*.jinja"))


def tracked() -> list[str]:
    """Every file that is, or is about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    names = [name.decode() for name in listed.split(b"\0") if name]
    return [name for name in names if (ROOT / name).is_file()]


def test_the_top_level_holds_what_it_should() -> None:
    found = {name.split("/")[0] for name in tracked()}
    assert found | {"benchmarks"} == {
        ".ci",
        ".gitignore",
        ".pre-commit-hooks.yaml",
        "Makefile",
        "README.md",
        "benchmarks",
        "docs",
        "generated",
        "generator",
        "pyproject.toml",
        "schema",
        "templates",
        "tests",
    }


def test_names_of_files_are_plain() -> None:
    for name in tracked():
        assert re.fullmatch(r"[A-Za-z0-9._/-]+", name), name


def test_every_text_is_utf8_with_unix_lines() -> None:
    for name in tracked():
        # What is wrong there is wrong on purpose.
        if name.startswith("tests/errors/"):
            continue
        text = (ROOT / name).read_bytes().decode("utf-8")
        assert "\r" not in text, name
        assert not text.startswith("\ufeff"), name
        assert not text or text.endswith("\n"), name


# Words of the workshop, which mean nothing to a reader of the repository.
WORDS = re.compile(
    r"\bissues? #?\d|\b(?:my|our|this|previous|next) sessions?\b|"
    r"/work/|/tmp/|/root/|/home/|pypi\.org|\b(?:TODO|FIXME|XXX|HACK)\b",
    re.IGNORECASE,
)


def test_no_file_speaks_of_how_it_came_about() -> None:
    this = Path(__file__).relative_to(ROOT).as_posix()
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in tracked()
        if name != this
        for number, line in enumerate(
            (ROOT / name).read_text("utf-8", "replace").splitlines(), start=1
        )
        if WORDS.search(line)
    ]
    assert found == []


# The generator.


def imports(module: str) -> Iterator[str]:
    """The modules of the generator that a module imports, anywhere in it."""
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom) and node.level:
            names = [node.module] if node.module else [each.name for each in node.names]
            folder = module.split(".")[: -node.level]
            yield from (".".join([*folder, *str(name).split(".")]) for name in names)


def test_imports_of_the_generator_point_one_way() -> None:
    graph = {name: {*imports(name)} & TREES.keys() for name in TREES}
    by_name = {m for m, tree in TREES.items() if ("", "import_module") in called(tree)}
    # `doctor` asks for the packages of others.
    assert by_name == {"cli", "doctor"}
    graph["cli"] |= {name for name in TREES if name.startswith("commands.")}
    order = list(TopologicalSorter(graph).static_order())
    assert order[-3:] == ["cli", "start", "__main__"]
    for name in graph.keys() - {"__main__"}:
        if not of_the_command_line(name):
            assert not any(map(of_the_command_line, graph[name])), name


def test_the_generator_imports_itself_by_relative_names() -> None:
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=aliases):
                    assert not any("arenagen" in each.name for each in aliases), name
                case ast.ImportFrom(level=0, module=str(module)):
                    assert "arenagen" not in module, name


def test_no_run_makes_dataclasses() -> None:
    # A hundred of them take as long to make as a schema takes to check.
    users = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
    }
    assert users == {"record"}


def called(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Owner and name of every function that is called: ("", "open"), ("os", "open")."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield "", name
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                yield ast.unparse(owner), name


WRITES = {
    "chmod",
    "fdopen",
    "mkdir",
    "mkstemp",
    "open",
    "rename",
    "rmdir",
    "rmtree",
    "symlink_to",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
}
READS = {"glob", "iterdir", "listdir", "read_bytes", "read_text", "rglob", "walk"}
# Its own templates and JSON Schemas, which lie inside of the package.
READS_PACKAGE_DATA = {"resources"}
# Ask whether anything changed, and read the templates, in less time than loading `disk`
# or `pathlib` takes.
READS_ALONE = {
    ("manifest", "listdir"),
    ("manifest", "open"),
    ("resources", "listdir"),
    ("resources", "open"),
}
# Opens the null device, for an output that nobody reads.
OPENS_NOTHING = {("start", "open")}


def test_only_disk_touches_the_disk() -> None:
    found = {
        (module, name)
        for module, tree in TREES.items()
        for owner, name in called(tree)
        if module != "disk"
        # Walking a formula is no walk through folders.
        and (name in WRITES or (name in READS and (name != "walk" or owner == "os")))
    }
    assert found >= READS_ALONE | OPENS_NOTHING
    found -= READS_ALONE | OPENS_NOTHING
    assert {module for module, _ in found} <= READS_PACKAGE_DATA
    assert {name for _, name in found} <= {"glob", "read_text"}
    for module, tree in TREES.items():
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        outside = {"shutil", "tempfile", "subprocess", "socket"}
        if module == "git":
            # It runs git, and touches nothing itself.
            outside.remove("subprocess")
        if module != "disk":
            assert not imported & outside


def of_the_command_line(module: str) -> bool:
    return module in ("cli", "start") or module.startswith("commands.")


def test_only_the_command_line_prints() -> None:
    for module, tree in TREES.items():
        names = {name for _, name in called(tree)}
        if not of_the_command_line(module):
            assert not names & {"echo", "print", "secho"}, module
            text = ast.unparse(tree)
            assert "sys.stdout" not in text and "sys.stderr" not in text, module
        # The command line speaks through click, which knows streams and encodings.
        assert ("", "print") not in called(tree), module


def test_only_the_command_line_exits() -> None:
    for module, tree in TREES.items():
        if not of_the_command_line(module):
            assert ("sys", "exit") not in called(tree), module


MUTABLE = (
    ast.Dict,
    ast.DictComp,
    ast.List,
    ast.ListComp,
    ast.Set,
    ast.SetComp,
)


def test_modules_hold_no_state() -> None:
    """A table of a module has a name in capitals, and nobody changes it."""
    for module, tree in TREES.items():
        for node in tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                name = ast.unparse(target)
                if isinstance(node.value, MUTABLE):
                    assert name.isupper() or name == "__all__", (module, name)
        tables = {
            ast.unparse(node.targets[0])
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, MUTABLE)
        }
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Global), module
            match node:
                case ast.Call(func=ast.Attribute(value=owner, attr=method)):
                    changes = {"add", "append", "clear", "extend", "pop", "update"}
                    assert not (
                        ast.unparse(owner) in tables and method in changes
                    ), module
                case ast.Assign(targets=[ast.Subscript(value=owner)]):
                    assert ast.unparse(owner) not in tables, module


# Nodes of the formula tree, whose fields say all that there is to say.
SPEAK_FOR_THEMSELVES = {"Bool", "Int", "Name", "Str"}


@pytest.mark.parametrize("module", TREES)
def test_every_module_and_everything_public_has_a_docstring(module: str) -> None:
    tree = TREES[module]
    assert ast.get_docstring(tree)
    bare = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    }
    assert bare <= SPEAK_FOR_THEMSELVES


@pytest.mark.parametrize("module", TREES)
def test_no_name_is_used_as_code(module: str) -> None:
    names = {name for owner, name in called(TREES[module]) if owner in ("", "builtins")}
    # `record` makes an initializer from a text that holds nothing but a count.
    allowed = {"exec"} if module == "record" else set()
    forbidden = {"eval", "exec", "compile", "__import__", "globals"}
    assert names & forbidden == allowed


# Templates.

EXPRESSION = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
STATEMENT = re.compile(r"for \w+(, \w+)? in [\w.]+|if (not )?[\w.]+|else|endfor|endif")
PRINTED = re.compile(r"[\w.]+( \| \w+(\([\w.]+(, [\w.]+)*\))?)?")
# Read by the modules of chunks, and the packages here have none.
OF_CHUNKS = "sizes.py"
# One class, which cannot be cut.
ARENA = "arena.py.jinja"


@pytest.mark.parametrize("path", TEMPLATES, ids=TEMPLATE_IDS)
def test_templates_decide_nothing(path: Path) -> None:
    """Loops, conditions on one attribute, and attributes through one filter at most."""
    for match in EXPRESSION.finditer(path.read_text(encoding="utf-8")):
        printed, statement = match.groups()
        if printed is not None:
            printed = printed.strip()
            assert PRINTED.fullmatch(printed), match[0]
        else:
            assert STATEMENT.fullmatch(statement.strip()), match[0]


@pytest.mark.parametrize("path", PAGE_TEMPLATES, ids=lambda path: path.name)
def test_templates_of_the_page_decide_nothing(path: Path) -> None:
    """The same, and a template may be made of others; escaping is never turned off."""
    for match in EXPRESSION.finditer(path.read_text(encoding="utf-8")):
        printed, statement = match.groups()
        if printed is not None:
            assert re.fullmatch(r"[\w.]+", printed.strip()), match[0]
        elif not re.fullmatch(r'include "\w+\.html\.jinja"', statement.strip()):
            assert STATEMENT.fullmatch(statement.strip()), match[0]


@pytest.mark.parametrize("path", TEMPLATES, ids=TEMPLATE_IDS)
def test_templates_are_short(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 120 or path.name == ARENA


PACKAGES = sorted(path.parent for path in (ROOT / "generated").glob("*/__init__.py"))
every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)


def test_every_emitted_package_is_listed_in_the_project() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pairs = re.findall(r'^schema = "(.*)"\noutput = "(.*)"$', text, re.MULTILINE)
    assert pairs == [
        ("schema/metrale.yaml", "generated/metrale_arena"),
        ("schema/atlas.yaml", "generated/atlas_arena"),
    ]
    assert {output for _, output in pairs} == {
        path.relative_to(ROOT).as_posix() for path in PACKAGES
    }
    types = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"-p {path.name}" in types for path in PACKAGES)


@every_package
def test_templates_are_those_that_are_rendered(package: Path) -> None:
    emitted = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    runtime = {
        f"runtime/{path.name}" for path in (ROOT / "templates/runtime").glob("*.py")
    }
    runtime.remove(f"runtime/{OF_CHUNKS}")
    assert {path.name.removesuffix(".jinja") for path in WHOLE} | runtime == emitted


@every_package
def test_runtime_modules_are_emitted_as_they_are(package: Path) -> None:
    for path in sorted((ROOT / "templates/runtime").glob("*.py")):
        if path.name == OF_CHUNKS:
            continue
        emitted = package / "runtime" / path.name
        text = emitted.read_text(encoding="utf-8").split("\n", 1)[1].removeprefix("\n")
        assert text == path.read_text(encoding="utf-8"), path.name


@pytest.mark.parametrize(
    "path",
    [
        *sorted((ROOT / "templates/runtime").glob("*.py")),
        *sorted((ROOT / "generated").rglob("*.py")),
    ],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_emitted_code_knows_nothing_of_the_generator(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names = [each.name for each in aliases]
            case ast.ImportFrom(level=0, module=str(module)):
                names = [module]
            case _:
                continue
        assert not any(name.split(".")[0] == "arenagen" for name in names)
