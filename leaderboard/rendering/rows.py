"""The public part of a board, which is all that renderers see: its rows, why each moved, and what was decided.

Renderers get rows, never standings, so that a value which is not in a row cannot reach a file by accident. A board's ``figures`` are
never read here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from leaderboard.rendering.documents import NEWEST, EntryRow, Row, printed, rounded
from leaderboard.rendering.names import distinct_names, quoted, shown_method
from leaderboard.rules import Rounding
from leaderboard.snapshot import (
    Board,
    Decision,
    DecisionKind,
    Method,
    MoveKind,
    PhaseSite,
    RowKey,
    Standing,
)
from scoring.printable import count_of, name_some

NAMED = 3  # how many teams or decisions a sentence names
ORDER = (DecisionKind.RESCORE, DecisionKind.RULE, DecisionKind.ENTRY)


def published_decisions(phase: PhaseSite) -> tuple[Decision, ...]:
    """Return a phase's public decisions with the number of the first board after each, and what changed on that board.

    A decision may have this number already, because the published times of boards have whole seconds.
    """
    history = phase.history
    moments = [board.made_at for board in history]
    private = phase.only_if_shown - {row.submission for board in history for row in board.standings}
    dated = []
    for decision in phase.decisions:
        if decision.submission is not None and decision.submission in private:
            continue
        place = bisect_left(moments, decision.at) if decision.board is None else decision.board - 1
        if decision.kind in ORDER and place < len(history):
            changes = _changes_on(history, place)
            effect = f"On the next board, these ranks changed: {name_some(changes)}." if changes else ""
            dated.append(replace(decision, board=history[place].sequence, effect=effect))
        else:
            dated.append(decision)
    return tuple(dated)


def rank_changes(history: Sequence[Board], moment: datetime) -> list[str]:
    """Return which ranks the first board after a moment has changed, such as ``“A” from 4 to 3``."""
    return _changes_on(history, bisect_left([board.made_at for board in history], moment))


def _changes_on(history: Sequence[Board], place: int) -> list[str]:
    """Return which ranks a board has changed."""
    if not 0 < place < len(history):
        return []
    boards = history[place - 1], history[place]
    names = team_names(boards[0]) | team_names(boards[1])
    before, after = ({row.key: row.rank for row in board.standings if row.numbered} for board in boards)
    return [  # in words: after a Hebrew or Arabic name, the numbers around an arrow would change places
        f"{quoted(names[key])} from {before.get(key, 'none')} to {after.get(key, 'none')}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]


def team_names(board: Board) -> dict[RowKey, str]:
    """Return the display names of a board's rows."""
    return distinct_names((row.key, row.team) for row in board.standings)


def causes(
    board: Board, before: Board | None, names: Mapping[RowKey, str], decisions: Sequence[Decision]
) -> str:
    """Return what made a board differ from the one before, as a sentence."""
    reasons = (_submissions(board, names), *_competing(board, before, names), *_decided(board, decisions))
    sentences = "; ".join(filter(None, reasons))
    return f"{sentences[:1].upper()}{sentences[1:]}." if sentences else "The entries changed."


def why(row: Standing, board: Board, names: Mapping[RowKey, str], others: Sequence[str]) -> str:
    """Return why a row moved, with all causes in their order, of which ``others`` are no submissions; empty if it did not move."""
    if row.move_kind is MoveKind.NEW:
        return "New on the board."
    if not row.move:
        return ""
    places = f"{row.rank + row.move} → {row.rank}"
    if not row.numbered:
        places = f"{count_of(abs(row.move), 'place')} {'up' if row.move > 0 else 'down'}"
    how = (
        "another submission of its own counts"
        if row.move_kind is MoveKind.OWN
        else _passed(row, board, names)
    )
    if not how and row.numbered and board.triggers and not others:
        how = "no other team's own move passed it; ranks on the tasks, or their weights, changed"
    reasons = [how, _submissions(board, names, but=row), *others]
    return f"{places}: {'; '.join(filter(None, reasons)) or 'other entries changed'}."


def _passed(row: Standing, board: Board, names: Mapping[RowKey, str]) -> str:
    """Return which teams passed a row with a move of their own; without rank numbers, nobody."""
    if not row.numbered:
        return ""
    up, before = row.move > 0, row.rank + row.move
    moves = (MoveKind.OWN,) if up else (MoveKind.OWN, MoveKind.NEW)
    teams = [
        quoted(names[other.key])
        for other in board.standings
        if other.move_kind in moves  # few, of a long board
        and other.numbered
        # Now on the one side of the row, before on the other or level with it.
        and (other.rank - row.rank) * row.move > 0
        and (other.move_kind is MoveKind.NEW or (other.rank + other.move - before) * row.move <= 0)
    ]
    if not teams:
        return ""
    return f"{name_some(teams, NAMED)} fell behind it" if up else f"overtaken by {name_some(teams, NAMED)}"


def sentence(decision: Decision) -> str:
    """Return what was decided, and why, without a full stop."""
    return f"{decision.text} ({decision.reason})" if decision.reason else decision.text


def account(decision: Decision) -> str:
    """Return what was decided, why, and with what effect, as whole sentences."""
    words = sentence(decision)
    return f"{words[:1].upper()}{words[1:]}. {decision.effect}".strip()


def _submissions(board: Board, names: Mapping[RowKey, str], but: Standing | None = None) -> str:
    triggers = frozenset(board.triggers) - ({but.submission} if but else set())
    teams = [quoted(names[row.key]) for row in board.standings if row.submission in triggers]
    if not teams:
        return ""
    return (
        f"newly counted: {'a submission' if len(teams) == 1 else 'submissions'} of {name_some(teams, NAMED)}"
    )


def _competing(board: Board, before: Board | None, names: Mapping[RowKey, str]) -> list[str]:
    """Return which teams have come into competition since the board before, or are out of it now, by what they did in another phase."""
    earlier = {row.key: row.numbered for row in before.standings} if before else {}
    told = []
    for words, numbered in (("now in competition", True), ("now out of competition", False)):
        changed = [row for row in board.standings if row.numbered is numbered]
        teams = [quoted(names[row.key]) for row in changed if earlier.get(row.key, numbered) is not numbered]
        told += [f"{words}: {name_some(teams, NAMED)}"] if teams else []
    return told


def _decided(board: Board, decisions: Sequence[Decision]) -> list[str]:
    sentences = [
        sentence(decision)
        for kind in ORDER
        for decision in decisions
        if decision.board == board.sequence and decision.kind == kind
    ]
    return [
        *sentences[:NAMED],
        *([f"{len(sentences) - NAMED} more decisions"] if len(sentences) > NAMED else []),
    ]


def shown(board: Board, rounding: Rounding) -> Iterator[dict[str, Any]]:
    """Yield for each of a board's rows, in its order, what both the history and the phase's JSON show of it.

    Args:
        board: The board.
        rounding: How its values are shown.
    """
    names = team_names(board)
    for standing in board.standings:
        yield {
            "team": names[standing.key],
            "q_mean": float(rounded(rounding.value(standing.q_mean), rounding.decimals)),
            "baseline": standing.baseline,
            "eligible": standing.eligible,
            "submission": standing.submission,
            "submissions": standing.submissions,
        }


def row_values(board: Board, rounding: Rounding) -> Iterator[dict[str, Any]]:
    """Yield for each of a board's rows, in its order, what the phase's JSON states of it, except for words.

    Args:
        board: The board.
        rounding: How its values are shown.
    """
    rows = zip(shown(board, rounding), board.standings, strict=True)
    for position, (row, standing) in enumerate(rows, 1):
        yield {
            **row,
            **{name: getattr(standing, name) for name in NEWEST},
            "position": position,
            "rank": standing.rank if standing.numbered else None,
            "rank_by_mean": standing.rank_by_mean if standing.numbered else None,
            "move": standing.move,
            "move_kind": standing.move_kind,
            "rank_if_competing": standing.rank if standing.apart else None,
            "reliable": row["q_mean"] >= 0,
            "last_submission": standing.last_submitted_at.astimezone(UTC).replace(microsecond=0),
        }


def public_rows(
    board: Board,
    rounding: Rounding,
    methods: Mapping[int, Method] | None = None,
    decisions: Sequence[Decision] = (),
    *,
    before: Board | None = None,
) -> tuple[Row, ...]:
    """Return a board's rows in its order.

    Args:
        board: The board.
        rounding: How its values are shown.
        methods: Submission pk to method.
        decisions: What was decided, for the reasons of moves.
        before: The board before it, for the same.
    """
    rows, pairs = [], list(zip(row_values(board, rounding), board.standings, strict=True))
    names = {standing.key: row["team"] for row, standing in pairs}
    others = [*_competing(board, before, names), *_decided(board, decisions)]
    for row, standing in pairs:
        method = shown_method((methods or {}).get(standing.submission, Method()), known_as=row["team"])
        rows.append(
            Row(
                **row,
                q_text=printed(row["q_mean"], rounding.decimals, rounding.ladder_step),
                why=why(standing, board, names, others),
                method=method.name,
                project_url=method.project_url,
                publication_url=method.publication_url,
            )
        )
    return tuple(rows)


def minute(moment: datetime) -> str:
    """Return a time for people: UTC, to the minute."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def movement(row: EntryRow | Standing) -> str:
    """Return a row's movement as a short text and as one word."""
    if row.move_kind is MoveKind.NEW:
        return "new"
    if row.move == 0:
        return "–"
    return f"{'▲' if row.move > 0 else '▼'} {abs(row.move)} {row.move_kind.value}"
