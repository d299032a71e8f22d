"""The JSON Schemas that editors read: complete, sound, of one mind with the tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from jsonschema.validators import extend

from arenagen import resources
from arenagen.cli import cli
from arenagen.errors import InputProblems
from arenagen.source import decode, parse, plain
from arenagen.structure import check_structure

ROOT = Path(__file__).resolve().parents[2]
CORPUS = sorted((ROOT / "tests/errors").glob("*.yaml"))
TABLES = sorted((ROOT / "tests/errors/families").glob("*.yaml"))
REAL = sorted((ROOT / "schema").glob("*.yaml"))
KINDS = ("arena", "families")
# JSON Schema knows no integers but numbers without a fraction, and no blanks.
BEYOND_JSON_SCHEMA = {"blank_doc", "float_for_a_formula", "float_for_an_integer"}


def schema_of(kind: str) -> Any:
    return json.loads(resources.schema_text(kind == "families"))


def resolved(node: Any, whole: Any) -> Any:
    """The node, with what it refers to where it says nothing of its own."""
    if "$ref" in node:
        target = whole["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return {**resolved(target, whole), **node}
    return node


def properties(node: Any, whole: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every property that is described, by its path; `$defs` once each."""
    for name, each in node.get("properties", {}).items():
        yield f"{path}.{name}", resolved(each, whole)
        yield from properties(each, whole, f"{path}.{name}")
    for key in ("additionalProperties", "items"):
        if isinstance(node.get(key), dict):
            yield from properties(node[key], whole, f"{path}.{key}")


def described(kind: str) -> Iterator[tuple[str, Any]]:
    whole = schema_of(kind)
    # Which keys a whole schema has, and one that extends another lacks.
    apart = {"whole"}
    yield from properties(whole, whole, "")
    for name, each in whole["$defs"].items():
        if name not in apart:
            yield name, each
            yield from properties(each, whole, name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_property_says_what_it_is(kind: str) -> None:
    found = dict(described(kind))
    assert len(found) > 20
    assert {
        path for path, each in found.items() if not each.get("description")
    } == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_has_an_example_or_words(kind: str) -> None:
    bare = {
        path
        for path, each in described(kind)
        if not {"examples", "enum"} & each.keys()
        and each.get("type") not in ("object", "boolean")
    }
    assert bare <= {"key.indexes.word", "key.indexes.others"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_examples_are_what_they_are_examples_of(kind: str) -> None:
    whole = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(whole)
    for path, each in described(kind):
        validator = ecma({**each, "$defs": whole["$defs"]})
        for example in each.get("examples", []):
            assert list(validator.iter_errors(example)) == [], (path, example)


def ecma(schema: Any) -> Any:
    """A validator as editors have it, whose `$` is the end of a text and no line."""

    def pattern(_: Any, wanted: str, value: object, __: object) -> Iterator[Any]:
        if isinstance(value, str) and not re.search(wanted.replace("$", r"\Z"), value):
            yield jsonschema.ValidationError(wanted)

    base = jsonschema.Draft202012Validator
    kind: Any = extend(base, {"pattern": pattern})
    return kind(schema)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        *(
            ("arena", path)
            for path in (*CORPUS, *REAL)
            if "huggingface" not in path.name
        ),
        *(("families", path) for path in (*TABLES, ROOT / "schema/huggingface.yaml")),
    ],
    ids=lambda each: each if isinstance(each, str) else each.stem,
)
def test_editors_and_the_tool_agree_on_the_shape(kind: str, path: Path) -> None:
    try:
        root = parse(decode(path.read_bytes(), path.name), path.name)
    except InputProblems:
        # No editor gets as far as to a schema.
        return
    told = check_structure(root, kind == "families")
    schema = schema_of(kind)
    errors = [
        error
        for error in ecma(schema).iter_errors(plain(root))
        if "propertyNames" not in error.absolute_schema_path
    ]
    if path.stem in BEYOND_JSON_SCHEMA:
        assert told and not errors
    else:
        assert bool(told) == bool(errors), (told, errors)


def test_names_that_editors_refuse_are_refused() -> None:
    for path in CORPUS:
        text = path.read_text("utf-8", "replace")
        try:
            root = parse(decode(path.read_bytes(), path.name), path.name)
        except InputProblems:
            continue
        for error in ecma(schema_of("arena")).iter_errors(plain(root)):
            if "propertyNames" in error.absolute_schema_path:
                assert "error AR05" in text or "error AR02" in text, path.name


@pytest.mark.parametrize(
    ("option", "kind"), [((), "arena"), (("--families",), "families")]
)
def test_schema_prints_it(option: tuple[str, ...], kind: str) -> None:
    result = CliRunner().invoke(cli, ["schema", *option])
    assert result.exit_code == 0
    assert result.stdout == resources.schema_text(kind == "families")
