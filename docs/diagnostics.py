"""Write docs/diagnostics.md from the catalogue of codes and the corpus of bad schemas.

`python docs/diagnostics.py`. Each code is shown by the smallest file of tests/errors
that has it; the leading comment of such a file is what arenagen says of it.
"""

from __future__ import annotations

from pathlib import Path

from arenagen.catalogue import SECTIONS, Code

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/diagnostics.md"
INTRODUCTION = """\
# Diagnostics

Everything that arenagen says of a schema has a code, and the code keeps its meaning.
An error stops generation; a warning does not, unless `arenagen lint --strict` asks.
One run tells all problems of a file, in order of place, none of them twice and none
that another one causes.

```console
$ arenagen lint --explain AR041
error AR041: unknown name

A formula reads a name that no section declares.
...
```

This page is written by `make docs`.

## For machines

`arenagen lint --format json` prints a list of problems. Lines and columns count from 1,
columns in characters; `hint` may be empty, and `related` names further places.

```console
$ sed 's/, vocab_size\\]/, vocab_sizes]/' schema/metrale.yaml > bad.yaml
$ arenagen lint --format json bad.yaml
[
  {
    "code": "AR041",
    "severity": "error",
    "message": "nothing is named `vocab_sizes`",
    "file": "bad.yaml",
    "line": ...,
    "column": 75,
    "length": 11,
    "hint": "did you mean `vocab_size`?",
    "related": []
  }
]
```

`--format sarif` prints a SARIF 2.1.0 log, which code review services and editors show
at the lines that it names. Its rules are the codes of this page. The exit code is that
of the text: 0 without errors, 2 with them, 1 for warnings under `--strict`.
"""


def problems_of(path: Path) -> list[str]:
    """The problems of a file of the corpus, as its leading comment shows them."""
    text = path.read_bytes().decode("utf-8", "replace")
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines).split("\n\n")


def examples(corpus: list[Path]) -> dict[str, str]:
    """The problem that shows each code: the first in the smallest file that has it.

    A file that stands alone shows it rather than one that extends another.
    """
    shown: dict[str, str] = {}

    def rank(path: Path) -> tuple[bool, int, str]:
        data = path.read_bytes()
        return b"{extends:" in data, len(data), path.name

    for path in sorted(corpus, key=rank):
        for problem in problems_of(path):
            code = problem.split(" ", 3)[2].rstrip(":")
            shown.setdefault(code, problem)
    return shown


def page(corpus: list[Path]) -> str:
    """The text of docs/diagnostics.md."""
    shown = examples(corpus)
    parts = [INTRODUCTION]
    for title, codes in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(code, shown.get(code.code)) for code in codes]
    return "\n".join(parts)


def _entry(code: Code, problem: str | None) -> str:
    warning = " (warning)" if code.severity == "warning" else ""
    lines = [f"### {code.code}: {code.title}{warning}", "", code.meaning, ""]
    lines += [f"Cure: {code.cure}", ""]
    if problem is not None:
        lines += ["```problem", problem, "```", ""]
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    corpus = sorted((ROOT / "tests/errors").rglob("*.yaml"))
    PAGE.write_text(page(corpus), encoding="utf-8")


if __name__ == "__main__":
    main()
