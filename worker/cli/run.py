"""``neuco-worker run`` and ``once``: the daemon, and the drain for cron."""

from __future__ import annotations

from worker.cli.options import ConfigOption


def run(*, config: ConfigOption) -> None:
    """Run the daemon until SIGTERM: fetch, score, answer, publish.

    SIGHUP reads the configuration again. With a refused token it stays up, alerts and waits.

    Example: neuco-worker run --config /etc/neuco-worker/challenge.yaml
    """
    from worker.daemon import run as run_daemon

    run_daemon(config)


def once(*, config: ConfigOption) -> None:
    """Do everything that waits, push the board, and exit: for cron.

    Exits with 0 only when every submission is answered and the board is pushed.

    Example: neuco-worker once --config challenge.yaml
    """
    from worker.daemon import once as drain

    drain(config)
