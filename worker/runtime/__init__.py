"""External effects: acts, the runners that perform them outside the main loop, and the timetable of periodic jobs."""

from worker import __version__
from worker.runtime.acts import Act, Ended, NotDue, Result, Runner, UnrecordedAct
from worker.runtime.timetable import Job, Timetable

__all__ = [
    "USER_AGENT",
    "Act",
    "Ended",
    "Job",
    "NotDue",
    "Result",
    "Runner",
    "Timetable",
    "UnrecordedAct",
    "child",
    "child_acts",
    "storage",
]

USER_AGENT = f"neuco-worker/{__version__}"
"""What operators of servers see of the software that sends a request."""
