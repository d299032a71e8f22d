"""What the last run found right, so that the next one need not work it out again.

One digest stands for the tool, the project file, every input and every emitted file.
Who finds it again, all bytes read anew, has found everything as it was. Imports next
to nothing, since an unchanged project is the common case; reads, and never writes.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator

from . import __version__, resources

FOLDER = ".arenagen_cache"
PATH = f"{FOLDER}/manifest.json"
PROJECT = "pyproject.toml"
# What shapes the emitted text beside arenagen itself.
_DEPENDENCIES = ("black-", "jsonschema-", "pyyaml-")
_INFO = (".dist-info", ".egg-info")


class Package:
    """One package that was found right; paths are relative to the project's folder.

    inputs: the schema and all that it needs. files: of the package, in its folder.
    docs: its reference, or nothing.
    """

    def __init__(
        self, schema: str, output: str, inputs: list[str], files: list[str], docs: str
    ) -> None:
        self.schema = schema
        self.output = output
        self.inputs = inputs
        self.files = files
        self.docs = docs


def tool() -> str:
    """A digest of all that a run depends on beside its inputs."""
    parts = [("version", __version__.encode()), ("python", sys.version.encode())]
    parts += [(name, b"") for name in sorted(_installed())]
    paths = {*_below(resources.PACKAGE, ".py")}
    paths |= {*_below(resources.find("templates"), "")}
    paths |= {*_below(resources.find("schema"), ".schema.json")}
    parts += [(path, _read(path)) for path in sorted(paths)]
    return digest(parts)


def digest(parts: Iterable[tuple[str, bytes]]) -> str:
    """A digest of named contents, in their order."""
    # A hash of a hash: no content can look like the start of the next one.
    total = hashlib.sha256()
    for name, data in parts:
        total.update(hashlib.sha256(os.fsencode(name)).digest())
        total.update(hashlib.sha256(data).digest())
    return total.hexdigest()


def text(
    tool: str, project: bytes, packages: list[Package], contents: dict[str, bytes]
) -> str:
    """The manifest of packages that are right, given what was read and emitted."""
    parts = [("tool", tool.encode()), (PROJECT, project)]
    parts += [(path, contents[path]) for path in _paths(packages)]
    found = [vars(each) for each in packages]
    return json.dumps({"digest": digest(parts), "packages": found})


def unchanged(folder: str, tool: str) -> list[Package] | None:
    """The packages of a project whose inputs and files are all as they were, or None.

    A manifest that is missing, damaged or of another version is as good as none.
    """
    try:
        manifest = json.loads(_read(os.path.join(folder, PATH)))
        packages = [Package(**each) for each in manifest["packages"]]
        parts = [("tool", tool.encode())]
        parts.append((PROJECT, _read(os.path.join(folder, PROJECT))))
        parts += [
            (each, _read(os.path.join(folder, each))) for each in _paths(packages)
        ]
        if digest(parts) != manifest["digest"]:
            return None
        for package in packages:
            output = os.path.join(folder, package.output)
            found = {os.path.relpath(each, output) for each in _below(output, "")}
            if {each.replace(os.sep, "/") for each in found} != {*package.files}:
                return None
        return packages
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def report(command: str, package: Package) -> str:
    """What a command says of a package that is as it should be."""
    schema, count = package.schema, len(package.files)
    if command == "check":
        files, docs = f"all as {schema} says", f"as {schema} says"
    else:
        files, docs = f"{count} unchanged", "unchanged"
    text = f"{package.output}: {count} files, {files}\n"
    return text + (f"{package.docs}: {docs}\n" if package.docs else "")


def _paths(packages: list[Package]) -> Iterator[str]:
    for package in packages:
        yield from package.inputs
        yield from (f"{package.output}/{each}" for each in package.files)
        if package.docs:
            yield package.docs


def _installed() -> Iterator[str]:
    for folder in sys.path:
        try:
            names = os.listdir(folder)
        except OSError:
            # No folder, or one that Python finds nothing in either.
            continue
        for name in names:
            # Older wheels, and distributions, spell them otherwise.
            if name.lower().startswith(_DEPENDENCIES) and name.endswith(_INFO):
                yield name


def _below(folder: str, ending: str) -> Iterator[str]:
    """The files below a folder, byte code apart; links among them."""
    with os.scandir(folder) as found:
        for each in found:
            if each.is_dir(follow_symlinks=False):
                if each.name != "__pycache__":
                    yield from _below(each.path, ending)
            elif each.name.endswith(ending):
                yield each.path


def _read(path: str) -> bytes:
    """The bytes of a plain file, which is no link."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(f"{path}: no plain file")
    with open(path, "rb") as file:
        return file.read()
