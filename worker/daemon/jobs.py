"""The table of periodic jobs and their intervals."""

from __future__ import annotations

from worker.challenge.configuration import Configuration
from worker.fetching.housekeeping import EVERY
from worker.intake.hosts import READ_EVERY
from worker.runtime import Job


def intervals_s(configuration: Configuration) -> dict[Job, float]:
    """Return the interval of each job in seconds."""
    return {
        Job.POLL: configuration.evalai.poll_every,
        Job.RECONCILE: configuration.evalai.reconcile_every,
        Job.HOSTS: READ_EVERY.total_seconds(),
        Job.PUBLISH: configuration.leaderboard.publish_every,
        Job.HOUSEKEEPING: EVERY.total_seconds(),
    }
