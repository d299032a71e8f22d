"""Sizes whose terms are computed once, and only where a gate would compute them.

The emitted text of small schemas is written out by hand here. What must not be computed
is tried for all small inputs, against the tool, which shares nothing.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from arenagen.compile import Text, check_source, emit, read_schema
from arenagen.disk import write
from arenagen.load import load
from arenagen.model import Schema
from arenagen.sizing import SizingError, complete_inputs, size_arena

HEAD = """\
arena: {class: SharedArena, package: shared_arena, label: x, doc: Shared terms.}
limits:
  tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}
  slots: {minimum: 0, doc: Slots of a batch.}
config:
  width: {doc: A width.}
  heads: {doc: Heads.}
  experts: {doc: Experts.}
"""


def emitted(body: str) -> tuple[Schema, dict[str, str]]:
    """A schema of the head and a body, and its files."""
    schema, warnings = read_schema(Text("shared.yaml", (HEAD + body).encode()))
    return schema, emit(check_source(schema, warnings, None), "shared.yaml")


def calculation(body: str) -> str:
    """What stands between the checks of the limits and the result, without indent."""
    source = emitted(body)[1]["sizes.py"]
    _, _, rest = source.partition("levers = Levers.from_env()\n\n")
    lines = rest.partition("        sizes = cls(\n")[0].rstrip().split("\n")
    return "\n".join(line.removeprefix("        ") for line in lines) + "\n"


def check(body: str, expected: str) -> None:
    assert calculation(body) == expected.removeprefix("\n")


def test_equal_formulas_and_common_factors_are_computed_once() -> None:
    check(
        """
buffers:
  hidden: {doc: A., dtype: bf16, shape: [M, width]}
  residual: {doc: A., dtype: bf16, shape: [M, width]}
  scores: {doc: A., dtype: f32, shape: [width, M]}
""",
        """
width = config.width
M = tokens

M_width = M * width
hidden = M_width * 2
residual = hidden
scores = M_width * 4
""",
    )


def test_the_factors_that_most_buffers_share_come_first() -> None:
    check(
        """
buffers:
  a: {doc: A., dtype: bf16, shape: [M, width]}
  b: {doc: B., dtype: bf16, shape: [M, heads, width]}
  c: {doc: C., dtype: bf16, shape: [M, experts]}
  d: {doc: D., dtype: f64, shape: [M, 2, heads]}
""",
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens

M_x2 = M * 2
M_width_x2 = M_x2 * width
a = M_width_x2
b = M_width_x2 * heads
c = M_x2 * experts
d = M * heads * 16
""",
    )


def test_one_branch_holds_all_that_a_gate_and_its_negation_decide_about() -> None:
    check(
        """
buffers:
  a: {doc: A., when: experts > 0, otherwise: "256", dtype: bf16, shape: [M, experts]}
  b: {doc: B., dtype: bf16, shape: [M, width]}
  c: {doc: C., when: experts == 0, dtype: bf16, shape: [M, heads]}
  d: {doc: D., when: not experts == 0, dtype: f32, shape: [M, experts]}
""",
        """
width = config.width
experts = config.experts
M = tokens

if experts > 0:
    M_experts = M * experts
    a = M_experts * 2
    c = 0
    d = M_experts * 4
else:
    heads = config.heads
    a = 256
    c = M * heads * 2
    d = 0
b = M * width * 2
""",
    )


def test_uses_under_a_gate_that_others_have_are_computed_in_its_branch() -> None:
    check(
        """
buffers:
  a:
    doc: A.
    dtype: bf16
    uses:
      wide: {doc: W., shape: [M, width]}
      routed: {doc: R., when: experts > 0, shape: [M, experts]}
  b:
    doc: B.
    dtype: bf16
    min_bytes: 16
    uses:
      routed: {doc: R., when: experts > 0, shape: [M, experts]}
      kept:
        doc: K.
        when: heads > 0
        regions:
          x: {doc: X., shape: [M, heads]}
          y: {doc: Y., shape: [M, heads], align: 64}
      lone: {doc: L., when: slots > 0, shape: [slots]}
  c:
    doc: C.
    dtype: bf16
    uses:
      routed: {doc: R., when: experts > 0, shape: [M, experts]}
      dense: {doc: D., when: experts == 0, shape: [M, width]}
""",
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens

M_width_x2 = M * width * 2
if experts > 0:
    a_routed = M * experts * 2
    c = a_routed
else:
    a_routed = 0
    c = M_width_x2
a = max(
    # wide
    M_width_x2,
    # routed
    a_routed,
)
if heads > 0:
    b_kept_x = M * heads * 2
    b_kept = (b_kept_x + 63) // 64 * 64 + b_kept_x
else:
    b_kept = 0
b = max(
    # routed
    a_routed,
    # kept
    b_kept,
    # lone
    slots * 2 if slots > 0 else 0,
    16,
)
""",
    )


def test_a_let_moves_where_it_is_read_unless_it_may_have_no_value() -> None:
    check(
        """
let:
  routed: {value: experts * heads, doc: Read under one gate.}
  both: {value: width + heads, doc: Read under two.}
  ratio: {value: 100 // slots, doc: It may have no value.}
buffers:
  a: {doc: A., when: experts > 0, bytes: M * routed * both}
  b: {doc: B., when: heads > 0, bytes: M * both + ratio}
""",
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens
both = width + heads
ratio = floordiv(100, slots, "ratio: 100 // slots")

if experts > 0:
    routed = experts * heads
    a = M * routed * both
else:
    a = 0
b = M * both + ratio if heads > 0 else 0
""",
    )


def test_a_conditional_let_computes_one_side() -> None:
    body = """
let:
  auto: {value: "max(width, 1) * experts * 3", doc: Read on one side.}
  split:
    value: >-
      max(width, 1) * heads if heads > 0
      else auto + max(slots // max(experts, 1), 1) * experts * width
    doc: Sides.
buffers:
  a: {doc: A., bytes: split * M}
trims:
  huge: {doc: Too many., when: split * M > 4096, buffers: [a]}
  wide: {doc: Too wide., when: split * M > 8192 and width > 9, buffers: [a]}
"""
    check(
        body,
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens
if heads > 0:
    split = max(width, 1) * heads
else:
    auto = max(width, 1) * experts * 3
    split = auto + max(slots // max(experts, 1), 1) * experts * width

split_M = split * M
a = split_M
""",
    )
    source = emitted(body)[1]["sizes.py"]
    assert "        # Too many.\n        if split_M > 4096:\n" in source
    assert "        # Too wide.\n        if split_M > 8192 and width > 9:\n" in source


def test_no_division_leaves_the_gate_that_makes_it_possible() -> None:
    check(
        """
buffers:
  a: {doc: A., when: heads > 0, bytes: M * (width // heads)}
  b: {doc: B., when: heads > 0 and width > 1, bytes: width // heads + M}
  c: {doc: C., when: experts == 0 or heads > 0 and width // heads > 2, bytes: M + 64}
""",
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens

a = M * (width // heads) if heads > 0 else 0
b = width // heads + M if heads > 0 and width > 1 else 0
c = M + 64 if experts == 0 or (heads > 0 and width // heads > 2) else 0
""",
    )


def test_no_division_leaves_the_side_of_a_conditional_that_makes_it_possible() -> None:
    check(
        """
buffers:
  a: {doc: A., when: slots > 0, bytes: (M // slots + 1) * (M // slots + 1)}
  b: {doc: B., bytes: (M // slots if slots > 0 else width * heads) + width * heads}
  c: {doc: C., bytes: "(M // slots if slots > 0 else 1) * max(1, M)"}
""",
        """
width = config.width
heads = config.heads
M = tokens

if slots > 0:
    M_over_slots_plus_1 = M // slots + 1
    a = M_over_slots_plus_1 * M_over_slots_plus_1
else:
    a = 0
width_heads = width * heads
b = (M // slots if slots > 0 else width_heads) + width_heads
c = (M // slots if slots > 0 else 1) * max(1, M)
""",
    )


def test_what_may_have_no_value_stays_on_its_side() -> None:
    check(
        """
constants: {STEPS: {value: [8, 64], doc: Steps.}}
buffers:
  a:
    doc: A.
    when: slots > 0
    otherwise: width // heads
    bytes: "next_in(STEPS, width)"
  b:
    doc: B.
    when: experts > 0
    min_bytes: width // heads
    bytes: "next_in(STEPS, width)"
""",
        """
width = config.width
heads = config.heads
experts = config.experts

if slots > 0:
    a = next_in(STEPS, width, "a: next_in(STEPS, width)")
else:
    a = floordiv(width, heads, "a: width // heads")
if experts > 0:
    b = max(
        next_in(STEPS, width, "b: next_in(STEPS, width)"),
        floordiv(width, heads, "b: width // heads"),
    )
else:
    b = 0
""",
    )


def test_what_may_have_no_value_is_not_computed_early() -> None:
    check(
        """
functions:
  part: {parameters: {x: {doc: X.}}, value: x // heads, doc: A part.}
buffers:
  a: {doc: A., bytes: "1 if width > 3 else part(M)"}
  b: {doc: B., bytes: width // experts}
  c: {doc: C., bytes: part(M)}
  d: {doc: D., bytes: part(M) + 1}
  e: {doc: E., when: slots > 0, bytes: part(M)}
""",
        """
width = config.width
experts = config.experts
M = tokens

a = 1 if width > 3 else part(config, M)
b = floordiv(width, experts, "b: width // experts")
part_M = part(config, M)
c = part_M
d = part_M + 1
e = part_M if slots > 0 else 0
""",
    )


def test_locals_are_called_by_what_they_hold() -> None:
    check(
        """
constants:
  BLOCK: {value: 128, doc: Elements of a block.}
buffers:
  a: {doc: A., bytes: "cdiv(width, BLOCK) + M"}
  b: {doc: B., bytes: "M * cdiv(width, BLOCK)"}
  c: {doc: C., bytes: "align(M, 64) * heads"}
  d: {doc: D., bytes: "align(M, 64) + max(width, heads)"}
  e: {doc: E., bytes: "align(M, 64) + M % 7 * max(width, heads)"}
  f: {doc: F., bytes: "min(M * 512, heads * experts * 99, max(slots, M, 1)) + 1"}
  g: {doc: G., bytes: "min(M * 512, heads * experts * 99, max(slots, M, 1)) * M"}
""",
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens

cdiv_width_block = (width + BLOCK - 1) // BLOCK
a = cdiv_width_block + M
b = M * cdiv_width_block
align_M_64 = (M + 63) // 64 * 64
c = align_M_64 * heads
max_width_heads = max(width, heads)
d = align_M_64 + max_width_heads
e = align_M_64 + M % 7 * max_width_heads
f_part = min(M * 512, heads * experts * 99, max(slots, M, 1))
f = f_part + 1
g = f_part * M
""",
    )


def test_a_condition_of_several_formulas_is_a_local_too() -> None:
    check(
        """
let:
  rows: {value: M if heads > 0 and slots > 1 else 1, doc: Rows.}
  columns: {value: width if heads > 0 and slots > 1 else 2, doc: Columns.}
buffers:
  a: {doc: A., bytes: rows * columns}
  b: {doc: B., bytes: "max(M if not (heads > 0 and slots > 1) else 1, columns)"}
""",
        """
width = config.width
heads = config.heads
M = tokens
heads_above_0_and_slots_above_1 = heads > 0 and slots > 1
rows = M if heads_above_0_and_slots_above_1 else 1
columns = width if heads_above_0_and_slots_above_1 else 2

a = rows * columns
b = max(M if not heads_above_0_and_slots_above_1 else 1, columns)
""",
    )


def test_a_size_that_is_a_part_of_another_by_chance_has_a_local() -> None:
    check(
        """
buffers:
  token_ids: {doc: T., dtype: i32, shape: [M]}
  hidden: {doc: H., dtype: bf16, shape: [M, width, 2]}
  residual: {doc: R., dtype: bf16, shape: [M, width, 2]}
  positions: {doc: P., when: slots > 0, dtype: i32, shape: [M]}
""",
        """
width = config.width
M = tokens

M_x4 = M * 4
token_ids = M_x4
hidden = M_x4 * width
residual = hidden
positions = M_x4 if slots > 0 else 0
""",
    )


def test_the_size_of_a_use_that_is_a_part_of_another_has_a_local() -> None:
    check(
        """
buffers:
  a:
    doc: A.
    dtype: bf16
    uses:
      kept:
        doc: K.
        regions:
          x: {doc: X., shape: [M, heads]}
          y: {doc: Y., shape: [M, heads], align: 64}
      routed: {doc: R., when: experts > 0, shape: [M, experts]}
  b: {doc: B., when: experts > 0, dtype: bf16, shape: [M, experts, width]}
  c: {doc: C., dtype: bf16, shape: [M, heads, width]}
""",
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens

M_x2 = M * 2
M_heads_x2 = M_x2 * heads
if experts > 0:
    M_experts_x2 = M_x2 * experts
    a_routed = M_experts_x2
    b = M_experts_x2 * width
else:
    a_routed = 0
    b = 0
a = max(
    # kept
    (M_heads_x2 + 63) // 64 * 64 + M_heads_x2,
    # routed
    a_routed,
)
c = M_heads_x2 * width
""",
    )


def test_the_largest_of_uses_that_is_a_part_of_another_keeps_its_comments() -> None:
    check(
        """
buffers:
  a:
    doc: A.
    dtype: u8
    uses:
      long: {doc: L., shape: [M]}
      wide: {doc: W., shape: [width]}
  b: {doc: B., bytes: "max(M, width) * 2"}
  c: {doc: C., bytes: "max(M * 512, heads * experts * 99, max(slots, M, 1))"}
  d: {doc: D., bytes: "max(M * 512, heads * experts * 99, max(slots, M, 1)) * M"}
""",
        """
width = config.width
heads = config.heads
experts = config.experts
M = tokens

max_M_width = max(
    # long
    M,
    # wide
    width,
)
a = max_M_width
b = max_M_width * 2
part = max(M * 512, heads * experts * 99, max(slots, M, 1))
c = part
d = part * M
""",
    )


def test_a_bound_by_a_number_is_called_one() -> None:
    check(
        """
buffers:
  a: {doc: A., bytes: "max(heads, 1) + min(8, M) + max(M, 1, width)"}
  b: {doc: B., bytes: "max(heads, 1) * min(8, M) * max(M, 1, width)"}
""",
        """
width = config.width
heads = config.heads
M = tokens

at_least_1_heads = max(heads, 1)
at_most_8_M = min(8, M)
max_M_1_width = max(M, 1, width)
a = at_least_1_heads + at_most_8_M + max_M_1_width
b = at_least_1_heads * at_most_8_M * max_M_1_width
""",
    )


def test_columns_without_definitions_begin_with_the_sizes() -> None:
    source = emitted("buffers:\n  a: {doc: A., bytes: 64}\n")[1]["sweep_columns.py"]
    assert 'trims remove."""\n    a = 64\n\n    return ' in source


def test_locals_leave_the_names_of_a_schema_alone() -> None:
    check(
        """
let:
  M_width: {value: M + width, doc: A name that a local would have.}
buffers:
  a: {doc: A., bytes: M * width + M_width}
  b: {doc: B., bytes: M * width * 2}
""",
        """
width = config.width
M = tokens
M_width = M + width

M_width_2 = M * width
a = M_width_2 + M_width
b = M_width_2 * 2
""",
    )


# What may have the name that a local for M * width_bytes would have, each worth 7, and
# how a formula reads it.
NAMESAKES = {
    "limit": ("limits", {"M_width_bytes": {}}, "M_width_bytes"),
    "target": ("target", {"M_width_bytes": {"default": 7}}, "M_width_bytes"),
    "field": ("config", {"M_width_bytes": {}}, "M_width_bytes"),
    "in another case": ("config", {"m_WIDTH_bytes": {}}, "m_WIDTH_bytes"),
    "lever": (
        "levers",
        {
            "M_width_bytes": {
                "variable": "NAMESAKE",
                "type": "int",
                "default": 7,
                "clamp": [1, 9],
            }
        },
        "M_width_bytes",
    ),
    "constant": ("constants", {"M_width_bytes": {"value": 7}}, "M_width_bytes"),
    "let": ("let", {"M_width_bytes": {"value": "width_bytes + 4"}}, "M_width_bytes"),
    "function": (
        "functions",
        {"M_width_bytes": {"parameters": {"x": {"doc": "X."}}, "value": "x + 4"}},
        "M_width_bytes(width_bytes)",
    ),
    "layout": (
        "layouts",
        {
            "M_width": {
                "parameters": {"x": {"doc": "X."}},
                "regions": {"part_of": {"bytes": "x + 4", "doc": "One."}},
            }
        },
        "M_width(width_bytes)",
    ),
    "buffer": ("buffers", {"M_width_bytes": {"bytes": 7}}, "7"),
}


@pytest.mark.parametrize("kind", NAMESAKES)
def test_no_local_hides_what_a_schema_names(kind: str, folder: Path) -> None:
    section, entries, read = NAMESAKES[kind]
    name = f"namesake_{[*NAMESAKES].index(kind)}"
    whole: dict[str, dict[str, object]] = {
        "arena": {"class": "NamesakeArena", "package": name, "label": "x"},
        "limits": {"tokens": {"symbol": "M", "tokens": True, "doc": "Tokens."}},
        "config": {"width_bytes": {"doc": "A width."}},
        "buffers": {
            "a": {"doc": "A.", "bytes": f"M * width_bytes + {read}"},
            "b": {"doc": "B.", "bytes": "M * width_bytes * 2"},
        },
    }
    whole["arena"]["doc"] = "One name for two things."
    more = {each: {"doc": "The namesake.", **keys} for each, keys in entries.items()}
    whole[section] = {**whole.get(section, {}), **more}
    text = yaml.safe_dump(whole, sort_keys=False)
    schema, warnings = read_schema(Text("namesake.yaml", text.encode()))
    files = emit(check_source(schema, warnings, None), "namesake.yaml")
    assert "M_width_bytes_2 = M * width_bytes\n" in files["sizes.py"]
    write(folder / name, files)
    importlib.invalidate_caches()
    package = importlib.import_module(name)
    given = {"tokens": 5}, {"width_bytes": 3}
    for values, owner in zip(given, ("limits", "config"), strict=True):
        values.update(dict.fromkeys(entries if section == owner else (), 7))
    limits, fields = given
    sizes = package.BufferSizes.from_config(package.ModelConfig(**fields), **limits)
    assert (sizes.a, sizes.b) == (22, 30)
    sweep = importlib.import_module(f"{name}.sweep")
    arrays = {each: np.array([value]) for each, value in limits.items()}
    columns = sweep.sweep_sizes(package.ModelConfig(**fields), **arrays).columns
    assert (int(columns["a"][0]), int(columns["b"][0])) == (22, 30)


# Formulas that share terms, some without a value where a divisor is 0.
TERMS = (
    "M * width",
    "M * width * 2",
    "width * heads * M",
    "heads * 2 * M",
    "M // heads",
    "(M // slots) * width",
    "(M // heads if heads > 0 else width)",
    "(1 if slots > 0 and M // slots > 1 else M // 2)",
    "max(M // max(heads, 1), width)",
    "share",
    "ratio",
    "pick * M",
    "double(width)",
    "third(M)",
    "M - width",
    "cdiv(width, 4)",
    "64",
)
GATES = (
    "heads > 0",
    "heads == 0",
    "heads >= 1",
    "not heads > 0",
    "slots > 0",
    "0 < slots and heads > 0",
    "slots != 0 or M // heads > 2",
    "heads > 0 and M // heads > 1",
    "gated",
    "not gated",
)
SHARED = """\
  gated: {type: bool, doc: A switch.}
let:
  share: {value: width * heads + 1, doc: Total.}
  ratio: {value: width // experts, doc: Undefined without experts.}
  pick: {value: M // heads if heads > 0 else share, doc: Either.}
functions:
  double: {parameters: {x: {doc: X.}}, value: x * 2, doc: Twice.}
  third: {parameters: {x: {doc: X.}}, value: x // heads, doc: A part.}
buffers:
"""


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Buffers over few formulas and gates, so that they share many."""

    def some(name: str, options: tuple[str, ...]) -> str:
        return draw(st.sampled_from(("", *(f"{name}: {each}, " for each in options))))

    def formula() -> str:
        parts = draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=2))
        return '"' + draw(st.sampled_from((" + ", " * "))).join(parts) + '"'

    def extent() -> str:
        kind = draw(st.sampled_from(("bytes", "shape", "regions")))
        if kind == "bytes":
            return f"bytes: {formula()}"
        if kind == "shape":
            return f"dtype: bf16, shape: [{formula()}, {formula()}]"
        regions = ", ".join(
            f"r{place}: {{doc: R., {some('when', GATES)}{some('align', ('16',))}"
            f"bytes: {formula()}}}"
            for place in range(draw(st.integers(2, 3)))
        )
        return f"dtype: u8, regions: {{{regions}}}"

    entries = []
    for place in range(draw(st.integers(3, 6))):
        when = some("when", GATES)
        other = f"otherwise: {formula()}, " if when and draw(st.booleans()) else ""
        floor = f"min_bytes: {formula()}, " if draw(st.booleans()) else ""
        whole = extent()
        if draw(st.booleans()):
            uses = ", ".join(
                f"u{number}: {{doc: U., {some('when', GATES)}{extent()}}}"
                for number in range(draw(st.integers(1, 3)))
            )
            whole = f"dtype: u8, uses: {{{uses}}}"
        entries.append(f"  b{place}: {{doc: B., {when}{other}{floor}{whole}}}\n")
    return SHARED + "".join(entries)


def package_of(body: str, folder: Path) -> tuple[Schema, ModuleType]:
    name = f"shared_{sha256(body.encode()).hexdigest()[:12]}"
    schema = load(HEAD + body, "shared.yaml")
    # Not checked: the checks refuse what surely has no value for the smallest inputs.
    write(folder / name, emit(check_source(schema, (), None), "shared.yaml"))
    importlib.invalidate_caches()
    return schema, importlib.import_module(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("packages")
    sys.path.insert(0, str(path))
    yield path
    sys.path.remove(str(path))


def test_nothing_is_computed_that_a_gate_leaves_out(folder: Path) -> None:
    existing: list[bool] = []

    @settings(
        max_examples=24,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(bodies())
    def each(body: str) -> None:
        schema, package = package_of(body, folder)
        check_locals((folder / package.__name__ / "sizes.py").read_text())
        for M, slots, width, heads, experts, gated in product(
            (1, 5), (0, 2), (0, 3), (0, 2), (0, 1), (False, True)
        ):
            fields = {"width": width, "heads": heads, "experts": experts}
            limits = {"tokens": M, "slots": slots}
            found: object = None
            try:
                config = package.ModelConfig(**fields, gated=gated)
                found = package.BufferSizes.from_config(config, **limits).as_dict()
            except package.SizeError:
                pass
            expected: object = None
            try:
                config = {**fields, "gated": gated}
                inputs = complete_inputs(schema, config, limits, {}, {})
                sizes = size_arena(schema, inputs).buffers
                expected = {each.name: each.nbytes for each in sizes}
            except SizingError:
                pass
            assert found == expected, (body, fields, limits, gated)
            existing.append(found is not None)

    each()
    assert 0.1 < sum(existing) / len(existing) < 0.9


def check_locals(source: str) -> None:
    """Every local of the calculation is read somewhere."""
    (function,) = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "from_config"
    )
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    assert stored <= {node.id for node in names if isinstance(node.ctx, ast.Load)}
