"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
