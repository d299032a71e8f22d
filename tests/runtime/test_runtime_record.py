"""Records: fields that are set once, and what else a value is expected to do."""

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

from metrale_arena import Levers, ModelConfig, Target
from metrale_arena.runtime.errors import ConfigError
from metrale_arena.runtime.record import Record


class Box(Record):
    """A record of a test."""

    width: int
    height: int

    def __init__(self, *, width: int = 1, height: int = 2) -> None:
        self._hold(width=width, height=height)


class Crate(Box):
    """Another, with the same fields."""


def test_a_record_is_its_fields() -> None:
    box = Box(height=3)
    assert (box.width, box.height) == (1, 3)
    assert repr(box) == "Box(width=1, height=3)"
    assert box == Box(width=1, height=3) != Box()
    assert box != Crate(height=3)
    assert box != (1, 3)
    assert hash(box) == hash(Box(height=3)) != hash(Box())
    assert {box: "found"}[Box(height=3)] == "found"


def test_a_field_is_neither_set_nor_deleted_nor_added() -> None:
    box: Any = Box()
    text = r"^Box\.width: a record never changes"
    with pytest.raises(AttributeError, match=text + "; `_replace` gives another one$"):
        box.width = 5
    with pytest.raises(AttributeError, match=text + "$"):
        del box.width
    with pytest.raises(AttributeError, match=r"^Box\.depth: a record never changes;"):
        box.depth = 5
    assert box == Box()


def test_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="depth"):
        Box(depth=5)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "twin_of",
    [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize(
    "record",
    [
        ModelConfig(hidden_size=64, layer_types=("full_attention",)),
        Levers(fp8_rowwise=True),
        Target(sm_count=7),
    ],
    ids=lambda record: type(record).__name__,
)
def test_twins_are_equal(record: Record, twin_of: Callable[[Record], Any]) -> None:
    twin = twin_of(record)
    assert type(twin) is type(record)
    assert twin == record
    assert hash(twin) == hash(record)
    with pytest.raises(AttributeError, match="never changes"):
        twin.hidden_size = 1


def test_other_values_are_checked_as_the_first_ones_were() -> None:
    config = ModelConfig(hidden_size=64, vocab_size=9)
    assert config._replace(vocab_size=10) == ModelConfig(hidden_size=64, vocab_size=10)
    assert config.vocab_size == 9
    with pytest.raises(ConfigError, match=r"^vocab_size is -1; at least 0$"):
        config._replace(vocab_size=-1)
    if sys.version_info >= (3, 13):
        assert copy.replace(config, vocab_size=3).vocab_size == 3


def test_as_dict_is_the_callers_own() -> None:
    target = Target(sm_count=7)
    target._asdict()["sm_count"] = 8
    assert target._asdict() == {"sm_count": 7}
