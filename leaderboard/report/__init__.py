"""Reports for the organizer only: the private report with its diagnostics, and the awards."""

from leaderboard.report.awards import awards
from leaderboard.report.near_copies import similarities_of_rows
from leaderboard.report.private_report import report, report_page

__all__ = ["awards", "report", "report_page", "similarities_of_rows"]
