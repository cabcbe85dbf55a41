"""A browser, and the pages that tests look at in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from leaderboard.rendering.files import render
from leaderboard.report.private_report import report, report_page
from tests.leaderboard.harness.browser import chromium
from tests.leaderboard.harness.revealed import BEGIN, crowded_phase, small_phase


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests of a module."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a tab that fails the test if the page logs an error, fetches anything external or throws."""
    tab = browser.new_page(viewport={"width": 1180, "height": 860}, color_scheme="light")
    tab.set_default_timeout(60_000)
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("requestfailed", lambda request: said.append(request.url))
    yield tab
    tab.close()
    assert said == []


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write large pages: the page of 100 teams, before and after the reveal, and private reports."""
    root = tmp_path_factory.mktemp("wide")
    few, crowd = small_phase(), crowded_phase()
    for name, site in (
        ("few", few.revealed_site("Few", frozen_at=BEGIN + timedelta(days=14), link="https://eval.ai/")),
        ("crowd", crowd.revealed_site("Crowd")),
        ("hidden", crowd.site("Crowd")),
    ):
        (root / f"{name}.html").write_bytes(render(site, readme=None)["index.html"])
    for name, phase in (("few", few), ("crowd", crowd)):
        made = report(phase.snapshot, phase.history[-1], made_at=BEGIN, replicates=20)
        (root / f"{name}-report.html").write_text(report_page(made), encoding="utf-8")
    return root
