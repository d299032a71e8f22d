"""What the page says: frozen records of finished texts and positions.

Everything is decided here; the templates only spell it.
"""

from __future__ import annotations

from ..record import record

# Colours of the style sheet; more kinds than these share them, never a letter.
TONES = 6


@record
class Fact:
    """A figure of the headline."""

    label: str
    value: str
    note: str


@record
class Setting:
    """A limit, a lever or a constant: its value, and whether that is the default."""

    name: str
    value: str
    default: bool
    doc: str


@record
class Settings:
    """The settings of one kind."""

    kind: str
    items: tuple[Setting, ...]


@record
class Key:
    """Zeroing groups that buffers share: their letter and tone, and their names."""

    letter: str
    tone: str
    text: str


@record
class Bar:
    """A buffer among the bytes per buffer."""

    name: str
    width: str
    human: str
    exact: str
    share: str
    gate: str
    key: Key


@record
class MapPiece:
    """A part of a buffer in the address map; fit: the width that gives it a label."""

    start: str
    width: str
    label: str
    fit: str
    title: str
    key: Key


@record
class MapRow:
    """A row of the address map and the address it begins at."""

    address: str
    pieces: tuple[MapPiece, ...]


@record
class Place:
    """A buffer in the slab."""

    name: str
    offset: str
    hexadecimal: str
    nbytes: str
    padding: str
    key: Key


@record
class AddressMap:
    """The slab, drawn and listed."""

    summary: str
    rows: tuple[MapRow, ...]
    places: tuple[Place, ...]


@record
class Run:
    """A memset in the slab: its place to scale, and its numbers."""

    start: str
    width: str
    offset: str
    nbytes: str
    buffers: str


@record
class Clearing:
    """A zeroing method, in full or of a pass of one token."""

    call: str
    doc: str
    human: str
    exact: str
    share: str
    separate: str
    slab: str
    runs: tuple[Run, ...]


@record
class Line:
    """A line of the size chart. points: one list of points a stretch without a gap."""

    tone: str
    letter: str
    name: str
    human: str
    points: tuple[str, ...]
    badge_x: str
    badge_y: str


@record
class Mark:
    """A grid line, a tick or a crossover of the size chart."""

    at: str
    text: str
    anchor: str


@record
class Chart:
    """The size chart; `alternative` says in words what it shows."""

    alternative: str
    lines: tuple[Line, ...]
    grid: tuple[Mark, ...]
    ticks: tuple[Mark, ...]
    crossings: tuple[Mark, ...]
    last: str


@record
class Crossing:
    """A row of the crossovers."""

    tokens: str
    buffer: str
    before: str
    after: str
    nbytes: str


@record
class LeaderRow:
    """The token counts over which a buffer is the largest."""

    tokens: str
    buffer: str
    nbytes: str


@record
class SizeAt:
    """The arena at one token count."""

    tokens: str
    human: str
    exact: str
    per_token: str
    largest: str


@record
class SizeCurve:
    """Size against tokens; no chart where the limit leaves a single token count."""

    chart: Chart | None
    note: str
    sizes: tuple[SizeAt, ...]
    leaders: tuple[LeaderRow, ...]
    crossings: tuple[Crossing, ...]


@record
class Alternative:
    """A lever at another value. doc: of the lever, at the first of them."""

    lever: str
    doc: str
    variable: str
    now: str
    word: str
    change: str
    total: str
    buffers: str


@record
class Condition:
    """A gate or a trim: its state, what decided it, and what it governs."""

    name: str
    doc: str
    formula: str
    on: bool
    state: str
    reads: str
    buffers: str
    effect: str


@record
class UseRow:
    """A use of a buffer in the table of all buffers."""

    name: str
    formula: str
    wins: bool


@record
class BufferRow:
    """A buffer in the table of all buffers. number: its exact bytes, to sort by."""

    place: int
    name: str
    doc: str
    number: int
    exact: str
    note: str
    dtype: str
    shape: str
    state: str
    gate: str
    use: str
    formula: str
    uses: tuple[UseRow, ...]
    facts: str
    key: Key
    live: bool


@record
class ConfigView:
    """One model config."""

    id: str
    name: str
    human: str
    exact: str
    tokens: str
    live: str
    largest: str
    trimmed: str
    facts: tuple[Fact, ...]
    settings: tuple[Settings, ...]
    fields: tuple[Setting, ...]
    empty_fields: str
    keys: tuple[Key, ...]
    bars: tuple[Bar, ...]
    rest: str
    map: AddressMap
    clearings: tuple[Clearing, ...]
    curve: SizeCurve
    levers: tuple[Alternative, ...]
    gates: tuple[Condition, ...]
    trims: tuple[Condition, ...]
    buffers: tuple[BufferRow, ...]


@record
class Page:
    """The whole page. others: assignments over the config files, as they were given."""

    title: str
    package: str
    doc: str
    overrides: str
    several: bool
    configs: tuple[ConfigView, ...]
