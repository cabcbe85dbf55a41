"""The organizer's documents cover every alert, rule, setting and state in the code, and name none that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

from worker.state import ALERT_CODES, State, alert_code

ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "deploy" / "RUNBOOK.md"


def test_every_alert_has_its_heading_in_the_runbook() -> None:
    """The headings name exactly the codes, and the families of codes, under which alerts can be raised."""
    headings = re.findall(r"^### (`.+)$", RUNBOOK.read_text(), re.MULTILINE)
    codes = [code for heading in headings for code in re.findall(r"`([^`]+)`", heading)]
    assert sorted(codes) == sorted(ALERT_CODES)


def test_an_alert_without_a_heading_is_unexpected() -> None:
    """Anyone who looks up the code of an alert finds it in the runbook."""
    assert alert_code("evalai.rejected") == "evalai.rejected"
    assert alert_code("leaderboard.anything") == "leaderboard.anything"
    assert alert_code("evalai.anything") == alert_code("nothing") == "unexpected"


def test_every_state_and_folder_is_documented() -> None:
    """The operations page lists every state of a submission, and the worker's README lists every subpackage."""
    states = re.findall(r"^\| `(\w+)` \| [A-Z]", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert sorted(states) == sorted(state.value for state in State)
    folders = re.findall(r"^\| `(\w+)/` \|", (ROOT / "worker" / "README.md").read_text(), re.MULTILINE)
    assert sorted(folders) == sorted(path.parent.name for path in (ROOT / "worker").glob("*/__init__.py"))


def test_links_of_the_documents_lead_somewhere() -> None:
    """The targets of all relative links exist, and so do their anchors."""
    hidden = {".venv", ".cache", ".github", "build", "corpus"}
    for page in (path for path in ROOT.rglob("*.md") if not hidden & set(path.relative_to(ROOT).parts)):
        name = page.relative_to(ROOT)
        for target in re.findall(r"\]\(([^)#:]*(?:#[\w-]+)?)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), f"{name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
                anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
                assert anchor in anchors, f"{name}: {target}"
