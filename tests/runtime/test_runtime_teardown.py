"""Teardown: newest first, everything attempted, nothing lost."""

import pytest

from runtime.errors import BackendError, TeardownError
from runtime.teardown import ModelResource, Teardown


class Resource:
    def __init__(
        self, label: str, log: list[str], error: BaseException | None = None
    ) -> None:
        self.label = label
        self._log = log
        self._error = error

    def release(self) -> None:
        self._log.append(self.label)
        if self._error is not None:
            raise self._error


def test_add_returns_the_resource() -> None:
    resource = Resource("kv cache", [])
    assert Teardown().add(resource) is resource


def test_newest_first_and_once() -> None:
    log: list[str] = []
    teardown = Teardown()
    for label in ("a", "b", "c"):
        teardown.add(Resource(label, log))
    teardown.release()
    assert log == ["c", "b", "a"]
    teardown.release()
    assert log == ["c", "b", "a"]


def test_a_resource_added_twice_is_released_once() -> None:
    log: list[str] = []
    teardown = Teardown()
    resource = teardown.add(Resource("a", log))
    teardown.add(Resource("b", log))
    assert teardown.add(resource) is resource
    teardown.release()
    assert log == ["b", "a"]


def test_every_failure_is_reported_and_every_resource_attempted() -> None:
    log: list[str] = []
    first = BackendError("sticky")
    second = ValueError("odd")
    teardown = Teardown()
    teardown.add(Resource("a", log, second))
    teardown.add(Resource("b", log))
    teardown.add(Resource("c", log, first))
    with pytest.raises(TeardownError) as caught:
        teardown.release()
    assert log == ["c", "b", "a"]
    assert caught.value.failures == (("c", first), ("a", second))
    assert caught.value.__cause__ is first
    assert str(caught.value) == (
        "teardown: could not release:\n"
        "  c: BackendError: sticky\n"
        "  a: ValueError: odd"
    )
    teardown.release()
    assert log == ["c", "b", "a"]


def test_an_interrupt_leaves_the_rest_for_another_release() -> None:
    log: list[str] = []
    teardown = Teardown()
    teardown.add(Resource("a", log))
    teardown.add(Resource("b", log, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        teardown.release()
    teardown.release()
    assert log == ["b", "a"]


def test_context_manager_releases() -> None:
    log: list[str] = []
    with Teardown() as teardown:
        teardown.add(Resource("a", log))
    assert log == ["a"]


def test_context_manager_raises_the_failures() -> None:
    teardown = Teardown()
    with pytest.raises(TeardownError, match="a: ValueError: odd"), teardown:
        teardown.add(Resource("a", [], ValueError("odd")))


def test_an_exception_in_flight_goes_on_with_the_failures_as_a_note() -> None:
    original = KeyError("the cause")
    teardown = Teardown()
    with pytest.raises(KeyError) as caught, teardown:
        teardown.add(Resource("a", [], ValueError("odd")))
        raise original
    assert caught.value is original
    assert original.__notes__ == [
        "teardown: could not release:\n  a: ValueError: odd",
    ]


def test_an_exception_in_flight_gets_no_note_when_all_is_released() -> None:
    log: list[str] = []
    teardown = Teardown()
    with pytest.raises(KeyError) as caught, teardown:
        teardown.add(Resource("a", log))
        raise KeyError("the cause")
    assert log == ["a"]
    assert not hasattr(caught.value, "__notes__")


def test_a_teardown_holds_any_resource() -> None:
    resource: ModelResource = Resource("a", [])
    assert Teardown().add(resource) is resource
