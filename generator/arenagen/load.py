"""Nodes to the model.

Runs the structure check first, then reads every section; formulas are parsed here, and
their faults are collected so that one run reports all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from .errors import InputProblems, Problem, Span, nearest
from .formula import Expr, FormulaError, Int, Type, parse
from .model import (
    DTYPES,
    ArenaInfo,
    Buffer,
    Bytes,
    Constant,
    ConstantValue,
    Doc,
    Dtype,
    Extent,
    Field,
    Fill,
    Formula,
    Function,
    Group,
    Layout,
    LayoutCall,
    Let,
    Lever,
    Limit,
    Parameter,
    Region,
    RegionMember,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    TargetConstant,
    Trim,
    Use,
    Uses,
)
from .source import Mapping, Node, Places, Scalar, Sequence, Value, locate
from .source import parse as parse_yaml
from .structure import check_structure

TYPES: dict[str, Type] = {"int": "int", "bool": "bool", "str": "str", "list": "list"}
# What gives an extent: to a buffer, to a use, to a region.
EXTENT_KEYS = ("shape", "bytes", "layout", "regions", "uses")
USE_KEYS = EXTENT_KEYS[:4]
REGION_KEYS = EXTENT_KEYS[:3]
DEFAULT_ALIGN = 256
# What Python says of the two halves of a call that a comma of YAML cuts.
_OPEN, _UNMATCHED = "was never closed", "unmatched"
Constants: TypeAlias = dict[str, Value]


def load(text: str, file: str) -> Schema:
    """The model of a whole schema, which extends no other.

    Raises InputProblems with everything wrong in its shape. The result is not yet
    checked: names may be unknown and formulas mistyped.
    """
    return load_nodes(shaped(parse_yaml(text, file)))


def shaped(root: Node) -> Mapping:
    """The nodes of a file that is shaped like a schema. Raises InputProblems."""
    if not isinstance(root, Mapping):
        problem = Problem("AR022", "the file is not a mapping of sections", root.span)
        raise InputProblems([problem])
    if problems := check_structure(root):
        raise InputProblems(problems)
    return root


def load_nodes(root: Mapping) -> Schema:
    """As `load`, from nodes that are shaped like a whole schema."""
    loader = _Loader()
    schema = loader.schema(root)
    if loader.problems:
        raise InputProblems(loader.problems)
    return schema


def parse_formula(
    scalar: Scalar, known: dict[str, Expr]
) -> tuple[Formula, Problem | None]:
    """The formula of a YAML scalar, and what is wrong with it.

    known: the trees of texts that have been read, to which a new one is added.
    """
    value = scalar.value
    text = value if isinstance(value, str) else _number_text(scalar)
    if text in known:
        return Formula(known[text], scalar), None
    try:
        expr = known[text] = parse(text)
    except FormulaError as error:
        cut = _OPEN in error.message or _UNMATCHED in error.message
        if cut and scalar.raw[:1] not in ("'", '"', ">", "|"):
            error.hint = "quote a formula that holds a comma inside `[ ]` or `{ }`"
        return Formula(Int(0), scalar), formula_problem("AR040", error, scalar)
    return Formula(expr, scalar), None


def formula_problem(code: str, error: FormulaError, scalar: Scalar) -> Problem:
    """A fault inside a formula, at its own place in the document."""
    start, end = error.at
    span = locate(scalar, start, max(1, end - start))
    return Problem(code, error.message, span, hint=error.hint)


def _number_text(scalar: Scalar) -> str:
    return "(" + str(scalar.value) + ")" if scalar.value else str(scalar.value)


class _Loader:
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._trees: dict[str, Expr] = {}
        self._docs: list[Doc] = []

    def schema(self, root: Mapping) -> Schema:
        return Schema(
            arena=self._arena(root),
            target=tuple(
                TargetConstant(
                    name,
                    self._doc(name, node),
                    _number(node, "default", 0),
                    _number(node, "minimum", 1),
                    at,
                    Places(node.values),
                )
                for name, at, node in _entries(root, "target")
            ),
            limits=tuple(self._limit(*entry) for entry in _entries(root, "limits")),
            config=tuple(self._field(*entry) for entry in _entries(root, "config")),
            levers=self._levers(root),
            constants=tuple(
                self._constant(*entry) for entry in _entries(root, "constants")
            ),
            lets=tuple(
                Let(name, self._doc(name, node), self._formula(node, "value"), at)
                for name, at, node in _entries(root, "let")
            ),
            functions=tuple(
                Function(
                    name,
                    self._doc(name, node),
                    self._parameters(node),
                    self._formula(node, "value"),
                    at,
                )
                for name, at, node in _entries(root, "functions")
            ),
            layouts=tuple(self._layout(*entry) for entry in _entries(root, "layouts")),
            groups=tuple(
                Group(
                    name,
                    self._doc(name, node),
                    _text(node, "method"),
                    _optional_text(node, "rows_method"),
                    at,
                    Places(node.values),
                )
                for name, at, node in _entries(root, "groups")
            ),
            buffers=tuple(self._buffer(*entry) for entry in _entries(root, "buffers")),
            trims=tuple(
                Trim(
                    name,
                    self._doc(name, node),
                    self._formula(node, "when"),
                    _references(node, "buffers"),
                    at,
                )
                for name, at, node in _entries(root, "trims")
            ),
            # Noted as the entries above were read.
            docs=tuple(self._docs),
        )

    def _arena(self, root: Mapping) -> ArenaInfo:
        node = root.get("arena")
        assert isinstance(node, Mapping)
        log = node.get("log")
        buffers = _list(log, "buffers") if isinstance(log, Mapping) else ()
        fields = _list(log, "fields") if isinstance(log, Mapping) else ()
        return ArenaInfo(
            class_name=_text(node, "class"),
            package=_text(node, "package"),
            label=_text(node, "label"),
            doc=self._doc("arena", node),
            families=_optional_text(node, "families"),
            log_buffers=tuple(str(each.value) for each in buffers),
            log_fields=tuple(str(each.value) for each in fields),
            node=root.key("arena"),
            places=Places(
                {str(each.value): each for each in (*buffers, *fields)} | node.values
            ),
        )

    def _limit(self, name: str, at: Scalar, node: Mapping) -> Limit:
        maximum, default = node.get("maximum"), node.get("default")
        return Limit(
            name=name,
            doc=self._doc(name, node),
            symbol=_optional_text(node, "symbol"),
            minimum=_number(node, "minimum", 0),
            maximum=None if maximum is None else _number(node, "maximum", 0),
            default=None if default is None else _number(node, "default", 0),
            tokens=_flag(node, "tokens"),
            node=at,
            places=Places(node.values),
        )

    def _field(self, name: str, at: Scalar, node: Mapping) -> Field:
        kind = TYPES[_optional_text(node, "type") or "int"]
        return Field(
            name=name,
            doc=self._doc(name, node),
            type=kind,
            default=self._optional_formula(node, "default"),
            aliases=_texts(node, "aliases"),
            shard=_optional_text(node, "shard"),
            node=at,
            places=Places(node.values),
        )

    def _levers(self, root: Mapping) -> tuple[Lever, ...]:
        constants = {
            name: value.value
            for name, _, node in _entries(root, "constants")
            if isinstance(value := node.get("value"), Scalar)
        }
        return tuple(
            self._lever(*entry, constants) for entry in _entries(root, "levers")
        )

    def _lever(
        self, name: str, at: Scalar, node: Mapping, constants: Constants
    ) -> Lever:
        kind = TYPES[_text(node, "type")]

        def meaning(scalar: Scalar) -> tuple[int | bool | str, str | None]:
            value = scalar.value
            if kind == "int" and isinstance(value, str):
                constant = constants.get(value)
                if isinstance(constant, int) and not isinstance(constant, bool):
                    return constant, value
            found: Type = (
                "bool"
                if isinstance(value, bool)
                else "int" if isinstance(value, int) else "str"
            )
            if found != kind:
                hint = "give a value of that type"
                if kind == "int":
                    hint = "give an integer, or the name of an integer constant"
                    if close := nearest(str(value), constants):
                        hint = f"did you mean `{close}`?"
                text = str(value).lower() if isinstance(value, bool) else value
                self._report(
                    "AR030",
                    f"`{text}` is no value of the lever `{name}`, whose type is {kind}",
                    scalar.span,
                    hint,
                )
                return 0, None
            assert isinstance(value, int | str)
            return value, None

        empty: dict[Type, int | bool | str] = {"int": 0, "bool": False, "str": ""}
        default = empty[kind]
        default_name: str | None = None
        given = node.get("default")
        if isinstance(given, Scalar):
            default, default_name = meaning(given)
        elif kind == "bool":
            default = "off_when" in node.values
        words: dict[str, tuple[int | str, str | None, Span]] = {}
        table = node.get("words")
        if isinstance(table, Mapping) and kind != "bool":
            for key, value in table.entries():
                assert isinstance(value, Scalar)
                word = str(key.value).strip().lower()
                if word in words:
                    self._report(
                        "AR044",
                        f"the lever `{name}` has the word `{word}` twice",
                        key.span,
                        "blanks around a word and its case do not count",
                        ("first", words[word][2]),
                    )
                result, constant = meaning(value)
                words[word] = (result, constant, key.span)
        clamp = node.get("clamp")
        bounds: tuple[int, int] | None = None
        if isinstance(clamp, Sequence):
            low, high = (item.value for item in clamp.items if isinstance(item, Scalar))
            assert isinstance(low, int) and isinstance(high, int)
            bounds = (low, high)
            if low > high:
                self._report(
                    "AR046",
                    f"the lever `{name}` is clamped from {low} to {high}",
                    clamp.span,
                    "give the smaller bound first",
                )
        self._lever_kind(name, at, node, kind)
        return Lever(
            name=name,
            doc=self._doc(name, node),
            variable=_text(node, "variable"),
            type=kind,
            default=default,
            default_name=default_name,
            on_when=_texts(node, "on_when"),
            off_when=_texts(node, "off_when"),
            words=tuple((word, *words[word][:2]) for word in words),
            clamp=bounds,
            arms=_optional_text(node, "arms"),
            node=at,
            places=Places(node.values),
        )

    def _lever_kind(self, name: str, at: Scalar, node: Mapping, kind: Type) -> None:
        keys = node.values.keys()
        ways = [key for key in ("on_when", "off_when") if key in keys]
        if kind == "bool" and len(ways) != 1:
            has = "has both `on_when` and `off_when`"
            self._report(
                "AR031",
                f"the lever `{name}` is a bool and "
                + (has if ways else "needs one of `on_when`, `off_when`"),
                (node.key(ways[1]) if ways else at).span,
                "keep the texts that switch it on, or those that switch it off",
            )
        other = [key for key in ("words", "clamp") if key in keys]
        wrong = other if kind == "bool" else ways
        if kind == "str" and "clamp" in keys:
            wrong = [*wrong, "clamp"]
        for key in wrong:
            self._report(
                "AR032",
                f"`{key}` does not go with a lever of type {kind}",
                node.key(key).span,
            )
        if kind == "int" and not other:
            self._report(
                "AR033",
                f"the lever `{name}` is an int and needs `words`, `clamp` or both",
                at.span,
            )

    def _constant(self, name: str, at: Scalar, node: Mapping) -> Constant:
        given = node.get("value")
        value: ConstantValue
        kind: Type
        if isinstance(given, Scalar):
            assert isinstance(given.value, int | str)
            value = given.value
            kind = (
                "bool"
                if isinstance(value, bool)
                else "int" if isinstance(value, int) else "str"
            )
        else:
            assert isinstance(given, Sequence)
            items = [item.value for item in given.items if isinstance(item, Scalar)]
            value, kind = self._list_constant(name, items, given.span)
        public = _flag(node, "public")
        return Constant(name, self._doc(name, node), value, kind, public, at)

    def _list_constant(
        self, name: str, items: list[Value], span: Span
    ) -> tuple[ConstantValue, Type]:
        numbers = [item for item in items if isinstance(item, int)]
        texts = [item for item in items if isinstance(item, str)]
        if numbers and texts:
            self._report("AR034", f"`{name}` mixes integers and texts", span)
        elif numbers and numbers != sorted(set(numbers)):
            self._report(
                "AR035",
                f"the list `{name}` does not ascend",
                span,
                "order it from the smallest to the largest, each once",
            )
        return (tuple(numbers), "ints") if numbers else (tuple(texts), "list")

    def _parameters(self, node: Mapping) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(
                name,
                self._doc(name, each),
                TYPES[_optional_text(each, "type") or "int"],
                at,
            )
            for name, at, each in _entries(node, "parameters")
        )

    def _layout(self, name: str, at: Scalar, node: Mapping) -> Layout:
        align = _number(node, "align", 1)
        lets = node.get("let")
        accessor = node.get("accessor")
        call: LayoutCall | None = None
        accessor_doc = ""
        if isinstance(accessor, Mapping):
            call = self._layout_call(name, accessor, node.key("accessor"))
            accessor_doc = self._doc("accessor", accessor)
        return Layout(
            name=name,
            doc=self._doc(name, node),
            parameters=self._parameters(node),
            lets=tuple(
                Let(str(key.value), "", self._parse(value), key)
                for key, value in (lets.entries() if isinstance(lets, Mapping) else ())
            ),
            regions=self._regions(node, None, align),
            accessor=call,
            accessor_doc=accessor_doc,
            node=at,
        )

    def _regions(self, node: Mapping, dtype: Dtype | None, align: int) -> Regions:
        regions = []
        for name, at, each in _entries(node, "regions"):
            extent = self._single(each, _dtype(each) or dtype, at, name, REGION_KEYS)
            assert not isinstance(extent, Regions)
            regions.append(
                Region(
                    name=name,
                    doc=self._doc(name, each),
                    extent=extent,
                    align=_number(each, "align", align),
                    at=self._optional_formula(each, "at"),
                    when=self._optional_formula(each, "when"),
                    node=at,
                )
            )
        return Regions(tuple(regions))

    def _buffer(self, name: str, at: Scalar, node: Mapping) -> Buffer:
        dtype = _dtype(node)
        extent: Extent
        if node.get("uses") is not None and self._one_extent(node, at, name):
            extent = Uses(
                tuple(
                    Use(
                        name=use,
                        doc=self._doc(use, each),
                        when=self._optional_formula(each, "when"),
                        extent=self._single(
                            each,
                            _dtype(each) or dtype,
                            at,
                            use,
                            USE_KEYS,
                            _number(each, "align", 1),
                        ),
                        node=at,
                    )
                    for use, at, each in _entries(node, "uses")
                )
            )
        else:
            extent = self._single(node, dtype, at, name)
        return Buffer(
            name=name,
            doc=self._doc(name, node),
            dtype=dtype,
            extent=extent,
            when=self._optional_formula(node, "when"),
            otherwise=self._optional_formula(node, "otherwise"),
            min_bytes=self._optional_formula(node, "min_bytes"),
            token_major=_flag(node, "token_major"),
            groups=_references(node, "zero"),
            zero_regions=tuple(_zero_regions(node)),
            checksum=_flag(node, "checksum"),
            init=self._init(node),
            carve=_flag(node, "carve"),
            align=_number(node, "align", DEFAULT_ALIGN),
            node=at,
            places=Places(node.values),
        )

    def _init(self, node: Mapping) -> Fill | None:
        given = node.get("init")
        if given is None:
            return None
        assert isinstance(given, Scalar)
        value = given.value
        if value == "zeros":
            return "zeros"
        if value == "ones":
            return "ones"
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self._report(
            "AR036",
            f"`{value}` is no initial fill",
            given.span,
            "write `zeros`, `ones` or a number",
        )
        return None

    def _one_extent(
        self, node: Mapping, at: Scalar, name: str, known: tuple[str, ...] = EXTENT_KEYS
    ) -> bool:
        present = [key for key in node.values if key in known]
        if len(present) == 1:
            return True
        if not present:
            self._report(
                "AR037",
                f"`{name}` has no extent",
                at.span,
                "give exactly one of " + ", ".join(f"`{key}`" for key in known),
            )
            return False
        first, second = present[:2]
        self._report(
            "AR038",
            f"`{name}` has two extents, `{first}` and `{second}`",
            node.key(second).span,
            "keep exactly one",
        )
        return False

    def _single(
        self,
        node: Mapping,
        dtype: Dtype | None,
        at: Scalar,
        name: str,
        known: tuple[str, ...] = EXTENT_KEYS,
        align: int = 1,
    ) -> SingleExtent:
        """The extent of an entry; `align` is that of its regions."""
        self._lone(node)
        if not self._one_extent(node, at, name, known):
            return Bytes(Formula(Int(0), _stand_in(node)))
        if isinstance(shape := node.get("shape"), Sequence):
            if dtype is None:
                self._report(
                    "AR039",
                    f"`{name}` has a shape and no dtype",
                    node.key("shape").span,
                    "add `dtype: bf16`, or whichever it is",
                )
                dtype = DTYPES["u8"]
            return Shape(dtype, self._dims(shape))
        if node.get("bytes") is not None:
            return Bytes(self._formula(node, "bytes"))
        if node.get("layout") is not None:
            value = node.get("layout")
            assert isinstance(value, Scalar)
            return self._layout_call(str(value.value), node, value)
        return self._regions(node, dtype, align)

    def _dims(self, shape: Sequence) -> tuple[Formula, ...]:
        """The dimensions; a call that its comma cuts in two is told once."""
        dims: list[Formula] = []
        cut = False
        for item in shape.items:
            assert isinstance(item, Scalar)
            formula, problem = parse_formula(item, self._trees)
            if problem is not None and not (cut and _UNMATCHED in problem.message):
                self.problems.append(problem)
            cut = cut or (problem is not None and _OPEN in problem.message)
            dims.append(formula)
        return tuple(dims)

    def _lone(self, node: Mapping) -> None:
        """Report keys that do nothing without another one, or beside it."""
        keys = node.values.keys()
        for key, other, wanted in (
            ("arguments", "layout", True),
            ("align", "at", False),
        ):
            if key in keys and (other in keys) != wanted:
                word = "without" if wanted else "beside"
                self._report(
                    "AR047",
                    f"`{key}` does nothing {word} `{other}`",
                    node.key(key).span,
                    "remove it",
                )

    def _layout_call(self, layout: str, node: Mapping, at: Scalar) -> LayoutCall:
        arguments = node.get("arguments")
        entries = [*arguments.entries()] if isinstance(arguments, Mapping) else []
        return LayoutCall(
            layout,
            tuple((str(key.value), self._parse(value)) for key, value in entries),
            at,
            Places({str(key.value): key for key, _ in entries}),
        )

    def _doc(self, name: str, node: Mapping) -> str:
        """The doc of an entry of that name, which is noted."""
        scalar = node.get("doc")
        assert isinstance(scalar, Scalar)
        self._docs.append(Doc(name, scalar))
        text = str(scalar.value)
        joined = " ".join(text.split())
        # Most are on one line, and then kept but once.
        return text if joined == text else joined

    def _formula(self, node: Mapping, key: str) -> Formula:
        value = node.get(key)
        assert value is not None
        return self._parse(value)

    def _optional_formula(self, node: Mapping, key: str) -> Formula | None:
        value = node.get(key)
        return None if value is None else self._parse(value)

    def _parse(self, node: Node) -> Formula:
        assert isinstance(node, Scalar)
        formula, problem = parse_formula(node, self._trees)
        if problem is not None:
            self.problems.append(problem)
        return formula

    def _report(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str = "",
        *related: tuple[str, Span],
    ) -> None:
        self.problems.append(Problem(code, message, span, hint, related=related))


def _entries(node: Mapping, section: str) -> Iterator[tuple[str, Scalar, Mapping]]:
    table = node.get(section)
    if isinstance(table, Mapping):
        for key, (name, value) in zip(table.keys(), table.values.items(), strict=True):
            assert isinstance(value, Mapping)
            yield name, key, value


def _stand_in(node: Mapping) -> Scalar:
    return Scalar(0, node.document, node.start, node.length)


def _text(node: Mapping, key: str) -> str:
    value = node.get(key)
    assert isinstance(value, Scalar)
    return str(value.value)


def _optional_text(node: Mapping, key: str) -> str | None:
    return None if node.get(key) is None else _text(node, key)


def _list(node: Mapping, key: str) -> tuple[Scalar, ...]:
    value = node.get(key)
    items = value.items if isinstance(value, Sequence) else ()
    return tuple(item for item in items if isinstance(item, Scalar))


def _texts(node: Mapping, key: str) -> tuple[str, ...]:
    return tuple(str(item.value) for item in _list(node, key))


def _references(node: Mapping, key: str) -> tuple[tuple[str, Scalar], ...]:
    return tuple((str(item.value), item) for item in _list(node, key))


def _zero_regions(node: Mapping) -> Iterator[RegionMember]:
    """The regions of a buffer that its entry `zero` lists by their groups."""
    value = node.get("zero")
    for item in value.items if isinstance(value, Sequence) else ():
        for key, paths in item.entries() if isinstance(item, Mapping) else ():
            for path in paths.items if isinstance(paths, Sequence) else ():
                assert isinstance(path, Scalar)
                yield RegionMember(str(key.value), str(path.value), key, path)


def _number(node: Mapping, key: str, default: int) -> int:
    value = node.get(key)
    if value is None:
        return default
    assert isinstance(value, Scalar) and isinstance(value.value, int)
    return value.value


def _flag(node: Mapping, key: str) -> bool:
    value = node.get(key)
    return isinstance(value, Scalar) and value.value is True


def _dtype(node: Mapping) -> Dtype | None:
    name = _optional_text(node, "dtype")
    return None if name is None else DTYPES[name]
