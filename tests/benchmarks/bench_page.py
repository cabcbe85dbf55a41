"""Measure the page of a large challenge in a browser.

Run with ``python -m tests.benchmarks.bench_page`` (needs Chromium); ``--teams 100 --boards 50`` is quicker. Boards and page come from the
product's own functions; the scores are made up. It prints the size of the page and, as medians of several runs in a desktop window, the
time until the first rank is painted, until everything is loaded, and from a press of a button or key to the next frame.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser

from leaderboard import Site
from leaderboard.rendering import render
from tests.leaderboard.harness.browser import chromium
from tests.leaderboard.harness.phases import entry
from tests.leaderboard.harness.played import PlayedPhase

START = datetime(2026, 1, 1, tzinfo=UTC)
TASKS = ("one", "two", "three")
FOLDS = 4
RUNS = 7
BOARD = "section.phase:not([hidden]) table.board"

# Resolves with the milliseconds from an action until the browser has drawn its effect.
_UNTIL_DRAWN = """(act) => new Promise((done) => {
    const begin = performance.now();
    act();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0));
})"""
# The first moment at which a frame shows a rank.
_FIRST_RANK = """
(() => {
    const look = () => {
        if (document.querySelector("table.board td.rank")) requestAnimationFrame(() => { window.firstRank = performance.now(); });
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})();
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teams", type=int, default=1000)
    parser.add_argument("--boards", type=int, default=500)
    options = parser.parse_args()
    page = render(large_site(options.teams, options.boards), readme=None)["index.html"]
    tell("page", f"{len(page) / 1e6:.2f} MB, {len(gzip.compress(page)) / 1e3:.0f} kB compressed")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        index = Path(folder) / "index.html"
        index.write_bytes(page)
        measure(browser, index.as_uri())


def large_site(teams: int, boards: int) -> Site:
    """Return a revealed phase in which one team in ten takes part from the start, and the others join in the last ten boards.

    The time for a board grows with the square of the number of teams, so most boards are made quickly.
    """
    random = np.random.default_rng(0)
    skill = random.random(teams)
    phase = PlayedPhase(TASKS)
    joined = sent = 0
    for step in range(boards):
        before, late = joined, max(step + 11 - boards, 1)
        joined = max(teams * late // 10 if step + 10 >= boards else teams // 10, 1)
        at = START + timedelta(hours=step)
        for team in (*range(before, joined), int(random.integers(joined))):
            sent += 1
            scores = {
                task: (0.4 + 0.3 * skill[team] + 0.02 * random.standard_normal(FOLDS)).tolist()
                for task in TASKS
            }
            phase.receive(entry(sent, team, scores, method="", submitted_at=at))
        phase.make_board(at + timedelta(minutes=5))
    return phase.revealed_site("A large challenge")


def measure(browser: Browser, address: str) -> None:
    """Print the times that a reader waits."""
    first: list[float] = []
    loaded: list[float] = []
    for _ in range(RUNS):
        page = browser.new_page(viewport={"width": 1180, "height": 860})
        page.add_init_script(_FIRST_RANK)
        page.goto(address)
        first.append(page.evaluate("window.firstRank"))
        loaded.append(page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart"))
    tell("until the first rank", spread(first))
    tell("until the page is loaded", spread(loaded))
    for words, script in ACTIONS.items():
        tell(words, spread([page.evaluate(f"({_UNTIL_DRAWN})({script})") for _ in range(RUNS)]))


ACTIONS: dict[str, str] = {
    "sort by team": f"""() => document.querySelector("{BOARD} th[data-sort=team] button").click()""",
    "sort by mean Q": f"""() => document.querySelector("{BOARD} th[data-sort=q] button").click()""",
    "search for a team": """() => {
        const field = document.querySelector("section.phase:not([hidden]) input[type=search]");
        field.value = field.value ? "" : "77";
        field.dispatchEvent(new Event("input", { bubbles: true }));
    }""",
}


def spread(values: list[float]) -> str:
    """Return median and range."""
    return f"{statistics.median(values):.0f} ms ({min(values):.0f} to {max(values):.0f})"


def tell(what: str, value: str) -> None:
    """Print one figure."""
    sys.stdout.write(f"{what}: {value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
