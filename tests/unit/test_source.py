"""YAML to nodes: the YAML 1.2 core schema, spans, and what is refused."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenagen.errors import InputProblems, Problem
from arenagen.source import (
    MAX_BYTES,
    MAX_DEPTH,
    Mapping,
    Node,
    Scalar,
    Sequence,
    core_value,
    decode,
    locate,
    parse,
    plain,
)


def value_of(text: str) -> object:
    """What `text` means as a value of a mapping."""
    return plain(parse(f"key: {text}\n", "file.yaml"))["key"]


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InputProblems) as error:
        parse(text, "file.yaml")
    return error.value.problems


def only_problem(text: str) -> Problem:
    (problem,) = problems_of(text)
    return problem


def scalar_at(node: Node, *path: str | int) -> Scalar:
    for step in path:
        if isinstance(step, str):
            assert isinstance(node, Mapping)
            found = node.get(step)
            assert found is not None
            node = found
        else:
            assert isinstance(node, Sequence)
            node = node.items[step]
    assert isinstance(node, Scalar)
    return node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("FALSE", False),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("9223372036854775808", 2**63),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-2.5E-1", -0.25),
        (".inf", math.inf),
        (".Inf", math.inf),
        ("+.INF", math.inf),
        ("-.inf", -math.inf),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    found = value_of(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number_is_a_float(text: str) -> None:
    found = value_of(text)
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "No",
        "yes",
        "on",
        "off",
        "y",
        "tRUE",
        "nULL",
        "12:30",
        "190:20:30",
        "1_000",
        "0b101",
        "-0x1F",
        "0o18",
        "2026-01-02",
        "=",
        "<<",
        "1e",
        "inf",
        ".infinity",
        "-.nan",
        "++1",
        "1 2",
        "M * hidden_size",
    ],
)
def test_what_yaml_1_1_would_turn_into_something_else_stays_text(text: str) -> None:
    assert value_of(text) == text


@pytest.mark.parametrize("text", ["true", "null", "~", "12", "0x1F", "1e3", ".inf", ""])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_quoted_scalars_stay_text(quote: str, text: str) -> None:
    assert value_of(f"{quote}{text}{quote}") == text


@pytest.mark.parametrize("style", ["|-", ">-"])
def test_block_scalars_stay_text(style: str) -> None:
    assert value_of(f"{style}\n  12") == "12"


@given(
    st.text(st.sampled_from("0123456789+-.eExXoOinfINFanuNlTrueFls~_: "), max_size=9)
)
def test_every_short_word_has_a_value(text: str) -> None:
    found = core_value(text)
    assert isinstance(found, bool | int | float | str | None)
    if isinstance(found, str):
        assert found == text


@pytest.mark.parametrize(
    "key", ["0", "012", "0x10", "1e3", "true", "null", "~", "no", "1_000", "9" * 60]
)
def test_a_key_that_looks_like_a_number_is_text(key: str) -> None:
    assert plain(parse(f"{key}: 1\n", "file.yaml")) == {key: 1}
    assert plain(parse(f"&anchor {key}: 1\n", "file.yaml")) == {key: 1}


def test_an_empty_key_is_the_empty_text() -> None:
    assert plain(parse("? \n: 1\n", "file.yaml")) == {"": 1}


def test_document_order_is_kept() -> None:
    node = parse("b: 1\na: 2\nc: 3\n", "file.yaml")
    assert list(plain(node)) == ["b", "a", "c"]


def test_duplicate_keys_name_both_places_at_every_depth() -> None:
    text = "a:\n  - {b: 1, c: 2, b: 3}\nd: 4\n'a': 5\nd: 6\n"
    inner, second_a, second_d = problems_of(text)
    assert str(inner) == (
        "file.yaml:2:18: error AR010: the key `b` stands twice\n"
        " 2 |   - {b: 1, c: 2, b: 3}\n"
        "   |                  ^\n"
        " = first: file.yaml:2:6\n"
        " 2 |   - {b: 1, c: 2, b: 3}\n"
        "   |      ^"
    )
    assert str(second_a) == (
        "file.yaml:4:1: error AR010: the key `a` stands twice\n"
        " 4 | 'a': 5\n"
        "   | ^^^\n"
        " = first: file.yaml:1:1\n"
        " 1 | a:\n"
        "   | ^"
    )
    assert str(second_d) == (
        "file.yaml:5:1: error AR010: the key `d` stands twice\n"
        " 5 | d: 6\n"
        "   | ^\n"
        " = first: file.yaml:3:1\n"
        " 3 | d: 4\n"
        "   | ^"
    )


def test_a_quoted_and_a_plain_number_are_one_key() -> None:
    assert only_problem('0: 1\n"0": 2\n').code == "AR010"


def test_keys_that_differ_as_text_are_two_keys() -> None:
    assert plain(parse("16: 1\n0x10: 2\n", "file.yaml")) == {"16": 1, "0x10": 2}


@pytest.mark.parametrize(
    ("text", "column", "length"),
    [
        ("  bytes: 1", 3, 5),
        ("  'bytes': 1", 3, 7),
        ('  "byt\\x65s": 1', 3, 10),
        ("  &here bytes: 1", 9, 5),
        ("  ? bytes\n  : 1", 5, 5),
        ("  ? by\n   tes\n  : 1", 5, 2),
    ],
)
def test_a_key_stands_where_it_is_written(text: str, column: int, length: int) -> None:
    node = parse(f"a:\n{text}\n", "file.yaml").get("a")
    assert isinstance(node, Mapping)
    ((key, value),) = node.entries()
    assert key.value in ("bytes", "by tes")
    assert key == node.key(str(key.value)) and value == node.get(str(key.value))
    span = key.span
    assert (span.line, span.column, span.length) == (2, column, length)


def test_a_key_must_be_a_word() -> None:
    problem = only_problem("? [a, b]\n: 1\n")
    assert problem.code == "AR009"
    assert (problem.span.line, problem.span.column) == (1, 3)


# Bytes to text


def test_a_byte_order_mark_is_no_character_of_the_text() -> None:
    text = decode(b"\xef\xbb\xbfa: 1\n", "file.yaml")
    assert scalar_at(parse(text, "file.yaml"), "a").span.column == 4


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r", b"\n"])
def test_line_ends_of_every_system_count_alike(line_end: bytes) -> None:
    text = decode(b"a: 1" + line_end + b"b: >-" + line_end + b"  M" + line_end, "f")
    node = parse(text, "f")
    assert plain(node) == {"a": 1, "b": "M"}
    assert scalar_at(node, "b").span.source == "b: >-"


def test_bytes_that_are_not_utf_8_are_named_with_their_offset() -> None:
    with pytest.raises(InputProblems) as error:
        decode(b"a: 1\nb: caf\xe9\n", "file.yaml")
    assert str(error.value) == (
        "file.yaml:2:7: error AR001: not UTF-8: byte 0xE9 at offset 11\n"
        " 2 | b: caf\ufffd\n"
        "   |       ^\n"
        " = hint: save the file as UTF-8"
    )


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("utf-32-le", "UTF-32"),
        ("utf-32-be", "UTF-32"),
    ],
)
def test_wide_encodings_are_named(encoding: str, name: str) -> None:
    with pytest.raises(InputProblems) as error:
        decode("a: 1\n".encode(encoding), "file.yaml")
    assert str(error.value) == (
        f"file.yaml:1:1: error AR001: not UTF-8 but {name}\n"
        " = hint: save the file as UTF-8"
    )


def test_a_file_beyond_the_limit_is_not_read() -> None:
    with pytest.raises(InputProblems) as error:
        decode(b"#" * (MAX_BYTES + 1), "file.yaml")
    assert str(error.value) == (
        "file.yaml:1:1: error AR001: 8388609 bytes; at most 8388608 are read"
    )


@pytest.mark.parametrize("char", ["\u202e", "\u2066", "\u200f", "\u061c"])
def test_characters_that_turn_the_order_of_a_text_are_refused(char: str) -> None:
    problem = only_problem(f"a: x{char}y # {char}\n")
    assert problem.code == "AR011"
    assert problem.message == f"the control character {char!a} in a text"
    # Nor are they shown.
    assert char not in str(problem)


@pytest.mark.parametrize("bad", ["\0", "\x1b", "\x7f", "\ufeff", "\ufffe"])
def test_characters_that_yaml_forbids_are_shown_at_their_place(bad: str) -> None:
    problem = only_problem(f"a: 1\nb: x{bad}y\n")
    assert problem.code == "AR002"
    assert problem.message == f"not YAML: the character {bad!a}"
    assert (problem.span.line, problem.span.column) == (2, 5)
    assert "\x1b" not in str(problem)


@pytest.mark.parametrize("escape", [r"\0", r"\a", r"\e", r"\x1f", r"\x7f", r"\x9b"])
def test_control_characters_are_refused_even_when_escaped(escape: str) -> None:
    problem = only_problem(f'a: "x{escape}"\n')
    assert problem.code == "AR011"
    assert problem.message.startswith("the control character '\\x")
    assert (problem.span.line, problem.span.column) == (1, 4)


def test_characters_beyond_ascii_keep_the_columns_right() -> None:
    node = parse("ключ: {größe: 1, b: x}\n", "file.yaml")
    assert scalar_at(node, "ключ", "b").span.column == 21


@pytest.mark.parametrize("separator", ["\x85", "\u2028", "\u2029"])
def test_a_line_separator_in_a_text_leaves_the_source_lines_right(
    separator: str,
) -> None:
    problem = only_problem(f'a: "x{separator}y"\nb: *nothing\n')
    assert problem.span.source == "b: *nothing"


# Documents


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n"])
def test_an_empty_file(text: str) -> None:
    assert str(only_problem(text)) == (
        "file.yaml:1:1: error AR003: the file is empty\n"
        " = hint: `arenagen generate` reads a schema that begins with `arena:`"
    )


def test_a_second_document() -> None:
    assert str(only_problem("a: 1\n---\nb: 2\n")) == (
        "file.yaml:2:1: error AR004: a second document\n 2 | ---\n   | ^"
    )


@pytest.mark.parametrize(
    "text", ["---\na: 1\n", "--- \na: 1\n...\n", "%YAML 1.2\n---\na: 1\n"]
)
def test_one_document_may_be_marked(text: str) -> None:
    assert plain(parse(text, "file.yaml")) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a: !!int 5\n", 4),
        ("a: !!python/object/apply:os.system ['true']\n", 4),
        ("a: !local {}\n", 4),
        ("a: ! 5\n", 4),
        ("!!str a: 5\n", 1),
        ("a: [!!set {}]\n", 5),
    ],
)
def test_tags_are_refused(text: str, column: int) -> None:
    problem = only_problem(text)
    assert problem.code == "AR006"
    assert (problem.span.line, problem.span.column) == (1, column)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a:\n\t- b\n", "YAML is indented with spaces, never with tabs"),
        ("a: one: two\n", "put a text that holds `: ` in quotes"),
        ("a: @b\n", "put a text that begins with `@` in quotes"),
        ("a: `b`\n", "put a text that begins with this character in quotes"),
        ("a: %b\n", "put a text that begins with `%` in quotes"),
        ("a: [b]]\n", "remove it, or open it before"),
    ],
)
def test_common_slips_get_a_hint(text: str, hint: str) -> None:
    problem = only_problem(text)
    assert (problem.code, problem.hint) == ("AR002", hint)


@pytest.mark.parametrize(
    "text", ["a: [1, 2\n", "a: 'b\n", "{a: 1\n", "a: 1\n b: 2\n", "- a\nb: 1\n"]
)
def test_what_is_not_yaml_has_a_place(text: str) -> None:
    problem = only_problem(text)
    assert problem.code == "AR002"
    assert problem.span.line >= 1


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@`,?~ \t\n0\\"), max_size=40))
def test_any_text_gives_nodes_or_problems(text: str) -> None:
    try:
        node = parse(text, "file.yaml")
    except InputProblems as error:
        assert error.problems
    else:
        plain(node)


def test_several_problems_come_together_in_order_of_place() -> None:
    text = f"a: !!int 1\nb: *b\nc: 1\nc: {'9' * 50}\n"
    assert [(p.code, p.span.line) for p in problems_of(text)] == [
        ("AR006", 1),
        ("AR007", 2),
        ("AR010", 4),
        ("AR008", 4),
    ]


# Aliases


def test_an_alias_stands_for_its_anchor() -> None:
    node = parse("a: &it [M, {b: 1}]\nc: *it\n", "file.yaml")
    assert plain(node) == {"a": ["M", {"b": 1}], "c": ["M", {"b": 1}]}


def test_an_anchor_may_be_given_anew() -> None:
    assert plain(parse("a: &it 1\nb: &it 2\nc: *it\n", "f")) == {"a": 1, "b": 2, "c": 2}


def test_an_alias_of_nothing() -> None:
    assert str(only_problem("a: *it\nb: &it 1\n")) == (
        "file.yaml:1:4: error AR007: the alias `*it` stands for nothing before it\n"
        " 1 | a: *it\n"
        "   |    ^^^"
    )


@pytest.mark.parametrize("text", ["a: &it [*it]\n", "a: &it {b: {c: *it}}\n"])
def test_an_alias_inside_its_own_anchor(text: str) -> None:
    assert only_problem(text).message == "the alias `*it` stands for itself"


def test_an_alias_bomb_is_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 20):
        inside = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{inside}]")
    start = time.monotonic()
    problem = only_problem("\n".join(lines))
    assert (problem.code, problem.message) == ("AR005", "more than 50000 nodes")
    assert time.monotonic() - start < 10


def test_what_is_written_out_may_be_longer_than_what_aliases_make(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"[{', '.join(['x'] * 60_000)}]"
    assert plain(parse(text, "file.yaml")) == ["x"] * 60_000
    monkeypatch.setattr("arenagen.source.MAX_NODES", 60_000)
    problem = only_problem(text)
    assert (problem.code, problem.message) == ("AR005", "more than 60000 nodes")
    assert problem.span.column == len(text) - 1


def test_aliases_do_not_nest_deeper_than_brackets_may() -> None:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{level}: &a{level} [*a{level - 1}]" for level in range(1, 3000)]
    problem = only_problem("\n".join(lines))
    assert (problem.code, problem.message) == ("AR005", "nested more than 64 deep")


@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ("{a: ", "}"), ("- ", "")]
)
def test_brackets_nest_only_so_deep(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return opening * depth + "x" + closing * depth

    plain(parse(nested(MAX_DEPTH), "file.yaml"))
    assert only_problem(nested(MAX_DEPTH + 1)).message == "nested more than 64 deep"
    assert only_problem(nested(100_000)).code in ("AR002", "AR005")


def test_an_integer_without_end_is_refused() -> None:
    digits = "9" * 100_000
    problem = only_problem(f"a: {digits}\n")
    assert (problem.code, problem.message) == ("AR008", "an integer of 100000 digits")
    assert value_of("1" * 40) == int("1" * 40)


# Places inside a scalar


def place(text: str, path: tuple[str | int, ...], token: str) -> tuple[int, int, str]:
    """Line, column and source of a token, as `locate` finds it."""
    scalar = scalar_at(parse(text, "file.yaml"), *path)
    assert isinstance(scalar.value, str)
    span = locate(scalar, scalar.value.index(token), len(token))
    assert span.length == len(token)
    return span.line, span.column, span.source


def test_locate_in_a_plain_scalar() -> None:
    text = "a: 1\nb: M * hidden_size\n"
    assert place(text, ("b",), "hidden_size") == (2, 8, "b: M * hidden_size")


def test_locate_in_a_quoted_scalar_in_a_list() -> None:
    line = "shape: [M, \"align(wide, 16)\", 'cdiv(tall, 2)']"
    assert place(line, ("shape", 1), "wide") == (1, 19, line)
    assert place(line, ("shape", 2), "tall") == (1, 37, line)


def test_locate_in_a_plain_scalar_over_several_lines() -> None:
    text = "a:\n  M * hidden_size\n    + wide  # so it is\nb: 1\n"
    assert place(text, ("a",), "wide") == (3, 7, "    + wide  # so it is")


def test_locate_in_a_quoted_scalar_over_several_lines() -> None:
    text = 'a: ["max(one,\n  other)", 7]  # seven\n'
    assert place(text, ("a", 0), "other") == (2, 3, '  other)", 7]  # seven')


@pytest.mark.parametrize("style", [">-", ">", "|", "|-", ">2-"])
def test_locate_in_a_block_scalar(style: str) -> None:
    text = f"a:\n  b: {style}\n    2 * one\n    + 2 * other\n  c: 1\n"
    assert place(text, ("a", "b"), "one") == (3, 9, "    2 * one")
    assert place(text, ("a", "b"), "other") == (4, 11, "    + 2 * other")


def test_locate_behind_a_comment_of_a_block_scalar() -> None:
    text = "a: >- # 2 * one\n  2 * one\n"
    assert place(text, ("a",), "one") == (2, 7, "  2 * one")


def test_locate_behind_blank_lines_of_a_block_scalar() -> None:
    assert place("a: >-\n\n  one\n\n  + other\n", ("a",), "other") == (
        5,
        5,
        "  + other",
    )


def test_locate_behind_an_anchor() -> None:
    text = "a: &it M * hidden_size\nb: *it\n"
    assert place(text, ("a",), "hidden_size") == (1, 12, "a: &it M * hidden_size")
    assert place(text, ("b",), "hidden_size") == (1, 12, "a: &it M * hidden_size")


def test_locate_behind_tabs_keeps_the_caret_below_the_token() -> None:
    scalar = scalar_at(parse("a:\tM *\twide\n", "f"), "a")
    assert isinstance(scalar.value, str)
    span = locate(scalar, scalar.value.index("wide"), 4)
    assert span.excerpt() == [" 1 | a:\tM *\twide", "   |   \t   \t^^^^"]


def test_locate_gives_the_whole_scalar_where_escapes_move_the_text() -> None:
    scalar = scalar_at(parse('a: "\\x4d * wide"\n', "f"), "a")
    assert locate(scalar, 4, 4) == scalar.span
    assert (scalar.span.column, scalar.span.length) == (4, 13)


def test_locate_of_an_end_is_the_last_character() -> None:
    scalar = scalar_at(parse("a: max(1\n", "f"), "a")
    assert locate(scalar, 5, 1).column == 8


def test_the_caret_never_leaves_the_line() -> None:
    scalar = scalar_at(parse("a: >-\n  one\n  + other\n", "f"), "a")
    assert locate(scalar, 0, 11).excerpt() == [" 2 |   one", "   |   ^^^"]
