"""Which files of a repository are the worker's, and which others visitors of the challenge's pages may see instead."""

from __future__ import annotations

import re

from leaderboard.git import OWN_FILES, OWN_FOLDERS

# What GitHub and GitLab show instead of our README.md or page, and what changes how they serve them.
_SERVED = re.compile(
    r"((\.github|docs)/)?readme(\.[^/]+)?|(docs/|public/)?([^/]+\.x?html?|index\.md|CNAME|\.nojekyll|_.+)",
    re.IGNORECASE,
)


def is_own(path: str) -> bool:
    """Return whether a worker publishes a file at this path; it leaves nothing of others in its folders."""
    return path in OWN_FILES or path.startswith(tuple(f"{folder}/" for folder in OWN_FOLDERS))


def is_served(path: str) -> bool:
    """Return whether a file, if it is changed, added or removed, can change what visitors see."""
    return is_own(path) or _SERVED.fullmatch(path) is not None
