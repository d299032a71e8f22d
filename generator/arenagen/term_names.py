"""What a local is called that holds a term: its operands, joined as they are read."""

from __future__ import annotations

from .formula import Binary, Call, Compare, Int, Logic, Name, Str, Unary
from .terms import Node, Terms

# A longer name tells less than that of what the term is a part of.
_LONGEST = 40
_WORDS = {
    "+": "plus",
    "-": "minus",
    "//": "over",
    "%": "mod",
    "==": "is",
    "!=": "is_not",
    "<": "below",
    "<=": "at_most",
    ">": "above",
    ">=": "at_least",
    "in": "in",
    "not in": "not_in",
}


def term_name(terms: Terms, node: Node) -> str | None:
    """A name for a term, such as `M_hidden_size` or `cdiv_width_block`, if it has one.

    A product is its factors, then `x2` for a number; rounding is by its function.
    """
    name = _Reading(terms).words(node)
    return name if name and len(name) <= _LONGEST and not name[0].isdigit() else None


class _Reading:
    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def words(self, node: Node) -> str | None:
        """The term in words; None for one that takes too many."""
        if node in self.terms.names:
            return self.terms.names[node]
        term = self.terms[node]
        if rounded := self.rounded(node):
            function, value, step = rounded
            return self.joined(function, self.words(value), self.words(step))
        match term.form:
            case Name(name):
                word = name.rpartition(".")[2]
                return word.lower() if name in self.terms.constants else word
            case Int(value):
                return str(value) if value >= 0 else f"minus_{-value}"
            case Binary("*"):
                return self.product(node)
            case Binary(op) | Compare(op):
                left, right = map(self.words, term.parts)
                return self.joined(left, _WORDS[op], right)
            case Unary(op):
                word = "minus" if op == "-" else op
                return self.joined(word, self.words(term.parts[0]))
            case Logic(op):
                first, *others = map(self.words, term.parts)
                return self.joined(first, *(x for each in others for x in (op, each)))
            case Call("max" | "min" as function) if bound := self.bound(node):
                word = "at_least" if function == "max" else "at_most"
                return self.joined(word, *map(self.words, bound))
            case Call(function):
                arguments = [each for each in term.parts if self.is_worth_saying(each)]
                return self.joined(function.lstrip("."), *map(self.words, arguments))
        return None

    def bound(self, node: Node) -> tuple[Node, Node] | None:
        """The number and the term, of a largest or least of two."""
        numbers = [x for x in self.terms[node].parts if self.is_number(x)]
        others = [x for x in self.terms[node].parts if not self.is_number(x)]
        return (numbers[0], others[0]) if len(numbers) == len(others) == 1 else None

    def is_number(self, node: Node) -> bool:
        return isinstance(self.terms[node].form, Int) and node not in self.terms.names

    def is_worth_saying(self, node: Node) -> bool:
        """Whether an argument tells calls apart."""
        form = self.terms[node].form
        if isinstance(form, Name):
            return form.name != "config" and "=" not in form.name
        return not isinstance(form, Str)

    def joined(self, *words: str | None) -> str | None:
        return "_".join(each or "" for each in words) if all(words) else None

    def product(self, node: Node) -> str | None:
        words: list[str | None] = []
        number = ""
        for factor in self.factors(node):
            form = self.terms[factor].form
            if isinstance(form, Int) and self.is_number(factor):
                number = f"x{form.value}"
            else:
                words.append(self.words(factor))
        return self.joined(*words, *([number] if number else []))

    def factors(self, node: Node) -> list[Node]:
        """All factors, those of factors among them."""
        found: list[Node] = []
        for each in self.terms[node].parts:
            nested = self.terms[each].is_product and each not in self.terms.names
            if nested and not self.rounded(each):
                found += self.factors(each)
            else:
                found.append(each)
        return found

    def rounded(self, node: Node) -> tuple[str, Node, Node] | None:
        """The function, value and step of a division that rounds up."""
        term = self.terms[node]
        match term.form:
            case Binary("*") if len(term.parts) == 2:
                for steps, step in (term.parts, term.parts[::-1]):
                    inner = self.rounded(steps)
                    if inner and inner[0] == "cdiv" and inner[2] == step:
                        return ("align", inner[1], step)
            case Binary("//"):
                raised, step = term.parts
                value = self.value_below(raised, step)
                if value is not None:
                    return ("cdiv", value, step)
            case Unary("-"):
                (quotient,) = term.parts
                match self.terms[quotient].form:
                    case Binary("//"):
                        negated, step = self.terms[quotient].parts
                        if self.terms[negated].form == term.form:
                            return ("cdiv", self.terms[negated].parts[0], step)
        return None

    def value_below(self, raised: Node, step: Node) -> Node | None:
        """What was raised by one less than the step."""
        term = self.terms[raised]
        match term.form, self.terms[step].form:
            case Binary("+"), Int(size):
                value, less = term.parts
                return value if self.terms[less].form == Int(size - 1) else None
            case Binary("-"), Name():
                total, one = term.parts
                if self.terms[one].form == Int(1):
                    inner = self.terms[total]
                    if isinstance(inner.form, Binary) and inner.form.op == "+":
                        value, added = inner.parts
                        return value if added == step else None
        return None
