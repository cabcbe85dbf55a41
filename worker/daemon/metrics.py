"""Metrics for Prometheus: the challenge's state as figures, read from the database at each request.

Nothing is counted in memory, so a restart loses nothing and `once` can write the same figures to a text file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from worker.evalai import TokenRefused
from worker.runtime.storage import FileStore
from worker.state import State, Store
from worker.state.status import read_status

PREFIX = "neuco_worker"


class StateCollector(Collector):
    """Turns a :class:`worker.state.status.Status` and the attempts into metrics at each scrape.

    Args:
        store: Durable state.
        files: Stored files.
        token_expires: Returns when the EvalAI token expires; None for tokens without an expiry date.
        clock: Returns the time.
    """

    def __init__(
        self,
        store: Store,
        files: FileStore,
        *,
        token_expires: Callable[[], datetime | None],
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._files = files
        self._token_expires = token_expires
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Read the database and yield every metric."""
        now = self._clock()
        status = read_status(
            self._store,
            now=now,
            led=True,
            token_expires=self._token_expires(),
            free_bytes=self._files.free_bytes(),
        )
        states = GaugeMetricFamily(f"{PREFIX}_submissions", "Submissions by state.", labels=["state"])
        for state in State:
            states.add_metric([state.value], status.states.get(state.value, 0))
        yield states
        refused = any(alert.code == TokenRefused.usual_code for alert in status.alerts)
        gauges = {
            "waiting": ("Submissions whose participants wait for an answer.", status.waiting),
            "oldest_waiting_seconds": (
                "Age of the oldest waiting submission.",
                status.oldest_waiting_s or 0.0,
            ),
            "held": ("Submissions that wait for a person.", len(status.held)),
            "outbox": ("Posts and deletions owed to EvalAI.", status.owed),
            "alerts": ("Alerts that are raised.", len(status.alerts)),
            "disk_free_bytes": ("Free space for stored files.", status.free_bytes),
            "last_poll_age_seconds": ("Since the queue was last looked at.", _age_s(now, status.last_poll)),
            "last_reconcile_age_seconds": (
                "Since the listing was last compared.",
                _age_s(now, status.last_reconcile),
            ),
            "last_push_age_seconds": ("Since the board was last pushed.", _age_s(now, status.last_push)),
            "token_expiry_seconds": (
                "Until the EvalAI token ends; 0 while EvalAI refuses it.",
                0.0 if refused else _age_s(status.token_expires, now),
            ),
        }
        for name, (text, value) in gauges.items():
            if value is not None:
                yield GaugeMetricFamily(f"{PREFIX}_{name}", text, value=value)
        attempts = CounterMetricFamily(
            f"{PREFIX}_attempts", "Closed attempts by kind and outcome.", labels=["kind", "outcome"]
        )
        with self._store.read() as tx:
            for kind, outcome, number in tx.attempt_counts():
                attempts.add_metric([kind, outcome], number)
        yield attempts


def _age_s(now: datetime | None, since: datetime | None) -> float | None:
    """Return the seconds between two times, None if one of them is unknown."""
    return None if now is None or since is None else (now - since).total_seconds()


def registry(collector: Collector) -> CollectorRegistry:
    """Return a new registry, so that nothing is shared within the process."""
    result = CollectorRegistry()
    result.register(collector)
    return result


def write_textfile(collector: StateCollector, path: Path) -> None:
    """Write all metrics for node_exporter's textfile collector; the file is replaced atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(path), registry(collector))
