"""An explanation as text or as plain data. Data in, text out; prints nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from .explain import Explanation, Sized, UseWork
from .model import Schema
from .report import human, one_line, title
from .trace import Worked, value_text
from .work import Step, Work

# The texts of a chain go on lines of their own where one line is longer than this.
WIDTH = 88


def explanation_text(found: Explanation, config: str) -> str:
    """The explanation for people; `config` names where the numbers come from."""
    # The extent, which comes first, is written out where there are numbers for it.
    details = found.details if found.full is None else found.details[1:]
    lines = [f"{found.name}: {one_line(found.doc)}"]
    lines += [f"  {line}" for line in details]
    if found.full is not None:
        lines += ["", title(config, found.full.inputs)]
        lines += [*_verdict_lines(found.full), *_sized_lines(found.full, ())]
    if found.of_pass is not None:
        lines += ["", *_pass_lines(found, found.of_pass)]
    if found.terms:
        lines += ["", "depends on", *_term_lines(found)]
    shared = [
        (term.name, term.readers)
        for term in found.terms
        if term.kind in ("let", "function", "layout") and term.readers
    ]
    if shared:
        lines += ["", "shares"]
        lines += [f"  {name}: {', '.join(readers)}" for name, readers in shared]
    return "\n".join(lines) + "\n"


def _pass_lines(found: Explanation, of_pass: Sized) -> list[str]:
    called = "1 token" if found.tokens == 1 else f"{found.tokens} tokens"
    if of_pass is found.full or found.full is None:
        whole = f"a pass of {called}: {_bytes(of_pass.nbytes)}, the whole buffer"
        return [whole if found.token_major else f"{whole}, which is not token-major"]
    lines = [f"a pass of {called}: {_bytes(of_pass.nbytes)}"]
    return lines + _sized_lines(of_pass, found.full.steps)


def _verdict_lines(sized: Sized) -> list[str]:
    lines = [f"  {_bytes(sized.nbytes)}"]
    if sized.trimmed:
        lines[0] += f"; trimmed {_bytes(sized.trimmed)}"
    if sized.gate is not None:
        what = "the buffer exists" if sized.open else "no memory"
        if sized.otherwise is not None:
            what = "the placeholder is taken"
        lines += _chain("  gate", sized.gate, what)
    for trim in sized.trims:
        what = "empties the buffer" if trim.gate.value else "does not apply"
        lines += _chain(f"  trim {trim.name}", trim.gate, what)
    return lines


def _sized_lines(sized: Sized, known: Collection[Step]) -> list[str]:
    """What the bytes come from, without the steps that are known already."""
    lines = []
    if sized.otherwise is not None:
        lines += _chain("  otherwise", sized.otherwise)
    steps = [step for step in sized.steps if step not in known]
    if steps:
        lines += ["  steps"]
        for step in steps:
            lines += _step_lines(step, "    ")
    if sized.uses:
        lines += ["  uses"]
        for use in sized.uses:
            lines += _use_lines(use, sized)
    if sized.extent is not None:
        lines += _work_lines("  extent", sized.extent, ": ")
    if sized.floor is not None:
        what = "sets the size" if sized.floor_bites else "is reached anyway"
        lines += _chain("  floor", sized.floor, what)
    return lines


def _use_lines(use: UseWork, sized: Sized) -> list[str]:
    if use.extent is None:
        return _chain(f"    {use.name} is inactive", use.gate) if use.gate else []
    note = ""
    if use.name == sized.use:
        note = "wins"
        if sized.runner_up:
            note += f", {sized.margin:,} bytes ahead of {sized.runner_up}"
    lines = _work_lines(f"    {use.name}", use.extent, ": ", note)
    if use.gate is not None:
        lines += _chain("      gate", use.gate)
    return lines


def _step_lines(step: Step, indent: str) -> list[str]:
    if step.extent is not None:
        return _work_lines(f"{indent}{step.name}", step.extent, " = ")
    return _equal(f"{indent}{step.name}", " = ", _texts(step.worked), "")


def _work_lines(head: str, work: Work, sign: str, note: str = "") -> list[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    lines = _equal(head, sign, [*work.chain, f"{work.nbytes} bytes"], note)
    for step in work.steps:
        lines += _step_lines(step, indent)
    for part in work.parts:
        place = f"{indent}{part.name} at {part.offset}"
        if part.placed:
            place += f" ({' = '.join(part.placed)})"
        lines += _work_lines(place, part.extent, ": ")
    for name, gate in work.absent:
        lines += _chain(f"{indent}{name} is absent", gate)
    return lines


def _chain(head: str, worked: Worked, note: str = "") -> list[str]:
    return _equal(head, ": ", _texts(worked), note)


def _texts(worked: Worked) -> list[str]:
    value = value_text(worked.value)
    return [*worked.chain] if worked.chain[-1:] == (value,) else [*worked.chain, value]


def _equal(head: str, sign: str, texts: Sequence[str], note: str) -> list[str]:
    if note:
        texts = [*texts[:-1], f"{texts[-1]} ({note})"]
    line = head + sign + " = ".join(texts)
    if len(line) <= WIDTH or len(texts) == 1:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    return [head, *(f"{indent}= {text}" for text in texts)]


def _term_lines(found: Explanation) -> Iterator[str]:
    for term in found.terms:
        text = f"  {'config' if term.kind == 'field' else term.kind} {term.name}"
        if term.value is not None:
            text += f" = {value_text(term.value)}"
        elif term.formula and (found.full is None or term.kind == "let"):
            text += f" = {term.formula}"
        yield f"{text}: {one_line(term.doc)}"


def _bytes(nbytes: int) -> str:
    return (
        f"{nbytes:,} bytes ({human(nbytes)})" if nbytes >= 1024 else f"{nbytes} bytes"
    )


def explanation_data(
    found: Explanation, schema: Schema, config: str
) -> dict[str, object]:
    """The explanation for machines; without numbers where there is no config."""
    return {
        "schema": schema.arena.package,
        "config": config or None,
        "buffer": found.name,
        "doc": found.doc,
        "details": list(found.details),
        "sized": _sized_data(found.full),
        "pass_tokens": found.tokens,
        "pass": _sized_data(found.of_pass),
        "depends_on": [
            {
                "kind": term.kind,
                "name": term.name,
                "doc": term.doc,
                "formula": term.formula or None,
                "value": term.value,
                "shared_with": list(term.readers),
            }
            for term in found.terms
        ],
    }


def _sized_data(sized: Sized | None) -> dict[str, object] | None:
    if sized is None:
        return None
    return {
        "limits": dict(sized.inputs.limits),
        "tp": sized.inputs.tp,
        "bytes": sized.nbytes,
        "trimmed": sized.trimmed,
        "gate": _worked_data(sized.gate),
        "otherwise": _worked_data(sized.otherwise),
        "trims": [
            {"name": each.name, "doc": each.doc, "gate": _worked_data(each.gate)}
            for each in sized.trims
        ],
        "floor": _worked_data(sized.floor),
        "floor_bites": sized.floor_bites,
        "extent": _work_data(sized.extent),
        "uses": [
            {
                "name": each.name,
                "doc": each.doc,
                "active": each.extent is not None,
                "gate": _worked_data(each.gate),
                "extent": _work_data(each.extent),
            }
            for each in sized.uses
        ],
        "use": sized.use or None,
        "runner_up": sized.runner_up or None,
        "margin": sized.margin,
        "steps": [_step_data(each) for each in sized.steps],
    }


def _worked_data(worked: Worked | None) -> dict[str, object] | None:
    if worked is None:
        return None
    return {"chain": list(worked.chain), "value": worked.value}


def _step_data(step: Step) -> dict[str, object]:
    return {
        "name": step.name,
        "chain": list(step.worked.chain),
        "value": step.worked.value,
        "extent": _work_data(step.extent),
    }


def _work_data(work: Work | None) -> dict[str, object] | None:
    if work is None:
        return None
    return {
        "chain": list(work.chain),
        "bytes": work.nbytes,
        "dtype": work.dtype or None,
        "element_bits": work.bits or None,
        "shape": list(work.shape) if work.shape is not None else None,
        "steps": [_step_data(each) for each in work.steps],
        "regions": [
            {
                "name": part.name,
                "doc": part.doc,
                "offset": part.offset,
                "placed": list(part.placed),
                "extent": _work_data(part.extent),
            }
            for part in work.parts
        ],
        "absent": [
            {"name": name, "gate": _worked_data(gate)} for name, gate in work.absent
        ],
    }
