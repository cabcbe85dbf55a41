"""External effects: acts, and the runners that perform them outside the main loop."""

from worker.runtime.acts import Act, Ended, NotDue, Result, Runner, UnrecordedAct

__all__ = [
    "Act",
    "Ended",
    "NotDue",
    "Result",
    "Runner",
    "UnrecordedAct",
    "child",
    "child_acts",
    "http",
    "storage",
]
