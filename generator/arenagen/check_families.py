"""Config fields that no family of a table gives, and that sizes read all the same.

For a schema and a table without errors, which fit each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from .errors import Problem, nearest
from .families import FamilyTable
from .formula import Type, names
from .formulas_check import all_formulas
from .model import Field, Schema
from .symbols import Symbols

# What a field is that nothing gives, and a default that says so; there is no formula
# for an empty list.
_NOTHING: dict[Type, tuple[str, str]] = {
    "int": ("0", "default: 0"),
    "bool": ("false", "default: false"),
    "str": ("empty", "default: \"''\""),
    "list": ("empty", ""),
}


def check_given(schema: Schema, table: FamilyTable) -> Iterator[Problem]:
    """Fields that are 0, false or empty for files that were not written for them."""
    # Bases read no file.
    families = table.by_model_type.values()
    given = {name for each in families for name in (*each.keys, *each.fields)}
    lacking = [each for each in schema.config if _asks(each) and each.name not in given]
    if not lacking:
        return
    formulas = all_formulas(Symbols(schema))
    read = {node.name for formula in formulas for node in names(formula.expr)}
    # Names in files lead to the keys that read them.
    known = {
        name: key.name
        for family in families
        for key in family.keys.values()
        for name in key.names
    }
    known |= {name: name for name in given}
    declared = {each.name for each in schema.config}
    for each in lacking:
        if each.name in read:
            nothing, default = _NOTHING[each.type]
            mentioned = each.name in table.mentioned
            files = "every file" if mentioned else "files without a key of that name"
            close = known.get(nearest(each.name, known) or "")
            hint = _hint(None if close in declared else close, nothing, default)
            yield Problem(
                "AR097",
                f"no family gives `{each.name}`, which is {nothing} for {files}",
                each.span,
                hint=hint,
                severity="warning",
            )


def _asks(field: Field) -> bool:
    """Whether a field leaves it to families how files give it."""
    return field.default is None and not field.aliases and field.name != "model_type"


def _hint(close: str | None, nothing: str, default: str) -> str:
    cure = "add a key to the families, or `aliases`"
    if default:
        cure += f"; where {nothing} is meant, say `{default}`"
    return f"did you mean `{close}`? else {cure}" if close else cure
