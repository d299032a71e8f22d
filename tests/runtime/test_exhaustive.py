"""No buffer can go missing from a list: release is exhaustive, and provably so.

Deletes each buffer's entry from each list of the emitted modules, one at a time, and
runs the mutant's own self-check, which must notice. A list that is written in another
way than the finders below know fails here for its missing entries, never silently.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import pytest
from support import MOE, NAMES, limits

import metrale_arena
import oracle

PACKAGE = Path(metrale_arena.__file__).parent

# A model that has a size for nearly every buffer at one token, and small ones.
MODEL = {**MOE, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "index_topk": 0}
LIMITS = limits(tokens=4, seq_len=16, block=16, batch=2)

_serial = count()


class Package(Loader, MetaPathFinder):
    """A package that lives in code objects, importable under a name of its own."""

    def __init__(self, modules: Mapping[str, CodeType]) -> None:
        self.name = f"mutant_{next(_serial)}"
        self._modules = modules

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        relative = self._relative(fullname)
        if relative is None:
            return None
        is_package = any(name.startswith(f"{relative}.") for name in self._modules)
        return spec_from_loader(fullname, self, is_package=is_package or relative == "")

    def exec_module(self, module: ModuleType) -> None:
        relative = self._relative(module.__name__)
        assert relative is not None
        exec(self._modules[relative], module.__dict__)

    def _relative(self, fullname: str) -> str | None:
        if fullname == self.name:
            return ""
        relative = fullname.removeprefix(f"{self.name}.")
        return relative if relative in self._modules else None

    def failures(self) -> tuple[str, ...]:
        """What the package's self-check says is wrong, or what stopped it."""
        sys.meta_path.insert(0, self)
        try:
            package = importlib.import_module(self.name)
            levers = package.Levers(
                gguf_native_q2=True, gguf_native_q2_mmq=True, fp8_rowwise=True
            )
            report = package.selfcheck(
                package.ModelConfig(**MODEL), **LIMITS, levers=levers
            )
        except Exception as error:
            return (f"{type(error).__name__}: {error}",)
        finally:
            sys.meta_path.remove(self)
            for name in [each for each in sys.modules if self._owns(each)]:
                del sys.modules[name]
        found: tuple[str, ...] = report.failures
        return found

    def _owns(self, fullname: str) -> bool:
        return fullname == self.name or fullname.startswith(f"{self.name}.")


class Sources:
    """The modules of a copy of the emitted package, parsed and compiled once."""

    def __init__(self, folder: Path) -> None:
        self.trees: dict[str, ast.Module] = {}
        for path in sorted(folder.rglob("*.py")):
            parts = list(path.relative_to(folder).with_suffix("").parts)
            name = ".".join(part for part in parts if part != "__init__")
            self.trees[name] = ast.parse(path.read_bytes(), str(path))
        self._compiled = {name: self._compile(name) for name in self.trees}

    def _compile(self, name: str) -> CodeType:
        return compile(self.trees[name], f"<{name or 'package'}>", "exec")

    def package(self, *changed: str) -> Package:
        """The package with these modules compiled anew from their trees."""
        return Package(self._compiled | {name: self._compile(name) for name in changed})

    def function(self, module: str, owner: str, name: str) -> ast.FunctionDef:
        found = [
            node
            for node in self.owner(module, owner).body
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        assert len(found) == 1, f"{module}: {owner}.{name}"
        return found[0]

    def owner(self, module: str, name: str) -> ast.ClassDef:
        found = [
            node
            for node in self.trees[module].body
            if isinstance(node, ast.ClassDef) and node.name == name
        ]
        assert len(found) == 1, f"{module}: {name}"
        return found[0]


class Entry(NamedTuple):
    """One buffer's place in a list: `lists` all lose their element at `place`."""

    lists: tuple[list[Any], ...]
    place: int

    @contextlib.contextmanager
    def deleted(self) -> Iterator[None]:
        whole = [each.copy() for each in self.lists]
        for each in self.lists:
            node = each.pop(self.place)
            if not each and isinstance(node, ast.stmt):
                # Nothing is no body of a branch.
                each.append(ast.copy_location(ast.Pass(), node))
        try:
            yield
        finally:
            for each, nodes in zip(self.lists, whole, strict=True):
                each[:] = nodes


class Term(NamedTuple):
    """One buffer's term of a sum, which loses it by adding 0."""

    node: ast.BinOp

    @contextlib.contextmanager
    def deleted(self) -> Iterator[None]:
        taken = self.node.right
        self.node.right = ast.copy_location(ast.Constant(0), taken)
        try:
            yield
        finally:
            self.node.right = taken


class Everywhere(NamedTuple):
    """One buffer's places in the branches of a function, all lost together."""

    entries: tuple[Entry, ...]

    @contextlib.contextmanager
    def deleted(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in self.entries:
                stack.enter_context(each.deleted())
            yield


Entries = dict[str, Entry | Term | Everywhere]


def attribute_of(node: ast.AST, owner: str = "self") -> str | None:
    """The attribute that `owner.attribute` names, and None for anything else."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == owner:
            return attribute
    return None


def statements(
    body: list[ast.stmt], target_of: Callable[[ast.expr], str | None]
) -> Entries:
    """The first assignment to each target."""
    found: Entries = {}
    for place, node in enumerate(body):
        match node:
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                name = target_of(target)
                if name is not None:
                    found.setdefault(name, Entry((body,), place))
    return found


def elements(
    nodes: list[ast.expr], name_of: Callable[[ast.expr], str | None]
) -> Entries:
    found: Entries = {}
    for place, node in enumerate(nodes):
        name = name_of(node)
        assert name is not None and name not in found, ast.dump(node)
        found[name] = Entry((nodes,), place)
    return found


def named_first(node: ast.expr) -> str | None:
    """The name of `("name", …)`."""
    match node:
        case ast.Tuple(elts=[ast.Constant(value=str(name)), *_]):
            return name
    return None


def text(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(value)):
            return value
    return None


def local(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def keys(node: ast.expr | None) -> Entries:
    """The entries of a dict display with text keys."""
    assert isinstance(node, ast.Dict)
    found: Entries = {}
    for place, key in enumerate(node.keys):
        assert isinstance(key, ast.Constant) and isinstance(key.value, str)
        found[key.value] = Entry((node.keys, node.values), place)
    return found


def value_of(body: list[ast.stmt], name: str) -> ast.expr:
    """What a body assigns to a name or to an attribute of self."""
    inside = [node.body for node in body if isinstance(node, ast.Try)]
    for node in (*body, *(each for part in inside for each in part)):
        match node:
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                if name in (local(target), attribute_of(target)):
                    assert node.value is not None
                    return node.value
    raise AssertionError(f"nothing is assigned to {name}")


def returned(function: ast.FunctionDef) -> ast.expr:
    value = function.body[-1]
    assert isinstance(value, ast.Return) and value.value is not None
    return value.value


def members(node: ast.expr) -> Entries:
    """The members of `plan(("buffer", …), …)`."""
    assert isinstance(node, ast.Call)
    return elements(node.args, named_first)


def terms(node: ast.expr) -> Entries:
    """The terms of `0 + self.one + self.other`."""
    found: Entries = {}
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        name = attribute_of(node.right)
        assert name is not None
        found[name] = Term(node)
        node = node.left
    assert isinstance(node, ast.Constant) and node.value == 0
    return found


def in_arena(method: str) -> Callable[[Sources], ast.FunctionDef]:
    return lambda sources: sources.function("arena", "BufferArena", method)


def assigned_in(method: str) -> Callable[[Sources], Entries]:
    return lambda sources: statements(in_arena(method)(sources).body, attribute_of)


def group(method: str) -> Callable[[Sources], Entries]:
    return lambda sources: members(value_of(in_arena(method)(sources).body, "plan"))


def taken(place: int) -> Callable[[Sources], Entries]:
    """The targets of one of the assignments that `_allocate` makes to many at once."""

    def found(sources: Sources) -> Entries:
        node = in_arena("_allocate")(sources).body[place]
        assert isinstance(node, ast.Assign)
        (target,) = node.targets
        assert isinstance(target, ast.Tuple)
        return elements(target.elts, lambda each: attribute_of(each) or local(each))

    return found


def tuple_of(node: ast.expr) -> Entries:
    assert isinstance(node, ast.Tuple)
    return elements(node.elts, named_first)


def words(node: ast.expr) -> Entries:
    """The entries of a tuple of text."""
    assert isinstance(node, ast.Tuple)
    return elements(node.elts, text)


def size_statements(sources: Sources) -> Entries:
    """The assignments to each size: one, or one in each branch."""
    found: dict[str, tuple[Entry, ...]] = {}
    function = sources.function("sizes", "BufferSizes", "from_config")
    branches = [node for node in ast.walk(function) if isinstance(node, ast.If)]
    parts = [part for node in branches for part in (node.body, node.orelse)]
    for body in (function.body, *parts):
        for name, entry in statements(body, local).items():
            assert isinstance(entry, Entry)
            found[name] = (*found.get(name, ()), entry)
    return {name: Everywhere(entries) for name, entries in found.items()}


def size_arguments(sources: Sources) -> Entries:
    body = sources.function("sizes", "BufferSizes", "from_config").body
    call = value_of(body, "sizes")
    assert isinstance(call, ast.Call)
    # Behind the buffers stands what was trimmed so far.
    assert ast.unparse(call.args[-1]) == "0"
    return {
        node.id: Entry((call.args,), place)
        for place, node in enumerate(call.args)
        if isinstance(node, ast.Name)
    }


def size_method(name: str) -> Callable[[Sources], ast.expr]:
    return lambda sources: returned(sources.function("sizes", "BufferSizes", name))


BYTES = tuple(f"{name}_bytes" for name in NAMES)
# Those that several users share, or that are laid out in regions.
WITH_PARTS = (
    "attn_output",
    "ssm_qkvz",
    "ssm_ba",
    "ssm_deinterleaved",
    "ssm_conv_out_f32",
    "scratch",
    "expert_gate_out",
    "expert_up_out",
    "expert_down_out",
    "hc_lowrank_scratch",
    "qsa_select_scratch",
    "gdn_fla_scratch",
    "ssd_scratch",
    "moe_fp8_scratch",
)


class Listing(NamedTuple):
    """A list of the emitted package, and the buffers that it must hold."""

    module: str
    entries: Callable[[Sources], Entries]
    members: tuple[str, ...]


LISTINGS: dict[str, Listing] = {
    "_allocate": Listing("arena", taken(0), NAMES),
    "_allocate bytes": Listing("arena", taken(1), BYTES),
    "_forget": Listing("arena", assigned_in("_forget"), NAMES),
    "_forget bytes": Listing("arena", assigned_in("_forget"), BYTES),
    "_plan_zero_all": Listing(
        "arena", group("_plan_zero_all"), oracle.METRALE_ZERO_ALL
    ),
    "_plan_zero_prefill_essentials": Listing(
        "arena", group("_plan_zero_prefill_essentials"), oracle.METRALE_ZERO_PREFILL
    ),
    "_plan_zero_all_rows": Listing(
        "arena", group("_plan_zero_all_rows"), oracle.METRALE_ZERO_ALL
    ),
    "_checksum_set": Listing(
        "arena",
        lambda sources: tuple_of(returned(in_arena("_checksum_set")(sources))),
        oracle.METRALE_CHECKSUM,
    ),
    "SLAB_ORDER": Listing(
        "arena",
        lambda sources: words(value_of(sources.trees["arena"].body, "SLAB_ORDER")),
        NAMES,
    ),
    "POINTERS": Listing(
        "arena",
        lambda sources: keys(value_of(sources.trees["arena"].body, "POINTERS")),
        WITH_PARTS,
    ),
    "__slots__": Listing(
        "arena",
        lambda sources: keys(
            value_of(sources.owner("arena", "BufferArena").body, "__slots__")
        ),
        NAMES + BYTES,
    ),
    "size": Listing("sizes", size_statements, NAMES),
    "cls": Listing("sizes", size_arguments, NAMES),
    "total_bytes": Listing(
        "sizes", lambda sources: terms(size_method("total_bytes")(sources)), NAMES
    ),
    "as_dict": Listing(
        "sizes", lambda sources: keys(size_method("as_dict")(sources)), NAMES
    ),
    "field": Listing(
        "sizes",
        lambda sources: statements(sources.owner("sizes", "BufferSizes").body, local),
        NAMES,
    ),
    "BUFFERS": Listing(
        "buffers",
        lambda sources: keys(value_of(sources.trees["buffers"].body, "BUFFERS")),
        NAMES,
    ),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    folder = tmp_path_factory.mktemp("copy") / "metrale_arena"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return Sources(folder)


def test_the_unchanged_copy_passes(sources: Sources) -> None:
    assert sources.package().failures() == ()
    assert sources.package(*sources.trees).failures() == ()


def test_an_entry_that_was_put_back_changes_nothing(sources: Sources) -> None:
    before = {name: ast.dump(tree) for name, tree in sources.trees.items()}
    for listing in LISTINGS.values():
        for entry in listing.entries(sources).values():
            with entry.deleted():
                pass
    assert {name: ast.dump(tree) for name, tree in sources.trees.items()} == before


@pytest.mark.parametrize("name", LISTINGS)
def test_every_list_holds_exactly_its_buffers(name: str, sources: Sources) -> None:
    listing = LISTINGS[name]
    known = {*NAMES, *BYTES}
    found = [each for each in listing.entries(sources) if each in known]
    wanted = {*listing.members}
    if name in ("_forget", "_forget bytes"):
        wanted = known
    assert set(found) == wanted
    assert len(found) == len(wanted)


@pytest.mark.parametrize("name", LISTINGS)
def test_the_selfcheck_notices_every_single_deletion(
    name: str, sources: Sources
) -> None:
    listing = LISTINGS[name]
    entries = listing.entries(sources)
    unnoticed = []
    for buffer in listing.members:
        with entries[buffer].deleted():
            mutant = sources.package(listing.module)
        if not mutant.failures():
            unnoticed.append((name, buffer))
    assert unnoticed == []


def test_the_selfcheck_notices_a_missing_fill(sources: Sources) -> None:
    body = in_arena("_fill")(sources).body
    assert len(body) == 1
    removed = body[0]
    body[0] = ast.copy_location(ast.Pass(), removed)
    try:
        mutant = sources.package("arena")
    finally:
        body[0] = removed
    failure, *_ = mutant.failures()
    assert "norm_unit_w" in failure


IMPORTS = """
import json, sys
before = set(sys.modules)
import metrale_arena
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_the_package_loads_the_standard_library_alone() -> None:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    roots = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "metrale_arena" in roots
    assert roots.isdisjoint({"cuda", "numpy", "jinja2", "black", "yaml", "arenagen"})
    assert roots - {"metrale_arena"} <= sys.stdlib_module_names
    # What takes long to load is loaded where it is used.
    assert roots.isdisjoint({"ctypes", "dataclasses", "inspect", "logging"})
    inside = {name for name in json.loads(done.stdout) if name.count(".")}
    for late in (
        "checks",
        "families",
        "runtime.checksum",
        "runtime.dlpack",
        "runtime.host",
    ):
        assert f"metrale_arena.{late}" not in inside


def test_what_the_package_loads_late_is_there_like_all_else() -> None:
    assert {*metrale_arena.__all__} <= {*dir(metrale_arena)}
    for name in metrale_arena.__all__:
        assert getattr(metrale_arena, name) is not None
    text = "^module 'metrale_arena' has no attribute 'HostBackends'$"
    with pytest.raises(AttributeError, match=text):
        metrale_arena.HostBackends  # type: ignore[attr-defined]  # noqa: B018
