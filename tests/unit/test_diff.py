"""`arenagen diff`: what it finds, that it finds all, and in what words."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from arenagen.aspects import aspects, sections
from arenagen.cli import cli
from arenagen.commands.schemas import load_checked
from arenagen.compile import Text, read_schema
from arenagen.diff import Change, SchemaDiff, diff
from arenagen.formula import parse
from arenagen.model import (
    DTYPES,
    Bytes,
    Dtype,
    Formula,
    LayoutCall,
    Parameter,
    Region,
    Regions,
    Schema,
    Shape,
    Use,
    Uses,
)
from arenagen.reads import readers
from arenagen.record import replace
from arenagen.sizing import complete_inputs, size_arena
from arenagen.source import Scalar
from expected_configs import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
METRALE = load_checked(ROOT / "schema/metrale.yaml").schema
ATLAS = load_checked(ROOT / "schema/atlas.yaml").schema
EMPTY: dict[str, Any] = {"int": 0, "bool": False, "str": "", "list": ()}

SMALL = """\
arena:
  {class: Arena, package: small, label: arena, doc: An arena., families: table.yaml}
limits:
  max_tokens: {symbol: M, tokens: true, minimum: 1, default: 8, doc: Tokens.}
config:
  width: {doc: Width of a row.}
constants:
  TILE: {value: 16, doc: Rows of a tile.}
let:
  padded: {value: "align(M, TILE)", doc: Padded rows.}
groups:
  all: {method: zero_all, doc: All.}
buffers:
  rows: {doc: Rows., dtype: u8, shape: [padded, width], zero: [all]}
  table: {doc: A table., bytes: width * 2}
  last: {doc: The last., bytes: "M + padded"}
"""
TABLE = "families: {plain: {doc: Plain., model_types: [plain]}}\n"


def schema_of(text: str) -> Schema:
    return read_schema(Text("small.yaml", text.encode()))[0]


OLD = schema_of(SMALL)


def changed(old: str, new: str, text: str = SMALL) -> tuple[Change, ...]:
    assert old in text
    return diff(OLD, schema_of(text.replace(old, new))).changes


# Nothing differs, everything differs, and the other way round.


@pytest.mark.parametrize("name", ["metrale", "atlas", "small", "full"])
def test_a_schema_does_not_differ_from_itself(name: str) -> None:
    table = {"metrale": METRALE, "atlas": ATLAS, "small": OLD}
    schema = table[name] if name in table else schema_of(FULL)
    found = diff(schema, schema)
    assert found == SchemaDiff((), ())
    assert not found.differs


def test_how_a_formula_is_written_is_no_difference() -> None:
    assert changed('"align(M, TILE)"', '"align( (M) ,TILE )"') == ()


def turned(change: Change) -> Change:
    kinds = {"added": "removed", "removed": "added", "changed": "changed"}
    return Change(
        change.section,
        change.name,
        kinds[change.kind],  # type: ignore[arg-type]
        tuple(replace(each, old=each.new, new=each.old) for each in change.aspects),
        change.renamed,
        change.readers,
    )


def as_sets(changes: tuple[Change, ...]) -> set[object]:
    return {
        (
            each.section,
            each.name,
            each.kind,
            frozenset(each.aspects),
            each.renamed,
            frozenset(each.readers),
        )
        for each in changes
    }


VARIANTS = [
    SMALL,
    SMALL.replace("rows:", "lines:"),
    SMALL.replace("TILE: {value: 16", "TILE: {value: 32"),
    SMALL.replace("  table: {doc: A table., bytes: width * 2}\n", "").replace(
        "buffers:\n", "buffers:\n  table: {doc: A table., bytes: width * 2}\n"
    ),
    SMALL.replace("zero: [all]", "token_major: true"),
    SMALL.replace("groups:\n  all: {method: zero_all, doc: All.}\n", "").replace(
        ", zero: [all]", ""
    ),
]


@pytest.mark.parametrize(
    "old, new",
    [*permutations(map(schema_of, VARIANTS), 2), (METRALE, ATLAS), (OLD, METRALE)],
)
def test_the_other_way_round_is_the_opposite(old: Schema, new: Schema) -> None:
    forth, back = diff(old, new).changes, diff(new, old).changes
    assert as_sets(tuple(map(turned, forth))) == as_sets(back)
    assert forth


# No field of the model is left out.


def other(value: Any) -> Iterator[Any]:
    """Values of the same kind that differ, one for each part of a value."""
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
        case str():
            yield value + "x"
        case None:
            return
        case Formula():
            scalar = value.scalar
            text = "M + 12345"
            again = Scalar(text, scalar.document, scalar.start, scalar.length)
            yield Formula(parse(text), again)
        case Scalar():
            return
        case Dtype():
            yield DTYPES["f64"]
        case tuple():
            # All of one type make a list, of which one can go; others are a record.
            if len({type(each) for each in value}) == 1:
                yield value[1:]
            for place, part in enumerate(value):
                for each in other(part):
                    yield (*value[:place], each, *value[place + 1 :])
        case Shape(dtype, dims):
            yield Shape(DTYPES["f64" if dtype.name != "f64" else "u8"], dims)
            yield Shape(dtype, dims[1:])
        case LayoutCall():
            yield replace(value, layout=value.layout + "x")
            yield from (
                replace(value, arguments=each) for each in other(value.arguments)
            )
        case Bytes(formula):
            yield from map(Bytes, other(formula))
        case _ if hasattr(value, "__compared__"):
            yield from variants(value)


def compared(kind: type[Any]) -> set[tuple[str, str]]:
    """The fields of a record that tell it from another."""
    return {(kind.__name__, name) for name in kind.__compared__ if name != "name"}


def variants(entry: Any) -> Iterator[Any]:
    """The entry with one field after the other made different."""
    shape = isinstance(getattr(entry, "extent", None), Shape)
    for name in type(entry).__compared__:
        # The dtype of a buffer with a shape is that of the shape.
        if name == "name" or (name == "dtype" and shape):
            continue
        for value in other(getattr(entry, name)):
            yield replace(entry, **{name: value})


# Regions and uses of every kind, a lever of every kind, and whatever is optional.
FULL = """\
arena:
  class: Arena
  package: full
  label: arena
  doc: An arena.
  families: table.yaml
  log: {buffers: [rows, parts], fields: [width]}
target:
  units: {default: 4, minimum: 2, doc: Units.}
limits:
  max_tokens:
    {symbol: M, tokens: true, minimum: 1, maximum: 9, default: 8, doc: Tokens.}
config:
  width: {doc: Width., default: 3, aliases: [w, v], shard: heads}
  kind: {type: str, doc: Kind.}
levers:
  one: {variable: ONE, type: bool, on_when: ["1"], arms: checksum, doc: One.}
  two: {variable: TWO, type: bool, off_when: ["0"], doc: Two.}
  three:
    variable: THREE
    type: int
    words: {auto: AUTO, no: 1}
    clamp: [1, 4]
    default: AUTO
    doc: Three.
constants:
  AUTO: {value: 0, doc: A policy.}
  KINDS: {value: [a, b], doc: Kinds.}
let:
  padded: {value: "align(M, 16)", doc: Padded.}
functions:
  twice:
    parameters: {n: {doc: A count.}, flag: {type: bool, doc: A flag.}}
    value: 2 * n
    doc: The double.
layouts:
  block:
    doc: A block.
    parameters: {size: {doc: Rows.}}
    let: {half: size // 2}
    align: 8
    regions:
      head: {dtype: u32, shape: [size, half], doc: Heads.}
    accessor: {doc: The block., arguments: {size: units}}
groups:
  all: {method: zero_all, rows_method: zero_all_rows, doc: All.}
buffers:
  rows:
    doc: Rows.
    dtype: bf16
    shape: [M, width]
    when: width > 1
    otherwise: 16
    min_bytes: 8
    token_major: true
    zero: [all]
    checksum: true
    init: ones
    align: 512
  parts:
    doc: Parts.
    zero: [{all: [a, c.head]}]
    regions:
      a: {bytes: "twice(width, one)", doc: A.}
      b: {dtype: u8, shape: [three], at: 4096, when: two, doc: B.}
      c: {layout: block, arguments: {size: M}, align: 16, doc: C.}
  uses:
    doc: Uses.
    uses:
      x: {when: kind in KINDS, bytes: padded, doc: X.}
      y: {doc: Y., regions: {p: {bytes: width, doc: P.}}}
  slab: {doc: A slab., bytes: 4096, carve: true}
trims:
  none: {doc: None of them., when: kind == 'none', buffers: [parts, rows]}
"""


def test_no_field_of_any_entry_is_left_out() -> None:
    schema = schema_of(FULL)
    kinds = set()
    for section, entries in sections(schema).items():
        for entry in entries.values():
            kinds.add(type(entry))
            for variant in variants(entry):
                assert variant != entry
                assert aspects(variant) != aspects(entry), (section, variant)
    assert {kind.__name__ for kind in kinds} == {
        "ArenaInfo",
        "TargetConstant",
        "Limit",
        "Field",
        "Lever",
        "Constant",
        "Let",
        "Function",
        "Layout",
        "Group",
        "Buffer",
        "Trim",
    }
    # All that a record may hold is held by one of them, so that it was varied.
    held = {
        (type(each).__name__, name)
        for each in pieces(schema)
        for name in each.__compared__
        if getattr(each, name) not in (None, ())
    }
    kinds |= {Region, Regions, Use, Uses, Shape, Bytes, LayoutCall, Parameter}
    for kind in kinds:
        assert compared(kind) <= held, kind


def pieces(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from pieces(each)
    elif hasattr(value, "__compared__"):
        yield value
        for name in value.__compared__:
            yield from pieces(getattr(value, name))


# What is found.


def only(changes: tuple[Change, ...]) -> Change:
    (change,) = changes
    return change


def told(change: Change) -> list[tuple[str, str | None, str | None]]:
    return [(each.name, each.old, each.new) for each in change.aspects]


def test_a_let_that_changed_names_its_readers() -> None:
    change = only(changed('"align(M, TILE)"', "M + TILE"))
    assert (change.section, change.name, change.kind) == ("let", "padded", "changed")
    assert told(change) == [("formula", "align(M, TILE)", "M + TILE")]
    assert change.readers == ("rows", "last")


def test_a_doc_that_changed_moves_no_reader() -> None:
    change = only(changed("Padded rows.", "Rows of whole tiles."))
    assert told(change) == [("doc", "Padded rows.", "Rows of whole tiles.")]
    assert change.readers == ()


def test_what_no_formula_reads_of_an_entry_names_no_readers() -> None:
    limit = only(changed("default: 8,", "default: 9,"))
    assert told(limit) == [("default", "8", "9")]
    assert limit.readers == ()
    whole = schema_of(FULL)
    for section in ("target", "limits", "levers", "constants"):
        for name, entry in sections(whole)[section].items():
            for variant in variants(entry):
                entries = getattr(whole, section)
                new = replace(
                    whole,
                    **{
                        section: tuple(
                            variant if each.name == name else each for each in entries
                        )
                    },
                )
                change = only(diff(whole, new).changes)
                valued = {each.name for each in change.aspects} & {"default", "value"}
                still = {each.name for each in change.aspects} <= {
                    *("doc", "minimum", "variable", "arms", "public"),
                }
                if section == "limits" or still:
                    assert change.readers == ()
                elif valued:
                    assert change.readers == readers(whole).get(name, ())


def test_what_a_buffer_can_have() -> None:
    change = only(
        changed(
            "{doc: Rows., dtype: u8, shape: [padded, width], zero: [all]}",
            "{doc: Rows., dtype: f32, shape: [padded], when: width > 1, otherwise: 4}",
        )[:1]
    )
    assert told(change) == [
        ("dtype", "u8", "f32"),
        ("formula", "[padded, width]", "[padded]"),
        ("groups", "all", None),
        ("gate", None, "width > 1"),
        ("otherwise", None, "4"),
    ]


def test_one_entry_that_moved() -> None:
    table = "  table: {doc: A table., bytes: width * 2}\n"
    text = SMALL.replace(table, "").replace("buffers:\n", f"buffers:\n{table}")
    change = only(diff(OLD, schema_of(text)).changes)
    assert (change.name, told(change)) == (
        "table",
        [("order", "behind rows", "first")],
    )


def test_an_entry_that_comes_in_between_moves_nothing() -> None:
    text = SMALL.replace("  table:", "  new: {doc: New., bytes: 1}\n  table:")
    change = only(diff(OLD, schema_of(text)).changes)
    assert (change.name, change.kind) == ("new", "added")


@given(st.permutations("abcdef"), st.permutations("abcdef"))
def test_as_few_as_possible_moved(first: list[str], second: list[str]) -> None:
    def arena(names: list[str]) -> Schema:
        table = {
            each: f"  {each}: {{doc: Of {each}., bytes: width}}\n" for each in names
        }
        return schema_of(
            SMALL.split("let:")[0] + "buffers:\n" + "".join(table.values())
        )

    one, two = arena(first), arena(second)
    found = {each.name for each in diff(one, two).changes}
    assert found == {each.name for each in diff(two, one).changes}
    assert bool(found) == (first != second)
    # No more than are left of the longest run that is in the order of both.
    longest = max(
        count
        for count in range(1, 7)
        for run in combinations(first, count)
        if [*run] == sorted(run, key=second.index)
    )
    assert len(found) <= 6 - longest


def test_a_renamed_entry_is_told_as_such() -> None:
    found = changed("  table:", "  lookup:")
    assert [(each.name, each.kind, each.renamed) for each in found] == [
        ("table", "removed", "lookup"),
        ("lookup", "added", "table"),
    ]
    # Another gate is no other formula, and another doc is another buffer.
    table = "  table: {doc: A table., bytes: width * 2}"
    found = changed(
        table, "  lookup: {doc: A table., bytes: width * 2, when: width > 1}"
    )
    assert {each.renamed for each in found} == {"table", "lookup"}
    found = changed(table, "  lookup: {doc: Another., bytes: width * 2}")
    assert {each.renamed for each in found} == {""}


def test_twins_are_renamed_in_pairs() -> None:
    twins = SMALL + "  twin: {doc: A table., bytes: width * 2}\n"
    new = twins.replace("  table:", "  first:").replace("  twin:", "  second:")
    found = diff(schema_of(twins), schema_of(new)).changes
    assert {each.name: each.renamed for each in found} == {
        "table": "first",
        "twin": "second",
        "first": "table",
        "second": "twin",
    }


# Bytes.


def metrale_and_atlas(model: str, **limits: int) -> SchemaDiff:
    sizes = []
    for schema in (METRALE, ATLAS):
        given: Mapping[str, Any] = EXPECTED[model]
        config = {each.name: EMPTY[each.type] for each in schema.config} | {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in given.items()
        }
        sizes.append(
            size_arena(schema, complete_inputs(schema, config, limits, {}, {}))
        )
    return diff(METRALE, ATLAS, [(model, *sizes)])


def test_from_metrale_to_atlas_by_hand() -> None:
    found = metrale_and_atlas("Qwen3-Next-80B-A3B-Thinking", max_batch_tokens=1)
    (config,) = found.configs
    deltas = {each.name: each for each in config.buffers}
    # One row instead of 16, of (16 * 2 + 2 * 2) * 256 in BF16.
    assert deltas["qkv_output"].old == 16 * 9216 * 2
    assert deltas["qkv_output"].new == 9216 * 2
    assert deltas["qkv_output"].nbytes == -15 * 9216 * 2
    # GDN's 12288 in one row; its F32 convolution was never padded.
    assert deltas["ssm_qkvz"].nbytes == -15 * 12288 * 2
    assert deltas["ssm_conv_out_f32"].nbytes == 0
    # Experts have 3 rows at least, and had 16; 10 experts a token.
    assert deltas["expert_down_out"].nbytes == -13 * 10 * 2048 * 2
    # No block of 96 rows and 4097 blocks behind 2048 bytes, but 160 of 24 bytes more.
    assert deltas["scratch"].old == 32768 + 160 * (24 + 4 * 4097)
    assert deltas["scratch"].new == 32768 + 2048 + 96 * 4 * 4097
    # One buffer that Atlas does not have.
    assert (deltas["moe_fp8_scratch"].new, deltas["moe_fp8_scratch"].nbytes < 0) == (
        None,
        True,
    )
    removed = {
        each.name
        for each in found.changes
        if (each.section, each.kind) == ("buffers", "removed")
    }
    assert removed == {
        "ffn_act_scale_kmajor",
        "ffn_gate_up_fused",
        "fp8_act_scale_kmajor",
        "moe_fp8_scratch",
        "ssm_rowwise_w_bf16",
    }
    total = sum(each.nbytes for each in config.buffers)
    assert total == config.new.total_bytes - config.old.total_bytes


def test_a_constant_names_the_readers_whose_bytes_it_moved() -> None:
    found = metrale_and_atlas("Qwen3-32B", max_batch_tokens=8192)
    tile = next(each for each in found.changes if each.name == "FP8_ROW_TILE")
    assert told(tile) == [("value", "16", "1")]
    assert {"qkv_output", "ffn_act_a", "expert_gate_out"} <= set(tile.readers)
    # 8192 rows are a multiple of 16: only what was removed, or changed otherwise.
    assert "qkv_output" not in found.moves(tile)
    assert set(found.moves(tile)) <= set(tile.readers)
    padded = metrale_and_atlas("Qwen3-32B", max_batch_tokens=8193)
    assert "qkv_output" in padded.moves(tile)


# The command.


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two schemas, their family table and a config."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.yaml").write_text(SMALL)
    (tmp_path / "new.yaml").write_text(
        SMALL.replace("TILE: {value: 16", "TILE: {value: 4")
        .replace("  table:", "  lookup:")
        .replace("An arena.", "A | `better` arena.")
    )
    (tmp_path / "table.yaml").write_text(TABLE)
    (tmp_path / "config.json").write_text('{"model_type": "plain", "width": 5}')
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["diff", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_text_of_a_diff(here: Path) -> None:
    assert run("old.yaml", "new.yaml", "-c", "config.json").stdout == """\
old.yaml -> new.yaml: 1 added, 1 removed, 2 changed

arena
  ~ arena
      doc: An arena. -> A | `better` arena.

constants
  ~ TILE
      value: 16 -> 4
      read by rows, last
      of these have other bytes: rows, last

buffers
  - table (renamed to lookup? same doc, same formula)
      doc: A table.
      formula: width * 2 bytes
  + lookup (renamed from table? same doc, same formula)
      doc: A table.
      formula: width * 2 bytes

config.json: max_tokens=8
  buffer  old  new  delta
  rows     80   40    -40
  table    10         -10
  last     24   16     -8
  lookup        10    +10
  total   114   66    -48
"""


def test_the_text_without_a_difference(here: Path) -> None:
    found = run("old.yaml", "old.yaml", "-c", "config.json", "--exit-code").stdout
    assert found == """\
old.yaml: no entry differs

config.json: max_tokens=8
  buffer  old  new  delta
  total   114  114      0
"""


def test_the_exit_code(here: Path) -> None:
    assert run("old.yaml", "new.yaml").stdout
    assert run("old.yaml", "new.yaml", "--exit-code", code=1).stdout
    assert run("old.yaml", "old.yaml", "--exit-code").stdout


def test_json_holds_everything(here: Path) -> None:
    text = run("old.yaml", "new.yaml", "-c", "config.json", "--format", "json").stdout
    data = json.loads(text)
    assert (data["old"], data["new"], data["differs"]) == ("old.yaml", "new.yaml", True)
    assert data["changes"][1] == {
        "section": "constants",
        "name": "TILE",
        "kind": "changed",
        "renamed": None,
        "aspects": [{"name": "value", "old": "16", "new": "4"}],
        "readers": ["rows", "last"],
        "moves": ["rows", "last"],
    }
    (config,) = data["configs"]
    assert (config["old"]["total_bytes"], config["delta"]) == (114, -48)
    assert config["buffers"][1] == {
        "name": "table",
        "old": 10,
        "new": None,
        "delta": -10,
    }


class Page(HTMLParser):
    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words = ""
        self.feed(MarkdownIt("commonmark").enable("table").render(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize(
    "doc", ["<b>x</b>", "a | b\n\n# c", "`code` [a](b)", "@team https://example.org"]
)
def test_markdown_of_hostile_docs_is_words(here: Path, doc: str) -> None:
    (here / "new.yaml").write_text(
        SMALL.replace("Width of a row.", "&").replace(
            "{doc: &}", "{doc: " + json.dumps(doc) + "}"
        )
    )
    found = run("old.yaml", "new.yaml", "-c", "config.json", "--format", "md").stdout
    page = Page(found)
    assert " ".join(doc.split()) in page.words
    assert page.tags <= {
        "code",
        "h3",
        "h4",
        "li",
        "p",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    }


def test_the_markdown_of_a_diff(here: Path) -> None:
    found = run("old.yaml", "new.yaml", "-c", "config.json", "--format", "md").stdout
    assert found == """\
### `old.yaml` to `new.yaml`

1 added, 1 removed, 2 changed.

#### config.json: max_tokens=8

| buffer | old | new | delta |
| --- | ---: | ---: | ---: |
| `rows` | 80 | 40 | -40 |
| `table` | 10 |  | -10 |
| `last` | 24 | 16 | -8 |
| `lookup` |  | 10 | +10 |
| total | 114 | 66 | -48 |

#### arena

- changed `arena`
  - doc: `An arena.` to ``A | `better` arena.``

#### constants

- changed `TILE`
  - value: `16` to `4`
  - read by rows, last
  - of these have other bytes: rows, last

#### buffers

- removed `table` (renamed to `lookup`? same doc, same formula)
  - doc: `A table.`
  - formula: `width * 2 bytes`
- added `lookup` (renamed from `table`? same doc, same formula)
  - doc: `A table.`
  - formula: `width * 2 bytes`
"""


def test_limits_that_one_schema_alone_has(here: Path) -> None:
    (here / "new.yaml").write_text(
        SMALL.replace(
            "config:", "  max_batch: {minimum: 1, doc: Sequences.}\nconfig:"
        ).replace("bytes: width * 2", "bytes: width * max_batch")
    )
    options = ("old.yaml", "new.yaml", "-c", "config.json")
    found = run(*options, "-l", "max_batch=7", "-M", "16").stdout
    assert "config.json: max_tokens=16 -> max_tokens=16, max_batch=7\n" in found
    assert "  table    10   35    +25\n" in found
    assert "the limit `max_batch` has no value" in run(*options, code=2).stderr
    told = run(*options, "-l", "batch=7", "-l", "max_batch=7", code=2).stderr
    assert told == "error: no limit is named `batch`; known: max_tokens\n"


def test_levers_and_fields_that_one_schema_alone_has() -> None:
    old, new = ROOT / "schema/metrale.yaml", ROOT / "schema/atlas.yaml"
    options = (str(old), str(new), "-c", str(ROOT / "tests/data/Qwen3-32B.json"))
    lever = ("--lever", "attn_decode_splitk=auto", "--format", "json")
    (config,) = json.loads(run(*options, *lever).stdout)["configs"]
    # 32 rows, 64 heads, cdiv(2 * 48, 64) = 2 splits, 128 + 2 wide; Atlas has 48 slots.
    buffers = {each["name"]: each for each in config["buffers"]}
    assert buffers["splitk_workspace"]["old"] == 32 * 64 * 2 * 130 * 4
    assert buffers["splitk_workspace"]["new"] == 48 * 130 * 4
    assert "attn_decode_splitk" not in config["new"]["levers"]


def test_both_schemas_share_a_config_among_ranks() -> None:
    old, new = ROOT / "schema/metrale.yaml", ROOT / "schema/atlas.yaml"
    options = (str(old), str(new), "-c", str(ROOT / "tests/data/Qwen3-32B.json"))
    text = run(*options, "-M", "1", "--tp", "2").stdout
    assert "Qwen3-32B.json: max_batch_tokens=1, " in text and ", tp=2\n" in text
    # Half of 64 heads and of 2 * 8, 128 wide, in 16 rows and in one.
    width = (32 + 2 * 4) * 128
    (line,) = (each for each in text.splitlines() if "  qkv_output " in each)
    assert line.split()[1:3] == [f"{16 * width * 2:,}", f"{width * 2:,}"]


# Revisions.


@pytest.fixture
def repository(here: Path) -> Path:
    """Two commits: the second widens a base and its family table."""
    folder = here / "schema"
    folder.mkdir()
    base = SMALL.replace("table.yaml", "families.yaml")
    (folder / "base.yaml").write_text(base)
    (folder / "arena.yaml").write_text(
        "arena: {extends: base.yaml, package: child}\n" "buffers:\n  last: {bytes: M}\n"
    )
    (folder / "families.yaml").write_text(TABLE)
    git(here, "init", "-q")
    git(here, "add", "schema")
    git(here, "commit", "-qm", "one")
    (folder / "base.yaml").write_text(base.replace("value: 16", "value: 64"))
    (folder / "families.yaml").write_text(
        "families:\n  plain:\n    doc: Plain.\n    model_types: [plain]\n"
        "    keys: {wide: {names: [width]}}\n    fields: {width: 2 * wide}\n"
    )
    git(here, "commit", "-qam", "two")
    return here


def test_a_revision_comes_with_its_bases_and_its_family_table(repository: Path) -> None:
    found = run("HEAD~1:schema/arena.yaml", "schema/arena.yaml", "-c", "config.json")
    # 16 rows of 5 bytes, and 64 of 10.
    assert found.stdout == """\
HEAD~1:schema/arena.yaml -> schema/arena.yaml: 1 changed

constants
  ~ TILE
      value: 16 -> 64
      read by rows
      of these have other bytes: rows

config.json: max_tokens=8
  buffer  old  new  delta
  rows     80  640   +560
  table    10   20    +10
  total    98  668   +570
"""
    same = ("HEAD:schema/arena.yaml", "schema/arena.yaml", "--exit-code")
    assert "no entry differs" in run(*same, "-c", "config.json").stdout


def test_bytes_alone_are_a_difference(repository: Path) -> None:
    (repository / "schema/families.yaml").write_text(TABLE)
    options = ("HEAD:schema/arena.yaml", "schema/arena.yaml", "--exit-code")
    assert run(*options).stdout
    assert "no entry differs" in run(*options, "-c", "config.json", code=1).stdout


def test_paths_of_a_revision_are_read_as_git_reads_them(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "schema")
    assert run("HEAD:./arena.yaml", "HEAD:schema/arena.yaml", "--exit-code").stdout
    assert run(":schema/arena.yaml", "arena.yaml", "--exit-code").stdout


@pytest.mark.parametrize(
    "name, told",
    [
        ("HEAD~9:schema/arena.yaml", "HEAD~9:schema/arena.yaml: "),
        ("HEAD:schema/nothing.yaml", "HEAD:schema/nothing.yaml: "),
        ("nothing:schema/arena.yaml", "nothing:schema/arena.yaml: "),
        ("HEAD:schema", "HEAD:schema: "),
        ("nothing.yaml", "nothing.yaml: no such file"),
    ],
)
def test_what_no_revision_has(repository: Path, name: str, told: str) -> None:
    result = run(name, "schema/arena.yaml", code=2)
    assert result.stderr.startswith(f"error: {told}")
    assert result.stdout == "" and result.stderr.count("\n") == 1


def test_a_revision_is_no_option_of_git(repository: Path) -> None:
    result = run("--", "--batch:x", "schema/arena.yaml", code=2)
    assert result.stderr == "error: --batch:x: no revision begins with a `-`\n"


def test_without_a_repository(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(here.parent))
    told = run("HEAD:old.yaml", "new.yaml", code=2).stderr
    assert told.startswith("error: HEAD:old.yaml: not a git repository")
    monkeypatch.setenv("PATH", str(here))
    told = run("HEAD:old.yaml", "new.yaml", code=2).stderr
    assert told == "error: HEAD:old.yaml: git is not installed\n"


def test_a_mistake_in_a_revision_is_told_at_its_place(repository: Path) -> None:
    (repository / "schema/base.yaml").write_text(SMALL.replace("[padded,", "[paded,"))
    git(repository, "commit", "-qam", "three")
    told = run("HEAD:schema/arena.yaml", "old.yaml", code=2).stderr
    assert told.startswith("HEAD:schema/base.yaml:")
    assert "nothing is named `paded`" in told


def test_a_file_with_a_colon_in_its_name_is_a_file(here: Path) -> None:
    (here / "HEAD:old.yaml").write_text(SMALL)
    assert "no entry differs" in run("HEAD:old.yaml", "old.yaml").stdout
