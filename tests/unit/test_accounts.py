"""`arenagen sizes --by`: by hand, against the oracle, and in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings

from arenagen.accounts import Account, account, by_gate, by_limit
from arenagen.cli import cli
from arenagen.compile import Text, read_schema
from arenagen.sizing import Inputs, complete_inputs, size_arena
from expected_configs import EXPECTED
from oracle import metrale_sizes
from strategies import configs, limits

ROOT = Path(__file__).resolve().parents[2]
METRALE, _ = read_schema(
    Text("metrale.yaml", (ROOT / "schema/metrale.yaml").read_bytes())
)
EMPTY: dict[str, Any] = {"int": 0, "bool": False, "str": "", "list": ()}
LIMITS = {
    "max_batch_tokens": 8192,
    "max_seq_len": 65536,
    "kv_block_size": 16,
    "max_batch_size": 32,
}

SMALL = """\
arena:
  {class: Arena, package: small, label: arena, doc: An arena., families: table.yaml}
limits:
  max_tokens: {symbol: M, tokens: true, minimum: 1, default: 8, doc: Tokens.}
  max_batch: {minimum: 4, default: 4, doc: Sequences.}
config:
  width: {doc: Width of a row.}
  kind: {type: str, doc: Family.}
groups:
  all: {method: zero_all, doc: Everything.}
  some: {method: zero_some, doc: Some of it.}
buffers:
  rows: {doc: Rows., bytes: M * width, zero: [all, some]}
  floor: {doc: A floor., bytes: M, min_bytes: max_batch * 100, zero: [all]}
  fixed: {doc: Fixed., bytes: width}
  both: {doc: Both., bytes: M * max_batch}
  capped: {doc: At most four., bytes: "min(M, 4)"}
  gated: {doc: Gated., when: width > 9, otherwise: 7, bytes: M * 1000}
  dozens: {doc: Dozens., when: width > 0, bytes: 12 // width}
  shared:
    doc: Shared.
    uses:
      few: {bytes: 10, doc: Few.}
      many: {bytes: M * 5, doc: Many.}
      none: {when: kind == 'wide', bytes: M * 1000, doc: None.}
trims:
  flat: {doc: Flat., when: kind == 'flat', buffers: [rows, gated]}
  round: {doc: Round., when: kind == 'round', buffers: [rows]}
"""


SCHEMA, _ = read_schema(Text("small.yaml", SMALL.encode()))


def inputs(width: int = 3, kind: str = "", **limits: int) -> Inputs:
    return complete_inputs(SCHEMA, {"width": width, "kind": kind}, limits, {}, {})


def rows(found: Account, *columns: str) -> list[tuple[Any, ...]]:
    places = [found.columns.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in found.rows]


# By limit.


def test_bytes_by_the_limits_of_the_formula_in_use() -> None:
    found = account(SCHEMA, inputs(), "limit")
    assert rows(found, "limits", "bytes", "buffers") == [
        # The floor of 4 * 100 bytes sets the size, not the tokens.
        (("max_batch",), 400, ("floor",)),
        # 8 * 3, min(8, 4), and 8 * 5 of the use that wins.
        (("max_tokens",), 24 + 4 + 40, ("rows", "capped", "shared")),
        (("max_tokens", "max_batch"), 32, ("both",)),
        # The width, the placeholder of 7 bytes, and 12 // 3.
        ((), 3 + 7 + 4, ("fixed", "gated", "dozens")),
    ]
    assert found.note == "514 bytes in all"


def test_half_a_limit_is_worked_out() -> None:
    found = account(SCHEMA, inputs(max_batch=9), "limit")
    # 4 * 3, min(4, 4), and 4 * 5; nothing else moves with the tokens.
    assert rows(found, "limits", "half max_tokens", "half max_batch") == [
        (("max_batch",), 900, 400),
        (("max_tokens", "max_batch"), 36, 32),
        (("max_tokens",), 12 + 4 + 20, 68),
        ((), 14, 14),
    ]


def test_another_use_may_win_at_half_the_limit() -> None:
    found = account(SCHEMA, inputs(max_tokens=3), "limit")
    # 15 bytes for 3 tokens; for 1 the 10 bytes of the other use.
    shared = next(row for row in found.rows if "shared" in str(row[-1]))
    assert shared[1] == 3 * 3 + 3 + 15
    assert shared[found.columns.index("half max_tokens")] == 1 * 3 + 1 + 10


def test_a_limit_at_its_minimum_has_no_half() -> None:
    found = account(SCHEMA, inputs(max_tokens=1, max_batch=4), "limit")
    for column in ("half max_tokens", "half max_batch"):
        assert {half for (half,) in rows(found, column)} == {None}
    # 5 is halved to the minimum, 4, not to 2.
    found = account(SCHEMA, inputs(max_batch=5), "limit")
    assert rows(found, "half max_batch")[0] == (400,)


def test_half_a_limit_may_have_no_sizes() -> None:
    text = SMALL.replace("bytes: M * max_batch}", "bytes: 8 // (max_batch // 8)}")
    schema, _ = read_schema(Text("small.yaml", text.encode()))
    given = complete_inputs(schema, {"width": 3, "kind": ""}, {"max_batch": 8}, {}, {})
    found = account(schema, given, "limit")
    assert {half for (half,) in rows(found, "half max_batch")} == {None}
    assert {half for (half,) in rows(found, "half max_tokens")} != {None}


@settings(max_examples=40, deadline=None)
@given(configs(), limits())
def test_the_buckets_of_the_limits_make_the_total(
    config: dict[str, Any], limits: dict[str, int]
) -> None:
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()}
    given = complete_inputs(METRALE, fields, limits, {}, {})
    found = account(METRALE, given, "limit")
    expected = metrale_sizes(config, **limits)
    names: list[str] = []
    for limits_read, nbytes, *halves, buffers in found.rows:
        assert isinstance(buffers, tuple) and isinstance(limits_read, tuple)
        assert nbytes == sum(expected[name] for name in buffers)
        names += buffers
        for limit, half in zip(METRALE.limits, halves, strict=True):
            value = limits[limit.name]
            smaller = {**limits, limit.name: max(limit.minimum, value // 2)}
            if smaller == limits:
                assert half is None
                continue
            there = metrale_sizes(config, **smaller)
            assert half == sum(there[name] for name in buffers)
            # No buffer moves with a limit that its formula does not read.
            if limit.name not in limits_read and limit.name != "kv_block_size":
                assert all(there[name] <= expected[name] for name in buffers)
    assert sorted(names) == sorted(name for name, size in expected.items() if size)


def test_the_bytes_of_a_real_model_by_limit() -> None:
    given = EXPECTED["Qwen3-Next-80B-A3B-Thinking"]
    fields = {each.name: EMPTY[each.type] for each in METRALE.config} | {
        k: tuple(v) if isinstance(v, list) else v for k, v in given.items()
    }
    found = account(METRALE, complete_inputs(METRALE, fields, LIMITS, {}, {}), "limit")
    table = {row[0]: row for row in found.rows}
    # 160 rows of the vocabulary in BF16, whatever of 8192 tokens or 32 sequences.
    logits = table["max_batch_tokens", "max_batch_size"]
    assert logits[1:] == (*[160 * 151936 * 2] * 5, ("logits",))
    # 48 slots of 256 outputs, a maximum and a sum; the policy never asks the limit.
    assert table["max_batch_size",][1] == 48 * 258 * 4
    # 32768 bytes, and 160 rows of 24 bytes and 4097 blocks; half is 2049 blocks.
    scratch = table["max_seq_len", "kv_block_size"]
    assert scratch[1] == 32768 + 160 * (24 + 4 * 4097)
    assert scratch[found.columns.index("half max_seq_len")] == (
        32768 + 160 * (24 + 4 * 2049)
    )


# By gate.


def test_bytes_behind_each_gate() -> None:
    found = account(SCHEMA, inputs(), "gate")
    assert rows(found, "gate", "is", "bytes", "if true", "if false") == [
        ("no gate", None, 24 + 400 + 3 + 32 + 4 + 40, None, None),
        ("width > 9", "false", 7, 8000, 7),
        ("width > 0", "true", 4, 4, 0),
        ('trim flat: kind == "flat"', "false", 24 + 7, 0, 24 + 7),
        ('trim round: kind == "round"', "false", 24, 0, 24),
    ]
    assert sum(row[2] for row in found.rows[:3]) == 514  # type: ignore[misc]


def test_a_trim_that_holds_takes_the_bytes_behind_a_gate_away() -> None:
    found = account(SCHEMA, inputs(width=10, kind="flat"), "gate")
    assert rows(found, "gate", "is", "bytes", "if true", "if false") == [
        ("no gate", None, 400 + 10 + 32 + 4 + 40, None, None),
        ("width > 9", "true", 0, 0, 0),
        ("width > 0", "true", 1, 1, 0),
        ('trim flat: kind == "flat"', "true", 0, 0, 80 + 8000),
        # Without this trim the other one still empties the rows.
        ('trim round: kind == "round"', "false", 0, 0, 0),
    ]


def test_what_has_no_size_behind_a_gate_that_is_false() -> None:
    found = account(SCHEMA, inputs(width=0), "gate")
    assert rows(found, "gate", "is", "if true", "if false")[2] == (
        "width > 0",
        "false",
        None,
        0,
    )


# By group and by use.


def test_a_buffer_in_two_groups_counts_in_both() -> None:
    found = account(SCHEMA, inputs(), "group")
    assert found.rows == (
        ("all", "zero_all", 24 + 400, ("rows", "floor")),
        ("some", "zero_some", 24, ("rows",)),
        (
            "no group",
            None,
            3 + 32 + 4 + 7 + 4 + 40,
            ("fixed", "both", "capped", "gated", "dozens", "shared"),
        ),
    )
    assert found.note == ("514 bytes in all; counted in several groups: rows, 24 bytes")


PARTS = SMALL.replace(
    "trims:",
    """  parts:
    doc: Parts.
    zero: [ZERO]
    regions:
      a: {bytes: 5, doc: A.}
      gap: {bytes: 11, doc: Nobody clears it.}
      b: {bytes: width, doc: B.}
trims:""",
)


def by_group_with(zero: str, kind: str = "") -> Account:
    """The groups of SMALL with a buffer of 19 bytes that they hold so."""
    text = PARTS.replace("ZERO", zero)
    schema, _ = read_schema(Text("small.yaml", text.encode()))
    given = complete_inputs(schema, {"width": 3, "kind": kind}, {}, {}, {})
    found = account(schema, given, "group")
    total = size_arena(schema, given).total_bytes
    assert found.note.startswith(f"{total:,} bytes in all")
    again = re.search(r", ([0-9,]+) bytes$", found.note)
    summed = sum(nbytes for (nbytes,) in rows(found, "bytes"))
    assert summed - (int(again[1]) if again else 0) == total
    return found


def test_what_a_group_leaves_of_a_buffer_is_in_none() -> None:
    found = by_group_with("{some: [a]}")
    assert rows(found, "group", "bytes", "buffers")[1:] == [
        ("some", 24 + 5, ("rows", "parts.a")),
        (
            "no group",
            90 + 14,
            ("fixed", "both", "capped", "gated", "dozens", "shared", "parts"),
        ),
    ]


def test_regions_of_two_groups_leave_the_rest() -> None:
    found = by_group_with("{some: [a]}, {all: [a, b]}")
    assert rows(found, "bytes") == [(424 + 8,), (24 + 5,), (90 + 11,)]
    # The region `a` is in both groups.
    assert found.note.endswith("; counted in several groups: rows, parts, 29 bytes")


def test_a_region_of_a_buffer_that_another_group_holds_whole() -> None:
    found = by_group_with("all, {some: [b]}")
    assert rows(found, "bytes") == [(424 + 19,), (24 + 3,), (90,)]
    assert found.note.endswith("; counted in several groups: rows, parts, 27 bytes")
    assert "parts" not in found.rows[2][-1]  # type: ignore[operator]


def test_a_buffer_whose_regions_are_all_cleared_is_in_a_group() -> None:
    found = by_group_with("{some: [a, gap, b]}")
    assert rows(found, "bytes") == [(424,), (24 + 19,), (90,)]
    assert "parts" not in found.rows[2][-1]  # type: ignore[operator]


def test_a_region_that_a_trim_empties_counts_nowhere() -> None:
    found = by_group_with("{some: [a]}", kind="flat")
    assert rows(found, "bytes") == [(400,), (5,), (83 + 14,)]


def test_which_use_won_and_what_sharing_saved() -> None:
    found = account(SCHEMA, inputs(), "use")
    assert found.columns == ("buffer", "use", "bytes", "is", "margin", "saved")
    assert found.rows == (
        ("shared", "few", 10, "loses", 30, None),
        ("shared", "many", 40, "wins", 30, 10),
        ("shared", "none", None, "inactive", None, None),
    )
    assert found.note == "10 bytes saved by sharing"


def test_uses_of_equal_size() -> None:
    found = account(SCHEMA, inputs(max_tokens=2), "use")
    assert found.rows[:2] == (
        ("shared", "few", 10, "wins", 0, 10),
        ("shared", "many", 10, "loses", 0, None),
    )


def test_the_accounts_take_sizes_that_are_there() -> None:
    size = size_arena(SCHEMA, inputs())
    assert by_limit(SCHEMA, size) == account(SCHEMA, inputs(), "limit")
    assert by_gate(SCHEMA, size) == account(SCHEMA, inputs(), "gate")


# The command.


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "table.yaml").write_text(
        "families: {plain: {doc: Plain., model_types: [plain]}}\n"
    )
    (tmp_path / "a.json").write_text('{"model_type": "plain", "width": 3}')
    (tmp_path / "b.json").write_text('{"model_type": "plain", "width": 4}')
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    command = ["sizes", "-s", "small.yaml", *arguments]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == code, result.output
    return result


def test_json_holds_rows_by_column(here: Path) -> None:
    data = json.loads(run("-c", "a.json", "--by", "limit", "--format", "json").stdout)
    assert (data["schema"], data["config"], data["by"]) == ("small", "a.json", "limit")
    assert data["limits"] == {"max_tokens": 8, "max_batch": 4}
    assert data["rows"][0] == {
        "limits": ["max_batch"],
        "bytes": 400,
        "half max_tokens": 400,
        "half max_batch": None,
        "buffers": ["floor"],
    }
    both = run("-c", "a.json", "-c", "b.json", "--by", "use", "--format", "json").stdout
    assert [each["config"] for each in json.loads(both)] == ["a.json", "b.json"]


def test_csv_stacks_configs(here: Path) -> None:
    text = run(
        "-c", "a.json", "-c", "b.json", "--by", "group", "--format", "csv"
    ).stdout
    table = list(csv.reader(io.StringIO(text)))
    assert table[:3] == [
        ["config", "group", "method", "bytes", "buffers"],
        ["a.json", "all", "zero_all", "424", "rows floor"],
        ["a.json", "some", "zero_some", "24", "rows"],
    ]
    assert table[4][:4] == ["b.json", "all", "zero_all", "432"]
    assert len(table) == 7


def test_markdown_is_a_table_that_no_text_breaks(here: Path) -> None:
    found = run("-c", "a.json", "--by", "gate", "--format", "md").stdout
    assert found == """\
### a.json: max_tokens=8, max_batch=4

| gate | is | bytes | if true | if false | buffers |
| --- | --- | ---: | ---: | ---: | --- |
| no gate |  | 503 |  |  | rows, floor, fixed, both, capped, shared |
| width > 9 | false | 7 | 8,000 | 7 | gated |
| width > 0 | true | 4 | 4 | 0 | dozens |
| trim flat: kind == "flat" | false | 31 | 0 | 31 | rows, gated |
| trim round: kind == "round" | false | 24 | 0 | 24 | rows |

514 bytes in all; the buffers of a trim count under their gates too
"""


def test_a_table_for_people(here: Path) -> None:
    found = run("-c", "a.json", "--by", "use").stdout
    lines = [" ".join(line.split()) for line in found.splitlines()]
    assert lines[0].startswith("a.json: max_tokens=8")
    assert "│ shared │ many │ 40 │ wins │ 30 │ 10 │" in lines
    assert "│ shared │ none │ │ inactive │ │ │" in lines
    assert lines[-1] == "10 bytes saved by sharing"


def test_an_account_that_is_not_kept(here: Path) -> None:
    assert (
        "'weight' is not one of" in run("-c", "a.json", "--by", "weight", code=2).stderr
    )
