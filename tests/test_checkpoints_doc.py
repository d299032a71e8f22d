"""The page on checkpoints: its tables are those of the family table and the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arenagen.family_loader import load_families
from arenagen.load import load

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/checkpoints.md").read_text("utf-8")
TABLE = (ROOT / "schema/huggingface.yaml").read_text("utf-8")


def between(mark: str) -> str:
    return PAGE.split(f"<!-- {mark} -->\n")[1].split(f"<!-- /{mark} -->")[0].strip()


def families() -> str:
    """The table of families, as the page must show it."""
    rows = ["| `model_type` | |", "| --- | --- |"]
    for family in load_families(TABLE, "huggingface.yaml").families.values():
        if family.model_types:
            names = ", ".join(f"`{each}`" for each in family.model_types)
            why = f" Refused: {family.refuse}." if family.refuse else ""
            lacks = f" A warning says: {family.warn}." if family.warn else ""
            rows.append(f"| {names} | {family.doc}{why}{lacks} |")
    return "\n".join(rows)


def test_the_page_lists_every_family() -> None:
    assert between("families") == families()


def test_the_family_of_the_page_can_be_added() -> None:
    (entry,) = [part.split("```")[0] for part in PAGE.split("```yaml\n")[1:]]
    table = load_families(f"{TABLE}\n{entry}", "huggingface.yaml")
    schema = load((ROOT / "schema/metrale.yaml").read_text("utf-8"), "metrale.yaml")
    raw = json.loads((ROOT / "tests/data/Llama-3.1-8B.json").read_text("utf-8"))
    raw |= {"model_type": "my_model", "expert_count": 8, "active_experts": 2}
    with pytest.raises(Exception, match="my_model: moe_intermediate_size is missing"):
        table.canonical(raw, schema)
    fields = table.canonical(raw | {"moe_intermediate_size": 512}, schema).fields
    assert (fields["num_experts"], fields["num_experts_per_tok"]) == (8, 2)
    assert fields["head_dim"] == 128
