"""The HTML page in a real browser: what it shows, does and prints.

Skipped where there is no Chromium; the rest of the page's tests need none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from arenagen.cli import cli
from arenagen.report import human
from browser.chromium import Chromium, find_chromium

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("GLM-5.3-Flash", "Qwen3-32B")
OPTIONS = [
    *("-s", str(ROOT / "schema/metrale.yaml"), "-M", "512"),
    *(each for name in MODELS for each in ("-c", f"{ROOT}/tests/data/{name}.json")),
]
PROGRAM = find_chromium()

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")


def arenagen(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two models."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    arenagen("report", *OPTIONS, "-o", str(path))
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One browser for all tests."""
    assert PROGRAM is not None
    with Chromium(PROGRAM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def shown(chromium: Chromium, page: Path) -> Chromium:
    """The browser with the page just loaded on a desktop."""
    chromium.resize(1280)
    chromium.media()
    chromium.scripts(enabled=True)
    chromium.open(page)
    return chromium


def texts(browser: Chromium, selector: str) -> list[str]:
    """The text of every visible element of a selector."""
    found: list[str] = browser.evaluate(
        f"Array.from(document.querySelectorAll({json.dumps(selector)}))"
        ".filter((each) => each.checkVisibility()).map((each) => each.innerText.trim())"
    )
    return found


def click(browser: Chromium, selector: str) -> None:
    browser.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


def names(browser: Chromium) -> list[str]:
    return texts(browser, ".all [data-cell=name]")


def test_it_loads_itself_alone_and_logs_nothing(shown: Chromium, page: Path) -> None:
    assert shown.logged == []
    assert shown.requested == [page.as_uri()]


def test_the_policy_holds_off_what_a_text_could_slip_in(shown: Chromium) -> None:
    shown.evaluate("""(() => {
            const image = document.createElement("img");
            image.src = "https://example.invalid/pixel.png";
            const script = document.createElement("script");
            script.textContent = "window.slipped = true";
            document.body.append(image, script);
            return new Promise((failed) => { image.onerror = failed; });
        })()""")
    assert shown.evaluate("window.slipped") is None
    assert shown.blocked == ["csp"]


def test_the_numbers_are_those_of_sizes(shown: Chromium) -> None:
    sizes: list[dict[str, Any]] = json.loads(
        arenagen("sizes", *OPTIONS, "--format", "json")
    )
    for place, size in enumerate(sizes):
        click(shown, f"[role=tab]:nth-child({place + 1})")
        (total,) = texts(shown, ".exact .n")
        assert int(total.replace(",", "")) == size["total_bytes"]
        bytes_shown = texts(shown, ".all td:nth-child(2) span")
        assert dict(zip(names(shown), bytes_shown, strict=True)) == {
            each["name"]: f"{each['bytes']:,}" for each in size["buffers"]
        }
        bars = texts(shown, ".bars td:nth-child(3)")
        largest = sorted((each["bytes"] for each in size["buffers"]), reverse=True)
        assert bars == [f"{each:,}" for each in largest[: len(bars)]]


def test_tabs_show_one_config_at_a_time(shown: Chromium) -> None:
    assert texts(shown, "[role=tab]") == [f"{name}.json" for name in MODELS]
    assert texts(shown, "h2")[1:] == [f"{MODELS[0]}.json"]
    shown.evaluate("document.querySelector('[role=tab]').focus()")
    shown.press("ArrowRight")
    assert texts(shown, "h2")[1:] == [f"{MODELS[1]}.json"]
    assert texts(shown, "[aria-selected=true]") == [f"{MODELS[1]}.json"]
    assert shown.evaluate("document.activeElement.innerText") == f"{MODELS[1]}.json"
    assert shown.evaluate("location.hash") == "#config-2"
    shown.press("ArrowRight")
    assert texts(shown, "h2")[1:] == [f"{MODELS[0]}.json"]
    # The link of a config opens its tab.
    click(shown, ".compare a[href='#config-2']")
    shown.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert texts(shown, "h2")[1:] == [f"{MODELS[1]}.json"]


def test_a_column_sorts_both_ways_by_keyboard(shown: Chromium) -> None:
    order = names(shown)
    shown.evaluate("document.querySelector('[data-sort=number] button').focus()")

    def numbers() -> list[int]:
        found = texts(shown, ".all td:nth-child(2) span")
        return [int(each.replace(",", "")) for each in found]

    before = numbers()
    shown.press("Enter")
    assert numbers() == sorted(before, reverse=True)
    assert texts(shown, "[aria-sort=descending]") == ["Bytes"]
    shown.press("Enter")
    assert numbers() == sorted(before)
    assert texts(shown, "[aria-sort=ascending]") == ["Bytes"]
    assert shown.evaluate("document.activeElement.innerText") == "Bytes"
    click(shown, "[data-sort=place] button")
    assert names(shown) == order
    click(shown, "[data-sort=use] button")
    uses = [each for each in texts(shown, ".all td:nth-child(6)") if each]
    assert uses == sorted(uses) and uses


def test_the_filter_leaves_what_matches(shown: Chromium) -> None:
    everything = names(shown)
    shown.evaluate("""(() => {
            const filter = document.querySelector("[data-filter]");
            filter.value = "EXPERT bf16";
            filter.dispatchEvent(new Event("input"));
        })()""")
    left = names(shown)
    assert 3 <= len(left) < len(everything)
    assert {"expert_gate_out", "expert_up_out", "expert_down_out"} <= set(left)
    assert texts(shown, "[data-count]") == [f"{len(left)} of {len(everything)} buffers"]
    shown.evaluate("document.querySelector('[data-filter]').value = ''")
    click(shown, "[data-live]")
    live = texts(shown, ".all td:nth-child(2) span")
    assert len(live) == 15 and "0" not in live


def test_the_slider_tells_the_sizes_of_a_token_count(shown: Chromium) -> None:
    # 278.4 and 183.6 MiB, as the README's demo has them.
    assert texts(shown, "output") == ["M = 512: 278.40 MiB"]
    shown.evaluate("""(() => {
            const slider = document.querySelector("[type=range]");
            slider.value = 0;
            slider.dispatchEvent(new Event("input"));
        })()""")
    assert texts(shown, "output") == ["M = 1: 183.60 MiB"]
    assert texts(shown, "[data-size]")[0] == "183.60 MiB"
    assert (
        shown.evaluate("document.querySelector('.cursor').getAttribute('x1')") == "0%"
    )


def test_scripts_spell_sizes_as_the_page_does(shown: Chromium) -> None:
    sizes = [0, 1, 1023, 1024, 1025, 2**40 - 1, 2**40, 5 * 2**50 + 1]
    sizes += [2**20 * place // 8 for place in range(8, 2900)]
    spelled = shown.evaluate(f"{sizes}.map(human)")
    assert spelled == [human(each) for each in sizes]


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_nothing_scrolls_sideways(shown: Chromium, width: int) -> None:
    shown.resize(width)
    for place in range(len(MODELS)):
        click(shown, f"[role=tab]:nth-child({place + 1})")
        shown.evaluate(
            "document.querySelectorAll('details').forEach((e) => { e.open = true; })"
        )
        assert shown.evaluate("document.documentElement.scrollWidth") == width


def test_everything_is_there_without_scripts(shown: Chromium, page: Path) -> None:
    shown.scripts(enabled=False)
    shown.open(page)
    shown.scripts(enabled=True)
    assert texts(shown, "h2")[1:] == [f"{name}.json" for name in MODELS]
    assert len(names(shown)) == 2 * 46
    # No control that would do nothing.
    assert texts(shown, "button, input, output, [data-count]") == []


def test_keys_reach_every_control_in_order(shown: Chromium) -> None:
    reached = []
    for _ in range(60):
        shown.press("Tab")
        reached.append(shown.evaluate("""(() => {
                    const each = document.activeElement;
                    const style = getComputedStyle(each);
                    const seen = style.outlineStyle !== "none";
                    return [each.className || each.innerText || each.type, seen];
                })()"""))
        if reached[-1][0] == "Use":
            break
    words = [word for word, _ in reached]
    assert words[0] == "skip"
    wanted = [
        f"{MODELS[0]}.json",
        "range",
        "search",
        "checkbox",
        "Buffer",
        "Bytes",
        "Use",
    ]
    places = [words.index(each) for each in wanted]
    assert places == sorted(places)
    assert all(seen for _, seen in reached)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_colours_of_the_system(shown: Chromium, scheme: str) -> None:
    shown.media(color_scheme=scheme)
    ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(each) for each in re.findall(r"\d+", ground)]
    assert all(each > 200 for each in channels) == (scheme == "light")


def test_it_moves_only_where_that_is_welcome(shown: Chromium) -> None:
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    assert shown.evaluate(behaviour) == "smooth"
    shown.media(reduced_motion="reduce")
    assert shown.evaluate(behaviour) == "auto"


def test_every_config_is_printed(shown: Chromium) -> None:
    printed = shown.pdf()
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 6 <= pages <= 24
    shown.media("print")
    assert texts(shown, "h2")[1:] == [f"{name}.json" for name in MODELS]
    assert texts(shown, "button, input, output") == []
    shown.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    folded = "details > :nth-child(2)"
    assert len(texts(shown, folded)) == len(texts(shown, "details"))
    shown.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert texts(shown, folded) == []
