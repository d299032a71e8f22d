"""The language of the templates, against Jinja itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest

from arenagen import resources
from arenagen.commands.schemas import load_checked
from arenagen.lower import lower
from arenagen.lower_families import lower_families
from arenagen.render import FILTERS, MODULES
from arenagen.template import Template, TemplateError

ROOT = Path(__file__).parents[2]


def by_jinja(text: str, **variables: object) -> str:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(FILTERS)
    return environment.from_string(text).render(**variables)


@pytest.mark.parametrize("name", ["metrale", "atlas"])
def test_every_template_says_what_it_says_to_jinja(name: str) -> None:
    checked = load_checked(ROOT / "schema" / f"{name}.yaml")
    assert checked.families is not None
    families = lower_families(checked.families, checked.schema)
    views: dict[str, object] = dict.fromkeys(MODULES, lower(checked.schema))
    views["families"] = families
    for module, view in views.items():
        text = resources.template(module)
        assert Template(text, FILTERS).render(view=view) == by_jinja(text, view=view)


THING = SimpleNamespace(
    name="a%s", other="b{{", none=None, yes=True, no=(), all={"x": ("1", "2")}
)
EACH = SimpleNamespace(
    things=[THING, SimpleNamespace(**{**vars(THING), "name": "c", "no": (1,)})]
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "100% {{ view.name }} and {{ view.other }}\n",
        "{{ view.none }}{{ view.yes }}{{ view.no }}",
        "a\n  {% if view.yes %}  \n  b\n  {% else %}\n  c\n  {% endif %}\nd\n",
        "{% if not view.no %}\nb\n{% else %}\nc\n{% endif %}\n\n",
        "a{% if view.no %}b{% endif %}c {% if view.yes %}\nb{% endif %}\n\nc",
        "{% for one in view.all.x %}\n{{ one }}, {{ view.name }}\n{% endfor %}\n",
        "f(\n  {% for one in view.all.x %}, {{ one }}{% endfor %}\n)\n",
        "a\n  {% if view.yes %}  {% endif %}b {% if view.yes %}\n\n{% endif %}\n",
        " {{ view.name }} {% if view.no %}\n b\n {% endif %} c\n\t{% if view.no %}"
        "{% endif %}",
        "{{ view.name | docstring(4) }} {{ view.all.x | literal }}",
        "{{ view.name | argument(view.other, 4) }}\n",
    ],
)
def test_a_text_says_what_it_says_to_jinja(text: str) -> None:
    assert Template(text, FILTERS).render(view=THING) == by_jinja(text, view=THING)


def test_loops_nest_and_see_what_is_around_them() -> None:
    text = (
        "{% for thing in view.things %}\n{% for one in thing.all.x %}\n"
        "{% if thing.no %}\n{{ thing.name }}{{ one }}\n{% endif %}\n{% endfor %}\n"
        "{{ thing.name }} {{ thing.other }}\n{% endfor %}\n"
    )
    found = Template(text, FILTERS).render(view=EACH)
    assert found == "a%s b{{\nc1\nc2\nc b{{\n" == by_jinja(text, view=EACH)


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in b + c %}\n{% endfor %}\n",
        "{% for a in b %}\n",
        "{% if a %}\n{% endfor %}\n",
        "{% if a %}\n{% else %}\n",
        "{% else %}\n",
        "{% set a = 1 %}\n",
        "{{ a + b }}",
        "{{ a | docstring(4) | literal }}",
        "{{a}}",
        "{# a comment #}",
        "{{- a }}",
        "{%- if a %}{% endif %}",
        "{% if a -%}{% endif %}",
    ],
)
def test_what_is_not_of_the_language_is_refused(text: str) -> None:
    with pytest.raises(TemplateError):
        Template(text, FILTERS)


@pytest.mark.parametrize(
    "text", ["{{ view.missing }}", "{{ other }}", "{% if view.missing %}{% endif %}"]
)
def test_what_is_missing_is_no_empty_text(text: str) -> None:
    with pytest.raises((AttributeError, KeyError)):
        Template(text, FILTERS).render(view=THING)
