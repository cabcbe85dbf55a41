"""What commands share: options, the one rule for decisions, progress, and untrusted text without any effect on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import rich.console
import typer
from rich.console import ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from scoring.errors import OrganizerError
from scoring.printable import printable_lines

if TYPE_CHECKING:
    from worker.organizer.session import OrganizerSession


class Console(rich.console.Console):
    """A console on which text cannot move the cursor, change colors or reverse letters; only this program's own styles have an effect."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(emoji=False, **settings)  # :x: may be part of a path
        if not self.stderr:  # a narrower terminal breaks lines itself, whereas a table would lose digits
            self.width = max(self.width, 80)

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


CONFIGURATION = "challenge.yaml"


def configuration_file(path: Path) -> Path:
    """Return the configuration file that a path names: itself, or the one in this folder."""
    return path / CONFIGURATION if path.is_dir() else path


ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        help="The challenge's configuration file, or its folder.",
        callback=configuration_file,
        default_factory=lambda: Path(CONFIGURATION),
        envvar="NEUCO_CHALLENGE",
        show_default=CONFIGURATION,
        metavar="FILE",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def open_session(config: Path) -> AbstractContextManager[OrganizerSession]:
    """Open a challenge for a command; see :func:`worker.organizer.session.open_session`."""
    from worker.organizer import session

    return session.open_session(config)


def progress_bar(doing: str, unit: str) -> AbstractContextManager[Callable[[int, int | None], None]]:
    """Show on a terminal's stderr how much is done; see :func:`scoring.progress.progress_bar`."""
    from scoring import progress

    return progress.progress_bar(doing, unit, Console(stderr=True))


YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
ReasonOption = Annotated[
    str,
    typer.Option("--reason", help="The reason, which is published; a terminal asks for it.", metavar="TEXT"),
]


def ask(consequences: str, *, yes: bool, options: str = "--yes") -> None:
    """Say what a step does, and go on only if it is wanted.

    Args:
        consequences: What follows, in sentences.
        yes: Whether it is wanted without asking.
        options: What to add in a script.

    Raises:
        typer.Exit: With status 1, if it is not wanted, or nobody can be asked.
    """
    print(consequences)
    if not yes and not (_at_terminal() and typer.confirm("Proceed?")):
        print(f"Nothing has been done yet. To do it, add: {options}")
        raise typer.Exit(1)


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirm(consequences: str, *, reason: str, yes: bool) -> str:
    """Say what a step does, and return its reason if the step is wanted.

    Args:
        consequences: What follows, in sentences.
        reason: The reason, if it was given; otherwise a terminal asks for it.
        yes: Whether it is wanted without asking.

    Raises:
        OrganizerError: If there is no reason.
        typer.Exit: As :func:`ask`.
    """
    check_reason(reason, yes=yes)
    ask(consequences, yes=yes, options="--yes --reason TEXT")
    if not reason.strip() and _at_terminal():
        reason = typer.prompt("The reason, which is published")
    check_reason(reason, yes=True, asked=True)
    return reason.strip()


def check_reason(reason: str, *, yes: bool, asked: bool = False) -> None:
    """Check that a decision that is not asked about has a reason, and that it can be published, before anything else is said.

    Raises:
        OrganizerError: If it has none, or one that is not UTF-8.
    """
    if reason != reason.encode(errors="replace").decode():
        raise OrganizerError(
            "The reason is not UTF-8.",
            hint="Write it in a terminal or a script that uses UTF-8.",
            code="decision.encoding",
        )
    if yes and not reason.strip() and (asked or not _at_terminal()):
        raise OrganizerError(
            "This needs a reason, which is published.",
            hint='Add --reason "TEXT"; `verify` shows it to everyone.',
            code="decision.reason",
        )
