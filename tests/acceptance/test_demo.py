"""The demo, run once in a clean installation, as a newcomer runs it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.installation import Installation

TASKS = {"dev": 3, "eval": 6}
FOLDS = 5

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installation")]


@dataclass(frozen=True)
class Demo:
    """The folder and the output of a finished demo."""

    folder: Path
    output: str

    def published(self, phase: str) -> list[dict[str, Any]]:
        """Read the board's entries from the pushed repository, not from the worker's clone of it."""
        entries: list[dict[str, Any]] = json.loads(self.git("show", f"main:leaderboard/{phase}.json"))[
            "entries"
        ]
        return entries

    def git(self, *arguments: str) -> str:
        """Run git on the bare repository, and return its output."""
        command = ["git", "--git-dir", str(self.folder / "rehearsal" / "leaderboard.git"), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def demo(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """A finished demo."""
    folder = tmp_path_factory.mktemp("demos") / "whole"
    installation.environment["COLUMNS"] = "140"
    command = ("neuco-worker", "demo", "--dir", str(folder), "--folds", str(FOLDS))
    return Demo(folder, installation.run(*command, cwd=folder.parent))


def test_output_shows_progress_boards_paths_and_a_reason(demo: Demo) -> None:
    """Progress, both boards, the message about a malformed file and every path are printed, and the paths exist."""
    assert demo.output.count(": finished, mean Q") == 9 + 7
    assert all(f"Leaderboard of phase {phase}" in demo.output for phase in TASKS)
    assert re.search(
        r"What EvalAI shows Last Minute.*\n *The file has 2 problems:\n *- 2 cells are NaN: .*\n *- 2 ids of the public list are missing: ",
        demo.output,
    )
    paths = [Path(path) for path in re.findall(r"^[A-Z][^:\n]*: +(/\S+)$", demo.output, re.MULTILINE)]
    assert {path.name for path in paths} >= {"leaderboard.git", "README.md", "index.html"}
    assert all(path.exists() for path in paths)


def test_nothing_hidden_reaches_the_repository_or_the_log(demo: Demo) -> None:
    """No commit before the reveal names a task or holds the secret, and the worker's log has neither the secret nor a traceback."""
    *_, reveal = demo.git("log", "--format=%H", "main", "--", "reveal").split()
    history = demo.git("log", f"{reveal}~1", "--patch", "--format=%an %ae %s %b")
    assert history.count("README.md") > 1
    log = (demo.folder / "rehearsal" / "worker.log").read_text()
    secret = (demo.folder / "challenge.secret").read_text().strip()
    hidden = "even|high__|loop|ink__|height__|__cls|__regr"
    assert not re.search(rf"\b({hidden}|{secret}|{re.escape(str(demo.folder))})\b", history)
    assert not re.search(f"Traceback|{secret}", log)


def test_anybody_can_check_the_revealed_demo(demo: Demo, installation: Installation, tmp_path: Path) -> None:
    """The demo ends with a verdict, and the command that it prints agrees on a clone alone, and with a team's file and receipt."""
    assert re.search(
        r"^Verdict: +Consistent: nothing is contradicted\. The scores of 6 of \d\d submissions were recomputed from their files; "
        r"the other \d have to be taken on trust\.$",
        demo.output,
        re.MULTILINE,
    )
    (verify,) = (words.split() for words in re.findall(r"^  (\S+ verify .*)$", demo.output, re.MULTILINE))
    assert verify[:3] == [str(installation.folder / "bin" / "neuco-worker"), "verify", "--receipt"]
    assert Path(verify[3]).is_file()
    place, public, files = tmp_path / "challenge", tmp_path / "public", tmp_path / "files"
    shutil.copytree(demo.folder, place)
    address = verify[-1].replace(str(demo.folder), str(place))
    subprocess.run(["git", "clone", "--quiet", address, str(public)], check=True)
    (place / "rehearsal" / "participants").rename(files)
    shutil.rmtree(place)  # only the public clone and the teams' own files are left
    own = list[str]()
    for phase in TASKS:
        (pk,) = [row["submission"] for row in demo.published(phase) if row["team"] == "Pixel Pushers"]
        own += ("--submission", f"{files}/{phase}/{pk}-embeddings.csv")
        own += ("--receipt", f"{files}/{phase}/{pk}.stdout")
    report = json.loads(installation.run(*verify[:2], str(public), "--json", *own, cwd=tmp_path))
    assert report["verdict"] == "consistent"
    # the value that was mixed into the splits is no change of tasks or protocol
    assert not [verdict for verdict in report["verdicts"] if "protocol changed" in verdict["sentence"]]
    assert sum(summary["recomputed"] for summary in report["phases"].values()) >= 6
    for phase, tasks in TASKS.items():
        sentences = [verdict["sentence"] for verdict in report["verdicts"] if verdict["phase"] == phase]
        assert any(f"All {tasks} x {FOLDS} fold scores" in sentence for sentence in sentences)
        assert any("counts on the final board at rank" in sentence for sentence in sentences)
