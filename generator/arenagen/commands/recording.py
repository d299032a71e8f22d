"""Notes of a run that found everything right, for the next one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .console import shown

if TYPE_CHECKING:
    from ..errors import Problem
    from ..manifest import Package
    from ..project import Pair


class Recording:
    """What a run over the listed packages reads and emits.

    Made before the generator is loaded, so that a source that changes while it runs
    is found changed by the next run.
    """

    def __init__(self, tool: str | None = None) -> None:
        from .. import manifest

        self._tool = tool or manifest.tool()
        self._pairs: list[Pair] = []
        self._packages: list[Package] = []
        self._contents: dict[str, bytes] = {}
        self._repeats = True

    def add(
        self,
        pair: Pair,
        seen: dict[str, bytes],
        files: dict[str, str],
        page: str,
        warnings: Iterable[Problem],
    ) -> None:
        """A package and its reference, and what they were made of."""
        from ..manifest import Package

        output = shown(pair.output)
        docs = "" if pair.docs is None else shown(pair.docs)
        self._pairs.append(pair)
        self._packages.append(
            Package(shown(pair.schema), output, [*seen], [*files], docs)
        )
        self._contents |= seen
        for path, text in files.items():
            self._contents[f"{output}/{path}"] = text.encode("utf-8")
        if docs:
            self._contents[docs] = page.encode("utf-8")
        # Who has warnings is told so each time.
        self._repeats = self._repeats and not [*warnings]

    def store(self) -> None:
        """Leave the notes beside the project file, if that is in the working folder."""
        from .. import disk, manifest, project

        here = os.getcwd()
        path = os.path.join(here, manifest.PROJECT)
        if not self._repeats or not os.path.isfile(path):
            return
        data = disk.read(path)
        if project.pairs(data, path) == self._pairs:
            text = manifest.text(self._tool, data, self._packages, self._contents)
            disk.keep(os.path.join(here, manifest.PATH), text)
