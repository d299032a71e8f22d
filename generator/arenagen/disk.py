"""The only module that touches the disk.

Reads inputs, compares what is there with what should be, and writes. Never changes a
file that arenagen did not write, and follows no link below an output folder.

A package is written whole or not at all, whenever the run is killed. Folders are not
exchanged for that: a folder holds hand-written files and caches, may be a link or the
working folder, and only Linux exchanges two at once. Instead, everything is staged in
a folder inside of it, the new package as a whole too. Then one replace puts a stand-in
in the place of `__init__.py`, which imports the staged package; now the other files
can be replaced one by one; and one more replace puts the new `__init__.py` in place.
Before the first the old package is whole, after it the new one is importable. The next
run makes an end of what a killed one left.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

from .errors import ArenagenError
from .header import MARK, is_ours, stand_in
from .record import record

if TYPE_CHECKING:
    # Takes a while to load, and who compares needs it for nothing.
    from pathlib import Path

# Larger than any schema, table or config that is read.
MAX_BYTES = 64 * 1024 * 1024
Kind = Literal["changed", "missing", "extra", "foreign"]
StrPath: TypeAlias = "str | os.PathLike[str]"

# In every package of ours, and in no folder inside of one.
_PACKAGE_MARKER = "py.typed"
_ENTRANCE = "__init__.py"
# The folder inside of an output folder that one run stages its files in.
_STAGE_PREFIX = ".arenagen-"
_STAGE = re.compile(r"\.arenagen-[0-9a-f]{8}")
_INVISIBLE = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"


class DiskError(ArenagenError):
    """A file that cannot be read or written."""


@record
class Difference:
    """One file that is not as it should be.

    changed: ours, with other content. missing: not there. extra: ours, and no longer
    emitted, or a folder that a killed run left. foreign: in the way of a file of ours,
    and not written by arenagen.
    """

    path: str
    kind: Kind
    before: str
    after: str

    def diff(self) -> str:
        """A unified diff from what is there to what should be.

        Control characters, such as the end of a CRLF line, are spelled out.
        """
        from difflib import unified_diff

        lines = unified_diff(
            _lines(self.before),
            _lines(self.after),
            f"{self.path} (on disk)",
            f"{self.path} (from the schema)",
        )
        text = "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )
        return re.sub(_INVISIBLE, lambda found: f"\\x{ord(found[0]):02x}", text)


def read(path: StrPath) -> bytes:
    """The bytes of a plain file of at most 64 MiB. Raises DiskError."""
    try:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            if not stat.S_ISREG(found.st_mode):
                raise DiskError(f"{path}: is a device or a pipe, not a file")
            if (size := found.st_size) > MAX_BYTES:
                raise DiskError(f"{path}: {size} bytes; at most {MAX_BYTES} are read")
        with open(path, "rb") as file:
            return file.read()
    except IsADirectoryError:
        raise DiskError(f"{path}: is a folder, not a file") from None
    except FileNotFoundError:
        raise DiskError(f"{path}: no such file") from None
    except OSError as error:
        raise DiskError(f"{path}: cannot be read: {error.strerror}") from None


def compare(folder: StrPath, files: Mapping[str, str]) -> list[Difference]:
    """How a folder differs from the files of a package, in order of path."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise DiskError(f"{folder}: is a file, where a folder is due")
    found: dict[str, Difference] = {}
    for path, after in files.items():
        place = os.path.join(folder, path)
        if obstacle := _obstacle(folder, path):
            found[obstacle] = Difference(obstacle, "foreign", "", "")
        elif not os.path.lexists(place):
            found[path] = Difference(path, "missing", "", after)
        elif (data := read(place)) != after.encode("utf-8"):
            before = _text(data)
            kind: Kind = "changed" if not before or is_ours(before) else "foreign"
            found[path] = Difference(path, kind, before, after)
    for path, before in _ours(folder, files):
        found[path] = Difference(path, "extra", before, "")
    for name in _stages(folder):
        found[name] = Difference(name, "extra", "", "")
    return sorted(found.values(), key=lambda each: each.path)


def write(folder: StrPath, files: Mapping[str, str]) -> list[Difference]:
    """Make a folder hold the files of a package; returns what had to change.

    Every new content is on the disk before the first file is replaced, and runs on one
    folder wait for each other. Raises DiskError, with nothing changed, when a file of
    someone else is in the way or the disk is full. The package can be imported at any
    moment, as it was or as it will be.
    """
    from pathlib import Path

    folder = Path(folder)
    with _locked(folder):
        return _write(folder, files)


def compare_file(path: StrPath, text: str, mark: str) -> Difference | None:
    """How a file differs from what it should be, None where it does not.

    `mark` is what all files of its kind begin with, for arenagen writes them.
    """
    folder, name = os.path.split(path)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise DiskError(f"{folder}: is a file, where a folder is due")
    if _obstacle(folder, name):
        return Difference(name, "foreign", "", "")
    if not os.path.lexists(path):
        return Difference(name, "missing", "", text)
    data = read(path)
    if data == text.encode("utf-8"):
        return None
    ours = not data or data.startswith(mark.encode("utf-8"))
    return Difference(name, "changed" if ours else "foreign", _text(data), text)


def write_file(path: StrPath, text: str, mark: str) -> Difference | None:
    """Make a file hold `text`, which begins with `mark`; returns what had to change.

    One replace puts it in its place. Raises DiskError, with nothing changed, where a
    file without the mark is in the way, or anything that is no plain file.
    """
    from pathlib import Path

    assert text.startswith(mark)
    path = Path(path)
    with _locked(path.parent):
        found = compare_file(path, text, mark)
        if found is None:
            return None
        if found.kind == "foreign" and not found.after:
            raise DiskError(f"{path}: is not a plain file")
        if found.kind == "foreign":
            raise DiskError(
                f"{path}: not written by arenagen, and in the way; move it, or "
                "choose another file"
            )
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        try:
            _put(temporary, text)
            os.replace(temporary, path)
        except OSError as error:
            raise DiskError(f"{path}: cannot be written: {error.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)
        return found


def rewrite(path: StrPath, text: str) -> None:
    """Put another text into a file that somebody else wrote, who asked for it.

    A link keeps leading to its file, which keeps its mode. Raises DiskError.
    """
    import shutil
    from pathlib import Path

    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        _put(temporary, text)
        shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise DiskError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def create(folder: Path, files: Mapping[str, str]) -> None:
    """Write new files into a folder.

    Raises DiskError, with nothing written, when one of them is there or cannot be.
    """
    there = [name for name in files if os.path.lexists(folder / name)]
    if there:
        raise DiskError(f"already there, and left alone: {', '.join(there)}")
    written: list[Path] = []
    try:
        for name, text in files.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                written.append(folder / name)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        place = error.filename or folder
        raise DiskError(f"{place}: cannot be written: {error.strerror}") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        # Windows has no such lock; runs there do not wait for each other.
        fcntl = None  # type: ignore[assignment]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if not os.path.lexists(folder):
            place = error.filename or folder
            raise DiskError(f"{place}: cannot be made: {error.strerror}") from None
    if fcntl is None or not os.path.isdir(folder):
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise DiskError(f"{folder}: cannot be read: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(folder: Path, files: Mapping[str, str]) -> list[Difference]:
    found = compare(folder, files)
    foreign = [each.path for each in found if each.kind == "foreign"]
    if foreign:
        raise DiskError(
            f"{folder}: not written by arenagen, and in the way: {', '.join(foreign)}; "
            "move them, or choose another output folder"
        )
    new = [each.path for each in found if each.kind != "extra"]
    try:
        if new:
            for path in new:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
            _replace(folder, files, new)
        for each in found:
            if each.kind == "extra":
                _remove(folder, folder / each.path)
    except OSError as error:
        place = error.filename2 or error.filename or folder
        raise DiskError(f"{place}: cannot be written: {error.strerror}") from None
    return found


def _replace(folder: Path, files: Mapping[str, str], new: list[str]) -> None:
    """Put the new files of a package in their places, its entrance last."""
    # Takes a while to load, and a package that is as it should be needs none of it.
    import shutil

    others = [path for path in new if path != _ENTRANCE]
    # A single replace is whole by itself.
    guarded = len(new) > 1 and _ENTRANCE in files
    order = [*others, _ENTRANCE] if guarded or len(others) < len(new) else others
    stage = folder / f"{_STAGE_PREFIX}{os.urandom(4).hex()}"
    standing_in = False
    try:
        stage.mkdir()
        for path in order:
            _put(stage / "new" / path, files[path])
        if _ENTRANCE not in new and guarded:
            # It has not changed, and tools that look at times need not think so.
            shutil.copystat(folder / _ENTRANCE, stage / "new" / _ENTRANCE)
        if guarded:
            staged = {*order}
            for path, text in files.items():
                if path in staged:
                    _put_same(stage / "whole" / path, stage / "new" / path, text)
                else:
                    _put(stage / "whole" / path, text)
            text = stand_in(files[_ENTRANCE], f"{stage.name}/whole")
            _put(stage / "stand_in.py", text)
            os.replace(stage / "stand_in.py", folder / _ENTRANCE)
            standing_in = True
        for path in order:
            os.replace(stage / "new" / path, folder / path)
        standing_in = False
    finally:
        if not standing_in:
            shutil.rmtree(stage, ignore_errors=True)


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _put_same(path: Path, there: Path, text: str) -> None:
    """Put a text at a second place, by a link where the file system has links."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(there, path)
    except OSError:
        _put(path, text)


def keep(path: StrPath, text: str) -> None:
    """Put a text into a folder of caches, which version control is told to ignore.

    Where that is impossible, nothing is kept.
    """
    from pathlib import Path

    path = Path(path)
    ignore = path.parent / ".gitignore"
    try:
        path.parent.mkdir(exist_ok=True)
        for target, content in ((ignore, "*\n"), (path, text)):
            new = target.with_name(f"{target.name}.{os.urandom(4).hex()}")
            new.write_text(content, encoding="utf-8")
            os.replace(new, target)
    except OSError:
        return


def _obstacle(folder: StrPath, path: str) -> str | None:
    """What arenagen would not have put on the way to a file.

    A link, a folder in the place of the file, or a file in the place of a folder.
    """
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        place = "/".join(parts[:end])
        try:
            mode = os.lstat(os.path.join(folder, place)).st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DiskError(
                f"{os.path.join(folder, place)}: cannot be read: {error.strerror}"
            ) from None
        due = stat.S_ISREG if end == len(parts) else stat.S_ISDIR
        if not due(mode):
            return place
    return None


def others(folder: StrPath) -> list[str]:
    """The files below a folder that arenagen did not write, caches apart."""
    return sorted(
        path for path in _files(folder) if not _has_mark(os.path.join(folder, path))
    )


def _ours(folder: StrPath, apart: Container[str]) -> Iterator[tuple[str, str]]:
    """The files below a folder that arenagen wrote, and their texts; but for some."""
    for path in _files(folder):
        if path not in apart and _has_mark(os.path.join(folder, path)):
            yield path, _text(read(os.path.join(folder, path)))


def _files(folder: StrPath) -> Iterator[str]:
    """Paths inside a folder of its files, but for caches and packages of their own."""
    for here, folders, names in os.walk(folder):
        folders[:] = [
            each
            for each in folders
            if each != "__pycache__"
            and not _STAGE.fullmatch(each)
            and not _has_mark(os.path.join(here, each, _PACKAGE_MARKER))
        ]
        inside = os.path.relpath(here, folder)
        below = "" if inside == os.curdir else inside.replace(os.sep, "/") + "/"
        yield from (below + name for name in names)


def _stages(folder: StrPath) -> Iterator[str]:
    """The folders that killed runs left."""
    if not os.path.isdir(folder):
        return
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise DiskError(f"{folder}: cannot be read: {error.strerror}") from None
    for name in names:
        path = os.path.join(folder, name)
        if _STAGE.fullmatch(name) and os.path.isdir(path) and not os.path.islink(path):
            yield name


def _has_mark(path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return is_ours(_text(file.read(len(MARK))))
    except OSError as error:
        raise DiskError(f"{path}: cannot be read: {error.strerror}") from None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _lines(text: str) -> list[str]:
    # str.splitlines would break lines at characters that do not end one in a file.
    return list(io.StringIO(text, newline="\n"))


def _remove(folder: Path, path: Path) -> None:
    if path.is_dir():
        import shutil

        shutil.rmtree(path)
        return
    path.unlink()
    parent = path.parent
    while parent != folder and not any(parent.iterdir()):
        parent.rmdir()
        parent = parent.parent
