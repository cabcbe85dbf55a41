"""The terminal: untrusted text is shown without any effect on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import rich.console
from rich.console import ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from scoring.printable import printable_lines


class Console(rich.console.Console):
    """A console on which text cannot move the cursor, change colors or reverse letters; only this program's own styles have an effect."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render a line with all of its text made printable."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable_lines(text), style)


TEXTS = {"Entry", "Method", "Phase", "Result", "Task", "Team", "Type", "Visibility"}
"""Columns without numbers."""


def table_of(columns: Mapping[str, Sequence[str]], title: str, *, total: bool = False) -> Table:
    """Return a table of columns of texts; ``total`` sets the last row apart."""
    table = Table(title=Text(title), title_justify="left")
    for name, cells in columns.items():
        # in a narrow terminal, texts and intervals take several lines, so that no number is cut off
        divisible = name in TEXTS or any(" " in cell for cell in cells)
        justify: JustifyMethod = "left" if name in TEXTS else "right"
        table.add_column(Text(name), justify=justify, no_wrap=not divisible, overflow="fold")
    rows = list(zip(*columns.values(), strict=True))
    for place, row in enumerate(rows):
        table.add_row(*map(Text, row), end_section=total and place == len(rows) - 2)
    return table
