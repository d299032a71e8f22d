"""`arenagen docs`: what the page says, that it renders, and whose file it may be."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from arenagen.aspects import sections
from arenagen.cli import cli
from arenagen.commands.schemas import load_checked
from arenagen.compile import Text, read_schema
from arenagen.evaluate import Value, evaluate
from arenagen.formula import parse
from arenagen.model import Schema
from arenagen.reference import reference

ROOT = Path(__file__).resolve().parents[2]
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
FENCE = re.compile(r"^```yaml schema\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def schema_of(text: str) -> Schema:
    return read_schema(Text("a.yaml", text.encode()))[0]


SCHEMAS = {
    path.name: load_checked(path).schema
    for path in sorted((ROOT / "schema").glob("*.yaml"))
    if "\nbuffers:\n" in path.read_text("utf-8")
} | {
    f"language-{place}": schema_of(body)
    for place, body in enumerate(
        FENCE.findall((ROOT / "docs/language.md").read_text("utf-8"))
    )
}


class Page(HTMLParser):
    """Anchors, links, tags and words of a rendered page."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.anchors: list[str] = []
        self.links: set[str] = set()
        self.words = ""
        self.feed(READER.render(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for key, value in attrs:
            assert value is not None
            if key == "id":
                self.anchors.append(value)
            elif key == "href":
                self.links.add(value)
            else:
                assert (tag, key) in {("th", "style"), ("td", "style")}

    def handle_data(self, data: str) -> None:
        self.words += data


ANCHORS = {
    "target": "target",
    "limits": "limit",
    "config": "field",
    "levers": "lever",
    "constants": "constant",
    "let": "let",
    "functions": "function",
    "layouts": "layout",
    "groups": "group",
    "buffers": "buffer",
    "trims": "trim",
}
TAGS = {
    "a",
    "code",
    "h1",
    "h2",
    "h3",
    "li",
    "p",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_entry_is_on_the_page_and_every_link_leads_somewhere(name: str) -> None:
    schema = SCHEMAS[name]
    markdown = reference(schema, name)
    page = Page(markdown)
    assert len(set(page.anchors)) == len(page.anchors)
    for section, entries in sections(schema).items():
        for entry in entries:
            if section != "arena":
                assert f"{ANCHORS[section]}-{entry}" in page.anchors
    assert {link.removeprefix("#") for link in page.links} <= set(page.anchors)
    assert all(link.startswith("#") for link in page.links)
    assert page.tags <= TAGS
    for _, entries in sections(schema).items():
        for entry in entries.values():
            assert " ".join(entry.doc.split()) in page.words


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_row_of_a_table_has_all_its_cells(name: str) -> None:
    for block in reference(SCHEMAS[name], name).split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("|"):
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert len(counts) == 1, block
            assert re.fullmatch(r"\|( -+:? \|)+", lines[1])


def test_the_same_schema_gives_the_same_page() -> None:
    schema = SCHEMAS["metrale.yaml"]
    page = reference(schema, "metrale.yaml")
    assert page == reference(schema, "metrale.yaml")
    assert page.endswith("|\n") and "\n\n\n" not in page
    assert all(line == line.rstrip() for line in page.splitlines())


class Given:
    """A scope of some names."""

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values

    def value(self, name: str) -> Value:
        return self.values[name]

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        raise AssertionError(name)


def first_bytes(page: str, layout: str, **values: Value) -> list[tuple[str, int]]:
    """The first bytes of the regions of a layout, computed from what the page says."""
    part = page.split(f'<a id="layout-{layout}"></a>')[1].split("\n### ")[0]
    table = part.split("| region | first byte |")[1].split("\n\n")[0]
    found: dict[str, Value] = {}
    for line in table.splitlines()[2:]:
        name, formula = re.findall(r"`(.*?)`", line)[:2]
        number = evaluate(parse(formula), Given(values | found))
        assert isinstance(number, int)
        found[name] = number
    return [(name, int(at)) for name, at in found.items() if isinstance(at, int)]


def test_first_bytes_are_formulas() -> None:
    page = reference(SCHEMAS["metrale.yaml"], "metrale.yaml")
    assert first_bytes(page, "decode_meta", rows=32, max_blocks_per_row=257) == [
        ("positions", 0),
        ("seq_slot", 128),
        ("slots", 256),
        ("seq_lens", 512),
        ("block_table", 768),
    ]
    # 3 streams of 5 tokens are 60 bytes, slots of 8 bytes begin at 64.
    found = first_bytes(page, "chunk_meta", tokens=5, streams=3, table_blocks=7)
    assert found == [
        ("positions", 0),
        ("slots", 64),
        ("block_table", 64 + 5 * 8),
        ("seq_len", 64 + 5 * 8 + 7 * 4),
    ]


SMALL = """\
arena: {class: Arena, package: small, label: arena, doc: "An arena.\\nOf two | parts."}
limits:
  max_tokens: {symbol: M, tokens: true, minimum: 1, default: 8, doc: Tokens.}
config:
  width:
    doc: "A *width*, see <b>docs</b> at https://example.org"
    aliases: [w]
    shard: heads
levers:
  splits:
    variable: SPLITS
    type: int
    words: {auto: AUTO}
    clamp: [1, 16]
    default: AUTO
    doc: Splits.
constants:
  AUTO: {value: 0, doc: A policy.}
groups:
  all: {method: zero_all, rows_method: zero_all_rows, doc: All.}
buffers:
  rows:
    doc: "[Rows](javascript:alert(1)) of `M`"
    when: width > 2
    otherwise: 16
    dtype: fp4_e2m1
    shape: [M, 3 * width]
    min_bytes: 8
    token_major: true
    zero: [all]
  parts:
    doc: Parts.
    regions:
      a: {bytes: width, doc: "A | b"}
      b: {when: width > 1, dtype: f32, shape: [2, splits], align: 8, doc: B.}
      c: {dtype: u8, shape: [3], align: 4, doc: C.}
trims:
  none: {doc: None of them., when: width == 9, buffers: [parts]}
"""


def test_the_page_of_a_small_schema() -> None:
    expected = (Path(__file__).parent / "small_reference.md").read_text("utf-8")
    assert reference(schema_of(SMALL), "small.yaml") == expected


def test_the_overview_names_the_groups_of_regions() -> None:
    text = SMALL.replace(
        "    doc: Parts.\n", "    doc: Parts.\n    zero: [{all: [a, c]}]\n"
    )
    page = reference(schema_of(text), "small.yaml")
    table, sections = page.split("\n### ", 1)
    (row,) = [line for line in table.splitlines() if "(#buffer-parts) |" in line]
    by_all = "of it by [`all`](#group-all)"
    assert row.split(" | ")[5] == f"`a` {by_all}, `c` {by_all}"
    for region in "ac":
        assert f"- `{region}` of it cleared by [`all`](#group-all)\n" in sections


HOSTILE = [
    "<script>alert(1)</script>",
    "a | b | c\n\n| d |\n| --- |",
    "![x](https://example.org/a.png)",
    "--> <!--",
    "```\nfence",
    "# heading\n- list",
    "</td></tr></table><img src=x>",
]


@pytest.mark.parametrize("doc", HOSTILE)
def test_a_hostile_doc_is_words_wherever_it_stands(doc: str) -> None:
    text = SMALL
    for own in re.findall(r"doc: (\"[^\n]*?\"(?=[,}\n])|[A-Z][\w ]*\.)", SMALL):
        text = text.replace(f"doc: {own}", f"doc: {doc!r}".replace("\\n", "\\n"))
    text = re.sub(r"doc: '(.*?)'(?=[,}\n])", lambda m: f'doc: "{m[1]}"', text)
    schema = schema_of(text)
    page = Page(reference(schema, "small.yaml"))
    assert page.words.count(" ".join(doc.split())) >= 10
    assert page.tags <= TAGS
    assert all(link.startswith("#") for link in page.links)


def test_the_name_of_a_schema_cannot_end_the_comment() -> None:
    first = reference(schema_of(SMALL), "a--><b>.yaml").splitlines()[0]
    assert first == "<!-- Generated by arenagen from a--?<b?.yaml. Do not edit. -->"


# The command, and the file.


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose one pair has a reference."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.arenagen.arenas]]\nschema = "small.yaml"\noutput = "out/small"\n'
        'docs = "docs/small.md"\n'
    )
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, result.output
    return result


def test_docs_prints_or_writes(here: Path) -> None:
    page = reference(schema_of(SMALL), "small.yaml")
    assert run("docs").stdout == run("docs", "small.yaml").stdout == page
    assert run("docs", "-o", "a/b.md").stdout == "a/b.md: added\n"
    assert (here / "a/b.md").read_text() == page
    before = (here / "a/b.md").stat()
    assert run("docs", "-o", "a/b.md").stdout == "a/b.md: unchanged\n"
    assert (here / "a/b.md").stat().st_mtime_ns == before.st_mtime_ns
    (here / "a/b.md").write_text(page + "more\n")
    assert run("docs", "-o", "a/b.md").stdout == "a/b.md: changed\n"
    assert os.listdir(here / "a") == ["b.md"]


def test_docs_keeps_what_others_wrote(here: Path) -> None:
    (here / "README.md").write_text("# Mine\n")
    assert run("docs", "-o", "README.md", code=2).stderr == (
        "error: README.md: not written by arenagen, and in the way; move it, or choose "
        "another file\n"
    )
    assert (here / "README.md").read_text() == "# Mine\n"
    (here / "folder").mkdir()
    (here / "link.md").symlink_to("README.md")
    for path in ("folder", "link.md"):
        told = run("docs", "-o", path, code=2).stderr
        assert told == f"error: {path}: is not a plain file\n"
    assert (here / "README.md").read_text() == "# Mine\n"
    assert "where a folder is due" in run("docs", "-o", "small.yaml/x", code=2).stderr
    # An empty file is nobody's.
    (here / "empty.md").write_text("")
    assert run("docs", "-o", "empty.md").stdout == "empty.md: changed\n"
    assert sorted(os.listdir(here)) == [
        "README.md",
        "empty.md",
        "folder",
        "link.md",
        "pyproject.toml",
        "small.yaml",
    ]


def test_generate_writes_the_reference_and_check_holds_it(here: Path) -> None:
    assert "missing: docs/small.md\n" in run("check", code=1).stdout
    assert run("generate").stdout.endswith("docs/small.md: added\n")
    assert run("generate").stdout.endswith("docs/small.md: unchanged\n")
    assert run("check").stdout.endswith("docs/small.md: as small.yaml says\n")
    page = here / "docs/small.md"
    page.write_text(page.read_text().replace("A policy.", "A rule."))
    result = run("check", code=1)
    assert '-| <a id="constant-AUTO"></a>`AUTO` | `0` | A rule. |\n' in result.stdout
    assert '+| <a id="constant-AUTO"></a>`AUTO` | `0` | A policy. |\n' in result.stdout
    assert result.stderr == (
        "docs/small.md: not as small.yaml says; run `arenagen generate`\n"
    )
    assert run("generate").stdout.endswith("docs/small.md: changed\n")
    page.write_text("mine\n")
    assert "foreign: docs/small.md is not arenagen's\n" in run("check", code=1).stdout
    assert "docs/small.md: not written by" in run("generate", code=2).stderr
    assert page.read_text() == "mine\n"


def test_an_output_of_ones_own_has_no_reference(here: Path) -> None:
    assert "small.md" not in run("generate", "small.yaml", "-o", "other").stdout
    assert not (here / "docs").exists()


@pytest.mark.parametrize(
    "line, message",
    [
        ("docs = 3", "arena 2: all paths are texts"),
        ('docs = ""', "arena 2: all paths are texts"),
        (
            'docs = "docs/x/../small.md"',
            "arenas 1 and 2 have the same docs, docs/x/../",
        ),
        (
            'doc = "x.md"',
            "than `schema`, `output` and, where it has a reference, `docs`",
        ),
    ],
)
def test_a_broken_pair_is_told(here: Path, line: str, message: str) -> None:
    with (here / "pyproject.toml").open("a") as file:
        file.write(
            f'[[tool.arenagen.arenas]]\nschema = "b.yaml"\noutput = "out/b"\n{line}\n'
        )
    for command in ("generate", "check"):
        assert message in run(command, code=2).stderr
