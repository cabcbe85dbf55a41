"""Publishing: from the score cells to a pushed board.

The stage (:class:`Publishing`) decides which act is next: new boards are made and stored, then the repository is brought in
step with what is stored.
"""

from worker.publishing.beacon import BeaconFetcher, drand_session, latest_round
from worker.publishing.pushing import publisher_settings
from worker.publishing.stage import Publishing

__all__ = [
    "BeaconFetcher",
    "Publishing",
    "board_history",
    "boards",
    "drand_session",
    "last_push",
    "latest_round",
    "publisher_settings",
    "pushing",
]
