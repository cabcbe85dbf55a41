"""Push to git repositories: checked addresses, git processes that can be stopped, a bare clone, and the publisher."""

from leaderboard.git.commits import (
    CommitSigner,
    OtherCommit,
    with_signature,
    without_signature,
)
from leaderboard.git.publisher import OWN_FILES, OWN_FOLDERS, Files, Published, Publisher, PublisherSettings

__all__ = [
    "OWN_FILES",
    "OWN_FOLDERS",
    "CommitSigner",
    "Files",
    "OtherCommit",
    "Published",
    "Publisher",
    "PublisherSettings",
    "with_signature",
    "without_signature",
]
