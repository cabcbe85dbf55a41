"""The demo: a new challenge about handwritten digits, rehearsed with the submissions of several teams."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import git

from worker.challenge.configuration import load
from worker.organizer import scaffold
from worker.organizer.configuration_text import with_values
from worker.organizer.demo.entries import entries
from worker.organizer.demo.methods import DIMENSION
from worker.organizer.rehearsal import Rehearsal, RehearsalFolder, rehearse

CHALLENGE = scaffold.NewChallenge(
    title="Handwritten digits (demo)", phases={"dev": 40, "eval": 200}, dim=DIMENSION
)
SETTINGS: dict[tuple[str, ...], object] = {
    # values are shown as they are, and at once
    ("phases", "dev", "selection"): "last",
    ("phases", "eval", "shown"): "at_once",
    ("scoring", "learning_rate"): 0.01,  # larger than usual, because few images mean few steps
    ("fairness", "publish_files"): "top:1",
}


def run_demo(
    path: Path, *, folds: int | None, tell: Callable[[str], object]
) -> tuple[RehearsalFolder, Rehearsal]:
    """Create the challenge in a folder, rehearse it, and check out its leaderboard.

    Args:
        path: A new or empty folder.
        folds: Largest number of splits in each phase; None for all.
        tell: Called with a sentence about each step.

    Raises:
        OrganizerError: If the folder is in use.
        InfrastructureError: If nothing changes any more.
    """
    scaffold.create(path, CHALLENGE, now=datetime.now(UTC))
    file = path / "challenge.yaml"
    file.write_text(with_values(file.read_text(encoding="utf-8"), SETTINGS), encoding="utf-8")
    folder = RehearsalFolder(path=path / "rehearsal")
    rehearsal = rehearse(load(file), entries(), folds=folds, keep=folder.path, tell=tell)
    git.Repo.clone_from(str(folder.repository), path / "leaderboard")
    return folder, rehearsal
