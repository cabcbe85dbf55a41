"""Files that are shipped with the software: example configuration, bundle templates, demo data, deployment files.

In the repository they are at its root, where people look for them; in an installed wheel they are inside the package `worker`.
"""

from __future__ import annotations

from pathlib import Path

from scoring.errors import InfrastructureError

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(name: str) -> Path:
    """Return the path of a shipped file or folder, for example ``config/challenge.yaml`` or ``deploy``.

    Raises:
        InfrastructureError: If it is missing, so that the installation is incomplete.
    """
    candidates = [_PACKAGE / name]
    # Only in a checkout, because unrelated files may be next to an installed package.
    if (_PACKAGE.parent / "pyproject.toml").is_file():
        candidates.append(_PACKAGE.parent / name)
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise InfrastructureError(
        f"The file {name} of this installation is missing.",
        cure="Install neuco-worker again, from a wheel or a complete clone.",
        code="installation.incomplete",
    )
