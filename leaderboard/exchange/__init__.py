"""Exchange results with other tools: tables, NeuCo-Bench's runs, GEO-Bench and NeuroBench."""

from leaderboard.exchange.geobench import (
    comment,
    judge_metrics,
    quoted,
    read_submission,
    rows_of_runs,
    write_submission,
)
from leaderboard.exchange.geobench_ranking import (
    board_files,
    make_normalizer,
    ranking_markdown,
    read_normalizer,
    standings,
    without_range,
)
from leaderboard.exchange.neurobench import neurobench_documents
from leaderboard.exchange.runs import (
    OVERALL,
    Compared,
    PhaseRuns,
    compare_runs,
    comparison_document,
    leaderboard_csv,
    read_runs,
)
from leaderboard.exchange.table import TableRanking, rank_table, read_table, table_document

__all__ = [
    "OVERALL",
    "Compared",
    "PhaseRuns",
    "TableRanking",
    "board_files",
    "comment",
    "compare_runs",
    "comparison_document",
    "judge_metrics",
    "leaderboard_csv",
    "make_normalizer",
    "neurobench_documents",
    "quoted",
    "rank_table",
    "ranking_markdown",
    "read_normalizer",
    "read_runs",
    "read_submission",
    "read_table",
    "rows_of_runs",
    "standings",
    "table_document",
    "without_range",
    "write_submission",
]
