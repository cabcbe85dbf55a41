"""A revealed challenge with random scores from a seeded generator, for pictures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from leaderboard.snapshot import Site
from tests.leaderboard.harness.phases import entry
from tests.leaderboard.harness.played import PlayedPhase

BEGIN = datetime(2026, 4, 1, tzinfo=UTC)
TASKS = (
    "biomass_mean",
    "nitrogen_dioxide",
    "crop_type",
    "land_cover_forest",
    "cloud_cover",
    "heat_island",
    "random_labels",
)
TEAMS = (
    "Bit Pressers",
    "Team_Crumels",
    "GeoEmbedders",
    "Onepack",
    "7ry5ot21",
    "Degas AI",
    "فريق التضمين",
    "Latent Hikers",
)
BASELINES = ("Baseline mean embeddings", "Baseline random embeddings")


def small_phase() -> PlayedPhase:
    """Return a phase with a few teams at its end."""
    random = np.random.default_rng(3)
    names = (*TEAMS, *BASELINES)
    phase = PlayedPhase(TASKS)
    for step in range(34):
        team = step if step < len(names) else int(random.integers(0, len(TEAMS)))
        skill = -0.02 if team == len(names) - 1 else (len(names) - 1 - team) * 0.022 + 0.0024 * step
        scores = {
            task: (
                skill * (0.3 + 0.4 * (place % 4))
                + 0.05 * random.standard_normal()
                + 0.03 * random.standard_normal(20)
            ).tolist()
            for place, task in enumerate(TASKS)
        }
        at = BEGIN + timedelta(hours=8 * step)
        facts = {"team": names[team], "method": "", "submitted_at": at, "baseline": team >= len(TEAMS)}
        phase.receive(entry(3000 + step, team, scores, **facts))
        phase.make_board(at + timedelta(minutes=4))
    return phase


def revealed_site() -> Site:
    """Return the site of the small phase after the end of the challenge."""
    return small_phase().revealed_site(
        "Embedding Challenge 2026",
        closed_at=BEGIN + timedelta(days=14),
        link="https://eval.ai/web/challenges/challenge-page/1/overview",
    )


def crowded_phase(teams: int = 100, tasks: int = 12) -> PlayedPhase:
    """Return a large phase: many teams and tasks, long names, moves, a failed row, a baseline and a team out of competition."""
    random = np.random.default_rng(1)
    identifiers = tuple(
        f"tropospheric_nitrogen_dioxide_{task}" if task % 3 else f"crop_{task}" for task in range(tasks)
    )
    long_names = {
        3: "Institute-for-Earth-Observation-and-Very-Long-Names-of-Teams",
        7: "W" * 40,
        11: BASELINES[0],
    }
    phase = PlayedPhase(identifiers)
    for step in range(teams + 4):
        team = step if step < teams else 7 * (step - teams + 2)
        skill = -0.3 if team == teams - 1 else 0.6 - 0.5 * team / teams + 0.03 * (step >= teams)
        at = BEGIN + timedelta(hours=step)
        facts = {"method": "", "submitted_at": at, "baseline": team == 11, "eligible": team != 3}
        scores = {task: (skill + 0.05 * random.standard_normal(6)).tolist() for task in identifiers}
        phase.receive(entry(3000 + step, team, scores, team=long_names.get(team, f"Team {team}"), **facts))
        if step >= teams - 1:
            phase.make_board(at + timedelta(minutes=4))
    return phase
