"""Products rearranged so that the factors they have in common are multiplied once.

`M * 2` of a dozen products becomes a term of its own, the one that most of them share
first. A pair of factors that the schema has a name for is read by that name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import TypeAlias

from .formula import Int
from .terms import Node, Terms

Pair: TypeAlias = tuple[Node, Node]
# A block of statements that reads a term, and whether a condition decides about it.
Site: TypeAlias = tuple[int, bool]


def factor_out(
    terms: Terms, parents: Sequence[int], reads: Iterable[tuple[Node, int]]
) -> None:
    """Rearrange the products below the terms that each block reads.

    parents: for each block the one around it, which comes before it; -1 for none.
    """
    reads = list(reads)
    sites = _sites(terms, parents, reads)
    products = [node for node in sites if terms[node].is_product]
    # By block: the products that are read nowhere else than inside of it.
    inside: list[list[Node]] = [[] for _ in parents]
    for node in products:
        block = common(parents, [block for block, _ in sites[node]])
        while block >= 0:
            inside[block].append(node)
            block = parents[block]
    _Factoring(terms, products).named()
    for block, found in enumerate(inside):
        sure = [node for node in found if (block, False) in sites[node]]
        if len(sure) > 1:
            _Factoring(terms, found, sure).common()


def common(parents: Sequence[int], blocks: Iterable[int]) -> int:
    """The innermost block around all of the blocks, or the only one."""
    first, *others = dict.fromkeys(blocks)
    for other in others:
        while first != other:
            # A block comes behind those around it.
            if first > other:
                first = parents[first]
            else:
                other = parents[other]
    return first


def _sites(
    terms: Terms, parents: Sequence[int], reads: Sequence[tuple[Node, int]]
) -> dict[Node, dict[Site, None]]:
    """Every term with the blocks that read it, in the order of the terms."""
    sites: dict[Node, dict[Site, None]] = defaultdict(dict)
    for node, block in reads:
        sites[node][block, False] = None
    order = list(terms.below(node for node, _ in reads))
    for node in reversed(order):
        if node in terms.names:
            block = common(parents, [block for block, _ in sites[node]])
            sites[node] = {(0 if terms[node].raises else block, False): None}
        for part, maybe in terms.conditional(node):
            for block, uncertain in sites[node]:
                sites[part][block, uncertain or maybe] = None
    return {node: sites[node] for node in order}


class _Factoring:
    """Some products, and which of them have each pair of factors.

    `sure` are those among them that are surely computed.
    """

    def __init__(
        self, terms: Terms, products: Iterable[Node], sure: Iterable[Node] = ()
    ) -> None:
        self.terms = terms
        self.sure = set(sure)
        # The pairs of each product, each once.
        self.pairs: dict[Node, list[Pair]] = {}
        self.holders: dict[Pair, dict[Node, None]] = defaultdict(dict)
        # How many of the holders are sure.
        self.counts: dict[Pair, int] = defaultdict(int)
        for node in products:
            self.hold(node)

    def hold(self, node: Node) -> None:
        """Note the pairs of a product's factors; not of what may have no value."""
        factors = [each for each in self.terms[node].parts if self.is_plain(each)]
        found = [(a, b) if a < b else (b, a) for a, b in combinations(factors, 2)]
        self.pairs[node] = list(dict.fromkeys(found))
        for pair in self.pairs[node]:
            self.holders[pair][node] = None
            self.counts[pair] += node in self.sure

    def is_plain(self, node: Node) -> bool:
        return node in self.terms.names or not self.terms[node].raises

    def let_go(self, node: Node) -> None:
        for pair in self.pairs[node]:
            del self.holders[pair][node]
            self.counts[pair] -= node in self.sure

    def named(self) -> None:
        """Read what is the product of some let by its name."""
        for pair, holders in list(self.holders.items()):
            whole = self.terms.known_product(pair)
            if whole in self.terms.names:
                for node in list(holders):
                    self.replace(node, pair)

    def common(self) -> None:
        """Factor out the pairs that several sure products share, most shared first.

        The other products, which may not be computed, follow.
        """
        heap = [self.ranked(pair) for pair in self.holders]
        heapify(heap)
        while heap:
            entry = heappop(heap)
            pair = entry[-1]
            if self.counts[pair] < 2:
                continue
            if entry != self.ranked(pair):
                heappush(heap, self.ranked(pair))
                continue
            for node in list(self.holders[pair]):
                for changed in self.replace(node, pair):
                    heappush(heap, self.ranked(changed))

    def ranked(self, pair: Pair) -> tuple[int, int, bool, Pair]:
        """A pair behind its rank: names go before numbers where all else is equal."""
        numbered = any(isinstance(self.terms[each].form, Int) for each in pair)
        return -self.counts[pair], -len(self.holders[pair]), numbered, pair

    def replace(self, node: Node, pair: Pair) -> list[Pair]:
        """Multiply two factors of a product first; the pairs that it has since."""
        factors = list(self.terms[node].parts)
        if pair not in self.pairs[node] or len(factors) == 2:
            return []
        self.let_go(node)
        first, second = sorted(factors.index(each) for each in pair)
        if first == second:
            second = factors.index(pair[0], first + 1)
        whole = self.terms.product((factors[first], factors[second]))
        factors[first] = whole
        del factors[second]
        self.terms.rearrange(node, tuple(factors))
        self.hold(node)
        return [each for each in self.pairs[node] if whole in each]
