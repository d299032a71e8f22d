"""Extents that cannot be: negative parts, overlapping regions, gates over statements.

The emitted package and the tool must refuse the same inputs, and agree on all others.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from arenagen.compile import check_source, emit
from arenagen.disk import write
from arenagen.load import load
from arenagen.sizing import SizingError, complete_inputs, size_arena

HEAD = """
arena: {class: BufferArena, package: odd, label: odd arena, doc: Odd extents.}
limits: {tokens: {symbol: M, tokens: true, minimum: 1, doc: Tokens of a pass.}}
config:
  hidden: {doc: A width.}
  heads: {doc: A count.}
  ll: {type: list, doc: A list.}
  mm: {type: list, doc: Another list.}
"""


class Odd:
    """One schema, as the tool and as the emitted package size it."""

    def __init__(self, body: str, folder: Path) -> None:
        # Not checked: where a check tries values and finds a fault, it refuses some of
        # these, and the package has to refuse what no check finds.
        self.schema = load(HEAD + body, "odd.yaml")
        name = f"odd_{folder.name.replace('-', '_')}"
        write(folder / name, emit(check_source(self.schema, (), None), "odd"))
        sys.path.insert(0, str(folder))
        try:
            self.package: ModuleType = importlib.import_module(name)
        finally:
            sys.path.remove(str(folder))

    def both(self, tokens: int = 4, **fields: Any) -> tuple[Any, Any]:
        """Bytes of the buffer `b` by the tool and by the package, or their errors."""
        empty: dict[str, Any] = {"hidden": 0, "heads": 0, "ll": (), "mm": ()}
        config = self.package.ModelConfig(**fields)
        tool: Any
        emitted: Any
        try:
            inputs = complete_inputs(
                self.schema, empty | fields, {"tokens": tokens}, {}, {}
            )
            tool = size_arena(self.schema, inputs).total_bytes
        except SizingError as error:
            tool = str(error)
        try:
            emitted = self.package.BufferSizes.from_config(
                config, tokens=tokens
            ).total_bytes
        except self.package.SizeError as error:
            emitted = str(error)
        return tool, emitted


def refused(answer: tuple[Any, Any], text: str) -> None:
    for each in answer:
        assert isinstance(each, str) and text in each, answer


def test_a_fixed_offset_before_an_earlier_end_is_refused(tmp_path: Path) -> None:
    odd = Odd(
        """
buffers:
  b:
    doc: Two regions.
    dtype: u8
    regions:
      a: {bytes: hidden, doc: First.}
      c: {at: 16, bytes: 10, doc: Second.}
""",
        tmp_path,
    )
    assert odd.both(hidden=16) == (26, 26)
    refused(odd.both(hidden=17), "begins at byte 16, inside what ends at byte 17")


def test_the_regions_of_a_layout_are_refused_too(tmp_path: Path) -> None:
    odd = Odd(
        """
layouts:
  lay:
    doc: Two regions.
    parameters: {q: {doc: Rows.}}
    regions:
      ra: {bytes: 1000, doc: First.}
      rb: {at: 16, bytes: q, doc: Second.}
buffers:
  b: {doc: A layout., layout: lay, arguments: {q: M}}
""",
        tmp_path,
    )
    refused(odd.both(), "begins at byte 16, inside what ends at byte 1000")
    with pytest.raises(odd.package.SizeError, match=r"lay\.rb: begins at byte 16"):
        odd.package.LayLayout.of(q=4)


@pytest.mark.parametrize(
    "extent",
    [
        "dtype: u8, shape: [hidden - 9, heads - 9]",
        "bytes: hidden - 5, min_bytes: 3",
        "dtype: u8, uses: {x: {bytes: hidden - 5, doc: X.}, "
        "y: {when: heads > 0, bytes: heads - 3, doc: Y.}}",
        "dtype: u8, regions: {p: {bytes: hidden - 5, doc: P.}, "
        "q: {bytes: 60, doc: Q.}}",
    ],
)
def test_a_negative_part_is_refused(extent: str, tmp_path: Path) -> None:
    odd = Odd(f"buffers:\n  b: {{doc: Odd., {extent}}}\n", tmp_path)
    refused(odd.both(hidden=1, heads=1), "negative")
    tool, emitted = odd.both(hidden=10, heads=10)
    assert tool == emitted > 0


@pytest.mark.parametrize(
    "entry",
    [
        "when: hidden > 0, dtype: u8, regions: "
        "{a: {bytes: 1000 // hidden, doc: A.}, c: {align: 256, bytes: 10, doc: C.}}",
        "dtype: u8, uses: {u: {doc: U., when: hidden > 0, regions: "
        "{a: {bytes: 1000 // hidden, doc: A.}, c: {align: 256, bytes: 10, doc: C.}}}, "
        "v: {bytes: 5, doc: V.}}",
        "dtype: u8, uses: {u: {doc: U., when: hidden > 0 and hidden != 2, regions: "
        "{a: {bytes: 9 // (hidden - 2), doc: A.}, c: {align: 8, bytes: 1, doc: C.}}}, "
        "v: {bytes: 5, doc: V.}}",
    ],
)
def test_a_gate_guards_all_that_its_regions_compute(entry: str, tmp_path: Path) -> None:
    odd = Odd(f"buffers:\n  b: {{doc: Odd., {entry}}}\n", tmp_path)
    for hidden in (0, 2, 3, 10):
        tool, emitted = odd.both(hidden=hidden)
        assert tool == emitted
        assert isinstance(tool, int)


def test_a_count_of_a_conditional_list_keeps_its_brackets(tmp_path: Path) -> None:
    formula = 'count(ll if hidden > 0 else mm, "x", "y")'
    odd = Odd(f"buffers:\n  b: {{doc: Odd., bytes: '{formula}'}}\n", tmp_path)
    lists = {"ll": ("x", "y", "x"), "mm": ("y",)}
    assert odd.both(hidden=1, **lists) == (3, 3)
    assert odd.both(hidden=0, **lists) == (1, 1)


def test_a_lever_may_be_called_as_a_module_is(tmp_path: Path) -> None:
    odd = Odd(
        """
levers: {os: {variable: ODD_OS, type: bool, on_when: ["1"], doc: A switch.}}
buffers: {b: {doc: Odd., when: os, bytes: 8}}
""",
        tmp_path,
    )
    assert odd.package.Levers.from_env({"ODD_OS": "1"}).os is True
