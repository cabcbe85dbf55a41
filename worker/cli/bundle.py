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
    from worker.organizer import scaffold
    from worker.organizer.bundle import page_address

    packed = scaffold.pack_bundle(directory, now=datetime.now(UTC))
    print(f"Wrote {packed}.")
    configuration = load(directory / "challenge.yaml")
    if page_address(configuration) is None:
        typer.echo(
            f"Its pages do not link to the leaderboard, because a browser cannot open leaderboard.repository"
            f" ({configuration.leaderboard.repository}). Set leaderboard.repository or leaderboard.page in"
            f" {directory / 'challenge.yaml'}, and run this command again.",
            err=True,
        )
