"""The bar of long runs: on a terminal, behind the first second, and nowhere else."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from arenagen.commands.progress import Bar

ROOT = Path(__file__).resolve().parents[2]
# The command line, with the bar behind so many seconds; tells whether rich was loaded.
CODE = """
import atexit, sys
from arenagen.commands import progress
atexit.register(lambda: print("rich" in sys.modules))
progress._SECONDS_WITHOUT_BAR = float(sys.argv.pop(1))
from arenagen.cli import cli
cli()
"""


def run(command: str, folder: Path, seconds: float, terminal: bool) -> tuple[str, str]:
    """What a command prints, and what it shows on stderr."""
    reads, writes = os.openpty() if terminal else os.pipe()
    schema = ROOT / "schema/metrale.yaml"
    arguments = (str(seconds), command, str(schema), "-o", str(folder / "out"))
    with (folder / "printed").open("w") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, *arguments],
            stdout=stdout,
            stderr=writes,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        )
    os.close(writes)
    shown = b""
    # Linux tells by an error that the other end of a terminal is closed.
    with suppress(OSError):
        while data := os.read(reads, 1 << 16):
            shown += data
    os.close(reads)
    assert process.wait() == 0
    return (folder / "printed").read_text(), shown.decode()


@pytest.mark.parametrize("command", ["generate", "check"])
def test_long_runs_show_their_stages(command: str, tmp_path: Path) -> None:
    _, nothing = run("generate", tmp_path, seconds=1e6, terminal=True)
    printed, shown = run(command, tmp_path, seconds=-1, terminal=True)
    for stage in ("reading", "rendering"):
        assert f"metrale.yaml: {stage}" in shown
    assert nothing == ""
    # What is printed is not mixed with the bar.
    assert "metrale.yaml: " not in printed
    count = sum(each.is_file() for each in (tmp_path / "out").rglob("*"))
    assert count > 30
    assert f"out: {count} files" in printed


def test_short_runs_show_nothing_and_load_nothing_for_it(tmp_path: Path) -> None:
    printed, shown = run("generate", tmp_path, seconds=1e6, terminal=True)
    assert shown == ""
    assert printed.endswith("False\n")


def test_long_runs_show_nothing_where_there_is_no_terminal(tmp_path: Path) -> None:
    printed, shown = run("generate", tmp_path, seconds=-1, terminal=False)
    assert shown == ""
    assert printed.endswith("False\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Timer:
    """Strikes when a test says so."""

    made: list[Timer]

    def __init__(self, seconds: float, strike: Callable[[], None]) -> None:
        self.seconds = seconds
        self.strike = strike
        self.cancelled = False
        self.made.append(self)

    def start(self) -> None:
        pass

    def join(self) -> None:
        pass

    def cancel(self) -> None:
        self.cancelled = True


def new_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of stderr, and timers that strike when told to."""
    terminal = Terminal()
    Timer.made = []
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(threading, "Timer", Timer)
    return terminal


def test_a_stage_that_lasts_is_shown_in_its_midst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = new_terminal(monkeypatch)
    with Bar() as bar:
        bar.stage("reading")
        (timer,) = Timer.made
        assert 0.9 < timer.seconds <= 1
        assert terminal.getvalue() == ""
        timer.strike()
        assert "reading" in terminal.getvalue()
        bar.stage("rendering", 3, 4)
    assert timer.cancelled
    assert "75%" in terminal.getvalue()


def test_the_seconds_of_several_blocks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = new_terminal(monkeypatch)
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    bar = Bar()
    with bar:
        now += 0.75
    with bar:
        now += 0.25
    assert [timer.seconds for timer in Timer.made] == [1.0, 0.25]
    assert terminal.getvalue() == ""
    with bar:
        bar.stage("writing")
    assert len(Timer.made) == 2
    assert "writing" in terminal.getvalue()
