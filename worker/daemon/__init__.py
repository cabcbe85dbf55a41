"""The process that runs a challenge: start, signals, the main loop, and its reports to systemd and monitoring."""

from worker.daemon.run import once, run
from worker.daemon.worker import Waiting, Worker, make_client

__all__ = ["Waiting", "Worker", "alerts", "logs", "make_client", "once", "run"]
