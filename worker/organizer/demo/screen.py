"""The demo's output: a table that is updated while the worker runs, or plain lines if the output is no terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

OPEN = "submitted"
RUNNING = "running"
COLORS = {OPEN: "dim", RUNNING: "yellow", "finished": "green", "failed": "red"}


@dataclass(frozen=True, kw_only=True)
class ShownSubmission:
    """One submission as EvalAI shows it now."""

    phase: str
    team: str
    method: str
    public: bool
    status: str
    q_mean: float | None = None

    @property
    def outcome(self) -> str:
        """The status, with mean Q if it is known."""
        return self.status if self.q_mean is None else f"{self.status}, mean Q {self.q_mean:.3f}"

    @property
    def kind(self) -> str:
        """Whether it is public or private."""
        return "public" if self.public else "private"


class Screen:
    """Shows submissions while their status changes; a context manager.

    Args:
        console: The output; a terminal gets a table that is redrawn, anything else a line per change.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._began = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._shown: dict[int, str] = {}

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, lines: Sequence[ShownSubmission]) -> None:
        """Update the screen."""
        changed = {n: line for n, line in enumerate(lines) if self._shown.get(n) != line.outcome}
        if not changed:
            return
        self._shown |= {n: line.outcome for n, line in changed.items()}
        if self._live is not None:
            self._live.update(self._table(lines), refresh=True)
            return
        for line in changed.values():
            text = f"{line.phase:<5} {line.team}: {line.method} ({line.kind}): {line.outcome}"
            self.console.print(f"{self._seconds():>6}  {text}", markup=False, highlight=False, soft_wrap=True)

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:.1f} s"

    def _table(self, lines: Sequence[ShownSubmission]) -> Table:
        table = Table(title=f"Submissions to the EvalAI sandbox · {self._seconds()}", title_justify="left")
        for heading in ("Phase", "Team", "Method", "", "Status"):
            table.add_column(heading)
        for line in lines:
            outcome = f"[{COLORS.get(line.status, 'default')}]{escape(line.outcome)}[/]"
            table.add_row(line.phase, escape(line.team), escape(line.method), line.kind, outcome)
        return table
