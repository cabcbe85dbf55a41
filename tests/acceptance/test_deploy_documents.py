"""The organizer's documents cover every alert, rule, metric, setting and state in the code, and name none that does not exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import yaml
from prometheus_client import generate_latest

from worker.challenge.configuration import Configuration
from worker.daemon.metrics import StateCollector, registry
from worker.organizer import configuration_docs
from worker.runtime.files import FileStore
from worker.state import Attempt, Outcome, State, Store

ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "deploy" / "RUNBOOK.md"
RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
CODE = re.compile(r"[a-z]+(\.[a-z_]+)?")
PARTICIPANT = {"ParticipantError", "Cancelled"}
BEGINNINGS = (
    "worker/daemon/__init__.py",
    "worker/runtime/child_main.py",
    "worker/evaluation/evaluate_child.py",
    "worker/fetching/fetch_child.py",
)
"""Entry points of the daemon and its children; with everything they import, they are the code that a daemon runs."""
ONCE_ONLY = {"once.stopped", "once.undone", "phase.unknown", "submission.unknown"}
"""Codes that are never alerts: a drain reports its result as its exit status, and the command that was given an unknown name reports it."""
NO_ERROR = {"tasks.none", "scores.not_finite", "values.constant"}
"""Codes that the scoring core raises to its caller; the evaluating child reports them as a participant's error or as another error."""


@cache
def sources() -> tuple[tuple[str, ast.Module], ...]:
    """Parse every module of the three packages."""
    paths = [path for room in ("worker", "scoring", "leaderboard") for path in (ROOT / room).rglob("*.py")]
    return tuple((path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())) for path in sorted(paths))


@cache
def daemon() -> frozenset[str]:
    """Collect the modules that the entry points import, directly or indirectly; a package counts as its ``__init__``."""
    modules = dict(sources())
    found: set[str] = set()
    waiting = list(BEGINNINGS)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for node in ast.walk(modules[name]):
            imported: list[str] = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                imported = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for module in imported:
                path = module.replace(".", "/")
                waiting += [place for place in (f"{path}.py", f"{path}/__init__.py") if place in modules]
    return frozenset(found)


def literals(node: ast.AST) -> Iterator[str]:
    """Yield the string constants in an expression that begin like a code, including the constant parts of f-strings."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and CODE.match(part.value):
            yield part.value


def codes(*, alerts: bool) -> set[str]:
    """Collect the codes of all errors, holds and alerts, or only those that a running daemon can raise as an alert."""
    found: set[str] = set()
    for name, module in sources():
        if alerts and name not in daemon():
            continue
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                callee = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if alerts and callee in PARTICIPANT:
                    continue
                if callee == "raise_alert":
                    found |= set(literals(node.args[1]))
                for keyword in node.keywords:
                    if keyword.arg == "code" and not isinstance(keyword.value, (ast.Call, ast.Attribute)):
                        found |= set(literals(keyword.value))
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "usual_code":
                found |= set(literals(node.value))
            elif (
                name == "worker/intake/facts.py"
                and isinstance(node, ast.Return)
                and isinstance(node.value, ast.Tuple)
            ):
                found |= set(literals(node.value.elts[0]))
    complete = {code for code in found if CODE.fullmatch(code)}
    return complete - ONCE_ONLY - NO_ERROR if alerts else complete


def told() -> set[str]:
    """Return the codes that have a section in the runbook."""
    lines = re.findall(r"^Codes: (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    return {code for line in lines for code in re.findall(r"`([^`]+)`", line)}


def covered(code: str, known: set[str]) -> bool:
    """Return whether a code is known, either by itself or as part of a known family such as ``disk.*``."""
    return code in known or code.split(".", maxsplit=1)[0] + ".*" in known


def test_the_collector_finds_known_codes() -> None:
    """Guard for the tests below: codes are found for every way of raising one."""
    found = codes(alerts=True)
    assert found >= {"evalai.token_refused", "facts.phase_differs", "queue.foreign", "phase.not_recorded"}
    assert found >= {"disk.reserve", "leaderboard.push_refused", "state.format", "unexpected"}
    assert not found & {"file.invalid", "sandbox.port_taken", "init.exists"}


def test_every_alert_has_its_section_in_the_runbook() -> None:
    """The runbook says what to do about every code that a daemon can raise as an alert."""
    assert {code for code in codes(alerts=True) if not covered(code, told())} == set()


def test_the_runbook_has_no_obsolete_codes() -> None:
    """Every code in the runbook still occurs in the source."""
    text = "\n".join((ROOT / name).read_text() for name, _ in sources())
    families = {"organizer", "infrastructure"}
    assert {
        code
        for code in told() - families
        if code.removesuffix("*") not in text
        and not ('f"' + code.split(".")[0] + ".{" in text and f'"{code.split(".")[1]}"' in text)
    } == set()


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
    collector = StateCollector(store, FileStore(tmp_path), token_expires=now, clock=lambda: now)
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


def test_every_key_of_the_configuration_is_documented() -> None:
    """The page matches the schema; `python -m worker.organizer.configuration_docs` regenerates it."""
    assert configuration_docs.PLACE.read_text() == configuration_docs.document()
    assert configuration_docs.main(["--check"]) == 0
    text = configuration_docs.document()
    for key in configuration_docs.keys():  # noqa: SIM118 - a function, not a mapping
        assert f"| `{key.split('.')[-1]}` |" in text
    assert set(Configuration.model_fields) <= {key.split(".")[0] for key in configuration_docs.keys()}  # noqa: SIM118


def test_every_state_and_folder_is_documented() -> None:
    """The operations page lists every state of a submission, and the worker's README lists every subpackage."""
    states = re.findall(r"^\| `(\w+)` \| [A-Z]", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert sorted(states) == sorted(state.value for state in State)
    folders = re.findall(r"^\| `(\w+)/` \|", (ROOT / "worker" / "README.md").read_text(), re.MULTILINE)
    assert sorted(folders) == sorted(path.parent.name for path in (ROOT / "worker").glob("*/__init__.py"))


def test_both_commands_promise_the_same_time_everywhere() -> None:
    """README and `make help` state the same duration for the demo and for the tests."""
    readme, makefile = ((ROOT / name).read_text() for name in ("README.md", "Makefile"))
    for target in ("demo", "test"):
        (promised,) = re.findall(rf"^\$ make {target} .*; (.*)$", readme, re.MULTILINE)
        (helped,) = re.findall(rf"^{target}:.*## .*\((.*)\)\.$", makefile, re.MULTILINE)
        assert promised == helped, target


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
