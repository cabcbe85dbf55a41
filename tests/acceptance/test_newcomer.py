"""Every command works in an environment with only the dependencies that neuco-worker declares."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.acceptance.installation import ROOT, Installation
from tests.acceptance.test_kin_documentation import COMMANDS as KIN
from tests.worker.harness.harness import DIM, IDS, Harness, embeddings
from worker.cli import app

ANYWHERE = (
    "compile",
    f"init new --yes --dim {DIM}",
    "bundle new",
    f"validate good.csv --ids ids.txt --dim {DIM}",
    f"template empty.csv --ids ids.txt --dim {DIM}",
    "rank table.csv",
    "demo --dir played --folds 2",
)
BEFORE = ("doctor", "rehearse --folds 2", "challenge apply --reason begins --yes")
AFTER = (
    "once",
    "status",
    "submissions",
    "board show",
    "board publish --preview page",
    "board publish",
    "board report --phase dev --out report",
    "challenge choose {pk} --reason asked --yes",
    "challenge disqualify {pk} --reason asked --yes",
    "challenge apply --reason asked --yes",
    "challenge pause",
    "challenge pause --finish",
    "challenge pause --undo",
    "challenge backup saved.zip",
    "board freeze --phase dev --now --reason ended --yes",
    "board freeze --phase eval --now --reason ended --yes",
    "board show --awards",
    "challenge rename-team --team A --as Anonymous --reason asked --yes",
    "challenge reveal --reason ended --yes",
)
SAVED = ("challenge restore saved.zip elsewhere", "verify board.git --with pytorch")
RESEARCHERS = tuple(" ".join(words[1:]) for words in KIN if words[0] == "neuco-worker")
LASTING = ("sandbox --port 0 --json", "run")
OTHERS = {
    "challenge retry": "for a submission that waits",
    "sandbox submit": "for a sandbox that listens",
}
"""Commands that this module does not run, and the reason for each."""

BROKEN = ("ModuleNotFoundError", "ImportError", "unexpected", "Traceback")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installation")]


def worker(installation: Installation, lines: Iterable[str], folder: Path, *options: str) -> None:
    """Run commands one after the other; each must succeed."""
    for line in lines:
        told = installation.run("neuco-worker", *shlex.split(line), *options, cwd=folder)
        assert not [word for word in BROKEN if word in told], f"{line}\n{told}"


def stop(installation: Installation, line: str, word: str, folder: Path, *options: str) -> None:
    """Start a long-running command, wait until it prints a word, and terminate it."""
    process = installation.start("neuco-worker", *shlex.split(line), *options, cwd=folder)
    assert process.stdout is not None
    try:
        told = ""
        while word not in told:
            piece = process.stdout.readline()
            assert piece, told
            told += piece
    finally:
        process.send_signal(signal.SIGTERM)
        told += process.communicate(timeout=300)[0]
    assert process.returncode == 0, told
    assert not [word for word in BROKEN if word in told], told


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    """A challenge without submissions in which `doctor` finds nothing to fix."""
    with Harness(tmp_path, changes={"phases": {"dev": {"selection": "chosen"}}}) as harness:
        (harness.folder / "token").chmod(0o600)
        (harness.folder / "challenge.secret").write_text(hashlib.sha256(b"a secret").hexdigest())
        yield harness


def commands(group: typer.core.TyperGroup, *above: str) -> Iterator[str]:
    """Yield the full name of every command in a group and its subgroups."""
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, *above, name)
        else:
            yield " ".join((*above, name))


def test_every_command_is_run() -> None:
    """Every command is either run in this module or listed with the reason why not."""
    lines = (*ANYWHERE, *BEFORE, *AFTER, *SAVED, *RESEARCHERS, *LASTING, *OTHERS)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for command in commands(group):
        assert any(f"{line} ".startswith(f"{command} ") for line in lines), command


def test_nothing_else_is_installed(installation: Installation) -> None:
    """Guard for the tests below: the declared dependencies are complete, and no test package is installed."""
    assert "No broken requirements" in installation.run("pip", "check", cwd=installation.folder)
    code = "import importlib.util as u; print([n for n in ('polars', 'pytest', 'sklearn', 'tests') if u.find_spec(n)])"
    assert installation.run("python", "-c", code, cwd=installation.folder) == "[]\n"


def test_first_steps(installation: Installation, tmp_path: Path) -> None:
    """The commands that need no challenge succeed."""
    (tmp_path / "good.csv").write_bytes(embeddings())
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    shutil.copy(ROOT / "tests/leaderboard/data/neuco_bench_table4_r2.csv", tmp_path / "table.csv")
    worker(installation, ANYWHERE, tmp_path)


def test_a_challenge_from_the_first_check_to_the_reveal(installation: Installation, harness: Harness) -> None:
    """An organizer's commands succeed, from the first check to the reveal, with one submission."""
    config = ("--config", str(harness.path))
    worker(installation, BEFORE, harness.folder, *config)
    pk = harness.submit("A")
    stop(installation, "run", "post.done", harness.folder, *config)
    worker(installation, [line.format(pk=pk) for line in AFTER], harness.folder, *config)
    worker(installation, SAVED, harness.folder)


def test_the_sandbox_serves(installation: Installation, tmp_path: Path) -> None:
    """The sandbox prints its address and ends on SIGTERM."""
    stop(installation, "sandbox --port 0 --json", '"url"', tmp_path)


def test_researchers_commands(installation: Installation, tmp_path: Path) -> None:
    """The commands on the page for users of other benchmarks succeed; only the SVM needs an extra, which the error names."""
    folder = shutil.copytree(ROOT / "config" / "kin", tmp_path / "kin")
    for line in RESEARCHERS:
        for pattern in [word for word in line.split() if "*" in word]:
            [found] = folder.glob(pattern)
            line = line.replace(pattern, str(found))
        if "svm" in line:
            told = installation.run("neuco-worker", *shlex.split(line), cwd=folder, expect=2)
            assert 'pip install "neuco-worker[svm]"' in told
        else:
            worker(installation, [line], folder)


@pytest.mark.parametrize(
    ("settings", "command", "extra"),
    [
        ({"scoring": {"engine": "ray"}}, "doctor", "ray"),
        ({"state": "postgresql+psycopg://nobody@127.0.0.1:1/none"}, "once", "postgres"),
    ],
)
def test_what_an_extra_brings_is_named(
    installation: Installation, harness: Harness, settings: dict[str, Any], command: str, extra: str
) -> None:
    """If a setting needs a missing library, the error says which extra to install."""
    harness.configure(settings)
    config = ("--config", str(harness.path))
    status = {"doctor": 1, "once": 2}[command]
    told = installation.run("neuco-worker", command, *config, cwd=harness.folder, expect=status)
    assert f"neuco-worker[{extra}]" in told
    assert not [word for word in BROKEN if word in told], told
