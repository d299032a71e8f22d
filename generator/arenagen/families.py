"""The family table: which families there are, and what their files mean.

Owns the way from a file to a schema's config. Takes data, never a path; the table
itself comes from `family_loader`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import InputProblems, Problem, nearest
from .evaluate import Value
from .family import FUNCTIONS, Family, plain_key
from .family_reader import ConfigFileError, as_object, read_fields, spoken, wrong
from .formula import TYPE_WORDS, infer
from .model import Schema
from .record import record


@record
class Canonical:
    """A file in the schema's terms: a value for every field of its config.

    `warnings` are what a person should know of how the file was read.
    """

    family: str
    model_type: str
    fields: dict[str, Value]
    warnings: tuple[str, ...] = ()


class FamilyTable:
    """Every family of a table, bases included.

    size_keys: names in files that change sizes in one family or another.
    by_model_type: the family of every model_type, in the table's order.
    mentioned: every key and field that a family has; others are read by their own name.
    """

    def __init__(self, families: dict[str, Family], size_keys: tuple[str, ...]) -> None:
        self.families = families
        self.size_keys = size_keys
        self.by_model_type = {
            model_type: family
            for family in families.values()
            for model_type in family.model_types
        }
        self.mentioned = frozenset(
            name
            for family in families.values()
            for name in (*family.keys, *family.fields)
        )

    def plain_names(self, schema: Schema) -> frozenset[str]:
        """The names in a file of the fields that no family mentions."""
        mentioned = self.mentioned
        plain = (each for each in schema.config if each.name not in mentioned)
        return frozenset(name for each in plain for name in plain_key(each).names)

    def check(self, schema: Schema) -> list[Problem]:
        """Where a key or a field has another type than the schema's field."""
        problems = []
        fields = [each for each in schema.config if each.name in self.mentioned]
        for family in self.families.values():
            types = {key.name: key.type for key in family.keys.values()}
            for each in fields:
                formula = family.fields.get(each.name)
                if formula is not None:
                    found = infer(formula.expr, types, FUNCTIONS)
                elif each.name in types:
                    found = types[each.name]
                else:
                    continue
                if found != each.type:
                    at = family.keys[each.name] if formula is None else formula.scalar
                    message = (
                        f"`{each.name}` is {TYPE_WORDS[found]} in the family "
                        f"`{family.name}` and {TYPE_WORDS[each.type]} in the schema"
                    )
                    related = (("schema", each.span),)
                    problems.append(Problem("AR095", message, at.span, related=related))
        return problems

    def canonical(
        self,
        raw: Mapping[str, object],
        schema: Schema,
        file: str = "config.json",
        assume: str = "",
        given: Mapping[str, Value] | None = None,
    ) -> Canonical:
        """What a file means to a schema.

        `assume` is the model_type by which a file of an unknown one is read; `given`
        are values of fields, over what the file says. Raises ConfigFileError, which
        names the file, for the first thing that is missing or wrong in it;
        InputProblems where the table does not fit the schema.
        """
        if problems := self.check(schema):
            raise InputProblems(problems)
        model_type, warnings = self._model_type(raw, file, assume)
        family = self.by_model_type[model_type]
        if family.inner:
            raw, file = _inner(raw, family, file)
            model_type, more = self._model_type(raw, file, assume)
            warnings += more
            family = self.by_model_type[model_type]
        where = f"{file}: {family.name}"
        if family.refuse:
            raise ConfigFileError(f"{where}: {family.refuse}")
        if family.inner:
            raise ConfigFileError(f"{where}: a config inside another holds none itself")
        fields = read_fields(
            raw, model_type, family, schema, self.mentioned, given or {}, where
        )
        if family.warn:
            warnings.append(f"{where}: {family.warn}")
        known = family.known_names | self.plain_names(schema)
        names = (each for each in self.size_keys if each not in known)
        if unread := spoken(raw, family, names):
            warnings.append(
                f"{where}: not read, though it may change sizes: {', '.join(unread)}"
            )
        return Canonical(family.name, model_type, fields, tuple(warnings))

    def _model_type(
        self, raw: Mapping[str, object], file: str, assume: str
    ) -> tuple[str, list[str]]:
        """The model_type that a file is read by, and what to say about it."""
        known = self.by_model_type
        if assume and assume not in known:
            hint = _hint(assume, known)
            raise ConfigFileError(f"assume: no model_type {assume!r} is known; {hint}")
        model_type = raw.get("model_type")
        if model_type is not None and not isinstance(model_type, str):
            raise wrong(f"{file}: model_type", model_type, "a str")
        if model_type in known:
            return model_type, []
        if model_type:
            why = f"model_type {model_type[:80]!r} is not known"
        else:
            why = "model_type is missing"
            for name, family in known.items():
                if family.marks and all(each in raw for each in family.marks):
                    return name, []
        if not assume:
            hint = _hint(model_type or "", known)
            raise ConfigFileError(f"{file}: {why}; {hint}")
        return assume, [f"{file}: {why}; read as {assume}"]


def _inner(
    raw: Mapping[str, object], family: Family, file: str
) -> tuple[Mapping[str, object], str]:
    """The config inside a file, and what errors call it."""
    where = f"{file}: {family.name}"
    for name in family.inner:
        if raw.get(name) is not None:
            return as_object(f"{where}: {name}", raw[name]), f"{file}: {name}"
    wanted = " or ".join(family.inner)
    raise ConfigFileError(f"{where}: {wanted} is missing from the file")


def _hint(model_type: str, known: Mapping[str, Family]) -> str:
    listed = f"known: {', '.join(known)}"
    close = nearest(model_type, known)
    return f"did you mean {close}? {listed}" if close else listed
