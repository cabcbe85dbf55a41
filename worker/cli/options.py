"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", help="Configuration file of the challenge.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
