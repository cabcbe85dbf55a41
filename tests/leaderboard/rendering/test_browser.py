"""The page works in a real browser, with and without JavaScript, for eyes, keyboards and screen readers."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from leaderboard.rendering.files import render
from leaderboard.rendering.names import display_name
from leaderboard.rendering.page import CHANGES
from leaderboard.snapshot import Site
from tests.leaderboard.harness.browser import program
from tests.leaderboard.harness.site_fixtures import (
    embed2scale_site,
    methods_site,
    moving_site,
    simple_site,
)
from tests.leaderboard.rendering.test_files import world
from tests.leaderboard.rendering.test_names import HOSTILE

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(program() is None, reason="no Chromium; `make test` installs it"),
]

AXE = Path(__file__).parents[1] / "vendor" / "axe.min.js"
SITES = {
    "embed2scale": embed2scale_site,
    "moving": moving_site,
    "revealed": lambda: world(5, revealed=True),
    "hostile": lambda: simple_site(HOSTILE),
    "methods": methods_site,
    "hostile methods": lambda: methods_site(HOSTILE),
}
WIDTHS = (320, 360, 390, 600, 737, 759, 761, 768, 834, 1024, 1032, 1055, 1057, 1180, 1400, 2000)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write every site's files."""
    root = tmp_path_factory.mktemp("pages")
    for name, make in SITES.items():
        for path, content in render(make(), readme=None).items():
            target = root / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return root


def teams(page: Page) -> list[str]:
    """Return the visible names of the shown table, from top to bottom."""
    return page.locator("section:not([hidden]) table.board tbody tr:not([hidden]) th bdi").all_inner_texts()


def column(page: Page, css: str) -> list[str]:
    """Return the visible cells of a column."""
    return page.locator(
        f"section:not([hidden]) table.board tbody tr:not([hidden]) td.{css}"
    ).all_inner_texts()


def names_of(site: Site, phase: int) -> list[str]:
    """Return the names of a phase's newest board."""
    return [display_name(row.team) for row in site.phases[phase].history[-1].standings]


@pytest.fixture
def board(pages: Path) -> str:
    """Return the address of the development phase of 2025."""
    return f"{(pages / 'embed2scale' / 'index.html').as_uri()}#dev"


def test_the_board_can_be_ordered_by_mean_q(page: Page, board: str) -> None:
    """The toggle shows the ranking by mean Q."""
    page.goto(board)
    by_rank = names_of(embed2scale_site(), 0)
    assert teams(page) == by_rank
    shown = page.locator("section:not([hidden])")
    shown.get_by_role("radio", name="Mean Q").check()
    numbers = [float(text.split("\n")[0].replace("−", "-")) for text in column(page, "q")]
    assert numbers == sorted(numbers, reverse=True)
    assert column(page, "mean")[:4] == ["1", "2", "3", "4"]
    shown.get_by_role("radio", name="Dynamic rank").check()
    assert teams(page) == by_rank
    assert page.get_by_role("searchbox").count() == 0  # a short board needs none


def test_the_table_head_stays_visible_and_the_color_choice_is_remembered(page: Page, board: str) -> None:
    """The head stays while the reader scrolls, and light or dark is remembered."""
    page.set_viewport_size({"width": 1180, "height": 320})
    page.goto(board)
    head = page.locator("section:not([hidden]) .board thead th.team")
    page.locator("section:not([hidden]) .board tbody tr").nth(9).scroll_into_view_if_needed()
    box = head.bounding_box()
    assert box is not None
    assert abs(box["y"]) < 1
    background = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(background)
    button = page.get_by_role("button", name="Colors: system")
    button.click()
    assert page.evaluate(background) == light
    page.get_by_role("button", name="Colors: light").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="Colors: dark").click()
    assert page.evaluate(background) == light


def test_an_opened_row_has_an_address_that_restores_it(page: Page, board: str) -> None:
    """The row shows the team's submissions and why it moved; a second one is compared; the address restores both."""
    page.set_viewport_size({"width": 1180, "height": 800})
    page.goto(board)
    shown = page.locator("section#dev")
    first, second = names_of(embed2scale_site(), 0)[3:5]
    row = shown.locator("tbody tr", has_text=first).first
    row.locator("details.past summary").click()
    told = shown.locator("tr.told")
    told.wait_for()
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d\s+[−\d.]+\s+rank \d+", told.inner_text())
    alone = told.get_by_role("link", name="Link to this row").get_attribute("href")
    shown.locator("tbody tr", has_text=second).first.locator("details.past summary").click()
    pair = shown.locator("table.pair")
    pair.wait_for()
    assert pair.locator("thead bdi").all_inner_texts() == [first, second]
    ranks = pair.locator("tbody tr", has_text="Rank").first.locator("td").all_inner_texts()
    assert ranks == ["4", "5"]
    shown.get_by_role("columnheader", name="Team").get_by_role("button").click()
    assert told.first.locator("xpath=preceding-sibling::tr[1]").locator("bdi").inner_text() in (first, second)
    address, listed = page.url, teams(page)
    for restored, names in ((address, [first, second]), (board.replace("#dev", str(alone)), [first])):
        page.goto("about:blank")
        page.goto(restored)
        opened = shown.locator("details.past[open] > summary")
        opened.nth(len(names) - 1).wait_for()
        assert sorted(opened.all_inner_texts()) == sorted(names)
        assert (teams(page) == listed) == (restored == address)
    page.goto("about:blank")
    page.goto(board.replace("#dev", "#%zz?team=%00&sort=nothing-"))
    assert page.locator("section:not([hidden]) table.board tbody tr").count() > 3


def test_phases_moves_and_figure(page: Page, pages: Path) -> None:
    """Phases switch, moves have explanations, a row highlights its line, and older updates unfold."""
    page.goto((pages / "embed2scale" / "index.html").as_uri())
    site = embed2scale_site()
    assert teams(page) == names_of(site, 1)
    page.get_by_role("link", name="Development phase").click()
    assert teams(page) == names_of(site, 0)
    assert page.get_by_role("link", name="Development phase").get_attribute("aria-current") == "true"

    shown = page.locator("section#dev")
    why = shown.locator("details.why").first
    why.locator("summary").focus()
    page.keyboard.press("Enter")
    assert why.locator("p").is_visible()
    assert re.match(r"\d+ → \d+: ", why.locator("p").inner_text())
    page.keyboard.press("Escape")
    assert not why.locator("p").is_visible()

    assert shown.locator(".plot .lane").count() == len(names_of(site, 0))
    shown.locator("tbody tr").nth(2).hover()
    assert shown.locator(".plot .lane.lit title").text_content() == "3 TeamGrelous"
    assert shown.locator(".plot path.own").count() > 3
    assert shown.locator(".plot path.passive").count() > 3

    updates = len(site.phases[0].history)
    assert shown.locator(".changes > li:visible").count() == CHANGES
    shown.get_by_text(f"{updates - CHANGES} older updates").click()
    assert shown.locator(".changes > li:visible").count() == updates


def test_hostile_names_in_a_real_browser(page: Page, pages: Path) -> None:
    """Every hostile name is shown as its display name; none becomes markup or runs."""
    page.goto((pages / "hostile" / "index.html").as_uri())
    shown = page.locator("table.board tbody th bdi").all_text_contents()
    assert [name for name in shown if not name.startswith("(unnamed")] == [
        name for name in dict.fromkeys(map(display_name, HOSTILE)) if not name.startswith("(unnamed")
    ]
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, object, embed, form, link[rel=stylesheet]").count() == 0
    page.goto((pages / "hostile" / "leaderboard" / "dev-evolution-light.svg").as_uri())
    assert page.locator("svg .plot .lane").count() == 20
    assert page.locator("svg script, svg img").count() == 0


def test_methods_have_a_column_on_wide_screens(page: Page, pages: Path) -> None:
    """On a desktop they are a sortable column; on a phone the opened row shows them."""
    page.goto((pages / "methods" / "index.html").as_uri() + "#dev")
    shown = page.locator("section#dev")
    head = shown.get_by_role("columnheader", name="Method")
    head.get_by_role("button").click()
    named = [text for text in shown.locator("td.method bdi").all_inner_texts() if text]
    assert named == sorted(named, key=str.casefold)
    assert head.get_attribute("aria-sort") == "ascending"
    links = shown.locator("td.method a")
    assert set(links.all_inner_texts()) == {"paper", "code"}
    assert {link.get_attribute("rel") for link in links.all()} == {"noopener noreferrer nofollow ugc"}
    assert not shown.locator(".past .by").first.is_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    assert not head.is_visible()
    row = shown.locator("tr:has(td.method a)").first
    row.locator("details.past summary").click()
    shown.locator(".told .by").wait_for()
    assert shown.locator(".told .by a").first.is_visible()


def test_without_javascript(browser: Browser, pages: Path) -> None:
    """Without JavaScript all phases, rows, reasons and figures are visible, and there is no control without effect."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((pages / "embed2scale" / "index.html").as_uri())
        site = embed2scale_site()
        assert page.locator("table.board tbody th bdi").all_inner_texts() == [
            *names_of(site, 0),
            *names_of(site, 1),
        ]
        assert page.locator(".evolution:visible").count() == 2
        assert page.locator("button:visible, input:visible").count() == 0
        page.locator("details.why summary").first.click()
        assert page.locator("details.why p").first.is_visible()


def overhanging(page: Page) -> list[str]:
    """Return what overflows the window on the right: the page itself, or a table outside any scrollable box."""
    return list(
        page.evaluate("""() => [
            ...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []),
            ...[...document.querySelectorAll("table")].filter((table) => !table.closest(".scroll")).map((table) => table.className),
        ]""")
    )


def fits(box: Locator) -> bool:
    """Return whether all content of a scrollable box is visible."""
    return bool(box.evaluate("box => box.scrollWidth <= box.clientWidth"))


def hints(page: Page, box: Locator) -> str:
    """Return which edges of a box, left and right, differ from its middle, measured in the empty padding."""
    box.scroll_into_view_if_needed()
    area = box.bounding_box()
    assert area is not None

    def strip(at: float) -> bytes:
        return page.screenshot(clip={"x": round(at), "y": round(area["y"]) + 2, "width": 4, "height": 2})

    left, right = area["x"] + 9, area["x"] + area["width"] - 13  # inside rounded corners
    plain = strip((left + right) / 2)
    return " ".join(name for name, at in (("left", left), ("right", right)) if strip(at) != plain)


@pytest.mark.parametrize("name", ["crowd", "hidden"])
def test_every_width_shows_the_whole_board(page: Page, wide: Path, name: str) -> None:
    """From phone to wall screen, nothing overflows, the standings fit, and reasons of moves are not cut."""
    page.goto((wide / f"{name}.html").as_uri())
    table = page.locator(".scroll:has(table.board)")
    moved = page.locator("details.why").all()[-1:]
    assert moved
    for why in moved:
        why.locator("summary").click()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert overhanging(page) == [], width
        assert fits(table), width
        for why in moved:
            why.scroll_into_view_if_needed()
            assert why.locator("p").evaluate(
                """text => {
                    const area = text.getBoundingClientRect();
                    return document.elementFromPoint(area.right - 9, area.bottom - 9) === text;
                }"""
            ), width


@pytest.mark.parametrize("name", SITES)
def test_boards_fit_at_every_width_and_axe_finds_nothing_serious(page: Page, pages: Path, name: str) -> None:
    """This covers real and hostile names, by mean Q and sorted by the last column, in both color schemes."""
    page.goto((pages / name / "index.html").as_uri())
    page.locator("section:not([hidden]) input[value=mean]").check()
    page.locator("section:not([hidden]) th[data-sort=last] button").click()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert overhanging(page) == [], width
        assert all(fits(box) for box in page.locator(".scroll:has(table.board):visible").all()), width
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for width, scheme in ((1180, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical", "moderate")
        ] == []


def test_boxes_that_scroll_show_it(page: Page, wide: Path) -> None:
    """On a phone each box shows at its edges that there is more; the rank chart is visible as a whole."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((wide / "few.html").as_uri())
    for part in page.locator(".evolution .plot, .evolution text.team").all():
        area = part.bounding_box()
        assert area is not None
        assert 0 <= area["x"] <= area["x"] + area["width"] <= 390
    for css in ("table.heat", "table.sure"):
        box = page.locator(f".scroll:has({css})")
        seen = []
        for at in (0, 60, 9999):
            box.evaluate("(box, at) => { box.scrollLeft = at; }", at)
            seen.append(hints(page, box))
        assert seen == ["right", "left right", "left"], css
    page.set_viewport_size({"width": 1400, "height": 844})
    assert [hints(page, box) for box in page.locator(".scroll:visible").all()] == [""] * 3


def printed_fills(page: Page) -> set[tuple[int, ...]]:
    """Print to PDF without background graphics, which is the browsers' default, and return the fill colors of areas."""
    document = page.pdf(format="A4", print_background=False)
    fills: set[tuple[int, ...]] = set()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", document, re.DOTALL):
        try:
            drawn = zlib.decompress(stream)
        except zlib.error:
            continue
        for color in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg\b", drawn):
            fills.add(tuple(round(255 * float(part)) for part in color))
    return fills


def print_result(page: Page) -> tuple[str, int, bool]:
    """Print from a dark screen to A4, and return the color of the text, the width of the widest table, and whether any is cut."""
    page.set_viewport_size({"width": 718, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    ink, widest, cut = page.evaluate(
        """() => [
            getComputedStyle(document.body).color,
            Math.max(...[...document.querySelectorAll("table")].map((table) => table.offsetWidth)),
            [...document.querySelectorAll(".scroll")].some((box) => getComputedStyle(box).overflowX !== "visible"),
        ]"""
    )
    return ink, widest, cut


def test_print_keeps_the_colors(page: Page, wide: Path) -> None:
    """In print, even from a dark screen, the heat map has its scale, intervals and Q have their bars, and no table is cut."""
    page.emulate_media(color_scheme="dark")
    page.goto((wide / "few.html").as_uri())
    scale = {(11, 74, 143), (40, 120, 184), (171, 207, 232)}  # --h5, --h4 and --h2
    assert scale <= printed_fills(page)
    page.emulate_media(media="print")
    assert page.locator("td.q, .weights td, .whisker i, .whisker b").evaluate_all(
        "bars => bars.length > 30 && bars.every((bar) => getComputedStyle(bar).printColorAdjust === 'exact')"
    )
    for name in ("few", "crowd"):
        page.goto((wide / f"{name}.html").as_uri())
        ink, widest, cut = print_result(page)
        assert (ink, cut) == ("rgb(27, 36, 46)", False)
        assert widest <= 718


@pytest.mark.parametrize("name", ["few", "crowd"])
def test_private_report_at_every_width_and_in_print(page: Page, wide: Path, name: str) -> None:
    """It never overflows; its standings fit on a laptop, and on smaller screens show that there is more; print keeps tables and colors."""
    page.goto((wide / f"{name}-report.html").as_uri())
    standings = page.get_by_role("region", name="Standings")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert overhanging(page) == [], width
        assert fits(standings) or width < 1180, width
    page.set_viewport_size({"width": 768, "height": 800})
    assert hints(page, standings) == "right"
    page.emulate_media(color_scheme="dark")
    assert len({fill for fill in printed_fills(page) if fill[2] - fill[0] > 40}) > 20
    ink, widest, cut = print_result(page)
    assert (ink, cut) == ("rgb(29, 33, 38)", False)
    assert name == "crowd" or widest <= 1000  # browsers shrink content that is slightly too wide


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
    for width in WIDTHS[::2]:
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
