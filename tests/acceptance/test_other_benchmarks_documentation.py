"""The commands on the pages for researchers run, and the tables on the page for users of other benchmarks are complete."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from scoring.neuco_bench import configuration
from scoring.probes import PROBES
from scoring.tasks.packages import Baseline, TaskPackage
from worker import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "other-benchmarks.md").read_text()
RESEARCHERS = (ROOT / "docs" / "researchers.md").read_text()


def commands(page: str) -> list[list[str]]:
    """Return the commands on a page, each split into words."""
    return [
        shlex.split(line.removeprefix("$ "))
        for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
    ]


COMMANDS = [*commands(PAGE), *commands(RESEARCHERS)]


@pytest.mark.parametrize("page", [PAGE, RESEARCHERS], ids=["other benchmarks", "researchers"])
def test_every_command_of_the_pages_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    """Every command succeeds, and writes what the page says."""
    monkeypatch.chdir(shutil.copytree(ROOT / "config" / "researcher", tmp_path / "researcher"))
    for program, *arguments in commands(page):
        if program in {"source", "cd"}:
            assert arguments == [{"source": ".venv/bin/activate", "cd": "config/researcher"}[program]]
            continue
        words = [str(name) for word in arguments for name in sorted(Path().glob(word)) or [word]]
        assert (program, cli.guarded(words)) == ("neuco-worker", 0), " ".join(arguments)
    if page is PAGE:
        assert Path("board", "README.md").exists()
        assert json.loads(Path("neurobench", "ink.json").read_text())["framework"] == "neuco-worker"


def test_every_flag_key_and_probe_is_described() -> None:
    """The page describes the flags of `score`, the keys of the configuration and of task.yaml, and all probes."""
    command = cli.program.commands["score"]
    flags = {option for parameter in command.params for option in parameter.opts if option != "--help"}
    named = {flag for flag in flags if flag.startswith("--") and "-" not in flag.removeprefix("--")}
    keys = (*configuration.KEYS, *configuration.FLAT, *TaskPackage.model_fields, *Baseline.model_fields)
    for word in (*named, *keys, *PROBES):
        assert f"`{word}`" in PAGE, word


@pytest.mark.parametrize("name", ["neuco-bench.yaml", "neuco-bench-flat.yaml", "neuco-bench-svm.yaml"])
def test_shipped_configurations_are_clean(name: str) -> None:
    """Shipped configurations are read without warnings, and the annotated one contains every key."""
    settings = configuration.read_settings(ROOT / "config" / "researcher" / name)
    assert settings.warnings == ()
    if name == "neuco-bench.yaml":
        assert set(settings.raw) == set(configuration.KEYS)
        sample = configuration.parse_settings(configuration.SAMPLE)
        assert sample.model_copy(update={"raw": settings.raw}) == settings
