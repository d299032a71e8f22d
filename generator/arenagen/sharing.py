"""Statements rearranged so that no term is computed twice.

A term that is read more than once gets a local of its own, in the innermost block that
computes it anyway, before its first reader there. What only one side of a branch reads
is computed on that side. Nothing that may have no value is computed where it was not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from . import naming
from .factors import factor_out
from .formula import Call, Compare, Expr, IfElse, Int, Name
from .record import record
from .statements import Assign, Branch, SizesCode, Statement
from .term_names import term_name
from .terms import Node, Terms

# A place in a block: definitions come first, then statements, then trims.
Slot: TypeAlias = tuple[int, int]
_DEFINITIONS, _STATEMENTS, _TRIMS = range(3)
# The blocks around a place, outermost first, each with the place in it.
Path: TypeAlias = tuple[tuple[int, Slot], ...]


@record
class Reader:
    """Where a term is read; `maybe` where a condition inside a formula decides.

    `whole` where it is all that a statement assigns.
    """

    path: Path
    maybe: bool
    whole: bool = False


class _Step:
    """A statement with the term of its value or condition, and its blocks."""

    __slots__ = ("node", "sides", "statement")

    def __init__(self, statement: Statement, node: Node) -> None:
        self.statement = statement
        self.node = node
        self.sides: tuple[int, ...] = ()


class _Block:
    """The whole function, or one side of a branch."""

    __slots__ = ("defined", "hoisted", "path", "steps")

    def __init__(self, path: Path, steps: Iterable[_Step] = ()) -> None:
        self.path = path
        self.steps = [*steps]
        self.defined: list[Node] = []
        self.hoisted: dict[Slot, list[Node]] = defaultdict(list)


def shared(
    definitions: Mapping[str, Expr],
    statements: Sequence[Statement],
    trims: Sequence[Expr],
    constants: Mapping[str, int],
    fresh: Callable[[str], str],
) -> SizesCode:
    """The statements and the conditions of trims, every shared term computed once.

    definitions: what each name stands for that they may read, each behind those that it
    reads. One that may have no value is computed whatever the gates are.
    fresh: the name to use for a new local, given what it would best be called.
    """
    sharing = _Sharing(Terms(constants), fresh)
    for name, value in definitions.items():
        sharing.define(name, value)
    return sharing.code(statements, trims)


class _Sharing:
    def __init__(self, terms: Terms, fresh: Callable[[str], str]) -> None:
        self.terms = terms
        self.fresh = fresh
        self.order: dict[Node, int] = {}
        self.blocks = [_Block(())]
        # The blocks that hold a term in a local, from where on, and its name there.
        self.places: dict[Node, dict[int, Slot]] = defaultdict(dict)
        self.locals: dict[tuple[Node, int], str] = {}
        self.made: dict[Node, str] = {}
        # The blocks of the two sides of a conditional definition.
        self.sides: dict[Node, tuple[int, ...]] = defaultdict(tuple)
        self.parted: set[int] = set()
        self.readers: dict[Node, list[Reader]] = defaultdict(list)
        self.rank: dict[Node, int] = {}

    def define(self, name: str, value: Expr) -> None:
        self.order[self.terms.define(name, value)] = len(self.order)

    def code(self, statements: Sequence[Statement], trims: Sequence[Expr]) -> SizesCode:
        self.read(0, statements)
        ends = [self.terms.add(each) for each in trims]
        roots = [step.node for block in self.blocks for step in block.steps] + ends
        parents = [each.path[-1][0] if each.path else -1 for each in self.blocks]
        reads = [
            (step.node, place)
            for place, block in enumerate(self.blocks)
            for step in block.steps
        ]
        factor_out(self.terms, parents, [*reads, *((node, 0) for node in ends)])
        for block, steps in enumerate(self.blocks):
            for place, step in enumerate(steps.steps):
                reader = Reader(
                    self.inside(block, (_STATEMENTS, place)),
                    maybe=False,
                    whole=isinstance(step.statement, Assign),
                )
                self.note(step.node, reader)
        for place, node in enumerate(ends):
            self.note(node, Reader(self.inside(0, (_TRIMS, place)), False))
        self.rank = {node: at for at, node in enumerate(self.terms.below(roots))}
        for node in reversed(self.rank):
            self.settle(node)
        definitions = tuple(self.definitions(0))
        body = [*self.statements(0)]
        for place in range(len(ends)):
            body += self.before(self.inside(0, (_TRIMS, place)))
        conditions = tuple(
            self.tree(node, ((0, (_TRIMS, place)),)) for place, node in enumerate(ends)
        )
        return SizesCode(definitions, tuple(body), conditions)

    def read(self, block: int, statements: Sequence[Statement]) -> None:
        """Take statements into a block, and the sides of branches into their own."""
        for place, each in enumerate(statements):
            if isinstance(each, Assign):
                step = _Step(each, self.terms.add(each.value))
                if each.local:
                    self.terms.meanings[each.name] = step.node
            else:
                step = _Step(each, self.terms.add(each.condition))
                path = self.inside(block, (_STATEMENTS, place))
                for side in (each.then, each.other):
                    step.sides += (len(self.blocks),)
                    self.blocks.append(_Block(path))
                    self.read(step.sides[-1], side)
            self.blocks[block].steps.append(step)

    def inside(self, block: int, slot: Slot) -> Path:
        return (*self.blocks[block].path, (block, slot))

    def note(self, node: Node, reader: Reader) -> None:
        """Remember where a term is read, unless nothing depends on it."""
        if node in self.terms.names or self.terms[node].parts:
            self.readers[node].append(reader)

    def pass_on(self, node: Node, reader: Reader) -> None:
        """Note the readers of the parts where the term itself is computed."""
        for part, maybe in self.terms.conditional(node):
            self.note(part, Reader(reader.path, reader.maybe or maybe))

    def settle(self, node: Node) -> None:
        """Decide where a term is computed, all its readers being known."""
        readers = self.readers.pop(node, [])
        if node in self.order:
            block = 0 if self.terms[node].raises else self.innermost(node, readers)
            slot = (_DEFINITIONS, self.order[node])
            self.blocks[block].defined.append(node)
            self.places[node][block] = slot
            self.locals[node, block] = self.terms.names[node]
            readers = [Reader(self.inside(block, slot), False)]
            if isinstance(self.terms[node].form, IfElse):
                self.part(node, readers[0].path)
                return
        elif len(readers) > 1 and self.is_worth_a_local(node):
            readers = list(self.hoist(node, 0, 0, readers))
        for reader in readers:
            self.pass_on(node, reader)

    def innermost(self, node: Node, readers: Iterable[Reader]) -> int:
        """The innermost block that all readers of a definition are in."""
        first, *others = readers
        blocks = [block for block, _ in first.path]
        for reader in others:
            around = zip(blocks, reader.path, strict=False)
            blocks = [block for block, (other, _) in around if block == other]
        if self.terms.is_operand(node):
            # A read is not worth a branch of several lines.
            blocks = [each for each in blocks if each not in self.parted]
        return blocks[-1]

    def part(self, node: Node, path: Path) -> None:
        """Compute each side of a conditional definition in a block of its own."""
        condition, *sides = self.terms[node].parts
        self.note(condition, Reader(path, False))
        for side in sides:
            block = len(self.blocks)
            self.sides[node] += (block,)
            self.parted.add(block)
            value = Assign(self.terms.names[node], Int(0))
            self.blocks.append(_Block(path, [_Step(value, side)]))
            self.note(side, Reader(self.inside(block, (_STATEMENTS, 0)), False, True))

    def is_worth_a_local(self, node: Node) -> bool:
        """Whether a term costs more than reading a local."""
        term = self.terms[node]
        simple = all(self.terms.is_operand(each) for each in term.parts)
        return bool(term.parts) and not (isinstance(term.form, Compare) and simple)

    def hoist(
        self, node: Node, block: int, depth: int, readers: list[Reader]
    ) -> Iterator[Reader]:
        """Give a term a local in a block or in blocks below; where it is computed."""
        sure = [
            each for each in readers if len(each.path) == depth + 1 and not each.maybe
        ]
        if sure:
            # Where it may have no value, not before where it was computed anyway.
            early = sure if self.terms[node].raises else readers
            first = min(each.path[depth][1] for each in early)
            served = [each for each in readers if each.path[depth][1] >= first]
            if len(served) > 1:
                self.places[node][block] = first
                if not self.is_readable(node, block, first, served):
                    self.blocks[block].hoisted[first].append(node)
                yield Reader(self.inside(block, first), False)
                readers = [each for each in readers if each.path[depth][1] < first]
        below: dict[int, list[Reader]] = defaultdict(list)
        for reader in readers:
            if len(reader.path) == depth + 1:
                yield reader
            else:
                below[reader.path[depth + 1][0]].append(reader)
        for inner, its in below.items():
            yield from self.hoist(node, inner, depth + 1, its) if len(its) > 1 else its

    def is_readable(
        self, node: Node, block: int, slot: Slot, readers: Iterable[Reader]
    ) -> bool:
        """Whether the readers of a term read it by the name assigned at a place.

        Others than the buffer's own statements do for their whole value only: a size
        that is a part of another one by chance would look like what it depends on.
        """
        step = self.step(block, slot)
        if not (step and step.node == node and isinstance(step.statement, Assign)):
            return False
        own = self.owner(block, slot)
        return all(each.whole or self.owner(*each.path[-1]) == own for each in readers)

    def owner(self, block: int, slot: Slot) -> tuple[int, Slot]:
        """The place of the statement that the one at a place is for.

        The locals of a buffer stand before it.
        """
        kind, place = slot
        if kind == _STATEMENTS:
            steps = self.blocks[block].steps
            for later in range(place, len(steps)):
                statement = steps[later].statement
                if isinstance(statement, Assign) and not statement.local:
                    return block, (kind, later)
        return block, slot

    def step(self, block: int, slot: Slot) -> _Step | None:
        """The statement at a place, if there is one."""
        kind, place = slot
        return self.blocks[block].steps[place] if kind == _STATEMENTS else None

    def definitions(self, block: int) -> Iterator[Statement]:
        """The fields, symbols and lets that a block computes, in order."""
        for node in sorted(self.blocks[block].defined, key=self.order.__getitem__):
            path = self.inside(block, (_DEFINITIONS, self.order[node]))
            yield from self.before(path)
            if node in self.sides:
                yield self.branch(self.terms[node].parts[0], self.sides[node], path)
            else:
                yield Assign(self.terms.names[node], self.computed(node, path))

    def statements(self, block: int) -> Iterator[Statement]:
        """The statements of a block, and the locals that they share."""
        for place, step in enumerate(self.blocks[block].steps):
            path = self.inside(block, (_STATEMENTS, place))
            yield from self.before(path)
            if isinstance(step.statement, Assign):
                yield from self.assignment(step.statement, step.node, path)
            else:
                yield self.branch(step.node, step.sides, path)

    def branch(self, condition: Node, sides: tuple[int, ...], path: Path) -> Branch:
        tree = self.tree(condition, path)
        then, other = ((*self.definitions(s), *self.statements(s)) for s in sides)
        return Branch(tree, then, other)

    def assignment(self, given: Assign, node: Node, path: Path) -> Iterator[Statement]:
        """A statement over what has locals by now, unless it is no longer read."""
        block, slot = path[-1]
        if (node, block) not in self.locals and self.places[node].get(block) == slot:
            yield Assign(given.name, self.computed(node, path), given.labels)
            self.locals[node, block] = given.name
        elif not given.local:
            value = self.tree(node, path)
            labels = given.labels if isinstance(value, Call) else ()
            yield Assign(given.name, value, labels)

    def before(self, path: Path) -> Iterator[Statement]:
        """The locals of terms that are first read at a place."""
        block, slot = path[-1]
        step = self.step(block, slot)
        for node in sorted(self.blocks[block].hoisted[slot], key=self.rank.__getitem__):
            whose = ""
            labels: tuple[str, ...] = ()
            if step and isinstance(step.statement, Assign):
                if step.node == node:
                    labels = step.statement.labels
                else:
                    whose = step.statement.name
            if node not in self.made:
                best = term_name(self.terms, node) or naming.part(whose)
                self.made[node] = self.fresh(best)
            yield Assign(self.made[node], self.computed(node, path), labels)
            self.locals[node, block] = self.made[node]

    def computed(self, node: Node, path: Path) -> Expr:
        """The tree of a term at the place where it is computed."""
        return self.terms.tree(node, lambda part: self.tree(part, path))

    def tree(self, node: Node, path: Path) -> Expr:
        """The tree of a term at a place: the name of its local, where it has one."""
        for block, slot in reversed(path):
            since = self.places[node].get(block) if node in self.places else None
            if since is not None and since <= slot and (node, block) in self.locals:
                return Name(self.locals[node, block])
        return self.computed(node, path)
