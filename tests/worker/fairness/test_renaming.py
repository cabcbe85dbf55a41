"""`challenge rename-team`: a team's name is no longer published, and everything else about it can still be checked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.fair_challenge import REVEAL, Change, changed, lies, to
from tests.leaderboard.harness.git_server import git
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.cli import guarded
from worker.fairness import events
from worker.fairness.membership import pseudonyms
from worker.fairness.verify import Worth, receipt_verdicts
from worker.fairness.verify.public import PublicRepository, opened
from worker.sandbox import ManualClock

NAME, LATER, LAST, PSEUDONYM = "Jane Doe", "Jane D. from Bern", "Jane Roe", "Team Twelve"
REASON = "asked for by its members"
HISTORY = "leaderboard/history.jsonl"
RENAME = ("challenge", "rename-team", "--yes")


@pytest.fixture
def clock() -> ManualClock:
    """It is today, because commands use the real clock."""
    return ManualClock(datetime.now(UTC))


def rename(harness: Harness, team: str = NAME) -> str:
    """Run the organizer's command."""
    return harness.decide(*RENAME, "--team", team, "--as", PSEUDONYM, "--reason", REASON)


def reveal(harness: Harness, *options: str) -> None:
    """Reveal phases that are open too."""
    harness.decide("challenge", "reveal", "--open", "--yes", *options)


def paths_with_name(harness: Harness) -> list[str]:
    """Return the published files that contain the name, without the history, which may only grow."""
    paths = git("ls-tree", "-r", "--name-only", "main", at=harness.board).split()
    return [path for path in paths if path != HISTORY and "Jane" in harness.published(path)]


def play(harness: Harness, worker: StepWorker) -> None:
    """Submit for two teams in two phases: one that is renamed later, and one that is not."""
    harness.submit(NAME, embeddings(1), method_name=f"{NAME}'s method")
    worker.drive()
    harness.submit("B", embeddings(2))
    harness.submit("B", embeddings(0), phase="eval")
    harness.submit(NAME, embeddings(1), phase="eval", is_public=False)
    worker.drive()


def test_a_name_is_removed_and_everything_can_still_be_checked(harness: Harness, worker: StepWorker) -> None:
    """With boards before and after, one of them closed, and other names at EvalAI before and after: no file has a name of the team."""
    play(harness, worker)
    harness.evalai.rename_team(NAME, LATER)
    harness.submit(LATER, embeddings(0), phase="eval")
    worker.advance(60)
    assert set(harness.teams()) == set(harness.teams("eval")) == {LATER, "B"}
    answer = harness.stdout(1001)
    harness.decide("board", "freeze", "--phase", "eval", "--now", "--yes")
    before = git("rev-parse", "main", at=harness.board)
    assert f"is called {PSEUDONYM} from now on" in rename(harness, LATER)
    worker.drive()
    commits = harness.commits()
    harness.evalai.rename_team(LATER, LAST)
    worker.advance(60)
    assert set(harness.teams()) == set(harness.teams("eval")) == {PSEUDONYM, "B"}
    assert harness.commits() == commits
    harness.submit(LAST, embeddings(4))
    harness.submit("C", embeddings(3))
    worker.drive()
    assert set(harness.teams()) == {PSEUDONYM, "B", "C"}
    reveal(harness)
    assert paths_with_name(harness) == []
    assert LATER in harness.published(HISTORY)
    assert "Jane" not in git("log", "--format=%B", f"{before}..main", at=harness.board)
    assert harness.contradictions() == []
    sentences = [verdict.sentence for verdict in harness.verdicts()]
    assert any(f"is called {PSEUDONYM} ({REASON})" in sentence for sentence in sentences)
    assert any(f"“{PSEUDONYM}” is the pseudonym" in sentence for sentence in sentences)
    with opened(str(harness.board)) as repository:
        mine = list(receipt_verdicts(repository, answer["receipt"], answer["q_mean"]))
    assert Worth.CONTRADICTED not in {verdict.worth for verdict in mine}
    assert f"of team {PSEUDONYM}" in mine[-1].sentence


def hiding(kind: str, field: str) -> Change:
    """Return a change that hides a field of an event together with the name."""

    def change(document: Any) -> Any:
        parts = [part for part in document["register"] if "team" in part.get("hidden", ())]
        part = next(
            part for part in parts if part["open"]["kind"][0] == kind and "submission" in part["open"]
        )
        value, salt = part["open"].pop(field)
        part["hidden"][field] = events.field_hash(field, value, bytes.fromhex(salt))
        return document

    return change


def hide_another_name(register: list[Any]) -> list[Any]:
    """Hide the name of the other team, too."""
    opening = next(line for line in register if line.get("fields", {}).get("team") == "B")
    fields = opening["fields"]
    part = events.opened_in_part(fields, bytes.fromhex(opening["nonce"]), fields.keys() - {"team"})
    return [part if line is opening else line for line in register]


LIES: dict[str, tuple[str, Change, str]] = {
    "another rank in an older line": (  # in which the other team came, so both rows have changed
        HISTORY,
        to(
            1,
            "changed",
            value=lambda rows: [row | {"rank": 9} if row["team"] == NAME else row for row in rows],
        ),
        "dev: boards",
    ),
    "a score is hidden with the name": (REVEAL, hiding(events.SCORE, "q_mean"), "dev: reveal"),
    "a removal is hidden with the name": (REVEAL, hiding(events.SUBMISSION, "removed"), "dev: reveal"),
    "another team's name is hidden too": (REVEAL, to("register", value=hide_another_name), "dev: reveal"),
    "the note is gone": (
        REVEAL,
        to(
            "register",
            value=lambda register: [
                line for line in register if line.get("fields", {}).get("what") != events.RENAMED
            ],
        ),
        "dev: reveal",
    ),
}


def test_a_revealed_phase_is_revealed_again_without_the_name(harness: Harness, worker: StepWorker) -> None:
    """Boards, pages and reveal have the pseudonym with the next push; it hides nothing else: rows, scores and decisions are checked."""
    play(harness, worker)
    reveal(harness, "--phase", "dev", "--no-labels")
    assert any(path.startswith("reveal/dev") for path in paths_with_name(harness))
    rename(harness)
    harness.decide("board", "publish")
    assert paths_with_name(harness) == []
    assert "labels/" not in git("ls-tree", "-r", "--name-only", "main", at=harness.board)
    before = harness.commits()
    reveal(harness, "--phase", "dev", "--no-labels")
    assert harness.commits() == before
    reveal(harness)
    with opened(str(harness.board)) as repository:
        public = PublicRepository(files=dict(repository.files))
    assert lies(public) == set()
    for what, (path, change, check) in LIES.items():
        assert check in lies(changed(public, path, change)), what


def test_invalid_renames_are_refused(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has a cure, and nothing changes: a team has one pseudonym, a baseline has its name, and rules are revealed as they were."""

    def refused(cure: str, team: str = NAME, pseudonym: str = "Team Thirteen", reason: str = REASON) -> None:
        with worker.store.read() as tx:
            before = list(tx.events()), tx.boards("dev"), pseudonyms(tx)
        options = ("--team", team, "--as", pseudonym, "--reason", reason, "--config", str(harness.path))
        assert guarded([*RENAME, *options]) == 2
        assert cure in capsys.readouterr().err
        with worker.store.read() as tx:
            assert (list(tx.events()), tx.boards("dev"), pseudonyms(tx)) == before

    play(harness, worker)
    harness.submit("host", embeddings(3))
    worker.drive()
    with worker.store.read() as tx:
        (own,) = (str(row.team_key) for row in tx.submissions() if row.own)
    refused("or its number there", team="nobody")
    for pseudonym in ("B", " "):
        refused("Choose another pseudonym", pseudonym=pseudonym)
    refused("Write both without the name", pseudonym=f"ex {NAME}")
    refused("Write both without the name", reason=f"{NAME} asked")
    refused("Add --reason", reason=" ")
    refused("Rename only teams of participants", team=own)
    rename(harness)
    refused("already replaced")
    assert "nothing was done" in rename(harness)
    for marked in (True, False):
        harness.evalai.edit(1002, is_baseline=marked)
        worker.advance(60)
    refused("Rename only teams of participants", team="B")
    harness.submit("C", embeddings(3))
    worker.drive()
    harness.configure({"leaderboard": {"hidden_teams": ["C"]}})
    harness.decide("challenge", "apply", "--yes", "--reason", "asked to leave")
    refused("the name cannot be removed", team="C")
