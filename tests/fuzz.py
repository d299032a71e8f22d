"""Mutated schemas and configs through the whole tool: only told problems may come out.

`python tests/fuzz.py schemas --inputs 20000 --seed 1`, or `tables`, or `configs`. Seeds
are the corpus of bad schemas and the real ones; mutations are of bytes, of tokens, of
the document's nodes and of formulas. What a schema without errors emits must compile
with warnings as errors, and of some the package is imported and sized, beside the tool.
Prints one line a fault and a summary; exits with 1 when there was one.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from arenagen import render
from arenagen.compile import check_source, emit, read_schema
from arenagen.errors import ArenagenError, InputProblems, Problem, sort_problems
from arenagen.evaluate import Value
from arenagen.family_loader import load_families
from arenagen.family_reader import read_config
from arenagen.load import load
from arenagen.model import Schema
from arenagen.sarif import as_sarif
from arenagen.sizing import SizingError, complete_inputs, size_arena
from arenagen.source import Text, decode
from arenagen.tidy import tidy

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = sorted((ROOT / "schema").glob("*.yaml"))
CORPUS = sorted((ROOT / "tests/errors").rglob("*.y*ml"))
FAMILIES = ROOT / "schema/huggingface.yaml"
TABLES = sorted((ROOT / "tests/errors/families").glob("*.yaml"))
CONFIGS = sorted((ROOT / "tests/data").glob("*.json"))
# Of one input: seconds of the processor, and bytes that the process may come to hold.
SECONDS = 2.0
BYTES = 500 * 2**20
# Every how manyth schema without errors is formatted, imported and sized.
SAMPLE = 40

TOKENS = [
    *("M", "max_batch_tokens", "hidden_size", "true", "null", "~", "0", "-1", "1e9"),
    *("9223372036854775807", "9223372036854775808", "0x7f", "1_0", ".inf", "1.5"),
    *("+", "-", "*", "//", "%", "/", "**", "==", "<", "and", "or", "not", "if", "else"),
    *("min(", "max(", "align(", "cdiv(", "clamp(", "count(", "len(", "next_in(", ")"),
    *("[", "]", "{", "}", ",", ":", "- ", "? ", "# ", "&a ", "*a", "!!int ", "<<: "),
    *(
        "'",
        '"',
        "'''",
        '"""',
        "\\",
        "\\N{X}",
        "\n",
        "\r",
        "\t",
        "  ",
        "\n    ",
        "---\n",
    ),
    *(
        "doc: x",
        "dtype: bf16",
        "shape: [M]",
        "bytes: M",
        "when: M > 1",
        "uses:",
        "at: 0",
    ),
    *("token_major: true", "zero: [all]", "carve: true", "init: ones", "align: 64"),
    *("regions:", "layout: block", "arguments: {}", "extends: metrale.yaml", "public"),
    *("\ufeff", "\u202e", "\u2028", "\x85", "\xa0", "\0", "\x1b", "é", "\U0001f600"),
    *("{{ view }}", "{% if x %}", "__import__('os')", "lambda: 0", "M.real", "f'{M}'"),
    *("self", "class", "len", "release", "sizes", "arena", "_x", "l", "NULL", "print"),
]
# Values for the keys of a config.
ODD = [
    *(0, -1, 1, 2**31, 2**63, 2**200, 10**400, 1.5, 1e308, True, None, "", "a"),
    *([], {}, ["a"], [1], {"a": 1}, "full_attention", [[]], "x" * 500),
]
WORD = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]|\s+")


def mutate(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    """The seed with one to five changes of one kind, or of several."""
    if rng.random() < 0.4:
        # Often enough what comes out is a schema without errors.
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = _formula(rng, data, pool)
        return data
    ways: list[Callable[[random.Random, bytes, list[bytes]], bytes]]
    ways = [_bytes, _tokens, _tokens, _nodes, _nodes, _formula, _lines]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        data = rng.choice(ways)(rng, data, pool)[: 2**18]
    return data


def _bytes(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 2, 8, 64, 512)))
    match rng.randrange(5):
        case 0:
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:end] + data[at:end] * rng.choice((1, 2, 50)) + data[end:]
        case 3:
            other = rng.choice(pool)
            start = rng.randrange(len(other) + 1)
            return data[:at] + other[start : start + rng.randrange(400)] + data[at:]
    return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]


def _tokens(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    words = WORD.findall(data.decode("utf-8", "replace")) or [""]
    at = rng.randrange(len(words))
    match rng.randrange(4):
        case 0:
            words[at] = rng.choice(TOKENS)
        case 1:
            words.insert(at, rng.choice(TOKENS))
        case 2:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        case _:
            words[at] = rng.choice(words)
    return "".join(words).encode("utf-8", "replace")


def _lines(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, rng.choice(lines))
        case 2:
            lines[at] = b" " * rng.randrange(5) + lines[at].lstrip()
        case _:
            lines.insert(at, rng.choice(rng.choice(pool).split(b"\n")))
    return b"\n".join(lines)


def _nodes(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    """The document with a node removed, moved, copied, or put in another's place."""
    if b"&" in data and b"*" in data:
        # PyYAML would write every alias out.
        return _tokens(rng, data, pool)
    try:
        root = yaml.load(data, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError):
        return _tokens(rng, data, pool)
    places = list(_places(root))[:5000]
    if not places:
        return data
    holder, key = rng.choice(places)
    other, its = rng.choice(places)
    try:
        match rng.randrange(6):
            case 0:
                del holder[key]
            case 1:
                holder[key] = other[its]
            case 2:
                holder[key], other[its] = other[its], holder[key]
            case 3:
                holder[key] = rng.choice(("", [], {}, [[]], {"a": {}}, "x" * 3000))
            case 4 if isinstance(holder, dict):
                holder[rng.choice(TOKENS)] = holder.pop(key)
            case _:
                holder[key] = _expression(rng, 4)
        text = (
            json.dumps(root) if rng.random() < 0.5 else yaml.dump(root, sort_keys=False)
        )
    except (KeyError, IndexError, RecursionError, ValueError, TypeError):
        # Two places where one held the other, or a ring.
        return data
    return text.encode("utf-8", "replace")


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below a node, as the container and the key or index in it."""
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from _places(node[key])


def _formula(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    """Another formula in the place of one, of the right type mostly."""
    try:
        text = data.decode("utf-8")
        places = list(_formulas(yaml.compose(text, Loader=yaml.CSafeLoader)))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        places = []
    if not places:
        return _tokens(rng, data, pool)
    key, start, end = rng.choice(places)
    depth = rng.choice((1, 2, 3, 4, 6))
    formula = _expression(rng, depth, key == "when", ["M", *_names(data)])
    changed = f"{text[:start]}{json.dumps(formula)}{text[end:]}"
    return changed.encode()


def _formulas(node: Any, key: str = "") -> Iterator[tuple[str, int, int]]:
    """The key, start and end of every formula below a node."""
    keys = ("when", "value", "bytes", "otherwise", "min_bytes", "at", "shape")
    match node:
        case yaml.MappingNode():
            for name, value in node.value:
                if name.value not in ("target", "limits", "levers", "constants"):
                    yield from _formulas(value, name.value)
        case yaml.SequenceNode():
            for place, item in enumerate(node.value):
                # A pass has its tokens in front.
                if place or key != "shape":
                    yield from _formulas(item, key)
        case yaml.ScalarNode() if key in keys and "\n" not in node.value:
            yield key, node.start_mark.index, node.end_mark.index


def _names(data: bytes) -> list[str]:
    """The names that formulas may read, as they stand in most schemas."""
    readable = ("limits", "target", "config", "levers", "constants", "let")
    found, section = [], ""
    for line in data.decode("utf-8", "replace").split("\n"):
        if top := re.match(r"(\w+):", line):
            section = top[1]
        elif section in readable and (name := re.match(r"  (\w+):", line)):
            found.append(name[1])
    return found


def _expression(
    rng: random.Random, depth: int, truth: bool = False, names: list[str] | None = None
) -> str:
    names = names or ["M", "hidden_size", "x"]
    if rng.random() < 0.005:
        truth = not truth

    def number() -> str:
        return _expression(rng, depth - 1, False, names)

    def condition() -> str:
        return _expression(rng, depth - 1, True, names)

    if depth <= 0 or rng.random() < 0.1:
        if truth:
            return rng.choice(("True", "False", f"{rng.choice(names)} > 0"))
        numbers = ("0", "1", "2", "3", "16", "8192", "(-1)", "9223372036854775807")
        return rng.choice((*numbers, *rng.choices(names, k=9)))
    if truth:
        match rng.randrange(4):
            case 0:
                return f"not ({condition()})"
            case 1:
                return f"({condition()}) {rng.choice(('and', 'or'))} ({condition()})"
        return f"{number()} {rng.choice(('==', '!=', '<', '<=', '>', '>='))} {number()}"
    match rng.randrange(8):
        case 0 | 1:
            return f"{number()} {rng.choice(('+', '-', '*', '//', '%'))} {number()}"
        case 2:
            return f"({number()}) {rng.choice(('+', '-', '*', '//'))} ({number()})"
        case 3:
            return f"({number()}) if ({condition()}) else ({number()})"
        case 4:
            return (
                f"{rng.choice(('min', 'max', 'align', 'cdiv'))}({number()}, {number()})"
            )
        case 5:
            return f"clamp({number()}, {number()}, {number()})"
        case 6:
            return f"-({number()})"
    return f"max({number()}, {rng.randrange(99)})"


def bases(_: str, path: str) -> Text:
    """The schemas that mutated ones extend."""
    for folder in ("schema", "tests/errors", "tests/errors/bases"):
        file = ROOT / folder / Path(path).name
        if path and file.is_file():
            return Text(file.name, file.read_bytes())
    raise ArenagenError(f"{path!r}: no such file")


def through_the_tool(data: bytes, rng: random.Random, sample: bool) -> str:
    """What became of a schema: `refused`, `emitted` or `imported`."""
    try:
        laid = tidy(data, "s.yaml").encode()
        assert tidy(laid, "s.yaml").encode() == laid
    except ArenagenError as error:
        assert len(str(error)) < 200_000
    try:
        schema, problems = read_schema(Text("s.yaml", data), bases)
    except InputProblems as error:
        assert_told(error.problems)
        assert any(each.severity == "error" for each in error.problems)
        return "refused"
    assert_told(problems)
    assert all(each.severity == "warning" for each in problems)
    size(schema, rng)
    if sample:
        sized_by_the_package(schema, rng)
        return "imported"
    real = render.black_format
    render.black_format = lambda text: text
    try:
        files = emit(check_source(schema, problems, None), "s.yaml")
    finally:
        render.black_format = real
    for name, text in files.items():
        if name.endswith(".py") and not name.startswith("runtime/"):
            compile(text, name, "exec")
    return "emitted"


def assert_told(problems: tuple[Problem, ...]) -> None:
    """Problems are in order, each once, and can be shown in every form."""
    assert problems == tuple(sort_problems(problems))
    assert len({(each.code, each.span, each.message) for each in problems}) == len(
        problems
    )
    for each in problems:
        shown = str(each)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown), each
        assert len(shown) < 20_000, each.code
        json.dumps(each.as_dict()).encode()
    json.dumps(as_sarif(problems, "0")).encode()


def values(schema: Schema, rng: random.Random) -> dict[str, Value]:
    """A config: a value for every field."""
    found: dict[str, Value] = {}
    for field in schema.config:
        options: dict[str, Value] = {
            "int": rng.choice((0, 1, 3, 64, 4096, 2**40)),
            "bool": rng.random() < 0.5,
            "str": rng.choice(("", "a", "llama")),
            "list": tuple(rng.choices(("a", "full_attention"), k=rng.randrange(4))),
        }
        found[field.name] = options[field.type]
    return found


def size(schema: Schema, rng: random.Random) -> dict[str, int] | None:
    limits = {
        each.name: each.minimum + rng.choice((1, 2, 100)) for each in schema.limits
    }
    try:
        inputs = complete_inputs(schema, values(schema, rng), limits, {}, {})
        sizes = size_arena(schema, inputs)
    except SizingError:
        return None
    return {each.name: each.nbytes for each in sizes.buffers}


def sized_by_the_package(schema: Schema, rng: random.Random) -> None:
    """Emit, import, and hold the package's sizes against those of the tool."""
    files = emit(check_source(schema, (), None), "s.yaml")
    folder = Path(tempfile.mkdtemp())
    name = f"fuzzed_{rng.randrange(10**12)}"
    try:
        for path, text in files.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        sys.path.insert(0, str(folder))
        package = importlib.import_module(name)
        config = values(schema, rng)
        limits = {
            each.name: each.minimum + rng.choice((1, 2, 100)) for each in schema.limits
        }
        try:
            inputs = complete_inputs(schema, config, limits, {}, {})
            wanted = {e.name: e.nbytes for e in size_arena(schema, inputs).buffers}
        except SizingError:
            wanted = None
        try:
            found = package.BufferSizes.from_config(
                package.ModelConfig(**config), **limits, levers=package.Levers()
            ).as_dict()
        except package.ArenaError:
            found = None
        assert found == wanted, (found, wanted)
    finally:
        sys.path.remove(str(folder))
        for module in [each for each in sys.modules if each.split(".")[0] == name]:
            del sys.modules[module]
        shutil.rmtree(folder)


def through_the_loader(data: bytes, schema: Schema) -> str:
    """What became of a family table: `refused` or `loaded`."""
    try:
        table = load_families(decode(data, "t.yaml"), "t.yaml")
    except InputProblems as error:
        assert_told(error.problems)
        return "refused"
    assert_told(tuple(sort_problems(table.check(schema))))
    return "loaded"


def through_sizes(data: bytes, schema: Schema, table: Any) -> str:
    """What became of a config.json: `refused` or `sized`."""
    limits = {"max_batch_tokens": 512, "max_seq_len": 4096, "max_batch_size": 8}
    try:
        raw = read_config(data, "config.json")
        fields = table.canonical(raw, schema, "config.json").fields
        size_arena(schema, complete_inputs(schema, fields, limits, {}, {}))
    except ArenagenError as error:
        assert len(str(error)) < 20_000
        return "refused"
    return "sized"


def mutate_config(rng: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    """A config with other values, keys or bytes."""
    if rng.random() < 0.3:
        return _bytes(rng, data, pool)
    root = json.loads(data)
    for _ in range(rng.choice((1, 2, 5))):
        holder, key = rng.choice(list(_places(root)))
        if rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(rng.choice(ODD))
        if not list(_places(root)):
            break
    return json.dumps(root).encode()


class TooSlow(Exception):
    """An input that takes longer than it may."""


def _alarm(*_: object) -> None:
    raise TooSlow(f"more than {SECONDS} s")


def peak_memory() -> int:
    """The most bytes that this process has held.

    What `getrusage` tells may be that of the process which started this one.
    """
    status = Path("/proc/self/status").read_text("ascii")
    (kib,) = re.findall(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(kib) * 1024


def run(kind: str, inputs: int, seed: int, keep: Path | None) -> int:
    """Try mutated inputs; returns how many were at fault."""
    rng = random.Random(seed)
    warnings.simplefilter("error")
    signal.signal(signal.SIGVTALRM, _alarm)
    resource.setrlimit(resource.RLIMIT_AS, (4 * BYTES, 4 * BYTES))
    schema = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
    table = load_families(FAMILIES.read_text("utf-8"), FAMILIES.name)
    match kind:
        case "schemas":
            pool, change = seeds(), mutate
        case "tables":
            pool = [_body(path.read_bytes()) for path in TABLES]
            pool += [FAMILIES.read_bytes()] * len(pool)
            change = mutate
        case _:
            pool, change = [path.read_bytes() for path in CONFIGS], mutate_config
    outcomes: Counter[str] = Counter()
    faults = Counter[str]()
    slowest = 0.0
    sound = 0
    for number in range(inputs):
        data = change(rng, rng.choice(pool), pool)
        start = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            match kind:
                case "schemas":
                    sample = sound % SAMPLE == SAMPLE - 1
                    outcome = through_the_tool(data, rng, sample)
                case "tables":
                    outcome = through_the_loader(data, schema)
                case _:
                    outcome = through_sizes(data, schema, table)
            sound += outcome != "refused"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            outcome = "fault"
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = (
                f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
            )
            faults[what] += 1
            if faults[what] == 1:
                print(f"input {number}: {what}: {str(error)[:300]}", flush=True)
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{seed}_{number}.yaml").write_bytes(data)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        slowest = max(slowest, time.process_time() - start)
        outcomes[outcome] += 1
    memory = peak_memory()
    if memory > BYTES:
        faults[f"{memory >> 20} MiB were held"] += 1
    print(
        f"{kind}, seed {seed}: {inputs} inputs, {dict(sorted(outcomes.items()))}, "
        f"slowest {slowest:.2f} s, {memory >> 20} MiB"
    )
    for what, count in faults.items():
        print(f"  {count} times {what}")
    return sum(faults.values())


def seeds() -> list[bytes]:
    """Texts to begin with; half of them are schemas without errors, each many times."""
    bad = [_body(path.read_bytes()) for path in CORPUS]
    good = [path.read_bytes() for path in SCHEMAS]
    page = (ROOT / "docs/language.md").read_text("utf-8")
    good += [
        each.encode() for each in re.findall(r"```yaml schema\n(.*?)```", page, re.S)
    ]
    good += [data for data in bad if _is_sound(data)]
    return bad + good * (len(bad) // len(good) + 1)


def _is_sound(data: bytes) -> bool:
    try:
        read_schema(Text("s.yaml", data), bases)
    except InputProblems:
        return False
    return True


def _body(data: bytes) -> bytes:
    """A file of the corpus without its leading comment."""
    return re.sub(rb"\A(?:#[^\n]*\n)+", b"", data)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["schemas", "tables", "configs"])
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="Folder for inputs at fault.")
    options = parser.parse_args()
    sys.exit(run(options.kind, options.inputs, options.seed, options.keep) > 0)


if __name__ == "__main__":
    main()
