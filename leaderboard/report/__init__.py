"""The private report with its diagnostics, the awards, and what a paper or a workshop needs."""

from leaderboard.report.likeness import similarities_of_rows
from leaderboard.report.paper import paper_files
from leaderboard.report.private_report import awards, report, report_page

__all__ = ["awards", "paper_files", "report", "report_page", "similarities_of_rows"]
