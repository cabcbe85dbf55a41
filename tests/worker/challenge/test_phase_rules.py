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


def test_unused_rules_change_neither_record_nor_events(tmp_path: Path) -> None:
    """A challenge from before the Ladder existed keeps its record and its events."""
    with Harness(tmp_path) as harness:
        before = rules_of(load(harness.path), "dev")
        assert not {"ladder_step", "shown"} & before.stated.keys()
        harness.configure({"phases": {"dev": {"selection": "ladder"}, "eval": {"shown": "at_end"}}})
        configuration = load(harness.path)
        assert rules_of(configuration, "dev").stated["ladder_step"] == 0.5
        assert rules_of(configuration, "eval").stated["shown"] == "at_end"
        assert before.changed(rules_of(configuration, "dev")) == ("selection", "ladder_step")
