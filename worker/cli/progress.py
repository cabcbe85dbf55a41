"""Progress of long work, shown at a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager


def progress_bar(doing: str, unit: str) -> AbstractContextManager[Callable[[int, int | None], None]]:
    """Show on a terminal's stderr how much is done; see :func:`scoring.progress.progress_bar`."""
    from scoring import progress
    from worker.cli.terminal import Console

    return progress.progress_bar(doing, unit, Console(stderr=True))
