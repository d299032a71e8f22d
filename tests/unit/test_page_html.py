"""The HTML page as a file: well formed, closed to the network, escaped, and written.

The page is read back with the standard library's parser; the numbers in it are held
against those that `arenagen sizes` prints.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arenagen.cli import cli
from arenagen.page.render import MARK
from arenagen.resources import page_files

ROOT = Path(__file__).resolve().parents[2]
METRALE = ROOT / "schema/metrale.yaml"
DATA = ROOT / "tests/data"
MODELS = ("GLM-5.3-Flash", "Qwen3-32B")
VOID = {"link", "meta", "input", "br"}

Attributes = dict[str, str | None]


def run(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def configs(*names: str) -> list[str]:
    return [part for name in names for part in ("-c", str(DATA / f"{name}.json"))]


# Pages that are made in no time.
ONE = ("-s", METRALE, *configs("Qwen3-32B"), "-M", "1")
TWO = ("-s", METRALE, *configs("Qwen3-32B"), "-M", "2")


def written(path: Path, *arguments: str | Path) -> str:
    run("report", *arguments, "-o", path)
    return path.read_text(encoding="utf-8")


class Page(HTMLParser):
    """The elements of a page; fails where one is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, Attributes]] = []
        self.texts: dict[str, list[str]] = {}
        self.stack: list[str] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack and self.stack.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise AssertionError(f"<{tag}/> is no HTML")

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.stack[-1] if self.stack else "", []).append(data)

    def all(self, tag: str) -> Iterator[Attributes]:
        return (attributes for name, attributes in self.elements if name == tag)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of two models."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    return written(path, "-s", METRALE, *configs(*MODELS), "-M", "512")


def embedded(text: str) -> list[dict[str, object]]:
    (data,) = re.findall(
        r'<script type="application/json" id="data">(.*)</script>', text
    )
    found: list[dict[str, object]] = json.loads(data)
    return found


def test_the_page_is_well_formed(text: str) -> None:
    page = Page(text)
    ids = [each["id"] for _, each in page.elements if "id" in each]
    assert len(set(ids)) == len(ids)
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "for"):
            if name in attributes:
                assert attributes[name] in ids
    for link in page.all("a"):
        assert (link["href"] or "").removeprefix("#") in ids
    for head in page.all("th"):
        assert head["scope"] in ("col", "row")
    followed = pairwise(page.elements)
    for (name, attributes), (after, _) in followed:
        named = {"aria-label", "aria-labelledby"} & attributes.keys()
        assert name != "table" or named or after == "caption", attributes
    assert sum(name == "h1" for name, _ in page.elements) == 1
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_charts_have_an_alternative_or_are_hidden(text: str) -> None:
    page = Page(text)
    for svg in page.all("svg"):
        # Parts of a drawing are what they are in.
        nested = "x" in svg or svg.get("class") == "lines"
        assert nested or svg.get("role") == "img" or svg.get("aria-hidden") == "true"
    images = [each for _, each in page.elements if each.get("role") == "img"]
    assert len(images) == 2 * len(MODELS)
    assert all(each.get("aria-label") for each in images)


def test_the_page_may_load_nothing(text: str) -> None:
    page = Page(text)
    (policy,) = (
        each["content"]
        for each in page.all("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind in ("style", "script"):
        (content,) = re.findall(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"
    for tag, attributes in page.elements:
        assert tag not in {"iframe", "img", "object", "embed", "base", "form"}
        assert not {"src", "srcset", "action", "style"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        if tag == "link":
            assert attributes["href"] == "data:,"
    assert "url(" not in page_files()["page.css"]
    assert "://" not in text


def test_the_data_is_what_sizes_prints(text: str) -> None:
    shown = run(
        *("sizes", "-s", METRALE, *configs(*MODELS), "-M", "512", "--format", "json")
    )
    data = embedded(text)
    assert [each["sizes"] for each in data] == json.loads(shown.stdout)


def test_the_data_is_what_zero_plan_prints(text: str) -> None:
    options = ("-s", METRALE, *configs(*MODELS), "-M", "512", "--placement", "slab")
    for place, arguments in enumerate(
        ((), ("-t", "1"), ("--method", "zero_prefill_essentials"))
    ):
        shown = run("zero-plan", *options, "--format", "json", *arguments).stdout
        for found, wanted in zip(embedded(text), json.loads(shown), strict=True):
            plan = found["zeroing"][place]  # type: ignore[index]
            assert plan["ranges"] == wanted["ranges"]
            assert plan["memsets"] == wanted["memsets"]


def test_the_tables_hold_the_exact_bytes(text: str) -> None:
    for each, article in zip(embedded(text), text.split("<article")[1:], strict=True):
        buffers = each["sizes"]["buffers"]  # type: ignore[index]
        rows = re.findall(r'data-number="(\d+)"', article)
        assert rows == [str(buffer["bytes"]) for buffer in buffers]
        names = re.findall(r'data-cell="name">(\w+)<', article)
        assert names == [buffer["name"] for buffer in buffers]


HOSTILE = "</script><script>alert(1)</script>'\"&<b>"
SCHEMA = """\
arena: {{class: A, package: a_arena, label: an arena, doc: {doc}}}
limits:
  max_tokens: {{symbol: M, tokens: true, minimum: 1, default: 4, doc: {doc}}}
levers:
  word: {{variable: WORD, type: str, default: {doc}, doc: {doc}}}
config:
  model_type: {{type: str, doc: {doc}}}
  width: {{doc: {doc}}}
groups:
  all: {{method: zero_all, doc: {doc}}}
buffers:
  rows:
    doc: {doc}
    dtype: u8
    zero: [all]
    when: {gate}
    uses:
      one: {{shape: [M, width], doc: {doc}}}
      two: {{bytes: 4, doc: {doc}}}
trims:
  short: {{doc: {doc}, when: width > 9, buffers: [rows]}}
"""
FAMILIES = """\
families:
  plain: {doc: Plain., model_types: [plain], keys: {width: {}, model_type: {type: str}}}
"""


@pytest.fixture
def hostile(tmp_path: Path) -> list[str | Path]:
    """A schema and a config whose every free text tries to leave its place."""
    quoted = json.dumps(HOSTILE)
    gate = json.dumps(f"word != {HOSTILE.split(chr(39))[0]!r} or width > 0")
    schema = SCHEMA.format(doc=quoted, gate=gate)
    schema = schema.replace("an arena", '"<i>an arena</i>"')
    schema = schema.replace("class: A,", "class: A, families: families.yaml,")
    (tmp_path / "schema.yaml").write_text(schema, encoding="utf-8")
    (tmp_path / "families.yaml").write_text(FAMILIES, encoding="utf-8")
    config = tmp_path / '<img src=x>&\u202e".json'
    config.write_text('{"model_type": "plain", "width": 8}')
    return ["-s", tmp_path / "schema.yaml", "-c", config]


def test_hostile_texts_stay_texts(hostile: list[str | Path], tmp_path: Path) -> None:
    text = written(
        tmp_path / "report.html", *hostile, "--lever", f"word={HOSTILE}\u202e"
    )
    page = Page(text)
    assert not any(
        name in ("b", "i", "img")
        for name, attributes in page.elements
        if "class" not in attributes
    )
    # The data and the script of the page, and no other.
    assert len(list(page.all("script"))) == 2
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    # What was spelled is shown, with what does not show spelled out.
    assert HOSTILE in page.texts["small"]
    told = [each for texts in page.texts.values() for each in texts]
    assert any(f"{HOSTILE}\\u{{202e}}" in each for each in told)
    assert any(each == '<img src=x>&\\u{202e}".json' for each in page.texts["h2"])
    (data,) = embedded(text)
    assert data["sizes"]["config"] == '<img src=x>&\u202e".json'  # type: ignore[index]


def test_an_arena_without_memory_has_a_page(
    hostile: list[str | Path], tmp_path: Path
) -> None:
    same = HOSTILE.split("'")[0]
    options = ("-M", "1", "--set", "width=0", "--lever", f"word={same}")
    page = Page(written(tmp_path / "report.html", *hostile, *options))
    assert "0 B" in page.texts["span"]
    assert any("there is no curve" in each for each in page.texts["p"])


def test_what_was_given_over_the_config_is_told(
    hostile: list[str | Path], tmp_path: Path
) -> None:
    page = Page(written(tmp_path / "report.html", *hostile, "--set", "width=3"))
    assert "width=3" in page.texts["code"]


def test_the_bytes_depend_on_the_input_alone(tmp_path: Path) -> None:
    found = set()
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.html"
        subprocess.run(
            [
                *(sys.executable, "-m", "arenagen", "report", "-o", path),
                *("-s", METRALE, *configs("Qwen3-Next-80B-A3B-Thinking")),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        found.add(path.read_bytes())
    assert len(found) == 1
    assert found.pop().isascii() is False


# The command.


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "report.html"
    shown = run("report", *ONE, "-o", path).stdout
    size = path.stat().st_size
    assert shown == f"{path}: 1 config, {size:,} bytes\n"
    assert path.read_text(encoding="utf-8").startswith(MARK)
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]


def test_a_page_of_ours_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    first = written(path, *ONE)
    before = path.stat()
    assert written(path, *ONE) == first
    assert path.stat().st_ino == before.st_ino
    assert written(path, *TWO) != first
    path.write_text("")
    assert written(path, *ONE) == first


def test_a_file_of_someone_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.html"
    path.write_text("mine")
    done = run("report", *ONE, "-o", path, code=2)
    assert done.stderr == (
        f"error: {path}: not written by arenagen, and in the way; move it, or choose "
        "another file\n"
    )
    assert path.read_text() == "mine"


def test_what_is_no_plain_file_stays(tmp_path: Path) -> None:
    target = tmp_path / "target.html"
    link = tmp_path / "link.html"
    link.symlink_to(target)
    for path in (tmp_path, link):
        done = run("report", *ONE, "-o", path, code=2)
        assert done.stderr == f"error: {path}: is not a plain file\n"
    assert link.is_symlink() and not target.exists()


def test_a_page_that_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    first = written(path, *ONE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("arenagen.disk.os.fsync", full)
    done = run("report", *TWO, "-o", path, code=2)
    assert done.stderr == (
        f"error: {path}: cannot be written: {os.strerror(errno.ENOSPC)}\n"
    )
    assert path.read_text(encoding="utf-8") == first
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-M", "0"), "max_batch_tokens=0; at least 1"),
        (("--set", "hidden_size=4611686018427387904"), "is more than 2**63 - 1"),
        (("--lever", "nothing=1"), "no lever is named `nothing`"),
    ],
)
def test_bad_input_writes_nothing(
    arguments: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    done = run(
        *("report", "-s", METRALE, *configs("Qwen3-32B"), *arguments, "-o", path),
        code=2,
    )
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_page_has_to_be_named() -> None:
    done = run("report", "-s", METRALE, *configs("Qwen3-32B"), code=2)
    assert "Missing option '-o' / '--output'" in done.stderr


# The style.


def colours(scheme: str) -> dict[str, tuple[float, float, float]]:
    """The colours of a scheme by name, each channel from 0 to 1."""
    style = page_files()["page.css"]
    light, rest = style.split("@media (prefers-color-scheme: dark)", 1)
    dark, printed = rest.split("@media print", 1)
    blocks = {"light": [light], "dark": [light, dark], "print": [light, printed]}
    found = {}
    for block in blocks[scheme]:
        for name, digits in re.findall(r"--([\w]+): #([0-9a-f]{3,6});", block):
            full = digits if len(digits) == 6 else "".join(2 * each for each in digits)
            red, green, blue = (int(full[k : k + 2], 16) / 255 for k in (0, 2, 4))
            found[name] = (red, green, blue)
    return found


def luminance(colour: tuple[float, float, float]) -> float:
    """Relative luminance as WCAG 2 defines it."""
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
        for each in colour
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_texts_and_marks_stand_out(scheme: str) -> None:
    found = colours(scheme)
    paper = found["paper"]
    for name in ("ink", "soft", "accent", "on", "off"):
        assert contrast(found[name], paper) >= 4.5, name
    tones = [name for name in found if re.fullmatch(r"t[0-5n]", name)]
    assert len(tones) == 7
    for name in tones:
        assert contrast(found[name], paper) >= 3, name
        # Labels on a tone that is mixed into the paper, also while it is pointed at.
        for part in (0.16, 0.24, 0.40):
            mixed = tuple(
                part * tone + (1 - part) * ground
                for tone, ground in zip(found[name], paper, strict=True)
            )
            assert contrast(found["ink"], mixed) >= 4.5, (name, part)  # type: ignore[arg-type]
