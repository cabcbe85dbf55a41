"""One lie about an honest challenge, and what many lies change of its story."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from scoring.metrics import mean_quality, quality, shown
from scoring.scorecard import folds_from_json
from tests.acceptance.liar import Story, Told
from worker.fairness import events

Tell = Callable[[Story], object]


@dataclass(frozen=True)
class Lie:
    """A lie about an honest challenge.

    Attributes:
        tell: Changes the story.
        check: The check that contradicts the lie; empty if nothing in the repository can.
        words: Part of the sentence that contradicts the lie or discloses it.
        receipt: Part of the sentence with which the winner's receipt contradicts it; empty if it does not.
    """

    tell: Tell
    check: str = ""
    words: str = ""
    receipt: str = ""


def score(story: Story, team: str) -> Told:
    """Return the score of a team's last submission."""
    return [event for event in story.about(story.sent_by(team)[-1]) if event.fields["kind"] == events.SCORE][
        -1
    ]


def facts(story: Story, team: str) -> Told:
    """Return the newest facts about a team's last submission."""
    return [
        event for event in story.about(story.sent_by(team)[-1]) if event.fields["kind"] == events.SUBMISSION
    ][-1]


def raise_score(event: Told, by: float, *, task: str = "", folds: Sequence[int] = ()) -> None:
    """Raise the scores of some folds, by default all, of a task, by default each, and change the shown value accordingly."""
    for name, cell in event.fields["cells"].items():
        if task in (name, ""):
            for fold in folds or range(len(cell["folds"])):
                cell["folds"][fold] = min(1.0, cell["folds"][fold] + by)
    scores = [quality(folds_from_json(cell["folds"]), 0.02).q for cell in event.fields["cells"].values()]
    event.fields["q_mean"] = shown(mean_quality(scores), 3)


def decide(story: Story, kind: str, earlier: Told, **changes: Any) -> Told:
    """Add an event of a kind ten minutes before the board was closed."""
    close = story.of(events.PHASE)[-1]
    return story.add({**earlier.fields, "kind": kind, **changes}, close.at - timedelta(minutes=10))
