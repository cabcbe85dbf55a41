"""Contradictory rules of a phase are refused with a sentence that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from scoring.errors import OrganizerError
from tests.worker.harness.harness import Harness
from worker.challenge.configuration import load
from worker.challenge.files import rules_of


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"selection": "ladder", "visibility": "current"}, "needs visibility: at_submission"),
        ({"selection": "ladder", "shown": "at_end"}, "shows no values to climb by"),
        ({"selection": "ladder", "ladder_step": 0.0001}, "shows nothing finer than 0.001"),
        ({"selection": "ladder", "ladder_step": 0}, "greater than 0"),
        ({"shown": "later"}, "'at_once' or 'at_end'"),
    ],
)
def test_contradictory_rules_are_refused(settings: dict[str, object], sentence: str, tmp_path: Path) -> None:
    """Each fault is one sentence, without a traceback."""
    with Harness(tmp_path) as harness:
        harness.configure({"phases": {"dev": settings}})
        with pytest.raises(OrganizerError) as refused:
            load(harness.path)
    assert sentence in refused.value.sentence


def test_only_changed_rules_are_named(tmp_path: Path) -> None:
    """The step of the Ladder belongs to the rules only if the phase uses it."""
    with Harness(tmp_path) as harness:
        before = rules_of(load(harness.path), "dev")
        assert before.ladder_step is None
        harness.configure({"phases": {"dev": {"selection": "ladder"}}})
        assert before.changed(rules_of(load(harness.path), "dev")) == ("selection", "ladder_step")
