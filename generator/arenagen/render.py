"""Plan to text: the templates, their few filters, and black's form.

Black itself is slow, and forms only what `style` does not know.
`render` is pure: the same plan gives the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import resources
from .header import header
from .leaves import Unknown
from .lower_families import FamiliesView
from .lower_scope import python_literal
from .plan import CHUNKED, ArenaView
from .settled import WIDTH
from .style import styled
from .template import Filters, Template
from .wrapping import argument, comment, docstring, string_argument

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
    "sweep_columns",
    "target",
    "uses",
)
# Templates of modules that look different where they are a chunk, or join chunks.
_CHUNKS = {"arena": "chunks/arena", "sizes": "chunks/sizes"}
_JOINED = {"sizes": "joined/sizes"}
# Modules of the buffers alone in which several things lie.
_OF_POINTERS = ("pointers", "uses")
# Read by chunks alone.
CHUNKS_RUNTIME = "sizes.py"
FILTERS: Filters = {
    "argument": argument,
    "comment": comment,
    "docstring": docstring,
    "literal": python_literal,
    "string_argument": string_argument,
}
# Read by the families module alone, and by configs whose heads ranks share.
FAMILIES_RUNTIME = "hf.py"
SHARD_RUNTIME = "shard.py"


def render(
    view: ArenaView,
    families: FamiliesView | None,
    source: str,
    rendered: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, str]:
    """Every file of the package, by its path in the package's folder.

    `source` is the file name of the schema, for the header. rendered: told how many
    modules are done, and of how many.
    """
    files = {}
    wanted = list(modules(view))
    for done, (path, template, seen) in enumerate(wanted):
        rendered(done, len(wanted))
        files[path] = _module(template, seen)
    if families is not None:
        files["families.py"] = _module(_template("families"), families)
    unread = set()
    if families is None:
        unread.add(FAMILIES_RUNTIME)
    if not view.chunks:
        unread.add(CHUNKS_RUNTIME)
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


def modules(view: ArenaView) -> Iterator[tuple[str, Template, ArenaView]]:
    """The path of each module of a package, its template, and what that sees."""
    for module in MODULES:
        if module not in CHUNKED or not view.chunks:
            yield f"{module}.py", _template(module), view
            continue
        joined = _template(_JOINED.get(module, module))
        # An arena of chunks does what concerns all buffers itself.
        yield f"{module}.py", joined, view if module == "arena" else view.join
        template = _template(_CHUNKS.get(module, module))
        for each in view.chunks:
            if each.pointers or module not in _OF_POINTERS:
                yield f"{module}{each.suffix}.py", template, each


def _template(module: str) -> Template:
    return Template(resources.template(module), FILTERS)


def _module(template: Template, view: object) -> str:
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
