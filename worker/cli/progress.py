"""Progress of long work, for somebody who waits at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(doing: str, unit: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show on a terminal's stderr how much is done, of how much if that is known, and how long it has taken and will take.

    Yields:
        What takes how much was done since the last call, and of how much.
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
        # as tqdm writes it: taken < left
        TextColumn("<"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    bar = bars.add_task(doing, total=None)
    with bars:
        yield lambda done, of: bars.update(bar, advance=done, total=of)
