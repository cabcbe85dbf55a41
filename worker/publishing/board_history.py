"""The boards of all phases, each read out of the database once.

A stored board changes only if the name of a team is removed, and a round of publishing needs the whole history (the chart of its moves,
the appended lines). Reading all of it each time would cost more time and memory as a challenge goes on.
"""

from __future__ import annotations

from leaderboard import Board
from leaderboard.ranking import board as boards
from worker.fairness.pseudonyms import FACT
from worker.state import Transaction

PORTION = 100  # documents that are in memory at a time


class BoardHistory:
    """What was read so far; new boards are added at each reading.

    A row that is equal in consecutive boards is kept once. Private figures, the larger part of a document, are kept of the latest board
    alone (but for its rules): only the next board and the page look at them. Who needs those of all reads the documents themselves.
    """

    def __init__(self) -> None:
        self._boards: dict[str, list[Board]] = {}
        self._removed: str | None = None

    def read(self, tx: Transaction, phase: str) -> tuple[Board, ...]:
        """Return a phase's boards, oldest first."""
        if (removed := tx.fact(FACT)) != self._removed:
            self._boards, self._removed = {}, removed
        row = self._boards.setdefault(phase, [])
        while documents := tx.boards(phase, after=row[-1].sequence if row else 0, at_most=PORTION):
            for document in documents:
                boards.append_board(row, boards.from_json(document))
        return tuple(row)
