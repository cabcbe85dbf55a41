"""What others push to the leaderboard's branch stops nothing, is corrected, and is reported once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.leaderboard.harness.git_server import bare, git
from tests.worker.harness.commits import forged_commitment, forged_line
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.challenge.signing import Signer
from worker.fairness import commitments, events, receipts
from worker.organizer.doctor import examine
from worker.organizer.doctor.check import Level
from worker.state.alerts import ALERT_KEPT_FOR

pytestmark = pytest.mark.processes

HISTORY = "leaderboard/history.jsonl"
STRANGER = Signer(b"7" * 32)


def spoil(board: Path, files: Mapping[str, bytes | None], clone: Path) -> str:
    """Push a commit with these files as somebody else; return its hash."""
    git("clone", "--quiet", "--branch=main", str(board), str(clone), at=board)
    for path, content in files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).unlink() if content is None else (clone / path).write_bytes(content)
    git("add", "--all", at=clone)
    git("commit", "--quiet", "--message=mine", at=clone)
    git("push", "--quiet", "origin", "HEAD:main", at=clone)
    return git("rev-parse", "HEAD", at=clone)


def damages(harness: Harness) -> Iterator[Mapping[str, bytes | None]]:
    """Yield two commits of somebody else, each of which damages the log, the commitments and the history in another way."""
    yield {receipts.PATH: b"\xff\xfe", commitments.PATH: b"[" * 100_000, HISTORY: None}
    log, commitment, history = map(harness.published, (receipts.PATH, commitments.PATH, HISTORY))
    yield {
        receipts.PATH: forged_line(log, STRANGER),
        commitments.PATH: forged_commitment(commitment, STRANGER),
        HISTORY: f'{history}{{"phase":"dev"}}\n'.encode(),
        "index.html": b"<p>Mallory won</p>",
        "reveal/eval/reveal.json": b"{}",
    }


def test_commits_of_others_are_corrected_and_reported_once(harness: Harness, tmp_path: Path) -> None:
    """The worker publishes over it; the organizer is told commit and author; the history only grows, and nothing is contradicted."""
    harness.configure({"leaderboard": {"receipts_every": 30}})
    with harness.worker() as worker:
        harness.submit("A", embeddings(1))
        worker.drive()
        worker.advance(40)
        for number, files in enumerate(damages(harness)):
            before = harness.published(HISTORY)
            commit = spoil(harness.board, files, tmp_path / str(number))
            report = examine(harness.path, clock=worker.clock.now, only=["board.history"])
            assert {outcome.level for outcome in report.outcomes} <= {Level.OK}
            for _ in range(2):
                worker.advance(40)
            with worker.store.read() as tx:
                (alert,) = tx.alerts()
            assert (alert.code, alert.ends_at) == (
                "leaderboard.overwritten",
                alert.raised_at + ALERT_KEPT_FOR,
            )
            assert f"commit {commit[:10]} by other@example.org" in alert.text
            assert harness.published(HISTORY).startswith(before)
            worker.advance(90_000)
            assert worker.alerts() == set()
        assert harness.contradictions() == []


def test_a_first_push_replaces_files_of_others_only_after_a_yes(harness: Harness, tmp_path: Path) -> None:
    """Until then nothing is pushed: an alert and the doctor name the files, and the command that asks. Other files stay."""
    first = tmp_path / "first"
    git("clone", "--quiet", str(harness.board), str(first), at=tmp_path)
    git("checkout", "--quiet", "-b", "main", at=first)
    for path in ("README.md", "paper.pdf", "index.html", "leaderboard/of/2025.csv"):
        (first / path).parent.mkdir(parents=True, exist_ok=True)
        (first / path).write_text("ours since 2025")
    git("add", "--all", at=first)
    git("commit", "--quiet", "--message=ours", at=first)
    git("push", "--quiet", "origin", "main", at=first)
    harness.submit("A", embeddings(1))
    named = "would replace or remove: index.html, leaderboard/of/2025.csv."
    with harness.worker() as worker:
        worker.drive(lambda: "leaderboard.foreign_files" in worker.alerts())
        assert named in harness.command("status", COLUMNS="250").stdout
        report = examine(harness.path, clock=worker.clock.now, only=["board.foreign"])
        assert [named in finding.sentence for outcome in report.outcomes for finding in outcome.findings] == [
            True
        ]
        assert git("log", "--format=%s", "main", at=harness.board) == "ours"
    asked = harness.command("board", "publish")
    assert (asked.returncode, asked.stdout.count(named)) == (1, 1)
    assert git("log", "--format=%s", "main", at=harness.board) == "ours"
    assert harness.command("board", "publish", "--yes").returncode == 0
    kept = git("ls-tree", "-r", "--name-only", "main", at=harness.board).split()
    assert {"README.md", "paper.pdf", "index.html"} < set(kept)
    assert "leaderboard/of/2025.csv" not in kept
    assert harness.published("README.md").startswith("ours since 2025")
    with harness.worker() as worker:
        worker.drive()
        assert worker.alerts() == set()
        assert harness.teams() == ["A"]
    report = examine(harness.path, clock=worker.clock.now, only=["board.foreign"])
    assert [outcome.findings for outcome in report.outcomes] == [()]


def test_a_forced_push_is_reported_and_registered(harness: Harness, worker: StepWorker) -> None:
    """There are an alert and a note in the register, and everything is pushed again, once. A move to another repository is none."""
    harness.submit("A", embeddings(1))
    worker.drive()
    bare(harness.folder / "new.git")
    harness.configure({"leaderboard": {"repository": str(harness.folder / "new.git")}})
    worker.reload()
    harness.submit("B", embeddings(2))
    worker.drive()
    assert git("rev-parse", "main", at=harness.folder / "new.git")
    assert worker.alerts() == set()
    harness.configure({"leaderboard": {"repository": str(harness.board)}})
    worker.reload()
    worker.drive()
    last = git("rev-parse", "main", at=harness.board)
    git("update-ref", "refs/heads/main", "main~1", at=harness.board)
    for seed, team in ((3, "C"), (4, "D")):
        harness.submit(team, embeddings(seed))
        worker.drive()
    assert set(harness.teams()) == {"A", "B", "C", "D"}
    with worker.store.read() as tx:
        (alert,) = tx.alerts()
        (note,) = [event.fields for event in tx.events() if event.fields["kind"] == events.CHALLENGE]
    assert (alert.code, alert.ends_at) == ("leaderboard.rewritten", alert.raised_at + ALERT_KEPT_FOR)
    assert last[:10] in alert.text
    assert (note["what"], last[:10] in note["text"]) == ("rewritten", True)
    assert harness.contradictions() == []


def test_a_forced_push_is_reported_after_a_push_whose_end_was_lost(
    harness: Harness, worker: StepWorker
) -> None:
    """Whoever receives the push is killed after it was accepted; the worker then knows the commit, without another push."""
    harness.submit("A", embeddings(1))
    worker.drive()
    hook = harness.board / "hooks" / "post-receive"
    hook.write_text("#!/bin/sh\nrm $0\nkill -9 $PPID\n")
    hook.chmod(0o755)
    harness.submit("B", embeddings(2))
    worker.drive()
    assert not hook.exists()
    git("update-ref", "refs/heads/main", "main~1", at=harness.board)
    harness.submit("C", embeddings(3))
    worker.drive()
    assert worker.alerts() == {"leaderboard.rewritten"}
    assert set(harness.teams()) == {"A", "B", "C"}


def test_a_default_branch_that_was_renamed_is_told_until_it_is_shown_again(
    harness: Harness, worker: StepWorker
) -> None:
    """The worker pushes to the branch of the configuration, which visitors and `verify` no longer see."""
    harness.submit("A", embeddings(1))
    worker.drive()
    git("branch", "--move", "main", "trunk", at=harness.board)
    git("symbolic-ref", "HEAD", "refs/heads/trunk", at=harness.board)
    for team, seed in (("B", 2), ("C", 3)):
        harness.submit(team, embeddings(seed))
        worker.drive()
        assert worker.alerts() == {"leaderboard.rewritten", "leaderboard.not_shown"}
    assert "git symbolic-ref HEAD refs/heads/main" in worker.alert("leaderboard.not_shown")
    git("symbolic-ref", "HEAD", "refs/heads/main", at=harness.board)
    harness.submit("D", embeddings(4))
    worker.drive()
    assert worker.alerts() == {"leaderboard.rewritten"}
    assert harness.contradictions() == []


def test_a_default_branch_that_nobody_pushes_is_told(harness: Harness, worker: StepWorker) -> None:
    """Such as master in what `git init` made. A clone of the repository is empty, which no check before the first push can find."""
    git("symbolic-ref", "HEAD", "refs/heads/master", at=harness.board)
    for team, seed in (("A", 1), ("B", 2)):
        harness.submit(team, embeddings(seed))
        worker.drive()
    assert "is one that does not exist" in worker.alert("leaderboard.not_shown")
    git("symbolic-ref", "HEAD", "refs/heads/main", at=harness.board)
    git("branch", "-D", "main", at=harness.board)
    harness.submit("C", embeddings(3))
    worker.drive()
    assert worker.alerts() == {"leaderboard.rewritten"}


def press_the_merge_button(board: Path, clone: Path) -> None:
    """Merge a branch that began at an older commit."""
    git("clone", "--quiet", "--branch=main", str(board), str(clone), at=board)
    git("checkout", "--quiet", "-b", "side", "HEAD~1", at=clone)
    (clone / "LICENSE").write_text("mine")
    git("add", "--all", at=clone)
    git("commit", "--quiet", "--message=mine", at=clone)
    git("checkout", "--quiet", "main", at=clone)
    git("merge", "--quiet", "--no-ff", "--no-edit", "side", at=clone)
    git("push", "--quiet", "origin", "main", at=clone)


def merge_another_root(board: Path, clone: Path) -> None:
    """Merge a root of one's own as first parent, which leaves every file as it is."""
    git("clone", "--quiet", "--branch=main", str(board), str(clone), at=board)
    root = git("commit-tree", "HEAD^{tree}", "-m", "root", at=clone).strip()
    merge = git("commit-tree", "HEAD^{tree}", "-p", root, "-p", "HEAD", "-m", "merge", at=clone).strip()
    git("push", "--quiet", "origin", f"{merge}:main", at=clone)


def delete_the_branch(board: Path, clone: Path) -> None:
    """Delete the branch."""
    git("update-ref", "-d", "refs/heads/main", at=board)


def replace_the_branch(board: Path, clone: Path) -> None:
    """Force another history with a commitment that another key has signed."""
    listed = git("show", f"main:{commitments.PATH}", at=board)
    git("init", "--quiet", str(clone), at=board)
    (clone / commitments.PATH).write_bytes(forged_commitment(listed, STRANGER))
    git("add", "--all", at=clone)
    git("commit", "--quiet", "--message=mine", at=clone)
    git("push", "--quiet", "--force", str(board), "HEAD:main", at=clone)


@pytest.mark.parametrize(
    ("others", "alerts"),
    [
        (press_the_merge_button, set()),
        (merge_another_root, set()),
        (delete_the_branch, {"leaderboard.rewritten"}),
        (replace_the_branch, {"leaderboard.rewritten"}),
    ],
)
def test_whatever_others_do_to_the_branch_heals(
    harness: Harness,
    worker: StepWorker,
    tmp_path: Path,
    others: Callable[[Path, Path], None],
    alerts: set[str],
) -> None:
    """The next push publishes everything again, and the history is the one that it was."""
    for team, seed in (("A", 1), ("B", 2)):
        harness.submit(team, embeddings(seed))
        worker.drive()
    before = harness.published(HISTORY)
    others(harness.board, tmp_path / "clone")
    harness.submit("C", embeddings(3))
    worker.drive()
    assert worker.alerts() == alerts
    assert harness.published(HISTORY).startswith(before)
    assert set(harness.teams()) == {"A", "B", "C"}
    assert harness.contradictions() == []


def test_a_first_commit_of_another_key_needs_a_yes_and_stops_nothing_else(
    harness: Harness, tmp_path: Path
) -> None:
    """A repository that began with another key's commitment gets the board after a yes, and the doctor names the key."""
    clone = tmp_path / "clone"
    git("init", "--quiet", str(clone), at=tmp_path)
    (clone / commitments.PATH).write_text(
        json.dumps([commitments.signed({"key": STRANGER.public}, STRANGER)])
    )
    (clone / HISTORY).parent.mkdir()
    (clone / HISTORY).write_text("theirs\n")
    git("add", "--all", at=clone)
    git("commit", "--quiet", "--message=mine", at=clone)
    git("push", "--quiet", str(harness.board), "HEAD:main", at=clone)
    with harness.worker() as worker:
        report = examine(harness.path, clock=worker.clock.now, only=["board.history"])
        findings = " ".join(finding.sentence for outcome in report.outcomes for finding in outcome.findings)
        assert "signed with another key" in findings
        harness.submit("A", embeddings(1))
        worker.drive(lambda: worker.alerts() == {"leaderboard.foreign_files"})
    harness.decide("board", "publish", "--yes")
    with harness.worker() as worker:
        worker.drive()
        assert worker.alerts() == set()
    assert harness.teams() == ["A"]
    assert "theirs" not in harness.published(HISTORY)
    assert harness.contradictions() == []
