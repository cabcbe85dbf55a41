"""The history of boards in memory: every board is read once, and only what is needed is kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from leaderboard import Private
from leaderboard.ranking import to_json
from tests.leaderboard.harness.site_fixtures import moving_site
from worker.publishing import board_history
from worker.publishing.board_history import PORTION, BoardHistory
from worker.state import Store


def test_every_board_is_read_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards are complete, but private figures are kept only for the latest, and an unchanged row once."""
    stored = [
        replace(board, private=Private(fingerprint=f"{board.sequence}"))
        for board in moving_site(2 * PORTION + 7).phases[0].history
    ]
    parsed: list[str] = []
    parse = board_history.boards.from_json
    monkeypatch.setattr(board_history.boards, "from_json", lambda text: parsed.append(text) or parse(text))
    store, history = Store(f"sqlite:///{tmp_path}/worker.db"), BoardHistory()
    for begin, end in pairwise((0, 0, 1, PORTION + 1, PORTION + 1, len(stored))):
        with store.write() as tx:
            for board in stored[begin:end]:
                tx.save_board(board.phase, board.sequence, to_json(board))
        with store.read() as tx:
            read = history.read(tx, "dev")
            assert history.read(tx, "another") == ()
        assert list(read[:-1]) == [replace(board, private=Private()) for board in stored[: max(end - 1, 0)]]
        assert read[-1:] == tuple(stored[:end][-1:])
    store.close()
    assert len(parsed) == len(stored)
    rows = [row for board in read for row in board.standings]
    equal = [row for old, new in pairwise(stored) for row in new.standings if row in old.standings]
    assert equal
    assert len({id(row) for row in rows}) == len(rows) - len(equal)
