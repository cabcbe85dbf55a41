"""Reports for the organizer only: the private report, diagnostics, awards, and the replayed history."""

from leaderboard.report.awards import awards
from leaderboard.report.near_copies import similarities_of_rows
from leaderboard.report.private_report import report
from leaderboard.report.replays import moves_csv, replay, replay_json

__all__ = ["awards", "moves_csv", "replay", "replay_json", "report", "similarities_of_rows"]
