"""The organizer's documents cover every alert, rule, metric, setting and state in the code, and name none that does not exist."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import yaml
from prometheus_client import generate_latest

from worker.challenge.records import PhaseRules
from worker.daemon.metrics import StateCollector, registry
from worker.runtime.storage import FileStore
from worker.state import ALERT_CODES, Attempt, Outcome, State, Store, alert_code

ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "deploy" / "RUNBOOK.md"
RULES = ROOT / "deploy" / "prometheus" / "rules.yml"


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


def test_every_rule_has_its_section_in_the_runbook() -> None:
    """The second part of the runbook has one section for each Prometheus alert, and each alert links to its section."""
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    _, _, second = RUNBOOK.read_text().partition("## Alerts of Prometheus")
    assert sorted(re.findall(r"^### (\w+)$", second, re.MULTILINE)) == sorted(rule["alert"] for rule in rules)
    for rule in rules:
        assert rule["annotations"]["runbook"] == f"deploy/RUNBOOK.md#{rule['alert'].lower()}"


def test_rules_and_page_name_the_metrics_that_there_are(tmp_path: Path) -> None:
    """Every metric that a rule uses is exported, and the table in the documentation lists all exported metrics."""
    store = Store(f"sqlite:///{tmp_path / 'worker.db'}")
    now = datetime(2027, 1, 1, tzinfo=UTC)
    with store.write() as tx:
        tx.add(1, now=now)
        tx.close_attempt(tx.open_attempt(1, Attempt.FETCH, worker="w", now=now), Outcome.DONE, now=now)
        for fact in ("polled_at", "reconciled_at", "pushed_at"):
            tx.set_fact(fact, now.isoformat())
    collector = StateCollector(store, FileStore(tmp_path), token_expires=lambda: now, clock=lambda: now)
    metrics = generate_latest(registry(collector)).decode()
    store.close()
    given = set(re.findall(r"^(neuco_worker_\w+?)(?:\{|\s)", metrics, re.MULTILINE))
    assert len(given) > 10
    rules = RULES.read_text() + (RULES.parent / "rules.test.yml").read_text()
    assert set(re.findall(r"neuco_worker_\w+", rules)) <= given
    page = (ROOT / "docs" / "operations.md").read_text().partition("## Monitoring")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (`.+`) \| ", page, re.MULTILINE)
    documented = {name for row in table for name in re.findall(r"`(\w+)(?:\{[^}]*\})?`", row)}
    assert {f"neuco_worker_{name}" for name in documented} == given


def test_every_rule_of_a_board_says_when_a_change_takes_effect() -> None:
    """The table in the page on the configuration names each."""
    page = (ROOT / "docs" / "configuration.md").read_text().partition("## When a change takes effect")[2]
    by_key = [one.name for one in fields(PhaseRules) if one.name != "replicates"]  # which no key sets
    assert [name for name in by_key if f"`{name}`" not in page] == []


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
