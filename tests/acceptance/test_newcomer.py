"""Commands that need no challenge work in an environment with only the dependencies that neuco-worker declares.

Those of an organizer are typed there in ``test_organizer.py``, and ``demo`` in ``test_demo.py``; those of researchers need the extra
``research`` and run in ``test_other_benchmarks_documentation.py``.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.acceptance.installation import ROOT, Installation
from tests.worker.harness.harness import DIM, IDS, Harness, embeddings

FIRST_STEPS = (
    "compile",
    f"init new --yes --dim {DIM}",
    "bundle new",
    f"validate good.csv --ids ids.txt --dim {DIM}",
    f"template empty.csv --ids ids.txt --dim {DIM}",
    "rank table.csv",
)
OTHERS = {
    "demo": "in test_demo.py",
    "challenge retry": "for a submission that waits",
    "rehearse": "`demo` is one",
}
"""Commands that are typed neither here nor in ``test_organizer.py``, and the reason for each."""

BROKEN = ("ModuleNotFoundError", "ImportError", "unexpected", "Traceback")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installation")]


def worker(installation: Installation, lines: Iterable[str], folder: Path) -> None:
    """Run commands one after the other; each must succeed."""
    for line in lines:
        output = "".join(installation.command(*shlex.split(line), cwd=folder))
        assert not [word for word in BROKEN if word in output], f"{line}\n{output}"


def commands(group: typer.core.TyperGroup, *above: str) -> Iterator[str]:
    """Yield the full name of every command in a group and its subgroups."""
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, *above, name)
        else:
            yield " ".join((*above, name))


def test_nothing_else_is_installed(installation: Installation) -> None:
    """Guard for the tests below: the declared dependencies are complete, and no test package is installed."""
    assert "No broken requirements" in installation.run("pip", "check", cwd=installation.folder)
    code = "import importlib.util as u; print([n for n in ('pytest', 'sklearn', 'tests', 'torch', 'vl_convert') if u.find_spec(n)])"
    assert installation.run("python", "-c", code, cwd=installation.folder) == "[]\n"


def test_first_steps(installation: Installation, tmp_path: Path) -> None:
    """The commands that need no challenge succeed."""
    (tmp_path / "good.csv").write_bytes(embeddings())
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    shutil.copy(ROOT / "tests/leaderboard/data/neuco_bench_table4_r2.csv", tmp_path / "table.csv")
    worker(installation, FIRST_STEPS, tmp_path)


@pytest.mark.parametrize(
    ("settings", "command", "extra"),
    [
        ({"scoring": {"engine": "ray"}}, "doctor", "ray"),
        ({"scoring": {"engine": "torch"}}, "doctor", "torch"),
        ({"state": "postgresql+psycopg://nobody@127.0.0.1:1/none"}, "once", "postgres"),
    ],
)
def test_what_an_extra_brings_is_named(
    installation: Installation, tmp_path: Path, settings: dict[str, Any], command: str, extra: str
) -> None:
    """If a setting needs a missing library, the error says which extra to install."""
    with Harness(tmp_path, changes=settings) as harness:
        words = (command, "--config", str(harness.path))
        output = "".join(installation.command(*words, cwd=tmp_path, expect={"doctor": 1, "once": 2}[command]))
    assert f"neuco-worker[{extra}]" in output
    assert not [word for word in BROKEN if word in output], output


@pytest.mark.parametrize(
    ("options", "user"),
    [
        ("labels", "A probe that is stored, or has several outputs, needs torch"),
        ("labels/ink__regr.csv --config plots.yaml", "A plot needs vl_convert"),
        ("labels --config neuco-bench-svm.yaml", "The probe svm needs sklearn"),
    ],
)
def test_what_a_run_needs_is_named_before_it_trains(
    installation: Installation, tmp_path: Path, options: str, user: str
) -> None:
    """A run that needs libraries of the extra ``research`` says so and leaves nothing behind."""
    folder = shutil.copytree(ROOT / "config" / "researcher", tmp_path / "researcher")
    settings = (folder / "neuco-bench-flat.yaml").read_text()
    (folder / "plots.yaml").write_text(settings.replace("enable_plots: false", "enable_plots: true"))
    words = ("score", "embeddings.csv", *options.split())
    output = "".join(installation.command(*words, cwd=folder, expect=2))
    assert f"{user}, which is not installed. Install it: pip install" in " ".join(output.split())
    assert "neuco-worker[research]" in output
    assert not list(folder.glob("results/*/*"))
