"""`accepts`: of one mind with jsonschema, which has the last word."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arenagen import resources, structure
from arenagen.accepts import accepts
from arenagen.errors import InputProblems
from arenagen.source import (
    Document,
    Mapping,
    Node,
    Scalar,
    Sequence,
    decode,
    parse,
    plain,
)
from arenagen.structure import check_structure

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    "arena": json.loads(resources.schema_text(families=False)),
    "families": json.loads(resources.schema_text(families=True)),
}
VALIDATORS = {kind: structure._validator(each) for kind, each in SCHEMAS.items()}
DOCUMENTS = {
    "arena": [
        *sorted((ROOT / "tests/errors").glob("*.yaml")),
        *sorted((ROOT / "schema").glob("*.yaml")),
    ],
    "families": [
        *sorted((ROOT / "tests/errors/families").glob("*.yaml")),
        ROOT / "schema/huggingface.yaml",
    ],
}
NAN = float("nan")
# Values that are told from each other with care, or by no one.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 2**70, 0.0, 1.0, -1.0, 2.5, NAN, float("inf")),
    *("", " ", "\n", "a", "a\n", "A", "Ab", "a_b", "a.b", "a..b", "1", "true", "é"),
    *("x.yaml", "/x.yaml", "x.yaml\n", "int", "bf16", "M", "x" * 500, "x" * 5000),
    *([], [1], [1, 1], [1, True], [1, 1.0], [0, False], ["a", "a"], ["a", "b"]),
    *([None, None], [[1], [True]], [[1], [1.0]], [[], {}], [NAN], [{"a": 1}] * 2),
    *([{"a": 1, "b": 2}, {"b": 2, "a": 1}], [{"a": 1}, {"a": True}], ["a", 1, "a"]),
    *({}, {"a": 1}, {"a": "x", "b": []}, {"remove": True}, {"extends": "x.yaml"}),
)
# Schemas of each keyword, and what the values that they are tried on begin with.
KEYWORDS: tuple[Any, ...] = (
    *({}, True, False),
    *({"type": kind} for kind in ("integer", "number", "string", "boolean", "null")),
    *({"type": kind} for kind in ("array", "object")),
    {"type": ["integer", "string"]},
    {"type": []},
    {"required": []},
    {"required": ["a"]},
    {"required": ["a", "b"]},
    {"properties": {"a": {"type": "integer"}}},
    {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"additionalProperties": False, "properties": {"b": True}},
    {"additionalProperties": {"type": "integer"}},
    {"properties": {"a": False}, "additionalProperties": {"type": "array"}},
    {"propertyNames": {"pattern": "^b$"}},
    *({"minProperties": count} for count in (0, 1, 2)),
    *({"minItems": count} for count in (0, 1, 2)),
    *({"maxItems": count} for count in (0, 1, 2)),
    *({"minLength": count} for count in (0, 1, 2)),
    *({"maxLength": count} for count in (0, 1, 2)),
    *({"minimum": least} for least in (0, 1, 1.5)),
    {"items": {"type": "integer"}},
    {"items": False},
    {"uniqueItems": True},
    {"uniqueItems": False},
    *({"pattern": each} for each in ("^a", "a$", "^[a-z]+$", "b")),
    *({"enum": each} for each in ([], [0, 1], [True], [None, "a"], [1.0], ["M", -1])),
    {"not": {"required": ["remove"]}},
    {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 1}},
    {"if": {"type": "string"}, "then": False},
    {"if": {"type": "string"}, "else": False},
    {"if": False},
    {"$ref": "#/$defs/named", "$defs": {"named": {"type": "string"}}, "maxLength": 1},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"items": {"$ref": "#/$defs/tree"}}}},
    {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {
                "type": ["array", "integer"],
                "items": {"$ref": "#/$defs/tree"},
                "maxItems": 1,
            }
        },
    },
    {"title": "a", "description": "b", "examples": [], "$schema": "c"},
)


def node(value: Any) -> Node:
    """Plain data as nodes."""
    at = (Document("", "a.yaml"), 0, 0)
    if isinstance(value, dict):
        keys = tuple(Scalar(key, *at) for key in value)
        return Mapping({key: node(inner) for key, inner in value.items()}, keys, *at)
    if isinstance(value, list):
        return Sequence(tuple(map(node, value)), *at)
    return Scalar(value, *at)


@pytest.mark.parametrize("schema", KEYWORDS, ids=str)
def test_every_keyword_means_what_it_means_to_jsonschema(schema: Any) -> None:
    whole = schema if isinstance(schema, dict) else {"items": schema}
    validator = structure._validator(whole)
    for value in ODD:
        assert accepts(whole, node(value)) is validator.is_valid(value), value


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "integer"}, 1, True),
        ({"type": "integer"}, 1.0, False),
        ({"type": "integer"}, True, False),
        ({"type": "number"}, True, False),
        ({"type": "number"}, 1, True),
        ({"minLength": 1}, "  ", False),
        ({"pattern": "b"}, "abc", False),
        ({"pattern": "^b$"}, "b\n", False),
        ({"propertyNames": False}, {"a": 1}, True),
        ({"uniqueItems": True}, [1, True], True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"enum": [0, 1]}, True, False),
        ({"minimum": 1}, "0", True),
    ],
)
def test_verdicts_that_are_ours(schema: Any, value: Any, fits: bool) -> None:
    assert accepts(schema, node(value)) is fits


@pytest.mark.parametrize(
    "schema",
    [
        {"maximum": 3},
        {"oneOf": []},
        {"format": "uri"},
        {"patternProperties": {}},
        {"then": False},
        {"const": 1},
        {"properties": {"a": {"items": {"multipleOf": 2}}}},
        {"not": {"anyOf": []}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"dependentRequired": {}}}},
    ],
    ids=str,
)
def test_a_keyword_that_is_not_known_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match="a JSON Schema with `"):
        accepts(schema, node({}))


def trees(kind: str) -> Iterator[tuple[str, Node]]:
    for path in DOCUMENTS[kind]:
        try:
            yield path.stem, parse(decode(path.read_bytes(), path.name), path.name)
        except InputProblems:
            # Nothing that has a shape.
            continue


@pytest.mark.parametrize("kind", SCHEMAS)
def test_both_are_of_one_mind_over_all_that_we_have(kind: str) -> None:
    verdicts = []
    for name, root in trees(kind):
        verdicts.append(accepts(SCHEMAS[kind], root))
        assert verdicts[-1] is VALIDATORS[kind].is_valid(plain(root)), name
    # What is wrong with the family tables there is beyond a JSON Schema.
    assert verdicts.count(True) > 3
    assert verdicts.count(False) > 3 or kind == "families"


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def mutated(rng: random.Random, document: Any) -> Any:
    """A document with some values, keys or entries changed, lost or added."""
    whole = copy.deepcopy([document])
    for _ in range(rng.choice((1, 1, 2, 4))):
        holder, key = rng.choice([*places(whole)])
        match rng.randrange(5):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(("extends", "remove", "doc", "a-b"))] = holder[key]
            case 1:
                holder.append(holder[key])
            case 2:
                holder[key] = copy.deepcopy(
                    rng.choice([h[k] for h, k in places(whole)])
                )
            case _:
                holder[key] = copy.deepcopy(rng.choice(ODD))
        if not whole:
            return None
    return whole[0]


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize(
    ("count", "seed"),
    [(300, 1), pytest.param(3000, 2, marks=pytest.mark.slow)],
)
def test_both_are_of_one_mind_over_mutations(kind: str, count: int, seed: int) -> None:
    rng = random.Random(seed)
    # The real ones are long, and every mutation costs jsonschema all of it.
    pool = [plain(root) for _, root in trees(kind)]
    pool = [each for each in pool if len(str(each)) < 2000]
    verdicts = []
    for _ in range(count):
        document = mutated(rng, rng.choice(pool))
        verdicts.append(accepts(SCHEMAS[kind], node(document)))
        assert verdicts[-1] is VALIDATORS[kind].is_valid(document), document
    assert verdicts.count(True) > count // 20
    assert verdicts.count(False) > count // 20


def test_jsonschema_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "schema/metrale.yaml"
    root = parse(path.read_text("utf-8"), path.name)
    monkeypatch.setattr(structure, "accepts", lambda schema, root: False)
    assert check_structure(root) == []
    assert [each.code for each in check_structure(node({}))] != []


def test_jsonschema_is_loaded_for_what_does_not_fit_alone() -> None:
    script = (
        "import sys\n"
        "from arenagen.source import parse\n"
        "from arenagen.structure import check_structure\n"
        "def loaded(text):\n"
        "    check_structure(parse(text, 'a.yaml'))\n"
        "    return 'jsonschema' in sys.modules\n"
        f"text = open({str(ROOT / 'schema/atlas.yaml')!r}).read()\n"
        "print(loaded(text), loaded('arena: 1'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False True\n"
