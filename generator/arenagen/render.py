"""Plan to text: the templates, their few filters, and black's form.

Black itself is slow, and forms only what `style` does not know.
`render` is pure: the same plan gives the same bytes on every machine.
"""

from __future__ import annotations

from . import resources
from .header import header
from .leaves import Unknown
from .lower_families import FamiliesView
from .lower_scope import python_literal
from .plan import ArenaView
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
    "target",
    "uses",
)
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
    view: ArenaView, families: FamiliesView | None, source: str
) -> dict[str, str]:
    """Every file of the package, by its path in the package's folder.

    `source` is the file name of the schema, for the header.
    """
    files = {f"{module}.py": _module(module, view) for module in MODULES}
    if families is not None:
        files["families.py"] = _module("families", families)
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


def _module(module: str, view: object) -> str:
    text = raw_module(module, view)
    try:
        return styled(text)
    except Unknown:
        return black_format(text)


def raw_module(module: str, view: object) -> str:
    """The text of one module, not yet in black's form."""
    return Template(resources.template(module), FILTERS).render(view=view)


def black_format(text: str) -> str:
    """The text in black's form."""
    import black
    from black.mode import TargetVersion

    mode = black.Mode(target_versions={TargetVersion.PY311}, line_length=WIDTH)
    return black.format_str(text, mode=mode)
