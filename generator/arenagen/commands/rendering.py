"""One package and its reference, from its schema to texts."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from ..record import record
from .console import print_problems
from .schemas import load_checked

if TYPE_CHECKING:
    from ..compile import Checked
    from ..project import Pair
    from .progress import Bar
    from .recording import Recording


@record
class Rendered:
    """A package that is not written yet.

    files: by path. page: its reference, or nothing. read: the files that its schema was
    read from, as problems show them.
    """

    checked: Checked
    files: dict[str, str]
    page: str
    read: list[str]


def rendered(
    pair: Pair, bar: Bar, recording: Recording | None, warn: bool = False
) -> Rendered:
    """Read, check and render a package; `warn` tells what is suspicious in its schema.

    Raise InputProblems with every error of the schema.
    """
    from ..compile import emit

    seen: dict[str, bytes] = {}
    name = os.path.basename(pair.schema)
    with bar:
        bar.stage(f"{name}: reading")
        checked = load_checked(pair.schema, seen)
    if warn:
        print_problems(checked.warnings)
    with bar:
        files = emit(checked, name, bar.stage)
        page = _reference_page(checked, pair)
    if recording is not None:
        recording.add(pair, seen, files, page, checked.warnings)
    return Rendered(checked, files, page, [*seen])


def _reference_page(checked: Checked, pair: Pair) -> str:
    """The reference of an arena, or nothing where it has no place."""
    if pair.docs is None:
        return ""
    from ..reference import reference

    return reference(checked.schema, os.path.basename(pair.schema))
