"""Views of zeroing groups, and of their members in docstrings."""

from __future__ import annotations

from .naming import region_entries
from .plan_buffers import BufferView
from .record import record
from .words import count

# Members that a docstring names: all of so many, or else a few.
_MOST_NAMED = 100
_FEW = 3


def listed(names: list[str]) -> str:
    """Names in a docstring, where nobody reads hundreds of them."""
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_FEW])} and {len(names) - _FEW} more, as BUFFERS tells"


def _listing(number: str, method: str) -> str:
    """The method of a chunk that lists what a zeroing method clears."""
    return f"_{method}_members_{number}"


@record
class RegionMemberView:
    """A region that a zeroing group holds: the function that lays its use out, and the
    names from there on.
    """

    buffer: str
    path: str
    place: str
    steps: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a plan and an error call it."""
        return f"{self.buffer}.{self.path}"


@record
class GroupView:
    """A zeroing group and its two methods."""

    name: str
    doc: str
    method: str
    rows_method: str
    buffers: tuple[BufferView, ...]
    regions: tuple[RegionMemberView, ...]
    chunks: tuple[str, ...] = ()
    region_chunks: tuple[str, ...] = ()
    number: str = ""

    @property
    def held(self) -> tuple[BufferView, ...]:
        """The buffers that the method itself lists, for those of chunks do not."""
        return () if self.chunks else self.buffers

    @property
    def held_leading(self) -> bool:
        """Whether the method itself lists buffers of which a pass clears a part."""
        return any(each.token_major for each in self.held)

    @property
    def held_regions(self) -> tuple[RegionMemberView, ...]:
        """The regions that the arena's own module lists."""
        return () if self.region_chunks else self.regions

    @property
    def chunk_method(self) -> str:
        """What lists the buffers of a chunk."""
        return _listing(self.number, self.method)

    @property
    def chunk_methods(self) -> tuple[str, ...]:
        """What lists the buffers of each chunk that has some."""
        return tuple(_listing(each, self.method) for each in self.chunks)

    @property
    def chunk_entries(self) -> tuple[str, ...]:
        """The constants that list the regions of each chunk that has some."""
        return tuple(f"{self.entries}_{each}" for each in self.region_chunks)

    @property
    def rows(self) -> str:
        """The sizes of which the method limited to a pass clears as much."""
        return "rows" if self.leading else "sizes"

    @property
    def rows_read_sizes(self) -> bool:
        """Whether that method reads the arena's own sizes."""
        return bool(self.held or (self.chunks and not self.leading))

    @property
    def memsets(self) -> int:
        """Memsets of either method at most."""
        return len(self.buffers) + len(self.regions)

    @property
    def entries(self) -> str:
        """The constant that lists the regions."""
        return region_entries(self.method)

    @property
    def leading(self) -> tuple[str, ...]:
        """The buffers of which a pass clears a part."""
        return tuple(each.name for each in self.buffers if each.token_major)

    @property
    def members(self) -> str:
        """The names of all members."""
        names = [each.name for each in self.buffers]
        return listed([*names, *(each.label for each in self.regions)])

    @property
    def docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring of the full method."""
        return (
            self.doc,
            f"Enqueue on the stream {count(self.memsets, 'memset')} at most, one for "
            "each member that exists, cleared in full; in a slab, one for each run of "
            "members that lie side by side.",
            f"Members: {self.members}.",
        )

    @property
    def rows_docs(self) -> tuple[str, ...]:
        """Paragraphs of the docstring of the method limited to a pass."""
        parts = []
        if self.leading:
            parts.append(
                f"Of each of the {len(self.leading)} token-major members, clear its "
                "size formula's bytes at that many tokens, padding and floors included."
            )
        if self.regions:
            parts.append(
                "A region is cleared where it lies in a pass of that many tokens: "
                f"{listed([each.label for each in self.regions])}."
            )
        full = [each.name for each in self.buffers if not each.token_major]
        if full:
            parts.append(f"The others are cleared in full: {listed(full)}.")
        return (
            f"{self.method}, but only what a pass of `tokens` tokens can touch.",
            f"Enqueue on the stream {count(self.memsets, 'memset')} at most. "
            f"{' '.join(parts)} From the token limit on, the same as {self.method}.",
            "Raise ConfigError for less than 1 token.",
        )
