"""The terminal: whatever others wrote, it is only shown."""

from __future__ import annotations

from collections.abc import Iterable

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from scoring.printable import printable_lines


class Console(rich.console.Console):
    """A console on which no text can move the cursor, change colors or turn letters round; only what this program styles does."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render with every text made printable."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable_lines(text), style)
