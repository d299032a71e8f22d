"""A hypothesis strategy for whole schemas, with an evaluator of its own.

Every schema is valid by construction. Formulas come with their values and bounds, so
that sizes are small for the inputs that `inputs` draws, unless they are to be huge; all
exist then, but for schemas that subtract. Nothing here is shared with the generator:
`sizes` is an independent opinion. It must never import arenagen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from math import prod
from typing import Any, NamedTuple

import yaml
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from random_formulas import (
    MAX_NUMBER,
    WORDS,
    Env,
    Formula,
    FormulaAuthor,
    NoSizeError,
    combined,
    literal,
    natural,
    plain,
    read,
    up,
    values,
)

MAX_TOKENS = 40
MAX_FIELD = 12
# Nor has a shape more elements.
MAX_ELEMENTS = 1 << 18

BITS = {
    name: bits
    for bits, names in {
        4: ("fp4_e2m1",),
        8: ("bool", "u8", "i8", "fp8_e4m3", "fp8_e5m2"),
        16: ("u16", "i16", "f16", "bf16"),
        32: ("u32", "i32", "f32"),
        64: ("u64", "i64", "f64"),
    }.items()
    for name in names
}


class Extent(NamedTuple):
    """The keys of an entry that set its size, and the bytes that they stand for."""

    keys: dict[str, Any]
    nbytes: Callable[[Env], int]


class Buffer(NamedTuple):
    """A buffer: its entry, and its bytes with its gate and its floor applied."""

    name: str
    entry: dict[str, Any]
    nbytes: Callable[[Env], int]


class RandomSchema(NamedTuple):
    """A schema, and what is needed to size it by hand.

    fields, kinds: the default and the type of every config field.
    limits: the most of each but the tokens; target: the least of each constant.
    levers: the values that each may have.
    lets: those that sizes read, also through one another.
    trims: the gate of each, and the buffers that it empties.
    subtracts: whether a size may be negative, for some inputs or for a smaller pass.
    """

    package: str
    text: str
    fields: dict[str, Formula]
    limits: dict[str, int]
    levers: dict[str, tuple[object, ...]]
    target: dict[str, int]
    kinds: dict[str, str]
    lets: tuple[Formula, ...]
    buffers: tuple[Buffer, ...]
    trims: tuple[tuple[Formula, tuple[str, ...]], ...]
    subtracts: bool

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
        """Bytes of every buffer, and those that trims removed.

        Raise NoSizeError where there is no such size, or a let has no value, whatever
        the gates of what reads it.
        """
        for each in self.lets:
            each.value(env)
        emptied = {
            name for gate, names in self.trims if gate.value(env) for name in names
        }
        sizes = {each.name: each.nbytes(env) for each in self.buffers}
        for nbytes in sizes.values():
            if not 0 <= nbytes < 2**63:
                raise NoSizeError(nbytes)
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
def inputs(draw: DrawFn, schema: RandomSchema, huge: bool = False) -> Inputs:
    """Inputs of a schema: those for which sizes are small, or huge ones."""
    number, tokens = st.integers(0, MAX_FIELD), st.integers(1, MAX_TOKENS)
    if huge:
        number |= st.integers(0, 2**40) | st.sampled_from([2**62, 2**63 - 1, 2**63])
        tokens |= st.integers(1, 2**40)
    values = {
        "int": number,
        "bool": st.booleans(),
        "str": st.sampled_from(WORDS),
        "list": st.lists(st.sampled_from(WORDS), max_size=4).map(tuple),
    }
    fields = {
        name: draw(values[schema.kinds[name]])
        for name in schema.fields
        if draw(st.integers(0, 3))
    }
    limits = {name: draw(st.integers(1, most)) for name, most in schema.limits.items()}
    return Inputs(
        fields,
        {**limits, "max_batch_tokens": draw(tokens)},
        {name: draw(st.sampled_from(of)) for name, of in schema.levers.items()},
        {name: draw(st.integers(low, 9)) for name, low in schema.target.items()},
    )


class _Author(FormulaAuthor):
    def __init__(self, draw: DrawFn) -> None:
        super().__init__(draw)
        self.text: dict[str, Any] = {}
        self.let_values: dict[str, Formula] = {}

    def schema(self) -> RandomSchema:
        self.text["limits"] = limits = self.limits()
        self.growing = [self.numbers[0]]
        target = self.target()
        fields, kinds = self.config()
        levers = self.levers()
        self.constants()
        # A default is a value of the config, which is never negative.
        self.subtract = self.chance(4)
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
        head = {"class": "RandomArena", "label": self.doc(), "doc": self.doc()}
        digest = sha256(repr((head, sections)).encode()).hexdigest()[:12]
        package = f"arena_{digest}"
        whole = {"arena": {**head, "package": package}, **sections}
        text = yaml.safe_dump(whole, sort_keys=False, width=10**6)
        others = {
            name: entry["maximum"]
            for name, entry in limits.items()
            if name != "max_batch_tokens"
        }
        return RandomSchema(
            package,
            text,
            fields,
            others,
            levers,
            target,
            kinds,
            tuple(self.lets_read()),
            buffers,
            trims,
            self.subtract,
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
            if known and self.chance(3):
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
        legal: dict[str, tuple[object, ...]] = {}
        if self.chance():
            when = self.pick(("on_when", "off_when"))
            section["packed"] = {"type": "bool", when: ["1"]}
            legal["packed"] = (False, True)
            self.truths.append(read("packed", 1))
            if self.chance():
                section["packed"]["arms"] = "checksum"
        if self.chance():
            section["splits"] = {"type": "int", "words": {"auto": 7}, "clamp": [1, 4]}
            section["splits"]["default"] = self.some(0, 7)
            legal["splits"] = (*range(1, 5), 7, section["splits"]["default"])
            self.numbers.append(read("splits", 7))
        if self.chance(4):
            section["kernels"] = {"type": "str", "default": self.pick(WORDS)}
            legal["kernels"] = WORDS
            self.words.append(read("kernels", 1))
        for name, entry in section.items():
            entry |= {"variable": f"RANDOM_{name.upper()}", "doc": self.doc()}
        self.text["levers"] = section
        return legal

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
            with self.helping():
                value = self.number(leaves)
            section[name] = {"doc": self.doc(), "value": plain(value)}
            if names:
                section[name]["parameters"] = {
                    each: {"doc": self.doc()} for each in names
                }
            self.calls.append(self.caller(name, names, value.value, value.most))
        self.text["functions"] = section

    @contextmanager
    def helping(self) -> Iterator[None]:
        """Formulas of helpers: whatever hangs on a lever is for callers to pass."""
        kept = self.truths, self.words, self.lists
        self.truths = []
        self.words = [each for each in self.words if each.text == "COMMON"]
        self.lists = [each for each in self.lists if each.text == "KINDS"]
        yield
        self.truths, self.words, self.lists = kept

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
            self.let_values[name] = value
        self.text["let"] = section

    def lets_read(self) -> Iterator[Formula]:
        """The lets that sizes read, the last first: a let reads those before it."""
        known = set(words_of([self.text["buffers"], self.text["trims"]]))
        for name in reversed(self.let_values):
            if name in known:
                known |= set(words_of(self.text["let"][name]["value"]))
                yield self.let_values[name]

    def named_layouts(
        self, helpers: list[Formula]
    ) -> list[tuple[str, list[str], Callable[[Env], int]]]:
        section: dict[str, Any] = {}
        layouts: list[tuple[str, list[str], Callable[[Env], int]]] = []
        every = self.numbers
        for place in range(self.some(0, 2)):
            name = f"block{place}"
            names = [f"b{place}_{number}" for number in range(self.some(0, 2))]
            align = self.pick((1, 1, 8, 256))
            self.numbers = [*helpers, *(read(each, 64) for each in names)]
            with self.helping():
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
            lambda env: (prod(natural(each, env) for each in dims) * bits + 7) // 8,
        )

    def bytes(self) -> Extent:
        size = self.number(self.numbers)
        return Extent({"bytes": plain(size)}, lambda env: natural(size, env))

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
        counts = [each._replace(value=partial(natural, each)) for each in given]
        return Extent(keys, lambda env: nbytes({**env, **values(names, counts, env)}))

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
        # Where what lies in front ends at most, while it is all of a known size.
        end: int | None = 0
        for place in range(self.some(1, 4)):
            at = when = None
            own, size = align, None
            kinds = ("shape", "bytes", "layout", "literal")
            kind = "shape" if token_major else self.pick(kinds)
            if kind == "shape":
                extent = self.shape(self.rows() if token_major else None, own_dtype)
            elif kind == "layout" and nested:
                extent = self.layout_call(nested)
            elif kind == "literal":
                size = self.some(0, 40)
                extent = Extent({"bytes": size}, partial(keep, size))
            else:
                extent = self.bytes()
            entry = {"doc": self.doc(), **extent.keys}
            if end is not None and self.chance(3) and not token_major:
                at = literal(end + self.some(0, 64))
                entry["at"] = plain(at)
                end = at.most
            elif self.chance(4):
                own = entry["align"] = self.pick((1, 2, 16, 24, 256))
            end = None if end is None or size is None else up(end, own) + size
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
                    if start < end:
                        raise NoSizeError(start)
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
            # What is laid out inside may be aligned to 256 bytes.
            flat = kind in ("shape", "bytes")
            entry["align"] = self.pick((1, 2, 64, 512, 4096) if flat else (512, 4096))
        if own_dtype and self.chance(4):
            entry["init"] = self.pick(("zeros", "ones"))
        elif self.chance(5):
            entry["carve"] = True

        def nbytes(env: Env) -> int:
            if gate is not None and not gate.value(env):
                return 0 if otherwise is None else int(otherwise.value(env))
            return max(extent.nbytes(env), natural(least, env))

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


def words_of(node: object) -> Iterator[str]:
    """The words of every formula in a part of a document; its keys are no formulas."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from words_of(value if key != "doc" else ())
    elif isinstance(node, list | tuple):
        for value in node:
            yield from words_of(value)
    else:
        yield from re.findall(r"\w+", str(node))


NOTHING = Extent({}, lambda env: 0)


def keep(value: int, _: Env) -> int:
    """A size that depends on nothing."""
    return value
