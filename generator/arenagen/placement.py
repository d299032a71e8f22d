"""The order of buffers in a slab: members of a zeroing group side by side.

A group whose members lie together is cleared by one memset. Several groups may share
members, so that the order has to serve all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, permutations

from .model import Buffer

Signature = frozenset[str]
# Up to this many kinds of membership, every order is tried: 7! = 5,040.
_MAX_EXHAUSTIVE = 7


def slab_order(buffers: Sequence[Buffer]) -> list[str]:
    """Names of the buffers in the order of their offsets.

    Buffers of the same groups lie together, and those without a group last. Among
    them the ones that a pass clears in part come first, so that those it clears in
    full are neighbours.
    """
    members: dict[Signature, list[Buffer]] = {}
    for buffer in buffers:
        signature = frozenset(name for name, _ in buffer.groups)
        members.setdefault(signature, []).append(buffer)
    rest = members.pop(frozenset(), [])
    order: list[str] = []
    for signature in arrange(list(members)):
        block = sorted(members[signature], key=lambda each: not each.token_major)
        order += [each.name for each in block]
    return order + [each.name for each in rest]


def slab_offsets(buffers: Sequence[Buffer], sizes: Mapping[str, int]) -> dict[str, int]:
    """The byte of the slab at which each buffer with memory begins, in that order."""
    aligns = {buffer.name: buffer.align for buffer in buffers}
    offsets: dict[str, int] = {}
    end = 0
    for name in slab_order(buffers):
        if sizes[name]:
            offsets[name] = -(-end // aligns[name]) * aligns[name]
            end = offsets[name] + sizes[name]
    return offsets


def arrange(signatures: Sequence[Signature]) -> list[Signature]:
    """The signatures in an order with few runs a group; the first of the best.

    With many kinds of membership every one is moved until no move saves a run.
    """
    if len(signatures) <= _MAX_EXHAUSTIVE:
        return list(min(permutations(signatures), key=runs, default=()))
    placed: list[Signature] = []
    for signature in signatures:
        placed = _insert(placed, signature)
    while True:
        before = runs(placed)
        for signature in signatures:
            rest = [each for each in placed if each != signature]
            placed = _insert(rest, signature)
        if runs(placed) == before:
            return placed


def _insert(placed: list[Signature], signature: Signature) -> list[Signature]:
    """The order with one more signature, at the place that costs the fewest runs."""
    places = range(len(placed) + 1)
    orders = ([*placed[:at], signature, *placed[at:]] for at in places)
    return min(orders, key=runs)


def runs(order: Iterable[Signature]) -> int:
    """The memsets that clearing every group once takes."""
    padded = [frozenset[str](), *order]
    return sum(len(after - before) for before, after in pairwise(padded))
