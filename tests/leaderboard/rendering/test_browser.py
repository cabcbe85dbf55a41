"""The page works in a real browser, with and without JavaScript, for eyes, keyboards and screen readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.rendering.files import render
from leaderboard.rendering.names import display_name, distinct_names
from leaderboard.rendering.page import CHANGES
from leaderboard.report.private_report import report, report_page
from leaderboard.snapshot import Site
from tests.leaderboard.harness.browser import chromium, program
from tests.leaderboard.harness.revealed import BEGIN, crowded_phase, small_phase
from tests.leaderboard.harness.site_fixtures import embed2scale_site, methods_site, simple_site
from tests.leaderboard.rendering.test_names import HOSTILE
from tests.waiting import LIMIT_S

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),  # one browser, and one set of pages
    pytest.mark.skipif(program() is None, reason="no Chromium; `make test` installs it"),
]

AXE = Path(__file__).parents[1] / "vendor" / "axe.min.js"
WIDTHS = (320, 390, 600, 737, 759, 761, 834, 1032, 1057, 1180, 1400, 2000)
PHASE = "section.phase:not([hidden])"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a tab that fails the test if the page logs an error, fetches anything external or throws."""
    tab = browser.new_page(viewport={"width": 1180, "height": 860}, color_scheme="light")
    tab.set_default_timeout(LIMIT_S * 1000)
    expect.set_options(timeout=LIMIT_S * 1000)
    errors: list[str] = []
    tab.on("console", lambda message: errors.append(message.text))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("requestfailed", lambda request: errors.append(request.url))
    yield tab
    tab.close()
    assert errors == []


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of the sites that are looked at, and the private reports of the small phase and of the large one."""
    root = tmp_path_factory.mktemp("pages")
    few, crowd = small_phase(), crowded_phase()
    sites = {
        "few": few.revealed_site("Few", closed_at=BEGIN + timedelta(days=14), link="https://eval.ai/"),
        "crowd": crowd.revealed_site("Crowd"),
        "embed2scale": embed2scale_site(),
        "hostile": simple_site(HOSTILE),
        "methods": methods_site(),
        "hostile methods": methods_site(HOSTILE),
    }
    for name, site in sites.items():
        files = render(site, readme=None)
        (root / f"{name}.html").write_bytes(files["index.html"])
        (root / f"{name}.svg").write_bytes(
            files[f"leaderboard/{site.phases[0].codename}-evolution-light.svg"]
        )
    for name, phase in (("few", few), ("crowd", crowd)):
        made = report(phase.snapshot, phase.history[-1], made_at=BEGIN)
        (root / f"{name}-report.html").write_text(report_page(made), encoding="utf-8")
    return root


@pytest.fixture
def board(pages: Path) -> str:
    """Return the address of the development phase of 2025."""
    return f"{(pages / 'embed2scale.html').as_uri()}#dev"


def teams(page: Page) -> list[str]:
    """Return the visible names of the shown table, from top to bottom."""
    return page.locator(f"{PHASE} table.board tbody tr:not([hidden]) th bdi").all_inner_texts()


def names_of(site: Site, phase: int) -> list[str]:
    """Return the names of a phase's newest board."""
    return [display_name(row.team) for row in site.phases[phase].history[-1].standings]


def test_the_board_can_be_ordered_by_mean_q(page: Page, board: str) -> None:
    """The toggle shows the ranking by mean Q."""
    page.goto(board)
    by_rank = names_of(embed2scale_site(), 0)
    assert teams(page) == by_rank
    shown = page.locator(PHASE)
    shown.get_by_role("radio", name="Mean Q").check()
    assert shown.locator("td.mean").all_inner_texts()[:4] == ["1", "2", "3", "4"]
    shown.get_by_role("radio", name="Dynamic rank").check()
    assert teams(page) == by_rank
    assert page.get_by_role("searchbox").count() == 0  # a short board needs none


def test_an_opened_row_has_an_address_that_restores_it(page: Page, board: str) -> None:
    """The row shows the team's submissions and why it moved; a second one is compared; the address restores both."""
    page.set_viewport_size({"width": 1180, "height": 800})
    page.goto(board)
    shown = page.locator("section#dev")
    first, second = names_of(embed2scale_site(), 0)[3:5]
    row = shown.locator("tbody tr", has_text=first).first
    row.locator("details.past summary").click()
    details_row = shown.locator("tr.told")
    details_row.wait_for()
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d\s+[−\d.]+\s+rank \d+", details_row.inner_text())
    alone = details_row.get_by_role("link", name="Link to this row").get_attribute("href")
    shown.locator("tbody tr", has_text=second).first.locator("details.past summary").click()
    pair = shown.locator("table.pair")
    pair.wait_for()
    assert pair.locator("thead bdi").all_inner_texts() == [first, second]
    ranks = pair.locator("tbody tr", has_text="Rank").first.locator("td").all_inner_texts()
    assert ranks == ["4", "5"]
    shown.get_by_role("columnheader", name="Team").get_by_role("button").click()
    assert details_row.first.locator("xpath=preceding-sibling::tr[1]").locator("bdi").inner_text() in (
        first,
        second,
    )
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
    assert page.locator(f"{PHASE} table.board tbody tr").count() > 3


def test_a_long_board_shows_and_compares_every_task(page: Page, tmp_path: Path) -> None:
    """At every width, and also in tables far below, which the browser has not laid out yet."""
    site = crowded_phase(teams=101, tasks=2).revealed_site("Crowd")
    (tmp_path / "long.html").write_bytes(render(site, readme=None)["index.html"])
    page.goto((tmp_path / "long.html").as_uri())
    for number in range(2):
        page.locator("details.past summary").nth(number).click()
    compared = page.locator("table.pair tbody th").all_text_contents()
    assert {"Rank", "crop_0", "95 % interval", "Without crop_0"} <= {*compared}
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    assert all(table.is_visible() for table in page.locator("table").all())


def test_phases_moves_and_figure(page: Page, pages: Path) -> None:
    """Phases switch, moves have explanations, a row highlights its line, and older updates unfold."""
    page.goto((pages / "embed2scale.html").as_uri())
    site = embed2scale_site()
    assert teams(page) == names_of(site, 1)
    page.get_by_role("link", name="dev").click()
    page.locator("section#dev").wait_for()  # the page follows its address a moment later
    assert teams(page) == names_of(site, 0)
    assert page.get_by_role("link", name="dev").get_attribute("aria-current") == "true"

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
    """Every hostile name is shown as its display name, alike ones with a number; none becomes markup or runs."""
    page.goto((pages / "hostile.html").as_uri())
    shown = page.locator("table.board tbody th bdi").all_text_contents()
    standings = simple_site(HOSTILE).phases[0].history[-1].standings
    assert shown == list(distinct_names((row.key, row.team) for row in standings).values())
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, object, embed, form, link[rel=stylesheet]").count() == 0
    page.goto((pages / "hostile.svg").as_uri())
    assert page.locator("svg .plot .lane").count() == 20
    assert page.locator("svg script, svg img").count() == 0


def test_methods_are_shown_at_every_width(page: Page, pages: Path) -> None:
    """On a desktop they are a sortable column; on narrow screens and on paper, they are below the team's name."""
    page.goto((pages / "methods.html").as_uri() + "#dev")
    shown = page.locator("section#dev")
    head = shown.get_by_role("columnheader", name="Method")
    head.get_by_role("button").click()
    named = [text for text in shown.locator("td.method bdi").all_inner_texts() if text]
    assert named == sorted(named, key=str.casefold)
    assert head.get_attribute("aria-sort") == "ascending"
    links = shown.locator("td.method a")
    assert set(links.all_inner_texts()) == {"paper", "code"}
    assert {link.get_attribute("rel") for link in links.all()} == {"noopener noreferrer nofollow ugc"}
    below = shown.locator("th.team .by")
    assert not below.first.is_visible()
    widths: dict[int, Literal["print", "screen"]] = {390: "screen", 820: "screen", 718: "print"}
    for width, media in widths.items():
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(media=media)
        assert not head.is_visible()
        assert all(method.is_visible() for method in below.all())
        assert below.locator("a").count() == links.count()


def test_tables_of_tasks_use_phones_and_wide_screens(page: Page, pages: Path) -> None:
    """On a phone the narrow column of names stays, and at every stop only whole columns are next to it; a wide screen is filled."""
    page.goto((pages / "crowd.html").as_uri())
    page.set_viewport_size({"width": 1920, "height": 860})
    assert page.locator("main").evaluate("part => part.clientWidth") > 1600
    page.set_viewport_size({"width": 390, "height": 860})
    for css in ("heat", "sure", "stable"):
        for scrolled in (0, 130):
            cut = page.locator(f".scroll:has(.{css})").evaluate(
                """async (box, scrolled) => {
                    box.scrollTo(scrolled, 0);
                    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
                    const frame = box.getBoundingClientRect();
                    const [team, ...cells] = [...box.querySelector("tbody tr").cells].map((cell) => cell.getBoundingClientRect());
                    if (Math.abs(team.left - frame.left) > 1 || team.width > 140) return "names";
                    const across = (edge) => ({left, right}) => left < edge - 2 && right > edge + 2;
                    return [team.right, frame.right].flatMap((edge) => cells.filter(across(edge))).length;
                }""",
                scrolled,
            )
            assert cut == 0, (css, scrolled)


def test_without_javascript(browser: Browser, pages: Path) -> None:
    """Without JavaScript all phases, rows, reasons and figures are visible, and there is no control without effect."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((pages / "embed2scale.html").as_uri())
        site = embed2scale_site()
        assert page.locator("table.board tbody th bdi").all_inner_texts() == [
            *names_of(site, 0),
            *names_of(site, 1),
        ]
        assert page.locator(".evolution:visible").count() == 2
        assert page.locator("button:visible, input:visible").count() == 0
        page.locator("details.why summary").first.click()
        assert page.locator("details.why p").first.is_visible()


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
    const overlaps = [];
    texts.forEach((upper, at) => {
        for (let next = at + 1; next < texts.length && texts[next].box.top < upper.box.bottom - 4; next += 1) {
            const lower = texts[next];
            if (upper.owner.closest("thead") !== lower.owner.closest("thead")) continue; // a head that stays covers rows
            const across = Math.min(upper.box.right, lower.box.right) - Math.max(upper.box.left, lower.box.left);
            if (across > 1) overlaps.push(`${upper.text.slice(0, 40)} / ${lower.text.slice(0, 40)}`);
        }
    });
    return overlaps;
}"""


def axe(page: Page, **options: object) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds, of any impact."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate("options => axe.run(document, {resultTypes: ['violations'], ...options})", options)
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"]][:3]) for rule in result["violations"]]


def overflowing(page: Page) -> list[str]:
    """Return what is wider than the window, or than its box: the page, the board, or a table outside any scrollable box."""
    return list(
        page.evaluate("""() => [
            ...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []),
            ...[...document.querySelectorAll("table")].filter((table) => !table.closest(".scroll")).map((table) => table.className),
            ...[...document.querySelectorAll(".scroll:has(table.board)")].filter((box) => box.scrollWidth > box.clientWidth),
        ]""")
    )


OPEN_FOLDS = """() => [...document.querySelectorAll("details:not(.why)")].slice(0, 14).forEach((fold) => { fold.open = true; })"""
# axe-core needs seconds for a hundred rows, of which those in the middle have the form of the others.
FEWER_ROWS = """() => document.querySelectorAll("tbody tr:nth-child(n + 21):nth-last-child(n + 11)").forEach((row) => row.remove())"""


@pytest.mark.parametrize("name", ["few", "crowd", "hostile", "hostile methods", "few-report", "crowd-report"])
def test_every_width_shows_everything_and_axe_finds_nothing(page: Page, pages: Path, name: str) -> None:
    """From phone to wall screen nothing overflows, no texts overlap, and axe-core has no finding, in light and dark, opened or not."""
    page.emulate_media(reduced_motion="reduce")
    page.goto((pages / f"{name}.html").as_uri())
    if name == "few":
        page.evaluate(OPEN_FOLDS)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 860})
        assert overflowing(page) == [], width
        assert "crowd" in name or page.evaluate(OVERLAPS) == [], width
    for why in page.locator("details.why:visible").all()[-1:]:
        why.locator("summary").click()
        assert why.locator("p").evaluate(
            """text => {
                const area = text.getBoundingClientRect();
                return document.elementFromPoint(area.right - 9, area.bottom - 9) === text;
            }"""
        )
    page.mouse.move(0, 0)  # a row under the pointer dims the lines of the others
    page.evaluate(FEWER_ROWS)
    # On a phone, a crowd is no more than many rows of the others.
    for width in (1180,) if "crowd" in name else (360, 1180):
        page.set_viewport_size({"width": width, "height": 860})
        assert axe(page) == [], width
        page.emulate_media(color_scheme="dark")
        assert axe(page, runOnly=["color-contrast"]) == [], width
        page.emulate_media(color_scheme="light")


def test_the_rank_chart_is_visible_as_a_whole_on_a_phone(page: Page, pages: Path) -> None:
    """No label is cut at an edge."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((pages / "few.html").as_uri())
    for part in page.locator(".evolution .plot, .evolution text.team").all():
        area = part.bounding_box()
        assert area is not None
        assert 0 <= area["x"] <= area["x"] + area["width"] <= 390


@pytest.mark.parametrize("name", ["few", "crowd", "methods", "few-report"])
def test_print_keeps_colors_and_legends_and_has_no_controls(page: Page, pages: Path, name: str) -> None:
    """Printed from a dark screen it is light, keeps bars and scales, explains its columns, cuts no table, and has no buttons."""
    page.goto((pages / f"{name}.html").as_uri())
    if name == "few":
        page.get_by_role("button", name="Colors: system").click()
        page.get_by_role("button", name="Colors: light").click()  # now it is dark by choice
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 718, "height": 1000})
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert ink == ("rgb(29, 33, 38)" if name == "few-report" else "rgb(27, 36, 46)")
    assert page.locator(".scroll").evaluate_all(
        "boxes => boxes.every((box) => getComputedStyle(box).overflowX === 'visible')"
    )
    colored = page.locator("td.q, .weights td, .whisker i, .whisker b, td[class^=h]")
    assert colored.evaluate_all(
        "cells => cells.length > 20 && cells.every((cell) => getComputedStyle(cell).printColorAdjust === 'exact')"
    )
    assert all(meaning.is_visible() for meaning in page.locator(".legend:not(.again) dd").all())
    starts = page.locator(".phase + .phase").evaluate_all(
        "parts => parts.map((part) => getComputedStyle(part).breakBefore)"
    )
    assert set(starts) <= {"page"}
    ends = page.locator("table.board tbody tr:last-child")
    assert ends.evaluate_all("rows => rows.every((row) => getComputedStyle(row).breakBefore === 'avoid')")
    assert page.locator("input:visible, button.theme:visible, .share:visible, .tools:visible").count() == 0
    assert name == "crowd" or page.evaluate(OVERLAPS) == []


def test_the_table_head_stays_visible_and_the_color_choice_is_remembered(page: Page, board: str) -> None:
    """The head stays while the reader scrolls, and light or dark is remembered."""
    page.set_viewport_size({"width": 1180, "height": 320})
    page.goto(board)
    page.locator(f"{PHASE} .board tbody tr").nth(9).scroll_into_view_if_needed()
    box = page.locator(f"{PHASE} .board thead th.team").bounding_box()
    assert box is not None
    assert abs(box["y"]) < 1
    colors = []
    for name in ("system", "light", "dark"):
        page.get_by_role("button", name=f"Colors: {name}").click()
        colors.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.reload()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == colors[-1]
    assert colors[0] == colors[2] != colors[1]


def number(cell: str) -> float | None:
    """Read a cell of a column of numbers as its reader does."""
    match = re.match(r"(▲|▼)?\s*(?:up|down)?\s*(−?\d+(?:\.\d+)?)", cell.strip())
    if match is None:
        return None
    value = float(match[2].replace("−", "-"))
    return -value if match[1] == "▼" else value


@pytest.mark.parametrize("css", ["board", "heat", "sure", "stable"])
def test_every_column_of_every_table_sorts(page: Page, pages: Path, css: str) -> None:
    """Each head is a button that sorts both ways and shows it; cells without a number come last; other tables do not change."""
    page.goto((pages / "few.html").as_uri())
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
            numbers = [value for value in values if value is not None]
            assert values[: len(numbers)] == sorted(numbers, reverse=way == "descending")
    assert others.count() == before


def test_one_search_filters_everything(page: Page, pages: Path) -> None:
    """A long board has one field; it filters every table and the updates, counts entries, and unfolds what is folded."""
    page.goto((pages / "crowd.html").as_uri())
    field = page.get_by_role("searchbox")
    field.fill("TEAM 12")
    for css in ("board", "heat", "sure", "stable"):
        assert page.locator(f"table.{css} tbody tr:visible bdi").all_inner_texts() == ["Team 12"]
    assert page.get_by_role("status").inner_text() == "1 of 100 entries"
    assert page.url.endswith("find=TEAM+12")
    assert all("Team 12" in item.inner_text() for item in page.locator(".changes > li:visible").all())
    field.fill("")
    assert page.locator("table.board tbody tr:visible").count() == 100


def test_all_controls_work_by_keyboard(page: Page, pages: Path) -> None:
    """Tab reaches every control in the order of the page and shows the focus; Enter, Space and arrows operate them all."""
    page.goto((pages / "few.html").as_uri())
    focused = "document.activeElement"
    reached = 0
    while True:
        page.keyboard.press("Tab")
        if page.evaluate(f"{focused} === document.body"):
            break
        reached += 1
        # A radio's box is invisible; what it labels has the ring.
        assert page.evaluate(
            f"[{focused}, {focused}.nextElementSibling].some((part) => part && getComputedStyle(part).outlineStyle !== 'none')"
        ), page.evaluate(f"{focused}.outerHTML.slice(0, 160)")
    controls = page.locator("a[href], button, input[type=search], summary, [tabindex='0']").locator(
        "visible=true"
    )
    assert reached == controls.count() + 1  # and one radio of the two

    page.locator("a.skip").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.locator("table.board th.q").get_attribute("aria-sort") == "descending"
    page.locator("details.past > summary").first.focus()
    page.keyboard.press("Enter")
    page.locator("tr.told").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent") == "Link to this row"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    page.locator("tr.told").wait_for(state="detached")


def test_only_links_to_phases_change_the_shown_phase(page: Page, board: str) -> None:
    """Links to phases keep sort, search and team; a link to another place on the page does not change the phase."""
    page.goto(f"{board}?team=KTH+and+Friends&sort=team-")
    page.get_by_role("link", name="test").click()
    dev, test = page.locator("section#dev"), page.locator("section#test")
    expect(test.locator("th.team").first).to_have_attribute("aria-sort", "descending")
    expect(test.locator("details.past[open] bdi")).to_have_text("KTH and Friends")
    assert "#test?team=KTH+and+Friends&sort=team-" in page.url
    page.evaluate("location.hash = '#dev'")
    expect(dev.locator("th.rank")).to_have_attribute("aria-sort", "ascending")
    page.evaluate(
        "new Promise((done) => { addEventListener('hashchange', done, {once: true}); location.hash = '#_content'; }).then(() => 0)"
    )
    expect(dev).to_be_visible()
    expect(test).to_be_hidden()
