"""The boards of all phases, each read from the database once.

A stored board changes only if the name of a team is removed, and a publish cycle needs the whole history (for the chart of ranks and the
appended lines). Reading all of it each time would take more time and memory as a challenge goes on.
"""

from __future__ import annotations

from leaderboard import Board
from leaderboard.ranking import board as boards
from worker.fairness.membership import FACT
from worker.state import Transaction

PORTION = 100  # documents in memory at a time


class BoardHistory:
    """The boards that were read so far; each reading adds the new ones.

    A row that is equal in consecutive boards is kept once. Private figures, the larger part of a document, are kept only for the latest
    board, because only the next board and the page use them; rules are kept for all boards. Code that needs the figures of all boards reads
    the documents themselves.
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
