"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        help="The challenge's configuration file.",
        default_factory=lambda: Path("challenge.yaml"),
        envvar="NEUCO_CHALLENGE",
        show_default="challenge.yaml",
        metavar="FILE",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
