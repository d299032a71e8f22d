"""What is not YAML: the parser's own error, made into a problem with a cure.

Knows the slips behind its messages: quotes, brackets, colons and indentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .errors import Problem, Span

# A value's first character that means something to YAML, behind its key.
_MARKED = r"""^[ -]*[^\s:,{}\[\]]+:\s+([-'"!@%&*>|?,:\[{])"""
_LONE_KEY = r"""[ -]*["']?\w+["']?"""


def malformed(error: Any, file: str, span_of: Callable[[Any], Span]) -> Problem:
    """YAML's own error, at the place that a person would look at."""
    context, opened = error.context or "", error.context_mark
    mark = error.problem_mark or opened
    if mark is None:
        return not_yaml(error.problem or str(error), Span(file, 1, 1))
    what, span = " ".join(str(error.problem).split()), span_of(mark)
    if opened is None or "escape" in what or "hexdecimal" in what:
        return not_yaml(what, span)
    start = span_of(opened)
    if context == "while scanning a quoted scalar":
        hint = "close the quote; inside of single quotes, a quote is written twice"
        return not_yaml("a quoted text that does not end", start, hint)
    if context == "while scanning a simple key":
        hint = "write `key: value`, with a blank behind the colon"
        return not_yaml("a key without its colon", start, hint)
    if context.startswith("while parsing a flow") and start.line < span.line:
        opener = start.source[start.column - 1]
        return not_yaml(what, span, f"close the `{opener}`", ("opened", start))
    return not_yaml(what, span)


def not_yaml(
    what: str, span: Span, hint: str = "", *related: tuple[str, Span]
) -> Problem:
    """The problem of a place that is not YAML, with the hint that it calls for."""
    hint = hint or _hint(what, span)
    return Problem("AR002", f"not YAML: {what}", span, hint, related=related)


def _hint(what: str, span: Span) -> str:
    before, rest = span.source[: span.column - 1], span.source[span.column - 1 :]
    marked = re.match(_MARKED, span.source[: span.column])
    if "\t" in span.source:
        return "YAML is indented with spaces, never with tabs"
    if "escape" in what or "hexdecimal" in what:
        return "write two backslashes for one, or put the text in single quotes"
    if rest[:1] in ("]", "}"):
        return "remove it, or open it before"
    if not before.strip() and "expected key" in what:
        return "check the indentation; the keys of one entry begin in one column"
    if "mapping values" in what and re.fullmatch(_LONE_KEY, before):
        return "check the indentation; the keys of one entry begin in one column"
    if "expected ',' or" in what or ("mapping values" in what and not marked):
        return "put a text that holds `: ` in quotes" if rest[:2] in (": ", ":") else ""
    if marked and marked[1] in "'\"":
        return "put the whole text in the other kind of quotes"
    if marked:
        return f"put a text that begins with `{marked[1]}` in quotes"
    if "cannot start any token" in what:
        return "put a text that begins with this character in quotes"
    return ""
