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


def find_config() -> Path | None:
    """Return the configuration file in this folder, or the one that NEUCO_CHALLENGE names; None if there is neither."""
    named = os.environ.get(NAMED_BY)
    places = [HERE, *([Path(named)] if named else [])]
    return next((place for place in places if place.is_file()), None)


def default_config() -> Path:
    """Return the configuration file for a command without one: that in this folder, or the one that NEUCO_CHALLENGE names.

    Raises:
        OrganizerError: If there is neither.
    """
    found = find_config()
    if found is not None:
        return found
    path = os.environ.get(NAMED_BY)
    other = f"{NAMED_BY} is not set" if not path else f"{NAMED_BY} names {path}, which is not a file"
    raise OrganizerError(
        f"There is no ./{HERE} here, and {other}.",
        cure="Change to the challenge's folder, add --config FILE, or create a challenge with `neuco-worker init DIR`.",
        code="config.missing",
    )


def _given_or_found(ctx: typer.Context, config: Path) -> Path:
    """Return the given file; otherwise look for one, except while a shell completes a line."""
    return config if config != NOT_GIVEN or ctx.resilient_parsing else default_config()


ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        help="The challenge's configuration file.",
        default_factory=Path,
        callback=_given_or_found,
        show_default=f"./{HERE}",
        metavar="FILE",
    ),
]
OptionalConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="The challenge's configuration file.",
        show_default=f"./{HERE}",
        metavar="FILE",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
