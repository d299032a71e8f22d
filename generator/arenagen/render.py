"""Plan to text: the Jinja environment, its few filters, and black's form.

Black itself is slow, and forms only what `style` does not know.
`render` is pure: the same plan gives the same bytes on every machine.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from . import resources
from .formula import quote
from .header import header
from .leaves import Unknown
from .lower_families import FamiliesView
from .lower_scope import python_literal
from .plan import CHUNKED, ArenaView
from .plan_parts import lower_first
from .settled import WIDTH
from .style import styled

if TYPE_CHECKING:
    import jinja2

MODULES = (
    "__init__",
    "arena",
    "buffers",
    "checks",
    "config",
    "constants",
    "functions",
    "inputs",
    "layouts",
    "levers",
    "pointers",
    "shapes",
    "sizes",
    "sweep",
    "target",
    "uses",
)
# Read by the families module alone, and by configs whose heads ranks share.
FAMILIES_RUNTIME = "hf.py"
SHARD_RUNTIME = "shard.py"


def render(
    view: ArenaView, families: FamiliesView | None, source: str
) -> dict[str, str]:
    """Every file of the package, by its path in the package's folder.

    `source` is the file name of the schema, for the header.
    """
    environment = _environment()
    files = {
        path: _module(environment, module, seen) for path, module, seen in modules(view)
    }
    if families is not None:
        files["families.py"] = _module(environment, "families", families)
    unread = set()
    if families is None:
        unread.add(FAMILIES_RUNTIME)
    if not view.shares:
        unread.add(SHARD_RUNTIME)
    for name, text in resources.runtime_modules():
        if name not in unread:
            files[f"runtime/{name}"] = text
    files["py.typed"] = ""
    return {
        path: header(source) + (f"\n{text}" if text else "")
        for path, text in sorted(files.items())
    }


def modules(view: ArenaView) -> Iterator[tuple[str, str, ArenaView]]:
    """The path of each module of a package, its template, and what that sees."""
    for module in MODULES:
        parts = view.chunks if module in CHUNKED else ()
        yield f"{module}.py", module, view.join if parts else view
        if module in ("pointers", "uses"):
            parts = view.pointer_chunks
        for each in parts:
            yield f"{module}{each.suffix}.py", module, each


def _module(environment: jinja2.Environment, module: str, view: object) -> str:
    template = environment.get_template(f"{module}.py.jinja")
    text = template.render(view=view)
    try:
        return styled(text)
    except Unknown:
        return black_format(text)


def black_format(text: str) -> str:
    """The text in black's form."""
    import black
    from black.mode import TargetVersion

    mode = black.Mode(target_versions={TargetVersion.PY311}, line_length=WIDTH)
    return black.format_str(text, mode=mode)


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.templates()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        bytecode_cache=_compiled_templates(),
    )
    environment.filters["docstring"] = docstring
    environment.filters["comment"] = comment
    environment.filters["string_argument"] = string_argument
    environment.filters["literal"] = python_literal
    environment.filters["argument"] = argument
    return environment


def _compiled_templates() -> jinja2.BytecodeCache | None:
    """Where compiled templates are kept, in a folder that nobody else can write.

    As with Python's own byte code, a place where nothing can be kept is no error.
    """
    import jinja2

    class Cache(jinja2.FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    try:
        return Cache()
    except (OSError, RuntimeError):
        return None


def docstring(text: str | tuple[str, ...], indent: int) -> str:
    """A docstring of one or more paragraphs, wrapped behind `indent` spaces.

    Every character of the text reaches the docstring as itself.
    """
    paragraphs = [text] if isinstance(text, str) else [each for each in text if each]
    pad = " " * indent
    escaped = [_escape(each) for each in paragraphs]
    # Black keeps a quote at the end apart from those behind it.
    line = escaped[0] + " " * escaped[0].endswith('"')
    if len(escaped) == 1 and len(line) <= WIDTH - indent - 6:
        return f'"""{line}"""'
    lines: list[str] = []
    for place, paragraph in enumerate(escaped):
        width = WIDTH - indent - (3 if place == 0 else 0)
        if place and not _continues(paragraphs[place - 1], paragraphs[place]):
            lines.append("")
        lines += _wrapped(paragraph, width)
    if len(lines) == 1:
        # Black sets the quotes behind a line that is alone, which leaves less room.
        lines = _wrapped(lines[0], WIDTH - indent - 7)
    if len(lines) == 1:
        return f'"""{line}"""'
    body = "\n".join(pad + line if line else "" for line in lines).lstrip()
    return f'"""{body}\n{pad}"""'


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _continues(before: str, after: str) -> bool:
    """Whether two paragraphs are entries of one list of arguments."""
    return all(each.split(":")[0].isidentifier() for each in (before, after))


def _escape(text: str) -> str:
    escaped = text.replace("\\", "\\\\")
    # Quotes that would end the docstring, or touch its end.
    return re.sub(r'"{3,}|"+$', lambda run: '\\"' * len(run[0]), escaped)


def comment(text: str, indent: int) -> str:
    """A comment, wrapped behind `indent` spaces."""
    pad = " " * indent + "# "
    return "\n".join(
        textwrap.wrap(
            text,
            WIDTH,
            initial_indent=pad,
            subsequent_indent=pad,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def string_argument(text: str, indent: int) -> str:
    """A string literal, broken over lines in brackets where it is long."""
    literal = quote(text)
    if len(literal) + indent + 12 <= WIDTH:
        return literal
    pieces: list[str] = []
    for word in text.split(" "):
        # Escapes make a literal longer than its text.
        if pieces and len(quote(f"{pieces[-1]} {word}")) <= WIDTH - indent - 5:
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    spaced = [*(f"{each} " for each in pieces[:-1]), pieces[-1]]
    pad = " " * indent
    return "\n".join(["(", *(f"{pad}{quote(each)}" for each in spaced), ")"])


def argument(doc: str, name: str, indent: int) -> str:
    """An argument's entry in a docstring, wrapped behind `indent` spaces."""
    lines = textwrap.wrap(
        _escape(f"{name}: {lower_first(doc)}"),
        WIDTH - indent,
        subsequent_indent=" " * 4,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"\n{' ' * indent}".join(lines)
