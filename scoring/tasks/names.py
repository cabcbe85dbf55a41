"""Names of tasks and of their files."""

from __future__ import annotations

import re
from pathlib import Path

DESCRIPTION = "task.yaml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")  # of a task


def is_package(path: Path) -> bool:
    """Return whether a path is a task package."""
    return (path / DESCRIPTION).is_file()
