"""The order of buffers in a slab: zeroing groups lie together.

The least number of runs is found here by trying every order, which the code under
test does only for few groups.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import oracle
from arenagen.compile import Text, read_schema
from arenagen.placement import arrange, runs, slab_order

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "metrale.yaml"
P, A, Z = frozenset("p"), frozenset("a"), frozenset("z")


def count_runs(order: list[frozenset[str]]) -> int:
    """Runs of each group, counted one group at a time."""
    total = 0
    for group in sorted(set().union(*order)):
        marks = [group in each for each in order]
        total += sum(
            now and not before
            for before, now in zip([False, *marks], marks, strict=False)
        )
    return total


signatures = st.lists(
    st.frozensets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=5
).map(lambda found: list(dict.fromkeys(found)))


@given(signatures)
def test_runs_counts_every_group(order: list[frozenset[str]]) -> None:
    assert runs(order) == count_runs(order)


@given(signatures)
def test_few_groups_get_an_order_with_the_fewest_runs(
    found: list[frozenset[str]],
) -> None:
    best = min(count_runs(list(order)) for order in permutations(found))
    assert count_runs(arrange(found)) == best


def test_many_groups_keep_every_signature() -> None:
    found = [frozenset({f"g{i}", f"g{i + 1}"}) for i in range(12)]
    arranged = arrange(found)
    assert sorted(map(sorted, arranged)) == sorted(map(sorted, found))
    # A chain of overlapping pairs can be laid out with one run a group.
    assert count_runs(arranged) == 13


def test_two_overlapping_groups_share_their_middle() -> None:
    order = arrange([A | P, A, P])
    assert order[1] == A | P


def test_no_groups_and_one_group() -> None:
    assert arrange([]) == []
    assert arrange([Z]) == [Z]


def test_metrale_lays_both_groups_in_one_run_each() -> None:
    schema, _ = read_schema(Text("metrale.yaml", SCHEMA.read_bytes()))
    order = slab_order(schema.buffers)
    assert sorted(order) == sorted(each.name for each in schema.buffers)
    for group in (oracle.METRALE_ZERO_ALL, oracle.METRALE_ZERO_PREFILL):
        places = sorted(order.index(name) for name in group)
        assert places == list(range(places[0], places[0] + len(group)))
    full = [n for n in oracle.METRALE_ZERO_ALL if n not in oracle.METRALE_TOKEN_MAJOR]
    places = sorted(order.index(name) for name in full)
    assert places == list(range(places[0], places[0] + len(full)))
