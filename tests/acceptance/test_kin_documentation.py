"""The commands on the pages for researchers run, and the tables on the page for users of other benchmarks are complete."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scoring.neuco_bench import configuration
from scoring.probes.probe import PROBES
from scoring.tasks.packages import Baseline, TaskPackage
from worker.cli import app, guarded

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kin.md").read_text()
RESEARCHERS = (ROOT / "docs" / "researchers.md").read_text()


def commands(page: str) -> list[list[str]]:
    """Return the commands on a page, each split into words."""
    return [
        shlex.split(line.removeprefix("$ "))
        for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
    ]


COMMANDS = commands(PAGE)


def run(listed: list[list[str]]) -> None:
    """Run a page's commands in order, in a copy of config/kin; each must exit with 0."""
    assert listed[0] == ["cd", "config/kin"]
    for program, *arguments in listed[1:]:
        assert program == "neuco-worker"
        expanded = [name for word in arguments for name in (glob.glob(word) if "*" in word else [word])]  # noqa: PTH207
        assert guarded(expanded) == 0, " ".join(arguments)


def test_every_command_of_the_page_for_researchers_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command succeeds, and the table on the page is the one that is printed."""
    monkeypatch.chdir(shutil.copytree(ROOT / "config" / "kin", tmp_path / "kin"))
    run(commands(RESEARCHERS))
    (shown,) = re.findall(r"```text\n(.*?)```", RESEARCHERS, re.DOTALL)
    assert shown in capsys.readouterr().out
    assert Path("differences.png").exists()
    assert len(list(Path("results/sizes").glob("averages_sizes_*/size_study.png"))) == 1


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command on the page for users of other benchmarks succeeds and writes its files."""
    monkeypatch.chdir(shutil.copytree(ROOT / "config" / "kin", tmp_path / "kin"))
    run(COMMANDS)
    assert Path("board/README.md").exists()
    assert json.loads(Path("neurobench/ink.json").read_text())["framework"] == "neuco-worker"


def test_every_flag_key_and_probe_is_described() -> None:
    """The page describes the flags of `score`, the keys of the configuration and of task.yaml, and all probes."""
    import typer

    command = typer.main.get_command(app).commands["score"]  # type: ignore[attr-defined]
    flags = {option for parameter in command.params for option in parameter.opts if option != "--help"}
    named = {flag for flag in flags if flag.startswith("--") and "-" not in flag.removeprefix("--")}
    keys = (*configuration.KEYS, *configuration.FLAT, *TaskPackage.model_fields, *Baseline.model_fields)
    for word in (*named, *keys, *PROBES):
        assert f"`{word}`" in PAGE, word


@pytest.mark.parametrize("name", ["neuco-bench.yaml", "neuco-bench-flat.yaml", "neuco-bench-svm.yaml"])
def test_shipped_configurations_are_clean(name: str) -> None:
    """Shipped configurations are read without warnings, and the annotated one contains every key."""
    settings = configuration.read_settings(ROOT / "config" / "kin" / name)
    assert settings.warnings == ()
    if name == "neuco-bench.yaml":
        assert set(settings.raw) == set(configuration.KEYS)
        sample = configuration.parse_settings(configuration.SAMPLE)
        assert sample.model_copy(update={"raw": settings.raw}) == settings


@pytest.mark.parametrize("name", ["geobench-check.yml", "geobench-comment.yml"])
def test_workflows_give_a_strangers_files_no_right(name: str) -> None:
    """The job that reads a submission has no write permission, and the job that can comment checks out no code."""
    workflow = yaml.safe_load((ROOT / "config" / "kin" / name).read_text())
    triggers = workflow[True]  # YAML parses the key `on` as true
    [job] = workflow["jobs"].values()
    used = [step.get("uses", "") for step in job["steps"]]
    assert "pull_request_target" not in triggers
    if name == "geobench-check.yml":
        assert workflow["permissions"] == {"contents": "read"}
        assert "--normalizer" in str(job["steps"])
    else:
        assert not any("checkout" in step for step in used)
    for step in job["steps"]:
        assert "${{" not in step.get("run", ""), "an expression in a script is code from outside"


class PullRequest:
    """A repository with the example's normalizer, and a clone like GitHub's checkout of a pull request."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "clone"
        self.folder = folder
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GITHUB_"))
        } | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "BASE": "main",
        }
        main = folder / "main"
        main.mkdir()
        shutil.copy(ROOT / "config" / "kin" / "normalizer.json", main)
        self.run("git init -q -b main && git add normalizer.json", main)
        self.run("git -c user.name=x -c user.email=x@example.org commit -q -m Freeze", main)
        self.run(f"git clone -q --depth 1 file://{main} {self.clone}", folder)
        shutil.copytree(ROOT / "config" / "kin" / "new_submission", self.clone / "new_submission")

    def run(self, script: str, where: Path) -> int:
        """Run a step's script as GitHub does, in a bash that stops at the first error, and return its status."""
        command = ["bash", "-e", "-o", "pipefail", "-c", script]
        return subprocess.run(command, cwd=where, env=self.environment, check=False).returncode

    def check(self) -> int:
        """Run the workflow's scripts, except the installation, and return the first nonzero status, or 0."""
        workflow = yaml.safe_load((ROOT / "config" / "kin" / "geobench-check.yml").read_text())
        scripts = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
        assert [script.split()[0] for script in scripts] == ["pip", "pip", "git", "status=0"]
        return next((status for script in scripts[2:] if (status := self.run(script, self.clone))), 0)


def test_the_workflow_checks_a_pull_request(tmp_path: Path) -> None:
    """The workflow accepts a valid submission, rejects a faulty one and writes a verdict, always with the main branch's normalizer."""
    request = PullRequest(tmp_path)
    (request.clone / "normalizer.json").write_text("{}")  # a normalizer in the pull request is ignored
    assert request.check() == 0
    verdict = (request.clone / "verdict.md").read_text()
    assert verdict.startswith("### The submission is valid")
    assert "| Rank |" in verdict
    assert (tmp_path / "summary.md").read_text() == verdict
    results = request.clone / "new_submission" / "results_and_parameters.csv"
    results.write_text("\n".join(results.read_text().splitlines()[:4]) + "\n")
    assert request.check() == 1
    assert "exactly 5 are needed" in (request.clone / "verdict.md").read_text()
    (request.clone / "verdict.md").unlink()
    (tmp_path / "normalizer.json").unlink()
    (tmp_path / "main" / "normalizer.json").write_text("broken")
    request.run(
        "git -c user.name=x -c user.email=x@example.org commit -q -a -m Break", request.folder / "main"
    )
    assert request.check() == 2
    assert (request.clone / "verdict.md").read_text() == "The check itself failed; see the log.\n"


def test_the_worker_imports_nothing_of_it() -> None:
    """The daemon, evaluation and publishing do not import the standalone benchmark, its probes or the other formats."""
    code = (
        "import sys, worker.daemon, worker.evaluation.evaluate_child, worker.publishing; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kin = ("scoring.neuco_bench", "scoring.probes", "leaderboard.exchange")
    loaded = done.stdout.split()
    assert "worker.daemon" in loaded
    assert [name for name in loaded if name.startswith(kin)] == []
