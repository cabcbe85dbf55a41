"""``run``: the daemon, until SIGTERM."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import structlog

from scoring.errors import NeucoError
from worker import storage
from worker.beats import Beats
from worker.daemon import memory
from worker.daemon.health import HealthServer
from worker.daemon.metrics import registry
from worker.daemon.notify import notify
from worker.daemon.signals import Signals
from worker.daemon.start import collector, reload, started, utc_now

MOVES_PER_BEAT = 200  # then the beat ends and the next one goes on, so that the watchdog hears of us


def run(path: Path, *, checkpoint: Callable[[str], None] = lambda _: None) -> None:
    """Run until SIGTERM: the daemon.

    A beat goes on as long as something moves. It alone feeds systemd's watchdog, so a loop that hangs is restarted.

    Raises:
        OrganizerError: As :func:`started`; or if EvalAI's challenge is not the configured one.
    """
    memory.return_early()
    signals = Signals()
    signals.install()
    with (
        started(path, wake=signals.wake.set, checkpoint=checkpoint) as (configuration, worker),
        ExitStack() as open_ones,
    ):
        log = structlog.get_logger("neuco_worker")
        log.info("The worker runs.", event_key="run.start", pid=os.getpid())
        fatal: list[NeucoError] = []
        last_beat = [utc_now()]

        def beat() -> None:
            last_beat[0] = utc_now()
            try:
                if signals.reload:
                    signals.reload = False
                    reload(path, worker)
                for _ in range(MOVES_PER_BEAT):
                    if signals.stop.is_set():
                        return
                    signals.wake.clear()
                    if not worker.step(utc_now()):
                        break
                else:
                    signals.wake.set()
                if worker.fatal is not None:
                    fatal.append(worker.fatal)
                    signals.stop.set()
            except NeucoError as error:  # a locked or full database: the next beat tries again
                cause = worker.failed(error, utc_now())
                log.error(cause.message, event_key=cause.code)
            notify("WATCHDOG=1")

        if configuration.metrics.listen is not None:
            figures = registry(collector(worker))
            health = HealthServer(
                configuration.metrics.listen,
                figures,
                last_beat=lambda: last_beat[0],
                problem=lambda: worker.problem or storage.trouble(configuration.state_dir),
                free_bytes=worker.files.free_bytes,
                reserve_gigabytes=lambda: worker.context.configuration.submission.disk_reserve_gigabytes,
                clock=utc_now,
            )
            open_ones.callback(health.close)
        Beats(beat=beat, wake=signals.wake, stop=signals.stop, busy=lambda: worker.busy).run(
            began=lambda: notify("READY=1")
        )
        notify("STOPPING=1")
        log.info("The worker ends.", event_key="run.end")
        if fatal:
            raise fatal[0]
