"""What reaches outside: acts, and the runners that perform them beside the loop."""

from worker.runtime.acts import Act, UnrecordedAct
from worker.runtime.runner import Ended, Runner

__all__ = ["Act", "Ended", "Runner", "UnrecordedAct"]
