"""Which numbers divide a formula, and which formula is never below another.

A formula is expanded to a sum of products, so that like terms meet: behind ids and
weights of 4 bytes a token each, bytes are a multiple of 8. What is no sum or product
is an atom of its own; of an atom only a divisor is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import gcd, prod
from typing import TypeAlias

from .formula import (
    Binary,
    Call,
    Compare,
    Expr,
    IfElse,
    Int,
    Logic,
    Name,
    Unary,
    spell,
)
from .model import Bytes, Layout, LayoutCall, Region, Regions, Shape
from .record import record
from .symbols import Symbols, let_order

# Longer sums and products become one atom: a chain of products doubles them again and
# again. Of its divisor the powers of two are kept, which alignments are.
_MAX_TERMS = 64
_POWERS_OF_TWO = 1 << 32
# The factor of each product of names, the empty product being the constant.
Terms: TypeAlias = Mapping[tuple[str, ...], int]


@record
class Env:
    """Parameters and lets of one call of a function or layout; `key` tells it apart."""

    local: Mapping[str, Terms]
    key: str = ""


GLOBAL = Env({})


@record
class Place:
    """Where a region begins.

    end: where it and the regions before it end.
    behind: whether its start is shown to be behind the regions before it.
    askew: whether it is not shown to be a multiple of what the region needs; those
        behind it are placed as if it were.
    """

    region: Region
    start: Terms
    end: Terms
    behind: bool
    askew: bool


class Divisors:
    """Expands the formulas of one schema."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._atoms: dict[str, int] = {}
        # With their formulas, which keep their identities as long as they are here.
        self._globals: dict[int, tuple[Expr, Terms]] = {}
        self._lets: dict[str, Terms] = {}
        self._calls: dict[tuple[str, tuple[int, ...]], int] = {}
        self._serial = 0

    def divisor(self, terms: Terms) -> int:
        """The largest number known to divide the sum, 0 for the sum 0."""
        return gcd(
            *(
                factor * prod(self._atoms.get(name, 1) for name in names)
                for names, factor in terms.items()
            )
        )

    def where(self, terms: Terms, conditions: Iterable[Expr]) -> Terms:
        """The sum where the conditions hold: names that they fix are their numbers."""
        fixed = dict(self._fixed(conditions))
        if not fixed:
            return terms
        total: Terms = {}
        for names, factor in terms.items():
            known = prod(fixed.get(name, 1) for name in names)
            rest = tuple(name for name in names if name not in fixed)
            total = self._sum(total, {rest: factor * known})
        return total

    def _fixed(self, conditions: Iterable[Expr]) -> Iterator[tuple[str, int]]:
        for condition in conditions:
            match condition:
                case Logic("and", items):
                    yield from self._fixed(items)
                case Compare("==", Name(name), other) | Compare(
                    "==", other, Name(name)
                ):
                    value = self.terms(other)
                    if set(value) <= {()} and self.terms(Name(name)) == {(name,): 1}:
                        yield name, value.get((), 0)

    def terms(self, expr: Expr, env: Env = GLOBAL) -> Terms:
        """A formula as a sum of products."""
        if env is not GLOBAL:
            return self._terms(expr, env)
        if id(expr) in self._globals:
            return self._globals[id(expr)][1]
        serial = self._serial
        terms = self._terms(expr, env)
        # An atom that stands for nothing else is another one each time.
        if serial == self._serial:
            self._globals[id(expr)] = expr, terms
        return terms

    def _terms(self, expr: Expr, env: Env) -> Terms:
        match expr:
            case Name(name):
                return self._name(name, env)
            case Int(value):
                return _constant(value)
            case Unary("-", operand):
                return self._sum({}, self.terms(operand, env), -1)
            case Binary("+" | "-" as op, left, right):
                sign = 1 if op == "+" else -1
                return self._sum(self.terms(left, env), self.terms(right, env), sign)
            case Binary("*", left, right):
                return self.product([self.terms(left, env), self.terms(right, env)])
            case Binary("//", left, right):
                return self._quotient(expr, left, right, env)
            case IfElse(_, then, other):
                return self._any_of(expr, [then, other], env)
            case Call("min" | "max" | "clamp", arguments):
                return self._any_of(expr, arguments, env)
            case Call("align", (value, step)):
                step_divisor = self.divisor(self.terms(step, env))
                return self._aligned(self.terms(value, env), step_divisor, expr, env)
            case Call("next_in", (Name(name), _)):
                return self._atom(expr, env, self._of_list(name))
            case Call(name, arguments) if name in self.symbols.functions:
                return self._atom(expr, env, self._called(name, arguments, env))
        return self._atom(expr, env, 1)

    def _name(self, name: str, env: Env) -> Terms:
        if name in env.local:
            return env.local[name]
        name = self.symbols.canonical(name)
        if name in self.symbols.constants:
            value = self.symbols.constants[name].value
            return _constant(value) if isinstance(value, int) else {(name,): 1}
        if name not in self.symbols.lets:
            return {(name,): 1}
        if name not in self._lets:
            self._lets[name] = self.terms(self.symbols.lets[name].value.expr)
        return self._lets[name]

    def _of_list(self, name: str) -> int:
        """What divides every number of a constant list."""
        constant = self.symbols.constants.get(name)
        items = constant.value if constant else ()
        if not isinstance(items, tuple):
            return 1
        return gcd(*(item for item in items if isinstance(item, int))) or 1

    def _called(self, name: str, arguments: Iterable[Expr], env: Env) -> int:
        """The divisor of a function for arguments of these divisors."""
        function = self.symbols.functions[name]
        given = tuple(
            self.divisor(self.terms(argument, env)) if each.type == "int" else 1
            for each, argument in zip(function.parameters, arguments, strict=True)
        )
        if (name, given) not in self._calls:
            names = [each.name for each in function.parameters]
            local = {
                each: self._fresh(divisor)
                for each, divisor in zip(names, given, strict=True)
            }
            inside = self.terms(function.value.expr, self._env(local))
            self._calls[name, given] = self.divisor(inside)
        return self._calls[name, given]

    def _any_of(self, expr: Expr, parts: Iterable[Expr], env: Env) -> Terms:
        """One of several values: what divides all of them divides it."""
        divisors = [self.divisor(self.terms(part, env)) for part in parts]
        return self._atom(expr, env, gcd(*divisors))

    def _quotient(self, expr: Expr, left: Expr, right: Expr, env: Env) -> Terms:
        above, below = self.terms(left, env), self.terms(right, env)
        step = below.get((), 0) if set(below) <= {()} else 0
        if step > 0 and all(factor % step == 0 for factor in above.values()):
            return {names: factor // step for names, factor in above.items()}
        return self._atom(expr, env, 1)

    def _aligned(self, terms: Terms, step: int, expr: Expr, env: Env) -> Terms:
        if step and self.divisor(terms) % step == 0:
            return terms
        return self._atom(expr, env, step or 1)

    def _atom(self, expr: Expr, env: Env, divisor: int) -> Terms:
        if not divisor:
            return {}
        name = f"{spell(expr)} {env.key}"
        self._atoms[name] = divisor
        return {(name,): 1}

    def _fresh(self, divisor: int) -> Terms:
        self._serial += 1
        name = f" {self._serial}"
        self._atoms[name] = divisor
        return {(name,): 1} if divisor else {}

    def _env(self, local: Mapping[str, Terms]) -> Env:
        self._serial += 1
        return Env(local, f"{self._serial}")

    def _sum(self, left: Terms, right: Terms, sign: int = 1) -> Terms:
        total = dict(left)
        for names, factor in right.items():
            total[names] = total.get(names, 0) + sign * factor
        return self._bounded({names: each for names, each in total.items() if each})

    def product(self, parts: Iterable[Terms]) -> Terms:
        """The product of sums, expanded."""
        total: Terms | None = None
        for part in parts:
            if total is None:
                total = self._bounded(part)
                continue
            expanded: dict[tuple[str, ...], int] = {}
            for names, factor in total.items():
                for others, other in part.items():
                    key = tuple(sorted((*names, *others)))
                    expanded[key] = expanded.get(key, 0) + factor * other
            total = self._bounded({key: each for key, each in expanded.items() if each})
        return _constant(1) if total is None else total

    def _bounded(self, terms: Terms) -> Terms:
        if len(terms) <= _MAX_TERMS:
            for names, factor in terms.items():
                if len(names) > _MAX_TERMS or factor.bit_length() > _MAX_TERMS:
                    break
            else:
                return terms
        return self._fresh(gcd(self.divisor(terms), _POWERS_OF_TWO))

    def inside(self, layout: Layout, given: Mapping[str, Terms]) -> Env:
        """The parameters and lets of a layout for given arguments."""
        local = dict(given)
        env = self._env(local)
        for let in let_order(layout.lets, (each.name for each in layout.lets)):
            local[let.name] = self.terms(let.value.expr, env)
        return env

    def free(self, layout: Layout) -> Env:
        """The parameters and lets of a layout for any arguments."""
        names = (each.name for each in layout.parameters)
        return self.inside(layout, {name: {(name,): 1} for name in names})

    def size(self, extent: Shape | Bytes | LayoutCall, env: Env) -> Terms:
        """The bytes of an extent."""
        match extent:
            case Bytes(value):
                return self.terms(value.expr, env)
            case Shape(dtype, dims):
                count = self.product(self.terms(dim.expr, env) for dim in dims)
                if dtype.bits % 8 == 0:
                    return self.product([count, _constant(dtype.bits // 8)])
                return self._fresh(max(1, self.divisor(count) * dtype.bits // 8))
            case LayoutCall(name, arguments):
                layout = self.symbols.layouts[name]
                given = {key: self.terms(each.expr, env) for key, each in arguments}
                end: Terms = {}
                for place in self.places(layout.regions, self.inside(layout, given)):
                    end = place.end
                return end

    def places(
        self,
        regions: Regions,
        env: Env,
        gates: Iterable[Expr] = (),
        needs: Callable[[Region], int] = lambda region: 1,
    ) -> Iterator[Place]:
        """Where each region begins, were all those before it behind one another.

        gates: what holds where the regions exist.
        needs: the alignment in bytes that a region needs.
        """
        end: Terms = {}
        # Never less than the end: what aligning may add is added.
        bound: Terms = {}
        is_bounded = any(region.at is not None for region in regions.items)
        for region in regions.items:
            behind = True
            if region.at is not None:
                start = self.terms(region.at.expr, env)
                behind = self._natural(self._sum(start, bound, -1), env)
                bound = start
            else:
                start = end
                if region.align > 1 and self.divisor(end) % region.align:
                    start = self._fresh(region.align)
                if is_bounded:
                    bound = self._sum(bound, _constant(region.align - 1))
            needed = needs(region)
            askew = False
            if start and needed > 1:
                held = [*gates, *([region.when.expr] if region.when else [])]
                askew = self.divisor(self.where(start, held)) % needed != 0
            if askew:
                start = self._fresh(needed)
            size = self.size(region.extent, env)
            after = self._sum(start, size)
            if region.when is not None:
                after = self._fresh(gcd(self.divisor(after), self.divisor(end)))
            end = after
            yield Place(region, start, end, behind, askew)
            if is_bounded:
                bound = self._sum(bound, size)

    def _natural(self, terms: Terms, env: Env) -> bool:
        """Whether a sum is shown to be at least 0: all its terms are."""
        plain = {*self.symbols.limits, *self.symbols.fields, *self.symbols.target}
        plain |= set(env.local)
        return all(
            factor > 0 and plain.issuperset(names) for names, factor in terms.items()
        )


def _constant(value: int) -> Terms:
    return {(): int(value)} if value else {}
