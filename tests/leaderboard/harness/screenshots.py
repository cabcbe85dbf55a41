"""Make the pictures of README.md: ``python -m tests.leaderboard.harness.screenshots [DIR]`` (needs Chromium; default docs/images).

They show the page made from the published history of the 2025 Embed2Scale challenge and from a small revealed one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from leaderboard.rendering.files import render
from leaderboard.snapshot import Site
from tests.leaderboard.harness.browser import chromium
from tests.leaderboard.harness.revealed import revealed_site
from tests.leaderboard.harness.site_fixtures import embed2scale_site


def shoot(
    site: Site, target: Path, *, width: int, height: int, scheme: str, fragment: str, scroll_to: str = ""
) -> None:
    """Write one screenshot."""
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium() as browser,
    ):
        index = Path(folder) / "index.html"
        index.write_bytes(render(site, readme=None)["index.html"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(index.as_uri() + fragment)
        if scroll_to:
            page.locator(scroll_to).first.evaluate(
                "element => scrollTo(0, element.getBoundingClientRect().top + scrollY - 40)"
            )
        page.screenshot(path=target)
    sys.stdout.write(f"{target} {target.stat().st_size / 1024:.0f} KiB\n")


def main(folder: Path) -> None:
    """Write all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    real, revealed = embed2scale_site(), revealed_site()
    shoot(real, folder / "board-light.png", width=1180, height=1320, scheme="light", fragment="")
    shoot(
        revealed,
        folder / "reveal-dark.png",
        width=1180,
        height=1320,
        scheme="dark",
        fragment="",
        scroll_to='h3[id$=":tasks"]',
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/images"))
