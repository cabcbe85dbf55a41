"""``neuco-worker run``, ``once`` and ``compile``: what systemd's units call."""

from __future__ import annotations

import sys

import typer

from worker.cli.terminal import ConfigOption


def run(*, config: ConfigOption) -> None:
    """Run the worker until SIGTERM: download, score and answer submissions, and publish the leaderboard.

    On SIGHUP, it reads the configuration again. If EvalAI refuses the token, it sends an alert and waits for a new one.

    Next: `neuco-worker status` shows what it does.

    Example: `neuco-worker run --config /etc/neuco-worker/challenge.yaml`
    """
    from worker.daemon import run as run_daemon

    run_daemon(config)


def once(*, config: ConfigOption) -> None:
    """Score and answer all waiting submissions, push the leaderboard, and exit; for cron.

    Exits with 0 only if every completely uploaded submission was answered and the leaderboard was pushed.

    Next: `neuco-worker status` shows what is left to do.

    Example: `neuco-worker once --config challenge.yaml`
    """
    from worker.daemon import once as drain

    drain(config, tell=_tell)


def _tell(sentence: str) -> None:
    """Explain to a person at a terminal why nothing happens for a while; cron's mail does not need this."""
    if sys.stderr.isatty():
        typer.echo(sentence, err=True)


def compile_code() -> None:
    """Compile the scoring code in advance, so that no submission has to wait for it.

    Run it after each installation, as the user of the worker. The code goes to NUMBA_CACHE_DIR, else to systemd's cache or state
    directory, else to the user's cache.

    Next: `neuco-worker run`.

    Example: `NUMBA_CACHE_DIR=/var/cache/neuco-worker neuco-worker compile`
    """
    import structlog

    from scoring.engines.registry import warm as compile_all
    from worker.daemon.logs import for_systemd, set_up

    directory, seconds = compile_all()
    sentence = (
        f"Compiled in {seconds:.1f} s, but the result cannot be kept, because no cache directory is writable:"
        " every evaluation would compile again. Set NUMBA_CACHE_DIR to a writable directory."
        if directory is None
        else f"Ready after {seconds:.1f} s; the compiled code is in {directory}."
    )
    if for_systemd():
        set_up()
        structlog.get_logger("neuco_worker").info(sentence, event_key="warm.done")
    else:
        print(sentence)
