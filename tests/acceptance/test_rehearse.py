"""The rehearsal, run as an organizer runs it but without a network, and the evaluation of its results."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scoring.errors import OrganizerError
from tests.worker.harness.harness import ROOT, clean_environment
from tests.worker.organizer.doctor_faults import PHASES, ROWS, label_rows, public_ids, write_healthy
from worker.challenge.configuration import load
from worker.organizer.rehearsal.entries import csv_of, own_entries
from worker.organizer.rehearsal.report import PhaseReport, Rehearsal, RehearsedSubmission

DIM, CONFIGURED_FOLDS, FOLDS = 8, 12, 3


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    """A challenge whose EvalAI, repository, token and webhook cannot be reached."""
    write_healthy(tmp_path)
    document: dict[str, Any] = {
        "challenge": {"title": "Rehearsed"},
        "evalai": {
            "server": "https://evalai.invalid",
            "challenge": 2465,
            "queue": "the-real-queue",
            "token": "file:nowhere",
            "requests_per_minute": 50,
        },
        "phases": {
            phase: {
                "split": f"{phase}_split",
                "tasks": f"./tasks/{phase}",
                "ids": f"./{phase}.txt",
                "folds": CONFIGURED_FOLDS,
            }
            for phase in PHASES
        },
        "submission": {"embedding_dim": DIM},
        "scoring": {"epochs": 10, "learning_rate": 0.05, "threads": 1},
        "leaderboard": {"repository": "git@github.invalid:a/b.git", "token": "file:nowhere"},
        "fairness": {"beacon": "drand", "drand_servers": ["https://drand.invalid"]},
        "alerts": {"webhook": "file:nowhere"},
    }
    document["phases"]["dev"] |= {"selection": "ladder", "ladder_step": 0.001}
    document["phases"]["eval"] |= {"shown": "at_end"}
    path = tmp_path / "challenge.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def rehearse(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``neuco-worker rehearse``."""
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", "rehearse", "--config", str(path), *arguments],
        env=clean_environment(),
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def write_submissions(folder: Path) -> list[str]:
    """Write embeddings that contain the labels, and return the arguments that submit them."""
    arguments = []
    for phase in PHASES:
        labels = [dict(rows) for rows in label_rows(phase).values()]
        matrix = np.zeros((ROWS, DIM), dtype=np.float32)
        for row, name in enumerate(public_ids(phase)):
            matrix[row, : len(labels)] = [float(values.get(name, 0)) for values in labels]
        (folder / f"{phase}.csv").write_bytes(csv_of(public_ids(phase), matrix))
        arguments += ["--submission", f"{phase}={folder / phase}.csv"]
    return arguments


@pytest.mark.slow
def test_a_rehearsal_plays_the_real_challenge_and_reaches_nobody(
    challenge: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Splits are drawn, own files ranked, a malformed file refused and a private one kept off the board; the challenge folder is unchanged.

    The files of the rehearsal are kept in the folder given with ``--keep``.
    """
    kept = tmp_path_factory.mktemp("kept")
    arguments = write_submissions(tmp_path_factory.mktemp("own"))
    before = {path: path.stat().st_mtime_ns for path in challenge.parent.rglob("*")}
    done = rehearse(challenge, "--folds", str(FOLDS), "--keep", str(kept), "--json", *arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    assert {"challenge.yaml", "leaderboard.git"} <= {path.name for path in kept.iterdir()}
    document = json.loads(done.stdout)
    assert document["result"] == "ok"
    assert document["faults"] == document["remarks"] == []
    assert list(document["phases"]) == list(PHASES)
    for name, phase in document["phases"].items():
        own = f"{name}.csv"
        assert (phase["folds"], phase["configured_folds"]) == (FOLDS, CONFIGURED_FOLDS)
        outcomes = {one["method"]: one for one in phase["submissions"]}
        assert {method: one["status"] for method, one in outcomes.items()} == {
            own: "finished",
            "random embeddings": "finished",
            "a private file": "finished",
            "a malformed file": "failed",
        }
        assert "NaN" in outcomes["a malformed file"]["message"]
        assert outcomes[own]["q_mean"] > outcomes["random embeddings"]["q_mean"]
        assert [(row["team"], row["rank"]) for row in phase["board"]] == [
            (f"Rehearsal: {own}", 1),
            ("Rehearsal: random", 2),
        ]
        assert 0 < phase["submissions_per_hour"] <= document["evalai"]["submissions_per_hour"]
        assert outcomes[own]["full_seconds"] > outcomes[own]["seconds"] > 0
    assert document["evalai"]["calls_per_submission"] >= 3
    *drawn, verdict = document["verified"]
    assert [told.partition(":")[0] for told in drawn] == [f"Phase {phase}" for phase in PHASES]
    assert all("Its splits follow from round" in told and "of a practice chain" in told for told in drawn)
    assert verdict.startswith("Consistent")
    assert "In the real challenge, scoring begins at least 10 minutes after the commitment." in done.stderr
    assert "8 of 8 answered." in done.stderr
    assert "eval: closed; the withheld values are now shown." in done.stderr
    assert {path: path.stat().st_mtime_ns for path in challenge.parent.rglob("*")} == before


def test_a_rehearsal_overwrites_nothing(challenge: Path) -> None:
    """A ``--keep`` folder that is not empty is refused before the rehearsal starts."""
    done = rehearse(challenge, "--keep", str(challenge.parent))
    assert done.returncode == 2
    assert "exists and is not an empty folder" in done.stderr


@pytest.mark.slow
def test_what_does_not_come_out_as_it_should_ends_with_1(challenge: Path) -> None:
    """A file of the organizer that is refused is reported, and the exit status is 1."""
    document = yaml.safe_load(challenge.read_text())
    del document["phases"]["eval"]
    challenge.write_text(yaml.safe_dump(document))
    mine = challenge.parent / "mine.csv"
    mine.write_bytes(csv_of(public_ids("dev"), np.full((ROWS, DIM), np.nan, dtype=np.float32)))
    done = rehearse(challenge, "--folds", "1", "--submission", f"dev={mine}")
    assert done.returncode == 1
    assert "Problems" in done.stdout
    assert "dev: mine.csv should have been scored" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"), [("x=a.csv", "does not begin with a phase"), ("dev=a.csv", "cannot be read")]
)
def test_a_submission_that_cannot_be_read_is_refused(challenge: Path, text: str, sentence: str) -> None:
    """The error names the phase or the file, before anything is started."""
    with pytest.raises(OrganizerError, match=sentence):
        own_entries([text], load(challenge).phases)


def test_a_file_has_the_numbers_to_the_last_bit() -> None:
    """The numbers read back equal those written, and an id is quoted only if necessary."""
    ids = ("plain", "a, comma", 'a "quote"')
    matrix = np.random.default_rng(3).standard_normal((3, 2), dtype=np.float32) * np.float32(1e-7)
    header, first, *rest = csv.reader(io.StringIO(csv_of(ids, matrix).decode()))
    assert header == ["id", "0", "1"]
    assert [row[0] for row in (first, *rest)] == list(ids)
    assert np.array_equal(np.array([row[1:] for row in (first, *rest)], dtype=np.float32), matrix)
    assert csv_of(ids, matrix).splitlines()[1].startswith(b"plain,")


GOOD = RehearsedSubmission(
    phase="dev",
    team="A",
    method="random embeddings",
    public=True,
    good=True,
    status="finished",
    q_mean=1.5,
    message="",
    silent=True,
    seconds=2.0,
    full_seconds=4.0,
)
REFUSED = replace(
    GOOD, team="B", method="a malformed file", good=False, status="failed", q_mean=None, message="No."
)
PRIVATE = replace(GOOD, team="C", method="a private file", public=False)


def report(*submissions: RehearsedSubmission, board: tuple[str, ...] = ("A",), **changes: Any) -> PhaseReport:
    """Make a phase's report, by default one without faults."""
    entries = tuple({"team": team, "rank": 1, "q_mean": 1.0} for team in board)
    base = PhaseReport(
        codename="dev",
        folds=2,
        configured_folds=4,
        decimals=3,
        ladder_step=None,
        shows_all=True,
        submissions=submissions or (GOOD, REFUSED, PRIVATE),
        entries=entries,
    )
    return replace(base, **changes)


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (report(replace(GOOD, status="running"), board=()), "should have been scored"),
        (report(replace(GOOD, q_mean=None)), "not one number"),
        (report(replace(GOOD, q_mean=float("nan"))), "not one number"),
        (report(replace(GOOD, silent=False)), "not one number"),
        (report(GOOD, replace(REFUSED, status="finished")), "should have been refused"),
        (report(GOOD, replace(REFUSED, message="")), "without a reason"),
        (report(board=()), "but is not on the board"),
        (report(board=("A", "C")), "does not belong"),
        (report(board=("A", "B")), "does not belong"),
    ],
)
def test_each_deviation_is_reported(phase: PhaseReport, words: str) -> None:
    """Every deviation from the expected result is a fault with a description."""
    assert [fault for fault in phase.faults if words in fault]


def test_the_source_of_the_splits_is_reported() -> None:
    """A challenge that uses no public value gets a remark about the risk."""
    base = Rehearsal(
        phases=(report(),), calls_per_submission=4.0, requests_per_minute=50, failures=(), seconds=1.0
    )
    assert base.faults == ()
    (remark,) = base.remarks
    assert "could have tried many and kept one" in remark
    assert replace(base, drawn_by="drand").remarks == ()


def test_a_good_phase_has_no_fault_even_with_an_empty_board_by_choice() -> None:
    """A good phase has no fault, and neither has one with an empty board if the organizer chooses the entries."""
    assert list(report().faults) == []
    assert list(report(board=(), shows_all=False).faults) == []


def test_a_file_no_better_than_noise_is_remarked() -> None:
    """If an own file scores no better than random embeddings, a remark says so, because the labels may not belong to the ids."""
    own = replace(GOOD, team="P", method="mine.csv", q_mean=1.0)
    assert "no better than random" in next(report(GOOD, own, board=("A", "P")).remarks)
    assert not list(report(GOOD, replace(own, q_mean=9.0), board=("A", "P")).remarks)


def test_the_lower_limit_decides_the_capacity() -> None:
    """The hourly capacity is the lower of the machine's and that of EvalAI's rate limit."""
    base = Rehearsal(
        phases=(report(),), calls_per_submission=4.0, requests_per_minute=50, failures=(), seconds=1.0
    )
    (phase,) = base.phases
    assert phase.per_hour == 900
    assert base.calls_per_hour == 750
    assert base.carried(phase) == 750
    assert replace(base, calls_per_submission=1.0).carried(phase) == 900
