"""Lies about a ladder, made with the liar's kit: answers and boards that do not follow from its rules."""

from __future__ import annotations

import copy

from leaderboard import Board
from scoring.quality import mean_quality, quality, shown
from scoring.scorecard import folds_from_json
from tests.acceptance.liar import Story, Told
from tests.acceptance.lies import Tell, score
from worker.fairness import events

STEP = 5.0  # so large that the second submission of a team never beats the first
LADDER = {"selection": "ladder", "ladder_step": STEP}


def with_ladder(story: Story) -> Story:
    """Change a story as if phase dev had used a ladder from the beginning."""
    for told in story.of(events.PHASE):
        told.fields["rules"] = {**told.fields["rules"], **LADDER}
    for told in story.of(events.SCORE):
        _tell(story, told)
    return story


def _tell(story: Story, told: Told) -> None:
    """Set the shown value of a score to the one that the ladder gives."""
    scored = events.parse(told.fields)
    if not told.whole or not isinstance(scored, events.ScoreEvent):
        return
    answer = story.fold(told.at).phase("dev").shown_value(scored, told.at)
    told.fields |= {"q_mean": answer.value, "counts": answer.counts}


def _q_mean(fields: events.Fields) -> float:
    return mean_quality(
        [quality(folds_from_json(cell["folds"]), 0.02).q for cell in fields["cells"].values()]
    )


def _own_value(story: Story) -> None:
    told = score(story, "A")
    told.fields["q_mean"] = shown(_q_mean(told.fields), 3)


def _first_of_a_team(story: Story) -> Told:
    return next(one for one in story.about(story.sent_by("A")[0]) if one.fields["kind"] == events.SCORE)


def _boards_without_ladder(story: Story) -> None:
    without = copy.deepcopy(story)
    for told in without.of(events.PHASE):
        told.fields["rules"] = {**told.fields["rules"], "selection": "last", "ladder_step": None}

    def replaced(found: list[Board]) -> list[Board]:
        if not found or found[0].phase != "dev":
            return found
        return without.boards("dev")

    story.on_boards = replaced


BROKEN: dict[str, tuple[Tell, str]] = {
    "its own value, where the standing one was due": (_own_value, "dev: facts"),
    "a submission that counts and climbed nothing": (
        lambda story: score(story, "A").fields.update(counts=True),
        "dev: facts",
    ),
    "a submission that climbed and was told that it does not count": (
        lambda story: _first_of_a_team(story).fields.update(counts=False),
        "dev: facts",
    ),
    "an answer that says nothing of the ladder": (
        lambda story: _first_of_a_team(story).fields.update(counts=None),
        "dev: facts",
    ),
    "boards on which the last submission counts all the same": (_boards_without_ladder, "dev: boards"),
}
"""Each lie about the ladder, and the check that contradicts it."""
