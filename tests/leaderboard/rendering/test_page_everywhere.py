"""The revealed page with an opened row: at every width, in light and dark, printed, and by keyboard alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from leaderboard.rendering.files import render
from tests.leaderboard.harness.browser import program
from tests.leaderboard.harness.site_fixtures import embed2scale_site

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(program() is None, reason="no Chromium; `make test` installs it"),
]

AXE = Path(__file__).parents[1] / "vendor" / "axe.min.js"
WIDTHS = (320, 390, 600, 768, 834, 1024, 1180, 1400, 2000)

# Pairs of visible texts that overlap. Boxes of the same element, and content that is scrolled out of its box, are left out.
OVERLAPS = """() => {
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const owner = node.parentElement;
        if (!node.data.trim() || !owner.checkVisibility() || owner.closest("script, style, svg, .sr, .skip, caption")) continue;
        const clip = owner.closest(".scroll")?.getBoundingClientRect();
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const box of range.getClientRects()) {
            if (box.width < 1 || (clip && (box.right <= clip.left + 1 || box.left >= clip.right - 1))) continue;
            texts.push({ owner, box, text: node.data.trim() });
        }
    }
    texts.sort((a, b) => a.box.top - b.box.top);
    const found = [];
    texts.forEach((one, at) => {
        for (let next = at + 1; next < texts.length && texts[next].box.top < one.box.bottom - 4; next += 1) {
            const other = texts[next];
            if (one.owner.closest("thead") !== other.owner.closest("thead")) continue; // a head that stays covers rows
            const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
            if (across > 1) found.push(`${one.text.slice(0, 40)} / ${other.text.slice(0, 40)}`);
        }
    });
    return found;
}"""


def opened(page: Page, wide: Path) -> Locator:
    """Open the page and its second row; return the phase."""
    page.goto((wide / "few.html").as_uri())
    page.locator("details.past summary").nth(1).click()
    page.locator("tr.told").wait_for()
    page.get_by_text("older updates").click()
    for fold in page.locator(".legend > summary, .fold > summary").all():
        fold.click()
    return page.locator("section.phase")


def findings(page: Page, rules: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return what axe-core finds, of any impact."""
    found = page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], ...rules})", rules)
    return [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found["violations"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_or_overlaps_and_axe_finds_nothing(page: Page, wide: Path, scheme: str) -> None:
    """At every width rank, team, mean Q and movement are visible, no texts overlap, and axe-core has no finding."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    opened(page, wide)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    rules = {} if scheme == "light" else {"runOnly": ["color-contrast"]}  # the others do not look at colors
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 860})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVERLAPS) == [], width
        for css in ("rank", "team", "q", "move"):
            box = page.locator(f"table.board thead th.{css}").bounding_box()
            assert box is not None, (width, css)
            assert 0 <= box["x"] < box["x"] + box["width"] <= width, (width, css)
        assert findings(page, rules) == [], width


def test_print_has_the_legends_and_no_controls(page: Page, wide: Path) -> None:
    """Printed from a dark screen of a phone's width, the page is light, explains its columns, and has no buttons."""
    page.emulate_media(color_scheme="dark")
    phase = opened(page, wide)
    page.reload()
    page.locator("tr.told").wait_for()
    page.set_viewport_size({"width": 390, "height": 860})
    assert not phase.locator(".legend dd").first.is_visible()
    page.get_by_role("button", name="Colors: system").click()
    page.get_by_role("button", name="Colors: light").click()  # now it is dark by choice
    page.emulate_media(media="print")
    for width in (390, 718, 1000):
        page.set_viewport_size({"width": width, "height": 1000})
        assert all(one.is_visible() for one in phase.locator(".legend dd").all())
        assert page.locator("input:visible, .theme:visible, .share:visible, .tools:visible").count() == 0
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 36, 46)"
        assert page.locator("tr.told").is_visible()
        assert page.evaluate(OVERLAPS) == [], width
    assert page.pdf(format="A4").startswith(b"%PDF")


def number(cell: str) -> float | None:
    """Read a cell of a column of numbers as its reader does."""
    found = re.match(r"(▲|▼)?\s*(?:up|down)?\s*(−?\d+(?:\.\d+)?)", cell.strip())
    if found is None:
        return None
    value = float(found[2].replace("−", "-"))
    return -value if found[1] == "▼" else value


@pytest.mark.parametrize("css", ["board", "heat", "sure", "views"])
def test_every_column_of_every_table_sorts(page: Page, wide: Path, css: str) -> None:
    """Each head is a button that sorts both ways and shows it; cells without a number come last; other tables do not change."""
    page.goto((wide / "few.html").as_uri())
    page.locator(".fold > summary").click()
    table = page.locator(f"table.{css}")
    others = page.locator(f"table:not(.{css}) th[aria-sort]")
    before = others.count()
    for head in table.locator("thead th[scope=col]").all():
        place = head.evaluate("head => head.cellIndex")
        for _ in range(2):
            head.get_by_role("button").press("Enter")
            way = head.get_attribute("aria-sort")
            assert table.locator("th[aria-sort]").count() == 1
            cells = table.locator("tbody tr").evaluate_all(
                "(rows, place) => rows.map(({ cells }) => cells[place].dataset.v ?? cells[place].textContent)",
                place,
            )
            if head.get_attribute("class") in ("team", "wide"):
                continue  # words, in the order of the reader's language
            values = [number(cell.replace("-", "−")) for cell in cells]
            known = [value for value in values if value is not None]
            assert values[: len(known)] == sorted(known, reverse=way == "descending")
    assert others.count() == before


def test_one_search_filters_everything(page: Page, wide: Path) -> None:
    """A long board has one field; it filters every table and the updates, counts entries, and unfolds what is folded."""
    page.goto((wide / "crowd.html").as_uri())
    field = page.get_by_role("searchbox")
    field.fill("TEAM 12")
    for css in ("board", "heat", "sure", "views"):
        assert page.locator(f"table.{css} tbody tr:visible bdi").all_inner_texts() == ["Team 12"]
    assert page.get_by_role("status").inner_text() == "1 of 100 entries"
    assert page.url.endswith("find=TEAM+12")
    assert all("Team 12" in one.inner_text() for one in page.locator(".changes > li:visible").all())
    field.fill("")
    assert page.locator("table.board tbody tr:visible").count() == 100


def test_all_controls_work_by_keyboard(page: Page, wide: Path) -> None:
    """Tab reaches every control in the order of the page and shows the focus; Enter, Space and arrows operate them all."""
    page.goto((wide / "few.html").as_uri())
    focused = "document.activeElement"
    seen: list[str] = []
    for _ in range(200):
        page.keyboard.press("Tab")
        what = page.evaluate(f"{focused}.outerHTML.slice(0, 160)")
        if page.evaluate(f"{focused} === document.body"):
            break
        seen.append(what)
        # A radio's box is invisible; what it labels has the ring.
        assert page.evaluate(
            f"[{focused}, {focused}.nextElementSibling].some((one) => one && getComputedStyle(one).outlineStyle !== 'none')"
        ), what
    reachable = page.locator(
        "a[href]:visible, button:visible, input[type=search]:visible, summary:visible, [tabindex='0']:visible"
    ).count()
    assert len(seen) == reachable + 1  # and one radio of the two

    page.locator("a.skip").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.value") == "rank"
    page.keyboard.press("ArrowRight")
    assert page.locator("table.board th.q").get_attribute("aria-sort") == "descending"
    while page.evaluate(f"!{focused}.closest('.past')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("tr.told").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent") == "Link to this row"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    page.locator("tr.told").wait_for(state="detached")


def test_only_links_to_phases_change_the_shown_phase(page: Page, tmp_path: Path) -> None:
    """Links to phases keep sort, search and team; a link to another place on the page does not change the phase."""
    index = tmp_path / "index.html"
    index.write_bytes(render(embed2scale_site(), readme=None)["index.html"])
    page.goto(f"{index.as_uri()}#dev?team=KTH+and+Friends&sort=team-")
    page.get_by_role("link", name="Test phase").click()
    dev, test = page.locator("section#dev"), page.locator("section#test")
    expect(test.locator("th.team").first).to_have_attribute("aria-sort", "descending")
    expect(test.locator("details.past[open] bdi")).to_have_text("KTH and Friends")
    assert "#test?team=KTH+and+Friends&sort=team-" in page.url
    page.evaluate("location.hash = '#dev'")
    expect(dev.locator("th.rank")).to_have_attribute("aria-sort", "ascending")
    for elsewhere in ("#check", "#content"):
        page.evaluate(
            "place => new Promise((done) => { addEventListener('hashchange', done, {once: true}); location.hash = place; }).then(() => 0)",
            elsewhere,
        )
        expect(dev).to_be_visible()
        expect(test).to_be_hidden()
    dev.locator("th.q button").click()
    assert page.url.endswith("#dev?sort=q-")
    page.set_viewport_size({"width": 1180, "height": 700})
    page.goto("about:blank")
    page.goto(f"{index.as_uri()}#test")
    assert page.evaluate("scrollY") == 0
