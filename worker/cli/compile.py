"""``neuco-worker compile``: compile the scoring code before the first submission needs it."""

from __future__ import annotations

import json

from worker.cli.options import JsonOption


def compile_code(
    *,
    json_output: JsonOption = False,
) -> None:
    """Compile the scoring code in advance, so that no submission has to wait for it.

    Run it after each installation, as the user of the worker. The code goes to NUMBA_CACHE_DIR, else to systemd's cache or state
    directory, else to the user's cache.

    Example: `NUMBA_CACHE_DIR=/var/cache/neuco-worker neuco-worker compile`
    """
    import structlog

    from scoring.warm import warm as compile_all
    from worker.daemon.logs import for_systemd, set_up

    warmth = compile_all()
    if json_output:
        directory = None if warmth.directory is None else str(warmth.directory)
        print(json.dumps({"directory": directory, "seconds": round(warmth.seconds, 3)}))
        return
    said = (
        f"Compiled in {warmth.seconds:.1f} s, but the result cannot be kept, because no cache directory is writable:"
        " every evaluation would compile again. Set NUMBA_CACHE_DIR to a writable directory."
        if warmth.directory is None
        else f"Ready after {warmth.seconds:.1f} s; the compiled code is in {warmth.directory}."
    )
    if for_systemd():
        set_up()
        structlog.get_logger("neuco_worker").info(said, event_key="warm.done")
    else:
        print(said)
