"""Publishing: from the score cells to a pushed board.

The stage (:class:`Publishing`) decides which act is next: new boards are made and stored, then the repository is brought in
step with what is stored.
"""

from worker.publishing.pushing import publisher_settings
from worker.publishing.stage import Publishing

__all__ = [
    "Publishing",
    "boards",
    "files_branch",
    "publisher_settings",
    "pushing",
    "reveals",
]
