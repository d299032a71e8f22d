"""Size against the token limit, and the token counts at which something changes.

Everything is evaluated, nothing is interpolated: a change is narrowed down between two
samples until it lies between two neighbouring token counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from ..model import Schema, Uses
from ..points import Points
from ..record import record, replace
from ..sizing import ArenaSize, BufferSize, Inputs

# Samples between a power of two and the next.
PER_OCTAVE = 8
# Uses are compared at every token count up to here.
DENSE = 64
# What sets a size where it is not a use; no use has a name with a space.
FLOOR = "its floor"
NO_MEMORY = "no memory"
UNDEFINED = "no size"


@record
class Sample:
    """The bytes of every buffer at one token count."""

    tokens: int
    total: int
    sizes: Mapping[str, int]


@record
class Crossover:
    """A token count from which on something else sets the size of a buffer.

    before, after: a use, or one of FLOOR, NO_MEMORY and UNDEFINED.
    nbytes: the buffer's bytes there.
    """

    tokens: int
    buffer: str
    before: str
    after: str
    nbytes: int


@record
class Leader:
    """The token counts from `tokens` to `last`, over which a buffer is the largest.

    nbytes: its bytes at the first of them.
    """

    tokens: int
    last: int
    buffer: str
    nbytes: int


@record
class Curve:
    """An arena over the token counts from the limit's minimum to its value.

    missing: sampled token counts at which the sizes do not exist.
    """

    samples: tuple[Sample, ...]
    missing: tuple[int, ...]
    crossovers: tuple[Crossover, ...]
    leaders: tuple[Leader, ...]


def token_counts(least: int, most: int, dense: int = 1) -> list[int]:
    """Token counts from `least` to `most`, PER_OCTAVE of them an octave.

    Every count up to `dense` is among them.
    """
    counts = {least, most, *range(least, min(dense, most) + 1)}
    for power in range(most.bit_length()):
        octave = 1 << power
        counts |= {octave + octave * k // PER_OCTAVE for k in range(PER_OCTAVE)}
    return sorted(count for count in counts if least <= count <= most)


def changes(
    state: Callable[[int], str], counts: Sequence[int]
) -> list[tuple[int, str, str]]:
    """The first count of every new state, with the states before and there.

    Finds every change between neighbours in `counts` whose states differ; a state that
    comes and goes between two of them is not seen.
    """
    found: list[tuple[int, str, str]] = []

    def narrow(low: int, high: int) -> None:
        if state(low) == state(high):
            return
        if high - low == 1:
            found.append((high, state(low), state(high)))
            return
        middle = (low + high) // 2
        narrow(low, middle)
        narrow(middle, high)

    for low, high in pairwise(counts):
        narrow(low, high)
    return found


def size_curve(schema: Schema, inputs: Inputs) -> Curve:
    """The curve of an arena up to the token limit of `inputs`.

    Raises SizingError where there is no size at that limit itself.
    """
    limit = schema.token_limit
    most = inputs.limits[limit.name]
    points = Points(schema, inputs, limit.name)
    points.arena(most)
    at = points.find

    samples: list[Sample] = []
    missing: list[int] = []
    counts = token_counts(limit.minimum, most)
    points.prepare(counts)
    for tokens in counts:
        size = at(tokens)
        if size is None:
            missing.append(tokens)
            continue
        sizes = {each.name: each.nbytes for each in size.buffers}
        samples.append(Sample(tokens, size.total_bytes, sizes))

    def leader(tokens: int) -> str:
        size = at(tokens)
        largest = None if size is None else largest_buffer(size)
        return "" if largest is None else largest.name

    leaders = []
    steps = [(tokens, name) for tokens, _, name in changes(leader, counts)]
    steps.insert(0, (counts[0], leader(counts[0])))
    ends = [*(tokens - 1 for tokens, _ in steps[1:]), most]
    for (tokens, name), last in zip(steps, ends, strict=True):
        size = at(tokens)
        if name and size is not None:
            nbytes = next(each.nbytes for each in size.buffers if each.name == name)
            leaders.append(Leader(tokens, last, name, nbytes))
    return Curve(
        tuple(samples),
        tuple(missing),
        tuple(_crossovers(schema, inputs)),
        tuple(leaders),
    )


def largest_buffer(size: ArenaSize) -> BufferSize | None:
    """The buffer with the most bytes, the first of several; None without any memory."""
    largest = max(size.buffers, key=lambda each: each.nbytes, default=None)
    return largest if largest is not None and largest.nbytes else None


def _crossovers(schema: Schema, inputs: Inputs) -> list[Crossover]:
    """The crossovers of every buffer with uses, by token count, then schema order.

    Only those buffers are evaluated, which costs a fraction of the whole arena.
    """
    buffers = tuple(each for each in schema.buffers if isinstance(each.extent, Uses))
    bare = tuple(replace(each, min_bytes=None) for each in buffers)
    limit = schema.token_limit
    counts = token_counts(limit.minimum, inputs.limits[limit.name], DENSE)
    finders = []
    for some in (buffers, bare):
        points = Points(replace(schema, buffers=some), inputs, limit.name)
        points.prepare(counts)
        finders.append(points.find)
    sized, unfloored = finders
    found: list[Crossover] = []
    for place, buffer in enumerate(buffers):

        def setter(tokens: int, place: int = place) -> str:
            size, raw = sized(tokens), unfloored(tokens)
            if size is None or raw is None:
                return UNDEFINED
            here = size.buffers[place]
            if not here.active:
                return NO_MEMORY
            return FLOOR if here.nbytes > raw.buffers[place].nbytes else here.use

        for tokens, before, after in changes(setter, counts):
            size = sized(tokens)
            nbytes = 0 if size is None else size.buffers[place].nbytes
            found.append(Crossover(tokens, buffer.name, before, after, nbytes))
    return sorted(found, key=lambda each: each.tokens)
