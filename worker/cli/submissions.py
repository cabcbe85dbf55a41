"""``neuco-worker submissions``: every submission with its number, state, value and hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from rich.table import Table

    from worker.organizer.listing import ListedSubmission


def submissions(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase.", metavar="NAME")] = None,
    team: Annotated[
        str | None,
        typer.Option(help="Only this team: its number at EvalAI, or all or part of its name."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(help="Only this state, such as `fetched`; or `held`: only those on hold."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List submissions with number, team, phase, state, mean Q, and what they are waiting for.

    The numbers are EvalAI's. A star marks the submissions that count on the latest board.

    Example: `neuco-worker submissions --phase dev --state held --config challenge.yaml`
    """
    from worker.organizer import listing
    from worker.organizer.session import open_session

    with open_session(config) as session:
        rows = listing.submissions(session, phase=phase, team=team, state=state)
    if json_output:
        print(json.dumps({"submissions": [row.to_json() for row in rows]}, indent=2))
        return
    from worker.cli.terminal import Console

    console = Console(highlight=False)
    if not rows:
        asked = phase or team or state
        console.print("No submission matches." if asked else "There are no submissions yet.", markup=False)
        return
    console.print(_table(rows))
    for listed in rows:
        for note in listed.notes:
            console.print(f"{listed.row.pk}: {note}", markup=False, soft_wrap=True)
    console.print(f"{len(rows)} submission{'s' * (len(rows) != 1)}", style="dim", markup=False)


def _table(rows: Sequence[ListedSubmission]) -> Table:
    """Return a table with a row for each submission that fits a terminal of 80 columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Number", "Phase", "Submitted (UTC)", "State", "Mean Q", "Team, method"):
        right = name in {"Number", "Mean Q"}
        long = name.startswith("Team")
        table.add_column(
            name,
            justify="right" if right else "left",
            overflow="fold" if long else "ellipsis",
            no_wrap=not long,
        )
    for listed in rows:
        row = listed.row
        table.add_row(
            str(row.pk),
            Text(row.phase or "–"),
            "–" if row.submitted_at is None else f"{row.submitted_at:%Y-%m-%d %H:%M}",
            str(row.state),
            f"{listed.shown}{' *' if listed.counts else '  '}",
            Text("\n".join(text for text in (row.team or "–", row.method, listed.kind) if text)),
        )
    return table
