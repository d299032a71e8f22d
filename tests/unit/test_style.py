"""Black's form without black: random statements, against black itself.

The statements are those that templates emit: sizes, definitions, imports, tables. Each
is drawn on one line, or with an element a line and a comma behind the last.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from arenagen.breaking import Line, broken_lines
from arenagen.leaves import Unknown, statement
from arenagen.plain_breaks import broken_call, broken_value
from arenagen.render import black_format
from arenagen.style import styled

names = st.sampled_from(
    [
        *("M", "x", "hidden_size", "num_attention_heads", "GDN_CHUNK"),
        *("config.linear_num_value_heads", "levers.attn_decode_splitk"),
    ]
)
atoms = st.one_of(names, st.sampled_from(["1", "256", "1099511627776", '"a text"']))


def joined(parts: SearchStrategy[list[str]], by: str) -> SearchStrategy[str]:
    return parts.map(by.join)


def expressions(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    """Formulas as the emitter spells them, with brackets where they are needed."""
    bracketed = st.one_of(names, inner.map("({})".format), calls(inner))
    some = st.lists(bracketed, min_size=2, max_size=5)
    compared = st.tuples(bracketed, st.sampled_from([">", "==", "in"]), bracketed)
    condition = st.one_of(
        compared.map(" ".join),
        joined(st.lists(compared.map(" ".join), min_size=2, max_size=3), " and "),
        names.map("not {}".format),
    )
    return st.one_of(
        st.sampled_from([" + ", " - ", " * ", " // "]).flatmap(
            lambda operator: joined(some, operator)
        ),
        calls(inner),
        st.tuples(bracketed, condition, inner).map(
            lambda parts: "{} if {} else {}".format(*parts)
        ),
        bracketed.map("-{}".format),
    )


def calls(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    """Calls with arguments by place and by name."""
    arguments = st.lists(
        st.one_of(inner, inner.map("key_word={}".format)), max_size=5
    ).map(lambda each: sorted(each, key=lambda text: text.startswith("key_word=")))
    functions = st.sampled_from(["max", "min", "q12_batched_scratch_bytes", "x.count"])
    return st.tuples(functions, joined(arguments, ", ")).map(
        lambda parts: "{}({})".format(*parts)
    )


formulas = st.recursive(atoms, expressions, max_leaves=14)
texts = st.sampled_from(["of_it" * count for count in (0, 1, 4, 6)])


@st.composite
def definitions(draw: st.DrawFn) -> str:
    kinds = st.sampled_from(["int", "int | None = None", "ModelConfig"])
    parameters = draw(st.lists(kinds, max_size=6))
    listed = ", ".join(f"tokens_{i}: {kind}" for i, kind in enumerate(parameters))
    return f"def place_{draw(texts)}({listed}) -> Layout:\n    return 1"


@st.composite
def tables(draw: st.DrawFn) -> str:
    """A list with an element a line, indented in whatever way."""
    elements = draw(st.lists(formulas, min_size=1, max_size=4))
    pad = draw(st.sampled_from(["", "    ", "        "]))
    start, end = draw(
        st.sampled_from(
            [("x = max(", ")"), ("f(", ")"), ("T: Final[dict[str, int]] = [", "]")]
        )
    )
    comment = draw(st.sampled_from(["", f"{pad}# what comes first\n"]))
    lines = "".join(f"{pad}{each},\n" for each in elements)
    return f"{start}\n{comment}{lines}{end}"


statements = st.one_of(
    st.tuples(st.sampled_from(["x", "self.some_longer_name"]), formulas).map(
        " = ".join
    ),
    formulas.map("x = ({})".format),
    formulas.map("total: int = {}".format),
    formulas.map("if {}:\n    pass".format),
    formulas.map("for each in {}:\n    pass".format),
    formulas.map("check_int({}, 1, self.some_longer_name_of_it)".format),
    formulas.map("x = (1, {},)".format),
    definitions(),
    tables(),
    texts.map("from .runtime.memory import EMPTY_PLAN, Member{}, ZeroPlan".format),
)


@settings(max_examples=250)
@given(statements)
def test_a_statement_is_formed_as_black_does(text: str) -> None:
    try:
        ours = styled(f"{text}\n")
    except Unknown:
        # What is in two pairs of brackets is never emitted.
        assert "((" in text
        return
    assert ours == black_format(f"{text}\n")


@settings(max_examples=60)
@given(formulas, texts)
def test_a_method_is_formed_as_black_does(formula: str, name: str) -> None:
    head = f"class A:\n    def f_{name}(self, one: int) -> int:"
    text = f"{head}\n        return {formula}\n"
    try:
        ours = styled(text)
    except Unknown:
        assert "((" in text
        return
    assert ours == black_format(text)


values = st.tuples(
    st.sampled_from(["x = {}", "x: int = {}", "return {}", "if {}:", "x = ({})"]),
    st.one_of(expressions(formulas), calls(formulas)),
).map(lambda parts: parts[0].format(parts[1]))


# With a comma behind the last argument.
listed = st.tuples(st.sampled_from(["x = f({},)", "return f({},)"]), formulas).map(
    lambda parts: parts[0].format(f"{parts[1]}, key_word={parts[1]}")
)


@settings(max_examples=250)
@given(st.one_of(values, listed, calls(formulas)), st.sampled_from([0, 4, 8]))
def test_plain_breaks_are_those_over_leaves(code: str, indent: int) -> None:
    for plain in (broken_value(code, indent), broken_call(code, indent)):
        if plain is None:
            continue
        try:
            line = Line(statement([code]), indent // 4)
        except Unknown:
            assert "((" in code
            continue
        assert [*plain] == broken_lines(line)


LONG = ", ".join(["long_name_of_it"] * 6)


@pytest.mark.parametrize(
    "text",
    [
        f"with open({LONG}) as file:\n    pass\n",
        f"async def f({LONG}):\n    pass\n",
        f"x = [lambda a, b: a, {LONG}]\n",
        f"x = f({LONG}, lambda a, b: a)\n",
        f"x = (({LONG}))\n",
        'x = f(\n    """a""", 1)\n',
        "x = f(a,  # why\n    b)\n",
        "x = f('\N{BULLET}')\n",
        "x = f(\n",
    ],
)
def test_what_is_not_known_is_not_guessed(text: str) -> None:
    with pytest.raises(Unknown):
        styled(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a\n\n\n\n\nclass A:\n\n\n    x: int\n\n\n", None),
        ("import a\n\n\nX = 1\n", "import a\n\nX = 1\n"),
        ("import a\n\n# c\ndef f(): ...\n", "import a\n\n\n# c\ndef f(): ...\n"),
        ("import a\n\nfrom b import c\n", "import a\n\nfrom b import c\n"),
    ],
)
def test_blank_lines_are_those_of_black(text: str, expected: str | None) -> None:
    ours = styled(text)
    if expected is not None:
        assert ours == expected
    else:
        assert ours == "import a\n\n\nclass A:\n\n    x: int\n"
    assert ours == black_format(text)


@pytest.mark.parametrize(
    "text",
    [
        f"x = {'n' * 85} + f(a)",
        f"x = {'n' * 60} + f({'a' * 30})",
        f"x = {'n' * 76} + f()",
        f"x = {'n' * 80} + f()",
        f"x = ({'n' * 40} + {'m' * 40}) * f(a)",
        f"x = ({'n' * 90}) * f",
        f"x = f(a)({'n' * 80}) + b",
        f"x: T[{'n' * 30}] = {'m' * 50} + f(a)",
        f"x[{'n' * 40}] = {'m' * 60}",
        f"x[{'n' * 40}] = f({'m' * 40})",
        f"x = y = f({'m' * 80}, b)",
        f"x = {'m' * 90}",
        f"x = {'m' * 30}.f({'n' * 30}).g({'o' * 30})",
        f"x = [{'m' * 30}, {'n' * 30}, {'o' * 30}]",
        f'x = "{"m" * 50}" "{"n" * 50}"',
        f'f("{"m" * 50}" "{"n" * 50}")',
        f"x = not {'m' * 40} or {'n' * 50}",
        f"x = f(for_each({'m' * 40}) for each in {'n' * 40})",
        f"x = {'m' * 40} + {'n' * 40} - f(a, b) * c",
        f"x = ({'m' * 40} + {'n' * 40} if a else b)",
        f"x = (a)({'m' * 40})({'n' * 40})",
        f"x = {'m' * 40} if {'n' * 40} else {'o' * 40} if a else b",
        f"x = {'m' * 90} if a else b",
        f"x = {'m' * 40} << {'n' * 40} << a",
        f"x = {'m' * 40} + f({'n' * 30}, b,) + c",
        f"x = {'m' * 40} and {'n' * 40} or not a",
        f"if {'m' * 40} == {'n' * 40} and a not in b:\n    pass",
        "(\n    self.a,\n    b,\n) = self.some.values()",
        "(\n    a,\n    b,\n) = values",
        "(\n    a,\n    b,\n) = self.memory.allocate(ref(self))",
        "(\n    a,\n    b,\n).method()",
        "x = (\n    a,\n    b,\n).method()",
        "x = (\n    a,\n).method()",
        "x = f(\n    a,\n    b,\n).method()",
        "x = f(\n    a,\n).method()",
        "f(\n    a,\n    b,\n).method()",
        "x: int = self.f(\n    a,\n    b=b,\n).method()",
        "def f():\n    return f(\n        a,\n        b,\n    ).method()",
        "x[a] = f(\n    b,\n    c,\n)",
        "x[a] = f(\n    b,\n    c,\n).method()",
        "x[a] = {\n    b: 1,\n    c: 2,\n}",
        "x = y[a] = self.f(\n    b,\n    c,\n)",
        "x = y = f(\n    b,\n)",
        "x = y = (\n    b,\n    c,\n)",
        "x, y = f(\n    b,\n    c,\n)",
        "x, y = f(\n    b,\n)",
        "x, y = f(\n    b,\n    c,\n).method()",
        "x, y = (\n    b,\n    c,\n)",
        "x, y = [\n    b,\n    c,\n]",
        f"x, y = f(\n    {'m' * 40},\n    {'n' * 50},\n).{'o' * 80}()",
        "(\n    a,\n) = values",
        f"(\n    a,\n    b,\n) = {'n' * 90}",
        f"def f(\n    a: int,\n) -> {'n' * 90}: ...",
        "x = f(a, b,)",
        "x = f(\n# why\na + b,\n)",
        f"x[f(a)] = ({'m' * 40}, {'n' * 40})",
        f"x = ({'m' * 40} + {'n' * 40},)",
        f"f(a, ({'m' * 40},), {'n' * 40})",
        f"x = f(a, b if c else d, g({'m' * 40}, {'n' * 50}))",
        f"def f(self, *, {'m' * 40}: int, {'n' * 40}: int) -> T[int, str]: ...",
        "x = (1,)",
        f"import a\nfrom b import {'m' * 40}, {'n' * 40}\nimport c\n\nx = c",
        "x = (a + b) * c\ny = (a + b)\nz = (a + b) * f(c)",
    ],
)
def test_a_long_line_is_broken_as_black_does(text: str) -> None:
    assert styled(f"{text}\n") == black_format(f"{text}\n")
