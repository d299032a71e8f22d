"""Continuous integration: where it runs, what an earlier run left is not trusted."""

from __future__ import annotations

import os


def in_ci() -> bool:
    """Whether this is a run of continuous integration, which trusts no earlier one."""
    return os.environ.get("CI", "").lower() in ("1", "true")
