"""The process that runs a challenge: start, signals, the step and its repetition, and what systemd and monitoring hear of it."""

from worker.daemon.once import once
from worker.daemon.run import run
from worker.daemon.worker import Waiting, Worker, make_client

__all__ = ["Waiting", "Worker", "alerts", "logs", "make_client", "once", "run"]
