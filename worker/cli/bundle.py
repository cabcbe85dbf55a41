"""``neuco-worker bundle``: the zip that creates the challenge at EvalAI."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer


def bundle(
    directory: Annotated[Path, typer.Argument(help="Folder of the challenge.", metavar="DIR")] = Path(),
) -> None:
    """Pack DIR/bundle into bundle.zip, which creates the challenge on EvalAI, and check it against challenge.yaml.

    Run it whenever you have changed texts, dates or challenge.yaml. If DIR/bundle does not exist, the command creates it first.

    Example: `neuco-worker bundle my-challenge`
    """
    from worker.organizer import scaffold
    from worker.organizer.bundle import LEADERBOARD
    from worker.organizer.bundle_check import pages_to_fill_in

    packed = scaffold.pack_bundle(directory, now=datetime.now(UTC))
    print(f"Wrote {packed}.")
    for page in pages_to_fill_in(packed):
        typer.echo(
            f"{page} does not link to the leaderboard yet: set leaderboard.repository in {directory / 'challenge.yaml'}"
            f" and run this command again, or replace {LEADERBOARD} in {directory / 'bundle' / page} with the address.",
            err=True,
        )
