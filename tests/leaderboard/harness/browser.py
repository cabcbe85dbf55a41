"""Headless Chromium for the tests of the page and for its screenshots."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.waiting import LIMIT_S

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # It would load two pages of its own address bar for each window, which cost more than ours.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,HttpsUpgrades,Translate",
)


def program() -> str | None:
    """Return the path of a Chromium, if one is installed."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser with an empty profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program(), headless=True, args=list(FLAGS), timeout=LIMIT_S * 1000
        )
        try:
            yield browser
        finally:
            browser.close()
