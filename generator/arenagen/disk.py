"""The only module that touches the disk.

Reads inputs, compares what is there with what should be, and writes atomically. Never
changes a file that arenagen did not write.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import ArenagenError
from .header import is_ours

Kind = Literal["changed", "missing", "extra", "foreign"]


class DiskError(ArenagenError):
    """A file that cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One file that is not as it should be.

    changed: ours, with other content. missing: not there. extra: ours, and no longer
    emitted. foreign: in the way of a file of ours, and not written by arenagen.
    """

    path: str
    kind: Kind
    before: str
    after: str

    def diff(self) -> str:
        """A unified diff from what is there to what should be."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"{self.path} (on disk)",
            f"{self.path} (from the schema)",
        )
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )


def read(path: Path) -> bytes:
    """The bytes of a file. Raises DiskError."""
    try:
        return path.read_bytes()
    except IsADirectoryError:
        raise DiskError(f"{path}: is a folder, not a file") from None
    except FileNotFoundError:
        raise DiskError(f"{path}: no such file") from None
    except OSError as error:
        raise DiskError(f"{path}: cannot be read: {error.strerror}") from None


def compare(folder: Path, files: Mapping[str, str]) -> list[Difference]:
    """How a folder differs from the files of a package, in order of path."""
    found: list[Difference] = []
    for path, after in files.items():
        before = _text(folder / path)
        if before is None:
            found.append(Difference(path, "missing", "", after))
        elif before != after:
            kind: Kind = "changed" if not before or is_ours(before) else "foreign"
            found.append(Difference(path, kind, before, after))
    for path, before in _ours(folder):
        if path not in files:
            found.append(Difference(path, "extra", before, ""))
    return sorted(found, key=lambda each: each.path)


def write(folder: Path, files: Mapping[str, str]) -> list[Difference]:
    """Make a folder hold the files of a package; returns what had to change.

    Every new content is on the disk before the first file is replaced. Raises
    DiskError, with nothing changed, when a file of someone else is in the way.
    """
    found = compare(folder, files)
    foreign = [each.path for each in found if each.kind == "foreign"]
    if foreign:
        raise DiskError(
            f"{folder}: not written by arenagen, and in the way: {', '.join(foreign)}; "
            "move them, or choose another output folder"
        )
    staged: list[tuple[Path, Path]] = []
    try:
        for each in found:
            if each.kind != "extra":
                target = folder / each.path
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.append((_stage(target, each.after), target))
        for temporary, target in staged:
            os.replace(temporary, target)
    except OSError as error:
        raise DiskError(
            f"{error.filename or folder}: cannot be written: {error.strerror}"
        ) from None
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
    for each in found:
        if each.kind == "extra":
            _remove(folder, folder / each.path)
    return found


def _stage(target: Path, text: str) -> Path:
    descriptor, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
    except OSError:
        os.unlink(name)
        raise
    return Path(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _text(path: Path) -> str | None:
    try:
        # newline="" keeps line ends, so that a CRLF copy of a file is a difference.
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise DiskError(f"{path.parent}: is a file, where a folder is due") from None
    except UnicodeDecodeError:
        return "\0"
    except OSError as error:
        raise DiskError(f"{path}: cannot be read: {error.strerror}") from None


def _ours(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if "__pycache__" in path.parts or not path.is_file():
            continue
        text = _text(path)
        if text is not None and is_ours(text):
            yield path.relative_to(folder).as_posix(), text


def _remove(folder: Path, path: Path) -> None:
    path.unlink()
    parent = path.parent
    while parent != folder and not any(parent.iterdir()):
        parent.rmdir()
        parent = parent.parent
