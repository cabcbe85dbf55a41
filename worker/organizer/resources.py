"""Files that are shipped with the software: example configuration, bundle templates, demo data, deployment files.

In the repository they are at its root, where people look for them; in an installed wheel they are inside the package `worker`.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(name: str) -> Path:
    """Return the path of a shipped file or folder, for example ``config/challenge.yaml`` or ``deploy``."""
    installed = _PACKAGE / name
    return installed if installed.exists() else _PACKAGE.parent / name
