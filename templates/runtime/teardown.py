"""Release of everything that a model holds, newest first."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self, TypeVar

from .errors import TeardownError


class ModelResource(Protocol):
    """Something that holds device memory until it is released."""

    @property
    def label(self) -> str:
        """What to call the resource in an error."""
        ...

    def release(self) -> None:
        """Give back all that the resource holds."""
        ...


_Resource = TypeVar("_Resource", bound=ModelResource)


class Teardown:
    """A set of resources that are released together, the newest first.

    As a context manager it releases on exit. When the block ends with an exception,
    that exception goes on, and failures to release are added to it as a note.
    """

    __slots__ = ("_resources",)

    def __init__(self) -> None:
        self._resources: list[ModelResource] = []

    def add(self, resource: _Resource) -> _Resource:
        """Take charge of a resource and return it; adding it again changes nothing."""
        if not any(known is resource for known in self._resources):
            self._resources.append(resource)
        return resource

    def release(self) -> None:
        """Release every resource, each once, whatever the others do.

        A second call has nothing left to do. Raise TeardownError, caused by the
        first failure, when any resource failed.
        """
        failures: list[tuple[str, Exception]] = []
        while self._resources:
            resource = self._resources.pop()
            try:
                resource.release()
            except Exception as error:  # noqa: BLE001
                failures.append((resource.label, error))
        if failures:
            raise TeardownError(tuple(failures)) from failures[0][1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.release()
        except TeardownError as failure:
            if error is None:
                raise
            error.add_note(str(failure))
