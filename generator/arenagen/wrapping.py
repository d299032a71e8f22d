"""Texts as docstrings, comments and literals, wrapped to black's width.

Every character of a text reaches the emitted file as itself, or escaped.
"""

from __future__ import annotations

import re

from .formula import quote
from .plan_parts import lower_first
from .settled import WIDTH


def is_single_spaced(text: str) -> bool:
    """Whether no white space but single blanks stands in a text, between words."""
    return " ".join(text.split()) == text


def wrapped(text: str, width: int, rest: int | None = None) -> list[str]:
    """The lines of a text, of at most `width` characters, and `rest` behind the first.

    A longer word has a line of its own.
    """
    rest = width if rest is None else rest
    if not is_single_spaced(text):
        return _wrapped_by_library(text, width, rest)
    lines: list[str] = []
    while len(text) > width:
        cut = text.rfind(" ", 0, width + 1)
        if cut < 0:
            cut = text.find(" ")
        if cut < 0:
            break
        lines.append(text[:cut])
        text, width = text[cut + 1 :], rest
    return [*lines, text] if text else lines


def _wrapped_by_library(text: str, width: int, rest: int) -> list[str]:
    import textwrap

    indent = " " * (width - rest)
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [lines[0], *(line[len(indent) :] for line in lines[1:])] if lines else []


def docstring(text: str | tuple[str, ...], indent: int) -> str:
    """A docstring of one or more paragraphs, wrapped behind `indent` spaces."""
    paragraphs = [text] if isinstance(text, str) else [each for each in text if each]
    pad = " " * indent
    escaped = [_escape(each) for each in paragraphs]
    # Black keeps a quote at the start or the end apart from those of the string.
    lead = " " * escaped[0].startswith('"')
    line = lead + escaped[0] + " " * escaped[0].endswith('"')
    if len(escaped) == 1 and len(line) <= WIDTH - indent - 6:
        return f'"""{line}"""'
    lines: list[str] = []
    for place, paragraph in enumerate(escaped):
        width = WIDTH - indent - (3 + len(lead) if place == 0 else 0)
        if place and not _continues(paragraphs[place - 1], paragraphs[place]):
            lines.append("")
        lines += wrapped(paragraph, width)
    if len(lines) == 1:
        # Black sets the quotes behind a line that is alone, which leaves less room.
        lines = wrapped(lines[0], WIDTH - indent - 7 - len(lead))
    if len(lines) == 1:
        return f'"""{line}"""'
    body = "\n".join([pad + line if line else "" for line in lines]).lstrip()
    return f'"""{lead}{body}\n{pad}"""'


def _continues(before: str, after: str) -> bool:
    """Whether two paragraphs are entries of one list of arguments."""
    return all(each.split(":")[0].isidentifier() for each in (before, after))


def _escape(text: str) -> str:
    if "\\" not in text and '"' not in text:
        return text
    escaped = text.replace("\\", "\\\\")
    # Quotes that would end the docstring, or touch its end.
    return re.sub(r'"{3,}|"+$', lambda run: '\\"' * len(run[0]), escaped)


def comment(text: str, indent: int) -> str:
    """A comment, wrapped behind `indent` spaces."""
    pad = " " * indent + "# "
    return "\n".join([pad + line for line in wrapped(text, WIDTH - len(pad))])


def string_argument(text: str, indent: int) -> str:
    """A string literal, broken over lines in brackets where it is long."""
    literal = quote(text)
    if len(literal) + indent + 12 <= WIDTH:
        return literal
    width = WIDTH - indent - 5
    pieces: list[str] = []
    if len(literal) == len(text) + 2 and is_single_spaced(text):
        pieces = wrapped(text, width - 2)
    else:
        for word in text.split(" "):
            # Escapes make a literal longer than its text.
            if pieces and len(quote(f"{pieces[-1]} {word}")) <= width:
                pieces[-1] += f" {word}"
            else:
                pieces.append(word)
    spaced = [*[f"{each} " for each in pieces[:-1]], pieces[-1]]
    pad = " " * indent
    return "\n".join(["(", *[f"{pad}{quote(each)}" for each in spaced], ")"])


def argument(doc: str, name: str, indent: int) -> str:
    """An argument's entry in a docstring, wrapped behind `indent` spaces."""
    text = _escape(f"{name}: {lower_first(doc)}")
    width = WIDTH - indent
    return f"\n{' ' * (indent + 4)}".join(wrapped(text, width, width - 4))
