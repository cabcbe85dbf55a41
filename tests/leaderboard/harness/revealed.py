"""A revealed challenge with made-up scores, drawn from a seeded generator, for pictures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from leaderboard.ranking.board import next_board
from leaderboard.snapshot import Board, Entry, PhaseSite, PhaseSnapshot, Rules, Site

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


def revealed_site() -> Site:
    """Return the site after the end of the challenge."""
    random = np.random.default_rng(3)
    names = (*TEAMS, *BASELINES)
    entries: list[Entry] = []
    boards: list[Board] = []
    snapshot = PhaseSnapshot(
        codename="eval", title="Evaluation phase", rules=Rules(), row_sets={}, entries=()
    )
    for step in range(34):
        team = step if step < len(names) else int(random.integers(0, len(TEAMS)))
        skill = -0.02 if team == len(names) - 1 else (len(names) - 1 - team) * 0.022 + 0.0024 * step
        scores = {
            task: tuple(
                (
                    skill * (0.3 + 0.4 * (place % 4))
                    + 0.05 * random.standard_normal()
                    + 0.03 * random.standard_normal(20)
                ).tolist()
            )
            for place, task in enumerate(TASKS)
        }
        at = BEGIN + timedelta(hours=8 * step)
        entries.append(
            Entry(
                submission=3000 + step,
                team_key=team,
                team=names[team],
                method="",
                submitted_at=at,
                public=True,
                baseline=team >= len(TEAMS),
                scores=scores,
            )
        )
        snapshot = PhaseSnapshot(
            codename="eval",
            title="Evaluation phase",
            rules=Rules(),
            row_sets=dict.fromkeys(TASKS, "rows"),
            entries=tuple(entries),
        )
        board = next_board(snapshot, boards, at=at + timedelta(minutes=4), replicates=500)
        if board is not None:
            boards.append(board)
    phase = PhaseSite(
        codename="eval",
        title="Evaluation phase",
        rules=Rules(),
        history=tuple(boards),
        snapshot=snapshot,
        revealed=True,
        frozen_at=BEGIN + timedelta(days=14),
    )
    return Site(
        title="Embedding Challenge 2026",
        phases=(phase,),
        link="https://eval.ai/web/challenges/challenge-page/1/overview",
    )


def crowd_site(teams: int = 100, tasks: int = 12) -> Site:
    """Return a site that needs room: many teams and tasks, long names, moves, a failed row, a baseline and a team out of competition."""
    random = np.random.default_rng(1)
    identifiers = tuple(
        f"tropospheric_nitrogen_dioxide_{task}" if task % 3 else f"crop_{task}" for task in range(tasks)
    )
    long_names = {
        3: "Institute-for-Earth-Observation-and-Very-Long-Names-of-Teams",
        7: "W" * 40,
        11: BASELINES[0],
    }
    entries: list[Entry] = []
    boards: list[Board] = []
    for step in range(teams + 4):
        team = step if step < teams else 7 * (step - teams + 2)
        skill = -0.3 if team == teams - 1 else 0.6 - 0.5 * team / teams + 0.03 * (step >= teams)
        entries.append(
            Entry(
                submission=3000 + step,
                team_key=team,
                team=long_names.get(team, f"Team {team}"),
                method="",
                submitted_at=BEGIN + timedelta(hours=step),
                public=True,
                baseline=team == 11,
                eligible=team != 3,
                scores={
                    task: tuple((skill + 0.05 * random.standard_normal(6)).tolist()) for task in identifiers
                },
            )
        )
        if step < teams - 1:
            continue
        snapshot = PhaseSnapshot(
            codename="eval",
            title="Evaluation phase",
            rules=Rules(),
            row_sets=dict.fromkeys(identifiers, "rows"),
            entries=tuple(entries),
        )
        board = next_board(snapshot, boards, at=BEGIN + timedelta(hours=step, minutes=4), replicates=20)
        if board is not None:
            boards.append(board)
    phase = PhaseSite(
        codename="eval",
        title="Evaluation phase",
        rules=Rules(),
        history=tuple(boards),
        snapshot=snapshot,
        revealed=True,
    )
    return Site(title="A challenge of a hundred teams", phases=(phase,))
