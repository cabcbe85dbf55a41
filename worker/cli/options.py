"""Options that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from scoring.errors import OrganizerError

HERE = Path("challenge.yaml")
NAMED_BY = "NEUCO_CHALLENGE"
NOT_GIVEN = Path()


def default_config() -> Path:
    """Return the configuration file where a command is given none: the one in this folder, or the one that NEUCO_CHALLENGE names.

    Raises:
        OrganizerError: If neither is there.
    """
    if HERE.is_file():
        return HERE
    named = os.environ.get(NAMED_BY)
    if named and Path(named).is_file():
        return Path(named)
    other = f"{NAMED_BY} is not set" if not named else f"{NAMED_BY} names {named}, which is not a file"
    raise OrganizerError(
        f"There is no ./{HERE} here, and {other}.",
        cure="Go to the challenge's folder, give --config FILE, or make a challenge with `neuco-worker init DIR`.",
        code="config.missing",
    )


def _given_or_found(ctx: typer.Context, config: Path) -> Path:
    """Return the file that was given; otherwise look for one, but not while a shell only completes a line."""
    return config if config != NOT_GIVEN or ctx.resilient_parsing else default_config()


ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        help="Configuration file of the challenge.",
        default_factory=Path,
        callback=_given_or_found,
        show_default=f"./{HERE}, or what {NAMED_BY} names",
        metavar="FILE",
    ),
]
OptionalConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="Configuration file of the challenge.",
        show_default=f"./{HERE}, or what {NAMED_BY} names",
        metavar="FILE",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
