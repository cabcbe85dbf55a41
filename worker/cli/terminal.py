"""The terminal: untrusted text is shown without any effect on it."""

from __future__ import annotations

from collections.abc import Iterable

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from scoring.printable import printable_lines


class Console(rich.console.Console):
    """A console on which text cannot move the cursor, change colors or reverse letters; only this program's own styles have an effect."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render a line with all of its text made printable."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable_lines(text), style)
