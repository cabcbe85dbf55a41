"""Options that participants' commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

IdsOption = Annotated[
    Path | None,
    typer.Option(
        help="The phase's public id list, one per line.",
        metavar="IDS",
        show_default=False,
    ),
]
DimOption = Annotated[
    int | None,
    typer.Option(
        help="Number of values in one embedding, such as 1024.",
        min=1,
        max=1_000_000,
        metavar="N",
        show_default=False,
    ),
]
ChallengeOption = Annotated[
    str | None,
    typer.Option(
        help="The challenge's leaderboard repository, which has ids and dimension: a git URL or a folder.",
        metavar="URL",
        show_default=False,
    ),
]
PhaseOption = Annotated[
    str | None,
    typer.Option(
        help="Codename of the phase; needed with --challenge if there are several.",
        metavar="NAME",
        show_default=False,
    ),
]
