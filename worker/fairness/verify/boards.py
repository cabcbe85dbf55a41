"""The boards: each line of the published history must be the one that follows from the register, and no board may be missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leaderboard import Board
from leaderboard.ranking import board as boards
from leaderboard.rendering import history_lines
from scoring.printable import all_of, count_of
from worker.fairness.events import RENAMED
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "boards"


def boards_follow(phase: RevealedPhase) -> Verdict:
    """Compare the published history with the boards of the fold, and check that no later board is missing."""
    fold, moments = phase.fold, phase.document.boards
    if (needed := fold.unknown_phase) is not None:
        return phase.not_revealed(
            CHECK, f"its rules ask for a score in phase {needed}, which has not been revealed"
        )
    if moments != sorted(set(moments)):
        return phase.contradicted(CHECK, "the times of its boards are not in order")
    shown = phase.published
    renamed_at = max((note.at for note in fold.notes if note.what == RENAMED), default=None)
    rows: tuple[dict[int, Any], dict[int, Any]] = {}, {}
    for number, (board, follows) in enumerate(history_lines(phase.site(phase.boards), phase.stem), 1):
        if number > len(shown):
            return phase.contradicted(CHECK, f"board {number} is not in the published history")
        line, text = shown[number - 1]
        published, expected = json.loads(text), json.loads(follows)
        if renamed_at is not None and line.made_at < renamed_at:
            published, expected = _replayed(rows[0], published, board), _replayed(rows[1], expected, board)
        elif text == follows:
            continue
        if (difference := next(differences(published, expected), None)) is not None:
            return phase.contradicted(CHECK, f"board {number}, {difference}")
    if any(line.made_at < phase.revealed_at for line in phase.later):
        return phase.contradicted(CHECK, f"board {len(phase.boards) + 1} is not among those of the reveal")
    return _complete(phase, lost=len(phase.history) - len(shown))


def _replayed(rows: dict[int, Any], line: Mapping[str, Any], board: Board) -> dict[str, Any]:
    """Apply a line to the rows so far, by submission; return it with all rows of its board, without names.

    The names that a history had before one was removed stay in it, so names, and which of them left, cannot be compared with those of the
    register.
    """
    rows |= {
        row["submission"]: {key: value for key, value in row.items() if key != "team"}
        for row in line["changed"]
    }
    present = {standing.submission for standing in board.standings}
    shown = sorted((row for row in rows.values() if row["submission"] in present), key=_position)
    return {**line, "changed": shown, "left": []}


def _position(row: Mapping[str, Any]) -> int:
    return int(row["position"])


def differences(published: Any, follows: Any, where: str = "") -> Iterator[str]:
    """Yield where two JSON values differ, such as ``changed 7: q_mean is 61.2, follows 60.9``."""
    if isinstance(published, Mapping) and isinstance(follows, Mapping):
        for name in sorted({*published, *follows}):
            place = f"{where}{': ' if where else ''}{name}"
            if name not in published or name not in follows:
                yield f"{place} is {'missing' if name in follows else 'unknown'}"
            else:
                yield from differences(published[name], follows[name], place)
    elif isinstance(published, list) and isinstance(follows, list) and len(published) == len(follows):
        for number, (ours, theirs) in enumerate(zip(published, follows, strict=True), 1):
            yield from differences(ours, theirs, f"{where} {number}")
    elif type(published) is not type(follows) or published != follows:
        yield f"{where} is {json.dumps(published)}, follows {json.dumps(follows)}"


def _complete(phase: RevealedPhase, *, lost: int) -> Verdict:
    """Return the verdict on a history whose boards all follow: whether one is missing, and what cannot be checked."""
    if phase.later:
        return phase.not_revealed(
            CHECK,
            f"the board changed {count_of(len(phase.later), 'time')} after the reveal; this can be checked after another reveal",
        )
    fold, last = phase.fold, phase.boards[-1:]
    snapshot = fold.snapshot(fold.closed_at)
    if snapshot is not None and boards.next_board(
        snapshot, last, at=fold.closed_at, replicates=snapshot.rules.replicates
    ):
        if fold.frozen_at is not None:
            return phase.contradicted(CHECK, "the last board is not the one that follows from the register")
        return phase.not_revealed(
            CHECK,
            f"another board follows from what was registered until {fold.closed_at.isoformat()[:16]}; it was not published before"
            " the reveal, and can be checked after another reveal",
        )
    if lost:
        return phase.believed(
            CHECK,
            f"{count_of(lost, 'board of its history is', 'boards of its history are')} taken on trust, because the state was restored"
            " from an older backup; the others follow from the register",
        )
    number = len(phase.boards)
    return phase.consistent(
        CHECK,
        f"{all_of(number, 'published board')} {'follows' if number == 1 else 'follow'} from the register, and no later board is missing",
    )
