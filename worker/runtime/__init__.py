"""What reaches outside: acts, the runners that perform them outside the loop, and the timetable of regular jobs."""

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
