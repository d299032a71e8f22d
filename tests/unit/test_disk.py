"""Comparing and writing an output folder: what changes, what never does.

Nothing here knows what a package holds: the files are short texts with our header.
A snapshot holds content, kind and time of everything below a folder, so that an equal
one means that nothing was written.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arenagen import disk
from arenagen.disk import Difference, DiskError
from arenagen.header import header

OLD = header("arena.yaml") + '\n"""What an earlier run emitted."""\n'
FOREIGN = '"""Written by hand."""\n'
FILES = {
    "__init__.py": header("arena.yaml") + '\n"""The package."""\n',
    "arena.py": header("arena.yaml") + "\nX = 'é'\nY = 2\n",
    "py.typed": header("arena.yaml"),
    "runtime/__init__.py": header("arena.yaml"),
    "runtime/host.py": header("arena.yaml") + "\nX = 1\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that holds the package."""
    path = tmp_path / "out"
    disk.write(path, FILES)
    return path


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Kind, time and content of everything below a folder; links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = b""
        if path.is_symlink():
            content = os.fsencode(os.readlink(path))
        elif path.is_file():
            content = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        found[name] = (stat.S_IFMT(status.st_mode), status.st_mtime_ns, content)
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def expected() -> dict[str, bytes]:
    return {path: text.encode() for path, text in FILES.items()}


def found_in(folder: Path) -> list[tuple[str, str]]:
    return [(each.path, each.kind) for each in disk.compare(folder, FILES)]


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


# Comparing.


def test_a_package_that_was_just_written_has_no_differences(folder: Path) -> None:
    assert disk.compare(folder, FILES) == []
    assert contents(folder) == expected()


def test_in_a_folder_that_is_not_there_every_file_is_missing(tmp_path: Path) -> None:
    assert found_in(tmp_path / "a/b") == [(path, "missing") for path in FILES]
    assert list(tmp_path.iterdir()) == []


def test_differences_come_in_order_of_path(folder: Path) -> None:
    (folder / "runtime/host.py").unlink()
    put(folder / "arena.py", OLD)
    put(folder / "old.py", OLD)
    assert found_in(folder) == [
        ("arena.py", "changed"),
        ("old.py", "extra"),
        ("runtime/host.py", "missing"),
    ]


def test_a_difference_holds_both_texts(folder: Path) -> None:
    put(folder / "arena.py", OLD)
    put(folder / "old.py", OLD)
    (folder / "py.typed").unlink()
    assert disk.compare(folder, FILES) == [
        Difference("arena.py", "changed", OLD, FILES["arena.py"]),
        Difference("old.py", "extra", OLD, ""),
        Difference("py.typed", "missing", "", FILES["py.typed"]),
    ]


def test_comparing_writes_nothing(folder: Path) -> None:
    put(folder / "arena.py", OLD)
    put(folder / "old.py", OLD)
    before = snapshot(folder)
    disk.compare(folder, FILES)
    assert snapshot(folder) == before


HEAD = len(header("arena.yaml"))


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda data: data[:-1], id="last byte removed"),
        pytest.param(lambda data: data + b"\n", id="byte appended"),
        pytest.param(lambda data: data + b"\xff", id="byte that is not UTF-8 appended"),
        pytest.param(lambda data: data.replace(b"2", b"3"), id="digit"),
        pytest.param(lambda data: data.replace(b"\xc3\xa9", b"\xe9"), id="Latin-1"),
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda data: data.replace(b"\n", b"\r"), id="CR"),
        pytest.param(lambda data: data[:HEAD], id="header alone"),
        pytest.param(lambda data: b"", id="empty"),
    ],
)
def test_an_edit_is_found_and_undone(
    folder: Path, edit: Callable[[bytes], bytes]
) -> None:
    path = folder / "arena.py"
    path.write_bytes(edit(path.read_bytes()))
    assert found_in(folder) == [("arena.py", "changed")]
    assert [each.path for each in disk.write(folder, FILES)] == ["arena.py"]
    assert contents(folder) == expected()


def test_every_single_byte_counts(folder: Path) -> None:
    path = folder / "runtime/host.py"
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert [each.path for each in disk.compare(folder, FILES)] == [
            "runtime/host.py"
        ], place


def test_a_byte_is_not_the_same_as_the_escape_that_spells_it(tmp_path: Path) -> None:
    files = {"a.py": header("arena.yaml") + "# \\xff\n"}
    disk.write(tmp_path, files)
    (tmp_path / "a.py").write_bytes(header("arena.yaml").encode() + b"# \xff\n")
    assert [each.kind for each in disk.compare(tmp_path, files)] == ["changed"]


# Diffs.


def test_a_diff_goes_from_the_disk_to_the_schema(folder: Path) -> None:
    put(folder / "arena.py", FILES["arena.py"].replace("2", "3"))
    (difference,) = disk.compare(folder, FILES)
    assert difference.diff() == (
        "--- arena.py (on disk)\n"
        "+++ arena.py (from the schema)\n"
        "@@ -1,4 +1,4 @@\n"
        " # Generated by arenagen from arena.yaml. Do not edit.\n"
        " \n"
        " X = 'é'\n"
        "-Y = 3\n"
        "+Y = 2\n"
    )


def test_a_diff_tells_of_a_missing_last_newline(folder: Path) -> None:
    put(folder / "arena.py", FILES["arena.py"][:-1])
    (difference,) = disk.compare(folder, FILES)
    assert difference.diff().endswith("-Y = 2\n\\ No newline at end of file\n+Y = 2\n")


def test_a_diff_shows_the_ends_of_crlf_lines(folder: Path) -> None:
    put(folder / "arena.py", FILES["arena.py"].replace("\n", "\r\n"))
    (difference,) = disk.compare(folder, FILES)
    assert "-Y = 2\\x0d\n" in difference.diff()
    assert "\r" not in difference.diff()


def test_a_diff_spells_out_what_a_terminal_would_obey(folder: Path) -> None:
    path = folder / "arena.py"
    path.write_bytes(path.read_bytes() + b"\x1b[2J\x00\x0c\xc2\x9b\xff\ty\n")
    (difference,) = disk.compare(folder, FILES)
    assert difference.diff().endswith("-\\x1b[2J\\x00\\x0c\\x9b\\xff\ty\n")


def test_a_diff_breaks_lines_at_newlines_only(folder: Path) -> None:
    put(folder / "arena.py", FILES["arena.py"] + "# a\u2028b\n")
    (difference,) = disk.compare(folder, FILES)
    assert "-# a\u2028b\n" in difference.diff()
    assert "No newline" not in difference.diff()


# Writing.


def test_writing_returns_what_had_to_change(folder: Path) -> None:
    put(folder / "arena.py", OLD)
    put(folder / "old.py", OLD)
    (folder / "py.typed").unlink()
    assert [(each.path, each.kind) for each in disk.write(folder, FILES)] == [
        ("arena.py", "changed"),
        ("old.py", "extra"),
        ("py.typed", "missing"),
    ]
    assert contents(folder) == expected()


def test_folders_above_the_output_are_made(tmp_path: Path) -> None:
    disk.write(tmp_path / "a/b/c", FILES)
    assert contents(tmp_path / "a/b/c") == expected()


@pytest.mark.parametrize(
    "name", ["out", "an output", "ö/ü", "a/../b", "./c/", ".hidden", "-o", "x" * 255]
)
def test_the_folder_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    for folder in (Path(name), tmp_path / name):
        disk.write(folder, FILES)
        assert contents(tmp_path / name) == expected()
        assert disk.compare(folder, FILES) == []


def test_the_working_folder_can_be_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "deep/old.py", OLD)
    disk.write(Path(), FILES)
    assert contents(tmp_path) == expected()
    assert not (tmp_path / "deep").exists()


def test_nothing_is_written_when_nothing_changed(folder: Path) -> None:
    before = snapshot(folder)
    inodes = [(folder / path).stat().st_ino for path in FILES]
    assert disk.write(folder, FILES) == []
    assert snapshot(folder) == before
    assert [(folder / path).stat().st_ino for path in FILES] == inodes


def test_only_what_changed_is_written(folder: Path) -> None:
    put(folder / "arena.py", OLD)
    before = snapshot(folder)
    disk.write(folder, FILES)
    after = snapshot(folder)
    assert [name for name in after if after[name] != before[name]] == ["arena.py"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_files_take_the_mode_that_the_umask_leaves(
    tmp_path: Path, mask: int, mode: int
) -> None:
    before = os.umask(mask)
    try:
        disk.write(tmp_path / "out", FILES)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    for path in FILES:
        assert stat.S_IMODE((tmp_path / "out" / path).stat().st_mode) == mode


def test_lines_end_the_same_on_every_system(folder: Path) -> None:
    assert b"\r" not in b"".join(contents(folder).values())


def test_the_other_name_of_a_hard_linked_file_keeps_its_content(
    folder: Path, tmp_path: Path
) -> None:
    put(folder / "arena.py", OLD)
    os.link(folder / "arena.py", tmp_path / "copy.py")
    disk.write(folder, FILES)
    assert contents(folder) == expected()
    assert (tmp_path / "copy.py").read_text() == OLD


# Files that are emitted no longer.


def test_an_orphan_goes_and_its_empty_folders_with_it(folder: Path) -> None:
    put(folder / "old.py", OLD)
    put(folder / "deep/er/old.py", OLD)
    put(folder / "deep/old.py", OLD)
    assert [each.path for each in disk.write(folder, FILES)] == [
        "deep/er/old.py",
        "deep/old.py",
        "old.py",
    ]
    assert contents(folder) == expected()
    assert not (folder / "deep").exists()


def test_a_folder_that_holds_something_else_stays(folder: Path) -> None:
    put(folder / "deep/er/old.py", OLD)
    put(folder / "deep/notes.md", "Mine.\n")
    disk.write(folder, FILES)
    assert contents(folder) == expected() | {"deep/notes.md": b"Mine.\n"}
    assert not (folder / "deep/er").exists()


def test_an_output_folder_without_files_stays(tmp_path: Path) -> None:
    put(tmp_path / "out/old.py", OLD)
    disk.write(tmp_path / "out", {})
    assert list(tmp_path.rglob("*")) == [tmp_path / "out"]


@pytest.mark.parametrize(
    "content",
    [FOREIGN, "", " " + OLD, "\ufeff" + OLD, "# Generated by arenagen\n", "#"],
    ids=["code", "empty", "indented", "BOM", "half a header", "short"],
)
def test_hand_written_files_are_never_touched(folder: Path, content: str) -> None:
    put(folder / "mine.py", content)
    put(folder / "runtime/mine.py", content)
    put(folder / "own/mine.py", content)
    before = snapshot(folder)
    put(folder / "arena.py", OLD)
    put(folder / "old.py", OLD)
    disk.write(folder, FILES)
    after = snapshot(folder)
    for name in ("mine.py", "runtime/mine.py", "own/mine.py"):
        assert after[name] == before[name]
    assert disk.compare(folder, FILES) == []


def test_files_that_are_not_text_are_never_touched(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(bytes(range(256)))
    before = snapshot(folder)
    assert disk.write(folder, FILES) == []
    assert snapshot(folder) == before


def test_caches_of_the_interpreter_are_not_looked_into(folder: Path) -> None:
    put(folder / "__pycache__/arena.py", OLD)
    assert disk.compare(folder, FILES) == []


def test_another_package_below_the_folder_is_not_an_orphan(folder: Path) -> None:
    disk.write(folder / "vendored/other_arena", FILES)
    put(folder / "vendored/old.py", OLD)
    before = snapshot(folder / "vendored/other_arena")
    assert found_in(folder) == [("vendored/old.py", "extra")]
    disk.write(folder, FILES)
    assert snapshot(folder / "vendored/other_arena") == before


def test_a_package_can_move_into_a_folder_that_holds_packages(folder: Path) -> None:
    above = folder.parent
    before = snapshot(folder)
    disk.write(above, FILES)
    assert snapshot(folder) == before
    assert disk.compare(above, FILES) == []


# Something of somebody else in the way.


def in_the_way_file(folder: Path, outside: Path) -> str:
    put(folder / "arena.py", FOREIGN)
    return "arena.py"


def in_the_way_same_text_after_a_mark(folder: Path, outside: Path) -> str:
    put(folder / "arena.py", "\ufeff" + FILES["arena.py"])
    return "arena.py"


def in_the_way_folder(folder: Path, outside: Path) -> str:
    (folder / "arena.py").unlink()
    (folder / "arena.py").mkdir()
    return "arena.py"


def in_the_way_file_for_a_folder(folder: Path, outside: Path) -> str:
    clear(folder / "runtime")
    put(folder / "runtime", FOREIGN)
    return "runtime"


def in_the_way_pipe(folder: Path, outside: Path) -> str:
    (folder / "arena.py").unlink()
    os.mkfifo(folder / "arena.py")
    return "arena.py"


def in_the_way_link_to_a_file(folder: Path, outside: Path) -> str:
    (folder / "arena.py").unlink()
    (folder / "arena.py").symlink_to(put(outside / "theirs.py", OLD))
    return "arena.py"


def in_the_way_link_to_the_right_content(folder: Path, outside: Path) -> str:
    (folder / "arena.py").unlink()
    (folder / "arena.py").symlink_to(put(outside / "theirs.py", FILES["arena.py"]))
    return "arena.py"


def in_the_way_link_to_nothing(folder: Path, outside: Path) -> str:
    (folder / "arena.py").unlink()
    (folder / "arena.py").symlink_to(outside / "nothing.py")
    return "arena.py"


def in_the_way_link_to_itself(folder: Path, outside: Path) -> str:
    (folder / "arena.py").unlink()
    (folder / "arena.py").symlink_to("arena.py")
    return "arena.py"


def in_the_way_link_to_a_folder(folder: Path, outside: Path) -> str:
    clear(folder / "runtime")
    put(outside / "runtime/host.py", OLD)
    put(outside / "runtime/old.py", OLD)
    (folder / "runtime").symlink_to(outside / "runtime")
    return "runtime"


def in_the_way_link_to_a_folder_inside(folder: Path, outside: Path) -> str:
    os.rename(folder / "runtime", folder / "real")
    (folder / "runtime").symlink_to("real")
    return "runtime"


def clear(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.mark.parametrize(
    "obstruct",
    [
        in_the_way_file,
        in_the_way_same_text_after_a_mark,
        in_the_way_folder,
        in_the_way_file_for_a_folder,
        in_the_way_pipe,
        in_the_way_link_to_a_file,
        in_the_way_link_to_the_right_content,
        in_the_way_link_to_nothing,
        in_the_way_link_to_itself,
        in_the_way_link_to_a_folder,
        in_the_way_link_to_a_folder_inside,
    ],
)
def test_what_is_in_the_way_is_named_and_nothing_changes(
    folder: Path, tmp_path: Path, obstruct: Callable[[Path, Path], str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    name = obstruct(folder, outside)
    put(folder / "__init__.py", OLD)
    put(folder / "old.py", OLD)
    before = snapshot(tmp_path)
    assert (name, "foreign") in found_in(folder)
    with pytest.raises(DiskError) as raised:
        disk.write(folder, FILES)
    assert str(raised.value) == (
        f"{folder}: not written by arenagen, and in the way: {name}; move them, or "
        "choose another output folder"
    )
    assert snapshot(tmp_path) == before


def test_everything_in_the_way_is_named(folder: Path, tmp_path: Path) -> None:
    put(folder / "arena.py", FOREIGN)
    put(folder / "py.typed", FOREIGN)
    in_the_way_link_to_a_folder(folder, tmp_path / "outside")
    with pytest.raises(DiskError, match=r"in the way: arena\.py, py\.typed, runtime;"):
        disk.write(folder, FILES)


def test_a_link_that_is_not_in_the_way_stays(folder: Path, tmp_path: Path) -> None:
    theirs = put(tmp_path / "outside/old.py", OLD)
    (folder / "linked.py").symlink_to(theirs)
    (folder / "linked").symlink_to(tmp_path / "outside")
    (folder / "up").symlink_to("..")
    before = snapshot(tmp_path)
    assert disk.write(folder, FILES) == []
    assert snapshot(tmp_path) == before


def test_an_output_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    disk.write(tmp_path / "out", FILES)
    assert (tmp_path / "out").is_symlink()
    assert contents(tmp_path / "real") == expected()
    assert disk.compare(tmp_path / "out", FILES) == []


# Outputs and inputs that cannot be.


def test_an_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "out", FOREIGN)
    for act in (disk.compare, disk.write):
        with pytest.raises(DiskError) as raised:
            act(path, FILES)
        assert str(raised.value) == f"{path}: is a file, where a folder is due"
    assert path.read_text() == FOREIGN


def test_an_output_below_a_file_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "file", FOREIGN)
    for act in (disk.compare, disk.write):
        with pytest.raises(DiskError, match="Not a directory"):
            act(tmp_path / "file/out", FILES)
    assert (tmp_path / "file").read_text() == FOREIGN


def test_an_output_that_links_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("nothing")
    with pytest.raises(DiskError, match="is a file, where a folder is due"):
        disk.write(tmp_path / "out", FILES)
    assert not (tmp_path / "nothing").exists()


def test_reading_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x00\r\n\xff")
    assert disk.read(tmp_path / "file") == b"\x00\r\n\xff"


def refuse(
    monkeypatch: pytest.MonkeyPatch, place: Any, method: str, path: Path
) -> None:
    """Let a method fail for one path as it does for files of somebody else."""
    real = getattr(place, method)

    def guarded(given: Path, *arguments: Any, **options: Any) -> Any:
        if Path(given) == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(given))
        return real(given, *arguments, **options)

    monkeypatch.setattr(place, method, guarded)


def test_what_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "file", "x")
    put(tmp_path / "secret", "x")
    (tmp_path / "loop").symlink_to("loop")
    refuse(monkeypatch, builtins, "open", tmp_path / "secret")
    for name, why in {
        ".": "is a folder, not a file",
        "nothing": "no such file",
        "file/nothing": "cannot be read: Not a directory",
        "loop": "cannot be read: Too many levels of symbolic links",
        "secret": "cannot be read: Permission denied",
        "x" * 300: "cannot be read: File name too long",
    }.items():
        with pytest.raises(DiskError) as raised:
            disk.read(tmp_path / name)
        assert str(raised.value) == f"{tmp_path / name}: {why}"


@pytest.mark.parametrize("path", ["arena.py", "old.py"])
def test_a_file_that_cannot_be_read_stops_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    put(folder / "old.py", OLD)
    put(folder / "py.typed", OLD)
    before = snapshot(folder)
    with monkeypatch.context() as patch:
        refuse(patch, builtins, "open", folder / path)
        for act in (disk.compare, disk.write):
            with pytest.raises(DiskError) as raised:
                act(folder, FILES)
            assert str(raised.value) == (
                f"{folder / path}: cannot be read: Permission denied"
            )
    assert snapshot(folder) == before


def test_a_folder_that_cannot_be_searched_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        refuse(patch, os, "lstat", folder / "runtime")
        with pytest.raises(DiskError) as raised:
            disk.compare(folder, FILES)
    assert str(raised.value) == (
        f"{folder / 'runtime'}: cannot be read: Permission denied"
    )


@pytest.mark.parametrize("method", ["open", "listdir"])
def test_a_package_that_cannot_be_listed_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    before = snapshot(folder)
    with monkeypatch.context() as patch:
        refuse(patch, os, method, folder)
        with pytest.raises(DiskError) as raised:
            disk.write(folder, FILES)
        assert str(raised.value) == f"{folder}: cannot be read: Permission denied"
    assert snapshot(folder) == before


# Failing half way: every file is whole, the package can be imported, the next run
# heals.

NEW = {path: text + "# new\n" for path, text in FILES.items()} | {
    "more/new.py": header("arena.yaml")
}


def failing(real: Callable[..., Any], at: int, error: BaseException) -> Any:
    """The function, but for its call number `at`."""
    calls: Iterator[int] = iter(range(10**6))

    def act(*arguments: Any, **options: Any) -> Any:
        if next(calls) == at:
            raise error
        return real(*arguments, **options)

    return act


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def stages(folder: Path) -> list[Path]:
    """What a run left that did not come to its end."""
    return list(folder.glob(".arenagen-*"))


def assert_whole(folder: Path) -> None:
    """Every file is an old or a new one, the stand-in and what it imports apart."""
    for path, data in contents(folder).items():
        if not path.startswith(".arenagen-") and b"being written" not in data:
            assert data.decode() in (FILES.get(path), NEW.get(path), OLD), path


def no_links(*arguments: Any, **options: Any) -> None:
    raise PermissionError(1, "Operation not permitted")


def assert_new(folder: Path) -> None:
    assert contents(folder) == {path: text.encode() for path, text in NEW.items()}
    assert stages(folder) == []


# One for each file, one for the stand-in; and one for each of the whole package where
# it cannot be made of links.
@pytest.mark.parametrize(
    ("at", "links"),
    [
        *((at, True) for at in range(len(NEW) + 1)),
        *((at, False) for at in range(2 * len(NEW) + 1)),
    ],
)
def test_a_full_disk_while_staging_changes_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at: int, links: bool
) -> None:
    put(folder / "old.py", OLD)
    before = contents(folder)
    with monkeypatch.context() as patch:
        if not links:
            patch.setattr(os, "link", no_links)
        patch.setattr(os, "fsync", failing(os.fsync, at, no_space()))
        with pytest.raises(DiskError) as raised:
            disk.write(folder, NEW)
    assert str(raised.value) == (
        f"{folder}: cannot be written: No space left on device"
    )
    assert contents(folder) == before
    disk.write(folder, NEW)
    assert_new(folder)


@pytest.mark.parametrize("at", range(len(NEW) + 1))
def test_a_failing_replace_leaves_every_file_old_or_new(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    put(folder / "old.py", OLD)
    with monkeypatch.context() as patch:
        error = OSError(errno.EIO, "Input/output error", "a", None, "b")
        patch.setattr(os, "replace", failing(os.replace, at, error))
        with pytest.raises(DiskError, match="b: cannot be written: Input/output error"):
            disk.write(folder, NEW)
    assert_whole(folder)
    names = [*sorted(NEW.keys() - {"__init__.py"}), "__init__.py"]
    left = {path: text.encode() for path, text in FILES.items()} | {
        "old.py": OLD.encode()
    }
    left |= {name: NEW[name].encode() for name in names[: max(0, at - 1)]}
    found = {
        path: data
        for path, data in contents(folder).items()
        if not path.startswith(".arenagen-")
    }
    if at:
        # The stand-in, and the package that it imports.
        (stage,) = stages(folder)
        assert f"{stage.name}/whole".encode() in found.pop("__init__.py")
        assert contents(stage / "whole") == {
            path: text.encode() for path, text in NEW.items()
        }
        left.pop("__init__.py")
    assert found == left
    disk.write(folder, NEW)
    assert_new(folder)


def test_an_orphan_that_cannot_be_removed_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "old.py", OLD)
    with monkeypatch.context() as patch:
        refuse(patch, Path, "unlink", folder / "old.py")
        with pytest.raises(DiskError) as raised:
            disk.write(folder, NEW)
    assert str(raised.value) == (
        f"{folder / 'old.py'}: cannot be written: Permission denied"
    )
    assert_whole(folder)
    disk.write(folder, NEW)
    assert contents(folder) == {path: text.encode() for path, text in NEW.items()}


def test_a_folder_that_takes_no_files_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)
    with monkeypatch.context() as patch:
        refuse(patch, Path, "mkdir", folder / "more")
        with pytest.raises(DiskError) as raised:
            disk.write(folder, NEW)
    assert str(raised.value) == (
        f"{folder / 'more'}: cannot be written: Permission denied"
    )
    assert contents(folder) == before


@pytest.mark.parametrize("at", range(len(NEW) + 1))
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupt_leaves_every_file_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, at: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, step, failing(getattr(os, step), at, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            disk.write(folder, NEW)
    assert_whole(folder)
    assert len(stages(folder)) == (1 if step == "replace" and at else 0)
    disk.write(folder, NEW)
    assert_new(folder)


def test_what_a_killed_run_left_is_cleaned_up(folder: Path) -> None:
    put(folder / ".arena.py.k3x9.tmp", FILES["arena.py"])
    put(folder / "runtime/.host.py.k3x9.tmp", FILES["runtime/host.py"])
    put(folder / ".arenagen-0123abcd/whole/arena.py", FILES["arena.py"])
    put(folder / ".arenagen-0123abcd/new/arena.py", "")
    put(folder / ".arenagen-0123abcd/whole/__pycache__/arena.pyc", "")
    assert (".arenagen-0123abcd", "extra") in found_in(folder)
    disk.write(folder, FILES)
    assert contents(folder) == expected()
    assert stages(folder) == []


def test_what_is_named_like_a_stage_and_is_none_stays(
    folder: Path, tmp_path: Path
) -> None:
    put(tmp_path / "outside/theirs.py", FOREIGN)
    (folder / ".arenagen-0123abcd").symlink_to(tmp_path / "outside")
    put(folder / ".arenagen-notes", FOREIGN)
    put(folder / ".arenagen-0123abcde/notes", FOREIGN)
    before = snapshot(tmp_path)
    assert disk.write(folder, FILES) == []
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("links", [True, False])
def test_every_content_is_on_the_disk_before_the_first_file_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    steps: list[str] = []
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    for step in ("fsync", "replace"):
        real = getattr(os, step)

        def noted(
            *arguments: Any, real: Any = real, step: str = step, **options: Any
        ) -> Any:
            steps.append(step)
            return real(*arguments, **options)

        monkeypatch.setattr(os, step, noted)
    disk.write(folder, NEW)
    copies = 0 if links else len(NEW)
    puts = len(NEW) + copies + 1
    assert steps == ["fsync"] * puts + ["replace"] * (len(NEW) + 1)


def test_the_entrance_keeps_its_time_when_other_files_change(folder: Path) -> None:
    put(folder / "arena.py", OLD)
    put(folder / "runtime/host.py", OLD)
    before = snapshot(folder)
    disk.write(folder, FILES)
    after = snapshot(folder)
    changed = [
        name
        for name in after
        if after[name] != before[name] and (folder / name).is_file()
    ]
    assert changed == ["arena.py", "runtime/host.py"]


# Killed: whatever a run was about to do, the package is the old one or the new one.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_run_that_is_killed_leaves_a_package_that_can_be_imported(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).parents[1] / "killed_runs.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # Every file is read, staged twice, replaced, and the stages are removed.
    assert int(done.stdout) > 60
