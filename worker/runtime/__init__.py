"""External effects: acts, the runners that perform them outside the main loop, and the timetable of periodic jobs."""

from worker.runtime.acts import Act, NotDue, Result, UnrecordedAct
from worker.runtime.runner import Ended, Runner
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
    "child_acts",
    "child_runner",
    "files",
    "limits",
    "storage",
    "user_agent",
]
