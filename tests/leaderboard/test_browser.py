"""The page works in a real browser, from a file and over HTTP, with and without JavaScript, for eyes, keyboards and screen readers."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from leaderboard.files import render
from leaderboard.names import display_name
from leaderboard.snapshot import Site
from tests.leaderboard.browser import chromium, program
from tests.leaderboard.site_fixtures import embed2scale_site, moving_site, simple_site
from tests.leaderboard.test_files import world
from tests.leaderboard.test_names import HOSTILE

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(program() is None, reason="no Chromium; `make test` installs it"),
]

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SITES = {
    "embed2scale": embed2scale_site,
    "moving": moving_site,
    "revealed": lambda: world(5, revealed=True),
    "hostile": lambda: simple_site(HOSTILE),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests."""
    with chromium() as started:
        yield started


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


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a tab that fails the test if the page complains, fetches anything foreign or throws."""
    tab = browser.new_page(viewport={"width": 1180, "height": 860}, color_scheme="light")
    tab.set_default_timeout(10_000)
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("requestfailed", lambda request: said.append(request.url))
    yield tab
    tab.close()
    assert said == []


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
def server(pages: Path) -> Iterator[str]:
    """Serve the files over HTTP on loopback."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(pages))
    ) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def test_sort_filter_and_toggle(page: Page, server: str) -> None:
    """Over HTTP: headers sort both ways and say so, the search filters and counts, the toggle shows the mean-Q standing."""
    page.goto(f"{server}/embed2scale/index.html#dev")
    site = embed2scale_site()
    by_rank = names_of(site, 0)
    assert teams(page) == by_rank
    shown = page.locator("section:not([hidden])")
    head = shown.get_by_role("columnheader", name="Team")
    head.get_by_role("button").click()
    assert teams(page) == sorted(by_rank, key=str.casefold)
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").press("Enter")
    assert teams(page) == sorted(by_rank, key=str.casefold, reverse=True)
    assert shown.locator("th[aria-sort]").count() == 1

    shown.get_by_role("radio", name="Mean Q").check()
    numbers = [float(text.split("\n")[0].replace("−", "-")) for text in column(page, "q")]
    assert numbers == sorted(numbers, reverse=True)
    assert column(page, "mean")[:4] == ["1", "2", "3", "4"]
    shown.get_by_role("radio", name="Dynamic rank").check()
    assert teams(page) == by_rank

    shown.get_by_role("searchbox").fill("BASELINE")
    assert teams(page) == ["Baseline mean embeddings", "Baseline random embeddings"]
    assert shown.get_by_role("status").inner_text() == f"2 of {len(by_rank)} entries"
    shown.get_by_role("searchbox").fill("")
    assert teams(page) == by_rank


def test_phases_moves_and_figure(page: Page, pages: Path) -> None:
    """From a file: phases switch, a move explains itself, a row lights up its line, older updates unfold."""
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
    assert "Moved" in why.locator("p").inner_text()
    page.keyboard.press("Escape")
    assert not why.locator("p").is_visible()

    assert shown.locator("svg.evolution .lane").count() == len(names_of(site, 0))
    shown.locator("tbody tr").nth(2).hover()
    assert shown.locator("svg.evolution .lane.lit title").text_content() == "3 TeamGrelous"
    assert shown.locator("svg.evolution path.own").count() > 3
    assert shown.locator("svg.evolution path.passive").count() > 3

    before = shown.locator(".changes > li:visible").count()
    shown.get_by_role("button", name="Show 10 older updates").click()
    assert shown.locator(".changes > li:visible").count() == before + 10


def test_hostile_names_in_a_real_browser(page: Page, pages: Path) -> None:
    """Every hostile name is shown as its display name, and none of them became markup or ran."""
    page.goto((pages / "hostile" / "index.html").as_uri())
    shown = page.locator("table.board tbody th bdi").all_text_contents()
    assert [name for name in shown if not name.startswith("(unnamed")] == [
        name for name in dict.fromkeys(map(display_name, HOSTILE)) if not name.startswith("(unnamed")
    ]
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, object, embed, form, link[rel=stylesheet]").count() == 0
    page.goto((pages / "hostile" / "leaderboard" / "dev-evolution-light.svg").as_uri())
    assert page.locator("svg .lane").count() == 20
    assert page.locator("svg script, svg img").count() == 0


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize(("width", "scheme"), [(1180, "light"), (360, "dark")])
def test_looks_and_accessibility(
    page: Page, pages: Path, tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    """At phone and desktop width, in both colour schemes: no sideways scrolling, no serious finding of axe-core, a screenshot."""
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto((pages / name / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical", "moderate")
    ]
    assert serious == []
    shot = page.screenshot(path=tmp_path / "page.png")
    assert shot.startswith(b"\x89PNG")
    assert len(shot) > 10_000


def test_without_javascript(browser: Browser, pages: Path) -> None:
    """Without JavaScript all phases, all rows, reasons and figures are there, and no control that does nothing."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((pages / "embed2scale" / "index.html").as_uri())
        site = embed2scale_site()
        assert page.locator("table.board tbody th bdi").all_inner_texts() == [
            *names_of(site, 0),
            *names_of(site, 1),
        ]
        assert page.locator("svg.evolution:visible").count() == 2
        assert page.locator("button:visible, input:visible").count() == 0
        page.locator("details.why summary").first.click()
        assert page.locator("details.why p").first.is_visible()


def test_reveal_shows_tasks(page: Page, pages: Path) -> None:
    """After the reveal the heat map, intervals and stable views stand on the page with the tasks' real names."""
    page.goto((pages / "revealed" / "index.html").as_uri())
    heads = page.locator("table.heat thead th.task").all_inner_texts()
    assert sorted(heads) == [f"secret_task_{number}" for number in range(5)]
    assert page.locator("table.heat tbody tr").count() == 4
    assert page.locator("table.sure tbody tr").count() == 4
    assert page.locator("table.views tbody tr").count() == 4
