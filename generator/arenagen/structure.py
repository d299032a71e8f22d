"""The JSON Schema run: is the document shaped like a schema at all?

Takes nodes, returns problems with spans; what passes can be loaded without a further
test of shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from . import resources
from .accepts import accepts
from .errors import MAX_PROBLEMS, Problem, Span, did_you_mean
from .source import Mapping, Node, Scalar, Sequence, plain

_KINDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
    "boolean": "true or false",
}
_FORMULA = {"integer", "string", "boolean"}
# One entry of a list that is written without its brackets.
_ENTRY = r"[A-Za-z_][A-Za-z0-9_]{0,39}|[0-9]{1,19}"
# How other languages call the types and dtypes.
_SPELLINGS = {
    "array": "list",
    "bfloat16": "bf16",
    "boolean": "bool",
    "double": "f64",
    "float": "f32",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "fp16": "f16",
    "fp32": "f32",
    "fp4": "fp4_e2m1",
    "fp8": "fp8_e4m3",
    "half": "f16",
    "integer": "int",
    "number": "int",
    "string": "str",
    "text": "str",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}
_PATTERNS = {
    "^[A-Z][A-Za-z0-9]*$": "a capital letter, then letters and digits",
    "^[A-Z][A-Z0-9_]*$": "a capital letter, then capitals, digits and `_`",
    "^[a-z][a-z0-9_]*$": "a small letter, then small letters, digits and `_`",
    "^[A-Za-z]$": "one letter",
    "^[A-Za-z][A-Za-z0-9_]*$": "a letter, then letters, digits and `_`",
    r"^(?![/\\]|[A-Za-z]:).*\.ya?ml$": "a relative path that ends in .yaml or .yml",
}


def check_structure(root: Node, families: bool = False) -> list[Problem]:
    """Every place where the document is not shaped as its JSON Schema wants.

    It is that of the schema language, or that of a family table.
    """
    shape = json.loads(resources.schema_text(families))
    if accepts(shape, root):
        return []
    errors = _validator(shape).iter_errors(plain(root))
    tree = _Tree(root)
    problems = chain.from_iterable(_translate(error, tree) for error in errors)
    return list(islice(problems, MAX_PROBLEMS))


def _validator(schema: Any) -> Any:
    """A validator that coerces nothing: `1.0` is no integer, blanks are no text."""
    import jsonschema
    from jsonschema.validators import extend

    def is_integer(_: object, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def pattern(_: Any, wanted: str, value: object, __: object) -> Iterator[Any]:
        if isinstance(value, str) and not re.fullmatch(wanted, value):
            yield jsonschema.ValidationError("")

    def min_length(_: Any, wanted: int, value: object, __: object) -> Iterator[Any]:
        if isinstance(value, str) and len(value.strip()) < wanted:
            yield jsonschema.ValidationError("")

    def nothing(*_: object) -> Iterator[Any]:
        """Names are checked, and more of them is told, by `check_names`."""
        return iter(())

    base = jsonschema.Draft202012Validator
    kind: Any = extend(  # type: ignore[no-untyped-call]
        base,
        {"pattern": pattern, "minLength": min_length, "propertyNames": nothing},
        type_checker=base.TYPE_CHECKER.redefine("integer", is_integer),
    )
    return kind(schema)


class _Tree:
    """A document whose nodes are found by path, however many there are."""

    def __init__(self, root: Node) -> None:
        self.root = root

    def node(self, path: list[str | int]) -> Node:
        """The node at a path."""
        node = self.root
        for step in path:
            if isinstance(node, Mapping):
                node = node.values[str(step)]
            elif isinstance(node, Sequence):
                assert isinstance(step, int)
                node = node.items[step]
        return node

    def name(self, path: list[str | int]) -> Span:
        """The key that a value stands under; the file's first one for the root."""
        parent = self.node(path[:-1])
        if isinstance(parent, Mapping) and path:
            return parent.key(str(path[-1])).span
        node = self.node(path)
        if isinstance(node, Mapping) and node.values:
            return next(node.keys()).span
        return node.span


def _translate(error: Any, tree: _Tree) -> Iterator[Problem]:
    path = list(error.absolute_path)
    node, where = tree.node(path), _where(path)
    match error.validator:
        case "additionalProperties":
            assert isinstance(node, Mapping)
            known = list(error.schema.get("properties", {}))
            for key, value in node.entries():
                if str(key.value) in known:
                    continue
                hint = did_you_mean(str(key.value), known)
                if key.value == "<<":
                    hint = "YAML 1.2 has no merge keys: write the entries out"
                elif isinstance(value, Scalar) and _lone_key(value):
                    hint = "quote a text that holds a comma inside `{ }`"
                yield Problem(
                    "AR020", f"unknown key `{key.value}`{where}", key.span, hint=hint
                )
        case "required":
            assert isinstance(node, Mapping)
            for key in error.validator_value:
                if node.get(key) is None and error.message.startswith(f"'{key}'"):
                    yield Problem(
                        "AR021",
                        f"the key `{key}` is missing{where}",
                        tree.name(path),
                        hint=_missing_hint(key, path),
                    )
        case "type":
            wanted = error.validator_value
            kinds = [wanted] if isinstance(wanted, str) else wanted
            yield Problem(
                "AR022",
                f"{_found(node)}{where}; it must be {_either(kinds)}",
                node.span,
                hint=_type_hint(node, kinds, path),
            )
        case "enum":
            choice = [str(each) for each in error.validator_value]
            word = str(node.value) if isinstance(node, Scalar) else ""
            meant = _SPELLINGS.get(word.lower(), word)
            found = f"{_found(node)}{where}"
            nothing = isinstance(node, Scalar) and node.value is None
            yield Problem(
                "AR023",
                (
                    f"{found}; it must be one of the words known here"
                    if nothing
                    else f"{found} is none of the words known here"
                ),
                node.span,
                hint=did_you_mean(meant, choice) or "one of: " + ", ".join(choice),
            )
        case "pattern":
            wanted = error.validator_value
            yield Problem(
                "AR024",
                f"{_found(node)}{where} is not well formed",
                node.span,
                hint=_PATTERNS.get(wanted) or f"it must match {wanted}",
            )
        case "minimum":
            yield Problem(
                "AR025",
                f"{_found(node)}{where}; at least {error.validator_value}",
                node.span,
            )
        case "minItems" | "maxItems" if isinstance(node, Sequence) and node.items:
            count, wanted = len(node.items), error.validator_value
            yield Problem(
                "AR028",
                f"{count} {'entry' if count == 1 else 'entries'}{where}; "
                f"it must have {wanted}",
                node.span,
            )
        case "maxLength" if isinstance(node, Scalar):
            yield Problem(
                "AR019",
                f"{len(str(node.value))} characters{where}; at most "
                f"{error.validator_value}",
                node.span,
            )
        case "minItems" | "minProperties" | "minLength":
            yield Problem("AR026", f"nothing{where}", tree.name(path))
        case "uniqueItems":
            assert isinstance(node, Sequence)
            items = [plain(item) for item in node.items]
            for place, item in enumerate(items):
                if item in items[:place]:
                    yield Problem(
                        "AR027",
                        f"`{item}` stands twice{where}",
                        node.items[place].span,
                        related=(("first", node.items[items.index(item)].span),),
                    )
        case "not":
            assert isinstance(node, Mapping)
            yield Problem(
                "AR102",
                "`remove` and no base to remove from",
                node.key("remove").span,
                hint="add `extends: base.yaml` to the section `arena`",
            )
        case _:
            yield Problem("AR022", f"{error.message}{where}", node.span)


def _where(path: list[str | int]) -> str:
    return f" in `{'.'.join(str(step) for step in path)}`" if path else ""


def _found(node: Node) -> str:
    match node:
        case Scalar(None):
            return "nothing"
        case Scalar(bool() as value):
            return f"`{str(value).lower()}`"
        case Scalar(value):
            text = node.raw if isinstance(value, float) else str(value)
            text = text.replace("\n", "\\n")
            return f"`{text[:60]}…`" if len(text) > 60 else f"`{text}`"
        case Sequence():
            return "a list"
    return "a mapping"


def _either(kinds: list[str]) -> str:
    """`an integer, a text or true or false`."""
    if set(kinds) == _FORMULA:
        return "a formula"
    words = [_KINDS[kind] for kind in sorted(kinds, key=list(_KINDS).index)]
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def _type_hint(node: Node, kinds: list[str], path: list[str | int]) -> str:
    match node:
        case Scalar(None) if node.rest.lstrip().startswith("#"):
            return "` #` begins a comment: put a text with it in quotes"
        case Scalar(None) if _lone_key(node):
            return "quote what holds a comma inside `{ }`"
        case Scalar(None) if node.span.source[node.span.column - 1 :][:1] == "&":
            return "put a text that begins with `&` in quotes"
        case Scalar(str() | int() as value) if kinds == ["array"] and (
            not isinstance(value, bool)
        ):
            return _list_hint(str(value), path)
        case Sequence() | Mapping() if kinds == ["string"]:
            return _bracket_hint(node)
        case Scalar(str() as text) if kinds == ["integer"] and text[:1].isdigit():
            return "write the number with digits alone"
        case Scalar(float()) if "integer" in kinds:
            return "sizes are exact integers"
        case Scalar("yes" | "no" | "on" | "off" | "True" | "False") if (
            "boolean" in kinds
        ):
            return "YAML 1.2 knows `true` and `false` alone"
        case Sequence() if set(kinds) == _FORMULA:
            return "a formula with brackets at its start needs quotes"
        case Scalar(int() | float()) if "string" in kinds:
            return "put the text in quotes"
    return ""


def _missing_hint(key: str, path: list[str | int]) -> str:
    if key == "doc":
        return "say in a sentence what it is: `doc: …`"
    return f"add `{key}: …`" if path else f"add the section `{key}`"


def _list_hint(text: str, path: list[str | int]) -> str:
    """The list that a text is meant to be, where that is sure."""
    shape = path[-1:] == ["shape"]
    # A shape has the product of its dimensions as elements.
    entries = [part.strip() for part in re.split("[,*]" if shape else ",", text)]
    if all(re.fullmatch(_ENTRY, each) for each in entries):
        return f"write `[{', '.join(entries)}]`"
    return "give a list of dimensions" if shape else ""


def _lone_key(node: Scalar) -> bool:
    """Whether nothing, not even a colon, stands behind a key inside of braces."""
    before = node.span.source[: node.span.column - 1].rstrip()
    behind = node.rest.lstrip()[:1]
    return not node.raw and not before.endswith(":") and behind in (",", "}")


def _bracket_hint(node: Node) -> str:
    opener = node.span.source[node.span.column - 1 :][:1]
    if opener in ("[", "{"):
        return f"put a text that begins with `{opener}` in quotes"
    return ""
