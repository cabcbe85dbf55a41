"""Render the published files: from a site to the bytes of its files."""

from leaderboard.rendering.assets import templates
from leaderboard.rendering.documents import EntryRow, HistoryLine, PhaseDocument, Row, printed
from leaderboard.rendering.files import around_block, render
from leaderboard.rendering.history import (
    HISTORY,
    BoardName,
    board_name,
    history_lines,
    recorded_boards,
    unrecorded,
    update_history,
)
from leaderboard.rendering.names import csv_cell, csv_text, display_name, markdown, names_alike, quoted
from leaderboard.rendering.reading import each_board, read_site
from leaderboard.rendering.rows import public_rows, rank_changes, row_values

__all__ = [
    "HISTORY",
    "BoardName",
    "EntryRow",
    "HistoryLine",
    "PhaseDocument",
    "Row",
    "around_block",
    "board_name",
    "csv_cell",
    "csv_text",
    "display_name",
    "each_board",
    "history_lines",
    "markdown",
    "names_alike",
    "printed",
    "public_rows",
    "quoted",
    "rank_changes",
    "read_site",
    "recorded_boards",
    "render",
    "row_values",
    "templates",
    "unrecorded",
    "update_history",
]
