"""Reports for the organizer only: the private report with its diagnostics, and the awards."""

from leaderboard.report.likeness import similarities_of_rows
from leaderboard.report.private_report import awards, report, report_page

__all__ = ["awards", "report", "report_page", "similarities_of_rows"]
