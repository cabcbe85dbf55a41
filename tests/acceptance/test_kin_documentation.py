"""The page for people from other benchmarks: its commands run, its tables are complete."""

from __future__ import annotations

import glob
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from scoring.packages import BASELINE_KEYS, KEYS
from scoring.probes.registry import OWN
from scoring.standalone import configuration
from worker.cli import app, guarded

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kin.md").read_text()
COMMANDS = [
    shlex.split(line.removeprefix("$ "))
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, in a copy of config/kin, each ends with 0."""
    monkeypatch.chdir(shutil.copytree(ROOT / "config" / "kin", tmp_path / "kin"))
    assert COMMANDS[0] == ["cd", "config/kin"]
    for program, *arguments in COMMANDS[1:]:
        assert program == "neuco-worker"
        expanded = [name for word in arguments for name in (glob.glob(word) if "*" in word else [word])]  # noqa: PTH207
        assert guarded(expanded) == 0, " ".join(arguments)
    assert Path("board/README.md").exists()
    assert json.loads(Path("neurobench/ink.json").read_text())["framework"] == "neuco-worker"
    assert len(list(Path("results/sizes").glob("averages_sizes_*/size_study.png"))) == 1


def test_every_flag_key_and_probe_is_described() -> None:
    """Flags of score, keys of the configuration and of task.yaml, and probes all stand on the page."""
    import typer

    command = typer.main.get_command(app).commands["score"]  # type: ignore[attr-defined]
    flags = {option for parameter in command.params for option in parameter.opts if option != "--help"}
    named = {flag for flag in flags if "-" not in flag.removeprefix("--")}
    for word in (*named, *configuration.KEYS, *configuration.FLAT, *KEYS, *BASELINE_KEYS, *OWN):
        assert f"`{word}`" in PAGE, word


@pytest.mark.parametrize("name", ["neuco-bench.yaml", "neuco-bench-flat.yaml", "neuco-bench-svm.yaml"])
def test_shipped_configurations_are_clean(name: str) -> None:
    """No shipped configuration is warned about; the annotated one names every key."""
    settings = configuration.read_settings(ROOT / "config" / "kin" / name)
    assert settings.warnings == ()
    if name == "neuco-bench.yaml":
        assert set(settings.raw) == set(configuration.KEYS)


@pytest.mark.parametrize("name", ["geobench-check.yml", "geobench-comment.yml"])
def test_workflows_give_a_strangers_files_no_right(name: str) -> None:
    """The job that reads the submission may write nothing; the one that may comment checks out nothing."""
    workflow = yaml.safe_load((ROOT / "config" / "kin" / name).read_text())
    triggers = workflow[True]  # YAML reads the key on as true
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
