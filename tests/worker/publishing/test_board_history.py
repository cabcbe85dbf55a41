"""The history of boards in memory: every board is read once, and only what is needed is kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from leaderboard import Board, Private
from leaderboard.ranking import to_json
from tests.leaderboard.harness.site_fixtures import moving_site
from worker.publishing import board_history
from worker.publishing.board_history import PORTION, BoardHistory
from worker.state import Store


def store_boards(store: Store, boards: list[Board]) -> None:
    """Store boards as a publish cycle does."""
    with store.write() as tx:
        for board in boards:
            tx.add_board(board.phase, board.sequence, to_json(board))


def test_the_stored_boards_are_read_in_order(tmp_path: Path) -> None:
    """Boards are read completely, but the private figures only for the latest."""
    boards = [
        replace(board, private=Private(fingerprint=f"{board.sequence}"))
        for board in moving_site(2 * PORTION + 7).phases[0].history
    ]
    store = Store(f"sqlite:///{tmp_path}/worker.db")
    history = BoardHistory()
    for begin, end in (
        (0, 0),
        (0, 1),
        (1, PORTION + 1),
        (PORTION + 1, PORTION + 1),
        (PORTION + 1, len(boards)),
    ):
        store_boards(store, boards[begin:end])
        with store.read() as tx:
            read = history.read(tx, boards[0].phase)
            assert tx.last_board(boards[0].phase) == end
            assert history.read(tx, "another") == ()
        expected = [replace(board, private=Private()) for board in boards[:end]]
        if end:
            expected[-1] = boards[end - 1]
        assert list(read) == expected
    store.close()


def test_a_board_is_read_once_and_an_unchanged_row_kept_once(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A cycle costs only as much as there are new boards."""
    boards = list(moving_site(30).phases[0].history)
    store = Store(f"sqlite:///{tmp_path}/worker.db")
    history = BoardHistory()
    parsed: list[str] = []
    read_one = board_history.boards.from_json
    monkeypatch.setattr(board_history.boards, "from_json", lambda text: parsed.append(text) or read_one(text))
    for count in range(1, len(boards) + 1):
        store_boards(store, boards[count - 1 : count])
        with store.read() as tx:
            read = history.read(tx, "dev")
    assert len(parsed) == len(boards)
    kept = {id(row) for board in read for row in board.standings}
    equal = sum(
        old == new
        for before, after in pairwise(boards)
        for new in after.standings
        for old in before.standings
    )
    assert equal > 0
    assert len(kept) == sum(len(board.standings) for board in boards) - equal
    store.close()
