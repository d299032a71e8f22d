"""What the benchmarks measure against is right, and the cost grows with the schema."""

from __future__ import annotations

import cProfile
from itertools import product
from pathlib import Path

import pytest

from arenagen.chain import read_chain
from arenagen.extend import extend
from arenagen.source import Text
from metrale_arena import BufferSizes, Levers, ModelConfig

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = sorted(
    path for path in (ROOT / "tests/data").glob("*.json") if path.name != "README.md"
)
LEVERS = (
    Levers(),
    Levers(
        gguf_native_q2=True,
        gguf_native_q2_mmq=True,
        fp8_rowwise=True,
        glm_arena_trim=False,
        attn_decode_splitk=3,
    ),
)


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their folder is on the path of imports."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


# What an arena lacks for Jamba, its package says; what it holds is what counts here.
@pytest.mark.filterwarnings("ignore:.*the Mamba-1 layers:UserWarning")
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_sizes_by_hand_are_those_of_the_package(path: Path) -> None:
    from sizes_by_hand import sizes_by_hand

    config = ModelConfig.from_hf(path)
    for tokens, length, block, sequences, levers in product(
        (1, 7, 512, 8192), (1, 65536), (0, 16), (1, 300), LEVERS
    ):
        limits = {
            "max_batch_tokens": tokens,
            "max_seq_len": length,
            "kv_block_size": block,
            "max_batch_size": sequences,
        }
        by_hand = sizes_by_hand(config, **limits, levers=levers)
        assert by_hand == BufferSizes.from_config(config, **limits, levers=levers)


def calls(count: int) -> int:
    """Calls of functions that a schema of so many buffers takes, in every stage."""
    import scale

    profile = cProfile.Profile()
    profile.runcall(scale.stages, count)
    return sum(entry.callcount for entry in profile.getstats())


def test_ten_times_the_buffers_take_ten_times_the_calls() -> None:
    calls(10)
    assert calls(400) <= 11 * calls(40)


def laying_calls(count: int) -> int:
    """Calls that it takes to lay a schema of as many entries over one of so many."""
    import scale

    base, new = scale.schema(count), "arena: {extends: base.yaml, package: other}\n"
    new += "buffers:\n" + "".join(
        f"  buffer_{i}: {{doc: Another doc.}}\n  new_{i}: {{doc: A doc., bytes: {i}}}\n"
        for i in range(count)
    )
    chain = read_chain(
        Text("a.yaml", new.encode()), lambda *_: Text("b", base.encode())
    )
    profile = cProfile.Profile()
    profile.runcall(extend, chain)
    return sum(entry.callcount for entry in profile.getstats())


def test_ten_times_the_entries_laid_over_a_base_take_ten_times_the_calls() -> None:
    assert laying_calls(400) <= 11 * laying_calls(40)


def test_a_row_is_the_median_of_its_pairs() -> None:
    from common import ratio

    row = ratio("a", "b", [(2, 1), (9, 3), (40, 10), (1, 1), (5, 1)], 2.5)
    assert (row.ours, row.theirs, row.ratio) == (5, 1, 3)
    assert (row.low, row.high) == (1.5, 4.5)
    assert row.missed
    assert not row._replace(most=3).missed
    assert not row._replace(most=None).missed


def test_a_table_tells_what_was_missed_and_what_has_no_target() -> None:
    from common import Row, table

    row = Row("a", "b", 6.0, 2.0, 3.0, 2.5, 3.5, 2.5, "slow")
    text = table(
        [
            row,
            row._replace(figure="c", most=4, why="met"),
            row._replace(figure="d", most=None),
        ]
    )
    assert text.splitlines()[2:] == [
        "| a | b | 6.00 ms | 2.00 ms | **3.00** | 2.50 to 3.50 | <= 2.5 |",
        "| c | b | 6.00 ms | 2.00 ms | 3.00 | 2.50 to 3.50 | <= 4 |",
        "| d | b | 6.00 ms | 2.00 ms | 3.00 | 2.50 to 3.50 |  |",
        "",
        "Above target:",
        "",
        "- a: slow",
        "",
        "Without a target:",
        "",
        "- d: slow",
    ]
