"""Options that participants' commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

IdsOption = Annotated[
    Path | None,
    typer.Option(
        help="The phase's public id list, one id per line, such as ids/dev.txt.",
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
        help="The challenge's leaderboard repository, which has the ids and the dimension: a git URL such as"
        " https://github.com/organizer/challenge-leaderboard, or a folder.",
        metavar="URL",
        show_default=False,
    ),
]
PhaseOption = Annotated[
    str | None,
    typer.Option(
        help="Phase, such as dev; needed with --challenge if there are several.",
        metavar="NAME",
        show_default=False,
    ),
]
