"""Pushing: an address that was checked, processes that can be stopped, a bare clone, and the publisher."""

from leaderboard.git.clone import OtherCommit
from leaderboard.git.publisher import Files, Published, Publisher, PublisherSettings

__all__ = ["Files", "OtherCommit", "Published", "Publisher", "PublisherSettings"]
