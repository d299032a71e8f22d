"""Records: made, compared, hashed, shown, matched, replaced, and copied."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from arenagen.record import field, record, replace


@record
class Point:
    """A point of a plane."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        """Of both."""
        return self.x + self.y


@record
class Other:
    x: int
    y: int = 2


@record
class Named:
    name: str
    place: str = field(compare=False)
    notes: tuple[str, ...] = field(default=("none",), compare=False)


@record
class Whole:
    place: str = field(compare=False)


@record
class Empty:
    """Nothing."""


def test_fields_are_given_by_place_or_by_name() -> None:
    assert (Point(1, 3).x, Point(1, 3).y, Point(1).y) == (1, 3, 2)
    assert (Point(y=5, x=4).x, Point(y=5, x=4).y) == (4, 5)
    assert Named("a", "here").notes == ("none",)
    assert Point(1).sum == 3
    assert str(inspect.signature(Point)) == "(x, y=2)"
    assert Empty() == Empty()


@pytest.mark.parametrize(
    ("given", "names", "message"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, "takes from 2 to 3 positional arguments but 4 were given"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
        ((1,), {"x": 1}, "multiple values for argument 'x'"),
    ],
)
def test_wrong_arguments_are_refused(
    given: tuple[int, ...], names: dict[str, int], message: str
) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        Point(*given, **names)
    assert "Point.__init__()" in str(caught.value)


def test_equality_is_that_of_type_and_compared_fields() -> None:
    assert Point(1) == Point(1, 2) != Point(1, 3)
    assert Point(1) != Other(1)
    assert Point(1) != (1, 2)
    assert Named("a", "here") == Named("a", "there", ("one",)) != Named("b", "here")
    assert Whole("here") == Whole("there")
    assert len({Point(1), Point(1, 2), Point(2), Other(1)}) == 3
    assert len({Named("a", "here"), Named("a", "there"), Whole("here")}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point([]))  # type: ignore[arg-type]


def test_a_record_shows_what_is_compared() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2)"
    assert repr(Named("a", "here")) == "Named(name='a')"
    assert repr(Empty()) == "Empty()"


def test_patterns_match_fields_by_place() -> None:
    match Named("a", "here"):
        case Named(name, place, notes):
            assert (name, place, notes) == ("a", "here", ("none",))
        case _:
            pytest.fail("no match")


def test_replace_keeps_the_other_fields() -> None:
    old = Named("a", "here", ("one",))
    new = replace(old, name="b")
    assert (new.name, new.place, new.notes) == ("b", "here", ("one",))
    assert old.name == "a"
    with pytest.raises(TypeError, match="unexpected keyword argument 'nmae'"):
        replace(old, nmae="b")  # type: ignore[call-arg]


def test_records_have_slots_and_keep_what_their_class_says() -> None:
    assert not hasattr(Point(1), "__dict__")
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]
    assert Point.__doc__ == "A point of a plane."
    assert (Point.__name__, Point.__module__) == ("Point", __name__)


def test_records_are_copied_and_pickled() -> None:
    point = Named("a", "here", ("one",))
    for twin in (
        copy.copy(point),
        copy.deepcopy(point),
        pickle.loads(pickle.dumps(point)),
    ):
        assert twin == point
        assert (twin.place, twin.notes) == ("here", ("one",))


def test_a_field_without_a_default_may_not_follow_one_with() -> None:
    with pytest.raises(TypeError, match=r"Late\.y has no default"):

        @record
        class Late:
            x: int = 1
            y: int


def test_type_checkers_see_frozen_fields_and_typed_replacements(
    tmp_path: Path,
) -> None:
    source = tmp_path / "uses.py"
    source.write_text(
        "from arenagen.record import field, record, replace\n\n\n"
        "@record\nclass Point:\n"
        "    x: int\n    y: int = field(default=2, compare=False)\n\n\n"
        "point = Point(1)\n"
        "point.x = 3\n"
        "Point('1')\n"
        "replace(point, y='3')\n"
        "reveal_type(replace(point, y=3).y)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    cache = f"--cache-dir={tmp_path / 'cache'}"
    run = subprocess.run(
        [*command, cache, str(source)], capture_output=True, text=True, cwd=tmp_path
    )
    found = [line.partition(":")[2] for line in run.stdout.splitlines()]
    said = [line.partition("  [")[0].replace("builtins.", "") for line in found]
    assert said == [
        '11: error: Property "x" defined in "Point" is read-only',
        '12: error: Argument 1 to "Point" has incompatible type "str"; expected "int"',
        '13: error: Argument "y" to "replace" of "Point" has incompatible type "str"; '
        'expected "int"',
        '14: note: Revealed type is "int"',
    ]
