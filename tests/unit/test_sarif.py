"""SARIF logs: what the standard requires, for every bad schema of the corpus.

The required properties and the ranges are those of SARIF 2.1.0, written down by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from arenagen.catalogue import CODES
from arenagen.compile import Text, read_schema
from arenagen.errors import InputProblems, Problem, Span
from arenagen.sarif import as_sarif

CORPUS = sorted((Path(__file__).parents[1] / "errors").glob("*.yaml"))


def only_run(problems: list[Problem]) -> Any:
    log = json.loads(json.dumps(as_sarif(problems, "1.2.3")))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    return run


def assert_place(place: Any, sources: dict[str, list[str]]) -> None:
    artifact, region = place["artifactLocation"], place["region"]
    lines = sources[unquote(artifact["uri"])]
    assert region["startLine"] == region["endLine"] >= 1
    assert region["endColumn"] > region["startColumn"] >= 1
    line = lines[region["startLine"] - 1] if region["startLine"] <= len(lines) else ""
    # One past the end is where something is missing.
    assert region["startColumn"] <= len(line) + 1
    assert region["endColumn"] <= max(len(line) + 1, region["startColumn"] + 1)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_bad_schema_makes_a_log(path: Path) -> None:
    data = path.read_bytes()
    try:
        problems = list(read_schema(Text(path.name, data))[1])
    except InputProblems as error:
        problems = list(error.problems)
    run = only_run(problems)
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        assert rule["help"]["text"] == CODES[rule["id"]].cure
        assert rule["shortDescription"]["text"] and rule["fullDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning")
    sources = {path.name: data.decode("utf-8", "replace").split("\n")}
    for result, problem in zip(run["results"], problems, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == problem.code
        assert result["level"] == problem.severity
        assert problem.message in result["message"]["text"]
        (location,) = result["locations"]
        assert_place(location["physicalLocation"], sources)
        related = result.get("relatedLocations", [])
        assert [each["id"] for each in related] == [*range(1, len(related) + 1)]
        assert len(related) == len(problem.related)
        for each in related:
            assert each["message"]["text"]
            assert_place(each["physicalLocation"], sources)


def test_columns_count_characters_beyond_the_basic_plane() -> None:
    span = Span("s.yaml", 3, 5, 2, "x: \N{GRINNING FACE} ab")
    run = only_run([Problem("AR020", "unknown", span)])
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"]["startColumn"] == 5
    assert place["region"]["endColumn"] == 7


def test_a_token_over_lines_ends_with_its_first_line() -> None:
    span = Span("s.yaml", 3, 4, 100, "x: 'ab")
    run = only_run([Problem("AR020", "unknown", span)])
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"]["endColumn"] == 7


def test_a_file_elsewhere_has_a_uri_of_its_own() -> None:
    run = only_run([Problem("AR020", "unknown", Span("/some where/é.yaml", 1, 1))])
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///some%20where/%C3%A9.yaml"}
    assert urlsplit(artifact["uri"]).scheme == "file"


def test_nothing_wrong_is_a_log_without_results() -> None:
    run = only_run([])
    assert run["results"] == [] and run["tool"]["driver"]["rules"] == []
