"""What is open of a revealed phase grows with everything that depends on it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from tests.worker.harness.harness import Harness, StepWorker, embeddings, git, today
from worker.state import State
from worker.verify import Status, receipt_verdicts
from worker.verify.public import opened

pytestmark = pytest.mark.processes
clock = today


@pytest.fixture
def changes() -> dict[str, Any]:
    """Phase eval requires a score in dev."""
    return {"phases": {"eval": {"eligible_if_scored_in": "dev"}}}


def teams_of_private_entries(harness: Harness) -> set[int]:
    """Return the teams of private submissions that the reveal of phase dev names."""
    parts = git(harness.board, "ls-tree", "-r", "--name-only", "main", "reveal/dev/").split()
    lines = [
        line for part in parts if part.endswith(".jsonl") for line in harness.published(part).splitlines()
    ]
    shown = [json.loads(line).get("open", {}) for line in lines]
    return {fields["team_key"][0] for fields in shown if "team_key" in fields}


def test_a_private_entry_is_opened_once_the_board_of_another_phase_needs_it(
    harness: Harness, worker: StepWorker
) -> None:
    """Without the facts that it was answered or removed, nobody could check which teams compete in a phase that comes after the reveal."""
    pks = [
        harness.submit(team, embeddings(1), is_public=is_public)
        for team, is_public in (("A", True), ("B", False), ("D", False), ("E", False))
    ]
    worker.drive()
    private, removed = (worker.row(pk).team_key for pk in (pks[1], pks[3]))
    worker.stop()
    harness.decide("challenge", "disqualify", str(pks[2]))
    harness.decide("challenge", "reveal", "--phase", "dev", "--open")
    worker.start()
    for number, team in enumerate("ABCDE"):
        harness.submit(team, embeddings(number % 2), phase="eval")
    assert private not in teams_of_private_entries(harness)
    worker.drive()
    assert private in teams_of_private_entries(harness)
    worker.stop()
    harness.decide("challenge", "disqualify", "--team", str(removed))
    worker.start()
    worker.drive()
    ranks = {row["team"]: row["rank"] is not None for row in harness.boards("eval")}
    assert ranks == {"A": True, "B": True, "C": False, "D": False}
    harness.decide("challenge", "reveal", "--phase", "eval", "--open")
    assert harness.contradictions() == []


@pytest.mark.parametrize("meanwhile", [True, False])
def test_what_counted_at_some_time_is_open(harness: Harness, worker: StepWorker, *, meanwhile: bool) -> None:
    """A submission that was public for a while counted for its team; boards of that time follow only if it is opened, and stays open."""
    pk, _ = (harness.submit("A", embeddings(0), is_public=is_public) for is_public in (False, True))
    worker.drive()
    for is_public in (True, False):
        harness.evalai.edit(pk, is_public=is_public)
        worker.drive()
        harness.decide("challenge", "follow", str(pk), "--reason", "a wish", "--yes")
        worker.drive()
        worker.stop()
        if meanwhile or not is_public:
            harness.decide("challenge", "reveal", "--phase", "dev", "--open")
        assert harness.contradictions() == []
        worker.start()
    assert any("was made private" in verdict.sentence for verdict in harness.verdicts())


def test_what_counts_and_was_sent_after_the_reveal_is_told(harness: Harness, worker: StepWorker) -> None:
    """A board that is opened again after it takes submissions that may have been trained on its labels."""
    harness.submit("A", embeddings(0))
    worker.drive()
    worker.stop()
    harness.decide("board", "close", "--phase", "dev", "--now")
    harness.decide("challenge", "reveal", "--phase", "dev")
    worker.start()
    worker.clock.advance(60)
    late = harness.submit("B", embeddings(1))
    worker.drive()

    def told() -> bool:
        words = f"they were sent when its tasks were public: submission {late} of “B”, on"
        return any(words in verdict.sentence for verdict in harness.verdicts())

    assert not told()
    said = harness.decide("board", "close", "--phase", "dev", "--undo")
    assert "Its tasks are public: whoever submitted since may have trained on them." in said
    worker.drive()
    assert told()
    assert harness.contradictions() == []


def test_an_answer_is_newer_than_the_reveal_that_has_its_score(harness: Harness, worker: StepWorker) -> None:
    """A score may be opened before EvalAI has its answer; until the next push, this contradicts no receipt."""
    harness.configure({"submission": {"answer_grid": 60}})
    worker.reload()
    harness.submit("A")
    worker.drive()
    worker.stop()
    harness.decide("challenge", "reveal", "--phase", "dev", "--open")
    worker.start()
    pk = harness.submit("B")
    worker.drive(lambda: worker.states().get(pk) == State.SCORED)
    worker.stop()
    harness.decide("board", "publish")
    worker.start()
    worker.drive(lambda: harness.status(pk) == "finished")
    receipt, now = harness.stdout(pk)["receipt"], worker.clock.now()
    with opened(str(harness.board)) as copy:
        public, later = replace(copy, is_copy=False), now + timedelta(hours=4)
        cases = (public, now, "not revealed"), (copy, later, "not revealed"), (public, later, "contradicted")
        for repository, moment, status in cases:
            assert [*receipt_verdicts(repository, receipt, now=moment)][-1].status == Status(status)
    worker.drive()
    with opened(str(harness.board)) as public:
        assert [*receipt_verdicts(public, receipt)][-1].status is Status.CONSISTENT


@pytest.mark.parametrize("is_public", [True, False])
def test_a_later_entry_changes_who_competes_in_another_phase(
    harness: Harness, worker: StepWorker, *, is_public: bool
) -> None:
    """The last board of an open phase is newer than its own events if a team has meanwhile got a score where the rules ask for one."""
    harness.submit("A", embeddings(1), phase="eval")
    worker.drive()
    harness.submit("A", embeddings(1), is_public=is_public)
    worker.drive()
    worker.stop()
    harness.decide("challenge", "reveal", "--open")
    worker.start()
    assert [row["rank"] for row in harness.boards("eval")] == [1]
    assert harness.contradictions() == []


def test_a_revealed_phase_that_leaves_the_page_is_told(harness: Harness, worker: StepWorker) -> None:
    """Whoever takes a phase out of the configuration withdraws its page, but none of its boards and events."""
    harness.submit("A", embeddings(1), phase="eval")
    worker.drive()
    worker.stop()
    harness.decide("challenge", "reveal", "--phase", "eval", "--open")
    document = yaml.safe_load(harness.path.read_text())
    harness.path.write_text(yaml.safe_dump({**document, "phases": {"dev": document["phases"]["dev"]}}))
    worker.start()
    worker.drive()
    assert harness.contradictions() == []
    assert "The page does not show this phase." in [verdict.sentence for verdict in harness.verdicts()]
