"""Problems as a SARIF 2.1.0 log, which code review tools show at their place.

Columns count characters, as everywhere in arenagen, which the log declares. A file
below the working folder has a relative URI, and nothing is said about where that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from urllib.parse import quote

from .catalogue import CODES
from .errors import Problem, Span

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# The name by which code review services know the folder of the sources.
_ROOT = "%SRCROOT%"


def as_sarif(problems: Iterable[Problem], version: str) -> dict[str, object]:
    """The log of one run of arenagen `version`; its rules are those that are broken."""
    problems = list(problems)
    broken = sorted({problem.code for problem in problems})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "arenagen",
                        "version": version,
                        "rules": [_rule(code) for code in broken],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {
                    _ROOT: {"description": {"text": "The folder that arenagen ran in."}}
                },
                "results": [
                    _result(problem, broken.index(problem.code)) for problem in problems
                ],
            }
        ],
    }


def _rule(code: str) -> dict[str, object]:
    kind = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": f"{kind.title}."},
        "fullDescription": {"text": kind.meaning},
        "help": {"text": kind.cure, "markdown": kind.cure},
        "defaultConfiguration": {"level": kind.severity},
    }


def _result(problem: Problem, rule: int) -> dict[str, object]:
    text = problem.message
    if problem.hint:
        text += f" (hint: {problem.hint})"
    result: dict[str, object] = {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": problem.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _place(problem.span)}],
    }
    if problem.related:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _place(span),
                "message": {"text": label},
            }
            for number, (label, span) in enumerate(problem.related, start=1)
        ]
    return result


def _place(span: Span) -> dict[str, object]:
    path = PurePath(span.file)
    artifact = (
        {"uri": path.as_uri()}
        if path.is_absolute()
        else {"uri": quote(path.as_posix()), "uriBaseId": _ROOT}
    )
    return {
        "artifactLocation": artifact,
        "region": {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.line,
            "endColumn": span.column + span.shown_length,
        },
    }
