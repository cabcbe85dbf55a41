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

    Run it after each change of texts, dates or challenge.yaml. It creates DIR/bundle if there is none.

    Example: `neuco-worker bundle my-challenge`
    """
    from worker.challenge.configuration import load
    from worker.challenge.web_address import EXAMPLE_REPOSITORY
    from worker.organizer import scaffold
    from worker.organizer.bundle import LEADERBOARD
    from worker.organizer.bundle_check import pages_to_fill_in

    packed = scaffold.pack_bundle(directory, now=datetime.now(UTC))
    print(f"Wrote {packed}.")
    repository = load(directory / "challenge.yaml").leaderboard.repository
    reason = "is still the example's" if repository == EXAMPLE_REPOSITORY else "has no web page"
    for page in pages_to_fill_in(packed):
        typer.echo(
            f"{page} does not link to the leaderboard yet, because leaderboard.repository ({repository}) {reason}. Change it in"
            f" {directory / 'challenge.yaml'} and run this command again, or replace {LEADERBOARD} in {directory / 'bundle' / page}"
            " with the address.",
            err=True,
        )
