"""One long honest challenge with many changes, in which verify contradicts only the receipts of disqualified submissions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import WARM_CACHE, Harness, clean_environment, embeddings, git
from tests.worker.publishing.test_commits_of_others import spoil
from worker.fairness.verify import (
    Verdict,
    Worth,
    make_report,
    older_verdicts,
    receipt_verdicts,
    verdicts,
)
from worker.fairness.verify.public import PublicRepository, opened
from worker.fairness.verify.published import published_verdicts
from worker.sandbox import ManualClock

pytestmark = pytest.mark.xdist_group("fairness_honest")
HOSTS, BASELINE = "Host Participant Team", "Baseline mean embeddings"
CADENCE_S = 3600.0
ANSWERS = {
    "baseline": "counts on the final board without a rank (as a baseline)",
    "trial": "is a trial by the organizers",
    "A1": "was run again at EvalAI as submission",
    "A1 again": "counts on the final board at rank",
    "A2": "does not count: submission",
    "B1": "does not count: submission",
    "B3": "counts on the final board at rank",
    "C1": "by the rules, the chosen one counts",
    "B2": "it was deleted at EvalAI",
    "D1": "is private, and was revealed as private",
    "lost": "was lost when the state was restored from a backup",
    "lost again": "counts on the final board at rank",
    "lost too": "was lost when the state was restored from a backup",
    "lost too again": "counts on the final board at rank",
    "eval D": "counts on the final board at rank",
    "eval E": "without a rank (out of competition)",
    "late": "by the rules, the chosen one counts",
    "too late": "is on no board: the board was closed on",
}
"""Words of the verdict on each receipt after the end."""
BELIEVED = {"B2", "lost", "lost too"}
REASONS = (
    "(a wrong label)",
    "(announced on 1 June)",
    "(asked by the team)",
    "(as announced)",
    "(without ground)",
    "(a complaint)",
    "the state was restored from a backup",
    "The history of the leaderboard's branch was rewritten",
)
"""Reasons that the report must give for the organizers' decisions."""
BAD = b"id,0,1\nimg_000,1,2\n"


class Challenge:
    """A challenge, the answers that its participants kept, and clones that others made while it ran.

    Attributes:
        harness: The challenge.
        told: Every stdout that EvalAI ever showed, by the commitment in its receipt.
        clones: The repository as it was at each verification.
        removed: Submissions that remain disqualified.
    """

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.told: dict[str, dict[str, Any]] = {}
        self.clones: list[PublicRepository] = []
        self.removed: set[int] = set()
        self.pks: dict[str, int] = {}

    def submit(self, name: str, *arguments: Any, **options: Any) -> None:
        """Submit, and store the submission's number under a name."""
        self.pks[name] = self.harness.submit(*arguments, **options)

    def work(self) -> None:
        """Run a worker until no work is left."""
        with self.harness.worker() as worker:
            worker.drive()
        self.keep()

    def keep(self) -> None:
        """Keep the answers that EvalAI shows to participants."""
        for pk in self.harness.evalai.journal.posts():
            if self.harness.status(pk) == "finished":
                told = self.harness.stdout(pk)
                self.told[told["receipt"]["commitment"]] = told

    def command(self, *arguments: str) -> str:
        """Run a command of the organizers."""
        done = self.harness.command(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def another_line(self) -> None:
        """Run a worker until the next line of the public log is due and published."""
        with self.harness.worker() as worker:
            worker.drive()
            worker.clock.advance(CADENCE_S)
            worker.drive()
        self.keep()

    def contradictions(self) -> list[str]:
        """Verify a fresh clone with the kept receipts and all earlier clones, and return the contradictions."""
        with opened(str(self.harness.board)) as repository:
            found = [*verdicts(repository), *published_verdicts(repository)]
            for one in self.told.values():
                if one["receipt"]["submission"] not in self.removed:
                    found += self._receipt(repository, one)
            for clone in self.clones:
                found += older_verdicts(repository, clone)
            self.clones.append(repository)
        return [
            f"{one.phase} {one.check}: {one.sentence}" for one in found if one.worth is Worth.CONTRADICTED
        ]

    def answer(self, name: str) -> Verdict:
        """Return the last verdict on the newest receipt of a submission."""
        told = [one for one in self.told.values() if one["receipt"]["submission"] == self.pks[name]]
        return self._receipt(self.clones[-1], told[-1])[-1]

    def _receipt(self, repository: PublicRepository, told: dict[str, Any]) -> list[Verdict]:
        return list(
            receipt_verdicts(
                repository,
                told["receipt"],
                told.get("q_mean"),
                check=f"receipt {told['receipt']['submission']}",
                now=self.harness.clock.now(),
            )
        )


def correct(path: Path, value: str = "0.125") -> None:
    """Change one label of a task."""
    lines = path.read_text().splitlines()
    lines[5] = lines[5].rsplit(",", 1)[0] + f",{value}"
    path.write_text("\n".join(lines) + "\n")


def begins(challenge: Challenge) -> None:
    """The challenge begins with one phase, with public, private, refused and cancelled submissions, a baseline, and a trial."""
    harness = challenge.harness
    document = yaml.safe_load(harness.path.read_text())
    harness.path.write_text(yaml.safe_dump({**document, "phases": {"dev": document["phases"]["dev"]}}))
    harness.evalai.add_team(HOSTS, ("host",))
    challenge.submit("baseline", HOSTS, embeddings(3, noise=2.0), method_name=BASELINE)
    challenge.submit("trial", HOSTS, embeddings(5), method_name="Trial")
    challenge.submit("A1", "A", embeddings(1))
    challenge.submit("A2", "A", embeddings(2))
    challenge.submit("B1", "B", embeddings(3))
    challenge.submit("C1", "C", embeddings(4))
    challenge.submit("hidden", "C", embeddings(6), is_public=False)
    challenge.submit("D1", "D", embeddings(7), is_public=False)
    challenge.submit("refused", "B", BAD)
    challenge.submit("cancelled", "B", embeddings(6))
    harness.evalai.cancel(challenge.pks["cancelled"])
    challenge.work()


def changes_its_mind(challenge: Challenge) -> None:
    """A private submission is made public, and a public one private; a team is renamed, and one of its submissions is deleted."""
    evalai = challenge.harness.evalai
    challenge.submit("B2", "B", embeddings(0))
    challenge.work()
    evalai.edit(challenge.pks["hidden"], is_public=True)
    evalai.edit(challenge.pks["A2"], is_public=False)
    evalai.rename_team("B", "B and friends")
    evalai.delete(challenge.pks["B2"])
    challenge.another_line()


def gets_another_phase(challenge: Challenge) -> None:
    """A phase is added that requires a score in the first one, even a private one; a task of it is corrected before it has scores."""
    harness = challenge.harness
    harness.configure({"phases": {"eval": {"eligible_if_scored_in": "dev"}}})
    challenge.work()
    correct(harness.folder / "tasks" / "eval" / "alpha__regr.csv")
    challenge.command("challenge", "apply", "--yes", "--reason", "a label was wrong")
    for name, team in (("eval A", "A"), ("eval D", "D"), ("eval E", "E")):
        challenge.submit(name, team, embeddings(len(team) % 2), phase="eval")
    challenge.work()


def rescores(challenge: Challenge) -> None:
    """A task is changed and later restored, each time with a rescore."""
    path = challenge.harness.folder / "tasks" / "dev" / "gamma__regr.csv"
    before = path.read_text()
    correct(path)
    challenge.command("challenge", "apply", "--yes", "--phase", "dev", "--reason", "a wrong label")
    challenge.work()
    path.write_text(before)
    challenge.command("challenge", "apply", "--yes", "--phase", "dev", "--reason", "restored")
    challenge.work()


def runs_again(challenge: Challenge) -> None:
    """A host reruns two submissions at EvalAI: one that counts, and one that does not."""
    for name in ("A1", "C1"):
        challenge.pks[f"{name} again"] = challenge.harness.evalai.rerun(challenge.pks[name])
    challenge.work()


def disqualifies(challenge: Challenge) -> None:
    """A submission is disqualified and reinstated, and another one is disqualified for good."""
    pk = str(challenge.pks["B1"])
    challenge.command("challenge", "disqualify", pk, "--yes", "--reason", "a complaint")
    challenge.work()
    challenge.command("challenge", "disqualify", pk, "--undo", "--yes", "--reason", "without ground")
    challenge.command(
        "challenge", "disqualify", str(challenge.pks["hidden"]), "--yes", "--reason", "used test data"
    )
    challenge.removed.add(challenge.pks["hidden"])
    challenge.work()


def chooses(challenge: Challenge) -> None:
    """The rules are changed, and the organizers choose which submission counts."""
    challenge.harness.configure({"phases": {"dev": {"selection": "chosen"}}, "leaderboard": {"decimals": 2}})
    challenge.command("challenge", "apply", "--yes", "--reason", "announced on 1 June")
    challenge.work()
    choice = ("challenge", "choose", str(challenge.pks["A1 again"]), "--yes", "--reason", "asked by the team")
    challenge.command(*choice)
    assert "counts for its team already" in challenge.command(*choice)
    challenge.work()


def is_restored(challenge: Challenge) -> None:
    """The state is restored from a backup that lacks a published line of the log, a board, and entries that were not yet in the log."""
    harness = challenge.harness
    challenge.command("challenge", "backup", str(harness.folder / "backup.zip"))
    challenge.submit("lost", "F", embeddings(6))
    challenge.another_line()
    challenge.submit("lost too", "G", embeddings(7))
    challenge.work()
    place = harness.folder / "restored"
    done = subprocess_restore(harness, place)
    assert done.returncode == 0, done.stderr
    state = harness.state.rename(harness.folder / "lost")
    (place / "state").rename(state.with_name("state"))
    challenge.work()
    for name in ("lost", "lost too"):
        challenge.pks[f"{name} again"] = harness.evalai.rerun(challenge.pks[name])
    challenge.work()


def subprocess_restore(harness: Harness, place: Path) -> subprocess.CompletedProcess[str]:
    """Restore the backup into a folder."""
    assert harness.fork_server is not None
    arguments = ("challenge", "restore", str(harness.folder / "backup.zip"), str(place))
    return harness.fork_server.command(arguments, environment=clean_environment(), folder=harness.folder)


def goes_on(challenge: Challenge) -> None:
    """Another line of the log is published."""
    challenge.another_line()


def is_taken_over(challenge: Challenge) -> None:
    """A worker is killed just after a push, and another one takes over."""
    harness = challenge.harness
    assert harness.fork_server is not None
    challenge.submit("G1", "G", embeddings(0))
    harness.fork_server.start(harness.path, at="after call push")
    assert harness.fork_server.end() < 0
    challenge.work()


def gets_another_key(challenge: Challenge) -> None:
    """The signing key is replaced."""
    challenge.command("challenge", "apply", "--new-key", "--yes", "--reason", "an administrator left")
    challenge.another_line()


def meets_strangers(challenge: Challenge) -> None:
    """An outsider pushes a changed README.md and a forged board."""
    board, folder = challenge.harness.board, challenge.harness.folder
    readme = "# Ours\n\n" + git(board, "show", "main:README.md")
    spoil(board, {"README.md": readme.encode(), "leaderboard/dev.json": b"{}"}, folder / "stranger")
    assert challenge.contradictions() == []
    challenge.submit("C2", "C", embeddings(5))
    challenge.work()


def is_pushed_over(challenge: Challenge) -> None:
    """An outsider removes the newest commits from the branch."""
    git(challenge.harness.board, "update-ref", "refs/heads/main", "main~3")
    challenge.submit("B3", "B and friends", embeddings(4))
    challenge.work()


def ends(challenge: Challenge) -> None:
    """A phase is closed and revealed, and a team submits to it afterwards."""
    challenge.command("board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "as announced")
    challenge.command("challenge", "reveal", "--yes", "--reason", "a test")
    challenge.submit("late", "A", embeddings(3))
    challenge.work()


def corrects_itself(challenge: Challenge) -> None:
    """The revealed phase is reopened for a decision and closed again; a task of the other phase is corrected."""
    challenge.command("board", "freeze", "--phase", "dev", "--undo", "--yes", "--reason", "a test")
    challenge.command("challenge", "disqualify", str(challenge.pks["G1"]), "--yes", "--reason", "withdrawn")
    challenge.removed.add(challenge.pks["G1"])
    challenge.work()
    challenge.command("board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test")
    challenge.submit("too late", "A", embeddings(2))
    correct(challenge.harness.folder / "tasks" / "eval" / "beta__cls.csv", "1")
    challenge.command("challenge", "apply", "--yes", "--phase", "eval", "--reason", "restored")
    challenge.work()
    with opened(str(challenge.harness.board)) as repository:
        (opens,) = [one for one in verdicts(repository) if (one.phase, one.check) == ("dev", "commitment")]
    assert opens.worth is Worth.NOT_REVEALED  # the new commitment waits for another reveal


def ends_everywhere(challenge: Challenge) -> None:
    """The other phase is closed and revealed."""
    challenge.command("board", "freeze", "--phase", "eval", "--now", "--yes", "--reason", "a test")
    challenge.command("challenge", "reveal", "--yes", "--reason", "a test", "--phase", "eval")


def stays_alive(challenge: Challenge) -> None:
    """A submission is made private after the end, and phase dev is revealed once more."""
    challenge.harness.evalai.edit(challenge.pks["late"], is_public=False)
    challenge.another_line()
    assert challenge.contradictions() == []
    challenge.command("challenge", "reveal", "--yes", "--reason", "a test", "--phase", "dev")


STAGES: tuple[Callable[[Challenge], None], ...] = (
    begins,
    changes_its_mind,
    gets_another_phase,
    rescores,
    runs_again,
    disqualifies,
    chooses,
    is_restored,
    goes_on,
    is_taken_over,
    gets_another_key,
    meets_strangers,
    is_pushed_over,
    ends,
    corrects_itself,
    ends_everywhere,
    stays_alive,
)


def test_an_honest_challenge_is_never_contradicted(
    tmp_path: Path, fork_server: ForkServer, cells: Path
) -> None:
    """After each stage, a fresh clone verifies with the receipts given so far, and against all clones made before."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(WARM_CACHE))
    changes = {
        "evalai": {"poll_every": 1},
        "leaderboard": {"baselines": [BASELINE]},
        "fairness": {"publish_files": "top:1"},
    }
    clock, known = ManualClock(datetime.now(UTC)), tmp_path / "cells.json"
    known.write_text(json.dumps([row for row in json.loads(cells.read_text()) if "eval" not in row]))
    with Harness(tmp_path, clock=clock, changes=changes, cells=known, fork_server=fork_server) as harness:
        challenge = Challenge(harness)
        for stage in STAGES:
            stage(challenge)
            assert challenge.contradictions() == [], stage.__name__
        for name, words in ANSWERS.items():
            answer = challenge.answer(name)
            assert words in answer.sentence, name
            assert answer.worth is (Worth.BELIEVED if name in BELIEVED else Worth.CONSISTENT), name
        for name in ("hidden", "G1"):
            assert challenge.answer(name).worth is Worth.CONTRADICTED
            assert "it was disqualified (" in challenge.answer(name).sentence
        last = challenge.clones[-1]
        assert all(reason in _decisions(last, "dev") for reason in REASONS)
        readme = last.files["README.md"].decode()
        assert all(
            reason in readme for reason in ("(a wrong label)", "(announced on 1 June)", "(a complaint)")
        )
        assert make_report(last, [*verdicts(last)]).sentence.startswith(
            "Consistent: nothing is contradicted. "
        )
        told = {one.check: one.sentence for one in verdicts(last) if one.phase is None}
        for reason in ("phase eval was added", "a label was wrong", "tasks or protocol of dev changed"):
            assert reason in told["commitment"]
        assert "According to line 3, the state was restored from a backup" in told["receipts"]
        assert told["register"] == "Every other entry of the public log was opened."


def _decisions(repository: PublicRepository, phase: str) -> str:
    return next(
        one.sentence for one in verdicts(repository) if (one.phase, one.check) == (phase, "decisions")
    )


def test_a_phase_that_requires_another_one_waits_for_its_reveal(
    tmp_path: Path, fork_server: ForkServer, cells: Path
) -> None:
    """If the phase is revealed first, its boards cannot be recomputed until the phase that it requires is revealed too."""
    changes = {"evalai": {"poll_every": 1}, "phases": {"eval": {"eligible_if_scored_in": "dev"}}}
    clock = ManualClock(datetime.now(UTC))
    with Harness(tmp_path, clock=clock, changes=changes, cells=cells, fork_server=fork_server) as harness:
        challenge = Challenge(harness)
        challenge.submit("dev A", "A", embeddings(1), is_public=False)
        for team in ("A", "B"):
            challenge.submit(team, team, embeddings(0), phase="eval")
        challenge.work()
        for phase in ("eval", "dev"):
            challenge.command("board", "freeze", "--phase", phase, "--now", "--yes", "--reason", "a test")
            challenge.command("challenge", "reveal", "--yes", "--reason", "a test", "--phase", phase)
            assert challenge.contradictions() == [], phase
        worths = []
        for repository in challenge.clones:
            (follows,) = [one for one in verdicts(repository) if (one.phase, one.check) == ("eval", "boards")]
            worths.append(follows.worth)
        assert worths == [Worth.NOT_REVEALED, Worth.CONSISTENT]
        assert [row["eligible"] for row in harness.boards("eval")] == [True, False]
