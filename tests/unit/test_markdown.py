"""Untrusted texts in Markdown: they show as they are, and do nothing."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from arenagen.markdown import code, table, text

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class Shown(HTMLParser):
    """The tags of a page and the text that a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def shown(markdown: str) -> Shown:
    page = Shown()
    page.feed(READER.render(markdown))
    page.close()
    return page


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](https://example.org) ![b](c.png) [d]: e",
    "a | b \\| c \\\\| d",
    "`code` ``more`` `",
    "*a* _b_ **c** __d__ ~~e~~ a_b_c $x$",
    "- a",
    "+ a",
    "* a",
    "1. a",
    "12) a",
    "# a",
    "> a",
    "===",
    "---",
    "```",
    "~~~",
    "&lt;b&gt; &amp;",
    "line\n\n# other\n<b>x</b>",
    "https://example.org www.example.org a@example.org @someone",
    "--> <!-- a -->",
    "\\",
    "a\\",
    "<https://example.org>",
    "| --- | --- |",
]


@pytest.mark.parametrize("words", HOSTILE)
def test_a_paragraph_shows_the_text_and_nothing_else(words: str) -> None:
    page = shown(text(words))
    assert page.words.strip() == " ".join(words.split())
    assert set(page.tags) <= {"p", "span"}


@pytest.mark.parametrize("words", HOSTILE)
def test_a_cell_shows_the_text_and_nothing_else(words: str) -> None:
    lines = table(("one", "two"), [(text(words), code(words, in_cell=True))])
    page = shown("\n".join(lines))
    line = " ".join(words.split())
    assert "".join(page.words.split()) == "onetwo" + 2 * "".join(line.split())
    assert page.tags.count("td") == 2
    assert set(page.tags) <= {
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "code",
        "span",
    }


@pytest.mark.parametrize("words", HOSTILE)
def test_a_code_span_shows_the_text(words: str) -> None:
    page = shown(f"so {code(words)}.")
    assert page.words.strip() == f"so {' '.join(words.split())}."
    assert page.tags == ["p", "code"]


def test_what_github_links_by_itself_is_cut() -> None:
    assert text("see https://a.org") == "see https<!-- -->://a.org"
    assert text("see www.a.org") == "see www<!-- -->.a.org"
    assert text("@team, a@b.org") == "<span>@</span>team, a<span>@</span>b.org"


def test_names_and_plain_words_stay_as_they_are() -> None:
    plain = "Rows of hidden_states, one for each token; 2 * 3 is not among them."
    assert text(plain) == plain.replace("*", "\\*")


def test_an_empty_span_is_no_span() -> None:
    assert code("") == code(" \n") == ""


def test_columns_of_numbers_lean_right() -> None:
    assert table(("name", "bytes"), [("`a`", "1")], right=("bytes",)) == [
        "| name | bytes |",
        "| --- | ---: |",
        "| `a` | 1 |",
    ]


@given(st.text(alphabet="ab `*_[]()<>&|~#!$\\-+=.1@:/\n", max_size=30))
def test_any_text_shows_as_it_is(words: str) -> None:
    line = " ".join(words.split())
    page = shown(f"x\n\n{text(words)}")
    assert page.words.replace("x", "", 1).strip() == line
    assert set(page.tags) <= {"p", "span"}
    lines = table(("one",), [(text(words),), (code(words, in_cell=True),)])
    cells = shown("\n".join(lines))
    assert cells.tags.count("td") == 2
    assert "".join(cells.words.split()) == "one" + 2 * "".join(line.split())
