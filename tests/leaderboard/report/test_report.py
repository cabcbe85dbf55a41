"""The findings of the private report, and its safe page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from leaderboard.ranking.assessment import assess
from leaderboard.report.diagnostics import activity, diagnose_tasks, find_duplicates
from leaderboard.report.private_report import report
from leaderboard.report.replays import replay
from leaderboard.snapshot import Entry, PhaseSnapshot
from scoring.tasks import TaskPlace
from tests.leaderboard.harness.phases import START, entry, phase, steady

HOSTILE = "</td><script>alert(1)</script>\"'&{{ 7*7 }}"


def world(seed: int = 0) -> PhaseSnapshot:
    """Return teams that one task separates and another does not, and a baseline that fails a task by design."""
    random = np.random.default_rng(seed)

    def sent(pk: int, key: int, clear: float, failed: float, **facts: object) -> Entry:
        means = {"clear": clear, "failed": failed, "noise": 0.0}
        scores = {task: mean + 0.02 * random.standard_normal(20) for task, mean in means.items()}
        return entry(pk, key, scores, seconds=2.0, content_hash=f"{pk:064x}", **facts)

    return phase(
        sent(1, 1, 0.8, 0.50, team=HOSTILE),
        sent(2, 2, 0.5, 0.51),
        sent(3, 3, 0.2, 0.49),
        sent(4, 9, 0.5, -2.0, baseline=True, method="random"),
    )


def test_task_diagnostics() -> None:
    """A task of noise separates no teams, a task that a baseline fails names the baseline, and a clear task separates all."""
    snapshot = world()
    assessment = assess(snapshot, replicates=50)
    assert assessment is not None
    tasks = {task.task: task for task in diagnose_tasks(snapshot, assessment)}
    assert tasks["clear"].separated == 1.0
    assert tasks["noise"].separates_nobody
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
    (found,) = find_duplicates(entries)
    assert found.content_hash == "bb"
    assert found.submissions == ((3, 2), (4, 3))


def test_many_tiny_steps_are_reported_as_probing() -> None:
    """A team with many steps below the noise of the splits is reported; teams with large steps or repeated files are not."""
    noise = 0.05 * np.random.default_rng(1).standard_normal(40)

    def sent(pk: int, team: int, level: float, content: str) -> Entry:
        return entry(pk, team, {"a": level + noise, "b": level - noise}, content_hash=content)

    creeping = [sent(pk, 1, 0.5 + pk * 1e-5, f"c{pk}") for pk in range(8)]
    striding = [sent(10 + pk, 2, 0.1 * pk, f"s{pk}") for pk in range(8)]
    repeating = [sent(20 + pk, 3, 0.5, "same") for pk in range(8)]
    teams = {team.team_key: team for team in activity(phase(*creeping, *striding, *repeating))}
    assert [teams[key].probing for key in (1, 2, 3)] == [True, False, False]
    assert (teams[1].tiny_steps, teams[1].steps, teams[1].busiest_day) == (7, 7, 8)
    assert (teams[3].repeats, teams[3].steps) == (7, 0)


def test_the_page_is_safe_and_self_contained() -> None:
    """Names are text on the page; nothing is loaded and nothing runs."""
    made = report(world(), replay(world(), replicates=50), made_at=START, replicates=50)
    assert "<script" not in made.html
    assert "&lt;script&gt;" in made.html
    assert "{{ 7*7 }}" in made.html
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import""", made.html)
    balance: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "line", "rect", "polyline", "br", "wbr"):
                balance.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("line", "rect", "polyline"):
                assert balance.pop() == tag

    Tags().feed(made.html)
    assert balance == []


def test_the_document_has_all_figures() -> None:
    """The JSON has standings, figures per task, fold statistics, weights over time, ceilings and cost; equal input gives equal bytes."""
    snapshot = world()
    boards = replay(snapshot, replicates=50)
    places = [TaskPlace(identifier=name, ceiling=0.9) for name in ("clear", "unknown")]
    made = report(snapshot, boards, made_at=START, places=places, replicates=50)
    document = json.loads(made.json)
    assert [row["numbered"] for row in document["standings"]] == [True, True, True, False]
    assert document["figures"]["weights"] == boards[-1].private.weights
    assert document["ceilings"] == {"clear": 90.0}
    assert document["cost"]["seconds"] == 8.0
    assert len(document["history"]["weights"]) == len(boards)
    spread = document["folds"]["clear"][0]
    folds = snapshot.entries[0].scores["clear"]
    assert spread["median"] == np.median(folds)
    assert (spread["min"], spread["max"], spread["failed"]) == (min(folds), max(folds), 0)
    again = report(snapshot, boards, made_at=START, places=places[:1], replicates=50)
    assert (again.json, again.html) == (made.json, made.html)


def test_an_empty_phase_has_a_report() -> None:
    """Before the first submission, and while all are private, the page says so."""
    empty = report(phase(), (), made_at=START)
    assert "Nobody is on the board yet." in empty.html
    private = report(phase(replace(steady(1, 1, 10), public=False)), (), made_at=START)
    assert "Nobody is on the board yet." in private.html
    assert private.document["cost"]["submissions"] == 1


def test_failed_folds_are_counted_and_very_low_scores_cut() -> None:
    """A failed fold is counted next to its box, and a score far below -1 is cut so that it does not compress the others."""
    scores = {"a": (0.5, 0.6, float("nan"), 0.55)}
    snapshot = phase(entry(1, 1, scores), entry(2, 2, {"a": (-900.0, 0.6, 0.5, 0.55)}))
    made = report(snapshot, (), made_at=START, replicates=50)
    assert "1✗" in made.html
    assert 'x1="0.0"' in made.html


def test_the_page_shows_team_names_and_times_to_the_minute() -> None:
    """A team that decides the order of two others is named, not numbered, and times are given to the minute."""
    three = (steady(1, 1, 30, 10, team=HOSTILE), steady(2, 2, 12, 25), steady(3, 3, 11, 60))
    made = report(phase(*three), (), made_at=START.replace(microsecond=1), replicates=20)
    assert made.document["figures"]["leave_one_out"] == [{"submission": 3, "flips": ((2, 1),)}]
    assert "Without Team 3: &lt;/td&gt;" in made.html
    assert "made 2026-03-02 09:00 UTC." in made.html
    assert '<td class="text">2026-03-02 10:00 UTC</td>' in made.html
