"""``neuco-worker run`` and ``once``: the daemon, and the drain for cron."""

from __future__ import annotations

import sys

import typer

from worker.cli.options import ConfigOption


def run(*, config: ConfigOption) -> None:
    """Run the worker until SIGTERM: download, score and answer submissions, and publish the leaderboard.

    On SIGHUP, it reads the configuration again. If EvalAI refuses the token, it sends an alert and waits for a new one.

    Example: `neuco-worker run --config /etc/neuco-worker/challenge.yaml`
    """
    from worker.daemon import run as run_daemon

    run_daemon(config)


def once(*, config: ConfigOption) -> None:
    """Score and answer all waiting submissions, push the leaderboard, and exit; for cron.

    Exits with 0 only if every completely uploaded submission was answered and the leaderboard was pushed.

    Example: `neuco-worker once --config challenge.yaml`
    """
    from worker.daemon import once as drain

    drain(config, tell=_tell)


def _tell(sentence: str) -> None:
    """Explain to a person at a terminal why nothing happens for a while; cron's mail does not need this."""
    if sys.stderr.isatty():
        typer.echo(sentence, err=True)
