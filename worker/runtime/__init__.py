"""External effects: acts, the runners that perform them outside the main loop, and the timetable of periodic jobs."""

from worker.runtime.acts import Act, Ended, NotDue, Result, Runner, UnrecordedAct
from worker.runtime.timetable import Job, Timetable

__all__ = [
    "Act",
    "Ended",
    "Job",
    "NotDue",
    "Result",
    "Runner",
    "Timetable",
    "UnrecordedAct",
    "cgroup",
    "child",
    "child_acts",
    "storage",
    "user_agent",
]
