"""The workflow, the changelog, the pages and the table of planted faults agree with the code."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from tests.acceptance.installation import PROJECT, ROOT
from worker import __version__

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z]+):.*?##", MAKEFILE, re.MULTILINE))
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())
NIGHTLY: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "versions.yml").read_text())
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "tests/README.md",
    ".github/pull_request_template.md",
    ".github/workflows/checks.yml",
    ".github/workflows/versions.yml",
    ".pre-commit-config.yaml",
)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("github-workflows", ".github/workflows/checks.yml"),
        ("github-workflows", ".github/workflows/versions.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/bug.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/result.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
        ("compose-spec", "compose.yaml"),
    ],
)
def test_the_schema_of_its_format_accepts_a_file(schema: str, name: str) -> None:
    """Each file is valid for its schema; GitHub and citation tools ignore a file that they cannot read."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_runs_what_everybody_runs() -> None:
    """The workflow runs the same make targets as developers; a tag also builds the package and the image after all other jobs."""
    last = {name: job["steps"][-1] for name, job in WORKFLOW["jobs"].items()}
    assert {name: step.get("run", "make package") for name, step in last.items()} == {
        "check": "make check",
        "test": "make test",
        "demo": "make demo PYTHON=python",
        "package": "make package",
        "image": "make image",
    }
    assert set(WORKFLOW[True]) == {"push", "pull_request"}  # YAML parses the key `on` as true
    assert set(WORKFLOW[True]["push"]) == {"branches", "tags"}
    released = {name for name, job in WORKFLOW["jobs"].items() if job.get("if") == "github.ref_type == 'tag'"}
    assert released == {"package", "image"}
    for name in released:
        assert set(WORKFLOW["jobs"][name]["needs"]) == set(WORKFLOW["jobs"]) - released


@pytest.mark.parametrize("workflow", [WORKFLOW, NIGHTLY], ids=["checks", "versions"])
def test_the_workflow_grants_nothing(workflow: dict[Any, Any]) -> None:
    """The workflow can only read, pins actions to commits, and uses no expression in a script, where it could inject code."""
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step.get("uses", "actions/none@" + "0" * 40))
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}


def test_python_versions_agree() -> None:
    """The demo runs on every supported Python version; other jobs and the tools use the oldest, for which dependencies are pinned."""
    classifiers = "\n".join(PROJECT["project"]["classifiers"])
    supported = re.findall(r"^Programming .* :: (3\.\d+)$", classifiers, re.MULTILINE)
    oldest = supported[0]
    workflow = (ROOT / ".github" / "workflows" / "checks.yml").read_text()
    assert WORKFLOW["jobs"]["demo"]["strategy"]["matrix"]["python"] == supported
    assert NIGHTLY["jobs"]["versions"]["strategy"]["matrix"]["python"] == supported
    assert set(re.findall(r'python-version: "(.*)"', workflow)) == {oldest}
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    bases = re.findall(r"^FROM python:([\d.]+)-", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert set(bases) == {oldest}


@pytest.mark.parametrize("name", PAGES)
def test_targets_that_a_page_names_exist(name: str) -> None:
    """Every make target that a page names is in the Makefile."""
    named = set(re.findall(r"(?:[`$] ?|entry: |run: )make ([a-z]+)", (ROOT / name).read_text()))
    assert named
    assert named <= TARGETS


def test_every_dependency_has_its_reason() -> None:
    """The table in CONTRIBUTING.md has a line for each direct dependency."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Dependencies\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [
        Requirement(line).name for line in PROJECT["project"]["dependencies"]
    ]


@pytest.mark.processes
def test_what_the_code_imports_is_a_dependency_and_used() -> None:
    """Each package that the code imports is declared, and each that is declared is imported."""
    command = [sys.executable, "-m", "deptry", "worker", "scoring", "leaderboard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_changelog_begins_with_this_version() -> None:
    """Each section has a version with its date, or says that it is not released yet."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    form = r"\d+\.\d+\.\d+ \((\d{4}-\d\d-\d\d|not released yet)\)"
    assert [heading for heading in headings if not re.fullmatch(form, heading)] == []
    assert headings[0].split()[0] == __version__


def test_every_fault_can_be_planted() -> None:
    """The text that ``python -m tests.faults`` replaces occurs once in its file, and the tests that must notice it exist."""
    for name, fault in tomllib.loads((ROOT / "tests" / "faults" / "faults.toml").read_text()).items():
        assert (ROOT / fault["file"]).read_text().count(fault["text"]) == 1, name
        assert all((ROOT / test.partition("::")[0]).is_file() for test in fault["tests"]), name
