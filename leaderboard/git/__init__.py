"""Push to git repositories: checked addresses, git processes that can be stopped, a bare clone, and the publisher."""

from leaderboard.git.commits import LOG_OPTIONS, OtherCommit, read_log
from leaderboard.git.publisher import Files, Published, Publisher, PublisherSettings

__all__ = [
    "LOG_OPTIONS",
    "Files",
    "OtherCommit",
    "Published",
    "Publisher",
    "PublisherSettings",
    "read_log",
]
