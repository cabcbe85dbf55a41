"""The process that runs a challenge: start, signals, the main loop, and its reports to systemd and monitoring."""

from worker.daemon.run import once, run
from worker.daemon.worker import Waiting, Worker, intervals, make_client

__all__ = ["Waiting", "Worker", "alerts", "intervals", "logs", "make_client", "once", "run"]
