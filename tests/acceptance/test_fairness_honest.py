"""One long honest challenge with many changes, in which verify contradicts nothing, and no receipt."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.fair_challenge import BASELINE, HOSTS
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import WARM_CACHE, Harness, clean_environment, embeddings, git
from worker.sandbox import ManualClock
from worker.verify import (
    Report,
    Status,
    Verdict,
    make_report,
    older_verdicts,
    receipt_verdicts,
    verdicts,
)
from worker.verify.public import PublicRepository, opened
from worker.verify.recompute import published_verdicts

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("fairness_honest")]
CADENCE_S = 3600.0
ANSWERS = {
    "baseline": "counts on the final board without a rank (as a baseline)",
    "trial": "as a trial of their own: it is on no board",
    "A1": "was run again at EvalAI as submission",
    "A1 again": "does not count: submission",
    "A2": "counts on the final board at rank",
    "B1": "does not count: submission",
    "B3": "counts on the final board at rank",
    "B2": "does not count: submission",
    "D1": "is private, and was revealed as private",
    "hidden": "is private, and was revealed as private",
    "lost": "If neither that one nor a later one of your team counts, show it to the organizers",
    "lost again": "counts on the final board at rank",
    "lost too": "was lost when the state was restored from a backup",
    "lost too again": "counts on the final board at rank",
    "eval D": "counts on the final board at rank",
    "eval E": "without a rank (out of competition)",
    "late": "by the rules, the best one counts",
    "too late": "is on no board: the board was closed on",
    "C1": "the organizers disqualified it on",
    "C1 again": "the organizers disqualified it on",
    "H in dev": "the organizers disqualified its team with all its submissions on",
    "H in eval": "the organizers disqualified its team with all its submissions on",
}
"""Words of the verdict on each receipt after the end."""
BELIEVED = {"lost", "lost too", "trial"}
REASONS = (
    "(a wrong label)",
    "(announced on 1 June)",
    "(as announced)",
    "(without ground)",
    "(a complaint)",
    "(two accounts)",
    "the state was restored from a backup",
    "The history of the leaderboard's branch was rewritten",
)
"""Reasons that the report must give for the organizers' decisions."""
UNOPENED = {"ends": ["register", "reveal"], "ends_everywhere": []}
"""The checks that wait for a reveal after a stage; first, that of phase eval."""
BAD = b"id,0,1\nimg_000,1,2\n"


class Challenge:
    """A challenge, the answers that its participants kept, and clones that others made while it ran.

    Attributes:
        harness: The challenge.
        stdouts: Every stdout that EvalAI ever showed, by the commitment in its receipt.
        clones: The repository as it was at each verification.
        report: The report of the last verification.
    """

    report: Report

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.stdouts: dict[str, dict[str, Any]] = {}
        self.clones: list[PublicRepository] = []
        self.pks: dict[str, int] = {}

    def submit(self, name: str, *arguments: Any, **options: Any) -> None:
        """Submit, and store the submission's number under a name."""
        self.pks[name] = self.harness.submit(*arguments, **options)

    def work(self) -> None:
        """Run a worker until no work is left, and keep the answers that EvalAI shows to participants."""
        with self.harness.worker() as worker:
            worker.drive()
        for pk in self.harness.evalai.journal.posts():
            if self.harness.status(pk) == "finished":
                stdout = self.harness.stdout(pk)
                self.stdouts[stdout["receipt"]["commitment"]] = stdout

    def another_line(self) -> None:
        """Run a worker until the next line of the public log is due and published."""
        self.work()
        self.harness.clock.advance(CADENCE_S)
        self.work()

    def contradictions(self) -> list[str]:
        """Verify a fresh clone with the kept receipts and all earlier clones, and return the contradictions."""
        with opened(str(self.harness.board)) as repository:
            self.report = make_report(repository, verdicts(repository))
            all_verdicts = [*self.report.verdicts, *published_verdicts(repository)]
            for stdout in self.stdouts.values():
                all_verdicts += self._receipt(repository, stdout)
            for clone in self.clones:
                all_verdicts += older_verdicts(repository, clone)
            self.clones.append(replace(repository, files=dict(repository.files)))  # usable when it is closed
        return [
            f"{verdict.phase} {verdict.check}: {verdict.sentence}"
            for verdict in all_verdicts
            if verdict.status is Status.CONTRADICTED
        ]

    def answer(self, name: str) -> Verdict:
        """Return the last verdict on the newest receipt of a submission."""
        stdouts = [
            stdout for stdout in self.stdouts.values() if stdout["receipt"]["submission"] == self.pks[name]
        ]
        return self._receipt(self.clones[-1], stdouts[-1])[-1]

    def _receipt(self, repository: PublicRepository, stdout: dict[str, Any]) -> list[Verdict]:
        return list(
            receipt_verdicts(
                repository,
                stdout["receipt"],
                stdout.get("q_mean"),
                check=f"receipt {stdout['receipt']['submission']}",
                now=self.harness.clock.now(),
            )
        )


def correct(path: Path, value: str = "0.125") -> None:
    """Change one label of a task."""
    lines = path.read_text().splitlines()
    lines[5] = lines[5].rsplit(",", 1)[0] + f",{value}"
    path.write_text("\n".join(lines) + "\n")


def begins(challenge: Challenge) -> None:
    """The challenge begins with one phase, with public, private, refused and cancelled submissions, a baseline, and a trial.

    A team is renamed; a private submission is made public, a public one private, and one is deleted.
    """
    harness, evalai, pks = challenge.harness, challenge.harness.evalai, challenge.pks
    document = yaml.safe_load(harness.path.read_text())
    harness.path.write_text(yaml.safe_dump({**document, "phases": {"dev": document["phases"]["dev"]}}))
    evalai.add_team(HOSTS, ("host",))
    challenge.submit("baseline", HOSTS, embeddings(3, noise=2.0), method_name=BASELINE)
    challenge.submit("trial", HOSTS, embeddings(5), method_name="Trial")
    challenge.submit("A1", "A", embeddings(1))
    challenge.submit("A2", "A", embeddings(2))
    challenge.submit("B1", "B", embeddings(3))
    challenge.submit("B2", "B", embeddings(0))
    challenge.submit("C1", "C", embeddings(4))
    challenge.submit("hidden", "C", embeddings(6), is_public=False)
    challenge.submit("D1", "D", embeddings(7), is_public=False)
    challenge.submit("refused", "B", BAD)
    challenge.submit("cancelled", "B", embeddings(6))
    evalai.edit(pks["cancelled"], status="cancelled")
    challenge.work()
    evalai.edit(pks["hidden"], is_public=True)
    evalai.edit(pks["A2"], is_public=False)
    evalai.rename_team("B", "B and friends")
    evalai.edit(pks["B2"], ignore_submission=True)
    challenge.another_line()


def changes_its_tasks(challenge: Challenge) -> None:
    """A phase is added that requires a score in the first one, even a private one; a task of each phase and epsilon are corrected."""
    harness = challenge.harness
    harness.configure({"phases": {"eval": {"eligible_if_scored_in": "dev"}}})
    challenge.work()
    harness.configure({"scoring": {"epsilon": 0.5}})
    correct(harness.folder / "tasks" / "eval" / "alpha__regr.csv")
    correct(harness.folder / "tasks" / "dev" / "gamma__regr.csv")
    harness.decide("challenge", "apply", "--reason", "a wrong label")
    for name, team in (("eval A", "A"), ("eval D", "D"), ("eval E", "E")):
        challenge.submit(name, team, embeddings(len(team) % 2), phase="eval")
    challenge.work()


def decides(challenge: Challenge) -> None:
    """Hosts rerun submissions; some are disqualified, and one is reinstated; the rules change; a team is disqualified, and sends again."""
    harness, pks = challenge.harness, challenge.pks
    for name in ("A1", "C1"):
        pks[f"{name} again"] = harness.evalai.rerun(pks[name])
    disqualify = ("challenge", "disqualify", str(pks["B1"]))
    harness.decide(*disqualify, "--reason", "a complaint")
    challenge.work()
    harness.decide(*disqualify, "--undo", "--reason", "without ground")
    rules = {"decimals": 2, "ghost_task": 0.5, "baselines_weigh": False}
    harness.configure({"phases": {"dev": {"selection": "best", **rules}}})
    message = harness.decide("challenge", "apply", "--reason", "announced on 1 June")
    assert all(name in message for name in ("selection", *rules))
    challenge.submit("H in dev", "H", embeddings(5, noise=0.1))
    challenge.work()
    number = str(harness.evalai.world.submissions[pks["H in dev"]]["participant_team"])
    harness.decide("challenge", "disqualify", "--team", number, "--reason", "two accounts")
    challenge.submit("H in eval", "H", embeddings(5, noise=0.1), phase="eval")
    challenge.work()


def is_restored(challenge: Challenge) -> None:
    """The state is restored from a backup that lacks a published line of the log, a board, and entries that were not yet in the log."""
    harness = challenge.harness
    harness.decide("challenge", "backup", str(harness.folder / "backup.zip"))
    challenge.submit("lost", "F", embeddings(6))
    challenge.another_line()
    challenge.submit("lost too", "G", embeddings(7))
    challenge.work()
    place = harness.folder / "restored"
    assert harness.fork_server is not None
    arguments = ("challenge", "restore", str(harness.folder / "backup.zip"), str(place))
    done = harness.fork_server.command(arguments, environment=clean_environment(), folder=harness.folder)
    assert done.returncode == 0, done.stderr
    state = harness.state.rename(harness.folder / "lost")
    (place / "state").rename(state.with_name("state"))
    challenge.work()
    for name in ("lost", "lost too"):
        challenge.pks[f"{name} again"] = harness.evalai.rerun(challenge.pks[name])
    challenge.another_line()


def loses_commits(challenge: Challenge) -> None:
    """An outsider removes the newest commits from the branch."""
    challenge.another_line()
    git(challenge.harness.board, "update-ref", "refs/heads/main", "main~1")
    challenge.submit("B3", "B and friends", embeddings(2))
    challenge.work()


def ends(challenge: Challenge) -> None:
    """A phase is closed, revealed, reopened for a decision and closed again; a task of the other phase is corrected."""
    harness = challenge.harness
    harness.decide("board", "close", "--phase", "dev", "--now", "--reason", "as announced")
    harness.decide("challenge", "reveal")
    challenge.submit("late", "A", embeddings(3))
    challenge.work()
    assert challenge.contradictions() == []
    harness.decide("board", "close", "--phase", "dev", "--undo")
    harness.decide("challenge", "disqualify", str(challenge.pks["C1 again"]), "--reason", "withdrawn")
    challenge.work()
    harness.decide("board", "close", "--phase", "dev", "--now")
    challenge.submit("too late", "A", embeddings(2))
    correct(harness.folder / "tasks" / "eval" / "beta__cls.csv", "1")
    harness.decide("challenge", "apply", "--phase", "eval", "--reason", "another label")
    challenge.work()


def ends_everywhere(challenge: Challenge) -> None:
    """The other phase is revealed; then a team is renamed. Without another command, nothing is left closed."""
    harness = challenge.harness
    harness.decide("board", "close", "--phase", "eval", "--now")
    harness.decide("challenge", "reveal", "--phase", "eval")
    harness.evalai.rename_team("A", "A and others")
    challenge.another_line()


STAGES: tuple[Callable[[Challenge], None], ...] = (
    begins,
    changes_its_tasks,
    decides,
    is_restored,
    loses_commits,
    ends,
    ends_everywhere,
)


def test_an_honest_challenge_is_never_contradicted(
    tmp_path: Path, fork_server: ForkServer, cells: Path
) -> None:
    """After each stage, a fresh clone verifies with the receipts given so far, and against all clones made before."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
    changes = {
        "evalai": {"poll_every": 1},
        "phases": {"dev": {"baselines": [BASELINE]}},
        "fairness": {"publish_files": "top:1"},
    }
    clock, dev_cells = ManualClock(datetime.now(UTC)), tmp_path / "cells.pickle"
    dev_cells.write_bytes(
        pickle.dumps([row for row in pickle.loads(cells.read_bytes()) if row["phase"] != "eval"])
    )
    with Harness(tmp_path, clock=clock, changes=changes, cells=dev_cells, fork_server=fork_server) as harness:
        challenge = Challenge(harness)
        for stage in STAGES:
            stage(challenge)
            assert challenge.contradictions() == [], stage.__name__
            waiting = [
                verdict.check
                for verdict in challenge.report.verdicts
                if verdict.status is Status.NOT_REVEALED
            ]
            assert waiting == UNOPENED.get(stage.__name__, waiting)
        for name, words in ANSWERS.items():
            answer = challenge.answer(name)
            assert words in answer.sentence, name
            assert answer.status is (Status.BELIEVED if name in BELIEVED else Status.CONSISTENT), name
        report, readme = challenge.report, challenge.clones[-1].files["README.md"].decode()
        began, listed = [
            verdict for verdict in report.verdicts if (verdict.phase, verdict.check) == ("dev", "decisions")
        ]
        assert began.sentence.startswith("Its rules at the start: selection: ")
        assert all(reason in listed.sentence for reason in REASONS)
        assert all(
            reason in readme for reason in ("(a wrong label)", "(announced on 1 June)", "(a complaint)")
        )
        assert report.sentence.startswith("Consistent: nothing is contradicted. ")
        sentences = {verdict.check: verdict.sentence for verdict in report.verdicts if verdict.phase is None}
        for reason in ("phase eval was added", "a wrong label", "another label"):
            assert reason in sentences["commitment"]
        assert "According to line 3, the state was restored from a backup" in sentences["receipts"]
        assert sentences["register"] == "Every other entry of the public log was opened."
