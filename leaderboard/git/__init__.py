"""Read git repositories, and push to them.

What is read comes from git's objects, as bytes. A push has a checked address, a git process that can be stopped, and a bare clone.
"""

from leaderboard.git.objects import Blob, Commit, with_signature, without_signature
from leaderboard.git.process import PublisherSettings
from leaderboard.git.publisher import (
    OWN_FILES,
    OWN_FOLDERS,
    README,
    Files,
    ForeignFiles,
    Published,
    Publisher,
)
from leaderboard.git.remote import without_credentials
from leaderboard.git.repository import Clone, Repository, cloned, plain_folder

__all__ = [
    "OWN_FILES",
    "OWN_FOLDERS",
    "README",
    "Blob",
    "Clone",
    "Commit",
    "Files",
    "ForeignFiles",
    "Published",
    "Publisher",
    "PublisherSettings",
    "Repository",
    "cloned",
    "plain_folder",
    "with_signature",
    "without_credentials",
    "without_signature",
]
