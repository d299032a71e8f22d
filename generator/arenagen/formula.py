"""Formulas: the tree, parsing, types and the printer.

A formula is a small, safe subset of Python expressions. It is parsed with `ast`, and
only the node kinds listed here pass; nothing is ever evaluated as code. Evaluation is
in `evaluate`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from keyword import iskeyword
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from .record import field, record

MAX_LENGTH = 4000
MAX_DEPTH = 60
MAX_INT = 2**63 - 1

Type: TypeAlias = Literal["int", "bool", "str", "list", "ints"]

TYPE_WORDS: dict[Type, str] = {
    "int": "an integer",
    "bool": "a truth value",
    "str": "a text",
    "list": "a list of texts",
    "ints": "a list of integers",
}

# Offsets of a node's first and past-last character in the formula's text.
At: TypeAlias = tuple[int, int]


def _children(*names: str) -> Any:
    """The direct sub-formulas. Every walk asks for those of every node."""
    return property(attrgetter(*names))


@record
class Int:
    value: int
    at: At = field(default=(0, 1), compare=False)
    children = ()


@record
class Bool:
    value: bool
    at: At = field(default=(0, 1), compare=False)
    children = ()


@record
class Str:
    value: str
    at: At = field(default=(0, 1), compare=False)
    children = ()


@record
class Name:
    name: str
    at: At = field(default=(0, 1), compare=False)
    children = ()


@record
class Unary:
    """`-x` or `not x`."""

    op: str
    operand: Expr
    at: At = field(default=(0, 1), compare=False)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The direct sub-formulas."""
        return (self.operand,)


@record
class Binary:
    """`+ - * // %` of integers."""

    op: str
    left: Expr
    right: Expr
    at: At = field(default=(0, 1), compare=False)

    children = _children("left", "right")


@record
class Compare:
    """One comparison, or `in` / `not in` a list."""

    op: str
    left: Expr
    right: Expr
    at: At = field(default=(0, 1), compare=False)

    children = _children("left", "right")


@record
class Logic:
    """`and` or `or` of two or more truth values."""

    op: str
    items: tuple[Expr, ...]
    at: At = field(default=(0, 1), compare=False)

    children = _children("items")


@record
class IfElse:
    """`then if condition else other`."""

    condition: Expr
    then: Expr
    other: Expr
    at: At = field(default=(0, 1), compare=False)

    children = _children("condition", "then", "other")


@record
class Call:
    """A built-in function, a function of the schema, or the bytes of a layout.

    A name that begins with a dot is a method of the first argument, in emitted code.
    """

    name: str
    arguments: tuple[Expr, ...]
    at: At = field(default=(0, 1), compare=False)

    children = _children("arguments")


Expr: TypeAlias = (
    Int | Bool | Str | Name | Unary | Binary | Compare | Logic | IfElse | Call
)


class FormulaError(Exception):
    """A formula that is refused: why, where in its text, and a hint."""

    def __init__(self, message: str, at: At, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint


_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Attribute: ("attribute access", "use the bare name"),
    ast.Subscript: ("a subscript", "lists are read by `count`, `len` and `in`"),
    ast.Lambda: ("a lambda", "write a function in `functions`"),
    ast.NamedExpr: ("an assignment", "name the sub-formula in `let`"),
    ast.JoinedStr: ("an f-string", "use a plain text"),
    ast.Starred: ("a starred argument", "write the arguments out"),
    ast.ListComp: ("a comprehension", "use `count`, `max` or `min`"),
    ast.GeneratorExp: ("a comprehension", "use `count`, `max` or `min`"),
    ast.SetComp: ("a comprehension", "use `count`, `max` or `min`"),
    ast.DictComp: ("a comprehension", "use `count`, `max` or `min`"),
    ast.List: ("a list", "name the list in `constants`"),
    ast.Tuple: ("a tuple", "a shape is a YAML list of formulas"),
    ast.Dict: ("a dict", "name the values in `constants`"),
    ast.Set: ("a set", "name the list in `constants`"),
}
_REFUSED_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Div: ("`/`", "sizes are exact integers: use `//`, or `cdiv(x, n)` to round up"),
    ast.Pow: ("`**`", "write the product out"),
    ast.LShift: ("`<<`", "multiply instead"),
    ast.RShift: ("`>>`", "use `//` instead"),
    ast.BitAnd: ("`&`", "use `and` for gates, `align` or `%` for sizes"),
    ast.BitOr: ("`|`", "use `or`"),
    ast.BitXor: ("`^`", "write a power as a product, and use `!=` for gates"),
    ast.MatMult: ("`@`", "use `*`"),
    ast.Invert: ("`~`", "use `not`"),
    ast.UAdd: ("a `+` sign", "leave it out"),
    ast.Is: ("`is`", "use `==`"),
    ast.IsNot: ("`is not`", "use `!=`"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")
# What may be on its way out of Python: `1if`, and `\\d` in a text.
_OUTDATED = re.compile(r"(?<!\w)\d[\d.]*[A-Za-z_]|\\")
_LOOKALIKES = {
    "\N{MULTIPLICATION SIGN}": "use `*`",
    "\N{MIDDLE DOT}": "use `*`",
    "\N{DIVISION SIGN}": "use `//`",
    "\N{MINUS SIGN}": "use `-`",
    "\N{EN DASH}": "use `-`",
    "\N{EM DASH}": "use `-`",
    "\N{LESS-THAN OR EQUAL TO}": "use `<=`",
    "\N{GREATER-THAN OR EQUAL TO}": "use `>=`",
    "\N{NOT EQUAL TO}": "use `!=`",
    "\N{LEFT SINGLE QUOTATION MARK}": "use `'`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "use `'`",
    "\N{LEFT DOUBLE QUOTATION MARK}": "use `'`",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "use `'`",
}
# What other languages spell differently, looked for where Python finds no formula.
_SLIPS = (
    (r"&&", "use `and`"),
    (r"\|\|", "use `or`"),
    (r"\?", "write `a if condition else b`"),
    (r"!(?!=)", "use `not`"),
    (r"(?<![=!<>:])=(?!=)", "compare with `==`"),
    (r"\b\d+[A-Za-z_]", "write the product with `*`"),
    (r"\w x \w", "write the product with `*`"),
    (r"<>", "use `!=`"),
    (r"\bmod\b", "use `%`"),
    (r"\bdiv\b", "use `//`"),
)


def parse(text: str) -> Expr:
    """The tree of a formula. Raises FormulaError at the first thing that is refused."""
    # Most formulas are a name.
    if _NAME.fullmatch(text) and not iskeyword(text) and len(text) <= MAX_LENGTH:
        return Name(text, (0, len(text)))
    # A folded YAML text may keep line ends, which mean nothing inside a formula.
    line = text.replace("\n", " ")
    stripped = line.lstrip()
    if not stripped:
        raise FormulaError("an empty formula", (0, 1))
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            f"a formula of {len(text)} characters; at most {MAX_LENGTH} are read",
            (0, 1),
            "name its parts in `let`",
        )
    if not (line.isascii() and line.isprintable()):
        raise _bad_character(line)
    if "#" in line and "#" in (bare := _bare(line)):
        raise FormulaError(
            "a comment in a formula",
            (bare.index("#"), len(line.rstrip())),
            "put it on a line of its own, outside the text",
        )
    try:
        tree = _tree(stripped)
    except SyntaxError as error:
        shift, last = len(line) - len(stripped), len(line.rstrip()) - 1
        # Python's offset is 0 where the text ends too early.
        start = min((error.offset or len(line)) - 1 + shift, last)
        early = error.msg == "invalid syntax" and not error.offset
        what = "it ends too early" if early else re.split(r"[.;] ", error.msg)[0]
        bare = _bare(line)
        slips = (hint for pattern, hint in _SLIPS if re.search(pattern, bare))
        raise FormulaError(
            f"not a formula: {what}", (start, start + 1), next(slips, "")
        ) from None
    except (RecursionError, MemoryError, ValueError):
        raise FormulaError(
            "a formula nested too deep", (0, 1), "name its parts in `let`"
        ) from None
    return _convert(tree, len(line) - len(stripped), 0)


def _bare(line: str) -> str:
    """The line with blanks for the texts in quotes."""
    return _TEXT.sub(lambda found: " " * len(found[0]), line)


def _tree(text: str) -> ast.expr:
    """Python's tree of an expression. Raises what `ast.parse` raises, and SyntaxError
    for what is on its way out of Python.
    """
    if not _OUTDATED.search(text):
        return ast.parse(text, mode="eval").body
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ast.parse(text, mode="eval").body


def _bad_character(line: str) -> FormulaError:
    allowed = (char.isascii() and char.isprintable() for char in line)
    index = list(allowed).index(False)
    char = line[index]
    return FormulaError(
        f"the character {char!r} in a formula",
        (index, index + 1),
        _LOOKALIKES.get(char) or _character_hint(char),
    )


def _character_hint(char: str) -> str:
    """What to do about a character that a keyboard or an editor put there."""
    import unicodedata

    if char == "\t" or unicodedata.category(char) == "Zs":
        return "use a plain blank"
    if unicodedata.category(char) in ("Cc", "Cf"):
        return "remove it"
    plain = unicodedata.normalize("NFKC", char)
    if plain.isascii():
        return f"use `{plain}`"
    return "formulas and names are ASCII" if char.isalpha() else ""


def _convert(node: ast.expr, shift: int, depth: int) -> Expr:
    at = (node.col_offset + shift, (node.end_col_offset or 0) + shift)
    if depth > MAX_DEPTH:
        raise FormulaError("a formula nested too deep", at, "name its parts in `let`")

    def sub(child: ast.expr) -> Expr:
        return _convert(child, shift, depth + 1)

    match node:
        case ast.Name(id=name):
            return Name(name, at)
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            return Binary(_BINARY[type(op)], sub(left), sub(right), at)
        case ast.Constant(value=bool() as truth):
            return Bool(truth, at)
        case ast.Constant(value=int() as number):
            if number > MAX_INT:
                raise FormulaError("an integer beyond 2**63 - 1", at)
            return Int(number, at)
        case ast.Constant(value=str() as word):
            return Str(word, at)
        case ast.Constant(value=value):
            hint = "sizes are exact integers" if isinstance(value, float) else ""
            raise FormulaError(f"`{value!r}` in a formula", at, hint)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Unary("-", sub(operand), at)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Unary("not", sub(operand), at)
        case ast.BoolOp(op=op, values=values):
            word = "and" if isinstance(op, ast.And) else "or"
            return Logic(word, tuple(sub(value) for value in values), at)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            return _comparison([left, *rights], ops, at, sub)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return IfElse(sub(test), sub(body), sub(orelse), at)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            for keyword in keywords:
                start, end = keyword.col_offset, keyword.end_col_offset or 0
                raise FormulaError(
                    "a keyword argument in a formula",
                    (start + shift, end + shift),
                    "give the arguments in order",
                )
            return Call(name, tuple(sub(argument) for argument in args), at)
        case ast.Call(func=function):
            sub(function)
            raise FormulaError(
                "a call of a formula", at, "functions are called by their name"
            )
        case ast.BinOp(op=bad) | ast.UnaryOp(op=bad):
            what, hint = _REFUSED_OPERATORS.get(
                type(bad), (f"the operator `{type(bad).__name__}`", "")
            )
            raise FormulaError(f"{what} in a formula", at, hint)
    what, hint = _REFUSED.get(type(node), (f"`{type(node).__name__}`", ""))
    raise FormulaError(f"{what} in a formula", at, hint)


def _comparison(
    operands: list[ast.expr],
    ops: list[ast.cmpop],
    at: At,
    sub: Callable[[ast.expr], Expr],
) -> Expr:
    for op in ops:
        if type(op) not in _COMPARE:
            what, hint = _REFUSED_OPERATORS[type(op)]
            raise FormulaError(f"{what} in a formula", at, hint)
    terms = [sub(operand) for operand in operands]
    for term in terms[1:-1]:
        # It stands in two comparisons, so that nesting would double it again and again.
        if not isinstance(term, Name | Int):
            raise FormulaError(
                "a chain of comparisons around more than a name",
                term.at,
                "write two comparisons, joined by `and`",
            )
    parts = [
        Compare(_COMPARE[type(op)], left, right, at)
        for left, op, right in zip(terms, ops, terms[1:], strict=False)
    ]
    return parts[0] if len(parts) == 1 else Logic("and", tuple(parts), at)


def joined(op: str, operands: Iterable[Expr]) -> Expr:
    """`a op b op c`, from the left; the only operand as it is."""
    return reduce(lambda left, right: Binary(op, left, right), operands)


def with_children(expr: Expr, children: Iterable[Expr]) -> Expr:
    """The same operator over other sub-formulas, as many; an operand as it is."""
    match expr:
        case Unary(op):
            (operand,) = children
            return Unary(op, operand)
        case Binary(op):
            left, right = children
            return Binary(op, left, right)
        case Compare(op):
            left, right = children
            return Compare(op, left, right)
        case Logic(op):
            return Logic(op, tuple(children))
        case IfElse():
            condition, then, other = children
            return IfElse(condition, then, other)
        case Call(name):
            return Call(name, tuple(children))
    return expr


def walk(expr: Expr) -> list[Expr]:
    """The formula and everything in it, outermost first."""
    found: list[Expr] = []
    ahead = [expr]
    while ahead:
        node = ahead.pop()
        found.append(node)
        if children := node.children:
            ahead += children[::-1]
    return found


def names(expr: Expr) -> list[Name]:
    """Every name that the formula reads, in order, with repeats."""
    found: list[Name] = []
    ahead = [expr]
    while ahead:
        node = ahead.pop()
        if isinstance(node, Name):
            found.append(node)
        elif children := node.children:
            ahead += children[::-1]
    return found


def calls(expr: Expr) -> list[Call]:
    """Every call in the formula."""
    if isinstance(expr, Name):
        return []
    return [each for each in walk(expr) if isinstance(each, Call)]


@record
class Signature:
    """Parameter types and result of a function; `rest` repeats the last one."""

    parameters: tuple[Type, ...]
    result: Type
    rest: bool = False


BUILTINS: dict[str, Signature] = {
    "min": Signature(("int",), "int", rest=True),
    "max": Signature(("int",), "int", rest=True),
    "align": Signature(("int", "int"), "int"),
    "cdiv": Signature(("int", "int"), "int"),
    "clamp": Signature(("int", "int", "int"), "int"),
    "count": Signature(("list", "str"), "int", rest=True),
    "len": Signature(("list",), "int"),
    "next_in": Signature(("ints", "int"), "int"),
}
NAME_HINTS = {"true": "write `True`", "false": "write `False`"}
FUNCTION_HINTS = {
    "round_up": "use `align(x, n)`",
    "up": "use `align(x, n)`",
    "ceil": "use `cdiv(x, n)`",
    "ceildiv": "use `cdiv(x, n)`",
    "int": "every number already is an integer",
    "sum": "write the sum out",
    "abs": "sizes are never negative",
}


def infer(
    expr: Expr,
    name_types: Mapping[str, Type],
    signatures: Mapping[str, Signature],
) -> Type:
    """The type of a formula. Raises FormulaError at the first fault in it."""
    # Most formulas are a name.
    if isinstance(expr, Name) and expr.name in name_types:
        return name_types[expr.name]

    def expect(child: Expr, wanted: Type, where: str, *parts: object) -> None:
        found = visit(child)
        if found != wanted:
            hint = ""
            if wanted == "int" and found == "bool":
                hint = "write `1 if … else 0`"
            elif wanted == "bool" and found == "int":
                hint = "compare it, as in `… > 0`"
            raise FormulaError(
                f"{where.format(*parts)} is {TYPE_WORDS[found]}; "
                f"it must be {TYPE_WORDS[wanted]}",
                child.at,
                hint,
            )

    def visit(node: Expr) -> Type:
        match node:
            case Name(name):
                if name not in name_types:
                    raise UnknownName(name, node.at)
                return name_types[name]
            case Int():
                return "int"
            case Bool():
                return "bool"
            case Str():
                return "str"
            case Unary("-", operand):
                expect(operand, "int", "the operand of `-`")
                return "int"
            case Unary(_, operand):
                expect(operand, "bool", "the operand of `not`")
                return "bool"
            case Binary(op, left, right):
                expect(left, "int", "the left side of `{}`", op)
                expect(right, "int", "the right side of `{}`", op)
                if op in ("//", "%") and right == Int(0):
                    raise FormulaError("a division by zero", right.at)
                return "int"
            case Compare(op, left, right):
                return comparison(op, left, right)
            case Logic(op, items):
                for item in items:
                    expect(item, "bool", "an operand of `{}`", op)
                return "bool"
            case IfElse(condition, then, other):
                expect(condition, "bool", "the condition of `if`")
                result = visit(then)
                expect(other, result, "the `else` side")
                return result
            case Call():
                return call(node)

    def comparison(op: str, left: Expr, right: Expr) -> Type:
        for side in (left, right):
            if isinstance(side, Bool):
                raise FormulaError(
                    f"`{op}` with `{side.value}`",
                    side.at,
                    "a truth value needs no comparison: write it, or `not` before it",
                )
        first, second = visit(left), visit(right)
        if op in ("in", "not in"):
            element = {"list": "str", "ints": "int"}.get(second)
            if element is None:
                raise FormulaError(
                    f"the right side of `{op}` is {TYPE_WORDS[second]}; "
                    "it must be a list",
                    right.at,
                )
            expect(left, "str" if element == "str" else "int", "the left of `{}`", op)
            return "bool"
        if first != second:
            raise FormulaError(
                f"`{op}` compares {TYPE_WORDS[first]} with {TYPE_WORDS[second]}",
                (left.at[0], right.at[1]),
            )
        if op not in ("==", "!=") and first != "int":
            raise FormulaError(f"`{op}` compares integers only", left.at)
        return "bool"

    def call(node: Call) -> Type:
        signature = signatures.get(node.name)
        if signature is None:
            raise UnknownFunction(node.name, (node.at[0], node.at[0] + len(node.name)))
        wanted = list(signature.parameters)
        given = len(node.arguments)
        if signature.rest and given > len(wanted):
            wanted += [wanted[-1]] * (given - len(wanted))
        if given != len(wanted):
            least = "at least " if signature.rest else ""
            noun = "argument" if len(wanted) == 1 else "arguments"
            raise FormulaError(
                f"`{node.name}` takes {least}{len(wanted)} {noun}; {given} given",
                node.at,
            )
        for position, (argument, kind) in enumerate(
            zip(node.arguments, wanted, strict=True), start=1
        ):
            expect(argument, kind, "argument {} of `{}`", position, node.name)
        if node.name in ("align", "cdiv") and node.arguments[1] == Int(0):
            raise FormulaError("a division by zero", node.arguments[1].at)
        return signature.result

    return visit(expr)


class UnknownName(FormulaError):
    """A name that nothing declares."""

    def __init__(self, name: str, at: At) -> None:
        super().__init__(f"nothing is named `{name}`", at)
        self.name = name


class UnknownFunction(FormulaError):
    """A call of something that is no function."""

    def __init__(self, name: str, at: At) -> None:
        super().__init__(f"no function is named `{name}`", at)
        self.name = name


# How tightly each kind binds, loosest first; Python's own order.
_IF, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _ATOM = range(9)
_BINDING = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}


def spell(expr: Expr) -> str:
    """The formula as text, with no bracket that it does not need.

    An `and` inside an `or` has brackets all the same: few readers know which binds
    tighter, and ruff asks for them.
    """
    return expr.name if isinstance(expr, Name) else _spelled(expr)[0]


def _spelled(expr: Expr) -> tuple[str, int]:
    """The formula as text, and its precedence."""
    match expr:
        case Binary(op, left, right):
            bind = _BINDING[op]
            return f"{_at_least(left, bind)} {op} {_at_least(right, bind + 1)}", bind
        case Int(value) | Bool(value):
            return str(value), _ATOM
        case Call(name, arguments):
            owner = ""
            if name[0] == ".":
                owner, arguments = _at_least(arguments[0], _ATOM), arguments[1:]
            inside = ", ".join([spell(each) for each in arguments])
            return f"{owner}{name}({inside})", _ATOM
        case Compare(op, left, right):
            text = f"{_at_least(left, _SUM)} {op} {_at_least(right, _SUM)}"
            return text, _COMPARISON
        case Logic(op, items):
            text = f" {op} ".join([_at_least(item, _NOT) for item in items])
            return text, _OR if op == "or" else _AND
        case IfElse(condition, then, other):
            choice = f"{_at_least(then, _OR)} if {_at_least(condition, _OR)}"
            return f"{choice} else {_at_least(other, _IF)}", _IF
        case Unary("-", operand):
            return f"-{_at_least(operand, _SIGN)}", _SIGN
        case Unary(_, operand):
            return f"not {_at_least(operand, _NOT)}", _NOT
        case Str(value):
            return quote(value), _ATOM
        case Name(name):
            return name, _ATOM


def _at_least(expr: Expr, least: int) -> str:
    """The formula as text, in brackets where it binds less tightly."""
    if isinstance(expr, Name):
        return expr.name
    text, bind = _spelled(expr)
    return f"({text})" if bind < least else text


def quote(text: str) -> str:
    """A Python literal of `text`, ASCII only; double quotes unless they cost more."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    if text.count("'") < text.count('"'):
        return "'" + _escaped(text, "'") + "'"
    return '"' + _escaped(text, '"') + '"'


def _escaped(text: str, quotes: str) -> str:
    # A piece without a single quote has nothing but `"` left to escape, which `ascii`
    # then leaves alone.
    pieces = (ascii(piece + '"')[1:-2] for piece in text.split("'"))
    return "'".join(pieces).replace(quotes, f"\\{quotes}")
