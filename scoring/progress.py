"""Progress of long work, shown at a terminal or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_bar(doing: str, unit: str, console: Console) -> Iterator[Callable[[int, int | None], None]]:
    """Show how much is done, the total if it is known, and the time so far and to go.

    Yields:
        A function that takes the amount done since its last call, and the total.
    """
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(" of "),
        TextColumn(unit),
        TimeElapsedColumn(),
        # tqdm's format: elapsed < remaining
        TextColumn("<"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (sys.stderr.isatty() or console.is_jupyter),
    )
    bar = bars.add_task(doing, total=None)
    with bars:
        yield lambda done, of: bars.update(bar, advance=done, total=of)
