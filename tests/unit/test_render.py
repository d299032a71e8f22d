"""Rendering: what docs may hold, and a schema that uses all of the language.

The emitted packages are compiled, typed, linted, imported and run.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from io import StringIO
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenagen.check import check
from arenagen.commands.schemas import load_checked
from arenagen.compile import Checked, Text, check_source, emit, read_schema
from arenagen.fills import FillError, encode
from arenagen.leaves import Unknown
from arenagen.load import load
from arenagen.model import Fill
from arenagen.render import black_format
from arenagen.sizing import SizingError, complete_inputs, read_lever, size_arena
from arenagen.wrapping import argument, comment, docstring, string_argument

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 88

# The filters

awkward = st.sampled_from(
    [
        *(
            '"',
            '""',
            '"""',
            '""""',
            "'",
            "\\",
            "\\\\",
            '\\"',
            "\\n",
            "\\N{BULLET}",
            "\\x41",
        ),
        *("{{ a }}", "{% raw %}", "{# c #}", "{0}", "%s", "#", "# type: ignore"),
        *("a", "word", "x" * 100, "\N{BULLET}", "\u4e2d", "\U0001f600", "\xa0"),
        "-" * 30,
    ]
)
printable = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"),
    max_size=12,
)
# As the loader hands docs out: words with one blank between them.
docs = (
    st.lists(st.one_of(awkward, printable), min_size=1, max_size=25)
    .map(lambda words: " ".join(" ".join(words).split()))
    .filter(bool)
)
indents = st.sampled_from([0, 4, 8])


def normalised(text: str) -> str:
    return " ".join(text.split())


def literal(text: str) -> object:
    """The value of an expression, any warning being an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ast.literal_eval(text)


@given(docs, indents)
def test_a_docstring_is_its_text(text: str, indent: int) -> None:
    found = literal(docstring(text, indent))
    assert isinstance(found, str)
    assert normalised(found) == text


@given(st.lists(docs, min_size=2, max_size=3).map(tuple), indents)
def test_a_docstring_of_paragraphs_is_its_texts(
    texts: tuple[str, ...], indent: int
) -> None:
    found = literal(docstring(texts, indent))
    assert isinstance(found, str)
    assert normalised(found) == " ".join(texts)


@settings(max_examples=40, deadline=None)
@given(docs)
def test_black_keeps_a_docstring(text: str) -> None:
    module = f"class A:\n    {docstring(text, 4)}\n\n    b: int\n"
    formatted = black_format(module)
    assert black_format(formatted) == formatted
    (found,) = ast.parse(formatted).body
    assert isinstance(found, ast.ClassDef)
    assert normalised(ast.get_docstring(found) or "") == text


@pytest.mark.parametrize("indent", [4, 8])
@pytest.mark.parametrize("end", [".", '"', "'", "\\"])
@pytest.mark.parametrize("start", ["", '"', '""', '"""', "'", "\\"])
def test_a_docstring_about_as_long_as_a_line_is_in_black_s_form(
    start: str, end: str, indent: int
) -> None:
    for length in range(60, 100):
        text = start + ("word " * 20)[: length - 2] + "x" + end
        owner = "class A:\n" + "    class B:\n" * (indent == 8)
        for one in (text, text.replace(" ", "-")):
            found = docstring(one, indent)
            module = f"{owner}{' ' * indent}{found}\n\n{' ' * indent}b: int\n"
            assert black_format(module) == module
            assert normalised(str(literal(found))) == one
        words = docstring(text, indent)
        assert max(map(len, words.split("\n")[1:]), default=0) <= WIDTH
        assert indent + len(words.split("\n")[0]) <= WIDTH


@given(docs, indents)
def test_a_comment_is_its_text(text: str, indent: int) -> None:
    found = comment(text, indent)
    tokens = tokenize.generate_tokens(StringIO(found + "\n").readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    assert normalised(" ".join(each.removeprefix("#") for each in comments)) == text
    assert all(line.startswith(" " * indent + "# ") for line in found.split("\n"))


@given(docs, indents)
def test_a_string_argument_is_its_text(text: str, indent: int) -> None:
    found = string_argument(text, indent)
    assert literal(found) == text
    words = [len(json.dumps(word)) for word in text.split(" ")]
    if max(words) < 40:
        assert max(map(len, found.split("\n"))) <= WIDTH


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_a_string_argument_keeps_every_blank(text: str) -> None:
    assert literal(string_argument(text, 12)) == text


@given(docs)
def test_an_argument_is_its_text_in_a_docstring(text: str) -> None:
    entry = argument(text, "name", 8)
    found = literal(f'"""Head.\n\n        {entry}\n        """')
    assert isinstance(found, str)
    rest = normalised(found).removeprefix("Head. name: ")
    assert rest in (text, text[:1].lower() + text[1:])


@pytest.mark.parametrize(
    ("text", "indent", "expected"),
    [
        ("A sentence.", 4, '"""A sentence."""'),
        ('It says "no"', 4, r'"""It says "no\" """'),
        ('"No" it says', 4, '""" "No" it says"""'),
        ('A """ in it', 4, r'"""A \"\"\" in it"""'),
        ('"""', 4, r'"""\"\"\" """'),
        ("Ends with \\", 4, r'"""Ends with \\"""'),
        (
            "These words are too many for one line of a docstring, so that the "
            "rest of them follows.",
            4,
            '"""These words are too many for one line of a docstring, so that the '
            'rest of them\n    follows.\n    """',
        ),
        (("One.", "Two."), 4, '"""One.\n\n    Two.\n    """'),
        (
            ("One.", "a: first", "b: second"),
            4,
            '"""One.\n\n    a: first\n    b: second\n    """',
        ),
    ],
)
def test_docstrings_read_as_written_by_hand(
    text: str | tuple[str, ...], indent: int, expected: str
) -> None:
    assert docstring(text, indent) == expected


def test_arguments_read_as_written_by_hand() -> None:
    assert argument("Tokens of a pass.", "tokens", 8) == "tokens: tokens of a pass."
    assert argument("KV blocks.", "blocks", 8) == "blocks: KV blocks."
    long = (
        "Tokens of the largest pass, prompt tokens and draft tokens of every sequence."
    )
    assert argument(long, "tokens", 8) == (
        "tokens: tokens of the largest pass, prompt tokens and draft tokens of every\n"
        "            sequence."
    )


# The initial fills


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ("ones", "bool", "01"),
        ("ones", "u8", "01"),
        (-1, "i8", "ff"),
        (258, "u16", "0201"),
        (-2, "i16", "feff"),
        (1, "u32", "01000000"),
        (-7, "i32", "f9ffffff"),
        (2**63, "u64", "0000000000000080"),
        (-1, "i64", "ffffffffffffffff"),
        ("ones", "f16", "003c"),
        ("ones", "bf16", "803f"),
        (-2.5, "bf16", "20c0"),
        ("ones", "f32", "0000803f"),
        (0.1, "f64", "9a9999999999b93f"),
        ("ones", "fp8_e4m3", "38"),
        (448, "fp8_e4m3", "7e"),
        (-0.015625, "fp8_e4m3", "88"),
        (0.001953125, "fp8_e4m3", "01"),
        (0.5, "fp8_e5m2", "38"),
        (57344, "fp8_e5m2", "7b"),
        ("ones", "fp4_e2m1", "22"),
        (1.5, "fp4_e2m1", "33"),
        (-6, "fp4_e2m1", "ff"),
        ("zeros", "bf16", "0000"),
    ],
)
def test_a_fill_is_in_the_dtypes_own_encoding(
    value: Fill, dtype: str, expected: str
) -> None:
    assert encode(value, dtype).hex() == expected


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (2, "bool", "2 is not exact in bool"),
        (256, "u8", "256 does not fit u8"),
        (-1, "u32", "-1 does not fit u32"),
        (1.5, "i32", "1.5 does not fit i32"),
        (1.0, "i32", "1.0 does not fit i32"),
        (0.1, "f32", "0.1 is not exact in f32"),
        (2**24 + 1, "f32", "16777217 is not exact in f32"),
        (1e39, "f32", "1e+39 does not fit f32"),
        (70000, "f16", "70000 does not fit f16"),
        (0.1, "bf16", "0.1 is not exact in bf16"),
        (257, "bf16", "257 is not exact in bf16"),
        (1e39, "bf16", "1e+39 does not fit bf16"),
        (2**60 + 1, "bf16", "1152921504606846977 is not exact in bf16"),
        (449, "fp8_e4m3", "449 is not exact in fp8_e4m3"),
        (480, "fp8_e4m3", "480 is not exact in fp8_e4m3"),
        (65536, "fp8_e5m2", "65536 is not exact in fp8_e5m2"),
        (8, "fp4_e2m1", "8 is not exact in fp4_e2m1"),
        (float("inf"), "fp8_e5m2", "inf is not exact in fp8_e5m2"),
        (float("nan"), "f32", "nan is not exact in f32"),
    ],
)
def test_a_fill_that_the_dtype_cannot_hold(
    value: Fill, dtype: str, message: str
) -> None:
    with pytest.raises(FillError) as error:
        encode(value, dtype)
    assert str(error.value) == message


# Packages

COVERAGE = """\
arena:
  class: CoverageArena
  package: coverage_arena
  label: "coverage \\"arena\\" 100% {it}"
  doc: One entry of every kind that the language has.
  log:
    buffers: [rows, slab]
    fields: [hidden_size, family]

target:
  sm_count:
    default: 4
    doc: Processors of the device.
  lanes:
    default: 0
    minimum: 0
    doc: Lanes of a processor.

limits:
  max_batch_tokens:
    symbol: M
    tokens: true
    minimum: 1
    doc: Tokens of the largest pass.
  max_seq_len:
    maximum: 100000
    default: 64
    doc: Tokens of the longest sequence.
  max_batch_size:
    symbol: B
    doc: Sequences of the largest batch.

config:
  hidden_size:
    doc: Width of the residual stream.
  heads:
    doc: Query heads.
  head_dim:
    default: hidden_size // heads if heads > 0 else BACK * BACK
    doc: Width of a head.
  experts:
    default: 3
    doc: Routed experts.
  padding:
    default: align(100, 16) + clamp(7, 1, 5)
    doc: Spare elements.
  gated:
    type: bool
    doc: Whether there is a gate.
  tied:
    type: bool
    default: gated and heads > 1
    doc: Whether weights are tied.
  family:
    type: str
    default: "'dense'"
    doc: The family.
  layer_kinds:
    type: list
    default: KINDS
    doc: Kinds of layers.

levers:
  packed:
    variable: COVERAGE_PACKED
    type: bool
    on_when: ["1", "yes"]
    doc: Keep weights packed.
  probe:
    variable: COVERAGE_PROBE
    type: bool
    off_when: ["0"]
    arms: checksum
    doc: Run the checksum probe.
  splits:
    variable: COVERAGE_SPLITS
    type: int
    words: {auto: BACK, "off": 1}
    clamp: [1, 16]
    default: BACK
    doc: Splits of attention.
  depth:
    variable: COVERAGE_DEPTH
    type: int
    clamp: [0, 4]
    doc: Depth of speculation.
  level:
    variable: COVERAGE_LEVEL
    type: int
    words: {low: 1, high: 3}
    default: 1
    doc: Level of something.
  backend:
    variable: COVERAGE_BACKEND
    type: str
    words: {flash: fa, plain: pl}
    default: pl
    doc: Kernels to use.
  note:
    variable: COVERAGE_NOTE
    type: str
    doc: Any text.

constants:
  TILE: {value: 16, doc: Rows of a tile.}
  BACK: {value: -2, doc: Not a count.}
  STRICT: {value: true, doc: A truth value.}
  DENSE: {value: dense, doc: A family.}
  KINDS: {value: [full], doc: Kinds of layers.}
  BUCKETS: {value: [0, 4, 32, 256], doc: Batch buckets.}

let:
  width:
    value: heads * head_dim
    doc: Width of all heads.
  wide:
    value: width > 64 and STRICT
    doc: Whether heads are wide.
  kind:
    value: family if gated else DENSE
    doc: The family, as far as it counts.
  padded:
    value: align(M, TILE)
    doc: Padded rows.
  bucket:
    value: next_in(BUCKETS, B)
    doc: The bucket of the batch.
  parts:
    value: splits if splits > 0 else sm_count * 2
    doc: Parts of attention.
  doubled:
    value: twice(hidden_size)
    doc: Twice the width.
  full_layers:
    value: count(layer_kinds, 'full', 'sliding') + len(layer_kinds)
    doc: Layers that attend.

functions:
  twice:
    doc: Twice a count.
    parameters: {n: {doc: The count.}}
    value: n * 2
  quadrupled:
    doc: Four times a count, or the width.
    parameters:
      n: {doc: The count.}
      flag: {type: bool, doc: Whether to.}
      word: {type: str, doc: A family.}
      words: {type: list, doc: Families.}
    value: "twice(twice(n)) if flag and word in words or word == 'x' else width"
  lever_bytes:
    doc: Bytes under the levers, for the target.
    value: parts * lanes + (64 if packed else 32) + max(depth, level)
  per_head:
    doc: Elements for each head, whatever heads there are.
    parameters: {n: {doc: The count.}}
    value: n // heads

layouts:
  inner:
    doc: A block with a gate.
    parameters:
      rows_of: {doc: Rows of the block.}
      wide_one: {type: bool, doc: Whether there is a second part.}
    align: 8
    let:
      late: early + 1
      early: twice(rows_of)
      idle: rows_of * 100
    regions:
      ids: {dtype: u32, shape: [late], doc: Ids.}
      extra:
        dtype: u8
        shape: [3]
        when: wide_one if rows_of > 1 else False
        doc: Extra.
      packed_values: {dtype: fp4_e2m1, shape: [early, 3], align: 1, doc: Two a byte.}
  outer:
    doc: A block in a block, at its end.
    parameters: {count_of: {doc: Rows.}, columns: {doc: Columns.}}
    regions:
      head: {dtype: bf16, shape: [count_of, hidden_size], doc: A head.}
      gap: {bytes: columns, at: 2 * count_of * hidden_size + 64, doc: Raw bytes.}
      tail:
        layout: inner
        arguments: {rows_of: count_of, wide_one: True}
        align: 32
        doc: The inner block.
    accessor:
      doc: The outer block for the largest pass.
      arguments: {count_of: padded, columns: "lever_bytes() + max_batch_size"}
  fixed_block:
    doc: A block of one size.
    regions:
      flags: {dtype: bool, shape: [5], doc: Flags.}

groups:
  all:
    method: zero_all
    rows_method: zero_all_rows
    doc: Clear everything that is reused.
  first:
    method: zero_first
    doc: Clear the first.
  rest:
    method: zero_rest
    doc: Clear the rest.

buffers:
  rows:
    doc: One row a token.
    dtype: bf16
    shape: [M, hidden_size]
    token_major: true
    zero: [all, first]
    checksum: true
  choice:
    doc: Bytes of a choice, behind a gate that is one.
    when: heads > 1 if gated else experts > 1
    otherwise: "48 if family == 'dense' else 16"
    bytes: 10 * hidden_size if wide else 1000
    zero: [rest]
  one_use:
    doc: A gated use behind a gate.
    when: heads > 0
    otherwise: 7
    dtype: i8
    uses:
      only: {when: experts > 2, shape: [heads, 5], doc: The only use.}
  gated_use:
    doc: A gated use whose gate is a choice.
    uses:
      only:
        when: wide if gated else heads > 1
        bytes: 11 if tied else 12
        doc: The only use.
  many_uses:
    doc: Uses of every kind.
    dtype: f32
    min_bytes: 100
    zero: [all]
    checksum: true
    uses:
      plain: {shape: [M, heads], doc: A shape.}
      other_dtype: {dtype: u64, shape: [B, 2], doc: Another dtype.}
      raw: {when: packed, bytes: 900, doc: Bytes.}
      block: {layout: inner, arguments: {rows_of: B, wide_one: gated}, doc: A layout.}
      parted:
        align: 16
        doc: Regions.
        regions:
          one: {shape: [3], doc: Aligned to 16.}
          two: {dtype: u8, shape: [heads], doc: Aligned to 16.}
          three: {when: gated, dtype: u8, shape: [5], align: 1, doc: Gated.}
          four: {dtype: u8, bytes: 2, align: 64, doc: Aligned to 64.}
  laid_out:
    doc: Regions of every kind.
    dtype: u8
    align: 512
    regions:
      one: {shape: [3], when: heads > 2, doc: Gated and first.}
      two: {dtype: fp4_e2m1, shape: ["min(heads, 65)", 3], doc: Odd nibbles.}
      three: {dtype: i64, shape: [2], align: 8, doc: Aligned.}
      four: {layout: fixed_block, at: 256, doc: At a place.}
      five: {bytes: per_head(24), when: heads > 0, doc: Divided.}
  token_parts:
    doc: Keys, then values.
    dtype: f16
    token_major: true
    min_bytes: 64
    zero: [all]
    regions:
      keys: {shape: [M, heads], doc: Keys.}
      values: {shape: [padded, heads], align: 32, when: gated, doc: Values.}
  outer_block:
    doc: A layout with every kind of argument.
    when: heads > 0
    layout: outer
    arguments:
      count_of: M
      columns: hidden_size + max_seq_len + lever_bytes() + parts
  small_block:
    doc: A layout without arguments.
    layout: fixed_block
  nibbles:
    doc: Packed values.
    dtype: fp4_e2m1
    shape: [heads, 3]
    init: 1.5
  ones_bf16: {doc: Ones., dtype: bf16, shape: [heads], init: ones}
  minus_f32: {doc: A number., dtype: f32, shape: [B, 2], init: -2.5}
  minus_i32: {doc: A number., dtype: i32, shape: [3], init: -7}
  ones_fp8: {doc: Ones., dtype: fp8_e4m3, shape: [heads], init: ones}
  half_fp8: {doc: A number., dtype: fp8_e5m2, shape: [5], init: 0.5}
  zeros_f64: {doc: Zeros., dtype: f64, shape: [2], init: zeros}
  slab:
    doc: A slab that callers carve.
    bytes: 4096 if packed else 64
    carve: true
  second_slab:
    doc: Another slab, behind a gate.
    when: gated
    bytes: 128
    carve: true
  lists:
    doc: What reads lists and texts.
    dtype: u16
    when: >-
      kind in KINDS or kind == 'dense' and level < 5 or note == 'x'
      or backend == 'fa'
    shape:
      - full_layers
      - quadrupled(bucket, tied, family, layer_kinds)
      - 1 if 3 > level else 2
  scratch:
    doc: What a trim empties.
    dtype: u8
    shape: [doubled, "cdiv(B, TILE)", "max(1, B % TILE)"]

trims:
  no_scratch:
    doc: Wide models bring their own.
    when: wide and not packed
    buffers: [scratch, choice]
  no_lists:
    doc: Nothing reads them.
    when: 0 == experts
    buffers: [lists]
"""

BARE = """
arena: {class: BareArena, package: bare_arena, label: bare, doc: One buffer.}
limits:
  max_batch_tokens: {tokens: true, minimum: 1, doc: Tokens.}
buffers:
  rows: {doc: Rows., dtype: u8, shape: [max_batch_tokens]}
"""

# No buffer is a plain pointer.
USES = """
arena: {class: UsesArena, package: uses_arena, label: uses, doc: One buffer.}
limits:
  max_batch_tokens: {tokens: true, minimum: 1, doc: Tokens.}
layouts:
  fixed:
    doc: A place that reads nothing of what lies before it.
    parameters: {rows: {doc: Rows.}}
    align: 16
    regions:
      zeroth: {bytes: 8, doc: First of all.}
      first: {bytes: 8, when: rows > 4, doc: Gated.}
      second: {bytes: 8, at: 64, doc: At a place.}
      third: {bytes: rows, align: 1, doc: Behind it.}
buffers:
  shared: {doc: Shared., uses: {raw: {bytes: max_batch_tokens, doc: Bytes.}}}
  placed: {doc: Placed., layout: fixed, arguments: {rows: max_batch_tokens}}
"""

GROUPS = """
arena: {class: GroupsArena, package: groups_arena, label: groups, doc: Several groups.}
limits:
  max_batch_tokens: {symbol: T, tokens: true, minimum: 1, maximum: 512, doc: Tokens.}
config:
  width: {doc: A width.}
groups:
  every: {method: clear_all, doc: Everything.}
  none: {method: clear_none, doc: Nothing.}
  few: {method: clear_few, rows_method: clear_few_rows, doc: A few.}
buffers:
  rows:
    {doc: Rows., dtype: u8, shape: [T, width], token_major: true, zero: [every, few]}
  more: {doc: More., dtype: u8, shape: [width], zero: [every, few], checksum: true}
"""

# Where sizes may be negative, regions may overlap, and a let reads no input.
CORNERS = """
arena: {class: CornersArena, package: corners_arena, label: corners, doc: Corners.}
limits:
  max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens.}
config:
  entry: {type: str, doc: The buffer that exists.}
  width: {doc: A width.}
  heads: {doc: Heads.}
constants:
  SIZE: {value: 8, doc: A size.}
let:
  still: {value: SIZE * 2, doc: What depends on nothing.}
  spare: {value: width - heads, doc: What may be negative.}
functions:
  ratio: {parameters: {n: {doc: A count.}}, value: 100 // (n + 1), doc: A ratio.}
  twice: {parameters: {n: {doc: A count.}}, value: n * 2, doc: Twice.}
  steady: {value: still + 1, doc: What depends on nothing.}
layouts:
  square:
    doc: A square.
    parameters: {side: {doc: Its side.}, even: {type: bool, doc: Whether it is.}}
    regions:
      cells: {bytes: side * side, doc: Its cells.}
      rest: {bytes: still if even else 1, doc: The rest.}
  remainder:
    doc: What is left of a block.
    parameters: {taken: {doc: What is taken.}}
    regions:
      left: {bytes: "max(9 - taken, 0)", doc: What is left.}
buffers:
  signed:
    when: entry == 'signed'
    doc: A place that a sign moves.
    regions:
      first: {bytes: 64, doc: The first.}
      second: {bytes: 8, at: 100 + -M, doc: The second.}
  moved:
    when: entry == 'moved'
    doc: A place that a let moves.
    regions:
      first: {bytes: 64, doc: The first.}
      second: {bytes: 8, at: 64 + spare, doc: The second.}
  gated:
    when: entry == 'gated'
    doc: A gated region at a place, in front of another.
    regions:
      first: {bytes: width, doc: The first.}
      second: {bytes: 5, at: 10, when: heads > 2, doc: The second.}
      third: {bytes: 5, at: 20, doc: The third.}
  shrunk:
    when: entry == 'shrunk'
    doc: A gated region that may be negative, in front of a place.
    regions:
      first: {bytes: 4, doc: The first.}
      second: {bytes: spare, when: width > heads, doc: The second.}
      third: {bytes: 8, at: 4 + width - heads, doc: The third.}
  divided:
    when: entry == 'divided'
    doc: A quotient.
    bytes: ratio(spare) + steady()
  doubled:
    when: entry == 'doubled'
    doc: Two factors.
    dtype: u8
    shape: [twice(spare), twice(spare)]
  squared:
    when: entry == 'squared'
    doc: A layout of an argument.
    bytes: square(spare, heads > 3)
  seldom:
    when: entry == 'seldom'
    doc: A shape that may be off, beside bytes.
    dtype: i32
    uses:
      cells: {when: heads > 2, shape: [width, 3], doc: The cells.}
      raw: {bytes: 8, doc: The bytes.}
  shared:
    when: entry == 'shared'
    doc: What a layout leaves as its argument grows.
    layout: remainder
    arguments: {taken: M * heads}
  placed:
    when: entry == 'placed'
    doc: A layout.
    layout: square
    arguments: {side: spare, even: False}
"""

DOCS = [
    "An arena.",
    'It says "no"',
    '"""',
    'Three """ inside and at its end """',
    'Two at its end ""',
    "A backslash \\\\ inside and at its end \\\\",
    "\\\\N{BULLET} \\\\x41 \\\\u0041 \\\\n",
    "{{ view }} {% if %} {# no #} {0} %s %(x)s",
    "word " * 60 + "word",
    "w" * 120,
    "it's an 'apostrophe'",
    "# a comment",
    "\u00fc \u4e2d \U0001f600",
    'quotes "at the end of a line" ' * 6 + '"',
    "\\\\",
    '"',
    "\\\\u12 \\\\N{no such name} \\\\x4 \\\\777",
    "w" * 500,
    "one\rtwo\r\nthree\nfour\tfive",
    "one\x85two\u2028three\u2029four",
    "f'{1 + 1}' $HOME `id` <b>&amp;</b> ]]> */ --",
    "coding: utf-7 +AGEAYg-",
]


def docs_schema(number: int) -> tuple[str, list[str]]:
    """A schema with a doc wherever one may stand, and the docs."""
    used: list[str] = []

    def doc() -> str:
        used.append(DOCS[(number + len(used)) % len(DOCS)])
        return json.dumps(used[-1], ensure_ascii=False)

    word = json.dumps(DOCS[number], ensure_ascii=False)
    label = json.dumps(DOCS[number][:80], ensure_ascii=False)
    text = f"""
arena: {{class: DocsArena, package: docs_arena{number}, label: {label}, doc: {doc()}}}
target: {{sm: {{default: 1, doc: {doc()}}}}}
limits:
  max_batch_tokens: {{symbol: M, tokens: true, minimum: 1, doc: {doc()}}}
config:
  width: {{doc: {doc()}}}
levers:
  flag: {{variable: FLAG, type: bool, on_when: [{word}], doc: {doc()}}}
  note: {{variable: NOTE, type: str, default: {json.dumps(DOCS[1])}, doc: {doc()}}}
constants:
  SIZE: {{value: 4, doc: {doc()}}}
  WORD: {{value: {label}, doc: {doc()}}}
let:
  wide: {{value: width * SIZE, doc: {doc()}}}
functions:
  helper: {{parameters: {{n: {{doc: {doc()}}}}}, value: n + width, doc: {doc()}}}
layouts:
  block:
    doc: {doc()}
    parameters: {{n: {{doc: {doc()}}}}}
    regions: {{head: {{dtype: u8, shape: [n], doc: {doc()}}}}}
    accessor: {{doc: {doc()}, arguments: {{n: 4}}}}
groups:
  all: {{method: zero_all, rows_method: zero_rows, doc: {doc()}}}
buffers:
  rows:
    doc: {doc()}
    dtype: u8
    shape: [M, wide]
    token_major: true
    zero: [all]
    when: flag or note == 'x' or note == WORD
  used: {{doc: {doc()}, dtype: u8, shape: [sm, helper(3)]}}
  blocked: {{doc: {doc()}, layout: block, arguments: {{n: M}}}}
trims:
  none: {{when: width == 77, doc: {doc()}, buffers: [used]}}
"""
    return text, used


def checked(text: str) -> Checked:
    schema, found = read_schema(Text("schema.yaml", text.encode()))
    return check_source(schema, found, None)


def unproven(text: str) -> Checked:
    """A schema whose regions overlap for values that the check tries.

    For others of its kind the check finds none, and the package is left to refuse them.
    """
    schema = load(text, "schema.yaml")
    assert {each.code for each in check(schema)} <= {"AR080", "AR081", "AR084"}
    return check_source(schema, (), None)


def without(section: str) -> str:
    """A schema of every optional section, less one."""
    sections = {
        "target": "target: {sm: {default: 2, doc: Processors.}}\n",
        "config": "config: {width: {doc: A width.}}\n",
        "levers": "levers: {flag: {variable: F, type: bool, on_when: [a], doc: A.}}\n",
        "constants": "constants: {SIZE: {value: 4, doc: A size.}}\n",
        "let": "let: {wide: {value: M * 4, doc: A width.}}\n",
        "functions": "functions: {half: {value: 8 // 2, doc: A half.}}\n",
        "layouts": "layouts: {block: {doc: B., regions: {one: {bytes: 3, doc: O.}}}}\n",
        "groups": "groups: {all: {method: clear_all, doc: All.}}\n",
        "trims": "trims: {none: {when: M == 7, doc: None., buffers: [plain]}}\n",
    }
    del sections[section]
    text = BARE.replace("BareArena", "PartArena").replace("bare_arena", f"no_{section}")
    text = text.replace("tokens: true", "symbol: M, tokens: true")
    text = text.replace("buffers:", "".join(sections.values()) + "buffers:")
    read = {
        "target": "sm",
        "config": "width",
        "levers": "(1 if flag else 0)",
        "constants": "SIZE",
        "let": "wide",
        "functions": "half()",
    }
    terms = " + ".join(term for key, term in read.items() if key in sections)
    text += f"  plain: {{doc: Plain., bytes: {terms}}}\n"
    if "groups" in sections:
        text += "  cleared: {doc: Cleared., bytes: 3, zero: [all]}\n"
    if "layouts" in sections:
        text += "  blocked: {doc: Blocked., layout: block}\n"
    return text


def named(limit: str, parameter: str) -> str:
    """A schema whose limit and layout parameter have those names."""
    return f"""
arena: {{class: NamedArena, package: {limit}_of_{parameter}, label: arena, doc: Arena.}}
limits:
  max_batch_tokens: {{symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}}
  {limit}: {{minimum: 1, doc: Any limit.}}
layouts:
  block:
    doc: A block.
    parameters: {{{parameter}: {{doc: Any count.}}}}
    regions: {{one: {{dtype: u8, shape: [{parameter}], doc: One.}}}}
buffers:
  blocked: {{doc: A layout., layout: block, arguments: {{{parameter}: M}}}}
  parted:
    doc: Two uses.
    dtype: u8
    uses:
      wide: {{shape: [M, {limit}], doc: Wide.}}
      narrow: {{shape: [M], doc: Narrow.}}
"""


SECTIONS = (
    "target",
    "config",
    "levers",
    "constants",
    "let",
    "functions",
    "layouts",
    "groups",
    "trims",
)


def emitted_without_black(source: Checked) -> dict[str, str]:
    """The files of a package, none of which needed black."""

    def black_format(text: str) -> str:
        raise AssertionError(f"only black knows the form of this:\n{text}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arenagen.render.black_format", black_format)
        return emit(source, "schema.yaml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with every package, on the path of imports."""
    folder = tmp_path_factory.mktemp("emitted") / "generated"
    texts = [COVERAGE, BARE, USES, GROUPS]
    texts += [without(section) for section in SECTIONS]
    texts += [docs_schema(number)[0] for number in (0, 5, 13, 18)]
    texts += [named("gate", "use"), named("given", "gate")]
    for source in (*map(checked, texts), unproven(CORNERS)):
        for name, content in emitted_without_black(source).items():
            path = folder / source.schema.arena.package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    (folder.parent / "pyproject.toml").write_bytes(
        (ROOT / "pyproject.toml").read_bytes()
    )
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def coverage(folder: Path) -> ModuleType:
    return importlib.import_module("coverage_arena")


def run(folder: Path, *command: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.stdout + result.stderr if result.returncode else ""


def test_emitted_packages_pass_mypy_strict(folder: Path) -> None:
    packages = ("coverage", "bare", "uses", "corners")
    paths = [str(folder / f"{name}_arena") for name in packages]
    paths.append(str(folder / "no_config"))
    cache = f"--cache-dir={folder.parent / 'cache'}"
    assert run(folder, "mypy", "--strict", cache, *paths) == ""


def test_emitted_packages_pass_ruff(folder: Path) -> None:
    packages = sorted(path for path in folder.iterdir() if "docs" not in path.name)
    assert run(folder, "ruff", "check", "--no-cache", *map(str, packages)) == ""


def test_emitted_modules_are_fixed_points_of_black(folder: Path) -> None:
    for path in folder.glob("*/*.py"):
        text = path.read_text(encoding="utf-8")
        assert black_format(text) == text, path


def test_what_only_black_can_form_is_formed_by_black(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = checked(BARE)
    expected = emit(source, "schema.yaml")

    def styled(text: str) -> str:
        raise Unknown

    monkeypatch.setattr("arenagen.render.styled", styled)
    assert emit(source, "schema.yaml") == expected


@pytest.mark.parametrize("name", ["metrale", "atlas"])
def test_the_packages_of_the_repository_need_no_black(name: str) -> None:
    source = load_checked(ROOT / "schema" / f"{name}.yaml")
    files = emitted_without_black(source)
    folder = ROOT / "generated" / f"{name}_arena"
    for path, text in files.items():
        _, _, written = (folder / path).read_text("utf-8").partition("\n")
        assert text.partition("\n")[2] == written, path


@pytest.mark.parametrize("section", SECTIONS)
def test_a_package_without_one_section_works(folder: Path, section: str) -> None:
    package = importlib.import_module(f"no_{section}")
    config = (
        package.ModelConfig() if section == "config" else package.ModelConfig(width=2)
    )
    report = package.selfcheck(config, max_batch_tokens=3, levers=package.Levers())
    assert report.failures == ()


def test_a_package_of_one_buffer_works(folder: Path) -> None:
    package = importlib.import_module("bare_arena")
    config = package.ModelConfig()
    sizes = package.BufferSizes.from_config(config, max_batch_tokens=7)
    assert sizes.as_dict() == {"rows": 7}
    assert package.selfcheck(config, max_batch_tokens=7).failures == ()


@pytest.mark.parametrize(("limit", "parameter"), [("gate", "use"), ("given", "gate")])
def test_limits_and_parameters_may_have_names_that_accessors_use(
    folder: Path, limit: str, parameter: str
) -> None:
    package = importlib.import_module(f"{limit}_of_{parameter}")
    config = package.ModelConfig()
    with package.NamedArena(config, max_batch_tokens=5, **{limit: 4}) as arena:
        assert arena.parted.wide(3, **{limit: 2}).shape == (3, 2)
        assert arena.required_bytes("parted", "wide", tokens=9, **{limit: 8}) == 72
        assert arena.blocked(**{parameter: 3}).one.shape == (3,)


def test_groups_without_a_method_for_rows_work(folder: Path) -> None:
    package = importlib.import_module("groups_arena")
    config = package.ModelConfig(width=4)
    assert package.selfcheck(config, max_batch_tokens=512).failures == ()
    with pytest.raises(package.ConfigError, match="from 1 to 512"):
        package.BufferSizes.from_config(config, max_batch_tokens=513)
    with package.GroupsArena(config, max_batch_tokens=3) as arena:
        assert not hasattr(arena, "clear_all_rows")
        assert hasattr(arena, "clear_few_rows")


# Docs


def texts_of(source: str) -> list[str]:
    """Every text of a module: its strings, and its comments, whitespace normalised."""
    found = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    comments, last = "", 0
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            joined = token.start[0] == last + 1
            text = token.string.removeprefix("#")
            comments += text if joined else f"\0{text}"
            last = token.start[0]
    return [normalised(text) for text in [*found, *comments.split("\0")]]


@pytest.mark.parametrize("number", [0, 5, 13, 18])
def test_docs_of_every_kind_reach_the_package_as_they_are(
    folder: Path, number: int
) -> None:
    text, used = docs_schema(number)
    package = importlib.import_module(f"docs_arena{number}")
    found = [
        each
        for path in (folder / f"docs_arena{number}").glob("*.py")
        for each in texts_of(path.read_text(encoding="utf-8"))
    ]
    for doc in used:
        plain = normalised(doc)
        spellings = (plain, plain[:1].lower() + plain[1:])
        assert any(each in text for text in found for each in spellings), doc
    schema = checked(text).schema
    assert package.DocsArena.label == schema.arena.label
    assert schema.constants[1].value == package.WORD
    for buffer in schema.buffers:
        assert package.BUFFERS[buffer.name].doc == buffer.doc
        assert package.DocsArena.__slots__[buffer.name].startswith(buffer.doc)
    assert package.Levers.from_env({"FLAG": DOCS[number]}).flag
    assert package.Levers().note == DOCS[1]
    config = package.ModelConfig(width=3)
    assert package.selfcheck(config, max_batch_tokens=4).failures == ()


@pytest.mark.parametrize("number", range(len(DOCS)))
def test_docs_of_every_kind_compile(number: int) -> None:
    source = checked(docs_schema(number)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, text in emit(source, "schema.yaml").items():
            if name.endswith(".py") and not name.startswith("runtime/"):
                compile(text, name, "exec")


def test_the_files_of_a_package_stay_in_its_folder() -> None:
    for number in range(len(DOCS)):
        source = checked(docs_schema(number)[0])
        for name in emit(source, f"../{DOCS[number]}\0/etc/passwd"):
            assert re.fullmatch(r"(runtime/)?\w+\.py|py\.typed", name)


# The coverage package

Case = tuple[dict[str, Any], dict[str, Any], dict[str, int], dict[str, int]]

GATED: Case = (
    {"hidden_size": 64, "heads": 4, "gated": True},
    {},
    {},
    {"max_batch_tokens": 20, "max_seq_len": 64, "max_batch_size": 3},
)
WIDE: Case = (
    {
        "hidden_size": 100,
        "heads": 3,
        "experts": 0,
        "family": "x",
        "layer_kinds": ("sliding", "full", "none"),
    },
    {"packed": True, "splits": 3, "depth": 4, "level": 3, "backend": "fa"},
    {"sm_count": 1, "lanes": 2},
    {"max_batch_tokens": 1, "max_seq_len": 0, "max_batch_size": 33},
)


def sizes_of(package: ModuleType, case: Case) -> Any:
    config, levers, target, limits = case
    return package.BufferSizes.from_config(
        package.ModelConfig(**config),
        **limits,
        levers=package.Levers(**levers),
        target=package.Target(**target),
    )


def test_sizes_by_hand_with_gates_open(coverage: ModuleType) -> None:
    # Heads of 16 make a width of 64, which is not wide; 8 parts, 33 lever bytes.
    sizes = sizes_of(coverage, GATED)
    assert sizes.as_dict() == {
        "rows": 20 * 64 * 2,
        "choice": 1000,
        "one_use": 4 * 5,
        "gated_use": 0,
        "many_uses": 20 * 4 * 4,
        # 3, 6 of nibbles, 16 from 16, 5 at 256, 24 // 4.
        "laid_out": 256 + 5 + 6,
        "token_parts": 20 * 4 * 2 + 32 * 4 * 2,
        # 169 columns at 2624, then from 2816: 41 ids, 3 from 168, 60 of nibbles.
        "outer_block": 2816 + 168 + 3 + 60,
        "small_block": 5,
        "nibbles": 6,
        "ones_bf16": 8,
        "minus_f32": 24,
        "minus_i32": 12,
        "ones_fp8": 4,
        "half_fp8": 5,
        "zeros_f64": 16,
        "slab": 64,
        "second_slab": 128,
        "lists": 2 * 64 * 1 * 2,
        "scratch": 128 * 1 * 3,
    }
    assert sizes.trimmed == 0


def test_sizes_by_hand_with_gates_closed(coverage: ModuleType) -> None:
    # Heads of 33 make a width of 99, which is wide; 3 parts, 74 lever bytes.
    sizes = sizes_of(coverage, WIDE)
    assert sizes.as_dict() == {
        "rows": 200,
        "choice": 16,
        "one_use": 0,
        "gated_use": 12,
        "many_uses": 900,
        # 3, 5 of nibbles, 16 from 8, 5 at 256, 24 // 3.
        "laid_out": 256 + 5 + 8,
        "token_parts": 64,
        # 177 columns at 264, then from 448: 3 ids, 3 of nibbles.
        "outer_block": 448 + 12 + 3,
        "small_block": 5,
        "nibbles": 5,
        "ones_bf16": 6,
        "minus_f32": 264,
        "minus_i32": 12,
        "ones_fp8": 3,
        "half_fp8": 5,
        "zeros_f64": 16,
        "slab": 4096,
        "second_slab": 0,
        "lists": 0,
        "scratch": 200 * 3 * 1,
    }
    assert sizes.trimmed == 5 * 1024 * 2 * 2


def test_a_trim_empties_several_buffers(coverage: ModuleType) -> None:
    config, levers, target, limits = GATED
    sizes = sizes_of(coverage, (config | {"hidden_size": 512}, levers, target, limits))
    assert (sizes.choice, sizes.scratch) == (0, 0)
    assert sizes.trimmed == 10 * 512 + 1024 * 1 * 3


def test_defaults_of_the_config(coverage: ModuleType) -> None:
    config = coverage.ModelConfig(hidden_size=64, heads=4, gated=True)
    assert (config.head_dim, config.tied, config.experts) == (16, True, 3)
    assert (config.padding, config.family, config.layer_kinds) == (
        117,
        "dense",
        ("full",),
    )
    assert coverage.ModelConfig().head_dim == 4
    assert coverage.ModelConfig(head_dim=0, heads=4, hidden_size=64).head_dim == 0
    with pytest.raises(coverage.ConfigError, match="hidden_size"):
        coverage.ModelConfig(hidden_size="64")


@pytest.mark.parametrize("case", [GATED, WIDE])
def test_the_package_checks_itself(coverage: ModuleType, case: Case) -> None:
    config, levers, target, limits = case
    report = coverage.selfcheck(
        coverage.ModelConfig(**config),
        **limits,
        levers=coverage.Levers(**levers),
        target=coverage.Target(**target),
    )
    assert report.failures == ()


def test_fills_carves_and_layouts_of_the_arena(coverage: ModuleType) -> None:
    config, _, _, limits = GATED
    gpu = coverage.HostBackend()
    with coverage.CoverageArena(
        coverage.ModelConfig(**config), **limits, gpu=gpu, levers=coverage.Levers()
    ) as arena:

        def content(name: str) -> str:
            data = bytearray(getattr(arena, f"{name}_bytes"))
            gpu.copy_d2h(data, getattr(arena, name))
            return data.hex()

        assert content("nibbles") == "33" * 6
        assert content("ones_bf16") == "803f" * 4
        assert content("minus_f32") == "000020c0" * 6
        assert content("minus_i32") == "f9ffffff" * 3
        assert content("ones_fp8") == "38" * 4
        assert content("half_fp8") == "38" * 5
        assert content("zeros_f64") == "00" * 16
        assert arena.carve_slab(64) == arena.slab
        with pytest.raises(coverage.CarveError):
            arena.carve_slab(1)
        # 32 padded rows; 36 columns at 4160; the inner block from 4224.
        outer = arena.outer
        assert (outer.gap.offset, outer.gap.nbytes) == (4160, 36)
        assert (outer.tail.ids.nbytes, outer.tail.packed_values.nbytes) == (260, 96)
        assert outer.nbytes == 4224 + 267 + 96
        # Asked for 7 tokens: 896 bytes of head, columns at 960, the block from 1152.
        part = arena.outer_block(count_of=7)
        assert (part.gap.offset, part.gap.end) == (960, 960 + 169)
        assert part.tail.ids.ptr == arena.outer_block + 1152
        assert part.tail.packed_values.nbytes == 21
        assert part.nbytes == 1152 + 67 + 21
        with pytest.raises(coverage.LayoutError, match="count_of=21"):
            arena.outer_block(count_of=21)
        assert arena.small_block().flags.ptr == arena.small_block


def test_what_the_package_says_of_its_buffers(coverage: ModuleType) -> None:
    choice = coverage.BUFFERS["choice"]
    assert choice.otherwise == '48 if family == "dense" else 16'
    assert choice.gate == "heads > 1 if gated else experts > 1"
    assert choice.groups == ("zero_rest",)
    assert choice.inputs == (
        "hidden_size",
        "heads",
        "head_dim",
        "experts",
        "gated",
        "family",
    )
    assert coverage.BUFFERS["laid_out"].align == 512


@settings(max_examples=400, deadline=None)
@given(
    config=st.fixed_dictionaries(
        {
            "hidden_size": st.sampled_from([0, 1, 8, 64, 256]),
            "heads": st.integers(0, 5),
            "experts": st.integers(0, 3),
            "gated": st.booleans(),
            "family": st.sampled_from(["dense", "x", "full"]),
            "layer_kinds": st.lists(st.sampled_from(["full", "x"]), max_size=3).map(
                tuple
            ),
        },
        optional={"head_dim": st.sampled_from([0, 4, 64]), "tied": st.booleans()},
    ),
    levers=st.fixed_dictionaries(
        {
            "packed": st.booleans(),
            "splits": st.sampled_from([-2, 1, 3, 16]),
            "depth": st.integers(0, 4),
            "level": st.sampled_from([1, 3]),
            "backend": st.sampled_from(["fa", "pl"]),
            "note": st.sampled_from(["", "x"]),
        }
    ),
    target=st.fixed_dictionaries(
        {"sm_count": st.integers(1, 4), "lanes": st.integers(0, 3)}
    ),
    limits=st.fixed_dictionaries(
        {
            "max_batch_tokens": st.sampled_from([1, 2, 16, 17, 100]),
            "max_seq_len": st.sampled_from([0, 64, 1000]),
            "max_batch_size": st.sampled_from([0, 1, 3, 33, 256, 257]),
        }
    ),
)
def test_the_tool_and_the_package_agree_on_sizes_and_refusals(
    coverage: ModuleType,
    config: dict[str, Any],
    levers: dict[str, Any],
    target: dict[str, int],
    limits: dict[str, int],
) -> None:
    schema = SCHEMA.schema
    model = coverage.ModelConfig(**config)
    fields = {field.name: getattr(model, field.name) for field in schema.config}
    found: object
    try:
        sizes = sizes_of(coverage, (config, levers, target, limits))
        found = (sizes.as_dict(), sizes.trimmed)
    except coverage.SizeError:
        found = None
    expected: object
    try:
        arena = size_arena(
            schema, complete_inputs(schema, fields, limits, levers, target)
        )
        expected = ({each.name: each.nbytes for each in arena.buffers}, arena.trimmed)
    except SizingError:
        expected = None
    assert found == expected


@pytest.mark.parametrize(
    ("entry", "width", "heads", "tokens", "message"),
    [
        (
            "signed",
            9,
            1,
            80,
            "signed.second: begins at byte 20, inside what ends at byte 64",
        ),
        (
            "moved",
            9,
            10,
            1,
            "moved.second: begins at byte 63, inside what ends at byte 64",
        ),
        (
            "gated",
            30,
            3,
            1,
            "gated.second: begins at byte 10, inside what ends at byte 30",
        ),
        (
            "gated",
            30,
            1,
            1,
            "gated.third: begins at byte 20, inside what ends at byte 30",
        ),
        (
            "shrunk",
            9,
            10,
            1,
            "shrunk.third: begins at byte 3, inside what ends at byte 4",
        ),
        ("divided", 9, 10, 1, "ratio: 100 // (n + 1): 100 // 0 is undefined"),
        ("doubled", 9, 10, 1, "doubled: twice(spare): -2 is negative"),
        ("squared", 9, 10, 1, "squared: spare: -1 is negative"),
        ("placed", 9, 10, 1, "placed.side: spare: -1 is negative"),
    ],
)
def test_sizes_that_do_not_exist_are_refused(
    folder: Path, entry: str, width: int, heads: int, tokens: int, message: str
) -> None:
    package = importlib.import_module("corners_arena")
    config = package.ModelConfig(entry=entry, width=width, heads=heads)
    with pytest.raises(package.SizeError) as error:
        package.BufferSizes.from_config(config, max_batch_tokens=tokens)
    assert str(error.value) == message


def test_the_tool_and_the_package_refuse_the_same(folder: Path) -> None:
    package = importlib.import_module("corners_arena")
    schema = unproven(CORNERS).schema
    refused = 0
    for entry, width, heads, tokens in product(
        [buffer.name for buffer in schema.buffers], (0, 9, 30), (0, 3, 10), (1, 80)
    ):
        fields = {"entry": entry, "width": width, "heads": heads}
        limits = {"max_batch_tokens": tokens}
        found: object = None
        try:
            config = package.ModelConfig(**fields)
            found = package.BufferSizes.from_config(config, **limits).as_dict()
        except package.SizeError:
            refused += 1
        expected: object = None
        try:
            inputs = complete_inputs(schema, fields, limits, {}, {})
            sizes = size_arena(schema, inputs).buffers
            expected = {each.name: each.nbytes for each in sizes}
        except SizingError:
            pass
        assert found == expected, (fields, tokens)
    assert refused > 20


@pytest.mark.parametrize(
    ("entry", "heads"),
    [("seldom", 2), ("seldom", 3), ("shared", 0), ("shared", 1)],
)
def test_a_package_of_corners_checks_itself(
    folder: Path, entry: str, heads: int
) -> None:
    package = importlib.import_module("corners_arena")
    config = package.ModelConfig(entry=entry, width=9, heads=heads)
    report = package.selfcheck(config, max_batch_tokens=4, levers=package.Levers())
    assert report.failures == ()


def test_a_view_without_an_active_shape_is_a_row_of_elements(folder: Path) -> None:
    package = importlib.import_module("corners_arena")
    for heads, shape in ((2, (2,)), (3, (9, 3))):
        config = package.ModelConfig(entry="seldom", width=9, heads=heads)
        with package.CornersArena(config, max_batch_tokens=4) as arena:
            assert arena.tensor("seldom").shape == shape
            assert arena.tensor("seldom").dtype == "i32"


@settings(max_examples=300, deadline=None)
@given(
    text=st.one_of(
        st.sampled_from(
            [
                "",
                "1",
                "yes",
                "0",
                "auto",
                " AUTO ",
                "off",
                "17",
                "+3",
                "low",
                "HIGH",
                "flash",
            ]
        ),
        st.text(max_size=5),
    )
)
def test_the_tool_and_the_package_read_levers_alike(
    coverage: ModuleType, text: str
) -> None:
    for lever in SCHEMA.schema.levers:
        emitted = getattr(coverage.Levers.from_env({lever.variable: text}), lever.name)
        found = read_lever(lever, text)
        assert (type(found), found) == (type(emitted), emitted), lever.name


SCHEMA = checked(COVERAGE)


def test_the_coverage_schema_reads_all_but_one_field_and_one_let() -> None:
    assert [each.message for each in SCHEMA.warnings] == [
        "the config field `padding` is read nowhere",
        "`inner` never reads its `idle`",
        # The gate of `extra`, two layouts further in, depends on the rows.
        "a pass of fewer tokens may need more of `outer_block` than it has: it cannot "
        "be shown to grow with `max_batch_tokens`",
    ]


def test_emitting_twice_gives_the_same_bytes(folder: Path) -> None:
    files: Mapping[str, str] = emit(SCHEMA, "schema.yaml")
    for name, text in files.items():
        written = (folder / "coverage_arena" / name).read_text(encoding="utf-8")
        assert written == text


def test_what_regions_before_a_fixed_place_read_is_not_imported() -> None:
    text = """\
arena: {class: Arena, package: arena, label: arena, doc: An arena.}
limits:
  max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
constants:
  PIECE: {value: 32, doc: Bytes of the head.}
  PLACE: {value: 64, doc: Where the tail begins.}
buffers:
  block:
    doc: A head, and a tail at a place behind it.
    regions:
      head: {bytes: PIECE, doc: The head.}
      tail: {bytes: 8, at: PLACE, doc: The tail.}
"""
    schema, found = read_schema(Text("s.yaml", text.encode()))
    sizes = emit(check_source(schema, found, None), "s.yaml")["sizes.py"]
    imported = re.search(r"^from \.constants import (.*)$", sizes, re.MULTILINE)
    assert imported is not None and imported[1] == "PLACE"
    assert "block = PLACE + 8\n" in sizes


def test_levers_and_target_constants_may_be_named_as_locals_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """\
arena: {class: Arena, package: locals_arena, label: arena, doc: An arena.}
limits:
  max_batch_tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
target:
  rows: {default: 3, minimum: 1, doc: Rows of a tile.}
levers:
  check_int: {variable: A, type: bool, on_when: ["1"], default: false, doc: A switch.}
  config: {variable: B, type: bool, on_when: ["1"], default: false, doc: A switch.}
  sizes: {variable: C, type: bool, on_when: ["1"], default: false, doc: A switch.}
buffers:
  one: {doc: The first., when: check_int, bytes: M}
  two: {doc: The second., when: config, bytes: 16 * rows}
  three: {doc: The third., bytes: "32"}
trims:
  third: {doc: A trim., when: sizes, buffers: [three]}
"""
    schema, found = read_schema(Text("s.yaml", text.encode()))
    for path, module in emit(check_source(schema, found, None), "s.yaml").items():
        file = tmp_path / "locals_arena" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("locals_arena")
    levers = package.Levers(config=True, sizes=True)
    arguments = {"max_batch_tokens": 4, "levers": levers}
    sizes = package.BufferSizes.from_config(package.ModelConfig(), **arguments)
    assert sizes.as_dict() == {"one": 0, "two": 48, "three": 0}
    assert sizes.trimmed == 32
    report = package.selfcheck(package.ModelConfig(), **arguments)
    assert report.ok, str(report)
