"""External effects: acts, and the runners that perform them outside the main loop."""

from worker import __version__
from worker.runtime.acts import Act, Ended, NotDue, Result, Runner, UnrecordedAct

__all__ = [
    "USER_AGENT",
    "Act",
    "Ended",
    "NotDue",
    "Result",
    "Runner",
    "UnrecordedAct",
    "child",
    "child_acts",
    "storage",
]

USER_AGENT = f"neuco-worker/{__version__}"
"""What operators of servers see of the software that sends a request."""
