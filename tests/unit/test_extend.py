"""A schema laid over another: what merges, what replaces, and what is dropped.

Each case extends one small base and is compared with the model of the schema that one
would write by hand for the same arena.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenagen import structure
from arenagen.compile import Text, check_source, emit, read_schema
from arenagen.errors import ArenagenError, InputProblems
from arenagen.extend import extend
from arenagen.load import load, shaped
from arenagen.model import Schema
from arenagen.source import Mapping, Scalar, parse, plain

ROOT = Path(__file__).resolve().parents[2]

BASE = """
arena:
  class: Arena
  package: base_arena
  label: arena
  doc: An arena.
  log: {buffers: [states], fields: [width]}
target:
  sm_count: {default: 48, doc: Multiprocessors.}
limits:
  tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
config:
  width: {doc: A width., aliases: [hidden, size]}
  rank: {doc: A rank.}
levers:
  splits:
    variable: SPLITS
    type: int
    words: {auto: 0, "off": 1}
    clamp: [1, 16]
    doc: Splits.
constants:
  TILE: {value: 16, doc: Rows of a tile.}
let:
  padded: {value: "align(M, TILE)", doc: Padded rows.}
functions:
  table_bytes:
    parameters: {rows: {doc: Rows.}, wide: {type: bool, doc: Wide.}}
    value: rows * (8 if wide else 4)
    doc: Bytes of a table.
layouts:
  meta:
    doc: Metadata.
    parameters: {rows: {doc: Rows.}}
    let: {twice: 2 * rows}
    regions:
      ids: {dtype: u32, shape: [rows], doc: Identities.}
      slots: {dtype: i64, shape: [twice], align: 8, doc: Slots.}
    accessor: {doc: The largest., arguments: {rows: 4}}
groups:
  all: {method: zero_all, rows_method: zero_rows, doc: Clear all.}
buffers:
  states:
    {doc: States., dtype: bf16, shape: [padded, width], token_major: true, zero: [all]}
  mixer:
    doc: Mixer.
    dtype: bf16
    min_bytes: 256
    uses:
      wide: {shape: [M, width], doc: Wide.}
      low: {when: rank > 0, shape: [M, rank], doc: Low.}
  block: {doc: Block., layout: meta, arguments: {rows: splits + sm_count}}
  table: {doc: Table., bytes: "table_bytes(4, True)"}
trims:
  small: {doc: Small models., when: width < 4, buffers: [table]}
"""
HEAD = "arena: {extends: base.yaml, package: over_arena}\n"


def opener(**files: str) -> Any:
    def open_base(name: str, path: str) -> Text:
        stem = path.removesuffix(".yaml")
        if stem not in files:
            raise ArenagenError(f"{path}: no such file")
        return Text(path, files[stem].encode())

    return open_base


def merged(over: str, **files: str) -> Schema:
    """The model of a schema that extends BASE."""
    text = Text("over.yaml", (HEAD + over).encode())
    schema, _ = read_schema(text, opener(base=BASE, **files))
    return schema


def said(value: Any) -> Any:
    """What a model says, wherever it says it."""
    if isinstance(value, Scalar):
        return None
    if hasattr(value, "__compared__"):
        return {
            name: said(getattr(value, name))
            for name in value.__match_args__
            if name != "places"
        }
    if isinstance(value, tuple):
        return [said(each) for each in value]
    return None if isinstance(value, dict) else value


def by_hand(*changes: tuple[str, str]) -> Any:
    """What BASE says once its text is changed."""
    text = BASE
    for before, after in (("base_arena", "over_arena"), *changes):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return said(load(text, "hand.yaml"))


CASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "nothing": ("", []),
    "a value": ("constants: {TILE: {value: 1}}", [("value: 16", "value: 1")]),
    "a new key of an entry": (
        "limits: {tokens: {maximum: 64}}",
        [("minimum: 1,", "minimum: 1, maximum: 64,")],
    ),
    "a formula": (
        "let: {padded: {value: M}}",
        [('"align(M, TILE)"', "M")],
    ),
    "a list is replaced whole": (
        "config: {width: {aliases: [dim]}}",
        [("[hidden, size]", "[dim]")],
    ),
    "words merge": (
        "levers: {splits: {words: {auto: 2, none: 1}}}",
        [('{auto: 0, "off": 1}', '{auto: 2, "off": 1, none: 1}')],
    ),
    "a target constant": (
        "target: {sm_count: {default: 132}}",
        [("default: 48", "default: 132")],
    ),
    "parameters merge": (
        "functions: {table_bytes: {parameters: {wide: {doc: Wider.}}}}",
        [("doc: Wide.}}\n    value", "doc: Wider.}}\n    value")],
    ),
    "regions, lets and the accessor of a layout merge": (
        "layouts: {meta: {let: {twice: 3 * rows}, regions: {ids: {dtype: i32}, "
        "more: {bytes: 4, doc: More.}}, accessor: {arguments: {rows: 8}}}}",
        [
            ("{twice: 2 * rows}", "{twice: 3 * rows}"),
            ("dtype: u32", "dtype: i32"),
            ("doc: Slots.}", "doc: Slots.}\n      more: {bytes: 4, doc: More.}"),
            ("{rows: 4}", "{rows: 8}"),
        ],
    ),
    "a group": (
        "groups: {all: {method: clear_all}}",
        [("method: zero_all", "method: clear_all")],
    ),
    "uses merge": (
        "buffers: {mixer: {uses: {low: {shape: [M, 2 * rank]}, "
        "more: {shape: [M, 3], doc: More.}}}}",
        [
            ("[M, rank]", "[M, 2 * rank]"),
            ("doc: Low.}", "doc: Low.}\n      more: {shape: [M, 3], doc: More.}"),
        ],
    ),
    "an extent of the same kind": (
        "buffers: {states: {shape: [M, width]}}",
        [("[padded, width]", "[M, width]"), ("align(M, TILE)", "align(M, TILE)")],
    ),
    "an extent of another kind": (
        "buffers: {mixer: {bytes: 2 * M * width}, table: {dtype: u8, shape: [7]}}",
        [
            (
                "uses:\n      wide: {shape: [M, width], doc: Wide.}\n"
                "      low: {when: rank > 0, shape: [M, rank], doc: Low.}",
                "bytes: 2 * M * width",
            ),
            ('bytes: "table_bytes(4, True)"', "dtype: u8, shape: [7]"),
        ],
    ),
    "a layout gives way with its arguments": (
        "buffers: {block: {bytes: splits * sm_count}}",
        [
            (
                "layout: meta, arguments: {rows: splits + sm_count}",
                "bytes: splits * sm_count",
            )
        ],
    ),
    "another layout drops the arguments": (
        "layouts: {flat: {doc: Flat., parameters: {n: {doc: N.}}, "
        "regions: {whole: {bytes: n, doc: All.}}}}\n"
        "buffers: {block: {layout: flat, arguments: {n: splits}}}",
        [
            (
                "layout: meta, arguments: {rows: splits + sm_count}",
                "layout: flat, arguments: {n: splits}",
            ),
            (
                "groups:\n",
                "  flat: {doc: Flat., parameters: {n: {doc: N.}}, "
                "regions: {whole: {bytes: n, doc: All.}}}\ngroups:\n",
            ),
        ],
    ),
    "arguments of the same layout": (
        "buffers: {block: {arguments: {rows: splits}}}",
        [("{rows: splits + sm_count}", "{rows: splits}")],
    ),
    "a trim": (
        "trims: {small: {buffers: [table, mixer]}}",
        [("buffers: [table]", "buffers: [table, mixer]")],
    ),
    "entries are appended in order": (
        "buffers: {b: {doc: B., bytes: 2}, a: {doc: A., bytes: 1}}",
        [("trims:", "  b: {doc: B., bytes: 2}\n  a: {doc: A., bytes: 1}\ntrims:")],
    ),
    "a new section": (
        "remove: [trims]\n"
        "trims: {other: {doc: Other., when: width < 2, buffers: [table]}}",
        [
            (
                "small: {doc: Small models., when: width < 4",
                "other: {doc: Other., when: width < 2",
            )
        ],
    ),
    "an entry, a use and a key are removed": (
        "remove: [buffers.table, trims, buffers.mixer.uses.low, "
        "buffers.mixer.min_bytes]",
        [
            ('  table: {doc: Table., bytes: "table_bytes(4, True)"}\n', ""),
            (
                "trims:\n  small: {doc: Small models., when: width < 4, "
                "buffers: [table]}\n",
                "",
            ),
            ("      low: {when: rank > 0, shape: [M, rank], doc: Low.}\n", ""),
            ("    min_bytes: 256\n", ""),
        ],
    ),
    "what is removed and given anew stands behind the others": (
        "remove: [buffers.mixer]\nbuffers: {mixer: {doc: New., bytes: M}}",
        [
            (
                "  mixer:\n    doc: Mixer.\n    dtype: bf16\n    min_bytes: 256\n"
                "    uses:\n      wide: {shape: [M, width], doc: Wide.}\n"
                "      low: {when: rank > 0, shape: [M, rank], doc: Low.}\n",
                "",
            ),
            ("trims:", "  mixer: {doc: New., bytes: M}\ntrims:"),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_that_of_the_schema_written_by_hand(name: str) -> None:
    over, changes = CASES[name]
    assert said(merged(over)) == by_hand(*changes)


def test_the_arena_is_inherited_but_for_its_package() -> None:
    text = HEAD.replace("}", ", label: other, log: {fields: [rank]}}")
    schema, _ = read_schema(Text("over.yaml", text.encode()), opener(base=BASE))
    assert (
        said(schema.arena)
        == by_hand(
            ("label: arena", "label: other"), ("fields: [width]", "fields: [rank]")
        )["arena"]
    )


def test_a_chain_is_laid_from_its_end() -> None:
    middle = (
        "arena: {extends: base.yaml, package: middle_arena, label: middle}\n"
        "constants: {TILE: {value: 8}, MORE: {value: 1, doc: More.}}\n"
        "remove: [trims]\n"
    )
    text = (
        "arena: {extends: middle.yaml, package: over_arena}\n"
        "constants: {TILE: {value: 4}}\n"
        "remove: [buffers.table]\n"
    )
    schema, _ = read_schema(
        Text("over.yaml", text.encode()), opener(base=BASE, middle=middle)
    )
    assert [(each.name, each.value) for each in schema.constants] == [
        ("TILE", 4),
        ("MORE", 1),
    ]
    assert schema.arena.label == "middle"
    assert [each.name for each in schema.buffers] == ["states", "mixer", "block"]
    assert schema.trims == ()


def test_a_chain_may_hold_eight_bases() -> None:
    files = {
        f"b{n}": f"arena: {{extends: b{n + 1}.yaml, package: arena_{n}}}\n"
        for n in range(7)
    }
    text = Text("over.yaml", b"arena: {extends: b0.yaml, package: over_arena}\n")
    schema, _ = read_schema(text, opener(**files, b7=BASE))
    assert schema.arena.package == "over_arena"
    files["b7"] = "arena: {extends: b8.yaml, package: arena_7}\n"
    with pytest.raises(InputProblems, match="AR089"):
        read_schema(text, opener(**files, b8=BASE))


def test_a_package_may_not_be_that_of_a_base_of_the_base() -> None:
    middle = "arena: {extends: base.yaml, package: middle_arena}\n"
    text = "arena: {extends: middle.yaml, package: base_arena}\n"
    with pytest.raises(InputProblems) as caught:
        read_schema(Text("over.yaml", text.encode()), opener(base=BASE, middle=middle))
    (problem,) = caught.value.problems
    assert (problem.code, str(problem.span)) == ("AR104", "over.yaml:1:40")
    assert [(label, at.file) for label, at in problem.related] == [
        ("base", "base.yaml")
    ]


def test_every_line_of_an_overridden_entry_tells_so() -> None:
    formula = ">-\n      table_bytes(4, True)\n      + nothing"
    base = BASE.replace('"table_bytes(4, True)"}', "}").replace(
        "  table: {doc: Table., bytes: }",
        f"  table:\n    doc: Table.\n    bytes: {formula}",
    )
    text = HEAD + "buffers: {table: {doc: Another.}}\n"
    with pytest.raises(InputProblems) as caught:
        read_schema(Text("over.yaml", text.encode()), opener(base=base))
    (problem,) = caught.value.problems
    assert problem.message == "nothing is named `nothing`"
    assert problem.span.source == "      + nothing"
    ((label, at),) = problem.related
    assert (label, str(at)) == ("overridden", "over.yaml:2:11")


def test_a_text_that_stands_alone_opens_nothing() -> None:
    with pytest.raises(InputProblems, match="yaml stands alone") as caught:
        read_schema(Text("over.yaml", HEAD.encode()))
    assert [each.code for each in caught.value.problems] == ["AR087"]


def test_every_span_knows_its_own_file() -> None:
    schema = merged("buffers: {mixer: {uses: {low: {shape: [M, 7]}}}}")
    files = {each.name: each.span.file for each in schema.buffers}
    assert files == {
        "states": "base.yaml",
        "mixer": "over.yaml",
        "block": "base.yaml",
        "table": "base.yaml",
    }


def test_true_and_1_are_two_values() -> None:
    text = HEAD + "constants: {ON: {value: true}}\n"
    base = BASE.replace("\nlet:", "\n  ON: {value: 1, doc: One.}\nlet:")
    schema, warnings = read_schema(Text("over.yaml", text.encode()), opener(base=base))
    assert schema.constants[-1].value is True
    assert [each for each in warnings if each.code == "AR103"] == []


def test_the_header_names_the_extending_file() -> None:
    schema = merged("")
    files = emit(check_source(schema, (), None), "over.yaml")
    first = "# Generated by arenagen from over.yaml. Do not edit."
    assert {text.split("\n")[0] for text in files.values()} == {first}


def test_bases_stay_as_they_are() -> None:
    chain = [
        shaped(parse(HEAD + "remove: [trims]\nconstants: {TILE: {value: 1}}\n", "o")),
        shaped(parse(BASE, "base.yaml")),
    ]
    before = plain(chain[1])
    assert plain(extend(chain).root) != before
    assert plain(chain[1]) == before


def paths(node: Any, *above: str) -> Iterator[tuple[str, ...]]:
    """Every path of mappings of a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*above, key)
            yield from paths(value, *above, key)


PATHS = [*paths(plain(parse(BASE, "base.yaml")))]
# The package of a base is left out anyhow.
REMOVABLE = [each for each in PATHS if each not in (("arena",), ("arena", "package"))]


def outcome(text: str, open_base: Any = None) -> set[tuple[str, str]]:
    """Codes and messages of a schema's errors."""
    given = () if open_base is None else (open_base,)
    try:
        read_schema(Text("over.yaml", text.encode()), *given)
    except InputProblems as error:
        assert all(each.span.source for each in error.problems)
        return {
            (each.code, each.message)
            for each in error.problems
            if each.severity == "error"
        }
    return set()


@pytest.mark.parametrize("path", REMOVABLE, ids=".".join)
def test_anything_may_be_removed_and_what_then_is_wrong_is_told(
    path: tuple[str, ...],
) -> None:
    whole = plain(parse(BASE.replace("base_arena", "over_arena"), "whole.yaml"))
    inner = whole
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    over = HEAD + f"remove: [{'.'.join(path)}]\n"
    assert outcome(over, opener(base=BASE)) == outcome(json.dumps(whole))


ODD = ["~", "5", "-1", "true", "word", "''", "[]", "{}", "[1, a]", "{a: 1}", "{a: {}}"]


@given(st.sampled_from(PATHS), st.sampled_from(ODD))
def test_anything_may_be_overridden_and_what_then_is_wrong_is_told(
    path: tuple[str, ...], odd: str
) -> None:
    over = {"arena": {"extends": "base.yaml", "package": "over_arena"}}
    inner: Any = over
    for step in path[:-1]:
        inner = inner.setdefault(step, {})
    inner[path[-1]] = "ODD"
    outcome(json.dumps(over).replace('"ODD"', odd), opener(base=BASE))


# The JSON Schema of editors.


def test_the_json_schema_takes_extending_files_alone() -> None:
    for over, _ in CASES.values():
        node = parse(HEAD + over, "over.yaml")
        assert isinstance(node, Mapping)
        assert structure.check_structure(node) == []
    alone = "arena: {package: over_arena}\nbuffers: {a: {bytes: 1}}\n"
    codes = [each.code for each in structure.check_structure(parse(alone, "a.yaml"))]
    assert codes == ["AR021"] * 5  # limits, and class, label, doc; doc of the buffer


def required(schema: Any) -> Any:
    """Where a JSON Schema asks for keys, by path."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "required":
                yield value
            yield from required(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from required(value)


def test_keys_are_required_in_one_place_alone() -> None:
    path = ROOT / "schema/arena.schema.json"
    language = json.loads(path.read_text(encoding="utf-8"))
    for name, part in language["$defs"].items():
        if name != "whole":
            assert list(required(part)) == [], name


def test_every_pattern_is_said_in_words() -> None:
    text = (ROOT / "schema/arena.schema.json").read_text(encoding="utf-8")
    found = {json.loads(f'"{each}"') for each in re.findall(r'"pattern": "(.*)"', text)}
    assert any("ya?ml" in each for each in found)
    assert found - structure._PATTERNS.keys() == {"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"}
