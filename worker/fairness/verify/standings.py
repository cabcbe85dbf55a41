"""Checks of the boards: every rank ever published follows from the published scores, and the history shows every board."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import numpy as np

from leaderboard import Board, PhaseSite, Site
from leaderboard.ranking import Ranking, rank
from leaderboard.rendering import public_rows, update_history
from scoring.printable import all_of, count_of
from scoring.quality import mean_quality
from worker.fairness.verify.growth import HISTORY
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

TOLERANCE_Q = 1e-9


def ranks(phase: RevealedPhase) -> Verdict:
    """Recompute every board that was ever published from the published scores."""
    for board in phase.each_board():
        fault = _fault(phase, board)
        if fault:
            return phase.contradicted("ranks", f"board {board.sequence}: {fault}")
    rules = [board.rules_then(phase.rules) for board in phase.boards]
    changes = sum(earlier != later for earlier, later in pairwise(rules))
    told = f", by rules that changed {count_of(changes, 'time')}" if changes else ""
    return phase.consistent(
        "ranks", f"the ranks of {all_of(len(phase.boards), 'board')} follow from the published scores{told}"
    )


def _fault(phase: RevealedPhase, board: Board) -> str | None:
    if not board.standings:
        return None
    table: list[Mapping[str, float]] = []
    for standing in board.standings:
        record = phase.record_for(standing.submission, board.made_at)
        if record is None:
            return f"submission {standing.submission} has no published scores"
        table.append(phase.quality_of(record))
    tasks = sorted(table[0])
    if any(sorted(row) != tasks for row in table):
        return "its entries were scored on different tasks"
    for standing, row in zip(board.standings, table, strict=True):
        if not _same(mean_quality([row[task] for task in tasks]), standing.q_mean):
            return f"mean Q of submission {standing.submission} does not follow from its scores"
    rules = board.rules_then(phase.rules)
    ranking = rank(
        np.array([[row[task] for task in tasks] for row in table]),
        weighs=np.array([rules.baselines_weigh if row.baseline else row.eligible for row in board.standings]),
        numbered=np.array([row.numbered for row in board.standings]),
        ghost_task=rules.ghost_task,
    )
    if list(ranking.ranks) != [row.rank for row in board.standings]:
        return "its ranks do not follow from the scores"
    if list(ranking.ranks_by_mean) != [row.rank_by_mean for row in board.standings]:
        return "its standing by mean Q does not follow from the scores"
    return _figures_fault(board, tasks, table, ranking)


def _figures_fault(
    board: Board, tasks: Sequence[str], table: Sequence[Mapping[str, float]], ranking: Ranking
) -> str | None:
    """Check the published figures of tasks."""
    figures = board.private.figures
    if figures is None:
        return "it has no figures"
    weights = figures.weights
    if sorted(weights) != tasks or not all(
        _same(weights[task], weight) for task, weight in zip(tasks, ranking.weights, strict=True)
    ):
        return "the weights of its tasks do not follow from the scores"
    for said, row, weighted in zip(figures.rows, table, ranking.weighted_ranks, strict=True):
        if not _same(said.weighted_rank, weighted):
            return f"the weighted rank of submission {said.submission} does not follow from the scores"
        if sorted(said.q) != tasks or not all(_same(said.q[task], row[task]) for task in tasks):
            return f"the quality scores of submission {said.submission} do not follow from its fold scores"
    return None


def _same(said: float, computed: float) -> bool:
    return math.isclose(said, computed, rel_tol=0, abs_tol=2 * TOLERANCE_Q)


def history(phase: RevealedPhase) -> Verdict:
    """Check that the boards of the reveal are those in the published history."""
    expected = _lines(phase, phase.boards)
    stem = json.loads(expected[0])["phase"] if expected else phase.name
    shown = [
        line
        for line in phase.repository.files.get(HISTORY, b"").splitlines()
        if json.loads(line).get("phase") == stem
    ]
    lost, rest = _without_lost(shown, expected, phase.register.restored_at)
    if phase.pseudonyms:
        expected = _with_removed_names(phase, rest)
    later = [_made_at(line) for line in rest[len(expected) :]]
    if rest[: len(expected)] != expected or any(moment < phase.revealed_at for moment in later):
        return phase.contradicted("board", "the published history differs from the revealed boards")
    if later:
        return phase.not_revealed(
            "board",
            f"the board changed {count_of(len(later), 'time')} after the reveal; this can be checked after another reveal",
        )
    if lost:
        return phase.believed(
            "board",
            f"{count_of(lost, 'board of its history is', 'boards of its history are')} taken on trust, because the state was restored"
            " from an older backup; the others agree with the revealed boards",
        )
    return phase.consistent("board", "the published history agrees with the revealed boards")


def _lines(phase: RevealedPhase, boards: Sequence[Board]) -> list[bytes]:
    """Return the lines of a history of these boards."""
    site = PhaseSite(codename=phase.name, title=phase.name, rules=phase.rules, history=tuple(boards))
    return update_history(None, Site(title="", phases=(site,))).splitlines()


def _with_removed_names(phase: RevealedPhase, shown: Sequence[bytes]) -> list[bytes]:
    """Return the lines of the history with the team names that were removed later.

    The history only grows, so its older lines keep these names, while the revealed boards do not. Everything else in a line must follow.
    """
    lines: list[bytes] = []
    names: dict[int, str] = {}
    last: tuple[Board, ...] = ()
    for number, board in enumerate(phase.boards):
        told = json.loads(shown[number]) if number < len(shown) else {"changed": [], "left": []}
        rows = {(row["position"], row["submission"]): str(row["team"]) for row in told["changed"]}
        mentioned = {*rows.values(), *told["left"]}
        removed = [row for one in (*last, board) for row in public_rows(one, one.rules_then(phase.rules))]
        names |= {
            row.key[0]: row.team
            for row in removed
            if row.key[0] in phase.pseudonyms and row.team in mentioned
        }
        before = [_called(one, names) for one in last]
        names |= {
            row.team_key: rows[place, row.submission]
            for place, row in enumerate(board.standings, 1)
            if row.team_key in phase.pseudonyms and (place, row.submission) in rows
        }
        lines.append(_lines(phase, [*before, _called(board, names)])[-1])
        last = (board,)
    return lines


def _called(board: Board, names: Mapping[int, str]) -> Board:
    """Return a board with these names of teams."""
    rows = (replace(row, team=names.get(row.team_key, row.team)) for row in board.standings)
    return replace(board, standings=tuple(rows))


def _without_lost(
    shown: Sequence[bytes], expected: Sequence[bytes], restored_at: datetime | None
) -> tuple[int, list[bytes]]:
    """Remove the lines of boards that were published before a restore and unknown to the restored state; return how many there were."""
    known = {_which(line) for line in expected}
    rest = [
        line
        for line in shown
        if restored_at is None or _which(line) in known or _made_at(line) >= restored_at
    ]
    return len(shown) - len(rest), rest


def _which(line: bytes) -> tuple[int, str]:
    board = json.loads(line)
    return board["sequence"], board["made_at"]


def _made_at(line: bytes) -> datetime:
    return datetime.fromisoformat(json.loads(line)["made_at"])
