"""Mutated schemas, family tables and configs, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))]
)
@pytest.mark.parametrize(
    ("kind", "inputs"), [("schemas", 600), ("tables", 600), ("configs", 2000)]
)
def test_mutated_inputs_are_refused_or_hold(
    kind: str, inputs: int, seed: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, FUZZ, kind, f"--inputs={inputs}", f"--seed={seed}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Neither kind of input is all that is tried.
    summary = done.stdout.splitlines()[-1]
    assert "'refused': " in summary
    assert any(f"'{word}': " in summary for word in ("emitted", "loaded", "sized"))
