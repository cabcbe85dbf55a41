"""The public part of a board, and the only part that renderers see.

Renderers get rows, never standings, so that a value which is not in a row cannot reach a file by accident. A board's ``private`` figures
are never read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from leaderboard.rendering.decided import team_names, why
from leaderboard.rendering.documents import Entry, Row, printed, rounded
from leaderboard.rendering.methods import shown_method
from leaderboard.snapshot import Board, Decision, Method, MoveKind, Rules

NO_METHOD = Method()


def public_rows(
    board: Board,
    rules: Rules,
    methods: Mapping[int, Method] | None = None,
    decisions: Sequence[Decision] = (),
) -> tuple[Row, ...]:
    """Return a board's rows in its order.

    Args:
        board: The board.
        rules: The rules by which its values are shown.
        methods: Submission pk to method.
        decisions: What was decided, for the reasons of moves.
    """
    names = team_names(board)
    rows = []
    for position, standing in enumerate(board.standings, 1):
        value = float(rounded(rules.value(standing.q_mean), rules.decimals))
        name = names[standing.key]
        method = shown_method((methods or {}).get(standing.submission, NO_METHOD), known_as=name)
        rows.append(
            Row(
                position=position,
                rank=standing.rank if standing.numbered else None,
                rank_by_mean=standing.rank_by_mean if standing.numbered else None,
                team=name,
                key=standing.key,
                q_mean=value,
                q_text=printed(value, rules.decimals, rules.ladder_step),
                reliable=value >= 0,
                group=standing.group,
                submission=standing.submission,
                submissions=standing.submissions,
                last_submission=standing.last_submitted_at.astimezone(UTC),
                move=standing.move,
                move_kind=standing.move_kind,
                baseline=standing.baseline,
                eligible=standing.eligible,
                why=why(standing, board, names, decisions),
                method=method.name,
                project_url=method.project_url,
                publication_url=method.publication_url,
            )
        )
    return tuple(rows)


def minute(moment: datetime) -> str:
    """Return a time for people: UTC, to the minute."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def movement(row: Entry) -> str:
    """Return a row's movement as a short text and as one word."""
    if row.move_kind is MoveKind.NEW:
        return "new"
    if row.move == 0:
        return "–"
    return f"{'▲' if row.move > 0 else '▼'} {abs(row.move)} {row.move_kind.value}"
