"""What an organizer does with a challenge: create, check, rehearse, decide, rescore, reveal, and back up.

None of its modules is imported here, because some run as root in scripts that should start at once.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(name: str) -> Path:
    """Return the path of a file or folder that is shipped with the software, for example ``config/challenge.yaml`` or ``deploy``.

    In the repository they are at its root, where people look for them; in an installed wheel they are inside the package `worker`.
    """
    installed = _PACKAGE / name
    return installed if installed.exists() else _PACKAGE.parent / name


__all__ = [
    "applying",
    "archiving",
    "board_by_hand",
    "bundle",
    "bundle_check",
    "configuration_text",
    "decisions",
    "demo",
    "disclosure",
    "doctor",
    "listing",
    "rehearsal",
    "rescoring",
    "reveal",
    "scaffold",
    "service",
    "session",
    "shipped",
]
