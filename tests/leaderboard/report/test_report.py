"""The findings of the private report, and its safe page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from leaderboard.ranking.assessment import assess
from leaderboard.ranking.board import next_board
from leaderboard.report.diagnostics import activity, diagnose_tasks, duplicates
from leaderboard.report.private_report import report, report_page
from leaderboard.snapshot import Entry, PhaseSnapshot
from scoring.tasks import TaskPackage
from tests.leaderboard.harness.phases import START, entry, phase, steady

PACKAGES = (
    TaskPackage.model_construct(identifier="trees", parent="land/<b>forest", ceiling=0.8),
    TaskPackage.model_construct(identifier="crops", parent="land", ceiling=0.5),
    TaskPackage.model_construct(identifier="elsewhere", parent="sea", ceiling=0.1),
)
HOSTILE = "</td><script>alert(1)</script>\"'&{{ 7*7 }}"


def world(seed: int = 0) -> PhaseSnapshot:
    """Return teams that one task separates and another does not, and a baseline that fails a task by design."""
    random = np.random.default_rng(seed)

    def sent(pk: int, key: int, clear: float, failed: float, **facts: object) -> Entry:
        means = {"clear": clear, "failed": failed, "noise": 0.0}
        scores = {task: mean + 0.02 * random.standard_normal(20) for task, mean in means.items()}
        return entry(pk, key, scores, content_hash=f"{pk:064x}", **facts)

    return phase(
        sent(1, 1, 0.8, 0.50, team=HOSTILE),
        sent(2, 2, 0.5, 0.51),
        sent(3, 3, 0.2, 0.49),
        sent(4, 9, 0.5, -2.0, baseline=True, method="random"),
    )


def test_task_diagnostics() -> None:
    """A task of noise separates no teams, a task that a baseline fails names the baseline, and a clear task separates all."""
    snapshot = world()
    assessment = assess(snapshot)
    assert assessment is not None
    tasks = {task.task: task for task in diagnose_tasks(snapshot, assessment)}
    assert tasks["clear"].separated == 1.0
    assert tasks["noise"].separated == 0.0
    assert tasks["failed"].inflated_by == "random"
    assert tasks["clear"].inflated_by is None
    assert tasks["failed"].weight_without is not None
    assert tasks["failed"].weight_without < tasks["failed"].weight / 1.5


def test_duplicates_are_between_teams() -> None:
    """The same embeddings from two teams are reported, private ones too; a team's own repetition is not, nor are unknown hashes."""
    entries = [
        steady(1, 1, 10, content_hash="aa"),
        steady(2, 1, 10, content_hash="aa"),
        steady(3, 2, 10, content_hash="bb", public=False),
        steady(4, 3, 10, content_hash="bb"),
        steady(5, 4, 10),
        steady(6, 5, 10),
    ]
    assert [[entry.submission for entry in same] for same in duplicates(entries)] == [[3, 4]]


def test_many_tiny_steps_are_reported_as_probing() -> None:
    """A team with many steps below the noise of the splits is reported; one with more large steps, or with repeated files, is not."""
    noise = 0.05 * np.random.default_rng(1).standard_normal(40)

    def sent(pk: int, team: int, level: float, content: str) -> Entry:
        return entry(pk, team, {"a": level + noise, "b": level - noise}, content_hash=content)

    creeping = [sent(pk, 1, 0.5 + pk * 1e-5, f"c{pk}") for pk in range(8)]
    striding = [sent(10 + pk, 2, 0.1 * pk, f"s{pk}") for pk in range(8)]
    repeating = [sent(20 + pk, 3, 0.5, "same") for pk in range(8)]
    levels = [*(0.5 + pk * 1e-5 for pk in range(6)), *(0.1 * pk for pk in range(6))]
    both = [sent(30 + pk, 4, level, f"b{pk}") for pk, level in enumerate(levels)]
    teams = {team.team_key: team for team in activity(phase(*creeping, *striding, *repeating, *both))}
    assert [teams[key].probing for key in (1, 2, 3, 4)] == [True, False, False, False]
    assert (teams[4].tiny_steps, teams[4].steps) == (5, 11)
    assert (teams[1].tiny_steps, teams[1].steps) == (7, 7)
    assert (teams[3].repeats, teams[3].steps) == (7, 0)


def test_the_page_is_safe_and_self_contained() -> None:
    """Names are text on the page, also of a team that decides the order of others; nothing is loaded and nothing runs."""
    three = (steady(1, 1, 30, 10, team=HOSTILE), steady(2, 2, 12, 25), steady(3, 3, 11, 60))
    made = report(phase(*three), None, made_at=START.replace(microsecond=1))
    assert made["leave_one_out"] == {3: ((2, 1),)}
    page = report_page(made)
    assert "Without Team 3: &lt;/td&gt;" in page
    assert made["stability"] == "Ranks 1 and 2 change places without b, 1 and 3 without b, 2 and 3 without b."
    assert f"<p>{made['stability']}</p>" in page
    assert "made 2026-03-02 09:00 UTC." in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import""", page)
    balance: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "br", "wbr"):
                balance.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert balance.pop() == tag

    Tags().feed(page)
    assert balance == []


def test_the_document_has_all_figures() -> None:
    """The JSON has awards, standings, and figures per task; equal input gives equal bytes."""
    snapshot = world()
    board = next_board(snapshot, (), at=START)
    assert board is not None
    assert board.figures is not None
    made = report(snapshot, board, made_at=START)
    document = json.loads(json.dumps(made, allow_nan=False))
    assert document["awards"].startswith("First by dynamic rank: ")
    assert [row["numbered"] for row in document["standings"]] == [True, True, True, False]
    assert [row["q_mean"] for row in document["standings"]] == [row.q_mean for row in board.standings]
    assert document["weights"] == board.figures.weights
    again = report(snapshot, board, made_at=START)
    assert (again, report_page(again)) == (made, report_page(made))


def test_an_empty_phase_has_a_report() -> None:
    """Before the first submission, and while all are private, the page says so."""
    for entries in ((), (replace(steady(1, 1, 10), public=False),)):
        made = report(phase(*entries), None, made_at=START)
        assert "Nobody is on the board yet." in report_page(made)
        assert made["standings"] == []


def test_the_report_has_groups_and_ceilings() -> None:
    """It has mean scores by task and by group, plain and as shares of their ceilings; packages of other phases are ignored."""
    scores = {"trees": (0.4, 0.6, 0.4, 0.6), "crops": (0.3, 0.3, 0.3, 0.3)}
    made = report(phase(entry(1, 1, scores)), None, made_at=START, packages=PACKAGES)
    groups = {group["group"]: group for group in made["groups"]}
    assert list(groups) == ["", "land", "land/<b>forest"]
    assert groups["land"]["scores"] == pytest.approx([0.4])
    assert groups["land"]["ceiled"] == pytest.approx([(0.5 / 0.8 + 0.3 / 0.5) / 2])
    assert made["ceiled"] == {
        "crops": [{"score": pytest.approx(0.3), "ceiled": pytest.approx(0.6)}],
        "trees": [{"score": pytest.approx(0.5), "ceiled": pytest.approx(0.625)}],
    }
    assert made["ceilings"] == {"crops": 50.0, "trees": 80.0}
    page = report_page(made)
    assert "Groups of tasks" in page
    assert "0.300 / 60" in page
    assert "<b>forest" not in page
    plain = report(phase(entry(1, 1, scores)), None, made_at=START)
    assert "Groups of tasks" not in report_page(plain)
