"""The rehearsal, run as an organizer runs it but without a network, and the evaluation of its results."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import yaml

from leaderboard import Rounding
from tests.waiting import LIMIT_S
from tests.worker.harness.harness import ROOT, clean_environment
from tests.worker.organizer.doctor_faults import PHASES, ROWS, label_rows, public_ids, write_healthy
from worker.cli import guarded
from worker.cli.rehearse import show_rehearsal
from worker.cli.terminal import Console
from worker.organizer.rehearsal.entries import RehearsalEntry, csv_of
from worker.organizer.rehearsal.report import PhaseReport, Rehearsal, RehearsedSubmission

DIM, CONFIGURED_FOLDS = 8, 12
# With these, the labels are better than random numbers on every task, whatever round draws the splits.
FOLDS, EPOCHS = 10, 300


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
        "scoring": {"epochs": EPOCHS, "learning_rate": 0.05, "threads": 1},
        "leaderboard": {"repository": "git@github.invalid:a/b.git", "token": "file:nowhere"},
        "fairness": {"beacon": "drand", "drand_servers": ["https://drand.invalid"]},
        "alerts": {"webhook": "file:nowhere"},
    }
    document["phases"]["dev"] |= {"selection": "ladder", "ladder_step": 0.001}
    document["phases"]["eval"] |= {"shown": "at_end"}
    path = tmp_path / "challenge.yaml"
    document["phases"]["eval"] |= {"eligible_if_scored_in": "dev"}
    path.write_text(yaml.safe_dump(document))
    return path


def rehearse(path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``neuco-worker rehearse``."""
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", "rehearse", "--config", str(path), *arguments],
        env=clean_environment(**variables),
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.mark.slow
def test_a_rehearsal_plays_the_real_challenge_and_reaches_nobody(
    challenge: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Splits are drawn, own files ranked, a malformed file refused and a private one kept off the board; the challenge folder is unchanged.

    The first files of both phases come from one team, which eval ranks because it has a score in dev.
    The files of the rehearsal are kept in the folder given with ``--keep``. A file of the organizer that is refused is a problem, and the
    exit status is 1.
    """
    own = tmp_path_factory.mktemp("own")
    kept = own / "kept"
    for phase in PHASES:  # these embeddings contain the labels
        labels = [dict(rows) for rows in label_rows(phase).values()]
        matrix = np.zeros((ROWS, DIM), dtype=np.float32)
        for row, name in enumerate(public_ids(phase)):
            matrix[row, : len(labels)] = [float(values.get(name, 0)) for values in labels]
        (own / f"{phase}.csv").write_bytes(csv_of(public_ids(phase), matrix))
    (own / "bad.csv").write_bytes(csv_of(public_ids("dev"), np.full((ROWS, DIM), np.nan, dtype=np.float32)))
    before = {path: path.stat().st_mtime_ns for path in challenge.parent.rglob("*")}
    files = [
        f"--submission={name}"
        for name in (f"dev={own}/dev.csv", f"eval={own}/eval.csv", f"dev={own}/bad.csv")
    ]
    done = rehearse(challenge, "--folds", str(FOLDS), "--keep", str(kept), "--json", *files)
    assert done.returncode == 1, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert {"challenge.yaml", "leaderboard.git"} <= {path.name for path in kept.iterdir()}
    document = json.loads(done.stdout)
    (fault,) = document["faults"]
    assert fault.startswith("dev: bad.csv should have been scored")
    assert document["remarks"] == []
    for name, phase in document["phases"].items():
        mine = f"{name}.csv"
        assert (phase["folds"], phase["configured_folds"]) == (FOLDS, CONFIGURED_FOLDS)
        outcomes = {submission["entry"]["method"]: submission for submission in phase["submissions"]}
        assert {method: outcome["status"] for method, outcome in outcomes.items() if method != "bad.csv"} == {
            mine: "finished",
            "random embeddings": "finished",
            "a private file": "finished",
            "a malformed file": "failed",
        }
        assert "NaN" in outcomes["a malformed file"]["message"]
        assert outcomes[mine]["q_mean"] > outcomes["random embeddings"]["q_mean"]
        assert [(row["team"], row["rank"]) for row in phase["board"]] == [
            ("Rehearsal: yours", 1),
            ("Rehearsal: random", 2),
        ]
    *drawn, verdict = document["verified"]
    assert [text.partition(":")[0] for text in drawn] == [f"Phase {phase}" for phase in PHASES]
    assert all("Its splits follow from round" in text and "of a practice chain" in text for text in drawn)
    assert verdict.startswith("Consistent")
    assert "9 of 9 answered." in done.stderr
    assert "eval: closed; the withheld values are now shown." in done.stderr
    assert {path: path.stat().st_mtime_ns for path in challenge.parent.rglob("*")} == before


@pytest.mark.processes
@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--submission=x=a.csv", "does not begin with a phase"),
        ("--submission=dev=a.csv", "cannot be read"),
        ("--keep=/", "exists and is not an empty folder"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_before_anything_starts(
    challenge: Path, option: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the phase, the file or the folder."""
    assert guarded(["rehearse", "--config", str(challenge), option]) == 2
    assert sentence in capsys.readouterr().err


ENTRY = RehearsalEntry(team="A", method="random embeddings")
GOOD = RehearsedSubmission(phase="dev", entry=ENTRY, status="finished", q_mean=1.5, message="", seconds=2.0)
REFUSED = replace(
    GOOD,
    entry=RehearsalEntry(team="B", method="a malformed file", good=False),
    status="failed",
    q_mean=None,
    message="No.",
)
PRIVATE = replace(GOOD, entry=RehearsalEntry(team="C", method="a private file", public=False))
OWN = replace(GOOD, entry=RehearsalEntry(team="P", method="mine.csv"), q_mean=1.0)


def report(*submissions: RehearsedSubmission, board: tuple[str, ...] = ("A",), group: int = 1) -> Rehearsal:
    """Make a rehearsal of one phase, by default one without faults; random numbers are in group 2, and all others in the given one."""
    methods = {"A": (ENTRY.method, 2)}
    phase = PhaseReport(
        codename="dev",
        folds=2,
        configured_folds=4,
        rounding=Rounding(),
        submissions=submissions or (GOOD, REFUSED, PRIVATE),
        entries=tuple(
            {"team": team, "rank": 1, "q_mean": 1.0, "rank_by_mean": 1, "method": method, "group": number}
            for team in board
            for method, number in [methods.get(team, ("mine.csv", group))]
        ),
    )
    return Rehearsal(
        phases=(phase,),
        failures=(),
        seconds=1.0,
        drawn_by="drand",
    )


@pytest.mark.parametrize(
    ("rehearsal", "words"),
    [
        (report(replace(GOOD, status="running"), board=()), "should have been scored"),
        (report(GOOD, replace(REFUSED, status="finished")), "should have been refused"),
        (report(board=()), "but is not on the board"),
        (report(board=("A", "C")), "does not belong"),
        (report(board=("A", "B")), "does not belong"),
        (replace(report(), drawn_by="none"), "could have tried many and kept one"),
        (
            report(GOOD, OWN, board=("P", "A"), group=2),
            "Not clearly better than random numbers: mine.csv in phase dev.",
        ),
    ],
)
def test_each_deviation_is_reported(rehearsal: Rehearsal, words: str) -> None:
    """Every deviation from the expected result is described; what is only unusual, such as a file no better than noise, is a remark."""
    assert [sentence for sentence in (*rehearsal.faults, *rehearsal.remarks) if words in sentence]
    assert report().faults == report().remarks == ()
    assert report(GOOD, OWN, board=("P", "A")).remarks == ()


@pytest.mark.parametrize(
    ("group", "verdict"), [(1, "Everything worked as it should"), (2, "not clearly better than random")]
)
def test_the_last_line_says_whether_the_files_are_better_than_random(
    group: int, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An organizer who mixed up labels must not read as the last thing that all is well."""
    show_rehearsal(Console(soft_wrap=True), report(GOOD, OWN, board=("P", "A"), group=group))
    assert verdict in capsys.readouterr().out.strip().splitlines()[-1]


def failing_git(folder: Path, subcommand: str, reason: str) -> str:
    """Return a PATH whose git fails with a reason when it is asked for this."""
    (folder / "bin").mkdir()
    script = folder / "bin" / "git"
    script.write_text(
        f'#!/bin/sh\ncase " $* " in *" {subcommand} "*) echo "fatal: {reason}" >&2; exit 128;; esac\nexec {shutil.which("git")} "$@"\n'
    )
    script.chmod(0o755)
    return f"{script.parent}:{os.environ['PATH']}"


@pytest.mark.processes
def test_a_failing_git_is_not_a_bug_of_ours(
    challenge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own reason is shown, although it had something to make and not to read."""
    monkeypatch.setenv("PATH", failing_git(tmp_path, "init", "no room"))
    assert guarded(["rehearse", "--config", str(challenge)]) == 2
    refused = capsys.readouterr().err
    assert "neuco-worker: git cannot use " in refused
    assert ": no room.\n" in refused


@pytest.mark.slow
def test_what_the_worker_asks_a_person_for_is_shown(challenge: Path, tmp_path: Path) -> None:
    """The files of the rehearsal are deleted, so `status` can no longer say it."""
    document = yaml.safe_load(challenge.read_text())
    document["fairness"] = {"beacon": "none"}  # a draw is named in the repository, and waits for it
    del document["phases"]["eval"]
    challenge.write_text(yaml.safe_dump(document))
    failed = rehearse(challenge, "--folds", "1", PATH=failing_git(tmp_path, "push", "no room"))
    assert failed.returncode == 1
    assert "no room" in failed.stdout.partition("Problems")[2]


@pytest.mark.slow
def test_a_rehearsal_that_waits_says_why_and_leaves_nothing_when_terminated(
    challenge: Path, tmp_path: Path
) -> None:
    """Without pushes no draw is named. Its temporary folder, whose database contains the labels, and its worker are gone at the end."""
    environment = clean_environment(TMPDIR=str(tmp_path), PATH=failing_git(tmp_path, "push", "no room"))
    command = [sys.executable, "-m", "worker.cli", "rehearse", "--config", str(challenge)]
    with subprocess.Popen(command, env=environment, cwd=ROOT, text=True, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert "the worker starts" in process.stderr.readline()
        assert any("no room" in line for line in process.stderr if line.startswith("No answer for "))
        (folder,) = tmp_path.glob("neuco-rehearsal-*")
        process.terminate()
        assert process.wait(timeout=LIMIT_S) == 128 + signal.SIGTERM
    assert not folder.exists()
    assert not [
        found
        for found in psutil.process_iter(["cmdline"])
        if str(folder) in " ".join(found.info["cmdline"] or ())
    ]
