"""The doctor: every check finds a planted fault, a healthy challenge has no findings, and nothing is changed outside."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.worker.harness.harness import git
from tests.worker.organizer.doctor_faults import (
    FAULTS,
    SECRET_LABEL,
    SHADES,
    Fault,
    FaultyChallenge,
    changing,
    example_tasks,
    label_rows,
    public_ids,
    write_healthy,
)
from worker.challenge.configuration import EXAMPLE_REPOSITORY
from worker.cli import guarded
from worker.evalai import Challenge, Phase, PhaseSplit
from worker.evalai.records import parse
from worker.organizer.doctor import CHECKS, Level, evalai
from worker.organizer.scaffold import EXAMPLE_QUEUE
from worker.sandbox import Fault as Spoilt
from worker.sandbox import FaultPlan
from worker.sandbox import settings as at_evalai

FINDINGS = (Level.WARN, Level.FAIL)


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The healthy challenge, from which every faulty one is copied."""
    folder = tmp_path_factory.mktemp("healthy")
    write_healthy(folder)
    return folder


@pytest.fixture
def challenge(healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyChallenge]:
    """A copy of the healthy challenge."""
    folder = tmp_path / "etc" / "neuco-worker" / "earth"
    shutil.copytree(healthy, folder)
    with FaultyChallenge(folder=folder, monkeypatch=monkeypatch) as challenge:
        yield challenge


def test_every_check_has_a_fault_that_proves_it() -> None:
    """No check is without a planted fault, and no two have the same id."""
    assert sorted(check.id for check in CHECKS) == sorted(FAULTS)


@pytest.mark.parametrize(
    ("identifier", "fault"),
    [*FAULTS.items(), *SHADES],
    ids=[*FAULTS, *(f"{identifier}-{number}" for number, (identifier, _) in enumerate(SHADES))],
)
def test_a_check_finds_its_fault(challenge: FaultyChallenge, identifier: str, fault: Fault) -> None:
    """The check itself, and not another one, finds its fault, and says what to do."""
    level, plant = fault
    plant(challenge)
    report = challenge.examine(identifier)
    (outcome,) = report.outcomes
    findings = [finding for finding in outcome.findings if finding.level in FINDINGS]
    assert outcome.level is level, outcome.findings
    assert all(finding.sentence.endswith((".", "?")) and finding.cure for finding in findings)
    assert "check itself failed" not in str(findings)
    assert SECRET_LABEL not in json.dumps(report.to_json())


SETTINGS: list[tuple[str, dict[str, object]]] = [
    ("CHALLENGE", {"remote_evaluation": False}),
    ("CHALLENGE", {"is_docker_based": True}),
    ("CHALLENGE", {"manual_participant_approval": True}),
    ("CHALLENGE", {"allow_participants_resubmissions": True}),
    ("CHALLENGE", {"use_fifo_sqs": True}),
    ("LAUNCH", {"published": False}),
    ("LAUNCH", {"approved_by_admin": False}),
    ("PHASE", {"is_submission_paused": True}),
    ("PHASE", {"disable_logs": True}),
    ("PHASE", {"is_submission_public": False}),
    ("PHASE", {"is_partial_submission_evaluation_enabled": True}),
    ("PHASE", {"allowed_submission_file_types": ".csv, .zip, .parquet, .npz"}),
    ("PHASE", {"is_restricted_to_select_one_submission": True}),
    ("RATE", {"max_submissions_per_day": 100_000, "max_submissions_per_month": 100_000}),
    ("LEADERBOARD", {"visibility": 1}),
    ("LEADERBOARD", {"leaderboard_public": False}),
    ("LEADERBOARD", {"show_leaderboard_by_latest_submission": True}),
    ("LEADERBOARD", {"is_leaderboard_order_descending": False}),
    ("LEADERBOARD", {"leaderboard_decimal_precision": 2}),
    ("LEADERBOARD", {"show_scores_on_leaderboard": False}),
    ("LEADERBOARD", {"show_execution_time": True}),
]
USUAL = {
    **at_evalai.CHALLENGE,
    **at_evalai.PHASE,
    **at_evalai.SPLIT,
    "max_submissions_per_day": 10,
    "max_concurrent_submissions_allowed": 3,
}
LEAST = {
    "remote_evaluation": True,
    "is_public": True,
    "is_submission_public": True,
    "leaderboard_public": True,
    "visibility": 3,
}


def wrong(table: str, answers: Mapping[str, object]) -> int:
    """Count the settings of a table that are wrong at an EvalAI that answers with these values."""
    phase = parse(Phase, {"id": 11, "codename": "dev", "challenge": 7, **answers}, "phase")
    keys = {
        "id": 31,
        "challenge_phase": 11,
        "dataset_split": 51,
        "leaderboard_schema": {"labels": ["q_mean"]},
    }
    split = parse(PhaseSplit, {**keys, **answers}, "phase split")
    examined: dict[str, Any] = {
        "PHASE": phase,
        "RATE": phase,
        "LEADERBOARD": evalai.Leaderboard(phase, split, decimals=3),
    }
    thing = examined.get(table) or parse(Challenge, {"id": 7, **answers}, "challenge")
    return sum(setting.wrong(thing) for setting in getattr(evalai, table))


@pytest.mark.parametrize(("table", "answer"), SETTINGS, ids=[next(iter(answer)) for _, answer in SETTINGS])
def test_each_setting_of_evalai_is_compared(table: str, answer: dict[str, object]) -> None:
    """Each wrong value is one finding; an older or newer EvalAI may lack keys, and what it does not say is none."""
    assert (wrong(table, USUAL | answer), wrong(table, USUAL), wrong(table, LEAST)) == (1, 0, 0)


@pytest.mark.parametrize("failed", ["configuration.file", "evalai.server"])
def test_what_depends_on_a_failed_check_is_skipped(challenge: FaultyChallenge, failed: str) -> None:
    """Each error is reported once; checks of what could not be read guess nothing, and name the failed check."""
    _, plant = FAULTS[failed]
    plant(challenge)
    report = challenge.examine()
    assert [outcome.check.id for outcome in report.at(Level.FAIL)] == [failed]
    (finding,) = next(o for o in report.outcomes if o.check.id == "evalai.launch").findings
    assert (finding.level, finding.sentence) == (Level.SKIPPED, f"{failed} failed.")


def fingerprint(folder: Path) -> dict[str, tuple[int, str]]:
    """Return every file of a folder with its mode and the hash of its content."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def test_a_healthy_challenge_has_no_finding_and_is_not_changed(challenge: FaultyChallenge) -> None:
    """Nothing is found or skipped, received, written, pushed or posted, and no file of the challenge is made or changed."""
    challenge.open()
    waiting = challenge.evalai.submit("A", "dev", b"id,0\n")
    before, entries = fingerprint(challenge.folder), len(challenge.evalai.journal)
    report = challenge.look()
    assert [outcome.to_json() for outcome in report.outcomes if outcome.level is not Level.OK] == []
    assert len(report.outcomes) == len(CHECKS)
    assert fingerprint(challenge.folder) == before
    made = list(challenge.evalai.journal)[entries:]
    assert {(entry.kind, entry.method) for entry in made} == {("request", "GET")}
    assert not [entry for entry in made if entry.path.startswith("/api/jobs/challenge/queues/")]
    assert len(made) <= 10
    assert challenge.evalai.submission(waiting)["status"] == "submitted"
    assert git(challenge.folder / "board.git", "for-each-ref") == ""
    challenge.webhook.settimeout(60)
    connection, _ = challenge.webhook.accept()
    with connection:
        connection.settimeout(60)
        assert connection.recv(1) == b""  # connected, and hung up without a word


def test_the_command_shows_failures_first_and_ends_with_1(
    challenge: FaultyChallenge, capsys: pytest.CaptureFixture[str]
) -> None:
    """Faults come first with their cures, each counted; then each group has a line, and what was examined is named."""
    (challenge.folder / "dev.txt").write_text("\n".join(public_ids("dev")[::-1]))
    (challenge.folder / "eval.txt").write_text("\n".join(public_ids("eval")[::-1]))
    FAULTS["evalai.launch"][1](challenge)
    challenge.open()
    assert guarded(["doctor", "--config", str(challenge.path)]) == 1
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "2 problems to fix"
    assert all("is not sorted" in line for line in (lines[1], lines[3]))
    assert "LC_ALL=C sort" in lines[2]
    assert lines[6] == "1 warning"
    assert "is not published" in lines[7]
    for words in (
        "✓ Configuration: 4 passed",
        "✗ Public ids: 2 passed, 1 failed",
        "! EvalAI: 9 passed, 1 with warnings",
        "“Healthy” with the phases dev, eval",
        "Phase dev: 80 public ids, 3 tasks.",
        "Phase dev: scoring a submission takes about",
        "Challenge 7",
        "Branch main of",
        "Nothing is scored until Lotto 6 aus 49 has published its value, on 2099-12-05 at 18:30 UTC",
        "a dry run of a push succeeded; nothing has been pushed yet",
    ):
        assert any(words in line for line in lines[10:]), words
    assert lines[-1].startswith(f"{len(CHECKS)} checks: {len(CHECKS) - 2} passed, 1 with warnings, 1 failed.")
    for hidden in (
        challenge.evalai.token("host"),
        "services/hidden",
        os.fspath(challenge.folder / "challenge.secret"),
    ):
        assert hidden not in captured.out + captured.err


def test_all_placeholders_are_one_problem(challenge: FaultyChallenge) -> None:
    """They are named with what to enter; what depends on them is not checked, but the other phase is."""
    challenge.change({"evalai": {"challenge": 0, "queue": EXAMPLE_QUEUE}})
    challenge.change({"leaderboard": {"repository": EXAMPLE_REPOSITORY}})
    example_tasks(challenge)
    challenge.labels("dev", "late__regr.csv", [("img_nowhere", "1")])
    (outcome,) = challenge.examine().at(Level.FAIL)
    (finding,) = outcome.findings
    assert finding.sentence == (
        "What `init` wrote as an example is still in place: 4 files of phase dev, leaderboard.repository,"
        " evalai.challenge, evalai.queue."
    )
    for words in ("your own label files", "your own repository", "Upload bundle.zip"):
        assert words in finding.cure
    rows = [("img_nowhere", "1"), *label_rows("eval")["alpha__regr.csv"]]
    challenge.labels("eval", "alpha__regr.csv", rows)
    (finding,) = challenge.look("labels.files").outcomes[0].findings
    assert "eval/alpha__regr.csv" in finding.sentence


def test_warnings_alone_end_with_0_and_json_is_one_document(
    challenge: FaultyChallenge, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json stdout has only one document, and waits are reported on stderr; --offline makes no call, and --all shows each check."""
    changing(phases={"dev": {"folds": 3}})(challenge)
    challenge.open()
    challenge.evalai.set_faults(FaultPlan(storm_s=0.5))  # Retry-After has whole seconds: 1
    challenge.evalai.faults.force(Spoilt.STORM)
    command = ["doctor", "--config", str(challenge.path)]
    assert guarded([*command, "--json"]) == 0
    printed = capsys.readouterr()
    assert "waiting 1 s, as EvalAI asks" in printed.err
    document = json.loads(printed.out)
    assert document["counts"] == {"ok": len(CHECKS) - 1, "skipped": 0, "warn": 1, "fail": 0}
    (warned,) = [check for check in document["checks"] if check["result"] == "warn"]
    assert warned["id"] == "configuration.phases"
    assert warned["findings"][0]["cure"]
    entries = len(challenge.evalai.journal)
    assert guarded([*command, "--offline", "--all"]) == 0
    assert len(challenge.evalai.journal) == entries
    page = capsys.readouterr().out
    for check in CHECKS:
        mark = "-" if check.remote else "!" if check.id == warned["id"] else "✓"
        assert f"{mark} {check.question}" in page
