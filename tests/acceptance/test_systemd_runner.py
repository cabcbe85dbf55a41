"""The runner behind `make systemd` finds a source for Debian, and the page with its last result lists every check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.systemd.__main__ import NAMES
from tests.systemd.machine import Impossible
from tests.systemd.root import mirror

ROOT = Path(__file__).parents[2]
LINES = "# deb http://old.example bookworm main\ndeb [signed-by=/k] http://lines.example/debian bookworm main contrib\n"
OTHERS = "Types: deb\nURIs: http://others.example\nSuites: nodistro\nComponents: main\n"
FIELDS = (
    "Types: deb\nURIs: http://fields.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n"
)


@pytest.mark.parametrize(
    ("files", "address"),
    [
        ({"sources.list": LINES}, "http://lines.example/debian"),
        ({"sources.list.d/debian.sources": f"{OTHERS}\n{FIELDS}"}, "http://fields.example/debian"),
    ],
)
def test_debian_comes_from_the_computers_own_source(
    tmp_path: Path, files: dict[str, str], address: str
) -> None:
    """Both forms of apt's sources are read, and the sources of other software are skipped."""
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    release = tmp_path / "os-release"
    release.write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    assert mirror(tmp_path, release) == (address, "bookworm")


def test_a_computer_without_a_debian_source_is_an_error(tmp_path: Path) -> None:
    """A source of another suite does not count."""
    (tmp_path / "sources.list").write_text(LINES)
    release = tmp_path / "os-release"
    release.write_text("VERSION_CODENAME=trixie\n")
    with pytest.raises(Impossible, match="has the suite trixie"):
        mirror(tmp_path, release)


def test_the_last_result_has_every_check() -> None:
    """The table in deploy/README.md has one row for each check, in the order of the runner."""
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "deploy/README.md").read_text(), re.MULTILINE)
    assert rows == NAMES
