"""Formulas: what parses, what is refused and where, types, and the printer."""

from __future__ import annotations

import ast
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenagen.formula import (
    BUILTINS,
    MAX_LENGTH,
    Binary,
    Bool,
    Call,
    Compare,
    Expr,
    FormulaError,
    IfElse,
    Int,
    Logic,
    Name,
    Signature,
    Str,
    Type,
    Unary,
    UnknownFunction,
    UnknownName,
    calls,
    infer,
    names,
    parse,
    quote,
    spell,
    walk,
)

a, b, c = Name("a"), Name("b"), Name("c")


def refusal(text: str) -> FormulaError:
    with pytest.raises(FormulaError) as error:
        parse(text)
    return error.value


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("0", Int(0)),
        ("9223372036854775807", Int(2**63 - 1)),
        ("True", Bool(True)),
        ("'dense'", Str("dense")),
        ('"dense"', Str("dense")),
        ("a", a),
        ("-a", Unary("-", a)),
        ("not a", Unary("not", a)),
        ("a + b", Binary("+", a, b)),
        ("a - b", Binary("-", a, b)),
        ("a * b", Binary("*", a, b)),
        ("a // b", Binary("//", a, b)),
        ("a % b", Binary("%", a, b)),
        ("a == b", Compare("==", a, b)),
        ("a != b", Compare("!=", a, b)),
        ("a < b", Compare("<", a, b)),
        ("a <= b", Compare("<=", a, b)),
        ("a > b", Compare(">", a, b)),
        ("a >= b", Compare(">=", a, b)),
        ("a in b", Compare("in", a, b)),
        ("a not in b", Compare("not in", a, b)),
        ("a and b and c", Logic("and", (a, b, c))),
        ("a or b or c", Logic("or", (a, b, c))),
        ("a if b else c", IfElse(b, a, c)),
        ("f()", Call("f", ())),
        ("max(a, 1, b,)", Call("max", (a, Int(1), b))),
        ("0 < a <= b", Logic("and", (Compare("<", Int(0), a), Compare("<=", a, b)))),
        ("  a\n  + b  ", Binary("+", a, b)),
        ("'#' in a", Compare("in", Str("#"), a)),
    ],
)
def test_every_kind_of_formula(text: str, tree: Expr) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", Binary("+", a, Binary("*", b, c))),
        ("(a + b) * c", Binary("*", Binary("+", a, b), c)),
        ("a - b - c", Binary("-", Binary("-", a, b), c)),
        ("a - (b - c)", Binary("-", a, Binary("-", b, c))),
        ("a // b * c", Binary("*", Binary("//", a, b), c)),
        ("-a * b", Binary("*", Unary("-", a), b)),
        ("-(a * b)", Unary("-", Binary("*", a, b))),
        ("not a == b", Unary("not", Compare("==", a, b))),
        ("not a and b", Logic("and", (Unary("not", a), b))),
        ("a or b and c", Logic("or", (a, Logic("and", (b, c))))),
        ("a if b else c if a else b", IfElse(b, a, IfElse(a, c, b))),
        ("(a if b else c) if a else b", IfElse(a, IfElse(b, a, c), b)),
    ],
)
def test_operators_bind_as_in_python(text: str, tree: Expr) -> None:
    assert parse(text) == tree


def test_a_node_knows_its_place_in_the_text() -> None:
    text = " max(wide,\n 2 * tall)"
    tree = parse(text)
    assert [text[slice(*node.at)] for node in walk(tree)] == [
        "max(wide,\n 2 * tall)",
        "wide",
        "2 * tall",
        "2",
        "tall",
    ]


# What is refused

OPERATORS = [
    ("a / b", "`/`", "sizes are exact integers: use `//`, or `cdiv(x, n)` to round up"),
    ("a ** b", "`**`", "write the product out"),
    ("a << 1", "`<<`", "multiply instead"),
    ("a >> 1", "`>>`", "use `//` instead"),
    ("a & b", "`&`", "use `and` for gates, `align` or `%` for sizes"),
    ("a | b", "`|`", "use `or`"),
    ("a ^ b", "`^`", "write a power as a product, and use `!=` for gates"),
    ("a @ b", "`@`", "use `*`"),
    ("~a", "`~`", "use `not`"),
    ("+a", "a `+` sign", "leave it out"),
    ("a is b", "`is`", "use `==`"),
    ("a is not b", "`is not`", "use `!=`"),
]
KINDS = [
    ("a.b", "attribute access", "use the bare name"),
    ("a[0]", "a subscript", "lists are read by `count`, `len` and `in`"),
    ("a[1:2]", "a subscript", "lists are read by `count`, `len` and `in`"),
    ("lambda: 1", "a lambda", "write a function in `functions`"),
    ("f'{a}'", "an f-string", "use a plain text"),
    ("[a]", "a list", "name the list in `constants`"),
    ("a, b", "a tuple", "a shape is a YAML list of formulas"),
    ("()", "a tuple", "a shape is a YAML list of formulas"),
    ("{}", "a dict", "name the values in `constants`"),
    ("{a}", "a set", "name the list in `constants`"),
    ("[x for x in a]", "a comprehension", "use `count`, `max` or `min`"),
    ("{x for x in a}", "a comprehension", "use `count`, `max` or `min`"),
    ("{x: 1 for x in a}", "a comprehension", "use `count`, `max` or `min`"),
    ("(x for x in a)", "a comprehension", "use `count`, `max` or `min`"),
    ("1.5", "`1.5`", "sizes are exact integers"),
    ("1e3", "`1000.0`", "sizes are exact integers"),
    ("1j", "`1j`", ""),
    ("None", "`None`", ""),
    ("b'x'", "`b'x'`", ""),
    ("...", "`Ellipsis`", ""),
    ("await a", "`Await`", ""),
]


@pytest.mark.parametrize(("text", "what", "hint"), OPERATORS + KINDS)
def test_what_is_no_formula_is_named_whole(text: str, what: str, hint: str) -> None:
    error = refusal(text)
    assert error.message == f"{what} in a formula"
    assert (error.at, error.hint) == ((0, len(text)), hint)


@pytest.mark.parametrize(("text", "what", "hint"), OPERATORS + KINDS)
def test_what_is_no_formula_is_found_inside_one(
    text: str, what: str, hint: str
) -> None:
    error = refusal(f"b * max(1, ({text}))")
    assert (error.message, error.hint) == (f"{what} in a formula", hint)
    assert error.at in ((12, 12 + len(text)), (11, 13 + len(text)))


@pytest.mark.parametrize(
    ("text", "message", "token", "hint"),
    [
        (
            "f(a, n=b)",
            "a keyword argument in a formula",
            "n=b",
            "give the arguments in order",
        ),
        ("f(**a)", "a keyword argument in a formula", "**a", ""),
        ("f(*a)", "a starred argument in a formula", "*a", "write the arguments out"),
        ("a.align(16)", "attribute access in a formula", "a.align", ""),
        (
            "f(1)(2)",
            "a call of a formula",
            "f(1)(2)",
            "functions are called by their name",
        ),
        ("a + (lambda: 1)()", "a lambda in a formula", "lambda: 1", ""),
        (
            "(a := 1)",
            "an assignment in a formula",
            "a := 1",
            "name the sub-formula in `let`",
        ),
        (
            "a + 9223372036854775808",
            "an integer beyond 2**63 - 1",
            "9223372036854775808",
            "",
        ),
        (
            "0 < f(a) < b",
            "a chain of comparisons around more than a name",
            "f(a)",
            "write two comparisons, joined by `and`",
        ),
        (
            "a * 2 # twice",
            "a comment in a formula",
            "# twice",
            "put it on a line of its own, outside the text",
        ),
        ("max(a, # rows\n b)", "a comment in a formula", "# rows\n b)", ""),
    ],
)
def test_what_is_refused_is_named_at_its_token(
    text: str, message: str, token: str, hint: str
) -> None:
    error = refusal(text)
    assert error.message == message
    start, end = error.at
    assert text[start:end] == token
    if hint:
        assert error.hint == hint


@pytest.mark.parametrize(
    ("text", "at", "hint"),
    [
        ("a && b", 3, "use `and`"),
        ("a || b", 3, "use `or`"),
        ("a ? b : c", 2, "write `a if condition else b`"),
        ("!a", 0, "use `not`"),
        ("a = b", 2, "compare with `==`"),
        ("2M", 0, "write the product with `*`"),
        ("a x 2", 2, "write the product with `*`"),
        ("a <> b", 2, "use `!=`"),
        ("a mod 2", 2, "use `%`"),
        ("a div 2", 2, "use `//`"),
        ("a b", 2, ""),
        ("a; b", 1, ""),
        ("import a", 0, ""),
        ("a)", 1, ""),
    ],
)
def test_slips_from_other_languages_get_a_hint(text: str, at: int, hint: str) -> None:
    error = refusal(f"  {text}")
    assert error.message.startswith("not a formula: ")
    assert (error.at[0], error.hint) == (at + 2, hint)


@pytest.mark.parametrize("text", ["a *", "a * ", "  a + ", "not", "a if b else"])
def test_a_formula_that_ends_too_early_is_marked_at_its_end(text: str) -> None:
    error = refusal(text)
    assert error.message == "not a formula: it ends too early"
    end = len(text.rstrip())
    assert error.at == (end - 1, end)


@pytest.mark.parametrize(
    ("char", "shown", "hint"),
    [
        ("\N{MULTIPLICATION SIGN}", "'\N{MULTIPLICATION SIGN}'", "use `*`"),
        ("\N{MINUS SIGN}", "'\N{MINUS SIGN}'", "use `-`"),
        ("\N{LESS-THAN OR EQUAL TO}", "'\N{LESS-THAN OR EQUAL TO}'", "use `<=`"),
        ("\N{MIDDLE DOT}", "'\N{MIDDLE DOT}'", "use `*`"),
        (
            "\N{LEFT DOUBLE QUOTATION MARK}",
            "'\N{LEFT DOUBLE QUOTATION MARK}'",
            "use `'`",
        ),
        ("\N{FULLWIDTH ASTERISK}", "'\N{FULLWIDTH ASTERISK}'", "use `*`"),
        ("\xe9", "'\xe9'", "formulas and names are ASCII"),
        ("\N{EURO SIGN}", "'\N{EURO SIGN}'", ""),
        ("\t", r"'\t'", "use a plain blank"),
        ("\xa0", r"'\xa0'", "use a plain blank"),
        ("\0", r"'\x00'", "remove it"),
        ("\u200b", r"'\u200b'", "remove it"),
        ("\u202e", r"'\u202e'", "remove it"),
    ],
)
def test_a_formula_is_printable_ascii(char: str, shown: str, hint: str) -> None:
    error = refusal(f"a {char} b")
    assert error.message == f"the character {shown} in a formula"
    assert (error.at, error.hint) == ((2, 3), hint)


@pytest.mark.parametrize("text", ["", " ", "\n", " \n "])
def test_an_empty_formula(text: str) -> None:
    assert refusal(text).message == "an empty formula"


@pytest.mark.parametrize("text", [r"'\d' == a", "1if a else 2", r"'\8'"])
def test_what_python_warns_about_is_refused_without_a_warning(text: str) -> None:
    assert refusal(text).message.startswith("not a formula: ")


@pytest.mark.parametrize(
    "text",
    [
        "a" * (MAX_LENGTH + 1),
        "(" * 2000,
        "(" * 1999 + "1" + ")" * 1999,
        "-" * 3999 + "1",
        "not " * 990 + "a",
        "1" + " + 1" * 990,
        "f(" * 1300 + "1" + ")" * 1300,
        "a if b else " * 330 + "c",
        "a[" * 1300 + "1" + "]" * 1300,
        "1 < " * 900 + "f(1) < 1",
        "a." * 1900 + "a",
    ],
)
def test_what_nests_deep_or_runs_long_is_refused_at_once(text: str) -> None:
    start = time.monotonic()
    assert refusal(text).message
    assert time.monotonic() - start < 1


def test_nested_chains_of_comparisons_do_not_double() -> None:
    text = "a"
    for _ in range(50):
        text = f"1 < (1 if {text} else 0) < 2"
    start = time.monotonic()
    assert refusal(text).message
    assert time.monotonic() - start < 1


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except FormulaError as error:
        start, end = error.at
        assert 0 <= start < end <= max(1, len(text))
    else:
        assert parse(spell(tree)) == tree


# The printer

identifiers = st.sampled_from(["a", "b", "hidden_size", "M"])
leaves: st.SearchStrategy[Expr] = st.one_of(
    st.integers(0, 2**63 - 1).map(Int),
    st.booleans().map(Bool),
    st.text(st.characters(codec="ascii"), max_size=8).map(Str),
    identifiers.map(Name),
)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    operators = st.sampled_from(["+", "-", "*", "//", "%"])
    comparisons = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
    return st.one_of(
        st.builds(Unary, st.sampled_from(["-", "not"]), inner),
        st.builds(Binary, operators, inner, inner),
        st.builds(Compare, comparisons, inner, inner),
        st.builds(Logic, st.sampled_from(["and", "or"]), several),
        st.builds(IfElse, inner, inner, inner),
        st.builds(Call, identifiers, st.lists(inner, max_size=3).map(tuple)),
    )


trees: st.SearchStrategy[Expr] = st.recursive(leaves, _grown, max_leaves=25)


@given(trees)
def test_what_is_printed_parses_to_the_same_tree(tree: Expr) -> None:
    assert parse(spell(tree)) == tree


@given(trees)
def test_what_is_printed_is_python_with_the_same_tree(tree: Expr) -> None:
    text = spell(tree)
    again = ast.unparse(ast.parse(text, mode="eval"))
    assert parse(again) == tree


@pytest.mark.parametrize(
    "text",
    [
        "a + b + c",
        "a + (b + c)",
        "a - (b - c)",
        "(a + b) * c",
        "-a * b",
        "-(a * b)",
        "a // (b * c)",
        "not a",
        "not (a and b)",
        "not a == b",
        "(a and b) or c",
        "a and (b or c)",
        "(a if b else c) + 1",
        "a if b else c",
        "a if b or c else b if c else a",
        "(a < b) == (b < c)",
        'f(a, "x", -1)',
        "f()",
    ],
)
def test_the_printer_writes_only_the_brackets_that_help(text: str) -> None:
    assert spell(parse(text)) == text


@given(st.text())
def test_a_quoted_text_is_an_ascii_literal_of_itself(text: str) -> None:
    literal = quote(text)
    assert literal.isascii()
    assert literal.isprintable()
    assert literal[0] == literal[-1] in "'\""
    assert ast.literal_eval(literal) == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("it's", '"it\'s"'),
        ('so "called"', """'so "called"'"""),
        ('it\'s "so"', r"""'it\'s "so"'"""),
        ("""'"'""", r'''"'\"'"'''),
        ("a\\", r'"a\\"'),
        ("\\'", r'''"\\'"'''),
        ("{{ a }}", '"{{ a }}"'),
        ("\N{BULLET}", r'"\u2022"'),
    ],
)
def test_a_quoted_text_escapes_no_more_than_it_must(text: str, literal: str) -> None:
    assert quote(text) == literal


# Walking


def test_walking_meets_every_node_once() -> None:
    tree = parse("max(a, b) if not a > 1 else -b // c")
    assert [spell(node) for node in walk(tree)] == [
        "max(a, b) if not a > 1 else -b // c",
        "not a > 1",
        "a > 1",
        "a",
        "1",
        "max(a, b)",
        "a",
        "b",
        "-b // c",
        "-b",
        "b",
        "c",
    ]
    assert [node.name for node in names(tree)] == ["a", "a", "b", "b", "c"]
    assert [node.name for node in calls(tree)] == ["max"]


@given(trees)
def test_a_tree_is_its_nodes_children(tree: Expr) -> None:
    assert sum(len(node.children) for node in walk(tree)) == len(walk(tree)) - 1


# Types

TYPES: dict[str, Type] = {
    "n": "int",
    "m": "int",
    "flag": "bool",
    "word": "str",
    "kinds": "list",
    "tiles": "ints",
}
SIGNATURES = {
    **BUILTINS,
    "twice": Signature(("int",), "int"),
    "pick": Signature(("bool", "str", "list"), "int"),
}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", "int"),
        ("True", "bool"),
        ("'x'", "str"),
        ("n", "int"),
        ("kinds", "list"),
        ("tiles", "ints"),
        ("-n", "int"),
        ("not flag", "bool"),
        ("n + m * 2 - n // 3 % 5", "int"),
        ("n == m", "bool"),
        ("word != 'x'", "bool"),
        ("flag == (n > 1)", "bool"),
        ("kinds == kinds", "bool"),
        ("n < m", "bool"),
        ("word in kinds", "bool"),
        ("n not in tiles", "bool"),
        ("flag and n > 1 or not flag", "bool"),
        ("n if flag else m", "int"),
        ("word if flag else 'x'", "str"),
        ("kinds if flag else kinds", "list"),
        ("min(n)", "int"),
        ("max(n, m, 1)", "int"),
        ("align(n, 16)", "int"),
        ("cdiv(n, m)", "int"),
        ("clamp(n, 1, 16)", "int"),
        ("count(kinds, 'a', word)", "int"),
        ("len(kinds)", "int"),
        ("next_in(tiles, n)", "int"),
        ("twice(n)", "int"),
        ("pick(flag, word, kinds)", "int"),
    ],
)
def test_types(text: str, kind: Type) -> None:
    assert infer(parse(text), TYPES, SIGNATURES) == kind


@pytest.mark.parametrize(
    ("text", "message", "token", "hint"),
    [
        (
            "-flag",
            "the operand of `-` is a truth value; it must be an integer",
            "flag",
            "write `1 if … else 0`",
        ),
        (
            "not n",
            "the operand of `not` is an integer; it must be a truth value",
            "n",
            "compare it, as in `… > 0`",
        ),
        (
            "flag + n",
            "the left side of `+` is a truth value; it must be an integer",
            "flag",
            "write `1 if … else 0`",
        ),
        (
            "n * word",
            "the right side of `*` is a text; it must be an integer",
            "word",
            "",
        ),
        (
            "n - kinds",
            "the right side of `-` is a list of texts; it must be an integer",
            "kinds",
            "",
        ),
        ("n // 0", "a division by zero", "0", ""),
        ("n % 0", "a division by zero", "0", ""),
        ("cdiv(n, 0)", "a division by zero", "0", ""),
        ("align(n, 0)", "a division by zero", "0", ""),
        ("n == word", "`==` compares an integer with a text", "n == word", ""),
        ("flag != n", "`!=` compares a truth value with an integer", "flag != n", ""),
        ("word < 'x'", "`<` compares integers only", "word", ""),
        ("kinds >= kinds", "`>=` compares integers only", "kinds", ""),
        (
            "flag == True",
            "`==` with `True`",
            "True",
            "a truth value needs no comparison: write it, or `not` before it",
        ),
        ("False != flag", "`!=` with `False`", "False", ""),
        ("n in kinds", "the left of `in` is an integer; it must be a text", "n", ""),
        (
            "word not in tiles",
            "the left of `not in` is a text; it must be an integer",
            "word",
            "",
        ),
        ("n in m", "the right side of `in` is an integer; it must be a list", "m", ""),
        (
            "'a' in word",
            "the right side of `in` is a text; it must be a list",
            "word",
            "",
        ),
        (
            "n and flag",
            "an operand of `and` is an integer; it must be a truth value",
            "n",
            "compare it, as in `… > 0`",
        ),
        (
            "flag or kinds",
            "an operand of `or` is a list of texts; it must be a truth value",
            "kinds",
            "",
        ),
        (
            "1 if n else 2",
            "the condition of `if` is an integer; it must be a truth value",
            "n",
            "compare it, as in `… > 0`",
        ),
        (
            "1 if flag else word",
            "the `else` side is a text; it must be an integer",
            "word",
            "",
        ),
        (
            "max(n, flag)",
            "argument 2 of `max` is a truth value; it must be an integer",
            "flag",
            "",
        ),
        ("max()", "`max` takes at least 1 argument; 0 given", "max()", ""),
        ("align(n)", "`align` takes 2 arguments; 1 given", "align(n)", ""),
        (
            "clamp(n, 1, 2, 3)",
            "`clamp` takes 3 arguments; 4 given",
            "clamp(n, 1, 2, 3)",
            "",
        ),
        (
            "count(kinds)",
            "`count` takes at least 2 arguments; 1 given",
            "count(kinds)",
            "",
        ),
        (
            "count(kinds, 'a', n)",
            "argument 3 of `count` is an integer; it must be a text",
            "n",
            "",
        ),
        (
            "len(word)",
            "argument 1 of `len` is a text; it must be a list of texts",
            "word",
            "",
        ),
        (
            "next_in(kinds, n)",
            "argument 1 of `next_in` is a list of texts; it must be a list of integers",
            "kinds",
            "",
        ),
        (
            "pick(flag, word, n)",
            "argument 3 of `pick` is an integer; it must be a list of texts",
            "n",
            "",
        ),
        ("n + (m * (1 + nothing))", "nothing is named `nothing`", "nothing", ""),
        ("n + round_up(m, 16)", "no function is named `round_up`", "round_up", ""),
        ("n()", "no function is named `n`", "n", ""),
    ],
)
def test_type_faults_are_named_at_their_token(
    text: str, message: str, token: str, hint: str
) -> None:
    with pytest.raises(FormulaError) as error:
        infer(parse(text), TYPES, SIGNATURES)
    start, end = error.value.at
    assert (error.value.message, text[start:end]) == (message, token)
    if hint:
        assert error.value.hint == hint


def test_a_function_is_no_value() -> None:
    with pytest.raises(UnknownName) as error:
        infer(parse("max + 1"), TYPES, SIGNATURES)
    assert error.value.name == "max"


def test_a_name_is_no_function() -> None:
    with pytest.raises(UnknownFunction) as error:
        infer(parse("word(1)"), TYPES, SIGNATURES)
    assert error.value.name == "word"


@given(trees)
def test_every_tree_has_a_type_or_a_fault(tree: Expr) -> None:
    known: dict[str, Type] = {"a": "int", "b": "bool", "hidden_size": "int", "M": "int"}
    try:
        kind = infer(tree, known, BUILTINS)
    except FormulaError as error:
        assert error.message
    else:
        assert kind in ("int", "bool", "str")
