"""The terminal: untrusted text is shown without any effect on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from scoring.printable import printable_lines

if TYPE_CHECKING:
    import pandas as pd


class Console(rich.console.Console):
    """A console on which text cannot move the cursor, change colors or reverse letters; only this program's own styles have an effect."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render a line with all of its text made printable."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable_lines(text), style)


TEXTS = ("Entry", "Task", "Type")  # columns without numbers


def table_of(cells: pd.DataFrame, title: str, *, total: bool = False) -> Table:
    """Return a table of cells that are texts; ``total`` sets the last row apart."""
    table = Table(title=Text(title), title_justify="left")
    for name in cells.columns:
        table.add_column(Text(name), justify="left" if name in TEXTS else "right", no_wrap=name not in TEXTS)
    for row in cells.to_numpy()[: len(cells) - total]:
        table.add_row(*map(Text, row))
    if total:
        table.add_section()
        table.add_row(*map(Text, cells.to_numpy()[-1]))
    return table
