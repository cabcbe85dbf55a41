"""Sites for the tests of what is published: small ones made by hand, and the real boards of 2025."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from leaderboard.rules import PhaseRules, Rounding
from leaderboard.snapshot import Board, Figures, Method, MoveKind, PhaseSite, Site, Standing
from tests.leaderboard.harness.phases import START, steady
from tests.leaderboard.harness.played import PlayedPhase

DATA = Path(__file__).parents[1] / "data"
SECRET = Figures(weights={"secret_task": 0.25}, rows=(), leave_one_out={})


def standing(rank: int, team: str | None = None, **facts: object) -> Standing:
    """Return one row with default values, each of which can be set."""
    values: dict[str, object] = {
        "rank": rank,
        "rank_by_mean": rank,
        "team_key": 100 + rank,
        "team": f"Team {rank}" if team is None else team,
        "submission": 1000 + rank,
        "q_mean": 30.0 - 3.25 * rank,
        "baseline": False,
        "eligible": True,
        "group": (rank + 1) // 2,
        "submissions": rank,
        "last_submitted_at": START - timedelta(hours=rank),
    }
    return Standing(**(values | facts))  # type: ignore[arg-type]


def board(
    standings: Sequence[Standing], *, phase: str = "dev", sequence: int = 1, triggers: tuple[int, ...] = ()
) -> Board:
    """Return a board made one hour after the one before it."""
    return Board(
        phase=phase,
        sequence=sequence,
        made_at=START + timedelta(hours=sequence),
        triggers=triggers,
        standings=tuple(standings),
        rounding=Rounding(),
        fingerprint="",
        figures=SECRET,
    )


def phase_site(*boards: Board, codename: str = "dev", **facts: object) -> PhaseSite:
    """Return a phase with the given boards as its history."""
    values: dict[str, object] = {
        "codename": codename,
        "rules": PhaseRules(),
        "history": tuple(boards),
    }
    return PhaseSite(**(values | facts))  # type: ignore[arg-type]


def simple_site(names: Sequence[str] = ("Alpha", "Beta", "Gamma", "Delta"), **facts: object) -> Site:
    """Return a site with one phase, one board and the given names."""
    rows = [standing(rank, name, move_kind=MoveKind.NEW) for rank, name in enumerate(names, 1)]
    return Site(title="Test challenge", phases=(phase_site(board(rows)),), **facts)  # type: ignore[arg-type]


def moving_site(updates: int = 12) -> Site:
    """Return a site whose teams overtake each other, with own and passive moves, a baseline and a negative score."""
    phase = PlayedPhase("ab", codename="dev")
    for update in range(updates):
        team, at = update * 5 % 6, START + timedelta(hours=7 * update)
        facts = {"team": f"Team_{team}", "method": "", "submitted_at": at, "baseline": team == 4}
        phase.receive(steady(2000 + update, team + 1, update * 7 % 40 - 3, update * 11 % 30, **facts))
        phase.make_board(at + timedelta(minutes=11))
    site = phase.site("Test challenge", link="https://eval.ai/web/challenges/challenge-page/2465/overview")
    return replace(site, phases=(*site.phases, phase_site(codename="eval")))


def embed2scale_site() -> Site:
    """Return the published history of the 2025 Embed2Scale board.

    Only rank, team and mean Q were public, so a change of a team's mean Q counts as its own submission. Submission numbers follow the order
    of these changes.
    """
    tables: dict[tuple[str, str], list[tuple[int, str, float]]] = {}
    with (DATA / "embed2scale_leaderboard_history.csv").open(newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            row = (int(line["rank"]), line["team"], float(line["mean_q"]))
            tables.setdefault((line["phase"], line["updated_utc"]), []).append(row)
    keys: dict[str, int] = {}
    for rows in tables.values():
        for _, team, _ in rows:
            keys.setdefault(team, len(keys) + 1)
    return Site(
        title="Embed2Scale 2025",
        link="https://eval.ai/web/challenges/challenge-page/2465/overview",
        phases=tuple(
            PhaseSite(codename=phase, rules=PhaseRules(), history=_boards_2025(phase, tables, keys))
            for phase in ("dev", "test")
        ),
    )


def methods_site(names: Sequence[str] = ()) -> Site:
    """Return the board of 2025 with all links that a site can have, and with made-up methods of its teams.

    Args:
        names: Names of methods for the rows in turn; by default some as long as titles of papers.
    """
    site = embed2scale_site()
    names = names or (
        "TerraMind-L, attention pooling, PCA to 1024, int8 residual codebook (ours)",
        "SSL4EO DINOv2 ViT-g/14 ensemble",
        "mean",
        "",
    )
    phases = []
    for phase in site.phases:
        methods = {
            row.submission: Method(
                name=names[number % len(names)],
                project_url="" if number % 3 else f"https://github.com/team-{number}/embed2scale",
                publication_url="" if number % 2 else "https://arxiv.org/abs/2510.17914",
            )
            for number, row in enumerate(phase.history[-1].standings)
        }
        phases.append(replace(phase, methods=methods))
    return replace(
        site, phases=tuple(phases), repository="https://github.com/DLR-MF-DAS/embed2scale", committed=True
    )


def _boards_2025(
    phase: str, tables: dict[tuple[str, str], list[tuple[int, str, float]]], keys: dict[str, int]
) -> tuple[Board, ...]:
    boards: list[Board] = []
    before: dict[str, Standing] = {}
    number = 5000
    shown: list[tuple[int, str, float]] = []
    for (codename, updated), rows in tables.items():
        if codename != phase or rows == shown:
            continue
        shown = rows
        made_at = datetime.fromisoformat(updated).replace(tzinfo=UTC)
        standings, triggers = [], []
        for rank, team, q_mean in rows:
            old = before.get(team)
            own = old is None or old.q_mean != q_mean
            if own:
                number += 1
                triggers.append(number)
            numbered = [(place, q) for place, name, q in rows if not name.startswith("Baseline")]
            new_rank = 1 + sum(place < rank for place, _ in numbered)
            kind = MoveKind.NEW if old is None else MoveKind.NONE
            if old is not None and old.rank != new_rank:
                kind = MoveKind.OWN if own else MoveKind.PASSIVE
            standings.append(
                Standing(
                    rank=new_rank,
                    rank_by_mean=1 + sum(q > q_mean for _, q in numbered),
                    team_key=keys[team],
                    team=team,
                    submission=number if own else (old or standings[0]).submission,
                    q_mean=q_mean,
                    baseline=team.startswith("Baseline"),
                    eligible=True,
                    group=rank,
                    submissions=(old.submissions if old else 0) + own,
                    last_submitted_at=made_at if own or old is None else old.last_submitted_at,
                    move=old.rank - new_rank if old else 0,
                    move_kind=kind,
                )
            )
        before = {row.team: row for row in standings}
        boards.append(
            Board(
                phase=phase,
                sequence=len(boards) + 1,
                made_at=made_at,
                triggers=tuple(triggers),
                standings=tuple(standings),
                rounding=Rounding(),
                fingerprint="",
                figures=None,
            )
        )
    return tuple(boards)
