"""Fixtures that put the simulated CUDA driver under the real bindings.

A test module takes them in with `pytest_plugins = ["driver.plugin"]`. They skip where
the driver cannot be had. The process keeps the driver until it ends, so tests that need
a real device belong in another process.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.simulated import Driver, UnavailableError, build


def _has_bindings() -> bool:
    try:
        return importlib.util.find_spec("cuda.bindings") is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(scope="session")
def loaded_driver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Driver:
    """The driver, compiled once for all sessions and loaded once for this one."""
    if not _has_bindings():
        pytest.skip("cuda.bindings is not installed")
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    folder: Path = (
        cache.mkdir("simulated-driver") if cache else tmp_path_factory.getbasetemp()
    )
    try:
        return Driver(build(folder))
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def simulated_driver(loaded_driver: Driver) -> Iterator[Driver]:
    """The driver with one device of 80 GiB, fresh for this test."""
    loaded_driver.reset()
    yield loaded_driver
    loaded_driver.reset()
