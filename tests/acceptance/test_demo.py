"""The demo, tested as a user runs it.

This module imports none of our packages. It runs the command as a user does, and computes the boards again from the fold scores in the
demo's database, with its own implementation of the paper's formulas.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

EPSILON = 0.02
PHASES = ("dev", "eval")
FOLDS = 5
WORKER = str(Path(sys.executable).with_name("neuco-worker"))
COMMAND = [WORKER, "demo"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("demo"),  # one pytest worker, so that the demo runs only once
]


@dataclass(frozen=True)
class Row:
    """One submission with its stored fold scores."""

    pk: int
    state: str
    team_key: int
    team: str
    method: str
    submitted_at: str
    public: bool
    folds: dict[str, list[float]]
    sources: dict[str, tuple[str, str, str]]  # task to version, row set, protocol hash

    @property
    def baseline(self) -> bool:
        """Whether it is one of the organizers' two baselines."""
        return self.method in ("Baseline mean embeddings", "Baseline random embeddings")

    @property
    def q(self) -> dict[str, float]:
        """The Q of every task, by equation 1."""
        return {
            task: 100 * EPSILON * fmean(scores) / (pstdev(scores) + EPSILON)
            for task, scores in self.folds.items()
        }


class Demo:
    """The folder and the output of a finished demo."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        self.output = output

    def rows(self, phase: str) -> list[Row]:
        """Read the phase's submissions and cells from the database."""
        with sqlite3.connect(
            f"file:{self.folder / 'rehearsal' / 'state' / 'worker.db'}?mode=ro", uri=True
        ) as database:
            database.row_factory = sqlite3.Row
            cells = database.execute("select * from cells where phase = ?", (phase,)).fetchall()
            submissions = database.execute(
                "select * from submissions where phase = ? order by pk", (phase,)
            ).fetchall()
        database.close()
        return [
            Row(
                pk=row["pk"],
                state=row["state"],
                team_key=row["team_key"],
                team=row["team"],
                method=row["method"],
                submitted_at=row["submitted_at"],
                public=bool(row["public_at_first"]),
                folds={
                    cell["task"]: json.loads(cell["folds"])
                    for cell in cells
                    if cell["content_hash"] == row["content_hash"]
                },
                sources={
                    cell["task"]: (cell["version"], cell["row_set"], cell["protocol_hash"])
                    for cell in cells
                    if cell["content_hash"] == row["content_hash"]
                },
            )
            for row in submissions
        ]

    def published(self, phase: str) -> list[dict[str, Any]]:
        """Read the board's entries from the pushed repository, not from the worker's clone of it."""
        text = self.git("show", f"main:leaderboard/{phase}.json")
        entries: list[dict[str, Any]] = json.loads(text)["entries"]
        return entries

    def git(self, *arguments: str) -> str:
        """Run git on the bare repository, and return its output."""
        command = ["git", "--git-dir", str(self.folder / "rehearsal" / "leaderboard.git"), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    @cached_property
    def folds(self) -> dict[tuple[str, int, str], list[float]]:
        """Every fold score of dev, by team, submission and task."""
        return {
            (row.team, row.pk, task): scores for row in self.rows("dev") for task, scores in row.folds.items()
        }


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the demo in a folder, with few folds."""
    environment = {**os.environ, "COLUMNS": "140"}
    return subprocess.Popen(
        [*COMMAND, "--dir", str(folder), "--folds", str(FOLDS), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def finish(folder: Path, process: subprocess.Popen[str]) -> Demo:
    """Wait for a demo to end successfully."""
    output, _ = process.communicate(timeout=600)
    log = folder / "rehearsal" / "worker.log"
    assert process.returncode == 0, output + (log.read_text()[-4000:] if log.exists() else "")
    return Demo(folder, output)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """A finished demo."""
    folder = tmp_path_factory.mktemp("demos") / "whole"
    return finish(folder, start(folder))


def counted(rows: list[Row]) -> list[Row]:
    """Keep each team's last scored public submission; each baseline has a row of its own."""
    chosen: dict[tuple[int, str], Row] = {}
    for row in sorted(rows, key=lambda row: (row.submitted_at, row.pk)):
        if row.public and row.folds:
            chosen[row.team_key, row.method if row.baseline else ""] = row
    return list(chosen.values())


def weighted_ranks(rows: list[Row]) -> tuple[dict[str, float], list[float]]:
    """Return the weights from the spread of Q and the weighted mean ranks, by equations 2 to 4; ties share the better rank."""
    tasks = sorted(rows[0].q)
    spread = {task: pstdev([row.q[task] for row in rows]) for task in tasks}
    weights = {task: spread[task] / math.fsum(spread.values()) for task in tasks}
    ranks = [
        math.fsum(weights[task] * (1 + sum(other.q[task] > row.q[task] for other in rows)) for task in tasks)
        for row in rows
    ]
    return weights, ranks


@pytest.mark.parametrize("phase", PHASES)
def test_boards_can_be_computed_again(demo: Demo, phase: str) -> None:
    """Q, weights and ranks recomputed from the stored fold scores give the published board, row by row."""
    rows = counted(demo.rows(phase))
    weights, weighted = weighted_ranks(rows)
    assert math.isclose(math.fsum(weights.values()), 1)
    assert len(weights) == {"dev": 3, "eval": 6}[phase]
    competing = [s for row, s in zip(rows, weighted, strict=True) if not row.baseline]
    by_mean = [fmean(row.q.values()) for row in rows if not row.baseline]
    expected = {}
    for row, s in zip(rows, weighted, strict=True):
        mean_q = fmean(row.q.values())
        expected[row.method if row.baseline else row.team] = {
            "rank": None if row.baseline else 1 + sum(other < s - 1e-9 for other in competing),
            "rank_by_mean": None if row.baseline else 1 + sum(other > mean_q + 1e-9 for other in by_mean),
            "q_mean": pytest.approx(mean_q, abs=0.0005 + 1e-9),
            "submission": row.pk,
        }
    published = demo.published(phase)
    assert {
        entry["team"]: {key: entry[key] for key in expected[entry["team"]]} for entry in published
    } == expected
    order = [
        dict(zip((r.method if r.baseline else r.team for r in rows), weighted, strict=True))[e["team"]]
        for e in published
    ]
    assert all(first <= second + 1e-9 for first, second in pairwise(order))


@pytest.mark.parametrize("phase", PHASES)
def test_readme_shows_the_same_board(demo: Demo, phase: str) -> None:
    """The table in README.md has the rows of the JSON, in their order, with three decimals."""
    section = demo.git("show", "main:README.md").split(f"## {phase}")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    head, body = cells[0], cells[2:]
    rank, team, mean_q = head.index("Rank"), head.index("Team"), head.index("Mean Q")
    shown = [(row[rank], row[team], row[mean_q]) for row in body]
    wanted = [
        (
            "–" if entry["rank"] is None else str(entry["rank"]),
            f"{entry['team']} *(baseline)*" if entry["baseline"] else entry["team"],
            f"{entry['q_mean']:.3f}",
        )
        for entry in demo.published(phase)
    ]
    assert shown == wanted
    assert len(wanted) >= 6


@pytest.mark.parametrize("phase", PHASES)
def test_random_baseline_is_last(demo: Demo, phase: str) -> None:
    """The baseline of random embeddings has the last row of the board."""
    assert demo.published(phase)[-1]["team"] == "Baseline random embeddings"


@pytest.mark.parametrize("phase", PHASES)
def test_malformed_file_failed_with_a_reason(demo: Demo, phase: str) -> None:
    """The submission with a broken file is failed and has no score, and its team can read the reason."""
    (row,) = [row for row in demo.rows(phase) if row.method == "raw pixels, in a hurry"]
    assert row.state == "failed"
    assert not row.folds
    message = re.search(r"What EvalAI shows Last Minute.*\n(.*)\n(.*)\n(.*)\n", demo.output)
    assert message is not None
    assert message[1].strip() == "The file has 2 problems:"
    assert message[2].strip().startswith("- 2 cells are NaN: ")
    assert message[3].strip().startswith("- 2 ids of the public list are missing: ")
    assert row.pk not in [entry["submission"] for entry in demo.published(phase)]


@pytest.mark.parametrize("phase", PHASES)
def test_private_submission_is_scored_and_not_shown(demo: Demo, phase: str) -> None:
    """A private submission has scores but no row on the board, and does not count among its team's submissions."""
    (row,) = [row for row in demo.rows(phase) if not row.public]
    assert row.state == "published"
    assert len(row.folds) == {"dev": 3, "eval": 6}[phase]
    entries = demo.published(phase)
    assert row.pk not in [entry["submission"] for entry in entries]
    (team,) = [entry for entry in entries if entry["team"] == row.team]
    assert team["submissions"] == 1


def test_last_submission_counts(demo: Demo) -> None:
    """The board shows the later of a team's two public submissions."""
    first, second = (row for row in demo.rows("dev") if row.team == "Random Walkers")
    (entry,) = [entry for entry in demo.published("dev") if entry["team"] == "Random Walkers"]
    assert (entry["submission"], entry["submissions"]) == (second.pk, 2)
    assert first.pk < second.pk


@pytest.mark.parametrize("phase", PHASES)
def test_all_teams_are_measured_alike(demo: Demo, phase: str) -> None:
    """All scored submissions have the same tasks, row sets and protocol; tasks on the same samples share a row set."""
    sources = [row.sources for row in demo.rows(phase) if row.folds]
    assert all(source == sources[0] for source in sources)
    row_sets = [row_set for _, row_set, _ in sources[0].values()]
    assert 2 <= len(set(row_sets)) < len(row_sets)


def test_all_teams_share_their_splits(demo: Demo) -> None:
    """Two teams' different files, with the same pixels on different scales, have the same score in every fold."""
    (pixels,) = [row for row in demo.rows("dev") if row.team == "Pixel Pushers"]
    (shares,) = [row for row in demo.rows("dev") if row.team == "Last Minute" and row.folds]
    assert pixels.pk != shares.pk
    assert pixels.folds == shares.folds
    ranks = {entry["team"]: entry["rank"] for entry in demo.published("dev")}
    assert ranks["Pixel Pushers"] == ranks["Last Minute"]


def test_fold_scores_differ_between_folds_and_teams(demo: Demo) -> None:
    """Fold scores vary; without this check, the tests above would pass if all scores were equal."""
    for phase in PHASES:
        for row in demo.rows(phase):
            assert all(len(set(scores)) > 1 for scores in row.folds.values())
    assert len({str(scores) for scores in demo.folds.values()}) > 0.7 * len(demo.folds)


def test_output_shows_progress_boards_and_paths(demo: Demo) -> None:
    """Progress, both boards and every path are printed, and the paths exist."""
    assert demo.output.count(": finished, mean Q") == 9 + 7
    for phase in PHASES:
        assert f"Leaderboard of phase {phase}" in demo.output
    paths = re.findall(r"^[A-Z][^:\n]*: +(/\S+)$", demo.output, re.MULTILINE)
    assert {Path(path).name for path in paths} >= {
        "leaderboard.git",
        "README.md",
        "index.html",
    }
    assert all(Path(path).exists() for path in paths)


def test_nothing_hidden_reaches_the_repository(demo: Demo) -> None:
    """No commit before the reveal names a task or holds the secret."""
    *_, reveal = demo.git("log", "--format=%H", "main", "--", "reveal").split()
    history = demo.git("log", f"{reveal}~1", "--patch", "--format=%an %ae %s %b")
    assert history.count("README.md") > 1
    secret = (demo.folder / "challenge.secret").read_text().strip()
    for hidden in (
        "even",
        "high__",
        "loop",
        "ink__",
        "height__",
        "__cls",
        "__regr",
        secret,
        str(demo.folder),
    ):
        assert not re.search(rf"\b{re.escape(hidden)}\b", history), hidden


def test_anybody_can_check_the_revealed_demo(demo: Demo, tmp_path: Path) -> None:
    """The demo ends with a verdict, and the command that it prints agrees on a clone alone, and with a team's file and receipt."""
    assert re.search(
        r"^Verdict: +Consistent: nothing is contradicted\. The scores of 6 of \d\d submissions were recomputed from their files; "
        r"the other \d have to be taken on trust\.$",
        demo.output,
        re.MULTILINE,
    )
    (verify,) = (words.split() for words in re.findall(r"^  (\S+ verify .*)$", demo.output, re.MULTILINE))
    assert verify[:3] == [WORKER, "verify", "--receipt"]
    assert Path(verify[3]).is_file()
    named_page = re.search(r"^Web page: +(.*)$", demo.output, re.MULTILINE)
    assert named_page is not None
    assert re.search(r"\bloop\b", Path(named_page[1]).read_text(encoding="utf-8"))
    place = tmp_path / "challenge"
    shutil.copytree(demo.folder, place)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(
        [
            "git",
            "clone",
            "--quiet",
            verify[-1].replace(str(demo.folder), str(place)),
            str(elsewhere / "public"),
        ],
        check=True,
        cwd=elsewhere,
    )
    files = tmp_path / "files"
    (place / "rehearsal" / "participants").rename(files)
    shutil.rmtree(place)  # only the public clone and the teams' own files are left
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(elsewhere),
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
    }

    def verdict(*options: str) -> dict[str, Any]:
        command = [*verify[:2], str(elsewhere / "public"), "--json", *options]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, cwd=elsewhere, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def number(document: dict[str, Any], name: str) -> int:
        return sum(phase[name] for phase in document["phases"].values())

    alone = verdict()
    assert (alone["verdict"], number(alone, "recomputed")) == ("consistent", 6)
    # the value that was mixed into the splits is no change of tasks or protocol
    assert not [one for one in alone["verdicts"] if "protocol changed" in one["sentence"]]
    assert number(alone, "entries") >= 10
    for phase in PHASES:
        (pk,) = [row["submission"] for row in demo.published(phase) if row["team"] == "Pixel Pushers"]
        submitted, receipt = files / phase / f"{pk}-embeddings.csv", files / phase / f"{pk}.stdout"
        said = verdict("--submission", str(submitted), "--receipt", str(receipt))
        assert (said["verdict"], number(said, "recomputed") >= 6) == ("consistent", True)
        sentences = [one["sentence"] for one in said["verdicts"] if one["phase"] == phase]
        tasks = {"dev": 3, "eval": 6}[phase]
        assert any(f"All {tasks} x {FOLDS} fold scores" in sentence for sentence in sentences)
        assert any("counts on the final board at rank" in sentence for sentence in sentences)


def test_worker_ended_in_order(demo: Demo) -> None:
    """The worker stopped by itself, and its log holds no traceback and no secret."""
    log = (demo.folder / "rehearsal" / "worker.log").read_text()
    assert "Traceback" not in log
    assert (demo.folder / "challenge.secret").read_text().strip() not in log


def test_used_folder_is_refused(demo: Demo) -> None:
    """In the folder of another demo, the demo exits with status 2 and a message."""
    process = start(demo.folder)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "exists already, so nothing was written" in output
    assert "Traceback" not in output
