"""Every diagnostic code: what it is called, what it means, and its cure.

The one list of them: docs/diagnostics.md, `arenagen lint --explain` and the rules of a
SARIF report are made from it. A code keeps its meaning for ever; a number is never
used again.
"""

from __future__ import annotations

from .errors import Severity
from .record import record


@record
class Code:
    """A kind of problem.

    `title` is a phrase, `meaning` and `cure` are a sentence or two.
    """

    code: str
    title: str
    meaning: str
    cure: str
    severity: Severity = "error"


_READING = (
    Code(
        "AR001",
        "not a text that is read",
        "The file is not UTF-8, or it is larger than any schema.",
        "Save it as UTF-8, with or without a byte order mark.",
    ),
    Code(
        "AR002",
        "not YAML",
        "The file stops being YAML at this place.",
        "Indent with spaces, close what is open, and quote a text that holds `: ` or "
        "` #` or begins with a character that means something to YAML.",
    ),
    Code(
        "AR003",
        "empty file",
        "The file holds no document.",
        "Write a schema; `arena:` is its first section.",
    ),
    Code(
        "AR004",
        "second document",
        "The file holds more than one YAML document.",
        "Keep one document a file; remove the `---` between them.",
    ),
    Code(
        "AR005",
        "too much nesting, or too many nodes",
        "The document nests deeper, or aliases make it larger, than any schema needs.",
        "Write the entries out, with fewer levels and aliases.",
    ),
    Code(
        "AR006",
        "tag",
        "A value has a YAML tag; a schema is plain data and has none.",
        "Remove the tag. Quote a text that begins with `!`.",
    ),
    Code(
        "AR007",
        "alias of nothing",
        "An alias names an anchor that does not stand before it, or one around it.",
        "Put the anchor first, or write the value out.",
    ),
    Code(
        "AR008",
        "endless integer",
        "An integer has more digits than any size.",
        "Correct the number.",
    ),
    Code(
        "AR009",
        "key that is no word",
        "A key is a list, a mapping or empty.",
        "Give the entry a name.",
    ),
    Code(
        "AR010",
        "key that stands twice",
        "A mapping has one key twice, quoted or not, so that one would be lost.",
        "Keep one of the two, or rename one.",
    ),
    Code(
        "AR011",
        "control character",
        "A text holds a character that terminals obey instead of showing.",
        "Remove the character.",
    ),
)

_SHAPE = (
    Code(
        "AR019",
        "text that is too long",
        "A text has more characters than its key takes.",
        "Shorten it; a comment of the file holds the rest.",
    ),
    Code(
        "AR020",
        "unknown key",
        "The mapping takes no key of this name.",
        "Correct the spelling; the hint names the nearest key, or all of them. Quote "
        "a text that holds a comma inside `{ }`.",
    ),
    Code(
        "AR021",
        "missing key",
        "A key that every entry of its kind has is not there.",
        "Add the key.",
    ),
    Code(
        "AR022",
        "value of another kind",
        "A value is of another kind than its key takes, such as a text for a list.",
        "Give a value of the kind that the message names. Sizes are exact integers; "
        "truth values are `true` and `false` alone.",
    ),
    Code(
        "AR023",
        "unknown word",
        "A value is none of the words that its key takes.",
        "Choose one of them; the hint names the nearest, or all.",
    ),
    Code(
        "AR024",
        "malformed name",
        "A name is not spelled as names of its kind are.",
        "Spell it as the hint says.",
    ),
    Code(
        "AR025",
        "number that is too small",
        "A number lies below the least that its key takes.",
        "Give at least that number.",
    ),
    Code(
        "AR026",
        "nothing where something is due",
        "A section, list or text is empty.",
        "Fill it, or remove the key where it may be absent.",
    ),
    Code(
        "AR027",
        "entry that stands twice",
        "A list that is a set has an entry twice.",
        "Remove one of the two.",
    ),
    Code(
        "AR028",
        "wrong number of entries",
        "A list has more or fewer entries than its key takes.",
        "Give as many as the message says.",
    ),
)

_ENTRIES = (
    Code(
        "AR030",
        "lever value of another type",
        "A value of a lever is not of the lever's type.",
        "Give a value of that type; for an int, the name of an integer constant too.",
    ),
    Code(
        "AR031",
        "bool lever without one way to read it",
        "A bool lever has neither `on_when` nor `off_when`, or both.",
        "Keep exactly one: the texts that switch it on, or those that switch it off.",
    ),
    Code(
        "AR032",
        "key of another type of lever",
        "A key says how levers of another type are read.",
        "Remove the key, or correct the lever's `type`.",
    ),
    Code(
        "AR033",
        "int lever without values",
        "An int lever has neither words nor bounds, so that nothing can be read.",
        "Add `words`, `clamp` or both.",
    ),
    Code(
        "AR034",
        "list of integers and texts",
        "A constant's list mixes integers and texts.",
        "Make two constants of it.",
    ),
    Code(
        "AR035",
        "list that does not ascend",
        "A list of integers is read by `next_in`, which needs it in order.",
        "Order it from the smallest to the largest, each once.",
    ),
    Code(
        "AR036",
        "unknown fill",
        "`init` is none of the fills.",
        "Write `zeros`, `ones` or a number.",
    ),
    Code(
        "AR037",
        "no extent",
        "An entry says nothing about its size.",
        "Give exactly one of the keys that the hint names.",
    ),
    Code(
        "AR038",
        "two extents",
        "An entry says its size twice.",
        "Keep exactly one.",
    ),
    Code(
        "AR039",
        "shape without dtype",
        "A shape counts elements, and nothing says what one of them is.",
        "Add `dtype`, here or to the buffer around.",
    ),
    Code(
        "AR044",
        "word that stands twice",
        "A lever has a word twice; blanks around and the case do not count.",
        "Remove one of the two.",
    ),
    Code(
        "AR046",
        "bounds out of order",
        "The smaller bound of `clamp` is the second one.",
        "Give the smaller bound first.",
    ),
    Code(
        "AR047",
        "key without effect",
        "A key does nothing without another one, or beside it.",
        "Remove it, or add the other key.",
    ),
)

_FORMULAS = (
    Code(
        "AR040",
        "not a formula",
        "A formula is malformed, or uses what formulas do not have, such as `/`, `**`, "
        "attribute access or a comprehension.",
        "Write it with integers, names, `+ - * // %`, comparisons, `and or not in`, "
        "`a if c else b` and the known functions.",
    ),
    Code(
        "AR041",
        "unknown name",
        "A formula reads a name that no section declares.",
        "Correct the spelling, or declare it. The size of another buffer cannot be "
        "read; name the sub-formula that both share in `let`.",
    ),
    Code(
        "AR042",
        "unknown function",
        "A formula calls what is neither built in nor a function or layout of the "
        "schema.",
        "Correct the spelling, or declare it in `functions`.",
    ),
    Code(
        "AR043",
        "formula that makes no sense",
        "A part of a formula has the wrong type or number of arguments, or reads what "
        "cannot be read at its place.",
        "Give what the message asks for; truth values and integers are never mixed.",
    ),
    Code(
        "AR045",
        "cycle",
        "A let, function, layout or default depends on itself.",
        "Break the ring with a formula that reads inputs only.",
    ),
    Code(
        "AR048",
        "functions and layouts that call each other",
        "A function calls a layout while a layout calls a function; the emitted "
        "modules would import each other.",
        "Let only one of the two sections call the other.",
    ),
    Code(
        "AR049",
        "names that stand on too many others",
        "A chain of names, each defined by the next, is too long.",
        "Write some of them out.",
    ),
    Code(
        "AR056",
        "too many calls",
        "Functions that call functions make one formula endless.",
        "Compute what they share once, in `let`.",
    ),
    Code(
        "AR121",
        "part that is never defined",
        "A part of a formula divides by zero, or has no value for another reason, "
        "whatever the inputs.",
        "Correct the numbers and constants that it is made of.",
    ),
)

_NAMES = (
    Code(
        "AR050",
        "name that cannot be used",
        "A name is no identifier, is a word of Python, would hide a builtin, or is "
        "used by the emitted code itself.",
        "Choose another name.",
    ),
    Code(
        "AR051",
        "name that is declared twice",
        "Two entries have one name, or names that differ in case alone; every name is "
        "unique in the whole file.",
        "Rename one of the two.",
    ),
    Code(
        "AR052",
        "hidden name",
        "A parameter, region or local name would hide a name of the schema.",
        "Rename the inner one.",
    ),
    Code(
        "AR053",
        "name of a member",
        "The emitted classes have a member of this name, whatever the schema.",
        "Choose another name.",
    ),
    Code(
        "AR054",
        "two members of one name",
        "Two entries would become one member of the arena, such as `scratch_bytes` "
        "beside the bytes of `scratch`.",
        "Rename one of the two.",
    ),
    Code(
        "AR055",
        "made name that is taken",
        "A class or function that is made from an entry's name has the name of "
        "something else.",
        "Rename one of the two.",
    ),
    Code(
        "AR060",
        "reference to nothing",
        "A group, buffer, layout or config field that is named does not exist.",
        "Correct the spelling, or declare it.",
    ),
)

_MEANING = (
    Code(
        "AR057",
        "minimum above a single token",
        "The token limit has a minimum above 1, and a pass may hold one token.",
        "Give 0 or 1.",
    ),
    Code(
        "AR113",
        "field that ranks cannot share",
        "A config field has `shard` and is no integer.",
        "Remove `shard`.",
    ),
    Code(
        "AR061",
        "missing argument",
        "A layout is used without one of its arguments.",
        "Add the argument.",
    ),
    Code(
        "AR062",
        "unknown argument",
        "A layout has no parameter of this name.",
        "Correct the spelling, or remove the argument.",
    ),
    Code(
        "AR063",
        "not one token limit",
        "Exactly one limit bounds the tokens of a pass.",
        "Write `tokens: true` at that limit, and at no other.",
    ),
    Code(
        "AR064",
        "maximum below the minimum",
        "No value is between the two.",
        "Correct one of the two.",
    ),
    Code(
        "AR065",
        "default out of bounds",
        "The default is a value that is refused.",
        "Give a default within the bounds, or widen them.",
    ),
    Code(
        "AR066",
        "two levers of one variable",
        "Two levers read one environment variable.",
        "Keep one, and read it in both places.",
    ),
    Code(
        "AR067",
        "probe that is armed by no bool",
        "A probe is armed or not, and the lever is no bool.",
        "Make the lever a bool, or remove `arms`.",
    ),
    Code(
        "AR068",
        "probe that is armed twice",
        "Two levers arm one probe.",
        "Keep one.",
    ),
    Code(
        "AR069",
        "negative default",
        "A config field is never negative, and its default is.",
        "Give a default of at least 0.",
    ),
    Code(
        "AR070",
        "token-major buffer with a gate of tokens",
        "What a pass of fewer tokens touches must lie in the buffer, which a gate "
        "that depends on the tokens would take away.",
        "Let the gate read other inputs, or remove `token_major`.",
    ),
    Code(
        "AR071",
        "not token-major",
        "`token_major: true` is checked: the token count sits in the leading "
        "dimension, and the size is shown to grow with it.",
        "Put the token count first, in a formula that never shrinks as it grows, or "
        "remove `token_major`.",
    ),
    Code(
        "AR072",
        "placeholder without gate",
        "`otherwise` is the size when the gate is false, and there is no gate.",
        "Remove `otherwise`, or add `when`.",
    ),
    Code(
        "AR073",
        "gate that is written as true or false",
        "A gate is a truth value instead of a condition.",
        "Remove the gate where it is true; where it is false, it or what it guards.",
    ),
    Code(
        "AR074",
        "alignment that is no power of two",
        "Pointers are aligned to powers of two.",
        "Give a power of two.",
    ),
    Code(
        "AR075",
        "fill without dtype",
        "A fill is written in an element type, and there is none.",
        "Add the dtype.",
    ),
    Code(
        "AR077",
        "fill that does not fit",
        "The dtype cannot hold the fill exactly.",
        "Give a value that it holds, or another dtype.",
    ),
    Code(
        "AR078",
        "method without rows",
        "A group has a `rows_method`, and no buffer of it is token-major.",
        "Remove `rows_method`, or mark the buffers `token_major`.",
    ),
    Code(
        "AR079",
        "argument of a pass that is no count",
        "Callers give a layout its arguments for a pass of some tokens, and this one "
        "depends on the tokens without being a count.",
        "Give the layout the count itself.",
    ),
    Code(
        "AR081",
        "regions that overlap",
        "Two regions of one layout or use claim the same bytes, in the case that is "
        "told: writing one would spoil the other.",
        "Let each region begin where the one before it ends, or write `at` as a "
        "formula of the sizes before it.",
    ),
    Code(
        "AR082",
        "region aligned beyond its buffer",
        "An offset is counted from the start of the buffer, so that a region is never "
        "aligned better than the buffer.",
        "Align the buffer as well, or the region less.",
    ),
    Code(
        "AR085",
        "unknown region",
        "A group is to clear a region of a buffer that the buffer does not have.",
        "Correct the path: `region`, `use.region`, or `region.inner` inside a named "
        "layout.",
    ),
    Code(
        "AR123",
        "size that cannot be",
        "A dimension, size or place is negative, or beyond 2**63 - 1, for every input.",
        "Correct the formula.",
    ),
)

_WARNINGS = (
    Code(
        "AR080",
        "declared and not used",
        "Nothing reads the entry, so that it only looks as if it mattered.",
        "Remove it, or use it.",
        "warning",
    ),
    Code(
        "AR083",
        "element that may lie askew",
        "The place of a region cannot be shown to be a multiple of what its elements, "
        "or the regions inside of it, need. A kernel that loads them in one piece "
        "faults.",
        "Give the region `align`.",
        "warning",
    ),
    Code(
        "AR084",
        "pass that may not fit",
        "What a pass of some tokens needs cannot be shown to grow with them, so that a "
        "smaller pass may need more bytes than the buffer has.",
        "Size it by a formula that never shrinks as the tokens grow.",
        "warning",
    ),
    Code(
        "AR120",
        "doc that a comment cuts",
        "What stands behind ` #` is a comment, and the text before it does not end "
        "like a sentence.",
        "Put a text that holds ` #` in quotes, or the comment on a line of its own.",
        "warning",
    ),
    Code(
        "AR122",
        "gate that bounds decide",
        "A gate is always true, or always false: constants do not change, limits keep "
        "their bounds, and config fields are never negative.",
        "Correct the condition. Remove a gate that is true, and what a false one "
        "guards.",
        "warning",
    ),
    Code(
        "AR140",
        "size that is negative at first",
        "A dimension or size is negative where the limits that it reads are at their "
        "`minimum`, so that an arena of them cannot be built.",
        "Raise the `minimum`, or give the formula a floor, as `max(M - 5, 0)` has.",
        "warning",
    ),
    Code(
        "AR124",
        "doc that restates the name",
        "A doc says no more than the name of its entry.",
        "Say what it holds, in which unit, and for whom.",
        "warning",
    ),
    Code(
        "AR125",
        "number that has a name",
        "A formula holds a number that is the value of exactly one constant.",
        "Write the constant; where the number means something else, name it too.",
        "warning",
    ),
    Code(
        "AR126",
        "trim without effect",
        "A buffer is not there whenever the trim that names it applies, so that there "
        "is nothing to empty.",
        "Leave it out of the trim, or correct one of the two gates.",
        "warning",
    ),
)

_EXTENDING = (
    Code(
        "AR087",
        "base that cannot be read",
        "The file that `arena.extends` names is not there, or cannot be read.",
        "Correct the path, which is relative to the file that it stands in.",
    ),
    Code(
        "AR088",
        "schema that extends itself",
        "The bases lead back to a schema that they began with.",
        "Break the ring.",
    ),
    Code(
        "AR089",
        "too many bases",
        "Each schema extends another, and no end is in sight.",
        "Extend a schema nearer to the last one.",
    ),
    Code(
        "AR100",
        "base that is no schema",
        "The file that `arena.extends` names has no section `arena`.",
        "Name the file of a schema.",
    ),
    Code(
        "AR101",
        "nothing to remove",
        "A path of `remove` leads to nothing that a base has.",
        "Correct the path, or delete it.",
    ),
    Code(
        "AR102",
        "`remove` without a base",
        "A schema that extends no other has nothing to remove from.",
        "Add `extends` to the section `arena`, or delete `remove`.",
    ),
    Code(
        "AR103",
        "override that changes nothing",
        "The base says the same, so that the override only looks as if it mattered.",
        "Delete it.",
        "warning",
    ),
    Code(
        "AR104",
        "package of the base",
        "Two packages of one name could not be imported side by side.",
        "Give the package a name of its own.",
    ),
)

_FAMILIES = (
    Code(
        "AR090",
        "name that a family table cannot use",
        "A name of a family, key or table of words cannot be one in emitted code.",
        "Choose another name, in small letters.",
    ),
    Code(
        "AR091",
        "family that extends nothing",
        "`extends` names a family that does not exist, or leads back to its own.",
        "Correct the spelling, or break the ring.",
    ),
    Code(
        "AR092",
        "model type of two families",
        "Two families claim one `model_type`.",
        "Keep it in one of the two.",
    ),
    Code(
        "AR093",
        "key of another type",
        "A key has a property that keys of its type do not have.",
        "Remove the property, or correct the `type`.",
    ),
    Code(
        "AR094",
        "unknown table of words",
        "A key names a table that `words` does not hold.",
        "Correct the spelling, or add the table.",
    ),
    Code(
        "AR095",
        "field of two types",
        "A family gives a field another type than the schema does.",
        "Give both the same type.",
    ),
    Code(
        "AR096",
        "family table that cannot be read",
        "The file that `arena.families` names is not there, or cannot be read.",
        "Put it beside the schema; arenagen comes with one to copy.",
    ),
    Code(
        "AR097",
        "field that no family gives",
        "A formula reads a config field without a default that no family of the table "
        "gives. Files are asked for a key of its name, and where they have none it is "
        "0, false or empty, so that what it sizes is too small.",
        "Correct the spelling, add a key to the families, or `aliases`; where 0 is "
        "meant, say so by a `default`.",
        "warning",
    ),
    Code(
        "AR110",
        "key that is read for itself",
        "Formulas of a family's keys lead from a key back to it.",
        "Read one of them without the other.",
    ),
    Code(
        "AR111",
        "family that reads and does not",
        "A family with `refuse` or `inner` reads nothing itself, and has what reads.",
        "Remove the one or the other.",
    ),
    Code(
        "AR112",
        "unknown size key",
        "`ignores` names what `size_keys` does not hold, so that nothing would warn.",
        "Correct the spelling, or remove the name.",
    ),
)

# The codes by where they arise, in the order in which a schema passes through.
SECTIONS: dict[str, tuple[Code, ...]] = {
    "Reading the file": _READING,
    "The shape of the document": _SHAPE,
    "Entries": _ENTRIES,
    "Formulas": _FORMULAS,
    "Names": _NAMES,
    "Meaning": _MEANING,
    "Suspicious": _WARNINGS,
    "Extending a schema": _EXTENDING,
    "Family tables": _FAMILIES,
}
CODES: dict[str, Code] = {
    each.code: each for section in SECTIONS.values() for each in section
}
