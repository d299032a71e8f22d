"""A hypothesis strategy for whole schemas, with an evaluator of its own.

Every schema is valid by construction. A formula is drawn as its text together with a
function that works its value out and a bound that it cannot pass, so that sizes are
small and always exist for the inputs of `draw_inputs`. Nothing here is shared with the
generator: `sizes` is an independent opinion. It must never import arenagen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from math import prod
from typing import Any, NamedTuple

import yaml
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Env = Mapping[str, Any]

MAX_TOKENS = 40
MAX_FIELD = 12
# No number that a formula gives is larger, nor are the elements of a shape.
MAX_NUMBER = 4096
MAX_ELEMENTS = 1 << 18

BITS = {
    **{"bool": 8, "u8": 8, "i8": 8, "u16": 16, "i16": 16, "u32": 32, "i32": 32},
    **{"u64": 64, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64},
    **{"fp8_e4m3": 8, "fp8_e5m2": 8, "fp4_e2m1": 4},
}
WORDS = ("dense", "sparse", "x")
DOCS = (
    "One thing.",
    "What it says, and then some more words, so that the text is longer than a line.",
    'A "quoted" word.',
    "A backslash \\ inside.",
    "Braces {0} and 100%.",
)


class Formula(NamedTuple):
    """A number or a truth value: its text, its value, and the most that it can be.

    moves: whether it depends on the token limit.
    """

    text: str
    value: Callable[[Env], Any]
    most: int = 1
    moves: bool = False


class Extent(NamedTuple):
    """The keys of an entry that set its size, and the bytes that they stand for."""

    keys: dict[str, Any]
    nbytes: Callable[[Env], int]


class Buffer(NamedTuple):
    """A buffer: its entry, its bytes, and the buffers' own gates applied."""

    name: str
    entry: dict[str, Any]
    nbytes: Callable[[Env], int]


class RandomSchema(NamedTuple):
    """A schema, and what is needed to size it by hand.

    fields: the default of every config field.
    inputs: a strategy for the inputs; every name is given.
    """

    package: str
    text: str
    fields: dict[str, Formula]
    limits: dict[str, int]
    levers: dict[str, tuple[object, ...]]
    target: dict[str, int]
    kinds: dict[str, str]
    buffers: tuple[Buffer, ...]
    trims: tuple[tuple[Formula, tuple[str, ...]], ...]

    def __repr__(self) -> str:
        return self.text

    def environment(
        self, fields: Env, limits: Env, levers: Env, target: Env
    ) -> dict[str, Any]:
        """Every input by name, the fields that are not given at their defaults."""
        env = {**limits, **levers, **target}
        for name, default in self.fields.items():
            env[name] = fields[name] if name in fields else default.value(env)
        return env

    def sizes(self, env: Env) -> tuple[dict[str, int], int]:
        """Bytes of every buffer, and those that trims removed."""
        emptied = {
            name for gate, names in self.trims if gate.value(env) for name in names
        }
        sizes = {each.name: each.nbytes(env) for each in self.buffers}
        trimmed = sum(sizes[name] for name in emptied)
        return sizes | dict.fromkeys(emptied, 0), trimmed


class Inputs(NamedTuple):
    """The inputs of one arena; fields that are not given take their default."""

    fields: dict[str, Any]
    limits: dict[str, int]
    levers: dict[str, Any]
    target: dict[str, int]


@st.composite
def schemas(draw: DrawFn) -> RandomSchema:
    """Any schema."""
    return _Author(draw).schema()


@st.composite
def inputs(draw: DrawFn, schema: RandomSchema) -> Inputs:
    """Inputs of a schema for which every size exists."""
    values = {
        "int": st.integers(0, MAX_FIELD),
        "bool": st.booleans(),
        "str": st.sampled_from(WORDS),
        "list": st.lists(st.sampled_from(WORDS), max_size=4).map(tuple),
    }
    fields = {
        name: draw(values[schema.kinds[name]])
        for name in schema.fields
        if draw(st.integers(0, 3))
    }
    return Inputs(
        fields,
        {name: draw(st.integers(1, most)) for name, most in schema.limits.items()},
        {name: draw(st.sampled_from(of)) for name, of in schema.levers.items()},
        {name: draw(st.integers(low, 9)) for name, low in schema.target.items()},
    )


def up(value: int, multiple: int) -> int:
    """`value` rounded up to a multiple."""
    return -(-value // multiple) * multiple


class _Author:
    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.text: dict[str, Any] = {}
        # What formulas of buffers, and what helpers may read.
        self.numbers: list[Formula] = []
        self.truths: list[Formula] = []
        self.words: list[Formula] = []
        self.lists: list[Formula] = []
        self.calls: list[Callable[[Sequence[Formula]], Formula]] = []

    # Draws

    def some(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, one_in: int = 2) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def pick(self, options: Iterable[Any]) -> Any:
        return self.draw(st.sampled_from(tuple(options)))

    def doc(self) -> str:
        return str(self.pick(DOCS))

    # Formulas

    def number(self, leaves: Sequence[Formula], depth: int = 2) -> Formula:
        """A formula over `leaves`, never negative and never undefined."""
        if depth == 0 or self.chance(3):
            if leaves and not self.chance(4):
                return self.pick(leaves)
            return literal(self.some(0, 9))
        one = self.number(leaves, depth - 1)
        kind = self.pick(
            ("+", "*", "-", "//", "%", "align", "cdiv", "max", "min", "clamp", "if")
            + ("count", "len", "call", "next_in")
        )
        if kind in ("//", "%", "align", "cdiv"):
            return divided(kind, one, self.divisor(leaves))
        if kind == "clamp":
            low = self.some(0, 9)
            high = low + self.some(0, 40)
            return Formula(
                f"clamp({one.text}, {low}, {high})",
                lambda env: max(low, min(one.value(env), high)),
                max(low, min(one.most, high)),
                one.moves,
            )
        if kind == "if":
            return chosen(self.truth(leaves), one, self.number(leaves, depth - 1))
        if kind == "count" and self.lists:
            source, word = self.pick(self.lists), self.pick(WORDS)
            return Formula(
                f"count({source.text}, '{word}')",
                lambda env: list(source.value(env)).count(word),
                source.most,
            )
        if kind == "len" and self.lists:
            source = self.pick(self.lists)
            return Formula(
                f"len({source.text})", lambda env: len(source.value(env)), source.most
            )
        if kind == "call" and self.calls:
            return self.pick(self.calls)(leaves)
        if kind == "next_in" and one.most <= 64:
            return Formula(
                f"next_in(BUCKETS, {one.text})",
                lambda env: next(each for each in (1, 8, 64) if each >= one.value(env)),
                64,
                one.moves,
            )
        other = self.number(leaves, depth - 1)
        return combined(kind if kind in ("*", "-", "max", "min") else "+", one, other)

    def divisor(self, leaves: Sequence[Formula]) -> Formula:
        if self.chance(3):
            other = self.number(leaves, 0)
            return Formula(
                f"max(1, {other.text})",
                lambda env: max(1, other.value(env)),
                max(1, other.most),
                other.moves,
            )
        return literal(self.some(1, 16))

    def truth(self, leaves: Sequence[Formula], depth: int = 1) -> Formula:
        """A truth value over numbers, and over the fixed truths, words and lists."""
        kind = self.pick(("compare", "leaf", "word", "in", "not", "and", "or"))
        if kind == "leaf" and self.truths:
            return self.pick(self.truths)
        if kind == "word" and self.words:
            one, op, word = self.pick(self.words), self.pick(("==", "!=")), self.word()
            return Formula(
                f"{one.text} {op} {word.text}",
                lambda env: (one.value(env) == word.value(env)) is (op == "=="),
            )
        if kind == "in" and self.lists:
            word, source, op = (
                self.word(),
                self.pick(self.lists),
                self.pick(("in", "not in")),
            )
            return Formula(
                f"{word.text} {op} {source.text}",
                lambda env: (word.value(env) in source.value(env)) is (op == "in"),
            )
        if kind == "not" and depth:
            one = self.truth(leaves, depth - 1)
            return Formula(
                f"not ({one.text})", lambda env: not one.value(env), 1, one.moves
            )
        if kind in ("and", "or") and depth:
            one, other = self.truth(leaves, 0), self.truth(leaves, 0)
            return Formula(
                f"({one.text} {kind} {other.text})",
                lambda env: (
                    one.value(env) and other.value(env)
                    if kind == "and"
                    else one.value(env) or other.value(env)
                ),
                1,
                one.moves or other.moves,
            )
        one, other = self.number(leaves, 1), self.number(leaves, 0)
        op = self.pick(COMPARISONS)
        return Formula(
            f"{one.text} {op} {other.text}",
            lambda env: COMPARISONS[op](one.value(env), other.value(env)),
            1,
            one.moves or other.moves,
        )

    def word(self) -> Formula:
        if self.words and self.chance(3):
            return self.pick(self.words)
        word = self.pick(WORDS)
        return Formula(f"'{word}'", lambda env: word)

    def rows(self, depth: int = 2) -> Formula:
        """A number that grows with the tokens of a pass."""
        if depth == 0 or self.chance(3):
            return self.pick(self.growing)
        one = self.rows(depth - 1)
        kind = self.pick(("+", "*", "align", "cdiv", "max", "min"))
        if kind in ("align", "cdiv"):
            return divided(kind, one, literal(self.some(1, 16)))
        return combined(kind, one, self.number(self.fixed, 1))

    @property
    def fixed(self) -> list[Formula]:
        return [each for each in self.numbers if not each.moves]

    # Sections

    def schema(self) -> RandomSchema:
        self.text["limits"] = limits = self.limits()
        self.growing = [self.numbers[0]]
        target = self.target()
        fields, kinds = self.config()
        levers = self.levers()
        self.constants()
        helpers = [each for each in self.numbers if each.text in {*fields, "SIZE"}]
        self.functions(helpers)
        self.layouts = self.named_layouts(helpers)
        self.lets()
        buffers = self.buffers()
        self.groups([each.entry for each in buffers])
        trims = self.trims(buffers)
        self.text["buffers"] = {each.name: each.entry for each in buffers}
        self.text["trims"] = {
            f"trim{place}": {"doc": self.doc(), "when": gate.text, "buffers": [*names]}
            for place, (gate, names) in enumerate(trims)
        }
        sections = {key: value for key, value in self.text.items() if value}
        digest = sha256(repr(sections).encode()).hexdigest()[:12]
        package = f"arena_{digest}"
        head = {"class": "RandomArena", "package": package, "label": self.doc()}
        text = yaml.safe_dump(
            {"arena": {**head, "doc": self.doc()}, **sections},
            sort_keys=False,
            width=10**6,
        )
        return RandomSchema(
            package,
            text,
            fields,
            limits_of(limits),
            levers,
            target,
            kinds,
            buffers,
            trims,
        )

    def limits(self) -> dict[str, Any]:
        tokens = {"tokens": True, "minimum": 1, "doc": self.doc()}
        if self.chance():
            tokens["symbol"] = "M"
        text = "M" if "symbol" in tokens else "max_batch_tokens"
        self.numbers.append(
            Formula(text, lambda env: env["max_batch_tokens"], MAX_TOKENS, True)
        )
        limits: dict[str, Any] = {"max_batch_tokens": tokens}
        for name in ("max_sequences", "max_blocks")[: self.some(0, 2)]:
            limits[name] = {"minimum": 1, "maximum": 30, "doc": self.doc()}
            self.numbers.append(read(name, 30))
        return limits

    def target(self) -> dict[str, int]:
        names = ("sm_count", "lanes")[: self.some(0, 2)]
        target = {name: self.some(0, 1) for name in names}
        self.text["target"] = {
            name: {"default": self.some(low, 9), "minimum": low, "doc": self.doc()}
            for name, low in target.items()
        }
        self.numbers += [read(name, 9) for name in names]
        return target

    def config(self) -> tuple[dict[str, Formula], dict[str, str]]:
        section: dict[str, Any] = {}
        defaults: dict[str, Formula] = {}
        kinds: dict[str, str] = {}
        known: list[Formula] = []
        for place in range(self.some(1, 5)):
            name = f"width{place}"
            section[name] = {"doc": self.doc()}
            default = literal(0)
            if self.chance(3):
                default = self.number(known, 1)
                section[name]["default"] = plain(default)
            # Both a given value and the default have to stay below.
            known.append(read(name, max(MAX_FIELD, default.most)))
            defaults[name], kinds[name] = default, "int"
        self.numbers += known
        for name, kind, empty, leaves in (
            ("gated", "bool", False, self.truths),
            ("family", "str", "", self.words),
            ("layer_kinds", "list", (), self.lists),
        ):
            if self.chance():
                section[name] = {"type": kind, "doc": self.doc()}
                defaults[name] = Formula("", lambda env, empty=empty: empty)
                kinds[name] = kind
                leaves.append(read(name, 4))
        self.text["config"] = section
        return defaults, kinds

    def levers(self) -> dict[str, tuple[object, ...]]:
        section: dict[str, Any] = {}
        values: dict[str, tuple[object, ...]] = {}
        if self.chance():
            when = self.pick(("on_when", "off_when"))
            section["packed"] = {"type": "bool", when: ["1"]}
            values["packed"] = (False, True)
            self.truths.append(read("packed", 1))
            if self.chance():
                section["packed"]["arms"] = "checksum"
        if self.chance():
            section["splits"] = {"type": "int", "words": {"auto": 7}, "clamp": [1, 4]}
            section["splits"]["default"] = self.some(0, 7)
            values["splits"] = (*range(1, 5), 7, section["splits"]["default"])
            self.numbers.append(read("splits", 7))
        if self.chance(4):
            section["kernels"] = {"type": "str", "default": self.pick(WORDS)}
            values["kernels"] = WORDS
            self.words.append(read("kernels", 1))
        for name, entry in section.items():
            entry |= {"variable": f"RANDOM_{name.upper()}", "doc": self.doc()}
        self.text["levers"] = section
        return values

    def constants(self) -> None:
        size, word = self.some(0, 30), self.pick(WORDS)
        self.text["constants"] = {
            "SIZE": {"value": size, "doc": self.doc()},
            "COMMON": {"value": word, "doc": self.doc()},
            "KINDS": {"value": ["dense", "x"], "doc": self.doc()},
            "BUCKETS": {"value": [1, 8, 64], "doc": self.doc()},
        }
        self.numbers.append(Formula("SIZE", lambda env: size, size))
        self.words.append(Formula("COMMON", lambda env: word))
        self.lists.append(Formula("KINDS", lambda env: ("dense", "x"), 2))

    def functions(self, helpers: list[Formula]) -> None:
        section: dict[str, Any] = {}
        for place in range(self.some(0, 2)):
            name = f"helper{place}"
            names = [f"p{place}_{number}" for number in range(self.some(0, 2))]
            leaves = [*helpers, *(read(each, MAX_NUMBER) for each in names)]
            # Levers, limits and words that hang on them are for callers to pass.
            value = self.apart(leaves)
            section[name] = {"doc": self.doc(), "value": plain(value)}
            if names:
                section[name]["parameters"] = {
                    each: {"doc": self.doc()} for each in names
                }
            self.calls.append(self.caller(name, names, value.value, value.most))
        self.text["functions"] = section

    def apart(self, leaves: list[Formula]) -> Formula:
        """A number that reads these leaves, and of the rest constants alone."""
        kept = self.truths, self.words, self.lists
        self.truths = []
        self.words = [each for each in self.words if each.text == "COMMON"]
        self.lists = [each for each in self.lists if each.text == "KINDS"]
        found = self.number(leaves)
        self.truths, self.words, self.lists = kept
        return found

    def caller(
        self,
        name: str,
        parameters: list[str],
        value: Callable[[Env], int],
        most: int,
    ) -> Callable[[Sequence[Formula]], Formula]:
        def call(leaves: Sequence[Formula]) -> Formula:
            given = [self.number(leaves, 0) for _ in parameters]
            return Formula(
                f"{name}({', '.join(each.text for each in given)})",
                lambda env: value({**env, **values(parameters, given, env)}),
                most,
                any(each.moves for each in given),
            )

        return call

    def lets(self) -> None:
        section: dict[str, Any] = {}
        for place in range(self.some(0, 3)):
            name = f"part{place}"
            if self.chance(4):
                value = self.truth(self.fixed)
                self.truths.append(Formula(name, value.value))
            elif self.chance(3):
                value = self.rows()
                self.growing.append(Formula(name, value.value, value.most, True))
                self.numbers.append(self.growing[-1])
            else:
                value = self.number(self.numbers)
                self.numbers.append(Formula(name, value.value, value.most, value.moves))
            section[name] = {"doc": self.doc(), "value": plain(value)}
        self.text["let"] = section

    def named_layouts(
        self, helpers: list[Formula]
    ) -> list[tuple[str, list[str], Callable[[Env], int]]]:
        section: dict[str, Any] = {}
        layouts: list[tuple[str, list[str], Callable[[Env], int]]] = []
        every = self.numbers
        kept = self.truths, self.words, self.lists
        self.truths = []
        self.words = [each for each in self.words if each.text == "COMMON"]
        self.lists = [each for each in self.lists if each.text == "KINDS"]
        for place in range(self.some(0, 2)):
            name = f"block{place}"
            names = [f"b{place}_{number}" for number in range(self.some(0, 2))]
            align = self.pick((1, 1, 8, 256))
            self.numbers = [*helpers, *(read(each, 64) for each in names)]
            extent = self.regions(align, f"r{place}_", nested=layouts)
            section[name] = {"doc": self.doc(), **extent.keys}
            if names:
                section[name]["parameters"] = {
                    each: {"doc": self.doc()} for each in names
                }
            if align > 1:
                section[name]["align"] = align
            layouts.append((name, names, extent.nbytes))
        self.numbers = every
        self.truths, self.words, self.lists = kept
        for name, names, _ in layouts:
            if self.chance():
                given = self.arguments(names)
                section[name]["accessor"] = {
                    "doc": self.doc(),
                    "arguments": {
                        each: plain(value)
                        for each, value in zip(names, given, strict=True)
                    },
                }
        self.text["layouts"] = section
        return layouts

    def arguments(self, names: list[str]) -> list[Formula]:
        found = []
        for _ in names:
            one = self.number(self.numbers, 1)
            if one.most > 64:
                one = combined("min", one, literal(64))
            found.append(one)
        return found

    # Extents

    def shape(self, lead: Formula | None, own_dtype: str) -> Extent:
        """A shape; `lead` is its leading dimension, and the rest are fixed then."""
        leaves = self.numbers if lead is None else self.fixed
        dims = [self.number(leaves) if lead is None else lead]
        for _ in range(self.some(0, 2)):
            dim = self.number(leaves, 1)
            if prod(max(1, each.most) for each in [*dims, dim]) <= MAX_ELEMENTS:
                dims.append(dim)
        keys: dict[str, Any] = {"shape": [plain(each) for each in dims]}
        dtype = own_dtype
        if not dtype or self.chance(3):
            dtype = keys["dtype"] = self.pick(BITS)
        bits = BITS[dtype]
        return Extent(
            keys,
            lambda env: (prod(each.value(env) for each in dims) * bits + 7) // 8,
        )

    def bytes(self) -> Extent:
        size = self.number(self.numbers)
        return Extent({"bytes": plain(size)}, size.value)

    def layout_call(
        self, layouts: Sequence[tuple[str, list[str], Callable[[Env], int]]]
    ) -> Extent:
        name, names, nbytes = self.pick(layouts)
        given = self.arguments(names)
        keys: dict[str, Any] = {"layout": name}
        if names:
            keys["arguments"] = {
                each: plain(value) for each, value in zip(names, given, strict=True)
            }
        return Extent(keys, lambda env: nbytes({**env, **values(names, given, env)}))

    def regions(
        self,
        align: int,
        prefix: str,
        own_dtype: str = "",
        token_major: bool = False,
        nested: Sequence[tuple[str, list[str], Callable[[Env], int]]] = (),
    ) -> Extent:
        """Regions, each at a multiple of `align` unless it says otherwise."""
        entries: dict[str, Any] = {}
        parts: list[tuple[Formula | None, Formula | None, int, Extent]] = []
        for place in range(self.some(1, 4)):
            at = when = None
            own = align
            kind = "shape" if token_major else self.pick(("shape", "bytes", "layout"))
            if kind == "shape":
                extent = self.shape(self.rows() if token_major else None, own_dtype)
            elif kind == "layout" and nested:
                extent = self.layout_call(nested)
            else:
                extent = self.bytes()
            entry = {"doc": self.doc(), **extent.keys}
            if self.chance(4):
                own = entry["align"] = self.pick((1, 2, 16, 24, 512))
            elif self.chance(6) and not token_major:
                # Beyond all that can lie in front of it.
                at = literal((place + 1) << 24)
                entry["at"] = plain(at)
            if self.chance(4):
                when = self.truth(self.fixed if token_major else self.numbers)
                entry["when"] = plain(when)
            entries[f"{prefix}{place}"] = entry
            parts.append((when, at, own, extent))

        def nbytes(env: Env) -> int:
            end = 0
            for when, at, own, extent in parts:
                if when is None or when.value(env):
                    start = up(end, own) if at is None else at.value(env)
                    end = start + extent.nbytes(env)
            return end

        return Extent({"regions": entries}, nbytes)

    def uses(self, own_dtype: str, token_major: bool) -> Extent:
        entries: dict[str, Any] = {}
        parts: list[tuple[Formula | None, Extent]] = []
        for place in range(self.some(1, 4)):
            kind = self.pick(("shape", "shape", "bytes", "regions", "layout"))
            extent, align = self.single(kind, own_dtype, token_major, f"u{place}_")
            entry = {"doc": self.doc(), **extent.keys}
            if align > 1:
                entry["align"] = align
            when = None
            if self.chance():
                when = self.truth(self.fixed if token_major else self.numbers)
                entry["when"] = plain(when)
            entries[f"use{place}"] = entry
            parts.append((when, extent))
        return Extent(
            {"uses": entries},
            lambda env: max(
                extent.nbytes(env)
                for when, extent in [*parts, (None, NOTHING)]
                if when is None or when.value(env)
            ),
        )

    def single(
        self, kind: str, own_dtype: str, token_major: bool, prefix: str
    ) -> tuple[Extent, int]:
        """An extent that is no choice of uses, and the alignment of its regions."""
        if kind == "regions":
            align = self.pick((1, 1, 16, 64)) if prefix.startswith("u") else 1
            found = self.regions(align, prefix, own_dtype, token_major, self.layouts)
            return found, align
        if token_major or kind == "shape":
            return self.shape(self.rows() if token_major else None, own_dtype), 1
        if kind == "layout" and self.layouts:
            return self.layout_call(self.layouts), 1
        return self.bytes(), 1

    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(self.buffer(f"buffer{place}") for place in range(self.some(1, 6)))

    def buffer(self, name: str) -> Buffer:
        entry: dict[str, Any] = {"doc": self.doc()}
        own_dtype = ""
        if self.chance():
            own_dtype = entry["dtype"] = self.pick(BITS)
        token_major = self.chance()
        kind = self.pick(("shape", "shape", "bytes", "uses", "regions", "layout"))
        if kind == "uses":
            extent = self.uses(own_dtype, token_major)
        else:
            extent, _ = self.single(kind, own_dtype, token_major, "part")
        entry |= extent.keys
        own_dtype = entry.get("dtype", "")
        leaves = self.fixed if token_major else self.numbers
        least: Formula = literal(0)
        gate = otherwise = None
        if self.chance(3):
            least = self.number(leaves, 1)
            entry["min_bytes"] = plain(least)
        if self.chance(3):
            gate = self.truth(leaves)
            entry["when"] = plain(gate)
            if self.chance():
                otherwise = self.number(leaves, 1)
                entry["otherwise"] = plain(otherwise)
        if token_major:
            entry["token_major"] = True
        if self.chance(3):
            entry["checksum"] = True
        if self.chance(5):
            entry["align"] = self.pick((1, 2, 64, 512, 4096))
        if own_dtype and self.chance(4):
            entry["init"] = self.pick(("zeros", "ones"))
        elif self.chance(5):
            entry["carve"] = True

        def nbytes(env: Env) -> int:
            if gate is not None and not gate.value(env):
                return 0 if otherwise is None else int(otherwise.value(env))
            return max(extent.nbytes(env), least.value(env))

        return Buffer(name, entry, nbytes)

    def groups(self, entries: Sequence[dict[str, Any]]) -> None:
        section: dict[str, Any] = {}
        for name in ("all", "few")[: self.some(0, 2)]:
            members = [entry for entry in entries if self.chance()]
            for entry in members:
                entry.setdefault("zero", []).append(name)
            section[name] = {"method": f"clear_{name}", "doc": self.doc()}
            if any("token_major" in entry for entry in members) and self.chance():
                section[name]["rows_method"] = f"clear_{name}_rows"
        self.text["groups"] = section

    def trims(
        self, buffers: Sequence[Buffer]
    ) -> tuple[tuple[Formula, tuple[str, ...]], ...]:
        names = [each.name for each in buffers]
        return tuple(
            (self.truth(self.fixed), tuple(names[: self.some(1, len(names))]))
            for _ in range(self.some(0, 2))
        )


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
NOTHING = Extent({}, lambda env: 0)


def limits_of(section: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The most of every limit."""
    return {name: entry.get("maximum", MAX_TOKENS) for name, entry in section.items()}


def read(name: str, most: int) -> Formula:
    """An input by its name."""
    return Formula(name, lambda env: env[name], most)


def literal(value: int) -> Formula:
    """A number."""
    return Formula(str(value), lambda env: value, value)


def plain(formula: Formula) -> object:
    """A formula as YAML holds it: a number for a literal, else its text."""
    return int(formula.text) if formula.text.isdigit() else formula.text


def values(names: Sequence[str], given: Sequence[Formula], env: Env) -> dict[str, Any]:
    """The values of arguments, by the names of their parameters."""
    return {name: each.value(env) for name, each in zip(names, given, strict=True)}


def chosen(condition: Formula, one: Formula, other: Formula) -> Formula:
    """`one if condition else other`."""
    return Formula(
        f"({one.text} if {condition.text} else {other.text})",
        lambda env: one.value(env) if condition.value(env) else other.value(env),
        max(one.most, other.most),
        one.moves or condition.moves or other.moves,
    )


def divided(kind: str, one: Formula, by: Formula) -> Formula:
    """A quotient, a remainder, or a number rounded up."""
    text = (
        f"({one.text} {kind} {by.text})"
        if kind in ("//", "%")
        else f"{kind}({one.text}, {by.text})"
    )
    value: dict[str, Callable[[int, int], int]] = {
        "//": lambda a, b: a // b,
        "%": lambda a, b: a % b,
        "cdiv": lambda a, b: (a + b - 1) // b,
        "align": up,
    }
    compute = value[kind]
    most = one.most + by.most if kind == "align" else max(one.most, by.most)
    found = Formula(
        text,
        lambda env: compute(one.value(env), by.value(env)),
        most,
        one.moves or by.moves,
    )
    return found if most <= MAX_NUMBER else one


def combined(kind: str, one: Formula, other: Formula) -> Formula:
    """A sum, a product or a choice of two numbers; a difference is cut off at 0."""
    moves = one.moves or other.moves
    text, most = f"({one.text} {kind} {other.text})", 0
    if kind == "-":
        text = f"max({one.text} - {other.text}, 0)"
        return Formula(
            text, lambda env: max(one.value(env) - other.value(env), 0), one.most, moves
        )
    if kind in ("max", "min"):
        text = f"{kind}({one.text}, {other.text})"
        pick: Callable[[int, int], int] = max if kind == "max" else min
        return Formula(
            text,
            lambda env: pick(one.value(env), other.value(env)),
            pick(one.most, other.most),
            moves,
        )
    most = one.most * other.most if kind == "*" else one.most + other.most
    if most > MAX_NUMBER:
        return one
    if kind == "*":
        return Formula(text, lambda env: one.value(env) * other.value(env), most, moves)
    return Formula(text, lambda env: one.value(env) + other.value(env), most, moves)
