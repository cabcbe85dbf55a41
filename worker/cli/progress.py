"""Progress of long work, shown at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(doing: str, unit: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show on a terminal's stderr how much is done, the total if it is known, and the time so far and to go.

    Yields:
        A function that takes the amount done since its last call, and the total.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from worker.cli.terminal import Console

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(" of "),
        TextColumn(unit),
        TimeElapsedColumn(),
        # tqdm's format: elapsed < remaining
        TextColumn("<"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    bar = bars.add_task(doing, total=None)
    with bars:
        yield lambda done, of: bars.update(bar, advance=done, total=of)
