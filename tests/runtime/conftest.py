"""Backends that a test of the emitted package runs on, each in turn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from support import Backend, DriverBackend, MakeBackend, current_context

from metrale_arena import HostBackend


@pytest.fixture(params=["host", "driver"])
def make_gpu(request: pytest.FixtureRequest) -> Iterator[MakeBackend]:
    """Makes a backend of each kind in turn; only the last one made may be used."""
    if request.param == "host":
        yield HostBackend
        return
    yield partial(DriverBackend, request.getfixturevalue("simulated_driver"))
    assert current_context() == 0


@pytest.fixture
def gpu(make_gpu: MakeBackend) -> Backend:
    return make_gpu(1 << 40)
