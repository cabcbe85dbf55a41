"""The published history: it shows every revealed board."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from leaderboard import Board, PhaseSite, Site
from leaderboard.rendering import public_rows, update_history
from scoring.printable import count_of
from worker.fairness.verify.growth import HISTORY
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict


def history(phase: RevealedPhase) -> Verdict:
    """Check that the boards of the reveal are those in the published history."""
    expected = _lines(phase, phase.boards)
    stem = json.loads(expected[0])["phase"] if expected else phase.name
    shown = [
        line
        for line in phase.repository.files.get(HISTORY, b"").splitlines()
        if json.loads(line).get("phase") == stem
    ]
    lost, rest = _without_lost(shown, expected, phase.fold.restored_at)
    if phase.fold.pseudonyms:
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
            if row.key[0] in phase.fold.pseudonyms and row.team in mentioned
        }
        before = [_called(one, names) for one in last]
        names |= {
            row.team_key: rows[place, row.submission]
            for place, row in enumerate(board.standings, 1)
            if row.team_key in phase.fold.pseudonyms and (place, row.submission) in rows
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
