"""Task packages in the private report: groups and ceilings."""

from __future__ import annotations

import json

import pytest

from leaderboard.report.private_report import report
from scoring.tasks import TaskPlace
from tests.leaderboard.harness.phases import START, entry, phase

PLACES = (
    TaskPlace(identifier="trees", parent="land/<b>forest", ceiling=0.8),
    TaskPlace(identifier="crops", parent="land", ceiling=0.5),
    TaskPlace(identifier="elsewhere", parent="sea", ceiling=0.1),
)


def test_the_private_report_has_groups_and_ceilings() -> None:
    """It has mean scores by task and by group, plain and as shares of their ceilings; packages of other phases are ignored."""
    scores = {"trees": (0.4, 0.6, 0.4, 0.6), "crops": (0.3, 0.3, 0.3, 0.3)}
    made = report(phase(entry(1, 1, scores)), (), made_at=START, places=PLACES, replicates=20)
    document = json.loads(made.json)
    groups = {group["group"]: group for group in document["groups"]}
    assert list(groups) == ["", "land", "land/<b>forest"]
    assert groups["land"]["scores"] == pytest.approx([0.4])
    assert groups["land"]["ceiled"] == pytest.approx([(0.5 / 0.8 + 0.3 / 0.5) / 2])
    assert document["ceiled"] == {
        "crops": [{"score": pytest.approx(0.3), "ceiled": pytest.approx(0.6)}],
        "trees": [{"score": pytest.approx(0.5), "ceiled": pytest.approx(0.625)}],
    }
    assert document["ceilings"] == {"crops": 50.0, "trees": 80.0}
    assert "Groups of tasks" in made.html
    assert "0.300 / 60" in made.html
    assert "<b>forest" not in made.html
    assert "Groups of tasks" not in report(phase(entry(1, 1, scores)), (), made_at=START, replicates=20).html
