"""Bad schemas and what is said of them.

Each file of tests/errors is a small schema, and each of tests/errors/families a small
family table, whose leading comment is the exact text of its problems. A schema may name
a family table beside it, which ends in `.yml`.
`python tests/unit/test_check.py NAME...` writes that comment anew. What schemas extend
lies in tests/errors/bases.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from arenagen import naming, plan
from arenagen.catalogue import CODES
from arenagen.check import check
from arenagen.commands.schemas import open_base
from arenagen.compile import Text, check_source, read_schema
from arenagen.errors import InputProblems, Problem, sort_problems
from arenagen.load import load
from arenagen.lower import lower
from arenagen.model import Extent, Regions, Schema, Uses
from arenagen.render import render

ROOT = Path(__file__).resolve().parents[2]
ERRORS = ROOT / "tests/errors"
CORPUS = sorted(ERRORS.rglob("*.yaml"))
CODE = re.compile(r"\bAR\d\d\d\b")
# What the family tables of the corpus are for.
SCHEMA = b"""\
arena: {class: Arena, package: arena, label: arena, doc: An arena.}
limits: {max_tokens: {symbol: M, tokens: true, doc: Tokens of a pass.}}
config: {hidden_size: {doc: Width of the residual stream.}}
buffers: {rows: {doc: One row a token., dtype: bf16, shape: [M, hidden_size]}}
"""


def problems_of(path: Path, data: bytes) -> tuple[Problem, ...]:
    text = Text(path.name, data)
    try:
        if path.parent.name == "families":
            checked = check_source(*read_schema(Text("schema.yaml", SCHEMA)), text)
            return checked.warnings
        with chdir(ERRORS):
            schema, warnings = read_schema(text, open_base)
            table = schema.arena.families
            families = open_base(text.name, table) if table else None
            return check_source(schema, warnings, families).warnings
    except InputProblems as error:
        return error.problems


def shown(problems: tuple[Problem, ...]) -> str:
    return "\n\n".join(str(problem) for problem in problems)


def expectation(data: bytes) -> str:
    """The leading comment of a file, without its marks."""
    lines = []
    for line in data.split(b"\n"):
        if not line.startswith(b"#"):
            break
        lines.append(line.decode().removeprefix("#").removeprefix(" "))
    return "\n".join(lines)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_problems_of_a_bad_schema(path: Path) -> None:
    data = path.read_bytes()
    problems = problems_of(path, data)
    assert shown(problems) == expectation(data)
    assert problems == tuple(sort_problems(problems))
    assert len({(each.code, each.span, each.message) for each in problems}) == len(
        problems
    )


def codes_in(folder: Path) -> set[str]:
    """Every code that the modules of the generator report, the catalogue apart."""
    return {
        node.value
        for path in folder.rglob("*.py")
        if path.name != "catalogue.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and CODE.fullmatch(node.value)
    }


def test_the_catalogue_holds_every_code() -> None:
    assert set(CODES) == codes_in(ROOT / "generator/arenagen")


def test_every_code_has_a_bad_schema() -> None:
    seen = {
        code for path in CORPUS for code in CODE.findall(expectation(path.read_bytes()))
    }
    # Of a table that is not there, test_cli tells.
    assert seen == set(CODES) - {"AR096"}


def test_every_problem_is_as_severe_as_the_catalogue_says() -> None:
    for path in CORPUS:
        for problem in problems_of(path, path.read_bytes()):
            assert problem.severity == CODES[problem.code].severity, path.name
    assert CODES["AR080"].severity == "warning"


def test_the_page_of_diagnostics_is_what_the_catalogue_says() -> None:
    path = ROOT / "docs/diagnostics.py"
    spec = importlib.util.spec_from_file_location("diagnostics_page", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = module.PAGE.read_text(encoding="utf-8")
    assert written == module.page(CORPUS), "run `make docs`"
    shown = set(re.findall(r"^### (AR\d+): .*\n(?:.*\n)*?```problem$", written, re.M))
    assert {f"AR{n}" for n in ("001", "041", "080", "095")} <= shown


def test_the_real_schema_has_no_problems() -> None:
    schema = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
    assert check(schema) == []


def test_a_problem_is_plain_data_too() -> None:
    path = ROOT / "tests/errors/yaml_duplicate_keys.yaml"
    first, _ = problems_of(path, path.read_bytes())
    assert first.as_dict() == {
        "code": "AR010",
        "severity": "error",
        "message": "the key `dtype` stands twice",
        "file": "yaml_duplicate_keys.yaml",
        "line": 28,
        "column": 5,
        "length": 5,
        "hint": "",
        "related": [
            {
                "label": "first",
                "file": "yaml_duplicate_keys.yaml",
                "line": 27,
                "column": 5,
            }
        ],
    }


# Names: what the emitted code uses must be closed to schemas


def schema_names(schema: Schema) -> set[str]:
    """Every name that the schema gives to emitted code, or that is made from one."""
    sections = (
        schema.target,
        schema.limits,
        schema.config,
        schema.levers,
        schema.constants,
        schema.lets,
        schema.functions,
        schema.layouts,
        schema.buffers,
    )
    found = {entry.name for section in sections for entry in section}
    found |= {limit.symbol for limit in schema.limits if limit.symbol}
    found.add(schema.arena.class_name)
    for function in schema.functions:
        found |= {each.name for each in function.parameters}
    for layout in schema.layouts:
        found |= {each.name for each in layout.parameters}
        found |= {each.name for each in layout.lets}
        found |= {each.name for each in layout.regions.items}
        found |= {naming.layout_class(layout.name), naming.layout_function(layout.name)}
    for buffer in schema.buffers:
        found.add(naming.pointer_class(buffer.name))
        parts: list[tuple[str, Extent]] = [("", buffer.extent)]
        if isinstance(buffer.extent, Uses):
            parts += [(use.name, use.extent) for use in buffer.extent.items]
        for use, extent in parts:
            found.add(naming.record_class(buffer.name, use))
            found.add(naming.place_function(buffer.name, use))
            if isinstance(extent, Regions):
                found |= {region.name for region in extent.items}
    return found


def bound_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds, without those of what it defines."""
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (each.asname or each.name for each in names)
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            yield name
        case ast.comprehension():
            return
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.ExceptHandler(name=str(name)):
            yield name
    if not isinstance(node, ast.ClassDef | ast.FunctionDef):
        for child in ast.iter_child_nodes(node):
            yield from bound_names(child)


# Functions whose locals are terms too, each called by what it holds.
CALCULATIONS = {
    ("sizes", "from_config"),
    ("sizes", "sizes"),
    ("sweep_columns", "sweep_columns"),
}
# Modules of more lines are split.
MOST_LINES = 800


def modules_of(schema: Schema) -> Iterator[tuple[str, str]]:
    """The modules of the package, whole as it is committed and split."""
    lower(schema)
    for path in (ROOT / "generated/metrale_arena").glob("*.py"):
        yield path.stem, path.read_text("utf-8")
    split = render(lower(schema, MOST_LINES), None, "metrale.yaml")
    assert "sizes_02.py" in split
    for name, text in split.items():
        module, dot, suffix = name.partition(".")
        if (dot, suffix) == (".", "py") and "/" not in module:
            yield module, text


def test_every_name_of_the_emitted_code_is_closed_to_schemas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: set[str] = set()
    give = naming.Locals.__call__

    def record(names: naming.Locals, best: str) -> str:
        given.add(name := give(names, best))
        return name

    monkeypatch.setattr(naming.Locals, "__call__", record)
    schema = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
    own = schema_names(schema)
    limits = {limit.name for limit in schema.limits}
    found: set[str] = set()
    beside_limits: set[str] = set()
    calculated: set[str] = set()
    for module, text in modules_of(schema):
        tree = ast.parse(text)
        found |= {name for each in tree.body for name in bound_names(each)}
        if module == "families":
            # Its other locals are those of the family table.
            found |= {"config", "file", "keys"}
            continue
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                arguments = (*function.args.args, *function.args.kwonlyargs)
                local = {each.arg for each in arguments}
                local |= {name for each in function.body for name in bound_names(each)}
                # Methods call a pass `tokens` and its sizes `rows`.
                schema_owns = local & own - {"tokens", "rows"}
                if (module.rstrip("_0123456789"), function.name) in CALCULATIONS:
                    calculated |= local
                elif schema_owns - limits:
                    found |= local
                elif schema_owns:
                    beside_limits |= local
    closed = naming.LOCALS | naming.MODULE_NAMES
    # What is left are terms, whose names were asked for and leave all others alone.
    made = calculated - own - closed
    assert {"M_x4", "M_pad_x2"} <= made <= given
    assert {naming.bad_identifier(name) for name in made} == {None}
    assert not {name.casefold() for name in made} & {name.casefold() for name in own}
    assert beside_limits - own <= naming.LOCALS | naming.LIMIT_MEMBERS
    found = {name for name in found if not name.startswith("_")}
    apart = {"annotations", "config_from_hf", "*"}
    assert found - own - apart <= closed
    assert set(plan.PUBLIC) <= closed


def test_every_module_that_is_imported_on_use_is_closed_to_exports() -> None:
    code = "import metrale_arena, sys; print(*sys.modules)"
    folder = ROOT / "generated"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = {path.stem for path in (folder / "metrale_arena").glob("*.py")}
    loaded = {name.removeprefix("metrale_arena.") for name in done.stdout.split()}
    assert modules - loaded - {"__init__"} == naming.LATE_MODULES


def test_every_private_name_of_the_arena_is_closed_to_groups() -> None:
    text = (ROOT / "generated/metrale_arena/arena.py").read_text("utf-8")
    schema = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
    methods = {
        name for group in schema.groups for name in (group.method, group.rows_method)
    }
    made = {f"_{name}" for name in methods} | {f"_plan_{name}" for name in methods}
    made |= {f"_{buffer.name}_slab" for buffer in schema.buffers if buffer.carve}
    made |= {f"_{layout.name}_layout" for layout in schema.layouts if layout.accessor}
    found = set(re.findall(r"(?:self\.|arena\.|def )(_[a-z]\w*)", text)) - made
    assert {name.removeprefix("_") for name in found} == naming.ARENA_PRIVATE
    split = render(lower(schema, MOST_LINES), None, "metrale.yaml")
    chunks = "".join(text for path, text in split.items() if path.startswith("arena_"))
    found = set(re.findall(r"def (_[a-z]\w*)", chunks))
    assert {"_allocate_02", "_zero_all_members_01"} <= found
    owners = {naming.private_owner(name.removeprefix("_")) for name in found}
    assert owners == {"every large arena class"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("hidden_size", None),
        ("H2", None),
        ("M", None),
        ("", "is empty"),
        ("2d", "is not a letter followed by letters, digits and `_`"),
        ("a b", "is not a letter followed by letters, digits and `_`"),
        ("a\n", "is not a letter followed by letters, digits and `_`"),
        ("_a", "is not a letter followed by letters, digits and `_`"),
        ("größe", "has characters beyond ASCII"),
        ("a" * 80, None),
        ("a" * 81, "is longer than 80 characters"),
        ("lambda", "is a word of the Python language"),
        ("type", "is a word of the Python language"),
        ("None", "is a word of the Python language"),
        ("len", "would hide a Python builtin"),
        ("O", "reads as a digit"),
        ("levers", "is used by the emitted code itself"),
        ("BUFFERS", "is used by the emitted code itself"),
    ],
)
def test_identifiers(name: str, why: str | None) -> None:
    if sys.version_info < (3, 12) and name == "type":
        why = "would hide a Python builtin"
    assert naming.bad_identifier(name) == why


def test_names_that_are_made() -> None:
    assert naming.bytes_accessor("scratch") == "scratch_bytes"
    assert naming.carve_method("slab") == "carve_slab"
    assert naming.layout_class("moe_fp8") == "MoeFp8Layout"
    assert naming.layout_function("moe_fp8") == "moe_fp8_bytes"
    assert naming.pointer_class("moe_fp8_scratch") == "MoeFp8ScratchPtr"
    assert naming.use_end("scratch", "prefill") == "scratch_prefill"


def _rewrite(path: Path) -> None:
    """Write the leading comment of a file anew; its length moves the lines it names."""
    lines = path.read_bytes().split(b"\n")
    start = next(i for i, line in enumerate([*lines, b""]) if not line.startswith(b"#"))
    body, header = b"\n".join(lines[start:]), b""
    for _ in range(4):
        text = shown(problems_of(path, header + body))
        commented = [f"# {line}".rstrip() + "\n" for line in text.split("\n")]
        header = "".join(commented).encode()
    path.write_bytes(header + body)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        _rewrite(ERRORS / f"{name}.yaml")
