"""The doctor: every check finds its planted fault, a healthy challenge has no findings, and nothing is changed outside."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.harness.harness import ROOT, clean_environment, git
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
from worker.evalai import Challenge, Phase, PhaseSplit
from worker.evalai.records import parse
from worker.organizer.doctor import CHECKS, Level, evalai
from worker.organizer.scaffold import EXAMPLE_QUEUE
from worker.organizer.service import instance_of, open_places
from worker.sandbox import Fault as Spoilt
from worker.sandbox import FaultPlan

FINDINGS = (Level.WARN, Level.FAIL)
LEAST_CHECKS = 30


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
    """There is a planted fault for every check, and there are at least thirty checks."""
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert set(ids) == set(FAULTS)
    assert len(ids) >= LEAST_CHECKS


def test_a_healthy_challenge_has_no_finding(challenge: FaultyChallenge) -> None:
    """In a healthy challenge nothing is found, and nothing is skipped."""
    report = challenge.examine()
    assert [outcome.to_json() for outcome in report.outcomes if outcome.level is not Level.OK] == []
    assert report.level is Level.OK
    assert len(report.outcomes) == len(CHECKS)


@pytest.mark.parametrize(
    ("identifier", "fault"),
    [*FAULTS.items(), *SHADES],
    ids=[*FAULTS, *(f"{identifier}-{number}" for number, (identifier, _) in enumerate(SHADES))],
)
def test_a_check_finds_its_fault(challenge: FaultyChallenge, identifier: str, fault: Fault) -> None:
    """The check itself, and not another one, finds its fault, and says what to do."""
    fault.plant(challenge)
    report = challenge.examine(identifier)
    (outcome,) = [outcome for outcome in report.outcomes if outcome.check.id == identifier]
    found = [finding for finding in outcome.findings if finding.level in FINDINGS]
    assert outcome.level is fault.level, outcome.findings
    assert all(finding.sentence.endswith((".", "?")) and finding.cure for finding in found)
    assert "check itself failed" not in str(found)
    assert SECRET_LABEL not in json.dumps(report.to_json())


def test_what_evalai_does_not_say_is_no_finding() -> None:
    """An older or newer EvalAI may lack keys; only what it says is compared."""
    challenge = parse(Challenge, {"id": 7, "remote_evaluation": True}, "challenge")
    shown = {"is_public": True, "is_submission_public": True, "leaderboard_public": True}
    phase = parse(Phase, {"id": 11, "codename": "dev", "challenge": 7, **shown}, "phase")
    keys = {
        "id": 31,
        "challenge_phase": 11,
        "dataset_split": 51,
        "visibility": 3,
        "leaderboard_schema": {"labels": ["q_mean"]},
    }
    board = evalai.Leaderboard(phase, parse(PhaseSplit, keys, "phase split"), decimals=3)
    compared = ((challenge, evalai.CHALLENGE), (challenge, evalai.LAUNCH), (phase, evalai.PHASE))
    for thing, settings in (*compared, (phase, evalai.RATE), (board, evalai.LEADERBOARD)):
        assert not [setting.sentence for setting in settings if setting.wrong(thing)]


def test_a_place_that_the_units_open_is_no_finding(challenge: FaultyChallenge) -> None:
    """Following the cure removes the finding; each finding names key, place and unit."""
    FAULTS["machine.service"].plant(challenge)
    (outcome,) = challenge.examine("machine.service").at(Level.FAIL)
    (finding,) = outcome.findings
    for place in ("/etc/neuco-worker/earth/state (state)", "earth/board.git (leaderboard.repository)"):
        assert place in finding.sentence
    assert "sudo neuco-challenge earth paths" in finding.cure
    instance = instance_of(challenge.path)
    assert instance is not None
    assert {place.key for place in open_places(instance)} == {"state", "leaderboard.repository"}
    assert challenge.look("machine.service").level is Level.OK


def test_three_letters_of_a_hash_are_not_a_name(challenge: FaultyChallenge) -> None:
    """A task whose name is a part of an id, but not a word in it, is no finding."""
    folder = challenge.folder / "tasks" / "dev"
    some_id = next(name for name in public_ids("dev") if re.match(r"img_[a-f]{3}", name))
    (folder / "alpha__regr.csv").rename(folder / f"{some_id[4:7]}__regr.csv")
    assert challenge.examine("ids.neutral").level is Level.OK


@pytest.mark.parametrize(
    ("fairness", "words"),
    [
        ({"beacon": "drand"}, "scoring begins at least 10 minutes after the commitment"),
        ({"beacon": "drand", "beacon_notice": 90}, "at least 90 seconds after"),
        (
            {"beacon": "Lotto@2099-12-05T19:30+01:00"},
            "until Lotto has published its value, on 2099-12-05 at 18:30 UTC",
        ),
    ],
)
def test_the_wait_for_the_first_score_is_shown_even_without_problems(
    challenge: FaultyChallenge, fairness: dict[str, object], words: str
) -> None:
    """Organizers should know in advance that nothing is scored for a while."""
    changing({"fairness": fairness})(challenge)
    (outcome,) = [
        one for one in challenge.examine("beacon.chosen").outcomes if one.check.id == "beacon.chosen"
    ]
    (finding,) = outcome.findings
    assert (outcome.level, words in finding.sentence) == (Level.OK, True)


@pytest.mark.parametrize("failed", ["configuration.file", "evalai.server"])
def test_what_depends_on_a_failed_check_is_skipped(challenge: FaultyChallenge, failed: str) -> None:
    """Each error is reported once; checks of what could not be read guess nothing, and name the failed check."""
    FAULTS[failed].plant(challenge)
    report = challenge.examine()
    assert [outcome.check.id for outcome in report.at(Level.FAIL)] == [failed]
    (finding,) = next(o for o in report.outcomes if o.check.id == "evalai.launch").findings
    assert (finding.level, finding.sentence) == (Level.SKIPPED, f"{failed} failed.")


def fingerprint(folder: Path) -> dict[str, str]:
    """Return every file of a folder with the hash of its content and its mode."""
    return {
        str(
            path.relative_to(folder)
        ): f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        if path.is_file()
        else f"{path.stat().st_mode:o}"
        for path in sorted(folder.rglob("*"))
    }


def test_an_examination_changes_nothing(challenge: FaultyChallenge) -> None:
    """Nothing is received, written, pushed or posted, and no file of the challenge is made or changed."""
    challenge.open()
    waiting = challenge.evalai.submit("A", "dev", b"id,0\n")
    before, entries = fingerprint(challenge.folder), len(challenge.evalai.journal)
    report = challenge.look()
    assert report.level is Level.OK
    assert fingerprint(challenge.folder) == before
    made = list(challenge.evalai.journal)[entries:]
    assert {entry.kind for entry in made} == {"request"}
    assert {entry.method for entry in made} == {"GET"}
    assert not [entry for entry in made if entry.path.startswith("/api/jobs/challenge/queues/")]
    assert len(made) <= 10
    assert challenge.evalai.submission(waiting)["status"] == "submitted"
    assert git(challenge.folder / "board.git", "for-each-ref") == ""
    challenge.webhook.settimeout(60)
    connection, _ = challenge.webhook.accept()
    with connection:
        connection.settimeout(60)
        assert connection.recv(1) == b""  # connected, and hung up without a word


def doctor(challenge: FaultyChallenge, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "worker.cli", "doctor", "--config", str(challenge.path), *arguments],
        env=clean_environment(),
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def test_offline_makes_no_connection(challenge: FaultyChallenge) -> None:
    """Only the remote checks are skipped; with --all each check has a line."""
    challenge.open()
    entries = len(challenge.evalai.journal)
    done = doctor(challenge, "--offline", "--all")
    assert done.returncode == 0
    assert len(challenge.evalai.journal) == entries
    for check in CHECKS:
        assert f"{'-' if check.remote else '✓'} {check.question}" in done.stdout


def test_a_later_phase_that_is_not_public_yet_is_a_note(challenge: FaultyChallenge) -> None:
    """Before the approval only hosts may submit to it; participants have the first phase."""
    challenge.spoil_phase("eval", is_public=False)
    (finding,) = challenge.examine("evalai.launch").outcomes[-1].findings
    assert finding.level is Level.OK
    assert "Phase eval is not public" in finding.sentence
    assert "on the day on which it begins" in finding.sentence


def test_the_command_shows_failures_first_and_ends_with_1(challenge: FaultyChallenge) -> None:
    """Faults come first with their cures, each counted; then each group has a line, and what was examined is named."""
    FAULTS["ids.sorted"].plant(challenge)
    (challenge.folder / "eval.txt").write_text("\n".join(public_ids("eval")[::-1]))
    FAULTS["evalai.launch"].plant(challenge)
    challenge.open()
    done = doctor(challenge)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "2 problems to fix"
    assert "is not sorted" in lines[1]
    assert "LC_ALL=C sort" in lines[2]
    assert "is not sorted" in lines[3]
    assert lines[6] == "1 warning"
    assert "is not published" in lines[7]
    count = Counter(check.group for check in CHECKS)
    assert lines[10] == f"✓ Configuration: {count['configuration']} passed"
    assert f"✗ Public ids: {count['ids'] - 1} passed, 1 failed" in lines
    assert f"! EvalAI: {count['evalai'] - 1} passed, 1 with warnings" in lines
    table = lines.index("A submission on this machine")
    examined = lines[10:table]
    for words in (
        "“Healthy” with the phases dev, eval",
        "Phase dev: 80 public ids, 3 tasks.",
        "Challenge 7",
        "Branch main of",
    ):
        assert any(words in line for line in examined)
    assert any("a dry run of a push succeeded; nothing has been pushed yet" in line for line in examined)
    assert (
        len(
            [line for line in lines[table:] if re.match(r"│ (dev|eval) +│ +3 │ +80 │ +10 │ +\d+\.\d │", line)]
        )
        == 2
    )
    assert lines[-1].startswith(f"{len(CHECKS)} checks: {len(CHECKS) - 2} passed, 1 with warnings, 1 failed.")
    for hidden in (
        challenge.evalai.token("host"),
        "services/hidden",
        os.fspath(challenge.folder / "challenge.secret"),
    ):
        assert hidden not in done.stdout + done.stderr


def test_all_placeholders_are_one_problem(challenge: FaultyChallenge) -> None:
    """They are named with what to enter; what depends on them is not checked, so that there are no misleading findings."""
    challenge.change({"evalai": {"challenge": 0, "queue": EXAMPLE_QUEUE}})
    challenge.change({"leaderboard": {"repository": EXAMPLE_REPOSITORY}})
    example_tasks(challenge)
    FAULTS["configuration.bundle"].plant(challenge)  # which lacks the repository's address
    challenge.open()
    done = doctor(challenge)
    assert done.returncode == 1
    problem, finding, cure = done.stdout.splitlines()[:3]
    assert problem == "1 problem to fix"
    assert finding == (
        "  • What `init` wrote as an example is still in place: 4 files of phase dev, leaderboard.repository,"
        " evalai.challenge, evalai.queue."
    )
    for words in ("your own label files", "your own repository", "Upload bundle.zip"):
        assert words in cure
    assert "warning" not in done.stdout


def test_the_phase_whose_examples_were_replaced_is_checked(challenge: FaultyChallenge) -> None:
    """A phase with examples does not prevent checks of other phases; its own tasks are not checked."""
    example_tasks(challenge)
    challenge.labels("dev", "late__regr.csv", [("img_nowhere", "1")])
    challenge.labels(
        "eval", "alpha__regr.csv", [("img_nowhere", "1"), *label_rows("eval")["alpha__regr.csv"]]
    )
    (outcome,) = challenge.examine("labels.files").outcomes
    (finding,) = outcome.findings
    assert "eval/alpha__regr.csv" in finding.sentence


def test_too_few_steps_are_reported_with_their_number(challenge: FaultyChallenge) -> None:
    """Exactly the required number of steps is no finding; with one epoch less it is, and following the cure removes it."""
    # 72 steps; in each, weights can move by 0.01 · √8 of their initial size
    changing({"scoring": {"epochs": 8}})(challenge)
    assert challenge.examine("labels.steps").level is Level.OK
    changing({"scoring": {"epochs": 7}})(challenge)
    dev, _ = challenge.examine("labels.steps").outcomes[-1].findings
    assert "of 3 of 3 tasks" in dev.sentence
    assert "train for 63 steps in each fold" in dev.sentence
    assert "at least 71 are needed" in dev.sentence
    assert "set scoring.epochs to 8 or more" in dev.cure


def test_warnings_alone_end_with_0_and_json_is_one_document(challenge: FaultyChallenge) -> None:
    """With --json stdout has only one document, and waits are reported on stderr; a warning does not prevent a launch."""
    changing({"phases": {"dev": {"folds": 3}}})(challenge)
    challenge.open()
    challenge.evalai.set_faults(FaultPlan(storm_s=0.5))  # Retry-After has whole seconds: 1
    challenge.evalai.faults.force(Spoilt.STORM)
    done = doctor(challenge, "--json")
    assert "waiting 1 s, as EvalAI asks" in done.stderr
    document = json.loads(done.stdout)
    assert done.returncode == 0, document
    assert document["result"] == "warn"
    assert document["counts"] == {"ok": len(CHECKS) - 1, "skipped": 0, "warn": 1, "fail": 0}
    (warned,) = [check for check in document["checks"] if check["result"] == "warn"]
    assert warned["id"] == "configuration.phases"
    assert warned["findings"][0]["cure"]
