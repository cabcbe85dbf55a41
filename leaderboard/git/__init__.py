"""Push to git repositories: checked addresses, git processes that can be stopped, a bare clone, and the publisher."""

from leaderboard.git.clone import with_signature, without_signature
from leaderboard.git.process import PublisherSettings
from leaderboard.git.publisher import OWN_FILES, OWN_FOLDERS, README, Files, Published, Publisher

__all__ = [
    "OWN_FILES",
    "OWN_FOLDERS",
    "README",
    "Files",
    "Published",
    "Publisher",
    "PublisherSettings",
    "with_signature",
    "without_signature",
]
