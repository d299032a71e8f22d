"""Files of a git revision, where a file of the disk would do."""

from __future__ import annotations

import os
import posixpath
import subprocess

from .disk import MAX_BYTES, DiskError


class GitError(DiskError):
    """A file that git does not give."""


def read(revision: str, path: str) -> bytes:
    """The bytes of a file of a revision; the path counts from the top of the tree.

    Raises GitError without git, a repository, the revision or the file.
    """
    name = f"{revision}:{posixpath.normpath(path)}"
    data = _git(name, "cat-file", "blob", name)
    if len(data) > MAX_BYTES:
        raise GitError(f"{name}: {len(data)} bytes; at most {MAX_BYTES} are read")
    return data


def from_top(path: str) -> str:
    """A path that begins with a dot, as git reads it, counted from the top instead."""
    if not path.startswith(("./", "../")):
        return path
    prefix = _git(path, "rev-parse", "--show-prefix").decode("utf-8", "replace")
    return posixpath.normpath(posixpath.join(prefix.strip(), path))


def _git(what: str, *arguments: str) -> bytes:
    if what.startswith("-"):
        raise GitError(f"{what}: no revision begins with a `-`")
    if "\0" in what:
        raise GitError("a NUL byte in the name of a revision")
    try:
        done = subprocess.run(
            ["git", *arguments],
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except FileNotFoundError:
        raise GitError(f"{what}: git is not installed") from None
    except OSError as error:
        raise GitError(f"{what}: git does not run: {error.strerror}") from None
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise GitError(f"{what}: {told[0].removeprefix('fatal: ')}")
    return done.stdout
