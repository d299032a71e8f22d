"""Kill `disk.write` before each of its steps; the package must stay importable.

Run as a script, in an empty folder: it forks, which a process with threads cannot do.
Prints how many runs it killed. Steps are the audit events of the interpreter, which it
raises before it opens, renames, makes or removes anything.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from arenagen import disk
from arenagen.header import header

PACK = Path("pack")
MINE = {"mine.py": b"MINE = 1\n", "runtime/mine.txt": b"Mine."}


def package(version: int) -> dict[str, str]:
    """A package whose modules all tell their version, and hold together."""
    modules = ("arena.py", "sizes.py", "runtime/host.py")
    files = dict.fromkeys(modules, f"VERSION = {version}\n")
    own = "old" if version == 1 else "new"
    files |= {f"{own}/__init__.py": "", "runtime/__init__.py": "", "py.typed": ""}
    files["__init__.py"] = f"""
from . import arena, {own}, sizes
from .arena import VERSION
from .runtime import host

__all__ = ["VERSION", "arena", "host", "{own}", "sizes"]
assert {version} == arena.VERSION == sizes.VERSION == host.VERSION
"""
    return {path: header("a.yaml") + text for path, text in files.items()}


def child(act: Callable[[], None]) -> int:
    """How a process ends that does this alone."""
    process = os.fork()
    if process == 0:
        try:
            act()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(process, 0)[1]


def killed_at(step: int, version: int) -> Callable[[], None]:
    """A run that is killed when it is about to take the step."""
    calls = iter(range(step))

    def hook(event: str, _: object) -> None:
        touches = event == "open" or event.startswith(("os.", "shutil."))
        if touches and event != "os.kill" and next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def act() -> None:
        sys.addaudithook(hook)
        disk.write(PACK, package(version))

    return act


def imported() -> None:
    import pack.mine

    assert pack.VERSION in (1, 2)


def assert_whole(version: int) -> None:
    wanted = {path: text.encode() for path, text in package(version).items()}
    found = {
        path.relative_to(PACK).as_posix(): path.read_bytes()
        for path in PACK.rglob("*")
        if path.is_file()
    }
    assert found == wanted | MINE, (version, found.keys() ^ (wanted | MINE).keys())


def main() -> None:
    sys.dont_write_bytecode = True
    sys.path.insert(0, ".")
    step = 0
    while True:
        disk.write(PACK, package(1))
        for name, data in MINE.items():
            (PACK / name).write_bytes(data)
        assert_whole(1)
        status = child(killed_at(step, 2))
        assert child(imported) == 0, step
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        # The run that would heal it is killed too; the one after that heals both.
        then = 1 + step % 2
        child(killed_at(step // 2, then))
        assert child(imported) == 0, step
        disk.write(PACK, package(then))
        assert_whole(then)
        step += 1
    assert_whole(2)
    print(step)


if __name__ == "__main__":
    main()
